/* Declares conversions between Python numbers and the library's scalars. */
#ifndef GRADUS_PYTHON_SCALAR_H
#define GRADUS_PYTHON_SCALAR_H

#include "extension.h"

/* Converts a bool, int, float, complex, NumPy scalar, or 0-d tensor that requires no gradient. Returns 1 on success, 0 without an exception if
 * `object` is none of these, and -1 with an exception if the number does not fit. */
int py_as_scalar(PyObject *object, grd_scalar *ret_scalar);
/* Converts an object with __index__, except a bool, to an integer. Returns 1 on success, 0 without an exception if `object` is no integer, and -1
 * with an exception if the integer does not fit. */
int py_as_int(PyObject *object, int64_t *ret_value);
/* Converts `object`, which is element `at` of a list of integers. As in PyTorch, a bool is accepted for every element but the first. Returns 1 on
 * success, 0 without an exception if `object` is no integer, and -1 with an exception if the integer does not fit. */
int py_as_element(PyObject *object, Py_ssize_t at, int64_t *ret_value);
/* Raises PyTorch's TypeError because `object`, element `at` of a list of integers, is not an integer. `at` is greater than 0, because PyTorch
 * words the error for the first element differently. */
void py_refuse_element(const char *function, const char *name, PyObject *object, Py_ssize_t at);
/* Converts a tuple or list of integers to ret_values, which has room for GRD_MAX_DIMS integers. Returns false with TypeError, or with ValueError if
 * there are more than GRD_MAX_DIMS. */
bool py_as_dims(const char *function, const char *name, PyObject *object, int64_t *ret_values, int64_t *ret_n);

/* Returns the Python number that is equal to `scalar`. */
PyObject *py_from_scalar(grd_scalar scalar);
/* Returns the only element of `t` as a Python number. */
PyObject *py_item(grd_tensor *t);

#endif
