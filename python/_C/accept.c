/* How hand-written functions and methods take their arguments. */
#include "methods.h"

/* The function as users see it. */
static PyObject *public_function(const struct py_function *function, PyObject *module)
{
    return PyObject_GetAttrString(module != NULL ? module : (PyObject *)py_tensor_type, function->name);
}

bool py_accept(const struct py_function *function, PyObject *module, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names,
               struct py_arguments *ret_arguments, PyObject **ret_result)
{
    *ret_result = NULL;
    if (!py_parse(function, self, args, nargs, names, ret_arguments))
        return false;
    if (PY_LIKELY(ret_arguments->noverloaded == 0))
        return true;
    PyObject *public = public_function(function, module);
    if (public != NULL)
        *ret_result = py_call_overloaded(ret_arguments, public, self, args, nargs, names);
    Py_XDECREF(public);
    py_arguments_done(ret_arguments);
    return false;
}

bool py_no_arguments(const char *name, Py_ssize_t nargs, PyObject *names)
{
    const Py_ssize_t given = nargs + (names != NULL ? PyTuple_GET_SIZE(names) : 0);
    if (PY_LIKELY(given == 0))
        return true;
    PyErr_Format(PyExc_TypeError, "Tensor.%s() takes no arguments (%zd given)", name, given);
    return false;
}
