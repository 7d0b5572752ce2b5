/* Implements the class torch.UntypedStorage, the memory that tensors share.
 *
 * A storage object owns a detached uint8 tensor over all bytes of the storage. There is at most one Python object for each storage, because pickling
 * and copying find out by object identity which tensors share memory. */
#include "storage.h"
#include "add_type.h"
#include "device.h"
#include "errors.h"
#include "from_sequence.h"
#include "index.h"
#include "override.h"
#include "parse.h"
#include "scalar.h"
#include "tables.h"

#include <structmember.h>

#include "gradus/ops/clone.h"
#include "gradus/ops/copy.h"
#include "gradus/ops/detach.h"
#include "gradus/ops/empty.h"

typedef struct py_storage {
    PyObject_HEAD grd_tensor *bytes; /* owned 1-d uint8 tensor over all bytes of the storage */
    PyObject *weakrefs;
} py_storage;

static PyTypeObject *storage_type;
static PyObject *storages; /* dict from the address of a storage to the address of its Python object; it owns no reference to that object */

static grd_tensor *bytes_of(PyObject *self)
{
    return ((py_storage *)self)->bytes;
}

grd_tensor *py_storage_bytes(PyObject *object)
{
    return PyObject_TypeCheck(object, storage_type) ? bytes_of(object) : NULL;
}

grd_tensor *py_storage_argument(const char *function, PyObject *object)
{
    grd_tensor *bytes = py_storage_bytes(object);
    if (bytes == NULL)
        PyErr_Format(PyExc_TypeError, "%s(): argument 'storage' must be UntypedStorage, not %s", function, Py_TYPE(object)->tp_name);
    return bytes;
}

/* ---- The object of a storage ------------------------------------------------------------------------------------- */

static PyObject *identity_of(const grd_tensor *t)
{
    return PyLong_FromVoidPtr((void *)(uintptr_t)grd_storage_identity(t));
}

/* Returns a new reference to the Python object of the storage with address `identity`. Returns NULL, without an exception, if there is none. */
static PyObject *find_object(PyObject *identity)
{
    PyObject *address = PyDict_GetItemWithError(storages, identity);
    PyObject *object = address != NULL ? PyLong_AsVoidPtr(address) : NULL;
    Py_XINCREF(object);
    return object;
}

static PyObject *make_object(PyObject *identity, grd_tensor *t)
{
    const grd_scope scope = grd_scope_open();
    grd_tensor *bytes = grd_from_storage(t, grd_dims(grd_storage_bytes(t)), grd_dims(1), 0, GRD_UINT8);
    py_storage *self = grd_ok() ? (py_storage *)storage_type->tp_alloc(storage_type, 0) : NULL;
    if (self == NULL)
        return py_abandon(scope);
    self->bytes = grd_keep(bytes);
    grd_scope_close(scope);
    PyObject *address = PyLong_FromVoidPtr(self);
    const bool ok = address != NULL && PyDict_SetItem(storages, identity, address) == 0;
    Py_XDECREF(address);
    if (ok)
        return (PyObject *)self;
    Py_DECREF(self);
    return NULL;
}

/* Returns a new reference to the storage object of `t`, which is created if there is none yet. */
static PyObject *storage_of(grd_tensor *t)
{
    PyObject *identity = identity_of(t), *object = identity != NULL ? find_object(identity) : NULL;
    if (object == NULL && identity != NULL && !PyErr_Occurred())
        object = make_object(identity, t);
    Py_XDECREF(identity);
    return object;
}

PyObject *py_take_storage(grd_scope scope, grd_tensor *t)
{
    PyObject *object = t != NULL && grd_ok() ? storage_of(t) : NULL;
    if (object == NULL)
        return py_abandon(scope);
    grd_scope_close(scope);
    return object;
}

bool py_storage_fit(PyObject *object)
{
    py_storage *self = (py_storage *)object;
    const grd_scope scope = grd_scope_open();
    grd_tensor *bytes = grd_from_storage(self->bytes, grd_dims(grd_storage_bytes(self->bytes)), grd_dims(1), 0, GRD_UINT8);
    if (grd_ok()) {
        grd_drop(self->bytes);
        self->bytes = grd_keep(bytes);
    }
    grd_scope_close(scope);
    return grd_ok();
}

static void storage_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    py_storage *storage = (py_storage *)self;
    if (storage->weakrefs != NULL)
        PyObject_ClearWeakRefs(self);
    if (storage->bytes != NULL) {
        PyObject *error_type, *error, *traceback;
        PyErr_Fetch(&error_type, &error, &traceback);
        PyObject *identity = identity_of(storage->bytes);
        if (identity == NULL || PyDict_DelItem(storages, identity) < 0)
            PyErr_Clear();
        Py_XDECREF(identity);
        PyErr_Restore(error_type, error, traceback);
        grd_drop(storage->bytes);
    }
    type->tp_free(self);
    Py_DECREF(type);
}

/* ---- Constructors ------------------------------------------------------------------------------------------------ */

/* Returns a new storage of `size` bytes if `size` is an integer, or with the bytes in `size` if that is a sequence. */
static PyObject *make_storage(PyObject *size, grd_device device)
{
    int64_t nbytes = 0;
    const bool is_list = size != NULL && PySequence_Check(size) && !PyUnicode_Check(size);
    const int is_int = size != NULL && !is_list ? py_as_int(size, &nbytes) : 1;
    if (is_int <= 0)
        return is_int < 0
                   ? NULL
                   : PyErr_Format(PyExc_TypeError, "torch.UntypedStorage(): Expected a sequence type, but got %s", Py_TYPE(size)->tp_name);
    const grd_scope scope = grd_scope_open();
    grd_tensor *bytes = is_list ? py_from_sequence(size, GRD_UINT8) : grd_empty(grd_dims(nbytes), .dtype = GRD_UINT8, .device = device);
    return py_take_storage(scope, bytes);
}

static const struct py_param new_params[] = {{"nbytes", PY_KIND_OBJECT, 0, NULL},
                                             {"device", GRD_KIND_DEVICE, PY_OPTIONAL | PY_NONE, "None"}};
static const struct py_signature new_signature = {.params = new_params, .nparams = 2, .positional = 2};
static const struct py_function new_function = {.name = "_new_storage", .signatures = &new_signature, .nsignatures = 1};

static PyObject *new_storage(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    struct py_arguments arguments;
    if (!py_parse(&new_function, NULL, args, nargs, names, &arguments))
        return NULL;
    PyObject *result = make_storage(arguments.objects[0], py_device_or(&arguments, 1, (grd_device){0}));
    py_arguments_done(&arguments);
    return result;
}

static const struct py_param class_params[] = {{"size", PY_KIND_OBJECT, PY_OPTIONAL, "0"}, {"device", GRD_KIND_DEVICE, PY_OPTION, "None"}};
static const struct py_signature class_signature = {.params = class_params, .nparams = 2, .positional = 1};
static const struct py_function class_function = {.name = "UntypedStorage", .signatures = &class_signature, .nsignatures = 1};

static PyObject *storage_new(PyTypeObject *Py_UNUSED(type), PyObject *args, PyObject *keywords)
{
    struct py_arguments arguments;
    if (!py_parse_tuple(&class_function, args, keywords, &arguments))
        return NULL;
    PyObject *result = make_storage(arguments.objects[0], py_device_or(&arguments, 1, (grd_device){0}));
    py_arguments_done(&arguments);
    return result;
}

static const struct py_param from_params[] = {
    {"storage", PY_KIND_OBJECT, 0, NULL}, {"offset", GRD_KIND_INT, 0, NULL},  {"size", PY_KIND_OBJECT, 0, NULL},
    {"stride", PY_KIND_OBJECT, 0, NULL},  {"dtype", GRD_KIND_DTYPE, 0, NULL},
};
static const struct py_signature from_signature = {.params = from_params, .nparams = 5, .positional = 5};
static const struct py_function from_function = {.name = "_from_storage", .signatures = &from_signature, .nsignatures = 1};

/* _from_storage(storage, offset, size, stride, dtype) in Python: returns a tensor over the storage. Offset and strides are in elements. */
static PyObject *from_storage(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    struct py_arguments arguments;
    int64_t sizes[GRD_MAX_DIMS], strides[GRD_MAX_DIMS], nsizes, nstrides;
    if (!py_parse(&from_function, NULL, args, nargs, names, &arguments))
        return NULL;
    PyObject *const *objects = arguments.objects;
    const int64_t offset = arguments.values[1].v.integer;
    const grd_dtype dtype = arguments.values[4].v.dtype;
    grd_tensor *bytes = py_storage_argument("_from_storage", objects[0]);
    const bool ok = bytes != NULL && py_as_dims("_from_storage", "size", objects[2], sizes, &nsizes) &&
                    py_as_dims("_from_storage", "stride", objects[3], strides, &nstrides);
    py_arguments_done(&arguments);
    if (!ok)
        return NULL;
    const grd_scope scope = grd_scope_open();
    return py_take(scope, grd_from_storage(bytes, grd_dims_from(sizes, nsizes), grd_dims_from(strides, nstrides), offset, dtype));
}

static PyObject *untyped_storage(PyObject *self, PyObject *unused)
{
    if (PY_UNLIKELY(py_is_overloaded(self)))
        return py_override(self, "untyped_storage", NULL, 0, NULL);
    (void)unused;
    return storage_of(py_tensor_of(self));
}

/* ---- The object -------------------------------------------------------------------------------------------------- */

static Py_ssize_t storage_length(PyObject *self)
{
    return (Py_ssize_t)grd_numel(bytes_of(self));
}

static PyObject *storage_nbytes(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyLong_FromSsize_t(storage_length(self));
}

static PyObject *storage_data_ptr(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyLong_FromVoidPtr(grd_data(bytes_of(self)));
}

static PyObject *storage_element_size(PyObject *self, PyObject *unused)
{
    (void)self;
    (void)unused;
    return PyLong_FromLong(1);
}

/* Returns a new uint8 tensor object over all bytes of the storage. */
static PyObject *storage_tensor(PyObject *self)
{
    const grd_scope scope = grd_scope_open();
    return py_take(scope, grd_detach(bytes_of(self)));
}

static PyObject *storage_bytes(PyObject *self)
{
    PyObject *tensor = storage_tensor(self), *bytes = tensor != NULL ? PyBytes_FromObject(tensor) : NULL;
    Py_XDECREF(tensor);
    return bytes;
}

static PyObject *storage_tolist(PyObject *self, PyObject *unused)
{
    (void)unused;
    PyObject *bytes = storage_bytes(self), *list = bytes != NULL ? PySequence_List(bytes) : NULL;
    Py_XDECREF(bytes);
    return list;
}

static PyObject *storage_clone(PyObject *self, PyObject *unused)
{
    (void)unused;
    const grd_scope scope = grd_scope_open();
    return py_take_storage(scope, grd_clone(bytes_of(self)));
}

/* Implements copy.deepcopy. `memo` maps id(object) to the copies made so far. */
static PyObject *storage_deepcopy(PyObject *self, PyObject *memo)
{
    PyObject *key = PyLong_FromVoidPtr(self), *copy = NULL;
    if (key != NULL && PyDict_Check(memo))
        copy = PyDict_GetItemWithError(memo, key);
    Py_XINCREF(copy);
    if (key != NULL && copy == NULL && !PyErr_Occurred()) {
        copy = storage_clone(self, NULL);
        if (copy != NULL && PyDict_Check(memo) && PyDict_SetItem(memo, key, copy) < 0)
            Py_CLEAR(copy);
    }
    Py_XDECREF(key);
    return copy;
}

static PyObject *storage_copy_(PyObject *self, PyObject *source)
{
    grd_tensor *bytes = py_storage_bytes(source);
    if (bytes == NULL)
        return PyErr_Format(PyExc_TypeError, "copy_(): argument 'src' (position 1) must be torch.Storage, not %s",
                            Py_TYPE(source)->tp_name);
    if (grd_numel(bytes) != grd_numel(bytes_of(self)))
        return PyErr_Format(PyExc_RuntimeError, "size does not match, self was %lld bytes but src was %lld bytes",
                            (long long)grd_numel(bytes_of(self)), (long long)grd_numel(bytes));
    const grd_scope scope = grd_scope_open();
    grd_copy_(bytes_of(self), bytes);
    PyObject *result = py_leave(scope);
    if (result == NULL)
        return NULL;
    Py_DECREF(result);
    Py_INCREF(self);
    return self;
}

/* Returns the function `name` of gradus._utils; NULL with an exception. */
static PyObject *find_helper(const char *name)
{
    PyObject *module = PyImport_ImportModule("gradus._utils");
    PyObject *helper = module != NULL ? PyObject_GetAttrString(module, name) : NULL;
    Py_XDECREF(module);
    return helper;
}

static PyObject *storage_untyped(PyObject *self, PyObject *Py_UNUSED(unused))
{
    return Py_NewRef(self);
}

/* Implements pickling by a copy of the bytes. Tensors that share the storage refer to one object, so they still share memory after unpickling. */
static PyObject *storage_reduce(PyObject *self, PyObject *protocol)
{
    (void)protocol;
    PyObject *rebuild = find_helper("_rebuild_storage"), *bytes = rebuild != NULL ? storage_bytes(self) : NULL;
    PyObject *result = bytes != NULL ? Py_BuildValue("(O(O))", rebuild, bytes) : NULL;
    Py_XDECREF(bytes);
    Py_XDECREF(rebuild);
    return result;
}

/* True if `index` is a slice or an int in range. Otherwise returns false with TypeError or IndexError. */
static bool accept_index(PyObject *self, PyObject *index)
{
    const Py_ssize_t length = storage_length(self);
    if (PySlice_Check(index))
        return true;
    int64_t at;
    const int is_int = py_as_int(index, &at);
    if (is_int == 0)
        PyErr_Format(PyExc_TypeError, "can't index a torch.UntypedStorage with %s", Py_TYPE(index)->tp_name);
    else if (is_int > 0 && (at < -length || at >= length))
        PyErr_Format(PyExc_IndexError, "index %lld out of range for storage of size %zd", (long long)at, length);
    else
        return is_int > 0;
    return false;
}

static void drop_tensor(void *context)
{
    grd_drop(context);
}

/* Returns a uint8 tensor over `length` bytes of `bytes` from byte `start`. The result owns a further tensor over the storage of `bytes`.
 * Python code cannot reach this further tensor. While it exists, the storage cannot be resized, so the memory of the result stays valid. */
static grd_tensor *part_of(grd_tensor *bytes, Py_ssize_t start, Py_ssize_t length)
{
    if (length == 0 || grd_tensor_device(bytes).type != GRD_DEVICE_CPU)
        return grd_empty(grd_dims(length), .dtype = GRD_UINT8, .device = grd_tensor_device(bytes));
    grd_tensor *kept = grd_keep(grd_detach(bytes));
    grd_tensor *part = grd_from_memory((char *)grd_data(kept) + start, grd_dims(length), grd_dims(1), 0, GRD_UINT8, drop_tensor, kept);
    if (!grd_ok())
        grd_drop(kept);
    return part;
}

static PyObject *storage_slice(PyObject *self, PyObject *slice)
{
    Py_ssize_t start, stop, step;
    if (PySlice_Unpack(slice, &start, &stop, &step) < 0)
        return NULL;
    const Py_ssize_t length = PySlice_AdjustIndices(storage_length(self), &start, &stop, step);
    if (step != 1)
        return PyErr_Format(PyExc_RuntimeError, "Trying to slice with a step of %zd, but only a step of 1 is supported", step);
    const grd_scope scope = grd_scope_open();
    return py_take_storage(scope, part_of(bytes_of(self), start, length));
}

/* Implements storage[index]: returns an int for an integer index, and a storage over the same memory for a slice. */
static PyObject *storage_get_item(PyObject *self, PyObject *index)
{
    if (PySlice_Check(index))
        return storage_slice(self, index);
    PyObject *tensor = accept_index(self, index) ? storage_tensor(self) : NULL, *item = tensor != NULL ? py_get_item(tensor, index) : NULL;
    PyObject *result = NULL;
    if (item != NULL) {
        const grd_scalar value = grd_item(py_tensor_of(item));
        result = grd_ok() ? py_from_scalar(value) : py_raise();
    }
    Py_XDECREF(item);
    Py_XDECREF(tensor);
    return result;
}

static int storage_set_item(PyObject *self, PyObject *index, PyObject *value)
{
    if (!accept_index(self, index))
        return -1;
    PyObject *tensor = storage_tensor(self);
    const int result = tensor != NULL ? py_set_item(tensor, index, value) : -1;
    Py_XDECREF(tensor);
    return result;
}

/* Exports the bytes of the storage as a buffer. The buffer keeps the storage alive through a tensor over it. */
static int storage_get_buffer(PyObject *self, Py_buffer *view, int flags)
{
    PyObject *tensor = storage_tensor(self);
    view->obj = NULL;
    const int result = tensor != NULL ? PyObject_GetBuffer(tensor, view, flags) : -1;
    Py_XDECREF(tensor);
    return result;
}

static PyObject *storage_device(PyObject *self, void *unused)
{
    (void)unused;
    return py_device(grd_tensor_device(bytes_of(self)));
}

static PyObject *storage_cdata(PyObject *self, void *unused)
{
    (void)unused;
    return identity_of(bytes_of(self));
}

static PyMethodDef storage_methods[] = {
    {"nbytes", storage_nbytes, METH_NOARGS, "nbytes($self)\n--\n\nThe number of bytes."},
    {"size", storage_nbytes, METH_NOARGS, "size($self)\n--\n\nThe number of bytes."},
    {"data_ptr", storage_data_ptr, METH_NOARGS, "data_ptr($self)\n--\n\nThe address of the first byte."},
    {"element_size", storage_element_size, METH_NOARGS, "element_size($self)\n--\n\nOne: a storage has bytes."},
    {"tolist", storage_tolist, METH_NOARGS, "tolist($self)\n--\n\nThe bytes as a list of integers."},
    {"clone", storage_clone, METH_NOARGS, "clone($self)\n--\n\nA copy."},
    {"untyped", storage_untyped, METH_NOARGS, "untyped($self)\n--\n\nThe storage itself, whose elements are bytes already."},
    {"copy_", storage_copy_, METH_O, "copy_($self, source)\n--\n\nWrites the bytes of another storage of the same size."},
    {"__copy__", storage_clone, METH_NOARGS, NULL},
    {"__deepcopy__", storage_deepcopy, METH_O, NULL},
    {"__reduce_ex__", storage_reduce, METH_O, NULL},
    {0},
};

static PyGetSetDef storage_properties[] = {
    {"device", storage_device, NULL, "The device that the bytes lie on.", NULL},
    {"_cdata", storage_cdata, NULL, "A number that identifies the storage.", NULL},
    {0},
};

static PyMemberDef storage_members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(py_storage, weakrefs), READONLY, NULL},
    {0},
};

static PyType_Slot storage_slots[] = {
    {Py_tp_doc, "UntypedStorage(size=0, *, device=None)\n--\n\nThe bytes that tensors share."},
    {Py_tp_new, storage_new},
    {Py_tp_dealloc, storage_dealloc},
    {Py_tp_methods, storage_methods},
    {Py_tp_getset, storage_properties},
    {Py_tp_members, storage_members},
    {Py_mp_length, storage_length},
    {Py_sq_length, storage_length},
    {Py_mp_subscript, storage_get_item},
    {Py_mp_ass_subscript, storage_set_item},
    {Py_bf_getbuffer, storage_get_buffer},
    {0, NULL},
};

static PyType_Spec storage_spec = {"gradus.UntypedStorage", sizeof(py_storage), 0, Py_TPFLAGS_DEFAULT, storage_slots};

PyMethodDef py_storage_functions[] = {
    PY_ENTRY("_new_storage", new_storage, "_new_storage(nbytes, device=None)\n--\n\nA storage whose bytes are not set."),
    PY_ENTRY("_from_storage", from_storage,
             "_from_storage(storage, offset, size, stride, dtype)\n--\n\nA tensor over a storage; offset and strides are in elements."),
    {0},
};

PyMethodDef py_storage_methods[] = {
    {"untyped_storage", untyped_storage, METH_NOARGS, "untyped_storage()\n--\n\nThe storage that the elements lie in."},
    {0},
};

bool py_add_storage(PyObject *module)
{
    storages = PyDict_New();
    storage_type = py_add_type(module, &storage_spec, NULL);
    return storages != NULL && storage_type != NULL;
}
