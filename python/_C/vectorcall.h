/* Converts the arguments of a vectorcall to a tuple and a dict. */
#ifndef GRADUS_PYTHON_VECTORCALL_H
#define GRADUS_PYTHON_VECTORCALL_H

#include "extension.h"

/* Returns a tuple of `self` (left out if NULL) and the nargs positional arguments. */
PyObject *py_pack_positional(PyObject *self, PyObject *const *args, Py_ssize_t nargs);
/* Returns a dict of the keyword arguments. `names` is the vectorcall's tuple of names, or NULL if there are none. */
PyObject *py_pack_keywords(PyObject *const *values, PyObject *names);

#endif
