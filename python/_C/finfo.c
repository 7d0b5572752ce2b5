/* Implements the classes torch.finfo and torch.iinfo, which describe the limits of floating-point and integer dtypes. */
#include "add_type.h"
#include "dtype.h"
#include "parse.h"
#include "tables.h"

#include <float.h>

struct info {
    PyObject_HEAD grd_dtype dtype;
};

static grd_dtype dtype_of(PyObject *self)
{
    return ((struct info *)self)->dtype;
}

static PyObject *new_info(PyTypeObject *type, grd_dtype dtype)
{
    PyObject *self = type->tp_alloc(type, 0);
    if (self != NULL)
        ((struct info *)self)->dtype = dtype;
    return self;
}

static const struct py_param optional_type[] = {{"type", GRD_KIND_DTYPE, PY_OPTIONAL, "None"}};
static const struct py_param required_type[] = {{"type", GRD_KIND_DTYPE, 0, NULL}};
static const struct py_signature finfo_signature = {.params = optional_type, .nparams = 1, .positional = 1};
static const struct py_signature iinfo_signature = {.params = required_type, .nparams = 1, .positional = 1};
static const struct py_function finfo_function = {.name = "finfo", .signatures = &finfo_signature, .nsignatures = 1};
static const struct py_function iinfo_function = {.name = "iinfo", .signatures = &iinfo_signature, .nsignatures = 1};

/* Sets *ret_dtype to the dtype argument of finfo() or iinfo(), or to the default dtype if it was left out. Returns false with an exception. */
static bool read_dtype(const struct py_function *function, PyObject *args, PyObject *named, grd_dtype *ret_dtype)
{
    struct py_arguments arguments;
    if (!py_parse_tuple(function, args, named, &arguments))
        return false;
    *ret_dtype = py_dtype_or(&arguments, 0, grd_default_dtype());
    py_arguments_done(&arguments);
    return true;
}

static PyObject *info_compare(PyObject *left, PyObject *right, int op)
{
    if (Py_TYPE(left) != Py_TYPE(right) || (op != Py_EQ && op != Py_NE))
        Py_RETURN_NOTIMPLEMENTED;
    return PyBool_FromLong((dtype_of(left) == dtype_of(right)) == (op == Py_EQ));
}

static PyObject *info_bits(PyObject *self, void *Py_UNUSED(closure))
{
    return PyLong_FromLongLong(grd_dtype_size(dtype_of(self)) * 8);
}

static PyObject *info_dtype(PyObject *self, void *Py_UNUSED(closure))
{
    return PyUnicode_FromString(grd_dtype_name(dtype_of(self)));
}

/* ---- finfo ------------------------------------------------------------------------------------------------------- */

/* Limits of a floating-point dtype. `tiny` is the smallest positive normal number, `eps` the distance from 1 to the next larger number, and `max` the
 * largest number. `resolution` is 10^-d, where d is the number of decimal digits that are always exact. */
struct float_limits {
    double tiny, eps, max, resolution;
};

static const struct float_limits float_limits[GRD_DTYPE_COUNT] = {
    [GRD_FLOAT16] = {0x1p-14, 0x1p-10, 65504, 1e-3},       [GRD_BFLOAT16] = {0x1p-126, 0x1p-7, 0x1.fep+127, 1e-2},
    [GRD_FLOAT32] = {FLT_MIN, FLT_EPSILON, FLT_MAX, 1e-6}, [GRD_FLOAT64] = {DBL_MIN, DBL_EPSILON, DBL_MAX, 1e-15},
    [GRD_FLOAT8_E4M3FN] = {0x1p-6, 0x1p-3, 448, 1},        [GRD_FLOAT8_E5M2] = {0x1p-14, 0x1p-2, 57344, 1},
};

static const struct float_limits *limits_of(PyObject *self)
{
    return &float_limits[dtype_of(self)];
}

static PyObject *finfo_new(PyTypeObject *type, PyObject *args, PyObject *named)
{
    grd_dtype dtype;
    if (!read_dtype(&finfo_function, args, named, &dtype))
        return NULL;
    if (!grd_dtype_is_floating(dtype) && !grd_dtype_is_complex(dtype))
        return PyErr_Format(PyExc_TypeError, "torch.finfo() requires a floating point input type. Use torch.iinfo to handle 'torch.finfo'");
    return new_info(type, grd_dtype_to_real(dtype));
}

static PyObject *finfo_eps(PyObject *self, void *Py_UNUSED(closure))
{
    return PyFloat_FromDouble(limits_of(self)->eps);
}

static PyObject *finfo_max(PyObject *self, void *Py_UNUSED(closure))
{
    return PyFloat_FromDouble(limits_of(self)->max);
}

static PyObject *finfo_min(PyObject *self, void *Py_UNUSED(closure))
{
    return PyFloat_FromDouble(-limits_of(self)->max);
}

static PyObject *finfo_tiny(PyObject *self, void *Py_UNUSED(closure))
{
    return PyFloat_FromDouble(limits_of(self)->tiny);
}

static PyObject *finfo_resolution(PyObject *self, void *Py_UNUSED(closure))
{
    return PyFloat_FromDouble(limits_of(self)->resolution);
}

static PyObject *finfo_repr(PyObject *self)
{
    const struct float_limits *limits = limits_of(self);
    char text[256];
    snprintf(text, sizeof text, "finfo(resolution=%g, min=%g, max=%g, eps=%g, smallest_normal=%g, tiny=%g, dtype=%s)", limits->resolution,
             -limits->max, limits->max, limits->eps, limits->tiny, limits->tiny, grd_dtype_name(dtype_of(self)));
    return PyUnicode_FromString(text);
}

static PyGetSetDef finfo_properties[] = {
    {"bits", info_bits, NULL, "Bits of one number.", NULL},
    {"eps", finfo_eps, NULL, "The distance from 1 to the next larger number.", NULL},
    {"max", finfo_max, NULL, "The largest finite number.", NULL},
    {"min", finfo_min, NULL, "The smallest finite number, which is -max.", NULL},
    {"tiny", finfo_tiny, NULL, "The smallest positive normal number; another name of smallest_normal.", NULL},
    {"smallest_normal", finfo_tiny, NULL, "The smallest positive number with a full mantissa.", NULL},
    {"resolution", finfo_resolution, NULL, "The power of ten to which decimal numbers are exact.", NULL},
    {"dtype", info_dtype, NULL, "The name of the dtype: 'float32'.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot finfo_slots[] = {
    {Py_tp_doc, "finfo(type=None)\n--\n\nThe limits of a floating-point dtype, by default of the default dtype; of a complex one, those of "
                "its parts."},
    {Py_tp_new, finfo_new},
    {Py_tp_dealloc, py_free_object},
    {Py_tp_repr, finfo_repr},
    {Py_tp_richcompare, info_compare},
    {Py_tp_getset, finfo_properties},
    {0, NULL},
};

static PyType_Spec finfo_spec = {"gradus.finfo", sizeof(struct info), 0, Py_TPFLAGS_DEFAULT, finfo_slots};

/* ---- iinfo ------------------------------------------------------------------------------------------------------- */

static PyObject *iinfo_new(PyTypeObject *type, PyObject *args, PyObject *named)
{
    grd_dtype dtype;
    if (!read_dtype(&iinfo_function, args, named, &dtype))
        return NULL;
    if (dtype == GRD_BOOL)
        return PyErr_Format(PyExc_TypeError, "torch.bool is not supported by torch.iinfo");
    if (grd_dtype_is_floating(dtype) || grd_dtype_is_complex(dtype))
        return PyErr_Format(PyExc_TypeError, "torch.iinfo() requires an integer input type. Use torch.finfo to handle 'torch.iinfo'");
    if (!grd_dtype_is_integer(dtype))
        return PyErr_Format(PyExc_NotImplementedError, "\"dtype\" not implemented for '%s'", py_dtype_tensor_name(dtype));
    return new_info(type, dtype);
}

static bool is_signed(PyObject *self)
{
    return py_dtype_is_signed(dtype_of(self));
}

static int bits_of(PyObject *self)
{
    return (int)grd_dtype_size(dtype_of(self)) * 8;
}

static uint64_t largest(PyObject *self)
{
    return UINT64_MAX >> (64 - bits_of(self) + is_signed(self));
}

static PyObject *iinfo_max(PyObject *self, void *Py_UNUSED(closure))
{
    return PyLong_FromUnsignedLongLong(largest(self));
}

static int64_t smallest(PyObject *self)
{
    return is_signed(self) ? -(int64_t)largest(self) - 1 : 0;
}

static PyObject *iinfo_min(PyObject *self, void *Py_UNUSED(closure))
{
    return PyLong_FromLongLong(smallest(self));
}

static PyObject *iinfo_repr(PyObject *self)
{
    char text[128];
    snprintf(text, sizeof text, "iinfo(min=%g, max=%g, dtype=%s)", (double)smallest(self), (double)largest(self),
             grd_dtype_name(dtype_of(self)));
    return PyUnicode_FromString(text);
}

static PyGetSetDef iinfo_properties[] = {
    {"bits", info_bits, NULL, "Bits of one number.", NULL},
    {"max", iinfo_max, NULL, "The largest number.", NULL},
    {"min", iinfo_min, NULL, "The smallest number.", NULL},
    {"dtype", info_dtype, NULL, "The name of the dtype: 'int32'.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot iinfo_slots[] = {
    {Py_tp_doc, "iinfo(type)\n--\n\nThe limits of an integer dtype."},
    {Py_tp_new, iinfo_new},
    {Py_tp_dealloc, py_free_object},
    {Py_tp_repr, iinfo_repr},
    {Py_tp_richcompare, info_compare},
    {Py_tp_getset, iinfo_properties},
    {0, NULL},
};

static PyType_Spec iinfo_spec = {"gradus.iinfo", sizeof(struct info), 0, Py_TPFLAGS_DEFAULT, iinfo_slots};

bool py_add_finfo(PyObject *module)
{
    return py_add_type(module, &finfo_spec, NULL) != NULL && py_add_type(module, &iinfo_spec, NULL) != NULL;
}
