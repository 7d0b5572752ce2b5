/* Tensors with copies of Python's data. */
#ifndef GRADUS_PYTHON_FROM_SEQUENCE_H
#define GRADUS_PYTHON_FROM_SEQUENCE_H

#include "extension.h"

/* Returns a new tensor of the numbers in nested sequences, which may hold tensors and arrays, too. GRD_DTYPE_NONE: the dtype follows from the
 * numbers. */
grd_tensor *py_from_sequence(PyObject *object, grd_dtype dtype);
/* The same, but the object may also be an array (py_is_array), whose dtype is the default. */
grd_tensor *py_from_data(PyObject *object, grd_dtype dtype);

#endif
