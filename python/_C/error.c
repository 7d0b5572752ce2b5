/* Errors cross the boundary: the library's become Python exceptions, and those of Python code that the library calls travel through it. */
#include "extension.h"

/* The exception a callback raised on this thread, while the library makes its way out with an error pending. */
static _Thread_local PyObject *carried;

void py_carry(void)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    if (value == NULL)
        return;
    if (traceback != NULL)
        PyException_SetTraceback(value, traceback);
    Py_XDECREF(type);
    Py_XDECREF(traceback);
    Py_XSETREF(carried, value);
    grd_error_set(GRD_ERROR_RUNTIME, "a Python function raised an exception");
}

static PyObject *class_of(grd_error_code code)
{
    switch (code) {
    case GRD_ERROR_VALUE:
        return PyExc_ValueError;
    case GRD_ERROR_TYPE:
        return PyExc_TypeError;
    case GRD_ERROR_INDEX:
        return PyExc_IndexError;
    case GRD_ERROR_NOT_IMPLEMENTED:
        return PyExc_NotImplementedError;
    case GRD_ERROR_MEMORY:
        return PyExc_MemoryError;
    case GRD_ERROR_IO:
        return PyExc_OSError;
    default:
        return PyExc_RuntimeError;
    }
}

PyObject *py_raise(void)
{
    PyObject *value = carried;
    carried = NULL;
    if (value != NULL) {
        PyErr_SetObject((PyObject *)Py_TYPE(value), value);
        Py_DECREF(value);
    } else {
        PyErr_SetString(class_of(grd_error_get()), grd_error_message());
    }
    grd_error_clear();
    return NULL;
}
