/* Implements the class torch.Size, a tuple of ints with the method numel(). The ragged dimension of a nested tensor is a gradus.SymInt instead of an
 * int. */
#include "size.h"
#include "add_type.h"
#include "scalar.h"
#include "tables.h"

static PyTypeObject *size_type;

static PyObject *new_size(Py_ssize_t n)
{
    PyObject *size = size_type->tp_alloc(size_type, n);
#if PY_VERSION_HEX >= 0x030E0000
    if (size != NULL)
        ((PyTupleObject *)size)->ob_hash = -1; /* -1 means that the hash is not computed yet */
#endif
    return size;
}

PyObject *py_size(grd_dims dims)
{
    PyObject *size = new_size(dims.n);
    for (Py_ssize_t i = 0; size != NULL && i < dims.n; i++) {
        PyObject *length = PyLong_FromLongLong(dims.data[i]);
        if (length == NULL)
            Py_CLEAR(size);
        else
            PyTuple_SET_ITEM(size, i, length);
    }
    return size;
}

/* Returns 1 if `object` is a gradus.SymInt, 0 if not, -1 with an exception. Creates the string `name` only once, because the interpreter's
 * method cache may keep a reference to every string that is looked up. */
static int is_ragged(PyObject *object)
{
    static PyObject *name;
    if (name == NULL && (name = PyUnicode_InternFromString("SymInt")) == NULL)
        return -1;
    PyObject *package = PyImport_ImportModule("gradus");
    PyObject *type = package != NULL ? PyObject_GetAttr(package, name) : NULL;
    const int result = type != NULL ? PyObject_IsInstance(object, type) : -1;
    Py_XDECREF(type);
    Py_XDECREF(package);
    return result;
}

/* Converts item i of a Size to an int, and returns a SymInt unchanged. Returns NULL with TypeError or ValueError. */
static PyObject *as_length(PyObject *item, Py_ssize_t i)
{
    int64_t value;
    if (PyBool_Check(item) || PyLong_CheckExact(item)) {
        value = PyLong_AsLongLong(item);
        if (value == -1 && PyErr_Occurred()) {
            PyErr_SetString(PyExc_ValueError, "Overflow when unpacking long long");
            return NULL;
        }
        return PyLong_FromLongLong(value);
    }
    const int is_int = py_as_int(item, &value);
    if (is_int < 0)
        return NULL;
    const int ragged = is_int == 0 ? is_ragged(item) : 0;
    if (ragged != 0)
        return ragged > 0 ? Py_NewRef(item) : NULL;
    if (is_int == 0)
        return PyErr_Format(PyExc_TypeError, "torch.Size() takes an iterable of 'int' (item %zd is '%s')", i, Py_TYPE(item)->tp_name);
    return PyLong_FromLongLong(value);
}

/* Returns a new Size with the items of `tuple`. Takes over the reference to `tuple`. If `tuple` is NULL an exception is already set, and the
 * result is NULL. */
static PyObject *from_tuple(PyObject *tuple)
{
    if (tuple == NULL)
        return NULL;
    const Py_ssize_t n = PyTuple_GET_SIZE(tuple);
    PyObject *size = new_size(n);
    for (Py_ssize_t i = 0; size != NULL && i < n; i++) {
        PyObject *length = as_length(PyTuple_GET_ITEM(tuple, i), i);
        if (length == NULL)
            Py_CLEAR(size);
        else
            PyTuple_SET_ITEM(size, i, length);
    }
    Py_DECREF(tuple);
    return size;
}

static PyObject *size_new(PyTypeObject *Py_UNUSED(type), PyObject *args, PyObject *named)
{
    return from_tuple(PyTuple_Type.tp_new(&PyTuple_Type, args, named));
}

static PyObject *size_repr(PyObject *self)
{
    PyObject *list = PySequence_List(self);
    PyObject *text = list != NULL ? PyUnicode_FromFormat("torch.Size(%R)", list) : NULL;
    Py_XDECREF(list);
    return text;
}

static PyObject *size_subscript(PyObject *self, PyObject *index)
{
    PyObject *part = PyTuple_Type.tp_as_mapping->mp_subscript(self, index);
    return part != NULL && PySlice_Check(index) ? from_tuple(part) : part;
}

/* Implements size + tuple and tuple + size. */
static PyObject *size_add(PyObject *left, PyObject *right)
{
    if (!PyTuple_Check(left) || !PyTuple_Check(right))
        Py_RETURN_NOTIMPLEMENTED;
    return from_tuple(PyTuple_Type.tp_as_sequence->sq_concat(left, right));
}

static PyObject *size_concat(PyObject *self, PyObject *other)
{
    if (!PyTuple_Check(other))
        return PyErr_Format(PyExc_TypeError, "can only concatenate tuple (not %s) to torch.Size", Py_TYPE(other)->tp_name);
    return size_add(self, other);
}

static PyObject *size_repeat(PyObject *self, Py_ssize_t n)
{
    return from_tuple(PyTuple_Type.tp_as_sequence->sq_repeat(self, n));
}

static PyObject *size_numel(PyObject *self, PyObject *Py_UNUSED(none))
{
    PyObject *product = PyLong_FromLong(1);
    for (Py_ssize_t i = 0; product != NULL && i < PyTuple_GET_SIZE(self); i++) {
        PyObject *next = PyNumber_Multiply(product, PyTuple_GET_ITEM(self, i));
        Py_DECREF(product);
        product = next;
    }
    return product;
}

static PyObject *size_reduce(PyObject *self, PyObject *Py_UNUSED(none))
{
    PyObject *list = PySequence_List(self);
    PyObject *tuple = list != NULL ? PyList_AsTuple(list) : NULL;
    Py_XDECREF(list);
    return tuple != NULL ? Py_BuildValue("O(N)", (PyObject *)size_type, tuple) : NULL;
}

static PyMethodDef size_methods[] = {
    {"numel", size_numel, METH_NOARGS,
     "numel($self)\n--\n\nHow many elements a tensor of this size has.\n\n>>> import gradus as torch\n>>> torch.Size([2, 3]).numel()\n6"},
    {"__reduce__", size_reduce, METH_NOARGS, "How pickle makes the Size again."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot size_slots[] = {
    {Py_tp_doc, "Size(iterable=())\n--\n\nThe sizes of a tensor's dimensions: a tuple of ints."},
    {Py_tp_new, size_new},
    {Py_tp_repr, size_repr},
    {Py_tp_methods, size_methods},
    {Py_mp_subscript, size_subscript},
    {Py_nb_add, size_add},
    {Py_sq_concat, size_concat},
    {Py_sq_repeat, size_repeat},
    {0, NULL},
};

static PyType_Spec size_spec = {"gradus.Size", 0, 0, Py_TPFLAGS_DEFAULT, size_slots};

bool py_add_size(PyObject *module)
{
    PyObject *bases = PyTuple_Pack(1, (PyObject *)&PyTuple_Type);
    size_type = bases != NULL ? py_add_type(module, &size_spec, bases) : NULL;
    Py_XDECREF(bases);
    return size_type != NULL;
}
