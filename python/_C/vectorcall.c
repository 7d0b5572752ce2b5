/* Converts the arguments of a vectorcall to a tuple and a dict. */
#include "vectorcall.h"

PyObject *py_pack_positional(PyObject *self, PyObject *const *args, Py_ssize_t nargs)
{
    const int shift = self != NULL;
    PyObject *tuple = PyTuple_New(nargs + shift);
    if (tuple != NULL && shift)
        PyTuple_SET_ITEM(tuple, 0, Py_NewRef(self));
    for (Py_ssize_t i = 0; tuple != NULL && i < nargs; i++)
        PyTuple_SET_ITEM(tuple, i + shift, Py_NewRef(args[i]));
    return tuple;
}

PyObject *py_pack_keywords(PyObject *const *values, PyObject *names)
{
    PyObject *dict = PyDict_New();
    for (Py_ssize_t i = 0; dict != NULL && names != NULL && i < PyTuple_GET_SIZE(names); i++)
        if (PyDict_SetItem(dict, PyTuple_GET_ITEM(names, i), values[i]) < 0)
            Py_CLEAR(dict);
    return dict;
}
