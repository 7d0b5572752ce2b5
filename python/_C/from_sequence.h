/* Declares the creation of tensors with copies of Python data. */
#ifndef GRADUS_PYTHON_FROM_SEQUENCE_H
#define GRADUS_PYTHON_FROM_SEQUENCE_H

#include "extension.h"

/* Returns a new tensor with the numbers in nested sequences, which may also contain tensors and arrays. If `dtype` is GRD_DTYPE_NONE, the numbers
 * determine the dtype. */
grd_tensor *py_from_sequence(PyObject *object, grd_dtype dtype);
/* Returns a new tensor with the numbers in `object`, which is an array (py_is_array) or nested sequences. If `dtype` is GRD_DTYPE_NONE, an array
 * gives its dtype to the tensor; for sequences the numbers determine the dtype. */
grd_tensor *py_from_data(PyObject *object, grd_dtype dtype);

#endif
