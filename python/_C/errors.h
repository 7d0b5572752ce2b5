/* Declares the conversion of errors of the library to Python exceptions and back. */
#ifndef GRADUS_PYTHON_ERRORS_H
#define GRADUS_PYTHON_ERRORS_H

#include "extension.h"

/* Raises the pending error of the library as a Python exception and clears it. Always returns NULL. */
PyObject *py_raise(void);
/* Closes `scope`, which frees the temporary tensors of the call, and returns NULL. If no exception is set, raises the library's pending error. */
PyObject *py_abandon(grd_scope scope);
/* True if the thread has enough stack left. Otherwise returns false with RecursionError. Must be called before running Python code that may call
 * the extension again, so that endless recursion does not crash. */
bool py_has_stack(void);
/* Called at the end of a callback of the library if Python code in it has raised an exception. Keeps the exception, which py_raise later raises
 * unchanged. Sets an error of the library, so that the call of the library that ran the callback fails. */
void py_carry(void);
/* Handler for the library's warnings. May be called on any thread. Issues each warning as a Python UserWarning. */
void py_warn(const char *text);

#endif
