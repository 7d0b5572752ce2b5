/* The context of a custom function: its class is in custom_context.c, its use in custom_function.c. */
#ifndef GRADUS_PYTHON_CUSTOM_FUNCTION_H
#define GRADUS_PYTHON_CUSTOM_FUNCTION_H

#include "node.h"

typedef struct py_context {
    py_node node;
    PyObject *function; /* the class */
    PyObject *to_save, *for_forward, *dirty,
        *non_differentiable; /* what forward noted on ctx; used and dropped when forward has returned */
    PyObject *needs_input_grad;
    bool *is_tensor;           /* one for each argument of forward */
    grd_tensor *const *inputs; /* the tensors among the arguments while apply runs; borrowed */
    Py_ssize_t narguments, noutputs;
    int nsaved;
    bool materialize, forward, owns_node; /* forward: it has not returned yet */
} py_context;

/* Drops what forward noted. */
void py_context_forget(py_context *context);
/* For the library: true if Python code holds the context besides the node; then the context owns the node from now on. */
bool py_take_over_node(void *context);

#endif
