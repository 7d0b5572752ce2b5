/* Replaces the memory of storages, to resize them or to share them with other processes. gradus._tensor_storage and gradus.multiprocessing use these
 * functions.
 *
 * The memory of a storage can be replaced only if all tensors over the storage are known (grd_storage_owned_by). Usually these are only the given
 * tensor, its base and the tensor that the storage object owns. Otherwise all objects that the garbage collector tracks are searched for tensors. */
#include "errors.h"
#include "gil.h"
#include "parse.h"
#include "scalar.h"
#include "storage.h"
#include "tables.h"
#include "tensor_object.h"

struct owners {
    grd_tensor **tensors; /* borrowed */
    int64_t n, room;
    PyObject *kept; /* result of gc.get_objects(), which keeps the found tensors alive; NULL if it was not called */
};

static void owners_done(struct owners *o)
{
    PyMem_Free(o->tensors);
    Py_XDECREF(o->kept);
}

/* Adds `t` to the owners unless it is already there. Returns false with MemoryError. */
static bool add_owner(struct owners *o, grd_tensor *t)
{
    for (int64_t i = 0; i < o->n; i++)
        if (o->tensors[i] == t)
            return true;
    if (o->n == o->room) {
        grd_tensor **larger = PyMem_Realloc(o->tensors, (size_t)(2 * o->room + 8) * sizeof *larger);
        if (larger == NULL) {
            PyErr_NoMemory();
            return false;
        }
        o->tensors = larger;
        o->room = 2 * o->room + 8;
    }
    o->tensors[o->n++] = t;
    return true;
}

static bool add_with_base(struct owners *o, grd_tensor *t)
{
    return add_owner(o, t) && (grd_view_base(t) == NULL || add_owner(o, grd_view_base(t)));
}

/* Searches all objects that the garbage collector tracks for tensors over the storage of o->tensors[0]. Adds each such tensor and its base to `o`.
 * Returns false with an exception. */
static bool add_objects(struct owners *o)
{
    const void *identity = grd_storage_identity(o->tensors[0]);
    PyObject *gc = PyImport_ImportModule("gc");
    o->kept = gc != NULL ? PyObject_CallMethod(gc, "get_objects", NULL) : NULL;
    Py_XDECREF(gc);
    for (Py_ssize_t i = 0; o->kept != NULL && i < PyList_GET_SIZE(o->kept); i++) {
        PyObject *object = PyList_GET_ITEM(o->kept, i);
        if (py_is_tensor(object) && grd_storage_identity(py_tensor_of(object)) == identity && !add_with_base(o, py_tensor_of(object)))
            return false;
    }
    return o->kept != NULL;
}

/* Finds all tensors that use the storage of `bytes`, and stores the list of them in *ret_owners. `tensor` is a Tensor with this storage that the
 * caller knows, or NULL. Returns false with an exception on failure. */
static bool find_owners(grd_tensor *bytes, PyObject *tensor, struct owners *ret_owners)
{
    *ret_owners = (struct owners){0};
    if (add_owner(ret_owners, bytes) && (tensor == NULL || add_with_base(ret_owners, py_tensor_of(tensor))) &&
        (grd_storage_owned_by(ret_owners->tensors, ret_owners->n) || add_objects(ret_owners)))
        return true;
    owners_done(ret_owners);
    return false;
}

/* Ends the change that py_begin_change began, so that other threads may use tensors without the GIL again. Returns None, or raises the library's
 * pending error if `ok` is false. */
static PyObject *end_change(bool ok)
{
    py_end_change();
    if (!ok)
        return py_raise();
    Py_RETURN_NONE;
}

static const struct py_param resize_params[] = {{"storage", PY_KIND_OBJECT, 0, NULL}, {"nbytes", GRD_KIND_INT, 0, NULL}};
static const struct py_signature resize_signature = {.params = resize_params, .nparams = 2, .positional = 2};
static const struct py_function resize_function = {.name = "_resize_storage", .signatures = &resize_signature, .nsignatures = 1};

static PyObject *resize_storage(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    struct py_arguments arguments;
    struct owners owners;
    if (!py_parse(&resize_function, NULL, args, nargs, names, &arguments))
        return NULL;
    PyObject *storage = arguments.objects[0];
    const int64_t bytes = arguments.values[1].v.integer;
    py_arguments_done(&arguments);
    grd_tensor *t = py_storage_argument("_resize_storage", storage);
    if (t == NULL || !find_owners(t, NULL, &owners))
        return NULL;
    py_begin_change();
    PyObject *result = end_change(grd_storage_resize(owners.tensors, owners.n, bytes) && py_storage_fit(storage));
    owners_done(&owners);
    return result;
}

static const struct py_param share_params[] = {
    {"storage", PY_KIND_OBJECT, 0, NULL}, {"name", GRD_KIND_STRING, PY_NONE, NULL}, {"tensor", PY_KIND_OBJECT, PY_OPTIONAL, "None"}};
static const struct py_signature share_signature = {.params = share_params, .nparams = 3, .positional = 3};
static const struct py_function share_function = {.name = "_share_storage", .signatures = &share_signature, .nsignatures = 1};

static PyObject *share_storage(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    struct py_arguments arguments;
    struct owners owners;
    if (!py_parse(&share_function, NULL, args, nargs, names, &arguments))
        return NULL;
    const char *name = arguments.values[1].kind == GRD_KIND_STRING ? arguments.values[1].v.string : NULL;
    PyObject *tensor = arguments.objects[2] != NULL && py_is_tensor(arguments.objects[2]) ? arguments.objects[2] : NULL;
    grd_tensor *t = py_storage_argument("_share_storage", arguments.objects[0]);
    py_arguments_done(&arguments);
    if (t == NULL || !find_owners(t, tensor, &owners))
        return NULL;
    py_begin_change();
    PyObject *result = end_change(grd_share_memory(owners.tensors, owners.n, name));
    owners_done(&owners);
    return result;
}

/* _shared_place(storage) in Python: returns (file descriptor or None, name or None) for a storage in shared memory, and None for any other
 * storage. */
static PyObject *shared_place(PyObject *Py_UNUSED(module), PyObject *storage)
{
    const grd_tensor *t = py_storage_argument("_shared_place", storage);
    if (t == NULL)
        return NULL;
    if (!grd_is_shared(t))
        Py_RETURN_NONE;
    const int descriptor = grd_shared_descriptor(t);
    return descriptor >= 0 ? Py_BuildValue("(iz)", descriptor, grd_shared_name(t)) : Py_BuildValue("(Oz)", Py_None, grd_shared_name(t));
}

static PyObject *announce_shared(PyObject *Py_UNUSED(module), PyObject *storage)
{
    const grd_tensor *t = py_storage_argument("_announce_shared", storage);
    if (t == NULL)
        return NULL;
    grd_shared_announce(t);
    Py_RETURN_NONE;
}

static const struct py_param open_name_params[] = {{"place", GRD_KIND_STRING, 0, NULL}, {"nbytes", GRD_KIND_INT, 0, NULL}};
static const struct py_param open_descriptor_params[] = {{"place", GRD_KIND_INT, 0, NULL}, {"nbytes", GRD_KIND_INT, 0, NULL}};
static const struct py_signature open_signatures[] = {{.params = open_name_params, .nparams = 2, .positional = 2},
                                                      {.params = open_descriptor_params, .nparams = 2, .positional = 2}};
static const struct py_function open_function = {.name = "_open_shared", .signatures = open_signatures, .nsignatures = 2};

/* Returns a storage over the shared memory with the given file descriptor or name. */
static PyObject *open_shared(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    struct py_arguments arguments;
    if (!py_parse(&open_function, NULL, args, nargs, names, &arguments))
        return NULL;
    const grd_value place = arguments.values[0];
    const int64_t bytes = arguments.values[1].v.integer;
    py_arguments_done(&arguments);
    const grd_scope scope = grd_scope_open();
    if (place.kind == GRD_KIND_STRING)
        return py_take_storage(scope, grd_open_shared_name(place.v.string, bytes));
    return py_take_storage(scope, grd_open_shared(place.v.integer == (int)place.v.integer ? (int)place.v.integer : -1, bytes));
}

static const struct py_param map_params[] = {
    {"path", PY_KIND_OBJECT, 0, NULL}, {"shared", GRD_KIND_BOOL, 0, NULL}, {"nbytes", GRD_KIND_INT, 0, NULL}};
static const struct py_signature map_signature = {.params = map_params, .nparams = 3, .positional = 3};
static const struct py_function map_function = {.name = "_map_file", .signatures = &map_signature, .nsignatures = 1};

static PyObject *map_file(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    struct py_arguments arguments;
    PyObject *path;
    if (!py_parse(&map_function, NULL, args, nargs, names, &arguments))
        return NULL;
    const bool shared = arguments.values[1].v.boolean;
    const int64_t bytes = arguments.values[2].v.integer;
    const bool is_path = PyUnicode_FSConverter(arguments.objects[0], &path);
    py_arguments_done(&arguments);
    if (!is_path)
        return NULL;
    const grd_scope scope = grd_scope_open();
    grd_tensor *t = grd_map_file(PyBytes_AS_STRING(path), shared, bytes);
    Py_DECREF(path);
    return py_take_storage(scope, t);
}

static const struct py_param set_params[] = {
    {"tensor", PY_KIND_OBJECT, 0, NULL}, {"storage", PY_KIND_OBJECT, 0, NULL}, {"offset", GRD_KIND_INT, 0, NULL},
    {"size", PY_KIND_OBJECT, 0, NULL},   {"stride", PY_KIND_OBJECT, 0, NULL},
};
static const struct py_signature set_signature = {.params = set_params, .nparams = 5, .positional = 5};
static const struct py_function set_function = {.name = "_set_storage", .signatures = &set_signature, .nsignatures = 1};

/* _set_storage(tensor, storage, offset, size, stride) in Python: replaces the storage, offset, sizes and strides of the tensor. The dtype stays
 * unchanged. */
static PyObject *set_storage(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    struct py_arguments arguments;
    int64_t sizes[GRD_MAX_DIMS], strides[GRD_MAX_DIMS], nsizes, nstrides;
    if (!py_parse(&set_function, NULL, args, nargs, names, &arguments))
        return NULL;
    PyObject *const *objects = arguments.objects;
    PyObject *tensor = objects[0];
    const int64_t offset = arguments.values[2].v.integer;
    grd_tensor *bytes = py_storage_argument("_set_storage", objects[1]);
    const bool ok = bytes != NULL && py_as_dims("_set_storage", "size", objects[3], sizes, &nsizes) &&
                    py_as_dims("_set_storage", "stride", objects[4], strides, &nstrides);
    py_arguments_done(&arguments);
    if (!ok)
        return NULL;
    if (!py_is_tensor(tensor))
        return PyErr_Format(PyExc_TypeError, "_set_storage(): argument 'tensor' must be Tensor, not %s", Py_TYPE(tensor)->tp_name);
    const grd_scope scope = grd_scope_open();
    py_begin_change();
    grd_set_storage(py_tensor_of(tensor), bytes, grd_dims_from(sizes, nsizes), grd_dims_from(strides, nstrides), offset);
    py_end_change();
    return py_leave(scope);
}

static PyObject *is_resizable(PyObject *Py_UNUSED(module), PyObject *storage)
{
    const grd_tensor *t = py_storage_argument("_is_resizable", storage);
    return t != NULL ? PyBool_FromLong(grd_storage_resizable(t)) : NULL;
}

PyMethodDef py_shared_storage_functions[] = {
    PY_ENTRY("_resize_storage", resize_storage, "_resize_storage(storage, nbytes)\n--\n\nGives a storage another number of bytes."),
    PY_ENTRY("_share_storage", share_storage,
             "_share_storage(storage, name, tensor=None)\n--\n\nMoves a storage to shared memory, with a name unless that is None."),
    PY_ENTRY("_open_shared", open_shared, "_open_shared(place, nbytes)\n--\n\nThe storage of a descriptor, or of a name."),
    PY_ENTRY("_map_file", map_file, "_map_file(path, shared, nbytes)\n--\n\nThe first bytes of a file as a storage."),
    PY_ENTRY("_set_storage", set_storage,
             "_set_storage(tensor, storage, offset, size, stride)\n--\n\nMakes a tensor one over the storage, in its own dtype."),
    {"_shared_place", shared_place, METH_O,
     "_shared_place(storage, /)\n--\n\nDescriptor and name of shared memory; None for other memory."},
    {"_announce_shared", announce_shared, METH_O, "_announce_shared(storage, /)\n--\n\nCounts a user of named memory who is on the way."},
    {"_is_resizable", is_resizable, METH_O, "_is_resizable(storage, /)\n--\n\nTells if a storage can get another number of bytes."},
    {0},
};
