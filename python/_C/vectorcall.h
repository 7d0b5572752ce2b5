/* The arguments of a vectorcall as a tuple and a dict. */
#ifndef GRADUS_PYTHON_VECTORCALL_H
#define GRADUS_PYTHON_VECTORCALL_H

#include "extension.h"

/* Returns a tuple of `self`, unless it is NULL, and the positional arguments. */
PyObject *py_pack_positional(PyObject *self, PyObject *const *args, Py_ssize_t nargs);
/* Returns a dict of the keyword arguments; `names` may be NULL. */
PyObject *py_pack_keywords(PyObject *const *values, PyObject *names);

#endif
