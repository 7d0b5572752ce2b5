/* Implements the class torch.device, and the default device.
 *
 * A device object holds the name of a device type and an index. The library's device is looked up only when the object is used, so programs may write
 * torch.device('cuda') and compare with it on a machine without CUDA.
 *
 * The default device is the device on which functions create tensors if they get no device argument. It is thread-local: set_default_device sets it,
 * and `with torch.device(...)` sets it for a block. Functions that create a tensor like another one, and Tensor(...), ignore the default device. */
#include "device.h"
#include "add_type.h"
#include "scalar.h"
#include "tables.h"

#include <ctype.h>
#include <stdlib.h>

enum { NAME_CHARS = 32, MAX_INDEX = INT8_MAX };

struct device {
    PyObject_HEAD int8_t index; /* -1 if the device has no index */
    char name[NAME_CHARS];
};

static PyTypeObject *device_type;
static PyObject *cpu, *meta;

/* Device types that PyTorch accepts. */
static const char *const known[] = {"cpu",  "cuda", "ipu", "xpu",  "mkldnn", "opengl", "opencl", "ideep", "hip",  "ve",
                                    "fpga", "maia", "xla", "lazy", "vulkan", "mps",    "meta",   "hpu",   "mtia", "privateuseone"};

static struct device *device_of(PyObject *object)
{
    return (struct device *)object;
}

static PyObject *new_device(const char *name, int index)
{
    struct device *device = PyObject_New(struct device, device_type);
    if (device == NULL)
        return NULL;
    device->index = (int8_t)index;
    strncpy(device->name, name, NAME_CHARS - 1);
    device->name[NAME_CHARS - 1] = '\0';
    return (PyObject *)device;
}

PyObject *py_device(grd_device device)
{
    PyObject *kept = device.type == GRD_DEVICE_CPU ? cpu : device.type == GRD_DEVICE_META ? meta : NULL;
    if (kept == NULL)
        return new_device(grd_device_name(device), device.index);
    Py_INCREF(kept);
    return kept;
}

/* ---- Device names ------------------------------------------------------------------------------------------------ */

/* Looks up a device type by its name. Returns false, without an exception, if no such device exists. */
static bool find(const char *name, grd_device *ret_device)
{
    grd_device device = grd_device_find(name);
    grd_error_clear();
    if (device.type == GRD_DEVICE_NONE)
        return false;
    *ret_device = device;
    return true;
}

/* True if PyTorch accepts the name of the device type, or if a plug-in has registered it. */
static bool is_known(const char *name)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i], name) == 0)
            return true;
    grd_device device;
    return find(name, &device);
}

/* Raises the error that there is no device of the type `name`, and returns -1. The error is AssertionError for CUDA and XPU, as in PyTorch. */
static int refuse_absent(const char *name)
{
    if (strcmp(name, "cuda") == 0 || strcmp(name, "xpu") == 0)
        PyErr_Format(PyExc_AssertionError, "Gradus not compiled with %s enabled", name[0] == 'c' ? "CUDA" : "XPU");
    else
        PyErr_Format(PyExc_RuntimeError, "Gradus has no device of type '%s': no loaded plug-in provides it", name);
    return -1;
}

/* Parses a decimal number without leading zeros. Returns false if `text` is anything else. */
static bool read_index(const char *text, long *ret_index)
{
    char *end;
    if (!isdigit((unsigned char)text[0]) || (text[0] == '0' && text[1] != '\0'))
        return false;
    *ret_index = strtol(text, &end, 10);
    return *end == '\0';
}

/* True if the first `length` characters of `text` are letters or '_'. PyTorch allows only these characters in the type of a device string. */
static bool is_word(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (!isalpha((unsigned char)text[i]) && text[i] != '_')
            return false;
    return length > 0;
}

/* Parses a text such as "cpu" or "cpu:1" into the name of the device type and the index. The index is -1 if the text has none. Returns false with
 * RuntimeError if the text names no device type. */
static bool read_text(const char *text, char *ret_name, int *ret_index)
{
    const size_t length = strcspn(text, ":");
    long index = -1;
    if (*text == '\0') {
        PyErr_SetString(PyExc_RuntimeError, "Device string must not be empty");
        return false;
    }
    if (length == 0 || (text[length] == ':' && !read_index(text + length + 1, &index))) {
        PyErr_Format(PyExc_RuntimeError, "Invalid device string: '%s'", text);
        return false;
    }
    if (index > MAX_INDEX) {
        PyErr_Format(PyExc_RuntimeError, "Device index must be at most %d: '%s'", MAX_INDEX, text);
        return false;
    }
    if (length < NAME_CHARS) {
        memcpy(ret_name, text, length);
        ret_name[length] = '\0';
        *ret_index = (int)index;
        if (is_known(ret_name))
            return true;
    }
    PyObject *name = PyUnicode_FromStringAndSize(text, (Py_ssize_t)length);
    if (name != NULL && is_word(text, length))
        PyErr_Format(
            PyExc_RuntimeError,
            "Expected one of cpu, cuda, ipu, xpu, mkldnn, opengl, opencl, ideep, hip, ve, fpga, maia, xla, lazy, vulkan, mps, meta, hpu, "
            "mtia, privateuseone device type at start of device string: %U",
            name);
    else if (name != NULL)
        PyErr_Format(PyExc_RuntimeError, "Invalid device string: '%s'", text);
    Py_XDECREF(name);
    return false;
}

/* Sets *ret_device to the device with this type and index (-1 for none). Returns 1, or -1 with an exception. */
static int resolve(const char *name, int index, grd_device *ret_device)
{
    grd_device device;
    if (!find(name, &device))
        return refuse_absent(name);
    if (index >= 0)
        device.index = (int8_t)index;
    *ret_device = device;
    return 1;
}

static int refuse_index(PyObject *object)
{
    int64_t index;
    const int is_index = py_as_int(object, &index);
    if (is_index > 0)
        PyErr_SetString(PyExc_RuntimeError,
                        index < 0 ? "Device index must not be negative" : "Cannot access accelerator device when none is available.");
    return is_index != 0 ? -1 : 0;
}

int py_as_device(PyObject *object, grd_device *ret_device)
{
    if (PY_LIKELY(Py_TYPE(object) == device_type)) {
        if (object == cpu) {
            *ret_device = GRD_CPU;
            return 1;
        }
        return resolve(device_of(object)->name, device_of(object)->index, ret_device);
    }
    if (!PyUnicode_Check(object))
        return PyLong_Check(object) && !PyBool_Check(object) ? refuse_index(object) : 0;
    char name[NAME_CHARS];
    int index;
    const char *text = PyUnicode_AsUTF8(object);
    return text != NULL && read_text(text, name, &index) ? resolve(name, index, ret_device) : -1;
}

/* ---- The default device ------------------------------------------------------------------------------------------ */

enum { MAX_BLOCKS = 64 };

static _Thread_local struct {
    grd_device device; /* type is GRD_DEVICE_NONE if no default was set; tensors are then made on the CPU */
    int nblocks;
    grd_device outer[MAX_BLOCKS]; /* outer[i] is the default device before block i of `with torch.device(...)` was entered */
} state;

grd_device py_default_device(void)
{
    return state.device;
}

static PyObject *get_default_device(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    return py_device(state.device.type != GRD_DEVICE_NONE ? state.device : GRD_CPU);
}

static PyObject *set_default_device(PyObject *Py_UNUSED(module), PyObject *given)
{
    grd_device device = {0};
    const int is_device = given == Py_None ? 1 : py_as_device(given, &device);
    if (is_device == 0)
        PyErr_Format(PyExc_TypeError, "set_default_device(): argument 'device' must be torch.device, not %s", Py_TYPE(given)->tp_name);
    if (is_device <= 0)
        return NULL;
    state.device = device;
    Py_RETURN_NONE;
}

static PyObject *device_enter(PyObject *self, PyObject *Py_UNUSED(none))
{
    grd_device device = {0};
    if (py_as_device(self, &device) < 0)
        return NULL;
    if (state.nblocks == MAX_BLOCKS)
        return PyErr_Format(PyExc_RuntimeError, "at most %d blocks of a default device may be open in a thread", MAX_BLOCKS);
    state.outer[state.nblocks++] = state.device;
    state.device = device;
    return Py_NewRef(self);
}

static PyObject *device_exit(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(args))
{
    if (state.nblocks == 0) {
        PyErr_SetString(PyExc_RuntimeError, "no block of a default device is open in this thread");
        return NULL;
    }
    state.device = state.outer[--state.nblocks];
    Py_RETURN_NONE;
}

/* ---- The type ---------------------------------------------------------------------------------------------------- */

static PyObject *refuse_arguments(PyObject *args, PyObject *named)
{
    PyObject *given = PyUnicode_FromString("");
    const Py_ssize_t nargs = PyTuple_GET_SIZE(args);
    for (Py_ssize_t i = 0; i < nargs && given != NULL; i++)
        PyUnicode_AppendAndDel(&given, PyUnicode_FromFormat(i > 0 ? ", %s" : "%s", Py_TYPE(PyTuple_GET_ITEM(args, i))->tp_name));
    PyObject *key, *value;
    for (Py_ssize_t at = 0; named != NULL && given != NULL && PyDict_Next(named, &at, &key, &value);)
        PyUnicode_AppendAndDel(&given, PyUnicode_FromFormat("%U=%s, ", key, Py_TYPE(value)->tp_name));
    if (given != NULL)
        PyErr_Format(PyExc_TypeError,
                     "device() received an invalid combination of arguments - got (%U), but expected one of:\n"
                     " * (torch.device device)\n * (str type, int index = -1)\n",
                     given);
    Py_XDECREF(given);
    return NULL;
}

/* Implements device(type, index=None) for a string `type`. */
static PyObject *from_text(PyObject *text, PyObject *index)
{
    char name[NAME_CHARS];
    int in_text;
    int64_t given = -1;
    const char *characters = PyUnicode_AsUTF8(text);
    if (characters == NULL || !read_text(characters, name, &in_text))
        return NULL;
    if (index == NULL || index == Py_None)
        return new_device(name, in_text);
    const int is_int = py_as_int(index, &given);
    if (is_int < 0)
        return NULL;
    if (is_int == 0)
        return PyErr_Format(PyExc_TypeError, "device(): argument 'index' (position 2) must be int, not %s", Py_TYPE(index)->tp_name);
    if (in_text >= 0)
        return PyErr_Format(PyExc_RuntimeError, "type (string) must not include an index because index was passed explicitly: %s",
                            characters);
    if (given < 0)
        return PyErr_Format(PyExc_RuntimeError, "Device index must not be negative");
    if (given > MAX_INDEX)
        return PyErr_Format(PyExc_RuntimeError, "Device index must be at most %d: %lld", MAX_INDEX, (long long)given);
    return new_device(name, (int)given);
}

static PyObject *device_new(PyTypeObject *Py_UNUSED(type), PyObject *args, PyObject *named)
{
    PyObject *first = NULL, *index = NULL;
    static const char *const names[] = {"device", "type", "index"};
    PyObject *by_name[3] = {NULL, NULL, NULL};
    const Py_ssize_t nargs = PyTuple_GET_SIZE(args);
    Py_ssize_t found = 0;
    for (int i = 0; i < 3 && named != NULL; i++) {
        by_name[i] = PyDict_GetItemString(named, names[i]);
        found += by_name[i] != NULL;
    }
    if (nargs > 2 || (named != NULL && found != PyDict_GET_SIZE(named)) || nargs + found > 2)
        return refuse_arguments(args, named);
    first = nargs > 0 ? PyTuple_GET_ITEM(args, 0) : by_name[0] != NULL ? by_name[0] : by_name[1];
    index = nargs > 1 ? PyTuple_GET_ITEM(args, 1) : by_name[2];
    const bool one = nargs + found == 1;
    if (first == NULL || (nargs + found == 2 && index == NULL))
        return refuse_arguments(args, named);
    if (Py_TYPE(first) == device_type && one) {
        Py_INCREF(first);
        return first;
    }
    if (PyUnicode_Check(first) && first != by_name[0])
        return from_text(first, index);
    if (!one)
        return PyErr_Format(PyExc_TypeError, "device(): argument 'type' (position 1) must be str, not %s", Py_TYPE(first)->tp_name);
    if (PyLong_Check(first) && !PyBool_Check(first) && refuse_index(first) < 0)
        return NULL;
    return refuse_arguments(args, named);
}

static PyObject *device_repr(PyObject *self)
{
    const struct device *device = device_of(self);
    return device->index < 0 ? PyUnicode_FromFormat("device(type='%s')", device->name)
                             : PyUnicode_FromFormat("device(type='%s', index=%d)", device->name, device->index);
}

static PyObject *device_str(PyObject *self)
{
    const struct device *device = device_of(self);
    return device->index < 0 ? PyUnicode_FromString(device->name) : PyUnicode_FromFormat("%s:%d", device->name, device->index);
}

static PyObject *device_compare(PyObject *left, PyObject *right, int op)
{
    if (Py_TYPE(left) != device_type || Py_TYPE(right) != device_type || (op != Py_EQ && op != Py_NE))
        Py_RETURN_NOTIMPLEMENTED;
    const struct device *a = device_of(left), *b = device_of(right);
    return PyBool_FromLong((a->index == b->index && strcmp(a->name, b->name) == 0) == (op == Py_EQ));
}

static Py_hash_t device_hash(PyObject *self)
{
    PyObject *text = device_str(self);
    const Py_hash_t hash = text != NULL ? PyObject_Hash(text) : -1;
    Py_XDECREF(text);
    return hash;
}

static PyObject *device_get_type(PyObject *self, void *Py_UNUSED(closure))
{
    return PyUnicode_FromString(device_of(self)->name);
}

static PyObject *device_get_index(PyObject *self, void *Py_UNUSED(closure))
{
    if (device_of(self)->index < 0)
        Py_RETURN_NONE;
    return PyLong_FromLong(device_of(self)->index);
}

static PyObject *device_reduce(PyObject *self, PyObject *Py_UNUSED(none))
{
    const struct device *device = device_of(self);
    return device->index < 0 ? Py_BuildValue("O(s)", Py_TYPE(self), device->name)
                             : Py_BuildValue("O(si)", Py_TYPE(self), device->name, (int)device->index);
}

static PyMethodDef device_methods[] = {
    {"__enter__", device_enter, METH_NOARGS, "__enter__($self)\n--\n\nMakes it the default device of this thread."},
    {"__exit__", device_exit, METH_VARARGS, "__exit__($self, *exception)\n--\n\nRestores the default device of this thread."},
    {"__reduce__", device_reduce, METH_NOARGS, "How pickle makes the device again."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef device_properties[] = {
    {"type", device_get_type, NULL, "The name of the type of device: 'cpu'.", NULL},
    {"index", device_get_index, NULL, "Which of the devices of that type, or None.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot device_slots[] = {
    {Py_tp_doc, "device(type, index=None)\n--\n\nWhere tensors lie: 'cpu', 'meta', or a device that a plug-in brought, 'vault:1'.\n"
                "RuntimeError when the text names no type of device."},
    {Py_tp_new, device_new},
    {Py_tp_dealloc, py_free_object},
    {Py_tp_repr, device_repr},
    {Py_tp_str, device_str},
    {Py_tp_hash, device_hash},
    {Py_tp_richcompare, device_compare},
    {Py_tp_methods, device_methods},
    {Py_tp_getset, device_properties},
    {0, NULL},
};

static PyType_Spec device_spec = {"gradus.device", sizeof(struct device), 0, Py_TPFLAGS_DEFAULT, device_slots};

static PyMethodDef functions[] = {
    {"get_default_device", get_default_device, METH_NOARGS,
     "get_default_device($module)\n--\n\nThe device of new tensors unless another is given: the cpu, or what this thread has set."},
    {"set_default_device", set_default_device, METH_O,
     "set_default_device($module, device)\n--\n\nSets the device of new tensors for this thread; None: the cpu."},
    {NULL, NULL, 0, NULL},
};

bool py_add_device(PyObject *module)
{
    device_type = py_add_type(module, &device_spec, NULL);
    if (device_type == NULL)
        return false;
    cpu = new_device("cpu", -1);
    meta = new_device("meta", -1);
    return cpu != NULL && meta != NULL && PyModule_AddFunctions(module, functions) == 0;
}
