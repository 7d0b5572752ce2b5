/* Implements DLPack: __dlpack__, from_dlpack and the exchange between C extensions. Capsules may be versioned (DLPack 1.0 and later) or legacy. */
#include "dlpack.h"
#include "buffer.h"
#include "dlpack_standard.h"
#include "errors.h"
#include "override.h"
#include "parse.h"
#include "tables.h"

#include <stdlib.h>

#include "gradus/ops/clone.h"
#include "gradus/ops/detach.h"
#include "gradus/ops/empty.h"
#include "gradus/ops/to.h"

/* Names of DLPack capsules. A consumer renames the capsule to mark it as used. */
static const char managed_name[] = "dltensor_versioned", used_managed_name[] = "used_dltensor_versioned";
static const char legacy_name[] = "dltensor", used_legacy_name[] = "used_dltensor";

static const struct dlpack_dtype dtypes[GRD_DTYPE_COUNT] = {
    [GRD_BOOL] = {DLPACK_BOOL, 8, 1},
    [GRD_UINT8] = {DLPACK_UINT, 8, 1},
    [GRD_INT8] = {DLPACK_INT, 8, 1},
    [GRD_UINT16] = {DLPACK_UINT, 16, 1},
    [GRD_INT16] = {DLPACK_INT, 16, 1},
    [GRD_UINT32] = {DLPACK_UINT, 32, 1},
    [GRD_INT32] = {DLPACK_INT, 32, 1},
    [GRD_UINT64] = {DLPACK_UINT, 64, 1},
    [GRD_INT64] = {DLPACK_INT, 64, 1},
    [GRD_FLOAT16] = {DLPACK_FLOAT, 16, 1},
    [GRD_BFLOAT16] = {DLPACK_BFLOAT, 16, 1},
    [GRD_FLOAT32] = {DLPACK_FLOAT, 32, 1},
    [GRD_FLOAT64] = {DLPACK_FLOAT, 64, 1},
    [GRD_COMPLEX32] = {DLPACK_COMPLEX, 32, 1},
    [GRD_COMPLEX64] = {DLPACK_COMPLEX, 64, 1},
    [GRD_COMPLEX128] = {DLPACK_COMPLEX, 128, 1},
    [GRD_FLOAT8_E4M3FN] = {DLPACK_FLOAT8_E4M3FN, 8, 1},
    [GRD_FLOAT8_E5M2] = {DLPACK_FLOAT8_E5M2, 8, 1},
};

static grd_dtype find_dtype(struct dlpack_dtype dtype)
{
    for (int i = 1; i < GRD_DTYPE_COUNT; i++)
        if (dtypes[i].lanes == dtype.lanes && dtypes[i].code == dtype.code && dtypes[i].bits == dtype.bits)
            return (grd_dtype)i;
    return GRD_DTYPE_NONE;
}

/* ---- Exporting --------------------------------------------------------------------------------------------------- */

/* An exported tensor: the DLPack struct, legacy or versioned, and the memory for the sizes and strides that the struct points to. */
struct exported {
    union {
        struct dlpack_legacy legacy;
        struct dlpack_managed managed;
    } as;
    grd_tensor *tensor;
    int64_t dims[];
};

/* Frees the struct of an exported tensor and drops the tensor. Calls no Python code, because a consumer may call this function on any thread. */
static void delete_exported(struct exported *exported)
{
    grd_drop(exported->tensor);
    free(exported);
}

static void delete_legacy(struct dlpack_legacy *self)
{
    delete_exported(self->context);
}

static void delete_managed(struct dlpack_managed *self)
{
    delete_exported(self->context);
}

static bool can_export(const grd_tensor *t)
{
    if (grd_requires_grad(t))
        PyErr_SetString(PyExc_BufferError, "Can't export tensors that require gradient, use tensor.detach()");
    else if (grd_is_batched(t))
        PyErr_SetString(PyExc_RuntimeError, "Cannot access data pointer of Tensor that doesn't have storage");
    else if (grd_tensor_device(t).type != GRD_DEVICE_CPU)
        PyErr_Format(PyExc_BufferError, "Cannot pack tensors on %s", grd_device_name(grd_tensor_device(t)));
    else if (grd_is_conj(t) || grd_is_neg(t))
        PyErr_SetString(PyExc_BufferError, "Can't export tensors with the conjugate bit set");
    else if (dtypes[grd_tensor_dtype(t)].lanes == 0)
        PyErr_Format(PyExc_BufferError, "DLPack has no type for %s", grd_dtype_name(grd_tensor_dtype(t)));
    else
        return true;
    return false;
}

/* Returns the DLPack description of `t`. The description points to `sizes` and `strides`, which the caller must fill and keep. */
static struct dlpack_tensor describe(const grd_tensor *t, int64_t *sizes, int64_t *strides)
{
    return (struct dlpack_tensor){.data = grd_data(t),
                                  .device = {DLPACK_CPU, 0},
                                  .ndim = (int32_t)grd_ndim(t),
                                  .dtype = dtypes[grd_tensor_dtype(t)],
                                  .sizes = sizes,
                                  .strides = strides};
}

/* Returns a new export of `t`, or of a copy if `copy` is true. The export owns a detached tensor over the same storage; a storage with several
 * owners cannot be resized, so the memory stays valid. Returns NULL with an exception. */
static struct exported *export_tensor(grd_tensor *t, bool copy, bool versioned)
{
    if (!can_export(t))
        return NULL;
    const int64_t ndim = grd_ndim(t);
    struct exported *exported = malloc(sizeof *exported + 2 * (size_t)ndim * sizeof *exported->dims);
    if (exported == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    const grd_scope scope = grd_scope_open();
    t = grd_keep(copy ? grd_clone(t) : grd_detach(t));
    if (!grd_ok()) {
        free(exported);
        py_abandon(scope);
        return NULL;
    }
    grd_scope_close(scope);
    exported->tensor = t;
    for (int64_t i = 0; i < ndim; i++) {
        exported->dims[i] = grd_sizes(t).data[i];
        exported->dims[ndim + i] = grd_strides(t).data[i];
    }
    const struct dlpack_tensor tensor = describe(t, exported->dims, exported->dims + ndim);
    if (versioned)
        exported->as.managed = (struct dlpack_managed){.version = {DLPACK_MAJOR, DLPACK_MINOR},
                                                       .context = exported,
                                                       .deleter = delete_managed,
                                                       .flags = copy ? DLPACK_COPIED : 0,
                                                       .tensor = tensor};
    else
        exported->as.legacy = (struct dlpack_legacy){.tensor = tensor, .context = exported, .deleter = delete_legacy};
    return exported;
}

/* Destructor of a DLPack capsule. Frees the exported tensor unless a consumer has taken it; a consumer renames the capsule. */
static void delete_capsule(PyObject *capsule)
{
    if (PyCapsule_IsValid(capsule, managed_name)) {
        struct dlpack_managed *managed = PyCapsule_GetPointer(capsule, managed_name);
        managed->deleter(managed);
    } else if (PyCapsule_IsValid(capsule, legacy_name)) {
        struct dlpack_legacy *legacy = PyCapsule_GetPointer(capsule, legacy_name);
        legacy->deleter(legacy);
    }
}

static PyObject *capsule_of(grd_tensor *t, bool copy, bool versioned)
{
    struct exported *exported = export_tensor(t, copy, versioned);
    PyObject *capsule = exported != NULL ? PyCapsule_New(&exported->as, versioned ? managed_name : legacy_name, delete_capsule) : NULL;
    if (exported != NULL && capsule == NULL)
        delete_exported(exported);
    return capsule;
}

/* Reads the tuple of two integers that was given for the argument `name`. Returns false with an exception. */
static bool read_pair(const char *name, PyObject *object, long *ret_first, long *ret_second)
{
    if (!PyTuple_Check(object) || PyTuple_GET_SIZE(object) != 2) {
        PyErr_Format(PyExc_TypeError, "__dlpack__(): argument '%s' must be a tuple of two ints, not %s", name, Py_TYPE(object)->tp_name);
        return false;
    }
    *ret_first = PyLong_AsLong(PyTuple_GET_ITEM(object, 0));
    if (PyErr_Occurred())
        return false;
    *ret_second = PyLong_AsLong(PyTuple_GET_ITEM(object, 1));
    return !PyErr_Occurred();
}

static bool check_device(PyObject *device)
{
    long type, id;
    if (!read_pair("dl_device", device, &type, &id))
        return false;
    if (type == DLPACK_CPU)
        return true;
    PyErr_Format(PyExc_BufferError, "cannot export a tensor on cpu to DLPack device (%ld, %ld)", type, id);
    return false;
}

static const struct py_param dlpack_params[] = {
    {"stream", PY_KIND_OBJECT, PY_OPTION, "None"},
    {"max_version", PY_KIND_OBJECT, PY_OPTION, "None"},
    {"dl_device", PY_KIND_OBJECT, PY_OPTION, "None"},
    {"copy", GRD_KIND_BOOL, PY_OPTION, "None"},
};
static const struct py_signature dlpack_signature = {.params = dlpack_params, .nparams = 4, .positional = 0};
static const struct py_function dlpack_function = {.name = "__dlpack__", .signatures = &dlpack_signature, .nsignatures = 1};

static PyObject *tensor_dlpack(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    if (PY_UNLIKELY(py_is_overloaded(self)))
        return py_override(self, "__dlpack__", args, nargs, names);
    struct py_arguments arguments;
    if (!py_parse(&dlpack_function, NULL, args, nargs, names, &arguments))
        return NULL;
    PyObject *stream = arguments.objects[0], *version = arguments.objects[1], *device = arguments.objects[2];
    const bool copy = py_bool_or(&arguments, 3, false);
    py_arguments_done(&arguments);
    long major = 0, minor;
    if (py_is_given(stream))
        return PyErr_Format(PyExc_BufferError, "stream must be None for a tensor on cpu");
    if ((py_is_given(version) && !read_pair("max_version", version, &major, &minor)) || (py_is_given(device) && !check_device(device)))
        return NULL;
    return capsule_of(py_tensor_of(self), copy, major >= DLPACK_MAJOR);
}

static PyObject *tensor_dlpack_device(PyObject *self, PyObject *unused)
{
    if (PY_UNLIKELY(py_is_overloaded(self)))
        return py_override(self, "__dlpack_device__", NULL, 0, NULL);
    const grd_device device = grd_tensor_device(py_tensor_of(self));
    (void)unused;
    if (device.type == GRD_DEVICE_CPU)
        return Py_BuildValue("(ii)", DLPACK_CPU, 0);
    return PyErr_Format(PyExc_BufferError, "DLPack has no type for device %s", grd_device_name(device));
}

static PyObject *to_dlpack(PyObject *module, PyObject *object)
{
    (void)module;
    if (!py_is_tensor(object))
        return PyErr_Format(PyExc_TypeError, "to_dlpack(): argument 'tensor' must be Tensor, not %s", Py_TYPE(object)->tp_name);
    return capsule_of(py_tensor_of(object), false, false);
}

/* ---- Importing --------------------------------------------------------------------------------------------------- */

static void release_managed(void *context)
{
    struct dlpack_managed *managed = context;
    if (managed->deleter != NULL)
        managed->deleter(managed);
}

static void release_legacy(void *context)
{
    struct dlpack_legacy *legacy = context;
    if (legacy->deleter != NULL)
        legacy->deleter(legacy);
}

static bool can_import(const struct dlpack_tensor *tensor)
{
    const int32_t device = tensor->device.type;
    if (device != DLPACK_CPU && device != DLPACK_CUDA_HOST && device != DLPACK_ROCM_HOST) {
        PyErr_Format(PyExc_BufferError, "DLPack device (%d, %d) is not supported", device, tensor->device.id);
        return false;
    }
    if (tensor->ndim < 0 || tensor->ndim > GRD_MAX_DIMS) {
        PyErr_Format(PyExc_BufferError, "a DLPack tensor of %d dimensions, the limit is %d", tensor->ndim, GRD_MAX_DIMS);
        return false;
    }
    if (find_dtype(tensor->dtype) == GRD_DTYPE_NONE) {
        PyErr_Format(PyExc_BufferError, "DLPack type with code %d, %d bits and %d lanes is not supported", tensor->dtype.code,
                     tensor->dtype.bits, tensor->dtype.lanes);
        return false;
    }
    return true;
}

/* Returns a tensor over the memory of an imported DLPack tensor. release(context) is called when the returned tensor's storage is freed, or at once
 * on failure. */
static grd_tensor *import_tensor(const struct dlpack_tensor *tensor, void (*release)(void *context), void *context)
{
    int64_t contiguous[GRD_MAX_DIMS];
    if (!can_import(tensor)) {
        PyObject *type, *error, *traceback;
        PyErr_Fetch(&type, &error, &traceback); /* release() may run Python code, which must not see the exception */
        release(context);
        PyErr_Restore(type, error, traceback);
        return NULL;
    }
    static const int64_t none = 0;
    const grd_dims sizes = grd_dims_from(tensor->sizes != NULL ? tensor->sizes : &none, tensor->ndim);
    py_contiguous_strides(sizes, 1, contiguous);
    return py_over_memory((char *)tensor->data + tensor->byte_offset, sizes,
                          grd_dims_from(tensor->strides != NULL ? tensor->strides : contiguous, tensor->ndim), find_dtype(tensor->dtype),
                          release, context);
}

/* Returns a copy of `t` if `copy` is 1 or the memory is read-only; otherwise returns `t`. Read-only memory must be copied because tensors of the
 * library are always writable. Raises BufferError if the memory is read-only and `copy` is 0. */
static grd_tensor *copied_if_needed(grd_tensor *t, bool read_only, int copy)
{
    if (t == NULL || (copy <= 0 && !read_only))
        return t;
    if (copy == 0) {
        PyErr_SetString(PyExc_BufferError, "the data is read-only, so a tensor can only be made as a copy");
        return NULL;
    }
    t = grd_clone(t);
    return grd_ok() ? t : NULL;
}

static grd_tensor *import_managed(struct dlpack_managed *managed, int copy)
{
    const bool read_only = (managed->flags & DLPACK_READ_ONLY) != 0, copied = (managed->flags & DLPACK_COPIED) != 0;
    if (managed->version.major <= DLPACK_MAJOR)
        return copied_if_needed(import_tensor(&managed->tensor, release_managed, managed), read_only, copied && copy > 0 ? -1 : copy);
    const uint32_t major = managed->version.major;
    release_managed(managed);
    PyErr_Format(PyExc_BufferError, "DLPack version %u is not supported, the newest is %d", major, DLPACK_MAJOR);
    return NULL;
}

grd_tensor *py_take_dlpack(PyObject *capsule, int copy)
{
    if (PyCapsule_IsValid(capsule, managed_name)) {
        struct dlpack_managed *managed = PyCapsule_GetPointer(capsule, managed_name);
        return PyCapsule_SetName(capsule, used_managed_name) == 0 ? import_managed(managed, copy) : NULL;
    }
    if (PyCapsule_IsValid(capsule, legacy_name)) {
        struct dlpack_legacy *legacy = PyCapsule_GetPointer(capsule, legacy_name);
        return PyCapsule_SetName(capsule, used_legacy_name) == 0
                   ? copied_if_needed(import_tensor(&legacy->tensor, release_legacy, legacy), false, copy)
                   : NULL;
    }
    PyErr_SetString(PyExc_RuntimeError,
                    "from_dlpack received an invalid capsule. Note that DLTensor capsules can be consumed only once, so you "
                    "might have already constructed a tensor from it once.");
    return NULL;
}

/* Returns the DLPack C exchange API of the type of `object`; NULL, without an exception, if the type has none. */
static const struct dlpack_exchange *exchange_of(PyObject *object)
{
    PyObject *capsule = PyObject_GetAttrString((PyObject *)Py_TYPE(object), "__dlpack_c_exchange_api__");
    const struct dlpack_exchange *exchange =
        capsule != NULL && PyCapsule_IsValid(capsule, "dlpack_exchange_api") ? PyCapsule_GetPointer(capsule, "dlpack_exchange_api") : NULL;
    Py_XDECREF(capsule);
    PyErr_Clear();
    while (exchange != NULL && exchange->version.major > DLPACK_MAJOR)
        exchange = exchange->previous;
    return exchange;
}

bool py_is_dlpack(PyObject *object)
{
    return PyCapsule_IsValid(object, managed_name) || PyCapsule_IsValid(object, legacy_name);
}

bool py_has_dlpack(PyObject *object)
{
    return PyObject_HasAttrString((PyObject *)Py_TYPE(object), "__dlpack__");
}

/* Returns object.__dlpack__(max_version=..., copy=...), or object.__dlpack__() if it does not take these arguments. */
static PyObject *ask_for_capsule(PyObject *object, int copy)
{
    PyObject *method = PyObject_GetAttrString(object, "__dlpack__"), *none = PyTuple_New(0);
    PyObject *options = Py_BuildValue("{s(ii)sO}", "max_version", DLPACK_MAJOR, DLPACK_MINOR, "copy",
                                      copy < 0   ? Py_None
                                      : copy > 0 ? Py_True
                                                 : Py_False);
    PyObject *capsule = method != NULL && none != NULL && options != NULL ? PyObject_Call(method, none, options) : NULL;
    if (capsule == NULL && method != NULL && none != NULL && PyErr_ExceptionMatches(PyExc_TypeError)) {
        PyErr_Clear();
        capsule = PyObject_Call(method, none, NULL);
    }
    Py_XDECREF(options);
    Py_XDECREF(none);
    Py_XDECREF(method);
    return capsule;
}

grd_tensor *py_over_dlpack(PyObject *object, int copy)
{
    struct dlpack_managed *managed;
    const struct dlpack_exchange *exchange = exchange_of(object);
    if (exchange != NULL)
        return exchange->managed_of_object(object, &managed) == 0 ? import_managed(managed, copy) : NULL;
    PyObject *capsule = ask_for_capsule(object, copy);
    grd_tensor *t = capsule != NULL ? py_take_dlpack(capsule, copy) : NULL;
    Py_XDECREF(capsule);
    return t;
}

static const struct py_param from_dlpack_params[] = {
    {"ext_tensor", PY_KIND_OBJECT, 0, NULL},
    {"device", GRD_KIND_DEVICE, PY_OPTION, "None"},
    {"copy", GRD_KIND_BOOL, PY_OPTION, "None"},
};
static const struct py_signature from_dlpack_signature = {.params = from_dlpack_params, .nparams = 3, .positional = 1};
static const struct py_function from_dlpack_function = {.name = "from_dlpack", .signatures = &from_dlpack_signature, .nsignatures = 1};

static PyObject *from_dlpack(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    struct py_arguments arguments;
    if (!py_parse(&from_dlpack_function, NULL, args, nargs, names, &arguments))
        return NULL;
    PyObject *object = arguments.objects[0];
    const grd_device device = py_device_or(&arguments, 1, (grd_device){0});
    const int copy = arguments.values[2].kind == GRD_KIND_BOOL ? arguments.values[2].v.boolean : -1;
    py_arguments_done(&arguments);
    const grd_scope scope = grd_scope_open();
    grd_tensor *t = py_has_dlpack(object) ? py_over_dlpack(object, copy) : py_take_dlpack(object, copy);
    if (t != NULL && device.type != GRD_DEVICE_NONE)
        t = grd_to(t, .device = device);
    return t != NULL ? py_take(scope, t) : py_abandon(scope);
}

/* ---- The exchange between C extensions --------------------------------------------------------------------------- */

static int exchange_allocate(struct dlpack_tensor *like, struct dlpack_managed **ret_managed, void *context,
                             void (*set_error)(void *context, const char *kind, const char *message))
{
    const grd_dtype dtype = find_dtype(like->dtype);
    if (dtype == GRD_DTYPE_NONE || like->device.type != DLPACK_CPU || like->ndim < 0 || like->ndim > GRD_MAX_DIMS) {
        set_error(context, "BufferError", "no tensor of this dtype, device or number of dimensions");
        return -1;
    }
    static const int64_t none = 0;
    const grd_scope scope = grd_scope_open();
    grd_tensor *t = grd_empty(grd_dims_from(like->sizes != NULL ? like->sizes : &none, like->ndim), .dtype = dtype);
    struct exported *exported = grd_ok() ? export_tensor(t, false, true) : NULL;
    grd_scope_close(scope);
    if (exported == NULL) {
        set_error(context, "MemoryError", "the tensor could not be allocated");
        PyErr_Clear();
        grd_error_clear();
        return -1;
    }
    *ret_managed = &exported->as.managed;
    return 0;
}

static bool expect_tensor(PyObject *object)
{
    if (!py_is_tensor(object))
        PyErr_Format(PyExc_TypeError, "a Tensor is expected, not %s", Py_TYPE(object)->tp_name);
    return py_is_tensor(object);
}

static int exchange_managed_of_object(void *object, struct dlpack_managed **ret_managed)
{
    struct exported *exported = expect_tensor(object) ? export_tensor(py_tensor_of(object), false, true) : NULL;
    if (exported == NULL)
        return -1;
    *ret_managed = &exported->as.managed;
    return 0;
}

static int exchange_object_of_managed(struct dlpack_managed *managed, void **ret_object)
{
    const grd_scope scope = grd_scope_open();
    grd_tensor *t = import_managed(managed, -1);
    *ret_object = t != NULL ? py_take(scope, t) : py_abandon(scope);
    return *ret_object != NULL ? 0 : -1;
}

static int exchange_tensor_of_object(void *object, struct dlpack_tensor *ret_tensor)
{
    if (!expect_tensor(object) || !can_export(py_tensor_of(object)))
        return -1;
    const grd_tensor *t = py_tensor_of(object);
    *ret_tensor = describe(t, (int64_t *)(uintptr_t)grd_sizes(t).data, (int64_t *)(uintptr_t)grd_strides(t).data);
    return 0;
}

static int exchange_current_stream(int32_t device_type, int32_t device_id, void **ret_stream)
{
    (void)device_type;
    (void)device_id;
    *ret_stream = NULL;
    return 0;
}

PyObject *py_exchange_capsule(void)
{
    static struct dlpack_exchange exchange = {
        .version = {DLPACK_MAJOR, DLPACK_MINOR},
        .allocate = exchange_allocate,
        .managed_of_object = exchange_managed_of_object,
        .object_of_managed = exchange_object_of_managed,
        .tensor_of_object = exchange_tensor_of_object,
        .current_stream = exchange_current_stream,
    };
    return PyCapsule_New(&exchange, "dlpack_exchange_api", NULL);
}

PyMethodDef py_dlpack_functions[] = {
    PY_ENTRY("from_dlpack", from_dlpack,
             "from_dlpack(ext_tensor, *, device=None, copy=None)\n--\n\n"
             "A tensor over the memory of an object with __dlpack__, or of a DLPack capsule. What is read-only is copied."),
    {"to_dlpack", to_dlpack, METH_O, "to_dlpack(tensor)\n--\n\nA DLPack capsule without a version: the form of before DLPack 1.0."},
    {0},
};

PyMethodDef py_dlpack_methods[] = {
    PY_ENTRY(
        "__dlpack__", tensor_dlpack,
        "__dlpack__($self, *, stream=None, max_version=None, dl_device=None, copy=None)\n--\n\nA DLPack capsule over the memory of the "
        "tensor."),
    {"__dlpack_device__", tensor_dlpack_device, METH_NOARGS,
     "__dlpack_device__($self)\n--\n\nType and number of the device, as DLPack numbers them."},
    {0},
};
