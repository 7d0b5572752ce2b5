/* Implements the methods new_empty, new_empty_strided, new_zeros, new_ones and new_full, which create tensors with the dtype and device of self. */
#include "parse.h"
#include "tensor_methods.h"
#include "tensor_object.h"
#include "gradus/ops/empty.h"
#include "gradus/ops/empty_strided.h"
#include "gradus/ops/full.h"
#include "gradus/ops/ones.h"
#include "gradus/ops/zeros.h"

#define SELF                                                                                                                               \
    {                                                                                                                                      \
        "self", GRD_KIND_TENSOR, 0, NULL                                                                                                   \
    }
#define SIZE                                                                                                                               \
    {                                                                                                                                      \
        "size", GRD_KIND_DIMS, 0, NULL                                                                                                     \
    }
/* Keyword parameters that all methods of this file have, at the end of each parameter list. */
#define OPTIONS                                                                                                                            \
    {"dtype", GRD_KIND_DTYPE, PY_OPTION, "None"}, {"device", GRD_KIND_DEVICE, PY_OPTION, "None"},                                          \
        {"requires_grad", GRD_KIND_BOOL, PY_OPTIONAL | PY_KEYWORD, "False"}, {"layout", PY_KIND_LAYOUT, PY_OPTION, "None"},                \
    {                                                                                                                                      \
        "pin_memory", PY_KIND_PIN_MEMORY, PY_OPTION, "False"                                                                               \
    }

static const struct py_param by_size[] = {SELF, SIZE, OPTIONS};
static const struct py_param by_strides[] = {SELF, SIZE, {"stride", GRD_KIND_DIMS, 0, NULL}, OPTIONS};
static const struct py_param by_value[] = {SELF, SIZE, {"fill_value", GRD_KIND_SCALAR, 0, NULL}, OPTIONS};

static const struct py_signature size_signature = {.params = by_size, .nparams = 7, .nvalues = 5, .positional = 2, .loose = true};
static const struct py_signature strides_signature = {.params = by_strides, .nparams = 8, .nvalues = 6, .positional = 3};
static const struct py_signature value_signature = {.params = by_value, .nparams = 8, .nvalues = 6, .positional = 3};

/* Values of the keyword arguments. dtype and device are those of self if left out. */
struct options {
    grd_dtype dtype;
    grd_device device;
    bool requires_grad;
};

/* Returns the values of the keyword arguments. `first` is the index of the parameter `dtype`; the other keywords follow it. */
static struct options read_options(grd_tensor *self, const struct py_arguments *arguments, int first)
{
    return (struct options){py_dtype_or(arguments, first, grd_tensor_dtype(self)),
                            py_device_or(arguments, first + 1, grd_tensor_device(self)), py_bool_or(arguments, first + 2, false)};
}

typedef grd_tensor *make_function(const struct py_arguments *arguments, const struct options *options);

static PyObject *make_new(const char *name, const struct py_signature *signature, make_function *make, PyObject *self,
                          PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    const struct py_function function = {.name = name, .signatures = signature, .nsignatures = 1, .home = PY_METHOD};
    struct py_arguments arguments;
    PyObject *result;
    if (!py_accept(&function, self, args, nargs, names, &arguments, &result))
        return result;
    const struct options options = read_options(py_tensor_of(self), &arguments, signature->positional);
    grd_scope scope = grd_scope_open();
    result = py_take(scope, make(&arguments, &options));
    py_arguments_done(&arguments);
    return result;
}

static grd_tensor *make_empty(const struct py_arguments *arguments, const struct options *options)
{
    return grd_empty(arguments->values[1].v.dims, .dtype = options->dtype, .device = options->device,
                     .requires_grad = options->requires_grad);
}

PyObject *py_method_new_empty(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    return make_new("new_empty", &size_signature, make_empty, self, args, nargs, names);
}

static grd_tensor *make_empty_strided(const struct py_arguments *arguments, const struct options *options)
{
    return grd_empty_strided(arguments->values[1].v.dims, arguments->values[2].v.dims, .dtype = options->dtype, .device = options->device,
                             .requires_grad = options->requires_grad);
}

PyObject *py_method_new_empty_strided(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    return make_new("new_empty_strided", &strides_signature, make_empty_strided, self, args, nargs, names);
}

static grd_tensor *make_zeros(const struct py_arguments *arguments, const struct options *options)
{
    return grd_zeros(arguments->values[1].v.dims, .dtype = options->dtype, .device = options->device,
                     .requires_grad = options->requires_grad);
}

PyObject *py_method_new_zeros(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    return make_new("new_zeros", &size_signature, make_zeros, self, args, nargs, names);
}

static grd_tensor *make_ones(const struct py_arguments *arguments, const struct options *options)
{
    return grd_ones(arguments->values[1].v.dims, .dtype = options->dtype, .device = options->device,
                    .requires_grad = options->requires_grad);
}

PyObject *py_method_new_ones(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    return make_new("new_ones", &size_signature, make_ones, self, args, nargs, names);
}

static grd_tensor *make_full(const struct py_arguments *arguments, const struct options *options)
{
    return grd_full(arguments->values[1].v.dims, arguments->values[2].v.scalar, .dtype = options->dtype, .device = options->device,
                    .requires_grad = options->requires_grad);
}

PyObject *py_method_new_full(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    return make_new("new_full", &value_signature, make_full, self, args, nargs, names);
}
