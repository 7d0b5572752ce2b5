/* Errors between the library and Python. */
#ifndef GRADUS_PYTHON_ERRORS_H
#define GRADUS_PYTHON_ERRORS_H

#include "extension.h"

/* Raises the pending error of the library as a Python exception and clears it. Always returns NULL. */
PyObject *py_raise(void);
/* Closes the scope. Always returns NULL: with the exception that is set, or else with the pending error raised. */
PyObject *py_abandon(grd_scope scope);
/* True unless the stack of the thread is nearly used up; then RecursionError. Called before Python code that may call the extension again. */
bool py_has_stack(void);
/* In a callback of the library: takes the exception that is set and sets an error of the library instead. py_raise raises that exception
 * unchanged. */
void py_carry(void);
/* The handler of the library's warnings: raises each as a UserWarning, on any thread. */
void py_warn(const char *text);

#endif
