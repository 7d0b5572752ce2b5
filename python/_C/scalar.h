/* Numbers between Python and the library. */
#ifndef GRADUS_PYTHON_SCALAR_H
#define GRADUS_PYTHON_SCALAR_H

#include "extension.h"

/* Reads a bool, int, float, complex, a scalar of NumPy or a 0-d tensor that requires no gradient: 1 if the object is one of these, 0 with no
 * exception if it is none, -1 with an exception if the number does not fit. */
int py_as_scalar(PyObject *object, grd_scalar *ret_scalar);
/* Reads any object with __index__ except a bool; returns as py_as_scalar does. */
int py_as_int(PyObject *object, int64_t *ret_value);
/* Reads element `at` of a list of integers as py_as_int does. As in PyTorch the elements after the first may be bools. */
int py_as_element(PyObject *object, Py_ssize_t at, int64_t *ret_value);
/* Raises PyTorch's TypeError for element `at` > 0 of a list of integers that is no integer. */
void py_refuse_element(const char *function, const char *name, PyObject *object, Py_ssize_t at);
/* Reads a tuple or list of integers into ret_values[GRD_MAX_DIMS]. False with TypeError, or with ValueError for more than GRD_MAX_DIMS integers. */
bool py_as_dims(const char *function, const char *name, PyObject *object, int64_t *ret_values, int64_t *ret_n);

PyObject *py_from_scalar(grd_scalar scalar);
/* Returns the only element of a tensor as a number. */
PyObject *py_item(grd_tensor *t);

#endif
