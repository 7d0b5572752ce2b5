/* Adding values and types to the module. */
#ifndef GRADUS_PYTHON_ADD_TYPE_H
#define GRADUS_PYTHON_ADD_TYPE_H

#include "extension.h"

/* Adds an object to the module and takes its reference. `object` may be NULL: then an exception is set already, and the result is false. */
bool py_add(PyObject *module, const char *name, PyObject *object);
/* Makes a type and adds it to the module. Returns a borrowed reference, which stays valid because nothing removes the type; NULL on failure. */
PyTypeObject *py_add_type(PyObject *module, PyType_Spec *spec, PyObject *bases);
/* tp_dealloc of an object that owns no references. */
void py_free_object(PyObject *self);

#endif
