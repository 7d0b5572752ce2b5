/* Converts numbers between Python and the library, and implements bool(t), int(t), float(t) and t.item(). */
#include "scalar.h"
#include "errors.h"
#include "override.h"
#include "tensor_slots.h"
#include "gradus/transform.h"

/* ---- From Python ------------------------------------------------------------------------------------------------- */

/* Returns the kind of number that a NumPy scalar type stands for; GRD_SCALAR_NONE for any other type. Compares the name of the type, so that numpy
 * need not be imported. */
static grd_scalar_kind numpy_kind(PyTypeObject *type)
{
    static const struct {
        const char *prefix;
        grd_scalar_kind kind;
    } kinds[] = {
        {"bool", GRD_SCALAR_BOOL},        {"float", GRD_SCALAR_FLOAT},     {"half", GRD_SCALAR_FLOAT},
        {"longdouble", GRD_SCALAR_FLOAT}, {"int", GRD_SCALAR_INT},         {"uint", GRD_SCALAR_INT},
        {"long", GRD_SCALAR_INT},         {"ulong", GRD_SCALAR_INT},       {"short", GRD_SCALAR_INT},
        {"ushort", GRD_SCALAR_INT},       {"byte", GRD_SCALAR_INT},        {"ubyte", GRD_SCALAR_INT},
        {"double", GRD_SCALAR_FLOAT},     {"complex", GRD_SCALAR_COMPLEX}, {"clongdouble", GRD_SCALAR_COMPLEX},
        {"single", GRD_SCALAR_FLOAT},
    };
    static const char module[] = "numpy.";
    if (strncmp(type->tp_name, module, sizeof module - 1) != 0)
        return GRD_SCALAR_NONE;
    const char *name = type->tp_name + sizeof module - 1;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strncmp(name, kinds[i].prefix, strlen(kinds[i].prefix)) == 0)
            return kinds[i].kind;
    return GRD_SCALAR_NONE;
}

/* Converts an int to a signed or, if too large, unsigned 64-bit scalar. Returns -1 with OverflowError if it fits neither. */
static int from_int(PyObject *object, grd_scalar *ret_scalar)
{
    int overflow;
    const long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
    *ret_scalar = PY_LIKELY(overflow == 0) ? grd_int(value) : grd_uint(PyLong_AsUnsignedLongLong(object));
    return PY_UNLIKELY(overflow != 0) && PyErr_Occurred() ? -1 : 1;
}

static int from_complex(PyObject *object, grd_scalar *ret_scalar)
{
    const Py_complex value = PyComplex_AsCComplex(object);
    if (value.real == -1 && PyErr_Occurred())
        return -1;
    *ret_scalar = grd_complex_number(value.real, value.imag);
    return 1;
}

static int from_float(PyObject *object, grd_scalar *ret_scalar)
{
    const double value = PyFloat_AsDouble(object);
    if (value == -1 && PyErr_Occurred())
        return -1;
    *ret_scalar = grd_float(value);
    return 1;
}

static int from_index(PyObject *object, grd_scalar *ret_scalar)
{
    PyObject *number = PyNumber_Index(object);
    const int is_int = number != NULL ? from_int(number, ret_scalar) : -1;
    Py_XDECREF(number);
    return is_int;
}

static int from_numpy(PyObject *object, grd_scalar *ret_scalar)
{
    int truth;
    switch (numpy_kind(Py_TYPE(object))) {
    case GRD_SCALAR_BOOL:
        truth = PyObject_IsTrue(object);
        *ret_scalar = grd_bool(truth > 0);
        return truth < 0 ? -1 : 1;
    case GRD_SCALAR_INT:
        return from_index(object, ret_scalar);
    case GRD_SCALAR_FLOAT:
        return from_float(object, ret_scalar);
    case GRD_SCALAR_COMPLEX:
        return from_complex(object, ret_scalar);
    default:
        return 0;
    }
}

static int from_tensor(grd_tensor *t, grd_scalar *ret_scalar)
{
    /* A number has no batch and no gradient, so batch tensors (vmap) and tensors that require a gradient do not count as numbers. As in PyTorch, a dual
     * tensor does: its tangent is lost where only a number is accepted. */
    if (grd_ndim(t) != 0 || grd_requires_grad(t) || grd_is_batched(t))
        return 0;
    const grd_scalar scalar = grd_item(t);
    if (!grd_ok()) {
        py_raise();
        return -1;
    }
    *ret_scalar = scalar;
    return 1;
}

int py_as_scalar(PyObject *object, grd_scalar *ret_scalar)
{
    if (PyFloat_CheckExact(object)) {
        *ret_scalar = grd_float(PyFloat_AS_DOUBLE(object));
        return 1;
    }
    if (PyLong_CheckExact(object))
        return from_int(object, ret_scalar);
    if (PyBool_Check(object)) {
        *ret_scalar = grd_bool(object == Py_True);
        return 1;
    }
    if (py_is_tensor(object))
        return from_tensor(py_tensor_of(object), ret_scalar);
    if (PyFloat_Check(object))
        return from_float(object, ret_scalar);
    if (PyComplex_Check(object))
        return from_complex(object, ret_scalar);
    if (PyLong_Check(object))
        return from_int(object, ret_scalar);
    return from_numpy(object, ret_scalar);
}

/* True for numpy.bool, which has __index__ but does not count as an integer. */
static bool is_no_int(PyTypeObject *type)
{
    return !PyType_HasFeature(type, Py_TPFLAGS_LONG_SUBCLASS) && numpy_kind(type) == GRD_SCALAR_BOOL;
}

static bool is_array(PyObject *object)
{
    return strcmp(Py_TYPE(object)->tp_name, "numpy.ndarray") == 0;
}

static bool is_int_tensor(PyObject *object)
{
    grd_tensor *t = py_tensor_of(object);
    return grd_ndim(t) == 0 && grd_dtype_is_integer(grd_tensor_dtype(t));
}

int py_as_int(PyObject *object, int64_t *ret_value)
{
    if (!PyLong_CheckExact(object)) {
        if (PyBool_Check(object) || !PyIndex_Check(object) || is_no_int(Py_TYPE(object)) ||
            (py_is_tensor(object) && !is_int_tensor(object)))
            return 0;
        PyObject *index = PyNumber_Index(object);
        if (index == NULL && is_array(object) && PyErr_ExceptionMatches(PyExc_TypeError)) { /* an array, but not a 0-d array of integers */
            PyErr_Clear();
            return 0;
        }
        if (index == NULL)
            return -1;
        object = index;
    } else {
        Py_INCREF(object);
    }
    int overflow;
    *ret_value = PyLong_AsLongLongAndOverflow(object, &overflow);
    Py_DECREF(object);
    if (PY_UNLIKELY(overflow != 0)) {
        PyErr_SetString(PyExc_ValueError, "Overflow when unpacking long long");
        return -1;
    }
    return 1;
}

int py_as_element(PyObject *object, Py_ssize_t at, int64_t *ret_value)
{
    if (at == 0 || !PyBool_Check(object))
        return py_as_int(object, ret_value);
    *ret_value = object == Py_True;
    return 1;
}

void py_refuse_element(const char *function, const char *name, PyObject *object, Py_ssize_t at)
{
    PyErr_Format(PyExc_TypeError,
                 "%s(): argument '%s' failed to unpack the object at pos %zd with error \"type must be tuple of ints,but got %s\"",
                 function, name, at + 1, Py_TYPE(object)->tp_name);
}

bool py_as_dims(const char *function, const char *name, PyObject *object, int64_t *ret_values, int64_t *ret_n)
{
    if (!PyTuple_Check(object) && !PyList_Check(object)) {
        PyErr_Format(PyExc_TypeError, "%s(): argument '%s' must be tuple of ints, not %s", function, name, Py_TYPE(object)->tp_name);
        return false;
    }
    const Py_ssize_t n = PySequence_Size(object);
    if (n > GRD_MAX_DIMS) {
        PyErr_Format(PyExc_ValueError, "%s(): argument '%s' has %zd entries, the limit is %d", function, name, n, GRD_MAX_DIMS);
        return false;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *item = PySequence_GetItem(object, i);
        const int is_int = item != NULL ? py_as_element(item, i, &ret_values[i]) : -1;
        if (is_int == 0 && i > 0)
            py_refuse_element(function, name, item, i);
        else if (is_int == 0)
            PyErr_Format(PyExc_TypeError, "%s(): argument '%s' must be tuple of ints, but found element of type %s at pos %zd", function,
                         name, Py_TYPE(item)->tp_name, i);
        Py_XDECREF(item);
        if (is_int <= 0)
            return false;
    }
    *ret_n = n;
    return true;
}

/* ---- To Python --------------------------------------------------------------------------------------------------- */

PyObject *py_from_scalar(grd_scalar scalar)
{
    switch (scalar.kind) {
    case GRD_SCALAR_FLOAT:
        return PyFloat_FromDouble(scalar.v.c.re);
    case GRD_SCALAR_INT:
        return PyLong_FromLongLong(scalar.v.i);
    case GRD_SCALAR_UINT:
        return PyLong_FromUnsignedLongLong((uint64_t)scalar.v.i);
    case GRD_SCALAR_BOOL:
        return PyBool_FromLong(scalar.v.i != 0);
    case GRD_SCALAR_COMPLEX:
        return PyComplex_FromDoubles(scalar.v.c.re, scalar.v.c.im);
    default:
        Py_RETURN_NONE;
    }
}

static PyObject *refuse_meta(void)
{
    return PyErr_Format(PyExc_RuntimeError, "Tensor.item() cannot be called on meta tensors");
}

PyObject *py_item(grd_tensor *t)
{
    const grd_scalar scalar = grd_item(t);
    if (PY_LIKELY(grd_ok()))
        return py_from_scalar(scalar);
    if (grd_numel(t) == 1 && grd_tensor_device(t).type == GRD_DEVICE_META) {
        grd_error_clear();
        return refuse_meta();
    }
    return py_raise();
}

/* ---- Tensor as a number ------------------------------------------------------------------------------------------ */

static int overridden_truth(PyObject *self)
{
    PyObject *result = py_override(self, "__bool__", NULL, 0, NULL);
    if (result != NULL && !PyBool_Check(result))
        PyErr_Format(PyExc_TypeError, "__bool__ should return bool, returned %s", Py_TYPE(result)->tp_name);
    const int truth = result == NULL || !PyBool_Check(result) ? -1 : result == Py_True;
    Py_XDECREF(result);
    return truth;
}

int py_tensor_bool(PyObject *self)
{
    if (PY_UNLIKELY(py_is_overloaded(self)))
        return overridden_truth(self);
    grd_tensor *t = py_tensor_of(self);
    const int64_t numel = grd_numel(t);
    if (grd_is_batched(t)) {
        PyErr_SetString(PyExc_RuntimeError,
                        "vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow. We don't "
                        "support that yet, please file an issue at https://github.com/pytorch/pytorch/issues .");
        return -1;
    }
    if (numel != 1) {
        PyErr_SetString(PyExc_RuntimeError, numel == 0 ? "Boolean value of Tensor with no values is ambiguous"
                                                       : "Boolean value of Tensor with more than one value is ambiguous");
        return -1;
    }
    PyObject *item = py_item(t);
    const int truth = item != NULL ? PyObject_IsTrue(item) : -1;
    Py_XDECREF(item);
    return truth;
}

/* Returns the only element of `self` as a number. Returns NULL with ValueError if the number of elements is not 1. */
static PyObject *only_element(PyObject *self)
{
    grd_tensor *t = py_tensor_of(self);
    if (grd_numel(t) != 1)
        return PyErr_Format(PyExc_ValueError, "only one element tensors can be converted to Python scalars");
    return py_item(t);
}

/* Returns the real part of a complex Python number `item`, for int() and float(); returns any other number unchanged. Raises RuntimeError if the
 * imaginary part is not 0. Takes over the reference to `item`. */
static PyObject *drop_imaginary(PyObject *item, const char *type)
{
    if (item == NULL || !PyComplex_Check(item))
        return item;
    const Py_complex value = PyComplex_AsCComplex(item);
    Py_DECREF(item);
    return value.imag == 0 ? PyFloat_FromDouble(value.real)
                           : PyErr_Format(PyExc_RuntimeError, "value cannot be converted to type %s without overflow", type);
}

PyObject *py_tensor_int(PyObject *self)
{
    if (PY_UNLIKELY(py_is_overloaded(self)))
        return py_override(self, "__int__", NULL, 0, NULL);
    PyObject *item = drop_imaginary(only_element(self), "int64_t");
    PyObject *number = item != NULL ? PyNumber_Long(item) : NULL;
    Py_XDECREF(item);
    return number;
}

PyObject *py_tensor_float(PyObject *self)
{
    if (PY_UNLIKELY(py_is_overloaded(self)))
        return py_override(self, "__float__", NULL, 0, NULL);
    PyObject *item = drop_imaginary(only_element(self), "double");
    PyObject *number = item != NULL ? PyNumber_Float(item) : NULL;
    Py_XDECREF(item);
    return number;
}

PyObject *py_tensor_index(PyObject *self)
{
    if (PY_UNLIKELY(py_is_overloaded(self)))
        return py_override(self, "__index__", NULL, 0, NULL);
    grd_tensor *t = py_tensor_of(self);
    const grd_dtype dtype = grd_tensor_dtype(t);
    if (grd_numel(t) != 1 || (dtype != GRD_BOOL && !grd_dtype_is_integer(dtype)))
        return PyErr_Format(PyExc_TypeError, "only integer tensors of a single element can be converted to an index");
    return py_tensor_int(self);
}
