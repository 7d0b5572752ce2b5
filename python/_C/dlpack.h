/* Data from other libraries by DLPack. */
#ifndef GRADUS_PYTHON_DLPACK_H
#define GRADUS_PYTHON_DLPACK_H

#include "extension.h"

/* True if the class of the object has __dlpack__. */
bool py_has_dlpack(PyObject *object);
/* Returns a tensor over the data of such an object; `copy`: -1 where it is needed, 0 never, 1 always. */
grd_tensor *py_over_dlpack(PyObject *object, int copy);
/* True if the object is a DLPack capsule that nobody has consumed. */
bool py_is_dlpack(PyObject *object);
/* Returns a tensor over the data of a capsule, and marks the capsule as consumed. */
grd_tensor *py_take_dlpack(PyObject *capsule, int copy);
/* Returns the capsule Tensor.__dlpack_c_exchange_api__. */
PyObject *py_exchange_capsule(void);

#endif
