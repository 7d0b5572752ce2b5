/* Tensors over memory that other objects own. */
#ifndef GRADUS_PYTHON_BUFFER_H
#define GRADUS_PYTHON_BUFFER_H

#include "extension.h"

/* Returns a tensor over memory of another owner. The strides are in elements and may have any sign. release(context) is called when the last tensor
 * over the memory is freed, or at once on failure. */
grd_tensor *py_over_memory(void *data, grd_dims sizes, grd_dims strides, grd_dtype dtype, void (*release)(void *context), void *context);
/* Writes the strides of contiguous sizes; `unit` is the stride of the last dimension. A stride that overflows is 0: py_over_memory refuses such
 * sizes. */
void py_contiguous_strides(grd_dims sizes, int64_t unit, int64_t *ret_strides);
/* True if the object has __array_struct__ or __array_interface__, as NumPy's arrays and scalars do. Sets no exception. */
bool py_is_array(PyObject *object);
/* Returns a tensor over the memory of such an object, which it keeps alive. */
grd_tensor *py_over_array(PyObject *object, bool *ret_writable);
/* Returns a 1-d tensor over an object with the buffer protocol, which it keeps alive; count -1: all elements after the offset, which is in bytes. */
grd_tensor *py_over_buffer(PyObject *object, grd_dtype dtype, Py_ssize_t count, Py_ssize_t offset);
/* Warns that a tensor was made over memory that must not be written to. False if the warning was raised as an exception. */
bool py_warn_not_writable(const char *what);
/* True if the buffer protocol, and so NumPy, has a format for the dtype. */
bool py_has_buffer_format(grd_dtype dtype);

#endif
