/* Making tensors of what Python has: torch.tensor, as_tensor, asarray. Tensor(…) as a class is in legacy.c. */
#include "interop.h"
#include "methods.h"
#include "number.h"
#include "gradus/ops/detach.h"
#include "gradus/ops/empty.h"
#include "gradus/ops/to.h"

/* ---- From anything ---------------------------------------------------------------------------------------------------------------------------- */

static grd_tensor *copied(grd_tensor *t, grd_dtype dtype, grd_device device)
{
    t = grd_to(t, .dtype = dtype, .device = device, .copy = true);
    return grd_ok() ? t : NULL;
}

grd_tensor *py_from_data(PyObject *object, grd_dtype dtype)
{
    bool writable;
    if (!py_is_array(object))
        return py_from_sequence(object, dtype);
    grd_tensor *t = py_over_array(object, &writable);
    return t != NULL ? copied(t, dtype, GRD_CPU) : NULL;
}

/* What the three functions are told beside the data. */
struct wish {
    const char *function;
    grd_dtype dtype;
    grd_device device;
    int copy;          /* -1: where it is needed, 0: never, 1: always */
    int requires_grad; /* -1: as the data has it */
};

static bool read_wish(const char *function, PyObject *dtype, PyObject *device, PyObject *requires_grad, struct wish *ret_wish)
{
    bool flag = false;
    *ret_wish = (struct wish){.function = function, .copy = -1};
    if (!py_dtype_argument(function, dtype, &ret_wish->dtype) || !py_device_argument(function, device, &ret_wish->device) ||
        !py_bool_argument(function, "requires_grad", requires_grad, &flag))
        return false;
    ret_wish->requires_grad = flag;
    return true;
}

static void use_default_device(struct wish *wish)
{
    if (wish->device.type == GRD_DEVICE_NONE)
        wish->device = py_default_device();
}

/* A new tensor on its device, a leaf. */
static PyObject *finish(grd_scope scope, grd_tensor *t, const struct wish *wish)
{
    if (t != NULL && wish->device.type != GRD_DEVICE_NONE)
        t = grd_to(t, .device = wish->device);
    if (t != NULL && wish->requires_grad > 0)
        t = grd_set_requires_grad(t, true);
    return t != NULL ? py_take(scope, t) : py_abandon(scope);
}

/* ---- torch.tensor ------------------------------------------------------------------------------------------------------------------------------ */

static bool warn_copy(void)
{
    return PyErr_WarnEx(PyExc_UserWarning,
                        "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
                        "sourceTensor.detach().clone().requires_grad_(True), rather than torch.tensor(sourceTensor).",
                        1) == 0;
}

/* Where neither is given, the dtype and the device are those of `like`, if there is one. */
static PyObject *tensor_of(const char *name, const grd_tensor *like, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    static const char *const parameters[] = {"data", "dtype", "device", "requires_grad", "pin_memory", NULL};
    const struct py_simple function = {name, parameters, 1, 1};
    PyObject *given[PY_SIMPLE_MAX];
    struct wish wish = {.function = name};
    bool pin_memory = false;
    if (!py_arrange(&function, args, nargs, names, given))
        return NULL;
    if (names != NULL &&
        (!read_wish(name, given[1], given[2], given[3], &wish) || !py_bool_argument(name, "pin_memory", given[4], &pin_memory)))
        return NULL;
    if (like != NULL && wish.dtype == GRD_DTYPE_NONE)
        wish.dtype = grd_tensor_dtype(like);
    if (like != NULL && wish.device.type == GRD_DEVICE_NONE)
        wish.device = grd_tensor_device(like);
    if (like == NULL)
        use_default_device(&wish);
    const grd_scope scope = grd_scope_open();
    if (!py_is_tensor(given[0]))
        return finish(scope, py_from_data(given[0], wish.dtype), &wish);
    if (!warn_copy())
        return py_abandon(scope);
    return finish(scope, copied(grd_detach(py_tensor_of(given[0])), wish.dtype, wish.device), &wish);
}

static PyObject *new_tensor(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    (void)module;
    return tensor_of("tensor", NULL, args, nargs, names);
}

PyObject *py_method_new_tensor(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    if (PY_UNLIKELY(py_is_overloaded(self)))
        return py_override(self, "new_tensor", args, nargs, names);
    return tensor_of("new_tensor", py_tensor_of(self), args, nargs, names);
}

/* ---- torch.as_tensor and torch.asarray ------------------------------------------------------------------------------------------------------------ */

/* `t` shows memory of somebody else, or is the tensor that was given. */
static grd_tensor *fitted(grd_tensor *t, const struct wish *wish)
{
    const grd_dtype dtype = grd_tensor_dtype(t);
    if (wish->copy == 0 && wish->dtype != GRD_DTYPE_NONE && wish->dtype != dtype) {
        PyErr_Format(PyExc_ValueError, "can't alias tensor with dtype '%s' into dtype '%s'.", py_dtype_tensor_name(dtype),
                     py_dtype_tensor_name(wish->dtype));
        return NULL;
    }
    if (wish->copy == 0 && wish->device.type != GRD_DEVICE_NONE && wish->device.type != grd_tensor_device(t).type) {
        PyErr_Format(PyExc_ValueError, "can't alias tensor from device '%s' to '%s'.", grd_device_name(grd_tensor_device(t)),
                     grd_device_name(wish->device));
        return NULL;
    }
    t = grd_to(t, .dtype = wish->dtype, .device = wish->device, .copy = wish->copy > 0);
    return grd_ok() ? t : NULL;
}

static grd_tensor *fitted_array(PyObject *object, const struct wish *wish)
{
    bool writable;
    grd_tensor *t = py_over_array(object, &writable), *result = t != NULL ? fitted(t, wish) : NULL;
    return result != NULL && result == t && !writable && !py_warn_not_writable("NumPy array") ? NULL : result;
}

grd_tensor *py_over_data(PyObject *object, grd_dtype dtype)
{
    const struct wish wish = {.dtype = dtype, .copy = -1};
    return py_is_array(object) ? fitted_array(object, &wish) : py_from_sequence(object, dtype);
}

static grd_tensor *fitted_sequence(PyObject *object, const struct wish *wish)
{
    if (wish->copy != 0)
        return py_from_sequence(object, wish->dtype);
    PyErr_SetString(PyExc_ValueError, "can't alias arbitrary sequence into a tensor.");
    return NULL;
}

static grd_tensor *fitted_buffer(PyObject *object, const struct wish *wish)
{
    const grd_dtype dtype = wish->dtype == GRD_DTYPE_NONE ? grd_default_dtype() : wish->dtype;
    const grd_tensor *storage = py_storage_bytes(object);
    const bool empty_storage = storage != NULL && grd_numel(storage) == 0; /* an empty buffer of any other object is refused */
    grd_tensor *t = empty_storage ? grd_empty(grd_dims(0), .dtype = dtype) : py_over_buffer(object, dtype, -1, 0);
    return t != NULL ? fitted(t, wish) : NULL;
}

static PyObject *as_tensor(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    static const char *const parameters[] = {"data", "dtype", "device", NULL};
    static const struct py_simple function = {"as_tensor", parameters, 3, 1};
    PyObject *given[PY_SIMPLE_MAX];
    struct wish wish;
    (void)module;
    if (!py_arrange(&function, args, nargs, names, given) || !read_wish("as_tensor", given[1], given[2], NULL, &wish))
        return NULL;
    use_default_device(&wish);
    const grd_scope scope = grd_scope_open();
    grd_tensor *t = py_is_tensor(given[0])  ? fitted(py_tensor_of(given[0]), &wish)
                    : py_is_array(given[0]) ? fitted_array(given[0], &wish)
                                            : py_from_sequence(given[0], wish.dtype);
    return finish(scope, t, &wish);
}

static bool copy_argument(PyObject *object, struct wish *wish)
{
    bool copy = false;
    if (object == NULL || object == Py_None)
        return true;
    if (!py_bool_argument("asarray", "copy", object, &copy))
        return false;
    wish->copy = copy;
    return true;
}

static PyObject *asarray(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    static const char *const parameters[] = {"obj", "dtype", "device", "copy", "requires_grad", NULL};
    static const struct py_simple function = {"asarray", parameters, 1, 1};
    PyObject *given[PY_SIMPLE_MAX];
    struct wish wish;
    (void)module;
    if (!py_arrange(&function, args, nargs, names, given) || !read_wish("asarray", given[1], given[2], given[4], &wish) ||
        !copy_argument(given[3], &wish))
        return NULL;
    use_default_device(&wish);
    PyObject *object = given[0];
    const grd_scope scope = grd_scope_open();
    if (py_is_tensor(object)) {
        /* The history stays, unless the caller decides on gradients. */
        grd_tensor *t = fitted(py_tensor_of(object), &wish);
        if (t != NULL && given[4] != NULL && grd_requires_grad(t) != (wish.requires_grad > 0))
            t = grd_set_requires_grad(grd_detach(t), wish.requires_grad > 0);
        return t != NULL ? py_take(scope, t) : py_abandon(scope);
    }
    grd_tensor *t = py_is_array(object)            ? fitted_array(object, &wish)
                    : py_has_dlpack(object)        ? py_over_dlpack(object, wish.copy)
                    : py_is_dlpack(object)         ? py_take_dlpack(object, wish.copy)
                    : PyObject_CheckBuffer(object) ? fitted_buffer(object, &wish)
                                                   : fitted_sequence(object, &wish);
    return finish(scope, t, &wish);
}

PyMethodDef py_construct_functions[] = {
    {"tensor", (PyCFunction)(void (*)(void))new_tensor, METH_FASTCALL | METH_KEYWORDS,
     "tensor(data, *, dtype=None, device=None, requires_grad=False, pin_memory=False)\n--\n\n"
     "A new tensor with a copy of data: numbers, nested sequences, arrays. It is a leaf."},
    {"as_tensor", (PyCFunction)(void (*)(void))as_tensor, METH_FASTCALL | METH_KEYWORDS,
     "as_tensor(data, dtype=None, device=None)\n--\n\n"
     "data as a tensor: itself or over its memory where dtype and device allow that, a copy otherwise. The history of a tensor stays."},
    {"asarray", (PyCFunction)(void (*)(void))asarray, METH_FASTCALL | METH_KEYWORDS,
     "asarray(obj, *, dtype=None, device=None, copy=None, requires_grad=False)\n--\n\n"
     "obj as a tensor: a tensor, an array, something with DLPack or with a buffer, which share their memory where that is possible, or a "
     "sequence."},
    {0},
};
