/* dtypes, layouts and memory formats: torch.float32, torch.strided, torch.channels_last. */
#ifndef GRADUS_PYTHON_DTYPE_H
#define GRADUS_PYTHON_DTYPE_H

#include "extension.h"

/* Returns the only object of a dtype: torch.float32. */
PyObject *py_dtype(grd_dtype dtype);
/* True if the object is a dtype, or one of the types float, int, bool and complex. Sets no exception. */
bool py_as_dtype(PyObject *object, grd_dtype *ret_dtype);
/* True if the object is a dtype. The types of Python that py_as_dtype accepts are none. */
bool py_is_dtype(PyObject *object);
/* Returns the name of a dtype in PyTorch's errors and tensor types: "Float", as in torch.FloatTensor. */
const char *py_dtype_tensor_name(grd_dtype dtype);
bool py_dtype_is_signed(grd_dtype dtype);
bool py_dtype_is_quantized(grd_dtype dtype);

/* Returns torch.strided. */
PyObject *py_layout(grd_layout layout);
bool py_as_layout(PyObject *object, grd_layout *ret_layout);

/* Returns the library's name of a memory format: "contiguous", "preserve", "channels_last" or "channels_last_3d". NULL, with no exception, if the
 * object is no memory format. */
const char *py_as_memory_format(PyObject *object);
/* Returns the number of dimensions that a memory format is for, 0 for any. py_as_memory_format must hold for the object. */
int py_memory_format_ndim(PyObject *object);

#endif
