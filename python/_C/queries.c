/* Implements queries about dtypes and tensors, such as is_tensor, numel, equal, allclose and promote_types, as module functions and as Tensor
 * methods. */
#include "dtype.h"
#include "errors.h"
#include "override.h"
#include "parse.h"
#include "tables.h"
#include "tensor_methods.h"
#include "tensor_slots.h"

#define SELF                                                                                                                               \
    {                                                                                                                                      \
        "self", GRD_KIND_TENSOR, 0, NULL                                                                                                   \
    }
#define INPUT                                                                                                                              \
    {                                                                                                                                      \
        "input", GRD_KIND_TENSOR, 0, NULL                                                                                                  \
    }

/* ---- One tensor -------------------------------------------------------------------------------------------------- */

static const struct py_param input_params[] = {INPUT};
static const struct py_signature input_signature = {.params = input_params, .nparams = 1, .nvalues = 1, .positional = 1};

typedef PyObject *answer_function(PyObject *tensor);

static PyObject *ask(const char *name, answer_function *answer, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    if (PY_LIKELY(nargs == 1 && names == NULL && py_is_exact_no_mode(args[0])))
        return answer(args[0]);
    const struct py_function function = {.name = name, .signatures = &input_signature, .nsignatures = 1};
    struct py_arguments arguments;
    PyObject *result;
    if (!py_accept(&function, NULL, args, nargs, names, &arguments, &result))
        return result;
    result = answer(arguments.objects[0]);
    py_arguments_done(&arguments);
    return result;
}

static grd_dtype dtype_of(PyObject *tensor)
{
    return grd_tensor_dtype(py_tensor_of(tensor));
}

static PyObject *is_floating_point(PyObject *tensor)
{
    return PyBool_FromLong(grd_dtype_is_floating(dtype_of(tensor)));
}

static PyObject *is_complex(PyObject *tensor)
{
    return PyBool_FromLong(grd_dtype_is_complex(dtype_of(tensor)));
}

static PyObject *is_signed(PyObject *tensor)
{
    return PyBool_FromLong(py_dtype_is_signed(dtype_of(tensor)));
}

static PyObject *is_nonzero(PyObject *tensor)
{
    const int truth = py_tensor_bool(tensor);
    return truth < 0 ? NULL : PyBool_FromLong(truth);
}

static PyObject *numel(PyObject *tensor)
{
    return PyLong_FromLongLong(grd_numel(py_tensor_of(tensor)));
}

static PyObject *function_is_floating_point(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    return ask("is_floating_point", is_floating_point, args, nargs, names);
}

static PyObject *function_is_complex(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    return ask("is_complex", is_complex, args, nargs, names);
}

static PyObject *function_is_signed(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    return ask("is_signed", is_signed, args, nargs, names);
}

static PyObject *function_is_nonzero(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    return ask("is_nonzero", is_nonzero, args, nargs, names);
}

static PyObject *function_numel(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    return ask("numel", numel, args, nargs, names);
}

static PyObject *is_tensor(PyObject *Py_UNUSED(module), PyObject *object)
{
    return PyBool_FromLong(py_is_tensor(object));
}

/* ---- Two tensors ------------------------------------------------------------------------------------------------- */

static const struct py_param pair_params[] = {INPUT, {"other", GRD_KIND_TENSOR, 0, NULL}};
static const struct py_signature pair_signature = {.params = pair_params, .nparams = 2, .nvalues = 2, .positional = 2};
static const struct py_param close_params[] = {
    INPUT,
    {"other", GRD_KIND_TENSOR, 0, NULL},
    {"rtol", GRD_KIND_FLOAT, PY_OPTIONAL, "1e-05"},
    {"atol", GRD_KIND_FLOAT, PY_OPTIONAL, "1e-08"},
    {"equal_nan", GRD_KIND_BOOL, PY_OPTIONAL, "False"},
};
static const struct py_signature close_signature = {.params = close_params, .nparams = 5, .nvalues = 5, .positional = 5};

typedef bool compare_function(const struct py_arguments *arguments, grd_tensor *a, grd_tensor *b);

static bool compare_equal(const struct py_arguments *Py_UNUSED(arguments), grd_tensor *a, grd_tensor *b)
{
    return grd_equal(a, b);
}

static bool compare_close(const struct py_arguments *arguments, grd_tensor *a, grd_tensor *b)
{
    return grd_allclose(a, b, py_float_or(arguments, 2, 1e-5), py_float_or(arguments, 3, 1e-8), py_bool_or(arguments, 4, false));
}

static bool compare_sizes(const struct py_arguments *Py_UNUSED(arguments), grd_tensor *a, grd_tensor *b)
{
    const grd_dims x = grd_sizes(a), y = grd_sizes(b);
    bool same = x.n == y.n;
    for (int64_t i = 0; i < x.n && same; i++)
        same = x.data[i] == y.data[i];
    return same;
}

struct comparison {
    const char *name;
    const struct py_signature *signature;
    compare_function *compare;
};

static const struct comparison equal = {"equal", &pair_signature, compare_equal};
static const struct comparison allclose = {"allclose", &close_signature, compare_close};
static const struct comparison is_same_size = {"is_same_size", &pair_signature, compare_sizes};

/* Compares the two tensors among the arguments and returns the answer as a Python bool. `self` is NULL for a call of the module function,
 * e.g. torch.equal(a, b). */
static PyObject *compare(const struct comparison *comparison, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    const struct py_function function = {
        .name = comparison->name, .signatures = comparison->signature, .nsignatures = 1, .home = self != NULL ? PY_METHOD : PY_FUNCTION};
    struct py_arguments arguments;
    PyObject *result;
    if (!py_accept(&function, self, args, nargs, names, &arguments, &result))
        return result;
    grd_tensor *a = arguments.values[0].v.tensor, *b = arguments.values[1].v.tensor;
    const bool answer = comparison->compare(&arguments, a, b);
    py_arguments_done(&arguments);
    return grd_ok() ? PyBool_FromLong(answer) : py_raise();
}

static PyObject *function_equal(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    return compare(&equal, NULL, args, nargs, names);
}

static PyObject *function_allclose(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    return compare(&allclose, NULL, args, nargs, names);
}

static PyObject *function_is_same_size(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    return compare(&is_same_size, NULL, args, nargs, names);
}

PyObject *py_method_equal(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    return compare(&equal, self, args, nargs, names);
}

PyObject *py_method_allclose(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    return compare(&allclose, self, args, nargs, names);
}

PyObject *py_method_is_same_size(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    return compare(&is_same_size, self, args, nargs, names);
}

/* ---- Promotion --------------------------------------------------------------------------------------------------- */

static const struct py_param promote_params[] = {{"type1", GRD_KIND_DTYPE, 0, NULL}, {"type2", GRD_KIND_DTYPE, 0, NULL}};
static const struct py_signature promote_signature = {.params = promote_params, .nparams = 2, .nvalues = 2, .positional = 2};
static const struct py_function promote_function = {.name = "promote_types", .signatures = &promote_signature, .nsignatures = 1};

static PyObject *promote_types(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    struct py_arguments arguments;
    PyObject *result;
    if (!py_accept(&promote_function, NULL, args, nargs, names, &arguments, &result))
        return result;
    const grd_dtype dtype = grd_promote(arguments.values[0].v.dtype, arguments.values[1].v.dtype);
    py_arguments_done(&arguments);
    return grd_ok() ? py_dtype(dtype) : py_raise();
}

static const struct py_param cast_params[] = {{"from_", GRD_KIND_DTYPE, 0, NULL}, {"to", GRD_KIND_DTYPE, 0, NULL}};
static const struct py_signature cast_signature = {.params = cast_params, .nparams = 2, .nvalues = 2, .positional = 2};
static const struct py_function cast_function = {.name = "can_cast", .signatures = &cast_signature, .nsignatures = 1};

static PyObject *can_cast(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    struct py_arguments arguments;
    PyObject *result;
    if (!py_accept(&cast_function, NULL, args, nargs, names, &arguments, &result))
        return result;
    const bool fits = grd_can_cast(arguments.values[0].v.dtype, arguments.values[1].v.dtype);
    py_arguments_done(&arguments);
    return PyBool_FromLong(fits);
}

static const struct py_param result_tensors[] = {{"tensor", GRD_KIND_TENSOR, PY_NUMBER, NULL}, {"other", GRD_KIND_TENSOR, PY_NUMBER, NULL}};
static const struct py_signature result_signature = {.params = result_tensors, .nparams = 2, .nvalues = 2, .positional = 2};
static const struct py_function result_function = {.name = "result_type", .signatures = &result_signature, .nsignatures = 1};

static PyObject *result_type(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    struct py_arguments arguments;
    PyObject *result = NULL;
    grd_scope scope = grd_scope_open(); /* owns the 0-d tensors into which the parser converts numbers */
    if (py_accept(&result_function, NULL, args, nargs, names, &arguments, &result)) {
        grd_tensor *const tensors[] = {arguments.values[0].v.tensor, arguments.values[1].v.tensor};
        const grd_dtype dtype = grd_result_type(tensors, 2);
        result = grd_ok() ? py_dtype(dtype) : py_raise();
        py_arguments_done(&arguments);
    }
    grd_scope_close(scope);
    return result;
}

PyMethodDef py_query_functions[] = {
    {"is_tensor", is_tensor, METH_O, "is_tensor($module, obj)\n--\n\nWhether obj is a Tensor."},
    PY_ENTRY("is_floating_point", function_is_floating_point,
             "is_floating_point($module, input)\n--\n\nWhether the elements of the tensor are real floating-point numbers."),
    PY_ENTRY("is_complex", function_is_complex, "is_complex($module, input)\n--\n\nWhether the elements of the tensor are complex."),
    PY_ENTRY("is_signed", function_is_signed, "is_signed($module, input)\n--\n\nWhether the elements of the tensor can be negative."),
    PY_ENTRY("is_nonzero", function_is_nonzero,
             "is_nonzero($module, input)\n--\n\nWhether the only element is not zero. RuntimeError unless there is exactly one."),
    PY_ENTRY("numel", function_numel, "numel($module, input)\n--\n\nThe number of elements."),
    PY_ENTRY("equal", function_equal,
             "equal($module, input, other)\n--\n\nWhether two tensors have the same sizes and equal elements; NaN equals nothing.\n\n"
             ">>> import gradus as torch\n>>> torch.equal(torch.zeros(2), torch.zeros(2))\nTrue"),
    PY_ENTRY("allclose", function_allclose,
             "allclose($module, input, other, rtol=1e-05, atol=1e-08, equal_nan=False)\n--\n\n"
             "True if abs(input - other) <= atol + rtol * abs(other) for all elements, which broadcast.\n"
             "RuntimeError when the dtypes differ or a tolerance is negative."),
    PY_ENTRY("is_same_size", function_is_same_size, "is_same_size($module, input, other)\n--\n\nWhether two tensors have the same sizes."),
    PY_ENTRY("promote_types", promote_types,
             "promote_types($module, type1, type2)\n--\n\nThe dtype both promote to.\n\n"
             ">>> import gradus as torch\n>>> torch.promote_types(torch.int32, torch.float16)\ntorch.float16"),
    PY_ENTRY("can_cast", can_cast,
             "can_cast($module, from_, to)\n--\n\nWhether a result of one dtype may be written to a tensor of another: from bool over "
             "integers and real "
             "numbers to complex ones."),
    PY_ENTRY("result_type", result_type,
             "result_type($module, tensor, other)\n--\n\nThe dtype of an elementwise operation on two tensors or numbers."),
    {NULL, NULL, 0, NULL},
};
