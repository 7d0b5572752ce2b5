/* Declares the context object `ctx` of an autograd.Function. custom_context.c implements its class, and custom_function.c creates the objects. */
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
    /* `materialize` is the argument of ctx.set_materialize_grads. `forward` is true until forward has returned. `owns_node` is true if
     * py_take_over_node has made this context the owner of its node. */
    bool materialize, forward, owns_node;
} py_context;

/* Drops the references to the tensors that forward passed to methods of ctx, e.g. save_for_backward. */
void py_context_forget(py_context *context);
/* The library calls this function before it frees the node of `context`. If Python code still holds the context, the function makes the context
 * the owner of the node and returns true; the library then does not free the node. */
bool py_take_over_node(void *context);

#endif
