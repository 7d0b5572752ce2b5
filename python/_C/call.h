/* Declares the functions that run an operator for a call from Python. */
#ifndef GRADUS_PYTHON_CALL_H
#define GRADUS_PYTHON_CALL_H

#include "signature.h"

/* A Python function that is generated from the schema. `call` is the C function that Python calls; it passes `function` to py_call. `doc` is the
 * docstring. */
struct py_listed {
    struct py_function function;
    py_entry *call;
    const char *doc;
};

/* Writes the method table of n generated functions to ret_table. `ops` has one entry for each signature of these functions. When a signature is used
 * for the first time, py_call stores the operator of the signature in this entry. */
void py_fill(PyMethodDef *ret_table, struct py_listed *functions, int n, const grd_op **ops);

/* Runs a Python function that is generated from the schema. Calls the operator directly if the only arguments are one or two Tensors. Otherwise
 * parses the arguments, calls the operator with an array of grd_value and wraps the results as Python objects. */
PyObject *py_call(const struct py_function *function, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names);
/* The two functions below call an operator of one or two tensors. If the tensors have at least PY_MUCH elements in total, the GIL is released during
 * the call. */
grd_tensor *py_call_unary(grd_tensor *(*call)(grd_tensor *), grd_tensor *x);
grd_tensor *py_call_binary(grd_tensor *(*call)(grd_tensor *, grd_tensor *), grd_tensor *x, grd_tensor *y);

#endif
