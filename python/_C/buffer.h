/* Declares the creation of tensors over memory that other objects own. */
#ifndef GRADUS_PYTHON_BUFFER_H
#define GRADUS_PYTHON_BUFFER_H

#include "extension.h"

/* Returns a tensor over memory that another object owns. The strides are in elements and may be negative or 0. release(context) is called when the
 * last tensor over the memory is freed, or at once on failure. */
grd_tensor *py_over_memory(void *data, grd_dims sizes, grd_dims strides, grd_dtype dtype, void (*release)(void *context), void *context);
/* Writes the strides of a contiguous tensor with the given sizes to ret_strides. `unit` is the stride of the last dimension. A stride that overflows
 * int64 becomes 0, and py_over_memory refuses such sizes. */
void py_contiguous_strides(grd_dims sizes, int64_t unit, int64_t *ret_strides);
/* True if the object has __array_struct__ or __array_interface__, as NumPy's arrays and scalars do. Sets no exception. */
bool py_is_array(PyObject *object);
/* Returns a tensor over the memory of `object`, for which py_is_array is true. The tensor keeps `object` alive. Sets *ret_writable to true if the
 * memory may be written to. */
grd_tensor *py_over_array(PyObject *object, bool *ret_writable);
/* Returns a 1-d tensor over the memory of an object with the buffer protocol, and keeps the object alive. `offset` is in bytes. `count` is the number
 * of elements; -1 takes all elements after the offset. */
grd_tensor *py_over_buffer(PyObject *object, grd_dtype dtype, Py_ssize_t count, Py_ssize_t offset);
/* Warns that a tensor was made over the memory of `what`, e.g. "NumPy array", which must not be written to. Returns false if the warning was
 * raised as an exception. */
bool py_warn_not_writable(const char *what);
/* True if the buffer protocol, and so NumPy, has a format for the dtype. */
bool py_has_buffer_format(grd_dtype dtype);

#endif
