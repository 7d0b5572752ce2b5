/* Helpers that add values and types to the extension module. */
#include "add_type.h"

void py_free_object(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

bool py_add(PyObject *module, const char *name, PyObject *object)
{
    if (object == NULL)
        return false;
    const bool added = PyModule_AddObject(module, name, object) == 0; /* PyModule_AddObject steals the reference only if it succeeds */
    if (!added)
        Py_DECREF(object);
    return added;
}

PyTypeObject *py_add_type(PyObject *module, PyType_Spec *spec, PyObject *bases)
{
    PyTypeObject *type = (PyTypeObject *)PyType_FromSpecWithBases(spec, bases);
    const char *dot = strrchr(spec->name, '.');
    Py_XINCREF(type);
    return py_add(module, dot != NULL ? dot + 1 : spec->name, (PyObject *)type) ? type : NULL;
}
