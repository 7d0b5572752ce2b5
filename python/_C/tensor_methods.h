/* Declares the hand-written Tensor methods for the method table in tensor_methods.c. */
#ifndef GRADUS_PYTHON_TENSOR_METHODS_H
#define GRADUS_PYTHON_TENSOR_METHODS_H

#include "extension.h"

/* The four methods below are in elements.c. */
PyObject *py_method_tolist(PyObject *self, PyObject *none);
PyObject *py_method_apply_(PyObject *self, PyObject *function);
PyObject *py_method_map_(PyObject *self, PyObject *args);
PyObject *py_method_map2_(PyObject *self, PyObject *args);
/* The method below is in repr.c. */
PyObject *py_method_format(PyObject *self, PyObject *format);
/* The methods below are in to_methods.c. */
py_entry py_method_to, py_method_type, py_method_type_as, py_method_cpu, py_method_cuda;
py_entry py_method_bool, py_method_byte, py_method_char, py_method_short, py_method_int, py_method_long, py_method_half, py_method_bfloat16,
    py_method_float, py_method_double, py_method_chalf, py_method_cfloat, py_method_cdouble;
/* The method below is in as_tensor.c. */
py_entry py_method_new_tensor;
/* The methods below are in new_methods.c. */
py_entry py_method_new_empty, py_method_new_empty_strided, py_method_new_zeros, py_method_new_ones, py_method_new_full;
/* The method below is in legacy_tensor.c. */
PyObject *py_method_new(PyObject *self, PyObject *args, PyObject *keywords);
/* The methods below are in queries.c. */
py_entry py_method_equal, py_method_allclose, py_method_is_same_size;

#endif
