/* Helpers that add values and types to the extension module. */
#ifndef GRADUS_PYTHON_ADD_TYPE_H
#define GRADUS_PYTHON_ADD_TYPE_H

#include "extension.h"

/* Adds `object` to `module` under `name` and steals the reference to `object`. If `object` is NULL, because the call that made it has set an
 * exception, returns false. So the caller need not check that call. */
bool py_add(PyObject *module, const char *name, PyObject *object);
/* Creates a type from `spec` with the base classes `bases` and adds it to `module`. Returns a borrowed reference, which stays valid because nothing
 * removes the type from the module. Returns NULL on failure. */
PyTypeObject *py_add_type(PyObject *module, PyType_Spec *spec, PyObject *bases);
/* tp_dealloc for types whose objects own no references to other objects. Frees `self`. */
void py_free_object(PyObject *self);

#endif
