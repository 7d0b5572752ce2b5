/* Hooks of tensors and of nodes. */
#ifndef GRADUS_PYTHON_HOOKS_H
#define GRADUS_PYTHON_HOOKS_H

#include "extension.h"

/* Methods of Tensor; their table is in autograd.c. */
py_entry py_tensor_register_hook, py_tensor_register_accumulated;
PyObject *py_tensor_retain_grad(PyObject *self, PyObject *nothing);
/* Registers the hook among the arguments of a method of a node, `pre`: to run before the node. Returns the hook's handle. RuntimeError if the node is
 * NULL. */
PyObject *py_hook_node(grd_node *node, bool pre, PyObject *const *args, Py_ssize_t nargs, PyObject *names);

#endif
