/* Reads and writes safetensors files and atomically replaces files, for gradus.safetensors and gradus.serialization. */
#include "add_type.h"
#include "dtype.h"
#include "errors.h"
#include "size.h"
#include "tables.h"
#include "tensor_object.h"

/* Returns `path`, a str, bytes or os.PathLike, as bytes in the file system encoding; NULL with an exception. */
static PyObject *path_bytes(PyObject *path)
{
    PyObject *bytes;
    return PyUnicode_FSConverter(path, &bytes) ? bytes : NULL;
}

/* Returns the UTF-8 text of a str, borrowed. Returns NULL with an exception if `text` is not a str or contains a NUL character, which the file format
 * does not allow in names. `what` describes `text` in the error. */
static const char *utf8_of(PyObject *text, const char *what)
{
    Py_ssize_t size;
    if (!PyUnicode_Check(text)) {
        PyErr_Format(PyExc_TypeError, "%s must be str, not %s", what, Py_TYPE(text)->tp_name);
        return NULL;
    }
    const char *utf8 = PyUnicode_AsUTF8AndSize(text, &size);
    if (utf8 != NULL && strlen(utf8) != (size_t)size) {
        PyErr_Format(PyExc_ValueError, "%s has a null character: %R", what, text);
        return NULL;
    }
    return utf8;
}

/* ---- Reading ----------------------------------------------------------------------------------------------------- */

typedef struct tensor_file {
    PyObject_HEAD grd_tensor_file *file; /* NULL once close() was called and no call is reading any more */
    Py_buffer buffer;                    /* buffer with the file's bytes if it was opened from memory; otherwise buffer.obj is NULL */
    int readers;                         /* number of calls that are reading without the GIL; the file is freed only when this is 0 */
    bool closed;
} tensor_file;

static PyTypeObject *tensor_file_type;

static void release_file(tensor_file *self)
{
    grd_tensor_file_close(self->file);
    self->file = NULL;
    PyBuffer_Release(&self->buffer);
}

static void tensor_file_dealloc(PyObject *self)
{
    release_file((tensor_file *)self);
    py_free_object(self);
}

static bool is_open(const tensor_file *self)
{
    if (self->closed)
        PyErr_SetString(PyExc_ValueError, "I/O operation on closed file");
    return !self->closed;
}

/* Returns `self` if its file was opened. Otherwise frees `self` and raises the error of opening. */
static PyObject *finish_opening(tensor_file *self)
{
    if (self->file != NULL)
        return (PyObject *)self;
    Py_DECREF(self);
    return py_raise();
}

static PyObject *open_safetensors(PyObject *Py_UNUSED(module), PyObject *path)
{
    PyObject *bytes = path_bytes(path);
    tensor_file *self = bytes != NULL ? (tensor_file *)tensor_file_type->tp_alloc(tensor_file_type, 0) : NULL;
    if (self != NULL) {
        Py_BEGIN_ALLOW_THREADS self->file = grd_tensor_file_open(PyBytes_AS_STRING(bytes));
        Py_END_ALLOW_THREADS
    }
    Py_XDECREF(bytes);
    return self != NULL ? finish_opening(self) : NULL;
}

static PyObject *read_safetensors(PyObject *Py_UNUSED(module), PyObject *content)
{
    tensor_file *self = (tensor_file *)tensor_file_type->tp_alloc(tensor_file_type, 0);
    if (self == NULL)
        return NULL;
    if (PyObject_GetBuffer(content, &self->buffer, PyBUF_SIMPLE) < 0) {
        Py_DECREF(self);
        return NULL;
    }
    self->file = grd_tensor_file_over(self->buffer.buf != NULL ? self->buffer.buf : "", (size_t)self->buffer.len);
    return finish_opening(self);
}

static PyObject *tensor_file_names(PyObject *object, PyObject *Py_UNUSED(unused))
{
    const tensor_file *self = (tensor_file *)object;
    if (!is_open(self))
        return NULL;
    const int64_t n = grd_tensor_file_count(self->file);
    PyObject *names = PyList_New((Py_ssize_t)n);
    for (int64_t i = 0; i < n && names != NULL; i++) {
        PyObject *name = PyUnicode_FromString(grd_tensor_file_name(self->file, i));
        if (name == NULL)
            Py_CLEAR(names);
        else
            PyList_SET_ITEM(names, (Py_ssize_t)i, name);
    }
    return names;
}

static PyObject *tensor_file_metadata(PyObject *object, PyObject *Py_UNUSED(unused))
{
    const tensor_file *self = (tensor_file *)object;
    if (!is_open(self))
        return NULL;
    const grd_named_texts metadata = grd_tensor_file_metadata(self->file);
    PyObject *result = PyDict_New();
    for (int64_t i = 0; i < metadata.n && result != NULL; i++) {
        PyObject *text = PyUnicode_FromString(metadata.data[i].text);
        if (text == NULL || PyDict_SetItemString(result, metadata.data[i].name, text) < 0)
            Py_CLEAR(result);
        Py_XDECREF(text);
    }
    return result;
}

static PyObject *tensor_file_read(PyObject *object, PyObject *name)
{
    tensor_file *self = (tensor_file *)object;
    const char *utf8 = is_open(self) ? utf8_of(name, "the name of a tensor") : NULL;
    if (utf8 == NULL)
        return NULL;
    const grd_scope scope = grd_scope_open();
    grd_tensor *tensor;
    self->readers++;
    Py_BEGIN_ALLOW_THREADS tensor = grd_tensor_file_read(self->file, utf8);
    Py_END_ALLOW_THREADS if (--self->readers == 0 && self->closed) release_file(self);
    return py_take(scope, tensor);
}

/* Returns (dtype, sizes, offset) of the tensor `name`, or None if the file has no such tensor. */
static PyObject *tensor_file_describe(PyObject *object, PyObject *name)
{
    const tensor_file *self = (tensor_file *)object;
    const char *utf8 = is_open(self) ? utf8_of(name, "the name of a tensor") : NULL;
    if (utf8 == NULL)
        return NULL;
    const int64_t index = grd_tensor_file_find(self->file, utf8);
    if (index < 0)
        Py_RETURN_NONE;
    return Py_BuildValue("(NNL)", py_dtype(grd_tensor_file_dtype(self->file, index)), py_size(grd_tensor_file_sizes(self->file, index)),
                         (long long)grd_tensor_file_offset(self->file, index));
}

static PyObject *tensor_file_close(PyObject *object, PyObject *Py_UNUSED(unused))
{
    tensor_file *self = (tensor_file *)object;
    self->closed = true;
    if (self->readers == 0)
        release_file(self);
    Py_RETURN_NONE;
}

static PyMethodDef tensor_file_methods[] = {
    {"names", tensor_file_names, METH_NOARGS, "names($self)\n--\n\nThe names of the tensors, sorted."},
    {"metadata", tensor_file_metadata, METH_NOARGS, "metadata($self)\n--\n\nThe texts beside the tensors, by name."},
    {"read", tensor_file_read, METH_O, "read($self, name)\n--\n\nA new tensor with the elements of that name."},
    {"describe", tensor_file_describe, METH_O,
     "describe($self, name)\n--\n\nThe dtype, the sizes and the offset of the tensor, or None when there is none of that name."},
    {"close", tensor_file_close, METH_NOARGS, "close($self)\n--\n\nCloses the file."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot tensor_file_slots[] = {
    {Py_tp_doc, "An open safetensors file."},
    {Py_tp_dealloc, tensor_file_dealloc},
    {Py_tp_methods, tensor_file_methods},
    {0, NULL},
};

/* ---- Writing ----------------------------------------------------------------------------------------------------- */

/* The items of a dict of tensors and of a dict of texts, as arrays for the library. The arrays are owned; the tensors and texts in them are
 * borrowed from the dicts. */
struct contents {
    grd_named_tensor *tensors;
    grd_named_text *texts;
    int64_t ntensors, ntexts;
};

static void contents_done(struct contents *contents)
{
    PyMem_Free(contents->tensors);
    PyMem_Free(contents->texts);
}

/* Allocates a zeroed array with room for all items of `dict`. `item` is the size of an item in bytes. Returns NULL with MemoryError. */
static void *new_list(PyObject *dict, size_t item)
{
    void *list = PyMem_Calloc((size_t)PyDict_GET_SIZE(dict) + 1, item);
    return list != NULL ? list : PyErr_NoMemory();
}

static bool add_tensors(struct contents *contents, PyObject *tensors)
{
    PyObject *name, *tensor;
    Py_ssize_t at = 0;
    contents->tensors = new_list(tensors, sizeof *contents->tensors);
    while (contents->tensors != NULL && PyDict_Next(tensors, &at, &name, &tensor)) {
        const char *utf8 = utf8_of(name, "the name of a tensor");
        if (utf8 == NULL)
            return false;
        if (!py_is_tensor(tensor)) {
            PyErr_Format(PyExc_ValueError, "Key `%U` is invalid, expected torch.Tensor but received %R", name, (PyObject *)Py_TYPE(tensor));
            return false;
        }
        contents->tensors[contents->ntensors++] = (grd_named_tensor){utf8, py_tensor_of(tensor)};
    }
    return contents->tensors != NULL;
}

static bool add_texts(struct contents *contents, PyObject *metadata)
{
    PyObject *name, *text;
    Py_ssize_t at = 0;
    contents->texts = new_list(metadata, sizeof *contents->texts);
    while (contents->texts != NULL && PyDict_Next(metadata, &at, &name, &text)) {
        const char *name_utf8 = utf8_of(name, "a name in the metadata"),
                   *text_utf8 = name_utf8 != NULL ? utf8_of(text, "a text in the metadata") : NULL;
        if (text_utf8 == NULL)
            return false;
        contents->texts[contents->ntexts++] = (grd_named_text){name_utf8, text_utf8};
    }
    return contents->texts != NULL;
}

/* Writes a safetensors file to `path`, or returns the file's bytes if `path` is None. The caller's dicts keep the tensors and texts alive. */
static PyObject *write_contents(const struct contents *contents, PyObject *path)
{
    const grd_named_tensors tensors = {contents->tensors, contents->ntensors};
    const grd_named_texts texts = {contents->texts, contents->ntexts};
    const grd_scope scope = grd_scope_open();
    if (path == Py_None) {
        const grd_tensor *bytes = grd_save_to_tensor(tensors, texts);
        PyObject *result = grd_ok() ? PyBytes_FromStringAndSize(grd_data(bytes), (Py_ssize_t)grd_numel(bytes)) : py_raise();
        grd_scope_close(scope);
        return result;
    }
    PyObject *name = path_bytes(path);
    if (name != NULL) {
        Py_BEGIN_ALLOW_THREADS grd_save_with_metadata(PyBytes_AS_STRING(name), tensors, texts);
        Py_END_ALLOW_THREADS Py_DECREF(name);
    }
    PyObject *result = py_leave(scope);
    if (name == NULL)
        Py_CLEAR(result);
    return result;
}

static PyObject *save_safetensors(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *tensors, *metadata, *path;
    if (!PyArg_ParseTuple(args, "O!O!O:_save_safetensors", &PyDict_Type, &tensors, &PyDict_Type, &metadata, &path))
        return NULL;
    struct contents contents = {0};
    PyObject *result = add_tensors(&contents, tensors) && add_texts(&contents, metadata) ? write_contents(&contents, path) : NULL;
    contents_done(&contents);
    return result;
}

/* ---- Replacing a file -------------------------------------------------------------------------------------------- */

typedef struct replacement {
    PyObject_HEAD grd_replacement *file; /* NULL after commit() or abandon() */
} replacement;

static PyTypeObject *replacement_type;

static PyObject *open_replacement(PyObject *Py_UNUSED(module), PyObject *path)
{
    PyObject *bytes = path_bytes(path);
    replacement *self = bytes != NULL ? (replacement *)replacement_type->tp_alloc(replacement_type, 0) : NULL;
    if (self != NULL)
        self->file = grd_replacement_open(PyBytes_AS_STRING(bytes));
    Py_XDECREF(bytes);
    if (self == NULL || self->file != NULL)
        return (PyObject *)self;
    Py_DECREF(self);
    return py_raise();
}

static void replacement_dealloc(PyObject *self)
{
    grd_replacement_abandon(((replacement *)self)->file);
    py_free_object(self);
}

static PyObject *replacement_fileno(PyObject *self, PyObject *Py_UNUSED(unused))
{
    return PyLong_FromLong(grd_replacement_descriptor(((replacement *)self)->file));
}

static PyObject *replacement_commit(PyObject *object, PyObject *Py_UNUSED(unused))
{
    replacement *self = (replacement *)object;
    grd_replacement *file = self->file;
    self->file = NULL;
    Py_BEGIN_ALLOW_THREADS grd_replacement_commit(file);
    Py_END_ALLOW_THREADS if (!grd_ok()) return py_raise();
    Py_RETURN_NONE;
}

static PyObject *replacement_abandon(PyObject *object, PyObject *Py_UNUSED(unused))
{
    replacement *self = (replacement *)object;
    grd_replacement_abandon(self->file);
    self->file = NULL;
    Py_RETURN_NONE;
}

static PyMethodDef replacement_methods[] = {
    {"fileno", replacement_fileno, METH_NOARGS, "fileno($self)\n--\n\nThe descriptor of the new file; -1 once it is closed."},
    {"commit", replacement_commit, METH_NOARGS, "commit($self)\n--\n\nPuts the new file in the place of the old one."},
    {"abandon", replacement_abandon, METH_NOARGS, "abandon($self)\n--\n\nLeaves the old file as it is."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot replacement_slots[] = {
    {Py_tp_doc, "A new file that takes the place of another one when it is complete."},
    {Py_tp_dealloc, replacement_dealloc},
    {Py_tp_methods, replacement_methods},
    {0, NULL},
};

/* ---- The module -------------------------------------------------------------------------------------------------- */

static PyType_Spec tensor_file_spec = {"gradus._C._TensorFile", sizeof(tensor_file), 0, Py_TPFLAGS_DEFAULT, tensor_file_slots};
static PyType_Spec replacement_spec = {"gradus._C._Replacement", sizeof(replacement), 0, Py_TPFLAGS_DEFAULT, replacement_slots};

static PyMethodDef functions[] = {
    {"_open_safetensors", open_safetensors, METH_O, "_open_safetensors(path)\n--\n\nOpens a safetensors file."},
    {"_read_safetensors", read_safetensors, METH_O, "_read_safetensors(content)\n--\n\nThe same for its bytes in memory."},
    {"_save_safetensors", save_safetensors, METH_VARARGS,
     "_save_safetensors(tensors, metadata, path)\n--\n\nWrites dictionaries of tensors and texts to a file, or to bytes with None."},
    {"_open_replacement", open_replacement, METH_O,
     "_open_replacement(path)\n--\n\nA new file that will take the place of the one at the path."},
    {NULL, NULL, 0, NULL},
};

bool py_add_safetensors(PyObject *module)
{
    tensor_file_type = py_add_type(module, &tensor_file_spec, NULL);
    replacement_type = tensor_file_type != NULL ? py_add_type(module, &replacement_spec, NULL) : NULL;
    return replacement_type != NULL && PyModule_AddFunctions(module, functions) == 0;
}
