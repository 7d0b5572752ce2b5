/* Declares the Python methods that register hooks of tensors and of graph nodes. */
#ifndef GRADUS_PYTHON_HOOKS_H
#define GRADUS_PYTHON_HOOKS_H

#include "extension.h"

/* The three functions below implement methods of Tensor. The method table is in autograd.c. */
py_entry py_tensor_register_hook, py_tensor_register_accumulated;
PyObject *py_tensor_retain_grad(PyObject *self, PyObject *nothing);
/* Registers the callable among `args` as a hook of `node` and returns the hook's handle. The hook runs before the node if `pre` is true, after the
 * node otherwise. Raises RuntimeError if `node` is NULL. */
PyObject *py_hook_node(grd_node *node, bool pre, PyObject *const *args, Py_ssize_t nargs, PyObject *names);

#endif
