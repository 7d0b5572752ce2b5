/* Declares conversions of the Python objects of dtypes, layouts and memory formats: torch.float32, torch.strided, torch.channels_last. */
#ifndef GRADUS_PYTHON_DTYPE_H
#define GRADUS_PYTHON_DTYPE_H

#include "extension.h"

/* Returns a new reference to the Python object of `dtype`, e.g. torch.float32. */
PyObject *py_dtype(grd_dtype dtype);
/* True if `object` is a dtype or one of the Python types float, int, bool and complex, which stand for dtypes. Sets no exception. */
bool py_as_dtype(PyObject *object, grd_dtype *ret_dtype);
/* True if `object` is a dtype object. The Python types that py_as_dtype accepts do not count. */
bool py_is_dtype(PyObject *object);
/* Returns the name of a dtype in PyTorch's errors and tensor types: "Float", as in torch.FloatTensor. */
const char *py_dtype_tensor_name(grd_dtype dtype);
bool py_dtype_is_signed(grd_dtype dtype);
bool py_dtype_is_quantized(grd_dtype dtype);

/* Returns a new reference to the Python object of `layout`, e.g. torch.strided. */
PyObject *py_layout(grd_layout layout);
bool py_as_layout(PyObject *object, grd_layout *ret_layout);

/* Returns the library's name of a memory format object: "contiguous", "preserve", "channels_last" or "channels_last_3d". Returns NULL, without an
 * exception, if `object` is not a memory format. */
const char *py_as_memory_format(PyObject *object);
/* Returns the number of dimensions that a tensor of this memory format must have, or 0 if any number is allowed. `object` must be a memory format. */
int py_memory_format_ndim(PyObject *object);

#endif
