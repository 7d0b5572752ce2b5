/* Hooks of tensors and of nodes: methods in the tables of autograd.c and node.c. */
#ifndef GRADUS_PYTHON_HOOKS_H
#define GRADUS_PYTHON_HOOKS_H

#include "extension.h"

py_entry py_tensor_register_hook, py_tensor_register_accumulated, py_node_register_hook, py_node_register_prehook;
PyObject *py_tensor_retain_grad(PyObject *self, PyObject *nothing);

#endif
