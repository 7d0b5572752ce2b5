/* Declares the conversion of errors of the library to Python exceptions and back. */
#ifndef GRADUS_PYTHON_ERRORS_H
#define GRADUS_PYTHON_ERRORS_H

#include "extension.h"

/* Raises the pending error of the library as a Python exception and clears it. Always returns NULL. */
PyObject *py_raise(void);
/* Closes `scope`, which frees the temporary tensors of the call, and returns NULL. If no exception is set, raises the library's pending error. */
PyObject *py_abandon(grd_scope scope);
/* True if the thread has enough stack left. Otherwise returns false with RecursionError. Must be called before Python code that may call the
 * extension again. */
bool py_has_stack(void);
/* Called in a callback of the library. Takes the Python exception that is set and sets an error of the library instead, so that the library stops.
 * Later py_raise raises that exception unchanged. */
void py_carry(void);
/* Handler for the library's warnings. Issues each as a Python UserWarning, on any thread. */
void py_warn(const char *text);

#endif
