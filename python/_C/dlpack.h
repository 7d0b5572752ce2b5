/* Declares the import of tensors from other libraries by DLPack. */
#ifndef GRADUS_PYTHON_DLPACK_H
#define GRADUS_PYTHON_DLPACK_H

#include "extension.h"

/* True if the class of the object has __dlpack__. */
bool py_has_dlpack(PyObject *object);
/* Returns a tensor over the data of `object`, for which py_has_dlpack is true. If `copy` is 1, always copies the data; if 0, never; if -1, only if
 * needed. */
grd_tensor *py_over_dlpack(PyObject *object, int copy);
/* True if `object` is a DLPack capsule that no consumer has taken yet. */
bool py_is_dlpack(PyObject *object);
/* Returns a tensor over the data of `capsule`, and marks the capsule as consumed. If `copy` is 1, always copies the data; if 0, never; if -1, only
 * if needed. */
grd_tensor *py_take_dlpack(PyObject *capsule, int copy);
/* Returns a new capsule for the class attribute Tensor.__dlpack_c_exchange_api__. */
PyObject *py_exchange_capsule(void);

#endif
