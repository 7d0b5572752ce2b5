/* Implements the objects of dtypes, layouts and memory formats, e.g. torch.float32. There is one object for each, which is never freed. */
#include "dtype.h"
#include "add_type.h"
#include "tables.h"

/* Object of a dtype, a layout or a memory format, e.g. torch.float32, torch.strided or torch.channels_last. */
struct constant {
    PyObject_HEAD const char *name;
    int value;
};

static PyTypeObject *dtype_type, *layout_type, *memory_format_type;

static const char *name_of(PyObject *self)
{
    return ((struct constant *)self)->name;
}

static int value_of(PyObject *self)
{
    return ((struct constant *)self)->value;
}

static PyObject *constant_repr(PyObject *self)
{
    return PyUnicode_FromFormat("torch.%s", name_of(self));
}

static PyObject *constant_reduce(PyObject *self, PyObject *Py_UNUSED(none))
{
    return PyUnicode_FromString(name_of(self));
}

static PyObject *refuse_new(PyTypeObject *type, PyObject *Py_UNUSED(args), PyObject *Py_UNUSED(named))
{
    return PyErr_Format(PyExc_TypeError, "cannot create '%s' instances", type->tp_name);
}

static PyObject *new_constant(PyTypeObject *type, const char *name, int value)
{
    struct constant *constant = PyObject_New(struct constant, type);
    if (constant == NULL)
        return NULL;
    constant->name = name;
    constant->value = value;
    return (PyObject *)constant;
}

/* ---- dtypes ------------------------------------------------------------------------------------------------------ */

static PyObject *dtypes[GRD_DTYPE_COUNT];

/* For each dtype: the name in PyTorch's error texts and tensor types, e.g. "Float", and the abbreviation, e.g. "f32". */
static const struct {
    const char *tensor, *abbr;
} dtype_words[GRD_DTYPE_COUNT] = {
    [GRD_BOOL] = {"Bool", "b8"},
    [GRD_UINT8] = {"Byte", "u8"},
    [GRD_INT8] = {"Char", "i8"},
    [GRD_UINT16] = {"UInt16", "u16"},
    [GRD_INT16] = {"Short", "i16"},
    [GRD_UINT32] = {"UInt32", "u32"},
    [GRD_INT32] = {"Int", "i32"},
    [GRD_UINT64] = {"UInt64", "u64"},
    [GRD_INT64] = {"Long", "i64"},
    [GRD_FLOAT16] = {"Half", "f16"},
    [GRD_BFLOAT16] = {"BFloat16", "bf16"},
    [GRD_FLOAT32] = {"Float", "f32"},
    [GRD_FLOAT64] = {"Double", "f64"},
    [GRD_COMPLEX32] = {"ComplexHalf", "c32"},
    [GRD_COMPLEX64] = {"ComplexFloat", "c64"},
    [GRD_COMPLEX128] = {"ComplexDouble", "c128"},
    [GRD_FLOAT8_E4M3FN] = {"Float8_e4m3fn", "f8e4m3fn"},
    [GRD_FLOAT8_E5M2] = {"Float8_e5m2", "f8e5m2"},
    [GRD_QINT8] = {"QInt8", "qint8"},
    [GRD_QUINT8] = {"QUInt8", "quint8"},
    [GRD_QINT32] = {"QInt32", "qint32"},
};

static const struct {
    const char *name;
    grd_dtype dtype;
} dtype_aliases[] = {
    {"half", GRD_FLOAT16}, {"float", GRD_FLOAT32},   {"double", GRD_FLOAT64},   {"short", GRD_INT16},        {"int", GRD_INT32},
    {"long", GRD_INT64},   {"chalf", GRD_COMPLEX32}, {"cfloat", GRD_COMPLEX64}, {"cdouble", GRD_COMPLEX128},
};

PyObject *py_dtype(grd_dtype dtype)
{
    PyObject *object = dtypes[dtype];
    Py_INCREF(object);
    return object;
}

bool py_is_dtype(PyObject *object)
{
    return Py_TYPE(object) == dtype_type;
}

bool py_as_dtype(PyObject *object, grd_dtype *ret_dtype)
{
    if (PY_LIKELY(py_is_dtype(object)))
        *ret_dtype = (grd_dtype)value_of(object);
    else if (object == (PyObject *)&PyFloat_Type)
        *ret_dtype = GRD_FLOAT64;
    else if (object == (PyObject *)&PyLong_Type)
        *ret_dtype = GRD_INT64;
    else if (object == (PyObject *)&PyBool_Type)
        *ret_dtype = GRD_BOOL;
    else if (object == (PyObject *)&PyComplex_Type)
        *ret_dtype = GRD_COMPLEX128;
    else
        return false;
    return true;
}

const char *py_dtype_tensor_name(grd_dtype dtype)
{
    return dtype_words[dtype].tensor;
}

static grd_dtype dtype_of(PyObject *self)
{
    return (grd_dtype)value_of(self);
}

static PyObject *dtype_itemsize(PyObject *self, void *Py_UNUSED(closure))
{
    return PyLong_FromLongLong(grd_dtype_size(dtype_of(self)));
}

static PyObject *dtype_is_floating_point(PyObject *self, void *Py_UNUSED(closure))
{
    return PyBool_FromLong(grd_dtype_is_floating(dtype_of(self)));
}

static PyObject *dtype_is_complex(PyObject *self, void *Py_UNUSED(closure))
{
    return PyBool_FromLong(grd_dtype_is_complex(dtype_of(self)));
}

bool py_dtype_is_signed(grd_dtype dtype)
{
    const bool is_unsigned = dtype == GRD_BOOL || dtype == GRD_UINT8 || dtype == GRD_UINT16 || dtype == GRD_UINT32 || dtype == GRD_UINT64;
    return !is_unsigned;
}

bool py_dtype_is_quantized(grd_dtype dtype)
{
    return dtype == GRD_QINT8 || dtype == GRD_QUINT8 || dtype == GRD_QINT32;
}

static PyObject *dtype_is_signed(PyObject *self, void *Py_UNUSED(closure))
{
    if (py_dtype_is_quantized(dtype_of(self)))
        return PyErr_Format(PyExc_RuntimeError, "isSignedType not supported for quantized types");
    return PyBool_FromLong(py_dtype_is_signed(dtype_of(self)));
}

static PyObject *dtype_abbr(PyObject *self, void *Py_UNUSED(closure))
{
    return PyUnicode_FromString(dtype_words[dtype_of(self)].abbr);
}

static PyObject *dtype_to_real(PyObject *self, PyObject *Py_UNUSED(none))
{
    return py_dtype(grd_dtype_to_real(dtype_of(self)));
}

static PyObject *dtype_to_complex(PyObject *self, PyObject *Py_UNUSED(none))
{
    const grd_dtype dtype = dtype_of(self), complex = grd_dtype_to_complex(dtype);
    if (!grd_dtype_is_complex(complex) || dtype == GRD_FLOAT8_E4M3FN || dtype == GRD_FLOAT8_E5M2)
        return PyErr_Format(PyExc_RuntimeError, "Unknown Complex ScalarType for %s", py_dtype_tensor_name(dtype));
    return py_dtype(complex);
}

static PyMethodDef dtype_methods[] = {
    {"to_real", dtype_to_real, METH_NOARGS, "to_real($self)\n--\n\nThe dtype of the parts of a complex number; a real dtype itself."},
    {"to_complex", dtype_to_complex, METH_NOARGS,
     "to_complex($self)\n--\n\nThe complex dtype whose parts have at least this precision. RuntimeError when there is none."},
    {"__reduce__", constant_reduce, METH_NOARGS, "The name, under which pickle finds the dtype again."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef dtype_properties[] = {
    {"itemsize", dtype_itemsize, NULL, "Bytes of one element.", NULL},
    {"is_floating_point", dtype_is_floating_point, NULL, "True if elements are real floating-point numbers.", NULL},
    {"is_complex", dtype_is_complex, NULL, "True if elements are complex numbers.", NULL},
    {"is_signed", dtype_is_signed, NULL, "True if elements can be negative.", NULL},
    {"abbr", dtype_abbr, NULL, "The short name: 'f32'.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot dtype_slots[] = {
    {Py_tp_doc, "The type of the elements of a tensor. There is one object for each: torch.float32."},
    {Py_tp_new, refuse_new},
    {Py_tp_dealloc, py_free_object},
    {Py_tp_repr, constant_repr},
    {Py_tp_methods, dtype_methods},
    {Py_tp_getset, dtype_properties},
    {0, NULL},
};

static PyType_Spec dtype_spec = {"gradus.dtype", sizeof(struct constant), 0, Py_TPFLAGS_DEFAULT, dtype_slots};

static bool add_dtypes(PyObject *module)
{
    dtype_type = py_add_type(module, &dtype_spec, NULL);
    if (dtype_type == NULL)
        return false;
    for (int i = GRD_DTYPE_NONE + 1; i < GRD_DTYPE_COUNT; i++) {
        const char *name = grd_dtype_name((grd_dtype)i);
        dtypes[i] = new_constant(dtype_type, name, i);
        if (dtypes[i] == NULL || !py_add(module, name, py_dtype((grd_dtype)i)))
            return false;
    }
    for (size_t i = 0; i < sizeof dtype_aliases / sizeof *dtype_aliases; i++)
        if (!py_add(module, dtype_aliases[i].name, py_dtype(dtype_aliases[i].dtype)))
            return false;
    return true;
}

/* ---- Layouts and memory formats ---------------------------------------------------------------------------------- */

static PyObject *strided;

PyObject *py_layout(grd_layout Py_UNUSED(layout))
{
    Py_INCREF(strided);
    return strided;
}

bool py_as_layout(PyObject *object, grd_layout *ret_layout)
{
    if (object != strided)
        return false;
    *ret_layout = (grd_layout)value_of(object);
    return true;
}

static PyMethodDef constant_methods[] = {
    {"__reduce__", constant_reduce, METH_NOARGS, "The name, under which pickle finds the object again."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot layout_slots[] = {
    {Py_tp_doc, "How a tensor keeps its elements: torch.strided, or torch.jagged for those of torch.nested."},
    {Py_tp_new, refuse_new},
    {Py_tp_dealloc, py_free_object},
    {Py_tp_repr, constant_repr},
    {Py_tp_methods, constant_methods},
    {0, NULL},
};

static PyType_Spec layout_spec = {"gradus.layout", sizeof(struct constant), 0, Py_TPFLAGS_DEFAULT, layout_slots};

static PyType_Slot memory_format_slots[] = {
    {Py_tp_doc, "The order of the dimensions of a tensor in memory: torch.contiguous_format."},
    {Py_tp_new, refuse_new},
    {Py_tp_dealloc, py_free_object},
    {Py_tp_repr, constant_repr},
    {Py_tp_methods, constant_methods},
    {0, NULL},
};

static PyType_Spec memory_format_spec = {"gradus.memory_format", sizeof(struct constant), 0, Py_TPFLAGS_DEFAULT, memory_format_slots};

static const struct {
    const char *name, *format;
    int ndim;
} memory_formats[] = {
    {"contiguous_format", "contiguous", 0},
    {"preserve_format", "preserve", 0},
    {"channels_last", "channels_last", 4},
    {"channels_last_3d", "channels_last_3d", 5},
};

const char *py_as_memory_format(PyObject *object)
{
    return Py_TYPE(object) == memory_format_type ? memory_formats[value_of(object)].format : NULL;
}

int py_memory_format_ndim(PyObject *object)
{
    return memory_formats[value_of(object)].ndim;
}

static bool add_formats(PyObject *module)
{
    layout_type = py_add_type(module, &layout_spec, NULL);
    memory_format_type = layout_type != NULL ? py_add_type(module, &memory_format_spec, NULL) : NULL;
    if (memory_format_type == NULL)
        return false;
    strided = new_constant(layout_type, "strided", GRD_STRIDED);
    if (strided == NULL || !py_add(module, "strided", py_layout(GRD_STRIDED)) ||
        !py_add(module, "jagged", new_constant(layout_type, "jagged", GRD_STRIDED)))
        return false;
    for (int i = 0; i < (int)(sizeof memory_formats / sizeof *memory_formats); i++)
        if (!py_add(module, memory_formats[i].name, new_constant(memory_format_type, memory_formats[i].name, i)))
            return false;
    return true;
}

bool py_add_dtypes(PyObject *module)
{
    return add_dtypes(module) && add_formats(module);
}
