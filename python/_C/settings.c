/* Gives Python access to settings of the process: number of threads, default dtype, print options, build configuration. */
#include "add_type.h"
#include "dtype.h"
#include "errors.h"
#include "scalar.h"
#include "tables.h"

#include <math.h>

/* ---- Threads ----------------------------------------------------------------------------------------------------- */

/* Converts a positive integer. Returns false with RuntimeError if `object` is anything else. */
static bool as_thread_count(PyObject *object, const char *function, int64_t *ret_count)
{
    const int is_int = py_as_int(object, ret_count);
    if (is_int == 0)
        PyErr_Format(PyExc_RuntimeError, "%s expects an int, but got %s", function, Py_TYPE(object)->tp_name);
    else if (is_int > 0 && *ret_count <= 0)
        PyErr_Format(PyExc_RuntimeError, "%s expects a positive integer", function);
    return is_int > 0 && *ret_count > 0;
}

static PyObject *get_num_threads(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    return PyLong_FromLong(grd_num_threads());
}

static PyObject *set_num_threads(PyObject *Py_UNUSED(module), PyObject *given)
{
    int64_t count;
    if (!as_thread_count(given, "set_num_threads", &count))
        return NULL;
    grd_set_num_threads(count < INT32_MAX ? (int)count : INT32_MAX);
    if (!grd_ok())
        return py_raise();
    Py_RETURN_NONE;
}

/* Always returns 1, because the operators that a thread calls run one after another. In PyTorch this is the number of threads for running
 * operators concurrently. */
static PyObject *get_num_interop_threads(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    return PyLong_FromLong(1);
}

static PyObject *set_num_interop_threads(PyObject *Py_UNUSED(module), PyObject *given)
{
    int64_t count;
    if (!as_thread_count(given, "set_num_interop_threads", &count))
        return NULL;
    Py_RETURN_NONE;
}

/* ---- Defaults ---------------------------------------------------------------------------------------------------- */

static PyObject *get_default_dtype(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    return py_dtype(grd_default_dtype());
}

static PyObject *set_default_dtype(PyObject *Py_UNUSED(module), PyObject *given)
{
    grd_dtype dtype;
    if (!py_is_dtype(given) || !py_as_dtype(given, &dtype))
        return PyErr_Format(PyExc_TypeError, "invalid dtype object: only floating-point types are supported as the default type");
    if (!grd_dtype_is_floating(dtype))
        return PyErr_Format(PyExc_TypeError, "only floating-point types are supported as the default type");
    grd_set_default_dtype(dtype);
    if (!grd_ok())
        return py_raise();
    Py_RETURN_NONE;
}

/* ---- Print options ----------------------------------------------------------------------------------------------- */

enum { PRECISION, THRESHOLD, EDGE_ITEMS, LINE_WIDTH, PROFILE, SCI_MODE, NOPTIONS };

/* Converts the value of print option `name`. A value above `high`, or infinity, gives `high`. Returns false with an exception for a value below
 * `low`. */
static bool read_option(PyObject *object, const char *name, int64_t low, int64_t high, int64_t *ret_value)
{
    int64_t value = high;
    if (PyFloat_Check(object) && PyFloat_AS_DOUBLE(object) == INFINITY) {
        *ret_value = high;
        return true;
    }
    const int is_int = py_as_int(object, &value);
    if (is_int == 0)
        PyErr_Format(PyExc_TypeError, "set_printoptions(): argument '%s' must be int, not %s", name, Py_TYPE(object)->tp_name);
    if (is_int <= 0)
        return false;
    if (value < low) {
        PyErr_Format(PyExc_ValueError, "set_printoptions(): '%s' must be at least %lld, got %lld", name, (long long)low, (long long)value);
        return false;
    }
    *ret_value = value < high ? value : high;
    return true;
}

static bool apply_profile(PyObject *profile, grd_print_options *options)
{
    static const grd_print_options standard = {.precision = 4, .threshold = 1000, .edge = 3, .line_width = 80, .sci_mode = -1};
    if (!PyUnicode_Check(profile)) {
        PyErr_Format(PyExc_TypeError, "set_printoptions(): argument 'profile' must be str, not %s", Py_TYPE(profile)->tp_name);
        return false;
    }
    const bool is_short = PyUnicode_CompareWithASCIIString(profile, "short") == 0;
    const bool is_full = PyUnicode_CompareWithASCIIString(profile, "full") == 0;
    if (!is_short && !is_full && PyUnicode_CompareWithASCIIString(profile, "default") != 0) {
        PyErr_Format(PyExc_ValueError, "set_printoptions(): 'profile' must be 'default', 'short' or 'full', got %R", profile);
        return false;
    }
    const int sci_mode = options->sci_mode;
    *options = standard;
    options->sci_mode = sci_mode;
    if (is_short) {
        options->precision = 2;
        options->edge = 2;
    } else if (is_full) {
        options->threshold = INT64_MAX;
    }
    return true;
}

static PyObject *set_printoptions(PyObject *Py_UNUSED(module), PyObject *args, PyObject *named)
{
    static char *names[] = {"precision", "threshold", "edgeitems", "linewidth", "profile", "sci_mode", NULL};
    PyObject *given[NOPTIONS] = {NULL};
    if (!PyArg_ParseTupleAndKeywords(args, named, "|OOOOOO:set_printoptions", names, &given[PRECISION], &given[THRESHOLD],
                                     &given[EDGE_ITEMS], &given[LINE_WIDTH], &given[PROFILE], &given[SCI_MODE]))
        return NULL;
    grd_print_options options = grd_print_options_get();
    if (py_is_given(given[PROFILE]) && !apply_profile(given[PROFILE], &options))
        return NULL;
    int64_t precision = options.precision, edge = options.edge, width = options.line_width;
    if (py_is_given(given[PRECISION]) && !read_option(given[PRECISION], names[PRECISION], 0, 64, &precision))
        return NULL;
    if (py_is_given(given[THRESHOLD]) && !read_option(given[THRESHOLD], names[THRESHOLD], 0, INT64_MAX, &options.threshold))
        return NULL;
    if (py_is_given(given[EDGE_ITEMS]) && !read_option(given[EDGE_ITEMS], names[EDGE_ITEMS], 0, INT32_MAX, &edge))
        return NULL;
    if (py_is_given(given[LINE_WIDTH]) && !read_option(given[LINE_WIDTH], names[LINE_WIDTH], 1, INT32_MAX, &width))
        return NULL;
    /* As in PyTorch, a call without sci_mode resets sci_mode to its default. */
    options.sci_mode = py_is_given(given[SCI_MODE]) ? PyObject_IsTrue(given[SCI_MODE]) : -1;
    if (PyErr_Occurred())
        return NULL;
    options.precision = (int)precision;
    options.edge = edge;
    options.line_width = (int)width;
    grd_print_options_set(options);
    if (!grd_ok())
        return py_raise();
    Py_RETURN_NONE;
}

static PyObject *get_printoptions(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    const grd_print_options options = grd_print_options_get();
    PyObject *threshold = options.threshold == INT64_MAX ? PyFloat_FromDouble(INFINITY) : PyLong_FromLongLong(options.threshold);
    PyObject *sci_mode = options.sci_mode < 0 ? Py_None : options.sci_mode > 0 ? Py_True : Py_False;
    return threshold == NULL ? NULL
                             : Py_BuildValue("{s:i,s:N,s:L,s:i,s:O}", "precision", options.precision, "threshold", threshold, "edgeitems",
                                             (long long)options.edge, "linewidth", options.line_width, "sci_mode", sci_mode);
}

/* ---- Configuration ----------------------------------------------------------------------------------------------- */

static PyObject *show_config(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    return PyUnicode_FromFormat("Gradus %s built with:\n  - C compiler: %s\n  - BLAS: %s\n  - CPU capability usage: %s\n", grd_version(),
                                __VERSION__, grd_blas(), grd_isa());
}

static PyObject *parallel_info(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    return PyUnicode_FromFormat("get_num_threads(): %d\nget_num_interop_threads(): 1\n", grd_num_threads());
}

static PyMethodDef config_functions[] = {
    {"show", show_config, METH_NOARGS, "show($module)\n--\n\nWhat the library was built with and runs with."},
    {"parallel_info", parallel_info, METH_NOARGS, "parallel_info($module)\n--\n\nHow many threads operators use."},
    {NULL, NULL, 0, NULL},
};

static PyObject *error_is_pending(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(nothing))
{
    return PyBool_FromLong(!grd_ok());
}

/* Does nothing. The function exists because torchvision and other libraries call it. */
static PyObject *log_api_usage_once(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(name))
{
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"_log_api_usage_once", log_api_usage_once, METH_O, "_log_api_usage_once($module, name)\n--\n\nNothing: no use is counted."},
    {"_error_is_pending", error_is_pending, METH_NOARGS, PyDoc_STR("For tests: True if a call left an error of the library behind.")},
    {"get_num_threads", get_num_threads, METH_NOARGS,
     "get_num_threads($module)\n--\n\nThreads an operator may use, the caller's included."},
    {"set_num_threads", set_num_threads, METH_O,
     "set_num_threads($module, int)\n--\n\nSets how many threads an operator may use; results do not depend on it. RuntimeError unless "
     "positive."},
    {"get_num_interop_threads", get_num_interop_threads, METH_NOARGS,
     "get_num_interop_threads($module)\n--\n\n1: operators do not run beside each other."},
    {"set_num_interop_threads", set_num_interop_threads, METH_O,
     "set_num_interop_threads($module, int)\n--\n\nChecked, and without effect: operators do not run beside each other."},
    {"get_default_dtype", get_default_dtype, METH_NOARGS,
     "get_default_dtype($module)\n--\n\nThe dtype of new tensors of floating-point numbers.\n\n"
     ">>> import gradus as torch\n>>> torch.get_default_dtype()\ntorch.float32"},
    {"set_default_dtype", set_default_dtype, METH_O,
     "set_default_dtype($module, d)\n--\n\nSets the dtype of new tensors of floating-point numbers. TypeError unless it is float16, "
     "bfloat16, float32 or float64."},
    {"set_printoptions", (PyCFunction)(void (*)(void))set_printoptions, METH_VARARGS | METH_KEYWORDS,
     "set_printoptions($module, precision=None, threshold=None, edgeitems=None, linewidth=None, profile=None, sci_mode=None)\n--\n\n"
     "How tensors are printed: digits after the point, elements above which the middle is left out, elements shown at each end then, "
     "characters of a "
     "line, and whether scientific notation is used (None: where the numbers need it). A profile, 'default', 'short' or 'full', sets them "
     "all."},
    {"get_printoptions", get_printoptions, METH_NOARGS, "get_printoptions($module)\n--\n\nWhat set_printoptions() set."},
    {NULL, NULL, 0, NULL},
};

bool py_add_settings(PyObject *module)
{
    PyObject *config = PyModule_New("gradus.__config__");
    if (config != NULL && PyModule_AddFunctions(config, config_functions) < 0)
        Py_CLEAR(config);
    return PyModule_AddStringConstant(module, "__version__", grd_version()) == 0 && PyModule_AddFunctions(module, functions) == 0 &&
           py_add(module, "__config__", config);
}
