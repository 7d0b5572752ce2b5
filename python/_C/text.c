/* Tensor as text: repr, str and format. */
#include "methods.h"

#include <stdlib.h>
#include <string.h>

/* nn.Parameter prints as a plain tensor does; other subclasses by their name. */
static const char *printed_name(PyObject *self)
{
    const char *name = Py_TYPE(self)->tp_name, *dot = strrchr(name, '.');
    if (dot != NULL)
        name = dot + 1;
    return py_is_exact(self) || strcmp(name, "Parameter") == 0 ? "tensor" : name;
}

PyObject *py_tensor_repr(PyObject *self)
{
    char *text = grd_to_string_as(py_tensor_of(self), printed_name(self));
    if (text == NULL)
        return py_raise();
    PyObject *object = PyUnicode_FromString(text);
    free(text);
    return object;
}

/* The only element of a 0-d tensor formatted as the number it is; every other tensor takes the empty format alone. */
PyObject *py_method_format(PyObject *self, PyObject *format)
{
    grd_tensor *t = py_tensor_of(self);
    if (grd_ndim(t) == 0 && grd_tensor_device(t).type != GRD_DEVICE_META) {
        PyObject *item = py_item(t);
        PyObject *text = item != NULL ? PyObject_Format(item, format) : NULL;
        Py_XDECREF(item);
        return text;
    }
    if (!PyUnicode_Check(format) || PyUnicode_GET_LENGTH(format) > 0)
        return PyErr_Format(PyExc_TypeError, "unsupported format string passed to %s.__format__", Py_TYPE(self)->tp_name);
    return PyObject_Str(self);
}
