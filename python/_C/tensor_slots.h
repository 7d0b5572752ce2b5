/* Declares the C functions for the type slots of the class Tensor. tensor_type.c puts them into the type. */
#ifndef GRADUS_PYTHON_TENSOR_SLOTS_H
#define GRADUS_PYTHON_TENSOR_SLOTS_H

#include "extension.h"

/* ---- Arithmetic and comparison (arithmetic.c) -------------------------------------------------------------------- */
PyObject *py_number_add(PyObject *a, PyObject *b);
PyObject *py_number_subtract(PyObject *a, PyObject *b);
PyObject *py_number_multiply(PyObject *a, PyObject *b);
PyObject *py_number_true_divide(PyObject *a, PyObject *b);
PyObject *py_number_floor_divide(PyObject *a, PyObject *b);
PyObject *py_number_remainder(PyObject *a, PyObject *b);
PyObject *py_number_power(PyObject *a, PyObject *b, PyObject *modulus);
PyObject *py_number_matmul(PyObject *a, PyObject *b);
PyObject *py_number_and(PyObject *a, PyObject *b);
PyObject *py_number_or(PyObject *a, PyObject *b);
PyObject *py_number_xor(PyObject *a, PyObject *b);
PyObject *py_number_lshift(PyObject *a, PyObject *b);
PyObject *py_number_rshift(PyObject *a, PyObject *b);
PyObject *py_number_negative(PyObject *self);
PyObject *py_number_positive(PyObject *self);
PyObject *py_number_absolute(PyObject *self);
PyObject *py_number_invert(PyObject *self);
PyObject *py_number_inplace_add(PyObject *self, PyObject *other);
PyObject *py_number_inplace_subtract(PyObject *self, PyObject *other);
PyObject *py_number_inplace_multiply(PyObject *self, PyObject *other);
PyObject *py_number_inplace_true_divide(PyObject *self, PyObject *other);
PyObject *py_number_inplace_floor_divide(PyObject *self, PyObject *other);
PyObject *py_number_inplace_remainder(PyObject *self, PyObject *other);
PyObject *py_number_inplace_power(PyObject *self, PyObject *other, PyObject *modulus);
PyObject *py_number_inplace_and(PyObject *self, PyObject *other);
PyObject *py_number_inplace_or(PyObject *self, PyObject *other);
PyObject *py_number_inplace_xor(PyObject *self, PyObject *other);
PyObject *py_number_inplace_lshift(PyObject *self, PyObject *other);
PyObject *py_number_inplace_rshift(PyObject *self, PyObject *other);
PyObject *py_tensor_compare(PyObject *a, PyObject *b, int operation);

/* ---- A tensor as a number (scalar.c), as a sequence (elements.c), as text (repr.c) ------------------------------- */
int py_tensor_bool(PyObject *self);
PyObject *py_tensor_int(PyObject *self);
PyObject *py_tensor_float(PyObject *self);
PyObject *py_tensor_index(PyObject *self);
Py_ssize_t py_tensor_length(PyObject *self);
PyObject *py_tensor_iter(PyObject *self);
int py_tensor_contains(PyObject *self, PyObject *element);
PyObject *py_tensor_repr(PyObject *self);

/* ---- Tensor(...) (legacy_tensor.c), the buffer protocol (buffer.c) ----------------------------------------------- */
PyObject *py_tensor_new(PyTypeObject *type, PyObject *args, PyObject *keywords);
int py_tensor_get_buffer(PyObject *self, Py_buffer *view, int flags);
void py_tensor_release_buffer(PyObject *self, Py_buffer *view);

#endif
