/* Implements the Tensor methods that convert the dtype, device or memory format: to(), type(), float(), cpu() and others. */
#include "device.h"
#include "dtype.h"
#include "gil.h"
#include "override.h"
#include "parse.h"
#include "tensor_methods.h"
#include "gradus/ops/contiguous.h"
#include "gradus/ops/to.h"

/* ---- to ---------------------------------------------------------------------------------------------------------- */

/* Target of a conversion. If the dtype or the type of the device is NONE, the tensor keeps its own. */
struct conversion {
    grd_dtype dtype;
    grd_device device;
    bool copy;
    PyObject *memory_format; /* memory format object; NULL preserves the format of the tensor */
};

static PyObject *convert(PyObject *self, const struct conversion *conversion)
{
    grd_tensor *t = py_tensor_of(self);
    const char *format = conversion->memory_format != NULL ? py_as_memory_format(conversion->memory_format) : "preserve";
    grd_scope scope = grd_scope_open();
    PyThreadState *state = NULL;
    if (grd_numel(t) >= PY_MUCH) {
        grd_keep(t); /* keeps `t` alive, because another thread may free the Python object while the GIL is released */
        state = py_begin_work();
    }
    grd_tensor *converted = grd_to(t, .dtype = conversion->dtype, .device = conversion->device, .copy = conversion->copy);
    if (strcmp(format, "preserve") != 0)
        converted = grd_contiguous(converted, .memory_format = format);
    if (state != NULL) {
        py_end_work(state);
        grd_drop(t);
    }
    return py_take(scope, converted);
}

#define DEVICE_PARAM                                                                                                                       \
    {                                                                                                                                      \
        "device", GRD_KIND_DEVICE, PY_OPTIONAL | PY_NONE, "None"                                                                           \
    }
#define FLAG_PARAMS                                                                                                                        \
    {"non_blocking", GRD_KIND_BOOL, PY_OPTIONAL, "False"},                                                                                 \
    {                                                                                                                                      \
        "copy", GRD_KIND_BOOL, PY_OPTIONAL, "False"                                                                                        \
    }
#define FORMAT_PARAM                                                                                                                       \
    {                                                                                                                                      \
        "memory_format", PY_KIND_MEMORY_FORMAT, PY_OPTION, "None"                                                                          \
    }

static const struct py_param to_device[] = {
    {"self", GRD_KIND_TENSOR, 0, NULL}, DEVICE_PARAM, {"dtype", GRD_KIND_DTYPE, PY_OPTIONAL | PY_NONE, "None"}, FLAG_PARAMS, FORMAT_PARAM,
};
static const struct py_param to_dtype[] = {
    {"self", GRD_KIND_TENSOR, 0, NULL},
    {"dtype", GRD_KIND_DTYPE, 0, NULL},
    FLAG_PARAMS,
    FORMAT_PARAM,
};
static const struct py_param to_tensor[] = {
    {"self", GRD_KIND_TENSOR, 0, NULL},
    {"tensor", GRD_KIND_TENSOR, 0, NULL},
    FLAG_PARAMS,
    FORMAT_PARAM,
};
enum { TO_DEVICE, TO_DTYPE, TO_TENSOR };
static const struct py_signature to_signatures[] = {
    [TO_DEVICE] = {.params = to_device, .nparams = 6, .nvalues = 5, .positional = 5},
    [TO_DTYPE] = {.params = to_dtype, .nparams = 5, .nvalues = 4, .positional = 4},
    [TO_TENSOR] = {.params = to_tensor, .nparams = 5, .nvalues = 4, .positional = 4},
};
static const struct py_function to_function = {.name = "to", .signatures = to_signatures, .nsignatures = 3, .home = PY_METHOD};

static PyObject *given_format(const struct py_arguments *arguments, int i)
{
    PyObject *given = arguments->objects[i];
    return given != Py_None ? given : NULL;
}

PyObject *py_method_to(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    struct conversion conversion = {GRD_DTYPE_NONE, {GRD_DEVICE_NONE, 0}, false, NULL};
    if (PY_LIKELY(nargs == 1 && names == NULL && py_is_dtype(args[0]) && !py_is_overloaded(self))) {
        py_as_dtype(args[0], &conversion.dtype);
        return convert(self, &conversion);
    }
    struct py_arguments arguments;
    PyObject *result;
    if (!py_accept(&to_function, self, args, nargs, names, &arguments, &result))
        return result;
    int flags = 2; /* index of the parameter non_blocking; copy and memory_format follow it */
    switch (arguments.signature - to_signatures) {
    case TO_DEVICE:
        conversion.device = py_device_or(&arguments, 1, conversion.device);
        conversion.dtype = py_dtype_or(&arguments, 2, GRD_DTYPE_NONE);
        flags = 3;
        break;
    case TO_DTYPE:
        conversion.dtype = arguments.values[1].v.dtype;
        break;
    default:
        conversion.dtype = grd_tensor_dtype(arguments.values[1].v.tensor);
        conversion.device = grd_tensor_device(arguments.values[1].v.tensor);
        break;
    }
    conversion.copy = py_bool_or(&arguments, flags + 1, false);
    conversion.memory_format = given_format(&arguments, flags + 2);
    result = convert(self, &conversion);
    py_arguments_done(&arguments);
    return result;
}

/* ---- float(), long(), ... ---------------------------------------------------------------------------------------- */

static const struct py_param format_only[] = {{"self", GRD_KIND_TENSOR, 0, NULL}, FORMAT_PARAM};
static const struct py_signature format_signature = {.params = format_only, .nparams = 2, .nvalues = 1, .positional = 1};

static PyObject *convert_by_name(const char *name, grd_dtype dtype, grd_device device, PyObject *self, PyObject *const *args,
                                 Py_ssize_t nargs, PyObject *names)
{
    struct conversion conversion = {dtype, device, false, NULL};
    if (PY_LIKELY(nargs == 0 && names == NULL && !py_is_overloaded(self)))
        return convert(self, &conversion);
    const struct py_function function = {.name = name, .signatures = &format_signature, .nsignatures = 1, .home = PY_METHOD};
    struct py_arguments arguments;
    PyObject *result;
    if (!py_accept(&function, self, args, nargs, names, &arguments, &result))
        return result;
    conversion.memory_format = given_format(&arguments, 1);
    result = convert(self, &conversion);
    py_arguments_done(&arguments);
    return result;
}

static const grd_device same_device = {GRD_DEVICE_NONE, 0};

PyObject *py_method_bool(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    return convert_by_name("bool", GRD_BOOL, same_device, self, args, nargs, names);
}

PyObject *py_method_byte(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    return convert_by_name("byte", GRD_UINT8, same_device, self, args, nargs, names);
}

PyObject *py_method_char(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    return convert_by_name("char", GRD_INT8, same_device, self, args, nargs, names);
}

PyObject *py_method_short(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    return convert_by_name("short", GRD_INT16, same_device, self, args, nargs, names);
}

PyObject *py_method_int(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    return convert_by_name("int", GRD_INT32, same_device, self, args, nargs, names);
}

PyObject *py_method_long(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    return convert_by_name("long", GRD_INT64, same_device, self, args, nargs, names);
}

PyObject *py_method_half(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    return convert_by_name("half", GRD_FLOAT16, same_device, self, args, nargs, names);
}

PyObject *py_method_bfloat16(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    return convert_by_name("bfloat16", GRD_BFLOAT16, same_device, self, args, nargs, names);
}

PyObject *py_method_float(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    return convert_by_name("float", GRD_FLOAT32, same_device, self, args, nargs, names);
}

PyObject *py_method_double(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    return convert_by_name("double", GRD_FLOAT64, same_device, self, args, nargs, names);
}

PyObject *py_method_chalf(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    return convert_by_name("chalf", GRD_COMPLEX32, same_device, self, args, nargs, names);
}

PyObject *py_method_cfloat(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    return convert_by_name("cfloat", GRD_COMPLEX64, same_device, self, args, nargs, names);
}

PyObject *py_method_cdouble(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    return convert_by_name("cdouble", GRD_COMPLEX128, same_device, self, args, nargs, names);
}

PyObject *py_method_cpu(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    return convert_by_name("cpu", GRD_DTYPE_NONE, GRD_CPU, self, args, nargs, names);
}

/* ---- cuda, type, type_as ----------------------------------------------------------------------------------------- */

static const struct py_param cuda_params[] = {
    {"self", GRD_KIND_TENSOR, 0, NULL}, DEVICE_PARAM, {"non_blocking", GRD_KIND_BOOL, PY_OPTIONAL, "False"}, FORMAT_PARAM};
static const struct py_signature cuda_signature = {.params = cuda_params, .nparams = 4, .nvalues = 3, .positional = 3};
static const struct py_function cuda_function = {.name = "cuda", .signatures = &cuda_signature, .nsignatures = 1, .home = PY_METHOD};

/* Implements cuda(): moves the tensor to the device type "cuda". Raises an exception unless a plug-in defines this device type. */
PyObject *py_method_cuda(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    struct conversion conversion = {GRD_DTYPE_NONE, same_device, false, NULL};
    struct py_arguments arguments;
    PyObject *result;
    if (!py_accept(&cuda_function, self, args, nargs, names, &arguments, &result))
        return result;
    conversion.device = py_device_or(&arguments, 1, same_device);
    conversion.memory_format = given_format(&arguments, 3);
    py_arguments_done(&arguments);
    PyObject *cuda = conversion.device.type == GRD_DEVICE_NONE ? PyUnicode_FromString("cuda") : NULL;
    const bool found = cuda == NULL ? !PyErr_Occurred() : py_as_device(cuda, &conversion.device) > 0;
    Py_XDECREF(cuda);
    return found ? convert(self, &conversion) : NULL;
}

/* Returns the type name of a tensor, e.g. "torch.FloatTensor" on the CPU and "torch.meta.FloatTensor" on the meta device. */
static PyObject *type_text(grd_tensor *t)
{
    const grd_device device = grd_tensor_device(t);
    const char *name = py_dtype_tensor_name(grd_tensor_dtype(t));
    return device.type == GRD_DEVICE_CPU ? PyUnicode_FromFormat("torch.%sTensor", name)
                                         : PyUnicode_FromFormat("torch.%s.%sTensor", grd_device_name(device), name);
}

/* Parses a type name such as "torch.FloatTensor" into a dtype. Returns false, without an exception, if the text is not such a name. */
static bool from_type_text(const char *text, grd_dtype *ret_dtype)
{
    static const char prefix[] = "torch.", suffix[] = "Tensor";
    if (strncmp(text, prefix, sizeof prefix - 1) != 0)
        return false;
    text += sizeof prefix - 1;
    for (int i = GRD_DTYPE_NONE + 1; i < GRD_DTYPE_COUNT; i++) {
        const char *name = py_dtype_tensor_name((grd_dtype)i);
        if (strncmp(text, name, strlen(name)) == 0 && strcmp(text + strlen(name), suffix) == 0) {
            *ret_dtype = (grd_dtype)i;
            return true;
        }
    }
    if (strcmp(text, suffix) == 0)
        *ret_dtype = grd_default_dtype();
    return strcmp(text, suffix) == 0;
}

/* Converts the name of a tensor type, or a class such as torch.FloatTensor, to a dtype. Returns false with ValueError. */
static bool read_type(PyObject *given, grd_dtype *ret_dtype)
{
    PyObject *name = PyUnicode_Check(given) ? Py_NewRef(given) : PyObject_GetAttrString(given, "__name__");
    PyObject *module = PyUnicode_Check(given) ? NULL : PyObject_GetAttrString(given, "__module__");
    PyObject *full = module != NULL ? PyUnicode_FromFormat("%S.%S", module, name) : name != NULL ? Py_NewRef(name) : NULL;
    const char *text = full != NULL ? PyUnicode_AsUTF8(full) : NULL;
    const bool known = text != NULL && from_type_text(text, ret_dtype);
    if (!known && !PyErr_Occurred())
        PyErr_Format(PyExc_ValueError, "invalid type: '%S'", name);
    Py_XDECREF(full);
    Py_XDECREF(module);
    Py_XDECREF(name);
    return known;
}

static const struct py_param type_params[] = {
    {"dtype", PY_KIND_OBJECT, PY_OPTIONAL, "None"},
    {"non_blocking", PY_KIND_OBJECT, PY_OPTIONAL, "False"},
};
static const struct py_signature type_signature = {.params = type_params, .nparams = 2, .positional = 2};
static const struct py_function type_function = {.name = "type", .signatures = &type_signature, .nsignatures = 1};

/* Implements t.type(dtype), where `dtype` is a dtype, a class such as torch.FloatTensor or the name of such a class. */
PyObject *py_method_type(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    if (PY_UNLIKELY(py_is_overloaded(self)))
        return py_override(self, "type", args, nargs, names);
    struct conversion conversion = {GRD_DTYPE_NONE, same_device, false, NULL};
    struct py_arguments arguments;
    if (!py_parse(&type_function, NULL, args, nargs, names, &arguments))
        return NULL;
    PyObject *given = arguments.objects[0];
    py_arguments_done(&arguments);
    if (!py_is_given(given))
        return type_text(py_tensor_of(self));
    if (given == (PyObject *)py_tensor_type)
        conversion.dtype = grd_default_dtype();
    else if (PyUnicode_Check(given) || PyType_Check(given)) {
        if (!read_type(given, &conversion.dtype))
            return NULL;
    } else if (!py_as_dtype(given, &conversion.dtype)) {
        return PyErr_Format(PyExc_TypeError, "dtype must be a type, str, or dtype object");
    }
    return convert(self, &conversion);
}

static const struct py_param other_params[] = {{"self", GRD_KIND_TENSOR, 0, NULL}, {"other", GRD_KIND_TENSOR, 0, NULL}};
static const struct py_signature other_signature = {.params = other_params, .nparams = 2, .nvalues = 2, .positional = 2};
static const struct py_function type_as_function = {.name = "type_as", .signatures = &other_signature, .nsignatures = 1, .home = PY_METHOD};

PyObject *py_method_type_as(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    struct conversion conversion = {GRD_DTYPE_NONE, same_device, false, NULL};
    struct py_arguments arguments;
    PyObject *result;
    if (!py_accept(&type_as_function, self, args, nargs, names, &arguments, &result))
        return result;
    conversion.dtype = grd_tensor_dtype(arguments.values[1].v.tensor);
    conversion.device = grd_tensor_device(arguments.values[1].v.tensor);
    result = convert(self, &conversion);
    py_arguments_done(&arguments);
    return result;
}
