/* Implements the texts of a Tensor: repr, str, format and the picture of its strides. */
#include "errors.h"
#include "override.h"
#include "scalar.h"
#include "tables.h"
#include "tensor_methods.h"
#include "tensor_slots.h"

#include <stdlib.h>

/* Returns the word before the parenthesis in repr(): "tensor" for Tensor and nn.Parameter, the class name for other subclasses. */
static const char *printed_name(PyObject *self)
{
    const char *name = py_class_name(self);
    return py_is_exact(self) || strcmp(name, "Parameter") == 0 ? "tensor" : name;
}

PyObject *py_tensor_repr(PyObject *self)
{
    if (PY_UNLIKELY(py_is_overloaded(self)))
        return py_override(self, "__repr__", NULL, 0, NULL);
    char *text = grd_to_string_as(py_tensor_of(self), printed_name(self));
    if (text == NULL)
        return py_raise();
    PyObject *object = PyUnicode_FromString(text);
    free(text);
    return object;
}

static PyObject *draw_strides(PyObject *Py_UNUSED(module), PyObject *t)
{
    if (!py_is_tensor(t))
        return PyErr_Format(PyExc_TypeError, "strides(): argument 't' (position 1) must be Tensor, not %s", Py_TYPE(t)->tp_name);
    char *text = grd_draw_strides(py_tensor_of(t));
    if (text == NULL)
        return py_raise();
    PyObject *object = PyUnicode_FromString(text);
    free(text);
    return object;
}

/* Implements format(). A 0-d tensor is formatted as a number. Any other tensor accepts only the empty format, which gives str(). */
PyObject *py_method_format(PyObject *self, PyObject *format)
{
    if (PY_UNLIKELY(py_is_overloaded(self)))
        return py_override(self, "__format__", &format, 1, NULL);
    grd_tensor *t = py_tensor_of(self);
    if (!PyUnicode_Check(format))
        return PyErr_Format(PyExc_TypeError, "__format__() argument must be str, not %s", Py_TYPE(format)->tp_name);
    if (grd_ndim(t) == 0 && grd_tensor_device(t).type != GRD_DEVICE_META) {
        PyObject *item = py_item(t);
        PyObject *text = item != NULL ? PyObject_Format(item, format) : NULL;
        Py_XDECREF(item);
        return text;
    }
    if (PyUnicode_GET_LENGTH(format) > 0)
        return PyErr_Format(PyExc_TypeError, "unsupported format string passed to %s.__format__", py_class_name(self));
    return PyObject_Str(self);
}

PyMethodDef py_picture_functions[] = {
    {"_draw_strides", draw_strides, METH_O, "_draw_strides($module, t, /)\n--\n\nReturns the picture of gradus.viz.strides(t), as text."},
    {NULL, NULL, 0, NULL},
};
