/* Declares the functions that implement x[index] and x[index] = value for Tensors. */
#ifndef GRADUS_PYTHON_INDEX_H
#define GRADUS_PYTHON_INDEX_H

#include "extension.h"

PyObject *py_get_item(PyObject *self, PyObject *index);
int py_set_item(PyObject *self, PyObject *index, PyObject *value);

#endif
