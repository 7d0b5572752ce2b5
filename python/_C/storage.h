/* Declares conversions between the library's tensors and objects of the class torch.UntypedStorage. */
#ifndef GRADUS_PYTHON_STORAGE_H
#define GRADUS_PYTHON_STORAGE_H

#include "extension.h"

/* Closes `scope`, which frees the temporary tensors of the call, and returns the storage object of `t`, which was computed in that scope. If `t`
 * is NULL or an error is pending, raises the error and returns NULL. */
PyObject *py_take_storage(grd_scope scope, grd_tensor *t);
/* Returns the uint8 tensor over all bytes of a storage object, borrowed. Returns NULL, without an exception, if `object` is not a storage. */
grd_tensor *py_storage_bytes(PyObject *object);
/* Returns the uint8 tensor over all bytes of `object`, borrowed. Raises TypeError for the argument `storage` of `function` if `object` is not a
 * storage. */
grd_tensor *py_storage_argument(const char *function, PyObject *object);
/* Updates the length of the storage object after the number of bytes of its storage has changed. Returns false with an error of the library
 * pending. */
bool py_storage_fit(PyObject *object);

#endif
