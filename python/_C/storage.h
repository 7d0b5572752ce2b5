/* torch.UntypedStorage. */
#ifndef GRADUS_PYTHON_STORAGE_H
#define GRADUS_PYTHON_STORAGE_H

#include "extension.h"

/* Closes the scope and returns the storage object of a tensor that was computed in it. NULL, or an error that is pending, raises. */
PyObject *py_take_storage(grd_scope scope, grd_tensor *t);
/* Returns the bytes of a storage object as a tensor, borrowed; NULL, with no exception, if the object is no storage. */
grd_tensor *py_storage_bytes(PyObject *object);
/* The same for the argument `storage` of a function, with TypeError if the object is no storage. */
grd_tensor *py_storage_argument(const char *function, PyObject *object);
/* Updates the length of a storage object after the number of bytes of its storage has changed. False with the error of the library pending. */
bool py_storage_fit(PyObject *object);

#endif
