/* Converts tensors to and from NumPy arrays by the array interface and the buffer protocol. Imports numpy only when the user asks for an array. */
#include "buffer.h"
#include "dtype.h"
#include "errors.h"
#include "override.h"
#include "parse.h"
#include "tables.h"
#include "gradus/ops/detach.h"
#include "gradus/ops/resolve_conj.h"
#include "gradus/ops/resolve_neg.h"
#include "gradus/ops/to.h"

/* Returns the attribute `name` of the module numpy; NULL with an exception such as ImportError. */
static PyObject *numpy_attribute(const char *name)
{
    PyObject *numpy = PyImport_ImportModule("numpy"), *attribute = numpy != NULL ? PyObject_GetAttrString(numpy, name) : NULL;
    Py_XDECREF(numpy);
    return attribute;
}

/* Returns 1 if `object` is an ndarray, 0 if not, -1 with an exception. If numpy has not been imported the result is 0. */
static int is_ndarray(PyObject *object)
{
    PyObject *numpy = PyDict_GetItemString(PyImport_GetModuleDict(), "numpy");
    PyObject *type = numpy != NULL ? PyObject_GetAttrString(numpy, "ndarray") : NULL;
    const int result = type != NULL ? PyObject_IsInstance(object, type) : 0;
    Py_XDECREF(type);
    return result;
}

static PyObject *from_numpy(PyObject *module, PyObject *object)
{
    bool writable;
    (void)module;
    const int is_array = is_ndarray(object);
    if (is_array <= 0) {
        if (is_array == 0)
            PyErr_Format(PyExc_TypeError, "expected np.ndarray (got %s)", Py_TYPE(object)->tp_name);
        return NULL;
    }
    const grd_scope scope = grd_scope_open();
    grd_tensor *t = py_over_array(object, &writable);
    if (t == NULL || (!writable && !py_warn_not_writable("NumPy array")))
        return py_abandon(scope);
    return py_take(scope, t);
}

/* ---- Tensor to array --------------------------------------------------------------------------------------------- */

static bool can_be_array(const grd_tensor *t)
{
    if (grd_tensor_device(t).type != GRD_DEVICE_CPU)
        PyErr_Format(PyExc_TypeError,
                     "can't convert %s device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first.",
                     grd_device_name(grd_tensor_device(t)));
    else if (grd_requires_grad(t) && grd_grad_enabled())
        PyErr_SetString(PyExc_RuntimeError, "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.");
    else if (grd_is_conj(t))
        PyErr_SetString(PyExc_RuntimeError,
                        "Can't call numpy() on Tensor that has conjugate bit set. Use tensor.resolve_conj().numpy() instead.");
    else if (grd_is_neg(t))
        PyErr_SetString(PyExc_RuntimeError,
                        "Can't call numpy() on Tensor that has negative bit set. Use tensor.resolve_neg().numpy() instead.");
    else if (!py_has_buffer_format(grd_tensor_dtype(t)))
        PyErr_Format(PyExc_TypeError, "Got unsupported ScalarType %s", py_dtype_tensor_name(grd_tensor_dtype(t)));
    else
        return true;
    return false;
}

/* Returns a NumPy array that shares the memory of the Tensor `object`, for which can_be_array is true. The array keeps the memory alive through a
 * memoryview. */
static PyObject *array_over(PyObject *object)
{
    static PyObject *asarray; /* numpy.asarray, looked up on first use */
    if (asarray == NULL && (asarray = numpy_attribute("asarray")) == NULL)
        return NULL;
    PyObject *view = PyMemoryView_FromObject(object);
    PyObject *array = view != NULL ? PyObject_CallFunctionObjArgs(asarray, view, NULL) : NULL;
    Py_XDECREF(view);
    return array;
}

/* Returns a NumPy array of the elements of the Tensor `self`, detached from autograd and moved to the CPU. Copies only if needed. Returns NULL
 * with an exception. */
static PyObject *forced_array_of(PyObject *self)
{
    const grd_scope scope = grd_scope_open();
    PyObject *detached = py_take(scope, grd_resolve_neg(grd_resolve_conj(grd_to(grd_detach(py_tensor_of(self)), .device = GRD_CPU))));
    PyObject *array = detached != NULL && can_be_array(py_tensor_of(detached)) ? array_over(detached) : NULL;
    Py_XDECREF(detached);
    return array;
}

/* Returns an array for numpy() and __array__. Raises an exception if no array can share the tensor's memory, or if grad mode is on and the tensor
 * requires a gradient. */
static PyObject *array_of(PyObject *self)
{
    if (!can_be_array(py_tensor_of(self)))
        return NULL;
    return grd_requires_grad(py_tensor_of(self)) ? forced_array_of(self) : array_over(self);
}

static const struct py_param numpy_params[] = {{"force", GRD_KIND_BOOL, PY_OPTIONAL | PY_KEYWORD, "False"}};
static const struct py_signature numpy_signature = {.params = numpy_params, .nparams = 1, .positional = 0};
static const struct py_function numpy_function = {.name = "numpy", .signatures = &numpy_signature, .nsignatures = 1};

static PyObject *tensor_numpy(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    if (PY_UNLIKELY(py_is_overloaded(self)))
        return py_override(self, "numpy", args, nargs, names);
    struct py_arguments arguments;
    if (!py_parse(&numpy_function, NULL, args, nargs, names, &arguments))
        return NULL;
    const bool force = py_bool_or(&arguments, 0, false);
    py_arguments_done(&arguments);
    return force ? forced_array_of(self) : array_of(self);
}

/* Returns numpy.array(array, dtype=dtype, copy=copy), or numpy.asarray(array, dtype=dtype) if `copy` is NULL or None. */
static PyObject *converted_array(PyObject *array, PyObject *dtype, PyObject *copy)
{
    const bool decides = py_is_given(copy);
    PyObject *make = numpy_attribute(decides ? "array" : "asarray"), *args = PyTuple_Pack(1, array), *options = PyDict_New(),
             *result = NULL;
    if (make != NULL && args != NULL && options != NULL && (dtype == NULL || PyDict_SetItemString(options, "dtype", dtype) == 0) &&
        (!decides || PyDict_SetItemString(options, "copy", copy) == 0))
        result = PyObject_Call(make, args, options);
    Py_XDECREF(options);
    Py_XDECREF(args);
    Py_XDECREF(make);
    return result;
}

static const struct py_param array_params[] = {
    {"dtype", PY_KIND_OBJECT, PY_OPTIONAL | PY_NONE, "None"},
    {"copy", PY_KIND_OBJECT, PY_OPTIONAL | PY_NONE, "None"},
};
static const struct py_signature array_signature = {.params = array_params, .nparams = 2, .positional = 2};
static const struct py_function array_function = {.name = "__array__", .signatures = &array_signature, .nsignatures = 1};

static PyObject *tensor_array(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    if (PY_UNLIKELY(py_is_overloaded(self)))
        return py_override(self, "__array__", args, nargs, names);
    struct py_arguments arguments;
    if (!py_parse(&array_function, NULL, args, nargs, names, &arguments))
        return NULL;
    PyObject *dtype = arguments.objects[0], *copy = arguments.objects[1];
    py_arguments_done(&arguments);
    PyObject *array = array_of(self);
    if (array == NULL || (dtype == NULL && copy == NULL))
        return array;
    PyObject *result = converted_array(array, dtype, copy);
    Py_DECREF(array);
    return result;
}

/* Implements __array_wrap__(array, context=None, return_scalar=False). NumPy calls this method with the result of a NumPy function that got a
 * tensor. Returns `array` as a tensor. */
static PyObject *tensor_array_wrap(PyObject *self, PyObject *const *args, Py_ssize_t nargs)
{
    if (PY_UNLIKELY(py_is_overloaded(self)))
        return py_override(self, "__array_wrap__", args, nargs, NULL);
    if (nargs < 1 || nargs > 3) {
        PyErr_SetString(PyExc_TypeError, "__array_wrap__(): an array, a context and a flag are expected");
        return NULL;
    }
    return from_numpy(NULL, args[0]);
}

PyMethodDef py_numpy_functions[] = {
    {"from_numpy", from_numpy, METH_O, "from_numpy(ndarray)\n--\n\nA tensor over the memory of an array, which it keeps alive."},
    {0},
};

PyMethodDef py_numpy_methods[] = {
    PY_ENTRY("numpy", tensor_numpy,
             "numpy($self, *, force=False)\n--\n\n"
             "An array over the memory of the tensor. force: whatever it takes, a copy to the cpu and leaving the history behind."),
    PY_ENTRY("__array__", tensor_array, NULL),
    {"__array_wrap__", (PyCFunction)(void (*)(void))tensor_array_wrap, METH_FASTCALL, NULL},
    {0},
};
