/* Implements the legacy constructors Tensor(...), FloatTensor(...) and x.new(...), which accept sizes, data, another tensor or a storage. */
#include "as_tensor.h"
#include "dtype.h"
#include "errors.h"
#include "override.h"
#include "parse.h"
#include "scalar.h"
#include "storage.h"
#include "tables.h"
#include "tensor_methods.h"
#include "tensor_slots.h"
#include "gradus/ops/empty.h"
#include "gradus/ops/to.h"
#include "gradus/ops/view.h"

/* Properties of the tensors that a constructor makes. */
struct maker {
    grd_dtype dtype;
    grd_device device;
    bool any_dtype; /* true for Tensor(other), which accepts a tensor of any dtype */
};

/* Returns a tensor of the given sizes with uninitialized elements. */
static grd_tensor *of_sizes(PyObject *sizes, const struct maker *maker)
{
    int64_t values[GRD_MAX_DIMS], n;
    if (!py_as_dims("new", "size", sizes, values, &n))
        return NULL;
    return grd_empty(grd_dims_from(values, n), .dtype = maker->dtype, .device = maker->device);
}

static grd_tensor *of_storage(grd_tensor *bytes, grd_dtype dtype)
{
    return grd_from_storage(bytes, grd_dims(grd_numel(bytes) / grd_dtype_size(dtype)), grd_dims(1), 0, dtype);
}

/* Returns an alias of `t` with the same autograd history. Raises TypeError if the constructor requires another dtype. */
static grd_tensor *of_tensor(grd_tensor *t, const struct maker *maker)
{
    const grd_dtype dtype = grd_tensor_dtype(t);
    if (dtype == maker->dtype || maker->any_dtype)
        return grd_view(t, grd_sizes(t));
    PyErr_Format(PyExc_TypeError, "expected a torch.%sTensor (got a torch.%sTensor)", py_dtype_tensor_name(maker->dtype),
                 py_dtype_tensor_name(dtype));
    return NULL;
}

static grd_tensor *of_data(PyObject *data, const struct maker *maker)
{
    if (PyUnicode_Check(data))
        PyErr_Format(PyExc_TypeError, "new(): invalid data type '%s'", Py_TYPE(data)->tp_name);
    else if (!PySequence_Check(data))
        PyErr_Format(PyExc_TypeError, "new(): data must be a sequence (got %s)", Py_TYPE(data)->tp_name);
    else {
        grd_tensor *t = py_over_data(data, maker->dtype);
        return t != NULL ? grd_to(t, .device = maker->device) : NULL;
    }
    return NULL;
}

/* True if `object`, the only argument of the constructor, is a torch.Size or an integer. Such an argument gives the sizes. Any other tuple
 * contains the elements. */
static bool is_size(PyObject *object)
{
    int64_t size;
    if (PyTuple_Check(object))
        return !PyTuple_CheckExact(object);
    const bool is_int = !py_is_tensor(object) && py_as_int(object, &size) != 0 && !PyErr_ExceptionMatches(PyExc_TypeError);
    PyErr_Clear();
    return is_int;
}

static grd_tensor *of_object(PyObject *object, const struct maker *maker)
{
    grd_tensor *bytes = py_storage_bytes(object);
    if (bytes != NULL)
        return of_storage(bytes, maker->dtype);
    return py_is_tensor(object) ? of_tensor(py_tensor_of(object), maker) : of_data(object, maker);
}

static const struct py_param keyword_params[] = {
    {"size", PY_KIND_OBJECT, PY_OPTIONAL | PY_KEYWORD, NULL},
    {"data", PY_KIND_OBJECT, PY_OPTIONAL | PY_KEYWORD, NULL},
    {"device", GRD_KIND_DEVICE, PY_OPTION, "None"},
};
static const struct py_signature keyword_signature = {.params = keyword_params, .nparams = 3, .positional = 0};
static const struct py_function keyword_function = {.name = "new", .signatures = &keyword_signature, .nsignatures = 1};

struct keywords {
    PyObject *size, *data; /* borrowed; NULL if left out */
    grd_device device;
};

/* Parses the keyword arguments of a legacy constructor. make() reads the positional arguments itself, because their number is not limited. Returns
 * false with TypeError. */
static bool read_keywords(PyObject *keywords, struct keywords *ret_keywords)
{
    PyObject *no_positional = PyTuple_New(0);
    struct py_arguments arguments;
    const bool ok = no_positional != NULL && py_parse_tuple(&keyword_function, no_positional, keywords, &arguments);
    Py_XDECREF(no_positional);
    if (!ok)
        return false;
    *ret_keywords = (struct keywords){arguments.objects[0], arguments.objects[1], py_device_or(&arguments, 2, (grd_device){0})};
    py_arguments_done(&arguments);
    return true;
}

static bool check_device(const struct maker *maker, grd_device device, bool has_tensor)
{
    if (device.type == GRD_DEVICE_NONE)
        return true;
    if (has_tensor)
        PyErr_SetString(PyExc_RuntimeError, "Legacy tensor constructor of the form torch.Tensor(tensor, device=device) is not supported.  "
                                            "Use torch.tensor(...) or torch.as_tensor(...) instead.");
    else if (device.type != maker->device.type)
        PyErr_Format(PyExc_RuntimeError, "legacy constructor expects device type: %s but device type: %s was passed",
                     grd_device_name(maker->device), grd_device_name(device));
    else
        return true;
    return false;
}

static grd_tensor *make(PyObject *args, PyObject *keywords, const struct maker *maker)
{
    struct keywords given = {0};
    if (keywords != NULL && !read_keywords(keywords, &given))
        return NULL;
    const Py_ssize_t n = PyTuple_GET_SIZE(args);
    PyObject *only = n == 1 ? PyTuple_GET_ITEM(args, 0) : n == 0 ? given.data : NULL;
    if (!check_device(maker, given.device, only != NULL && py_is_tensor(only)))
        return NULL;
    if (n + (given.size != NULL) + (given.data != NULL) == 0)
        return grd_empty(grd_dims(0), .dtype = maker->dtype, .device = maker->device);
    if (given.size != NULL ? n > 0 || given.data != NULL : n > 0 && given.data != NULL) {
        PyErr_SetString(PyExc_TypeError, "new() takes sizes, data or another tensor, but only one of them");
        return NULL;
    }
    if (only == NULL || (n == 1 && is_size(only)))
        return of_sizes(given.size != NULL ? given.size : n == 1 && PyTuple_Check(only) ? only : args, maker);
    return of_object(only, maker);
}

PyObject *py_tensor_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    const struct maker maker = {.dtype = grd_default_dtype(), .device = GRD_CPU, .any_dtype = true};
    const grd_scope scope = grd_scope_open();
    grd_tensor *t = make(args, keywords, &maker);
    if (t == NULL || !grd_ok())
        return py_abandon(scope);
    if (type == py_tensor_type)
        return py_take(scope, t);
    PyObject *result = py_wrap_as(type, t);
    grd_scope_close(scope);
    return result;
}

/* Closes `scope`, which frees the temporary tensors of the call, and returns the Python object of `t`. If `t` is NULL, raises the error. */
static PyObject *take(grd_scope scope, grd_tensor *t)
{
    return t != NULL ? py_take(scope, t) : py_abandon(scope);
}

static PyObject *overridden_new(PyObject *self, PyObject *args, PyObject *keywords)
{
    PyObject *public = PyObject_GetAttrString((PyObject *)py_tensor_type, "new"), *first = PyTuple_Pack(1, self);
    PyObject *all = first != NULL ? PySequence_Concat(first, args) : NULL;
    PyObject *options = keywords != NULL ? Py_NewRef(keywords) : PyDict_New(), *result = NULL;
    if (public != NULL && all != NULL && options != NULL)
        result = py_call_override("new", public, &self, py_has_override(self), all, options);
    Py_XDECREF(options);
    Py_XDECREF(all);
    Py_XDECREF(first);
    Py_XDECREF(public);
    return result;
}

PyObject *py_method_new(PyObject *self, PyObject *args, PyObject *keywords)
{
    if (PY_UNLIKELY(py_is_overloaded(self)))
        return overridden_new(self, args, keywords);
    const grd_tensor *like = py_tensor_of(self);
    const struct maker maker = {.dtype = grd_tensor_dtype(like), .device = grd_tensor_device(like)};
    const grd_scope scope = grd_scope_open();
    return take(scope, make(args, keywords, &maker));
}

/* _legacy_tensor(dtype, args, kwargs) in Python: implements LongTensor(...) and the constructors of the other dtypes. */
static PyObject *legacy_tensor(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    struct maker maker = {.device = GRD_CPU};
    (void)module;
    if (nargs != 3 || !py_as_dtype(args[0], &maker.dtype) || !PyTuple_Check(args[1]) || !PyDict_Check(args[2])) {
        PyErr_SetString(PyExc_TypeError, "_legacy_tensor(): a dtype, a tuple and a dict are expected");
        return NULL;
    }
    const grd_scope scope = grd_scope_open();
    return take(scope, make(args[1], args[2], &maker));
}

PyMethodDef py_legacy_functions[] = {
    {"_legacy_tensor", (PyCFunction)(void (*)(void))legacy_tensor, METH_FASTCALL, NULL},
    {0},
};
