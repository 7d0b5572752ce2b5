/* Calls of operators. */
#ifndef GRADUS_PYTHON_CALL_H
#define GRADUS_PYTHON_CALL_H

#include "signature.h"

/* A generated function: what Python calls (`call`, which calls py_call with `function`), and its docstring. */
struct py_listed {
    struct py_function function;
    py_entry *call;
    const char *doc;
};

/* Fills Python's table of methods from n generated functions, once. `ops` is an array with one place for each of their signatures. */
void py_fill(PyMethodDef *ret_table, struct py_listed *functions, int n, const grd_op **ops);

/* Runs a generated function: calls the operator directly for one or two Tensors, or else parses the arguments, calls the operator and wraps the
 * results. */
PyObject *py_call(const struct py_function *function, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names);
/* Call an operator of one or two tensors. Where there are many elements they release the GIL, as py_call does. */
grd_tensor *py_call_unary(grd_tensor *(*call)(grd_tensor *), grd_tensor *x);
grd_tensor *py_call_binary(grd_tensor *(*call)(grd_tensor *, grd_tensor *), grd_tensor *x, grd_tensor *y);

#endif
