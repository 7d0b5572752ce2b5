/* Creates tensors from Python data: torch.tensor, as_tensor and asarray. The class call Tensor(...) is in legacy_tensor.c. */
#include "as_tensor.h"
#include "buffer.h"
#include "device.h"
#include "dlpack.h"
#include "dtype.h"
#include "errors.h"
#include "from_sequence.h"
#include "override.h"
#include "parse.h"
#include "storage.h"
#include "tables.h"
#include "tensor_methods.h"
#include "gradus/ops/detach.h"
#include "gradus/ops/empty.h"
#include "gradus/ops/to.h"

/* ---- Options of a call ------------------------------------------------------------------------------------------- */

/* Returns a copy of `t` with the given dtype and device, or NULL with an error of the library pending. */
static grd_tensor *copied(grd_tensor *t, grd_dtype dtype, grd_device device)
{
    t = grd_to(t, .dtype = dtype, .device = device, .copy = true);
    return grd_ok() ? t : NULL;
}

/* The options of a call of tensor(), as_tensor() or asarray(). */
struct request {
    grd_dtype dtype;
    grd_device device;
    int copy; /* -1 copies only if the dtype or device differs, 0 never copies, 1 always copies */
    bool requires_grad;
};

/* Returns the Python object of `t` after moving `t` to the requested device and setting requires_grad. Closes `scope`, which frees the temporary
 * tensors of the call. If `t` is NULL or an error is pending, raises the error and returns NULL. */
static PyObject *finish(grd_scope scope, grd_tensor *t, const struct request *request)
{
    if (t != NULL && request->device.type != GRD_DEVICE_NONE)
        t = grd_to(t, .device = request->device);
    if (t != NULL && request->requires_grad)
        t = grd_set_requires_grad(t, true);
    return t != NULL ? py_take(scope, t) : py_abandon(scope);
}

/* ---- torch.tensor ------------------------------------------------------------------------------------------------ */

static bool warn_copy(void)
{
    return PyErr_WarnEx(PyExc_UserWarning,
                        "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
                        "sourceTensor.detach().clone().requires_grad_(True), rather than torch.tensor(sourceTensor).",
                        1) == 0;
}

static const struct py_param tensor_params[] = {
    {"data", PY_KIND_OBJECT, 0, NULL},
    {"dtype", GRD_KIND_DTYPE, PY_OPTION, "None"},
    {"device", GRD_KIND_DEVICE, PY_OPTION, "None"},
    {"requires_grad", GRD_KIND_BOOL, PY_OPTIONAL | PY_KEYWORD, "False"},
    {"pin_memory", GRD_KIND_BOOL, PY_OPTIONAL | PY_KEYWORD, "False"},
};
static const struct py_signature tensor_signature = {.params = tensor_params, .nparams = 5, .positional = 1};

/* Implements tensor() and x.new_tensor(). The dtype and the device default to those of `like`, or to the global defaults if `like` is NULL. */
static PyObject *tensor_of(const char *name, const grd_tensor *like, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    const struct py_function function = {.name = name, .signatures = &tensor_signature, .nsignatures = 1};
    struct py_arguments arguments;
    if (!py_parse(&function, NULL, args, nargs, names, &arguments))
        return NULL;
    PyObject *data = arguments.objects[0];
    struct request request = {.dtype = py_dtype_or(&arguments, 1, like != NULL ? grd_tensor_dtype(like) : GRD_DTYPE_NONE),
                              .device = py_device_or(&arguments, 2, like != NULL ? grd_tensor_device(like) : py_default_device()),
                              .requires_grad = py_bool_or(&arguments, 3, false)};
    py_arguments_done(&arguments);
    const grd_scope scope = grd_scope_open();
    if (!py_is_tensor(data))
        return finish(scope, py_from_data(data, request.dtype), &request);
    if (!warn_copy())
        return py_abandon(scope);
    return finish(scope, copied(grd_detach(py_tensor_of(data)), request.dtype, request.device), &request);
}

static PyObject *new_tensor(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    return tensor_of("tensor", NULL, args, nargs, names);
}

PyObject *py_method_new_tensor(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    if (PY_UNLIKELY(py_is_overloaded(self)))
        return py_override(self, "new_tensor", args, nargs, names);
    return tensor_of("new_tensor", py_tensor_of(self), args, nargs, names);
}

/* ---- torch.as_tensor and torch.asarray --------------------------------------------------------------------------- */

/* Converts `t` to the requested dtype and device. `t` is the given tensor, or a tensor that shares the memory of the given object. Raises ValueError
 * if a copy is forbidden (copy == 0) but the dtype or device differs. */
static grd_tensor *converted(grd_tensor *t, const struct request *request)
{
    const grd_dtype dtype = grd_tensor_dtype(t);
    if (request->copy == 0 && request->dtype != GRD_DTYPE_NONE && request->dtype != dtype) {
        PyErr_Format(PyExc_ValueError, "can't alias tensor with dtype '%s' into dtype '%s'.", py_dtype_tensor_name(dtype),
                     py_dtype_tensor_name(request->dtype));
        return NULL;
    }
    if (request->copy == 0 && request->device.type != GRD_DEVICE_NONE && request->device.type != grd_tensor_device(t).type) {
        PyErr_Format(PyExc_ValueError, "can't alias tensor from device '%s' to '%s'.", grd_device_name(grd_tensor_device(t)),
                     grd_device_name(request->device));
        return NULL;
    }
    t = grd_to(t, .dtype = request->dtype, .device = request->device, .copy = request->copy > 0);
    return grd_ok() ? t : NULL;
}

/* Returns a tensor for an object with the array interface. Warns if the tensor shares memory that is read-only. */
static grd_tensor *converted_array(PyObject *object, const struct request *request)
{
    bool writable;
    grd_tensor *t = py_over_array(object, &writable), *result = t != NULL ? converted(t, request) : NULL;
    return result != NULL && result == t && !writable && !py_warn_not_writable("NumPy array") ? NULL : result;
}

grd_tensor *py_over_data(PyObject *object, grd_dtype dtype)
{
    const struct request request = {.dtype = dtype, .copy = -1};
    return py_is_array(object) ? converted_array(object, &request) : py_from_sequence(object, dtype);
}

/* Returns a new tensor with the numbers of nested sequences. Raises ValueError if a copy is forbidden (copy == 0). */
static grd_tensor *converted_sequence(PyObject *object, const struct request *request)
{
    if (request->copy != 0)
        return py_from_sequence(object, request->dtype);
    PyErr_SetString(PyExc_ValueError, "can't alias arbitrary sequence into a tensor.");
    return NULL;
}

/* Returns a tensor for a storage or another object with the buffer protocol. The bytes are read as elements of the requested or default dtype. */
static grd_tensor *converted_buffer(PyObject *object, const struct request *request)
{
    const grd_dtype dtype = request->dtype == GRD_DTYPE_NONE ? grd_default_dtype() : request->dtype;
    const grd_tensor *storage = py_storage_bytes(object);
    const bool empty_storage =
        storage != NULL && grd_numel(storage) == 0; /* py_over_buffer refuses empty buffers, but an empty storage is valid */
    grd_tensor *t = empty_storage ? grd_empty(grd_dims(0), .dtype = dtype) : py_over_buffer(object, dtype, -1, 0);
    return t != NULL ? converted(t, request) : NULL;
}

static const struct py_param as_tensor_params[] = {
    {"data", PY_KIND_OBJECT, 0, NULL},
    {"dtype", GRD_KIND_DTYPE, PY_OPTIONAL | PY_NONE, "None"},
    {"device", GRD_KIND_DEVICE, PY_OPTIONAL | PY_NONE, "None"},
};
static const struct py_signature as_tensor_signature = {.params = as_tensor_params, .nparams = 3, .positional = 3};
static const struct py_function as_tensor_function = {.name = "as_tensor", .signatures = &as_tensor_signature, .nsignatures = 1};

static PyObject *as_tensor(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    struct py_arguments arguments;
    if (!py_parse(&as_tensor_function, NULL, args, nargs, names, &arguments))
        return NULL;
    PyObject *data = arguments.objects[0];
    const struct request request = {
        .dtype = py_dtype_or(&arguments, 1, GRD_DTYPE_NONE), .device = py_device_or(&arguments, 2, py_default_device()), .copy = -1};
    py_arguments_done(&arguments);
    const grd_scope scope = grd_scope_open();
    grd_tensor *t = py_is_tensor(data)  ? converted(py_tensor_of(data), &request)
                    : py_is_array(data) ? converted_array(data, &request)
                                        : py_from_sequence(data, request.dtype);
    return finish(scope, t, &request);
}

static const struct py_param asarray_params[] = {
    {"obj", PY_KIND_OBJECT, 0, NULL},
    {"dtype", GRD_KIND_DTYPE, PY_OPTION, "None"},
    {"device", GRD_KIND_DEVICE, PY_OPTION, "None"},
    {"copy", GRD_KIND_BOOL, PY_OPTION, "None"},
    {"requires_grad", GRD_KIND_BOOL, PY_OPTIONAL | PY_KEYWORD, "False"},
};
static const struct py_signature asarray_signature = {.params = asarray_params, .nparams = 5, .positional = 1};
static const struct py_function asarray_function = {.name = "asarray", .signatures = &asarray_signature, .nsignatures = 1};

static PyObject *asarray(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    struct py_arguments arguments;
    if (!py_parse(&asarray_function, NULL, args, nargs, names, &arguments))
        return NULL;
    PyObject *object = arguments.objects[0];
    const struct request request = {.dtype = py_dtype_or(&arguments, 1, GRD_DTYPE_NONE),
                                    .device = py_device_or(&arguments, 2, py_default_device()),
                                    .copy = arguments.values[3].kind == GRD_KIND_BOOL ? arguments.values[3].v.boolean : -1,
                                    .requires_grad = py_bool_or(&arguments, 4, false)};
    const bool decides_on_grad = arguments.objects[4] != NULL;
    py_arguments_done(&arguments);
    const grd_scope scope = grd_scope_open();
    if (py_is_tensor(object)) {
        /* If requires_grad= is given and is not grd_requires_grad(t), detaches `t` and sets the flag. Otherwise `t` keeps its autograd history. */
        grd_tensor *t = converted(py_tensor_of(object), &request);
        if (t != NULL && decides_on_grad && grd_requires_grad(t) != (request.requires_grad))
            t = grd_set_requires_grad(grd_detach(t), request.requires_grad);
        return t != NULL ? py_take(scope, t) : py_abandon(scope);
    }
    grd_tensor *t = py_is_array(object)            ? converted_array(object, &request)
                    : py_has_dlpack(object)        ? py_over_dlpack(object, request.copy)
                    : py_is_dlpack(object)         ? py_take_dlpack(object, request.copy)
                    : PyObject_CheckBuffer(object) ? converted_buffer(object, &request)
                                                   : converted_sequence(object, &request);
    return finish(scope, t, &request);
}

PyMethodDef py_as_tensor_functions[] = {
    PY_ENTRY("tensor", new_tensor,
             "tensor(data, *, dtype=None, device=None, requires_grad=False, pin_memory=False)\n--\n\n"
             "A new tensor with a copy of data: numbers, nested sequences, arrays. It is a leaf."),
    PY_ENTRY(
        "as_tensor", as_tensor,
        "as_tensor(data, dtype=None, device=None)\n--\n\n"
        "data as a tensor: itself or over its memory where dtype and device allow that, a copy otherwise. The history of a tensor stays."),
    PY_ENTRY("asarray", asarray,
             "asarray(obj, *, dtype=None, device=None, copy=None, requires_grad=False)\n--\n\n"
             "obj as a tensor: a tensor, an array, something with DLPack or with a buffer, which share their memory where that is "
             "possible, or a "
             "sequence."),
    {0},
};
