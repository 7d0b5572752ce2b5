/* Shares memory without copying. Makes tensors over the memory of other objects (array interface, buffer protocol), and exports the memory of tensors
 * as buffers.
 *
 * A tensor over the memory of another object owns a reference to that object. A buffer over the memory of a tensor owns a detached tensor over the
 * same storage. A storage with several owners cannot be resized, so the memory stays valid while the buffer exists. */
#include "buffer.h"
#include "errors.h"
#include "gil.h"
#include "override.h"
#include "parse.h"
#include "scalar.h"
#include "tables.h"
#include "tensor_slots.h"
#include "gradus/ops/detach.h"

/* ---- Tensors over memory ----------------------------------------------------------------------------------------- */

/* Computes the offset in elements of the lowest element that `sizes` and `strides` reach, and the number of elements from the lowest to the
 * highest one. Returns false if that many elements have more bytes than an int64 can count. */
static bool find_extent(grd_dims sizes, grd_dims strides, int64_t itemsize, int64_t *ret_lowest, int64_t *ret_count)
{
    int64_t ends[2] = {0, 0}, extent, bytes;
    *ret_lowest = *ret_count = 0;
    for (int64_t i = 0; i < sizes.n; i++) {
        int64_t *end = &ends[strides.data[i] > 0];
        if (sizes.data[i] == 0)
            return true;
        if (__builtin_mul_overflow(sizes.data[i] - 1, strides.data[i], &extent) || __builtin_add_overflow(*end, extent, end))
            return false;
    }
    *ret_lowest = ends[0];
    return !__builtin_sub_overflow(ends[1], ends[0], &extent) && !__builtin_add_overflow(extent, 1, ret_count) &&
           !__builtin_mul_overflow(*ret_count, itemsize, &bytes);
}

/* If a stride is negative, the element with the lowest address lies before `data`. The storage then begins at this element, and the tensor's
 * offset is the number of elements from there to `data`. */
grd_tensor *py_over_memory(void *data, grd_dims sizes, grd_dims strides, grd_dtype dtype, void (*release)(void *context), void *context)
{
    int64_t lowest, count;
    const int64_t itemsize = grd_dtype_size(dtype), alignment = grd_dtype_is_complex(dtype) ? itemsize / 2 : itemsize;
    grd_tensor *t = NULL;
    if (!find_extent(sizes, strides, itemsize, &lowest, &count))
        grd_error_set(GRD_ERROR_VALUE, "the memory is larger than there can be");
    else if ((uintptr_t)data % (uintptr_t)alignment != 0)
        grd_error_set(GRD_ERROR_VALUE, "the memory is not aligned to elements of %lld bytes; copy it first", (long long)itemsize);
    else
        t = grd_from_memory((char *)data + lowest * itemsize, sizes, strides, -lowest, dtype, release, context);
    if (grd_ok())
        return t;
    release(context);
    return NULL;
}

void py_contiguous_strides(grd_dims sizes, int64_t unit, int64_t *ret_strides)
{
    for (int64_t i = sizes.n - 1; i >= 0; i--) {
        ret_strides[i] = unit;
        if (__builtin_mul_overflow(unit, sizes.data[i], &unit))
            unit = 0;
    }
}

bool py_warn_not_writable(const char *what)
{
    return PyErr_WarnFormat(
               PyExc_UserWarning, 1,
               "The given %s is not writable, and tensors that are not writable are not supported. This means you can write to the "
               "underlying (supposedly non-writable) memory using the tensor. You may want to copy it to protect its data or make it "
               "writable before converting it to a tensor.",
               what) == 0;
}

/* ---- The array interface ----------------------------------------------------------------------------------------- */

/* The struct that __array_struct__ points to: the C form of NumPy's array interface, version 2. */
struct array_struct {
    int two, ndim;
    char kind;
    int itemsize, flags;
    Py_ssize_t *sizes, *strides;
    void *data;
    PyObject *description;
};

enum { ARRAY_NATIVE = 0x200, ARRAY_WRITABLE = 0x400 };

/* Description of an array's memory, read from __array_struct__ or __array_interface__. Strides are in bytes. */
struct array {
    int64_t ndim, sizes[GRD_MAX_DIMS], strides[GRD_MAX_DIMS];
    char kind;
    int64_t itemsize;
    bool native, writable;
    void *data;
    PyObject *owner; /* borrowed; object that keeps the memory alive */
};

bool py_is_array(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    if (type == &PyList_Type || type == &PyTuple_Type || type == &PyFloat_Type || type == &PyLong_Type || type == &PyUnicode_Type)
        return false;
    return PyObject_HasAttrString((PyObject *)type, "__array_struct__") || PyObject_HasAttrString(object, "__array_interface__");
}

static grd_dtype dtype_of_array(const struct array *a)
{
    static const struct {
        char kind;
        int8_t itemsize;
        uint8_t dtype;
    } table[] = {{'f', 8, GRD_FLOAT64}, {'f', 4, GRD_FLOAT32}, {'f', 2, GRD_FLOAT16},   {'i', 8, GRD_INT64},      {'i', 4, GRD_INT32},
                 {'i', 2, GRD_INT16},   {'i', 1, GRD_INT8},    {'u', 8, GRD_UINT64},    {'u', 4, GRD_UINT32},     {'u', 2, GRD_UINT16},
                 {'u', 1, GRD_UINT8},   {'b', 1, GRD_BOOL},    {'c', 8, GRD_COMPLEX64}, {'c', 16, GRD_COMPLEX128}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].kind == a->kind && table[i].itemsize == a->itemsize)
            return (grd_dtype)table[i].dtype;
    return GRD_DTYPE_NONE;
}

static bool too_many_dims(int64_t ndim)
{
    if (ndim >= 0 && ndim <= GRD_MAX_DIMS)
        return false;
    PyErr_Format(PyExc_ValueError, "an array of %lld dimensions, the limit is %d", (long long)ndim, GRD_MAX_DIMS);
    return true;
}

/* Reads the struct array_struct that `capsule` points to. The capsule becomes ret_array->owner, because for a NumPy scalar nothing else keeps the
 * memory alive. Returns false with ValueError if the struct is invalid. */
static bool read_struct(PyObject *capsule, struct array *ret_array)
{
    const struct array_struct *s = PyCapsule_CheckExact(capsule) ? PyCapsule_GetPointer(capsule, NULL) : NULL;
    if (s == NULL || s->two != 2) {
        PyErr_SetString(PyExc_ValueError, "invalid __array_struct__");
        return false;
    }
    if (too_many_dims(s->ndim))
        return false;
    *ret_array = (struct array){.ndim = s->ndim,
                                .kind = s->kind,
                                .itemsize = s->itemsize,
                                .native = (s->flags & ARRAY_NATIVE) != 0,
                                .writable = (s->flags & ARRAY_WRITABLE) != 0,
                                .data = s->data,
                                .owner = capsule};
    for (int i = 0; i < s->ndim; i++) {
        ret_array->sizes[i] = s->sizes[i];
        ret_array->strides[i] = s->strides[i];
    }
    return true;
}

/* Reads the entry 'typestr' of __array_interface__ into `a`, e.g. "<f4": byte order, kind and size in bytes. Returns false with ValueError if it
 * is invalid. */
static bool read_type(PyObject *text, struct array *a)
{
    const char *type = text != NULL && PyUnicode_Check(text) ? PyUnicode_AsUTF8(text) : NULL;
    if (type == NULL || strlen(type) < 3) {
        PyErr_SetString(PyExc_ValueError, "invalid 'typestr' in __array_interface__");
        return false;
    }
    const bool little = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
    a->kind = type[1];
    a->itemsize = strtol(type + 2, NULL, 10);
    a->native = type[0] == '|' || type[0] == (little ? '<' : '>') || a->itemsize == 1;
    return true;
}

/* Reads the entry 'data' of __array_interface__, the pair (address, read-only flag), into `a`. Returns false with an exception if it is invalid. */
static bool read_pointer(PyObject *pair, struct array *a)
{
    int read_only;
    if (pair == NULL || !PyTuple_Check(pair) || PyTuple_GET_SIZE(pair) != 2) {
        PyErr_SetString(PyExc_ValueError, "__array_interface__ without 'data' as a pair of an address and a flag");
        return false;
    }
    a->data = PyLong_AsVoidPtr(PyTuple_GET_ITEM(pair, 0));
    read_only = PyObject_IsTrue(PyTuple_GET_ITEM(pair, 1));
    a->writable = read_only == 0;
    return read_only >= 0 && !PyErr_Occurred();
}

/* Reads the entries 'shape' and 'strides' of __array_interface__ into `a`. Without strides the array is contiguous. Returns false with an
 * exception if they are invalid. */
static bool read_geometry(PyObject *shape, PyObject *strides, struct array *a)
{
    int64_t n = 0;
    if (shape == NULL || !py_as_dims("__array_interface__", "shape", shape, a->sizes, &a->ndim))
        return false;
    if (strides != NULL && strides != Py_None) {
        if (!py_as_dims("__array_interface__", "strides", strides, a->strides, &n))
            return false;
        if (n == a->ndim)
            return true;
        PyErr_SetString(PyExc_ValueError, "'shape' and 'strides' of __array_interface__ are of different lengths");
        return false;
    }
    py_contiguous_strides(grd_dims_from(a->sizes, a->ndim), a->itemsize, a->strides);
    return true;
}

/* Reads the dict __array_interface__ of `owner`. Returns false with ValueError if it is invalid. */
static bool read_interface(PyObject *dict, PyObject *owner, struct array *ret_array)
{
    *ret_array = (struct array){.owner = owner};
    if (!PyDict_Check(dict)) {
        PyErr_SetString(PyExc_ValueError, "__array_interface__ is not a dict");
        return false;
    }
    PyObject *shape = PyDict_GetItemString(dict, "shape");
    if (shape == NULL) {
        PyErr_SetString(PyExc_ValueError, "__array_interface__ without 'shape'");
        return false;
    }
    return read_type(PyDict_GetItemString(dict, "typestr"), ret_array) && read_pointer(PyDict_GetItemString(dict, "data"), ret_array) &&
           read_geometry(shape, PyDict_GetItemString(dict, "strides"), ret_array);
}

static grd_tensor *refuse_type(PyObject *object)
{
    PyObject *dtype = PyObject_GetAttrString(object, "dtype"), *type = dtype != NULL ? PyObject_GetAttrString(dtype, "type") : NULL;
    PyErr_Clear();
    PyErr_Format(
        PyExc_TypeError,
        "can't convert np.ndarray of type %s. The only supported types are: float64, float32, float16, complex64, complex128, int64, "
        "int32, int16, int8, uint64, uint32, uint16, uint8, and bool.",
        type != NULL && PyType_Check(type) ? ((PyTypeObject *)type)->tp_name : Py_TYPE(object)->tp_name);
    Py_XDECREF(type);
    Py_XDECREF(dtype);
    return NULL;
}

/* Returns a tensor over the memory that `a` describes, or NULL on failure. The tensor owns a reference to a->owner. `object` is the Python array,
 * whose type the error message names. */
static grd_tensor *over_array(PyObject *object, struct array *a)
{
    const grd_dtype dtype = dtype_of_array(a);
    if (dtype == GRD_DTYPE_NONE)
        return refuse_type(object);
    if (!a->native) {
        PyErr_SetString(PyExc_ValueError,
                        "given numpy array has byte order different from the native byte order. Conversion between byte orders "
                        "is currently not supported.");
        return NULL;
    }
    for (int64_t i = 0; i < a->ndim; i++) {
        if (a->sizes[i] > 1 && a->strides[i] % a->itemsize != 0) {
            PyErr_SetString(PyExc_ValueError, "given numpy array strides not a multiple of the element byte size. Copy the numpy array to "
                                              "reallocate the memory.");
            return NULL;
        }
        a->strides[i] /= a->itemsize;
    }
    Py_INCREF(a->owner);
    return py_over_memory(a->data, grd_dims_from(a->sizes, a->ndim), grd_dims_from(a->strides, a->ndim), dtype, py_release_object,
                          a->owner);
}

grd_tensor *py_over_array(PyObject *object, bool *ret_writable)
{
    struct array a;
    PyObject *capsule = PyObject_GetAttrString(object, "__array_struct__");
    if (capsule == NULL)
        PyErr_Clear();
    PyObject *dict = capsule == NULL ? PyObject_GetAttrString(object, "__array_interface__") : NULL;
    grd_tensor *t = NULL;
    if (capsule != NULL ? read_struct(capsule, &a) : dict != NULL && read_interface(dict, object, &a)) {
        *ret_writable = a.writable;
        t = over_array(object, &a);
    }
    Py_XDECREF(dict);
    Py_XDECREF(capsule);
    return t;
}

/* ---- Tensors over buffers ---------------------------------------------------------------------------------------- */

static void release_buffer(void *context)
{
    if (!Py_IsInitialized())
        return;
    const PyGILState_STATE state = PyGILState_Ensure();
    PyBuffer_Release(context);
    PyMem_Free(context);
    PyGILState_Release(state);
}

/* Returns the number of elements that the tensor over the buffer gets; -1 with ValueError if `count` or `offset` does not fit the buffer. */
static int64_t count_elements(const Py_buffer *view, int64_t itemsize, Py_ssize_t count, Py_ssize_t offset)
{
    const long long length = view->len, wanted = count, start = offset, size = itemsize;
    if (length == 0 || count == 0) {
        PyErr_Format(PyExc_ValueError, "both buffer length (%lld) and count (%lld) must not be 0", length, wanted);
        return -1;
    }
    if (offset < 0 || offset >= view->len) {
        PyErr_Format(PyExc_ValueError, "offset (%lld bytes) must be non-negative and no greater than buffer length (%lld bytes) minus 1",
                     start, length);
        return -1;
    }
    if (count < 0 && (length - start) % size != 0) {
        PyErr_Format(PyExc_ValueError, "buffer length (%lld bytes) after offset (%lld bytes) must be a multiple of element size (%lld)",
                     length - start, start, size);
        return -1;
    }
    if (count > 0 && wanted > (length - start) / size) {
        PyErr_Format(
            PyExc_ValueError,
            "requested buffer length (%lld * %lld bytes) after offset (%lld bytes) must not be greater than actual buffer length (%lld "
            "bytes)",
            wanted, size, start, length);
        return -1;
    }
    return count > 0 ? count : (length - start) / size;
}

grd_tensor *py_over_buffer(PyObject *object, grd_dtype dtype, Py_ssize_t count, Py_ssize_t offset)
{
    if (!PyObject_CheckBuffer(object)) {
        PyErr_SetString(PyExc_ValueError, "object does not implement Python buffer protocol.");
        return NULL;
    }
    Py_buffer *view = PyMem_Malloc(sizeof *view);
    if (view == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    bool writable = PyObject_GetBuffer(object, view, PyBUF_WRITABLE) == 0;
    if (!writable) {
        PyErr_Clear();
        if (PyObject_GetBuffer(object, view, PyBUF_SIMPLE) < 0) {
            PyMem_Free(view);
            return NULL;
        }
        writable = !view->readonly;
    }
    const int64_t n = writable || py_warn_not_writable("buffer") ? count_elements(view, grd_dtype_size(dtype), count, offset) : -1;
    if (n < 0) {
        release_buffer(view);
        return NULL;
    }
    return py_over_memory((char *)view->buf + offset, grd_dims(n), grd_dims(1), dtype, release_buffer, view);
}

/* ---- Tensors as buffers ------------------------------------------------------------------------------------------ */

/* Returns the format character of a dtype in the notation of the struct module; NULL if there is none. */
static const char *format_of(grd_dtype dtype)
{
    static const char *const formats[GRD_DTYPE_COUNT] = {
        [GRD_BOOL] = "?",
        [GRD_UINT8] = "B",
        [GRD_INT8] = "b",
        [GRD_UINT16] = "H",
        [GRD_INT16] = "h",
        [GRD_UINT32] = "I",
        [GRD_INT32] = "i",
        [GRD_FLOAT16] = "e",
        [GRD_FLOAT32] = "f",
        [GRD_FLOAT64] = "d",
        [GRD_COMPLEX64] = "Zf",
        [GRD_COMPLEX128] = "Zd",
        [GRD_UINT64] = sizeof(long) == 8 ? "L" : "Q",
        [GRD_INT64] = sizeof(long) == 8 ? "l" : "q",
    };
    return formats[dtype];
}

bool py_has_buffer_format(grd_dtype dtype)
{
    return format_of(dtype) != NULL;
}

/* Struct that Py_buffer.internal points to: an owned reference to the tensor, followed by the sizes and strides that the Py_buffer points to. */
struct exported {
    grd_tensor *tensor;
    Py_ssize_t dims[];
};

/* True if the tensor is contiguous in column-major (Fortran) order, in which the first dimension has stride 1. */
static bool is_column_major(const grd_tensor *t)
{
    const grd_dims sizes = grd_sizes(t), strides = grd_strides(t);
    int64_t stride = 1;
    for (int64_t i = 0; i < sizes.n; i++) {
        if (sizes.data[i] != 1 && strides.data[i] != stride)
            return grd_numel(t) == 0;
        stride *= sizes.data[i];
    }
    return true;
}

static bool has_flags(int flags, int wish)
{
    return (flags & wish) == wish;
}

/* True if the tensor is contiguous in the order that the flags of the buffer request demand. */
static bool has_wanted_contiguity(const grd_tensor *t, int flags)
{
    const bool rows = grd_is_contiguous(t), columns = is_column_major(t);
    if (!has_flags(flags, PyBUF_STRIDES) || has_flags(flags, PyBUF_C_CONTIGUOUS))
        return rows;
    return has_flags(flags, PyBUF_F_CONTIGUOUS) ? columns : !has_flags(flags, PyBUF_ANY_CONTIGUOUS) || rows || columns;
}

static bool can_export(const grd_tensor *t, int flags)
{
    if (grd_requires_grad(t))
        PyErr_SetString(PyExc_BufferError, "Can't export tensors that require gradient, use tensor.detach()");
    else if (grd_is_batched(t))
        PyErr_SetString(PyExc_RuntimeError, "Cannot access data pointer of Tensor that doesn't have storage");
    else if (grd_tensor_device(t).type != GRD_DEVICE_CPU)
        PyErr_Format(PyExc_BufferError, "a tensor on device %s has no buffer", grd_device_name(grd_tensor_device(t)));
    else if (grd_is_conj(t) || grd_is_neg(t))
        PyErr_SetString(PyExc_BufferError,
                        "a tensor with the conjugate or negative bit has no buffer; use tensor.resolve_conj() or tensor.resolve_neg()");
    else if (format_of(grd_tensor_dtype(t)) == NULL)
        PyErr_Format(PyExc_BufferError, "the buffer protocol has no format for %s", grd_dtype_name(grd_tensor_dtype(t)));
    else if (!has_wanted_contiguity(t, flags))
        PyErr_SetString(PyExc_BufferError, "the tensor is not contiguous");
    else
        return true;
    return false;
}

int py_tensor_get_buffer(PyObject *self, Py_buffer *view, int flags)
{
    grd_tensor *t = py_tensor_of(self);
    view->obj = NULL;
    if (PY_UNLIKELY(py_is_overloaded(self))) { /* after this error NumPy calls __array__, which __torch_function__ can take over */
        PyErr_SetString(PyExc_BufferError, "the memory of a tensor cannot be read while its class or an active mode overrides operators");
        return -1;
    }
    if (!can_export(t, flags))
        return -1;
    const grd_dims sizes = grd_sizes(t), strides = grd_strides(t);
    struct exported *e = PyMem_Malloc(sizeof *e + 2 * (size_t)sizes.n * sizeof *e->dims);
    if (e == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    const grd_scope scope = grd_scope_open();
    e->tensor = grd_keep(grd_detach(t));
    if (!grd_ok()) {
        PyMem_Free(e);
        py_abandon(scope);
        return -1;
    }
    grd_scope_close(scope);
    const int64_t itemsize = grd_dtype_size(grd_tensor_dtype(t));
    for (int64_t i = 0; i < sizes.n; i++) {
        e->dims[i] = (Py_ssize_t)sizes.data[i];
        e->dims[sizes.n + i] = (Py_ssize_t)(strides.data[i] * itemsize);
    }
    *view = (Py_buffer){
        .buf = grd_data(t),
        .obj = self,
        .len = (Py_ssize_t)(grd_numel(t) * itemsize),
        .itemsize = (Py_ssize_t)itemsize,
        .ndim = (int)sizes.n,
        .format = has_flags(flags, PyBUF_FORMAT) ? (char *)(uintptr_t)format_of(grd_tensor_dtype(t)) : NULL,
        .shape = has_flags(flags, PyBUF_ND) ? e->dims : NULL,
        .strides = has_flags(flags, PyBUF_STRIDES) ? e->dims + sizes.n : NULL,
        .internal = e,
    };
    Py_INCREF(self);
    return 0;
}

void py_tensor_release_buffer(PyObject *self, Py_buffer *view)
{
    struct exported *e = view->internal;
    (void)self;
    grd_drop(e->tensor);
    PyMem_Free(e);
}

/* ---- Functions --------------------------------------------------------------------------------------------------- */

static const struct py_param frombuffer_params[] = {
    {"buffer", PY_KIND_OBJECT, 0, NULL},
    {"dtype", GRD_KIND_DTYPE, PY_NONE | PY_KEYWORD, NULL},
    {"count", GRD_KIND_INT, PY_OPTIONAL | PY_KEYWORD, "-1"},
    {"offset", GRD_KIND_INT, PY_OPTIONAL | PY_KEYWORD, "0"},
    {"requires_grad", GRD_KIND_BOOL, PY_OPTIONAL | PY_KEYWORD, "False"},
};
static const struct py_signature frombuffer_signature = {.params = frombuffer_params, .nparams = 5, .positional = 1};
static const struct py_function frombuffer_function = {.name = "frombuffer", .signatures = &frombuffer_signature, .nsignatures = 1};

static PyObject *frombuffer(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    struct py_arguments arguments;
    if (!py_parse(&frombuffer_function, NULL, args, nargs, names, &arguments))
        return NULL;
    PyObject *buffer = arguments.objects[0];
    const grd_dtype dtype = py_dtype_or(&arguments, 1, grd_default_dtype());
    const Py_ssize_t count = (Py_ssize_t)py_int_or(&arguments, 2, -1), offset = (Py_ssize_t)py_int_or(&arguments, 3, 0);
    const bool requires_grad = py_bool_or(&arguments, 4, false);
    py_arguments_done(&arguments);
    const grd_scope scope = grd_scope_open();
    grd_tensor *t = py_over_buffer(buffer, dtype, count, offset);
    if (t == NULL)
        return py_abandon(scope);
    return py_take(scope, requires_grad ? grd_set_requires_grad(t, true) : t);
}

PyMethodDef py_buffer_functions[] = {
    PY_ENTRY("frombuffer", frombuffer,
             "frombuffer(buffer, *, dtype, count=-1, offset=0, requires_grad=False)\n--\n\n"
             "A 1-d tensor over the memory of an object with the buffer protocol, which it keeps alive."),
    {0},
};
