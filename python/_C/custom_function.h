/* Declares the context object `ctx` of an autograd.Function. Its Python class is in custom_context.c; custom_function.c uses it. */
#ifndef GRADUS_PYTHON_CUSTOM_FUNCTION_H
#define GRADUS_PYTHON_CUSTOM_FUNCTION_H

#include "node.h"

typedef struct py_context {
    py_node node;
    PyObject *function; /* the user's subclass of autograd.Function */
    PyObject *to_save, *for_forward, *dirty,
        *non_differentiable; /* tuples of tensors that forward passed to methods of ctx, e.g. save_for_backward; else NULL */
    PyObject *needs_input_grad;
    bool *is_tensor;           /* is_tensor[i] is true if argument i of forward is a tensor */
    grd_tensor *const *inputs; /* the tensor arguments, borrowed; valid only while apply() runs */
    Py_ssize_t narguments, noutputs;
    int nsaved;
    /* `materialize` is the argument of ctx.set_materialize_grads. `forward` is true until forward has returned. `owns_node` is true after the
     * node has lost its last other owner while Python code still held the context (py_take_over_node). */
    bool materialize, forward, owns_node;
} py_context;

/* Clears the tensors that forward saved or marked by methods of the context. */
void py_context_forget(py_context *context);
/* Callback of the library before a node is freed. Returns true if Python code still holds the context; then the context owns the node from now on and
 * the node is not freed. */
bool py_take_over_node(void *context);

#endif
