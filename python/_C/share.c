/* Storages that get other memory: resized, or shared with other processes. gradus._tensor_storage and gradus.multiprocessing stand on these functions.
 *
 * A storage can move when all tensors over it are known (grd_storage_owned_by). Most often they are the tensor at hand, its base and the storage object;
 * otherwise all tensors that the garbage collector knows are looked through. */
#include "interop.h"
#include "methods.h"

struct owners {
    grd_tensor **tensors; /* borrowed */
    int64_t n, room;
    PyObject *kept; /* what keeps them alive */
};

static void owners_done(struct owners *o)
{
    PyMem_Free(o->tensors);
    Py_XDECREF(o->kept);
}

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

/* All tensors over a storage that Python knows. `tensor` is one of them, or NULL. False with an exception. */
static bool find_owners(grd_tensor *bytes, PyObject *tensor, struct owners *ret_owners)
{
    *ret_owners = (struct owners){0};
    if (add_owner(ret_owners, bytes) && (tensor == NULL || add_with_base(ret_owners, py_tensor_of(tensor))) &&
        (grd_storage_owned_by(ret_owners->tensors, ret_owners->n) || add_objects(ret_owners)))
        return true;
    owners_done(ret_owners);
    return false;
}

static grd_tensor *bytes_argument(const char *function, PyObject *object)
{
    grd_tensor *bytes = py_storage_bytes(object);
    if (bytes == NULL)
        PyErr_Format(PyExc_TypeError, "%s(): argument 'storage' must be UntypedStorage, not %s", function, Py_TYPE(object)->tp_name);
    return bytes;
}

static bool int_argument(const char *function, const char *name, PyObject *object, int64_t *ret_value)
{
    const int is_int = py_as_int(object, ret_value);
    if (is_int == 0)
        PyErr_Format(PyExc_TypeError, "%s(): argument '%s' must be int, not %s", function, name, Py_TYPE(object)->tp_name);
    return is_int > 0;
}

static PyObject *resize_storage(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    static const char *const parameters[] = {"storage", "nbytes", NULL};
    static const struct py_simple function = {"_resize_storage", parameters, 2, 2};
    PyObject *given[PY_SIMPLE_MAX];
    struct owners owners;
    int64_t bytes;
    if (!py_arrange(&function, args, nargs, names, given))
        return NULL;
    grd_tensor *t = bytes_argument(function.name, given[0]);
    if (t == NULL || !int_argument(function.name, "nbytes", given[1], &bytes) || !find_owners(t, NULL, &owners))
        return NULL;
    py_begin_change();
    const bool ok = grd_storage_resize(owners.tensors, owners.n, bytes) && py_storage_fit(given[0]);
    py_end_change();
    owners_done(&owners);
    if (!ok)
        return py_raise();
    Py_RETURN_NONE;
}

static PyObject *share_storage(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    static const char *const parameters[] = {"storage", "name", "tensor", NULL};
    static const struct py_simple function = {"_share_storage", parameters, 3, 2};
    PyObject *given[PY_SIMPLE_MAX];
    struct owners owners;
    if (!py_arrange(&function, args, nargs, names, given))
        return NULL;
    grd_tensor *t = bytes_argument(function.name, given[0]);
    const char *name = t != NULL && given[1] != Py_None ? PyUnicode_AsUTF8(given[1]) : NULL;
    if (t == NULL || (name == NULL && given[1] != Py_None) ||
        !find_owners(t, given[2] != NULL && py_is_tensor(given[2]) ? given[2] : NULL, &owners))
        return NULL;
    py_begin_change();
    const bool ok = grd_share_memory(owners.tensors, owners.n, name);
    py_end_change();
    owners_done(&owners);
    if (!ok)
        return py_raise();
    Py_RETURN_NONE;
}

/* The place of shared memory: its descriptor or None, and its name or None; None for other memory. */
static PyObject *shared_place(PyObject *Py_UNUSED(module), PyObject *storage)
{
    const grd_tensor *t = bytes_argument("_shared_place", storage);
    if (t == NULL)
        return NULL;
    if (!grd_is_shared(t))
        Py_RETURN_NONE;
    const int descriptor = grd_shared_descriptor(t);
    return descriptor >= 0 ? Py_BuildValue("(iz)", descriptor, grd_shared_name(t)) : Py_BuildValue("(Oz)", Py_None, grd_shared_name(t));
}

static PyObject *announce_shared(PyObject *Py_UNUSED(module), PyObject *storage)
{
    const grd_tensor *t = bytes_argument("_announce_shared", storage);
    if (t == NULL)
        return NULL;
    grd_shared_announce(t);
    Py_RETURN_NONE;
}

static PyObject *take_storage(grd_scope scope, grd_tensor *bytes)
{
    PyObject *object = grd_ok() ? py_storage_of(bytes) : NULL;
    if (object == NULL)
        return py_abandon(scope);
    grd_scope_close(scope);
    return object;
}

/* A place is a descriptor or a name. */
static PyObject *open_shared(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    static const char *const parameters[] = {"place", "nbytes", NULL};
    static const struct py_simple function = {"_open_shared", parameters, 2, 2};
    PyObject *given[PY_SIMPLE_MAX];
    int64_t bytes, descriptor = -1;
    if (!py_arrange(&function, args, nargs, names, given) || !int_argument(function.name, "nbytes", given[1], &bytes))
        return NULL;
    const char *name = PyUnicode_Check(given[0]) ? PyUnicode_AsUTF8(given[0]) : NULL;
    if (name == NULL && (PyErr_Occurred() || !int_argument(function.name, "place", given[0], &descriptor)))
        return NULL;
    const grd_scope scope = grd_scope_open();
    return take_storage(scope, name != NULL ? grd_open_shared_name(name, bytes)
                                            : grd_open_shared(descriptor == (int)descriptor ? (int)descriptor : -1, bytes));
}

static PyObject *map_file(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    static const char *const parameters[] = {"path", "shared", "nbytes", NULL};
    static const struct py_simple function = {"_map_file", parameters, 3, 3};
    PyObject *given[PY_SIMPLE_MAX], *path;
    bool shared = false;
    int64_t bytes;
    if (!py_arrange(&function, args, nargs, names, given) || !py_bool_argument(function.name, "shared", given[1], &shared) ||
        !int_argument(function.name, "nbytes", given[2], &bytes) || !PyUnicode_FSConverter(given[0], &path))
        return NULL;
    const grd_scope scope = grd_scope_open();
    grd_tensor *t = grd_map_file(PyBytes_AS_STRING(path), shared, bytes);
    Py_DECREF(path);
    return take_storage(scope, t);
}

/* Makes a tensor one over the storage, in its own dtype. */
static PyObject *set_storage(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    static const char *const parameters[] = {"tensor", "storage", "offset", "size", "stride", NULL};
    static const struct py_simple function = {"_set_storage", parameters, 5, 5};
    PyObject *given[PY_SIMPLE_MAX];
    int64_t offset, sizes[GRD_MAX_DIMS], strides[GRD_MAX_DIMS], nsizes, nstrides;
    if (!py_arrange(&function, args, nargs, names, given))
        return NULL;
    if (!py_is_tensor(given[0]))
        return PyErr_Format(PyExc_TypeError, "_set_storage(): argument 'tensor' must be Tensor, not %s", Py_TYPE(given[0])->tp_name);
    grd_tensor *bytes = bytes_argument(function.name, given[1]);
    if (bytes == NULL || !int_argument(function.name, "offset", given[2], &offset) ||
        !py_dims_argument(function.name, "size", given[3], sizes, &nsizes) ||
        !py_dims_argument(function.name, "stride", given[4], strides, &nstrides))
        return NULL;
    const grd_scope scope = grd_scope_open();
    py_begin_change();
    grd_set_storage(py_tensor_of(given[0]), bytes, grd_dims_from(sizes, nsizes), grd_dims_from(strides, nstrides), offset);
    py_end_change();
    return py_leave(scope);
}

static PyObject *is_resizable(PyObject *Py_UNUSED(module), PyObject *storage)
{
    const grd_tensor *t = bytes_argument("_is_resizable", storage);
    return t != NULL ? PyBool_FromLong(grd_storage_resizable(t)) : NULL;
}

PyMethodDef py_share_functions[] = {
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
