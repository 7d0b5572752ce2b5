/* The context of a custom function: shared by what it is (context.c) and what is done with it (function.c). */
#ifndef GRADUS_FUNCTION_H
#define GRADUS_FUNCTION_H

#include "graph.h"

typedef struct py_context {
    py_node node;
    PyObject *function;                                           /* the class */
    PyObject *to_save, *for_forward, *dirty, *non_differentiable; /* what forward said, until it is over */
    PyObject *needs_input_grad;
    bool *is_tensor;           /* per argument of forward */
    grd_tensor *const *inputs; /* the tensors among them, while apply runs; borrowed */
    Py_ssize_t narguments, noutputs;
    int nsaved;
    bool materialize, forward, owns_node; /* forward: it has not ended */
} py_context;

/* Drops what forward noted. */
void py_context_forget(py_context *context);
/* For the library: somebody in Python holds the context besides the node, which it then owns. */
bool py_take_over_node(void *context);
bool py_add_context(PyObject *module);

#endif
