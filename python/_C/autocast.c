/* Gives Python access to this thread's autocast settings for the CPU, e.g. the dtype to which arguments of operators are cast.
 * gradus/amp/autocast_mode.py holds the settings for other devices and implements the context manager. */
#include "dtype.h"
#include "errors.h"
#include "tables.h"

/* Number of autocast contexts that this thread is inside of. Leaving the outermost context clears the cache of cast parameters (autocast_mode.py). */
static _Thread_local int nesting;

static PyObject *is_enabled(PyObject *module, PyObject *nothing)
{
    (void)module;
    (void)nothing;
    return PyBool_FromLong(grd_autocast_enabled());
}

static PyObject *set_enabled(PyObject *module, PyObject *value)
{
    const int enabled = PyObject_IsTrue(value);
    (void)module;
    if (enabled < 0)
        return NULL;
    grd_set_autocast_enabled(enabled);
    Py_RETURN_NONE;
}

static PyObject *get_dtype(PyObject *module, PyObject *nothing)
{
    (void)module;
    (void)nothing;
    return py_dtype(grd_autocast_dtype());
}

static PyObject *set_dtype(PyObject *module, PyObject *value)
{
    grd_dtype dtype;
    (void)module;
    if (!py_as_dtype(value, &dtype))
        return PyErr_Format(PyExc_TypeError, "dtype must be a torch.dtype (got %s)", py_class_name(value));
    grd_set_autocast_dtype(dtype);
    if (!grd_ok())
        return py_raise();
    Py_RETURN_NONE;
}

static PyObject *is_cache_enabled(PyObject *module, PyObject *nothing)
{
    (void)module;
    (void)nothing;
    return PyBool_FromLong(grd_autocast_cache_enabled());
}

static PyObject *set_cache_enabled(PyObject *module, PyObject *value)
{
    const int enabled = PyObject_IsTrue(value);
    (void)module;
    if (enabled < 0)
        return NULL;
    grd_set_autocast_cache_enabled(enabled);
    Py_RETURN_NONE;
}

static PyObject *clear_cache(PyObject *module, PyObject *nothing)
{
    (void)module;
    (void)nothing;
    grd_clear_autocast_cache();
    Py_RETURN_NONE;
}

static PyObject *increment_nesting(PyObject *module, PyObject *nothing)
{
    (void)module;
    (void)nothing;
    return PyLong_FromLong(++nesting);
}

static PyObject *decrement_nesting(PyObject *module, PyObject *nothing)
{
    (void)module;
    (void)nothing;
    return PyLong_FromLong(--nesting);
}

PyMethodDef py_autocast_functions[] = {
    {"is_autocast_cpu_enabled", is_enabled, METH_NOARGS,
     PyDoc_STR("is_autocast_cpu_enabled($module, /)\n--\n\nWhether autocast is on in this thread.")},
    {"set_autocast_cpu_enabled", set_enabled, METH_O,
     PyDoc_STR("set_autocast_cpu_enabled($module, enabled, /)\n--\n\nTurns autocast on or off in this thread.")},
    {"get_autocast_cpu_dtype", get_dtype, METH_NOARGS,
     PyDoc_STR("get_autocast_cpu_dtype($module, /)\n--\n\nThe dtype that autocast casts to.")},
    {"set_autocast_cpu_dtype", set_dtype, METH_O,
     PyDoc_STR("set_autocast_cpu_dtype($module, dtype, /)\n--\n\nSets the dtype that autocast casts to.")},
    {"is_autocast_cache_enabled", is_cache_enabled, METH_NOARGS,
     PyDoc_STR("is_autocast_cache_enabled($module, /)\n--\n\nWhether casts of parameters are kept.")},
    {"set_autocast_cache_enabled", set_cache_enabled, METH_O,
     PyDoc_STR("set_autocast_cache_enabled($module, enabled, /)\n--\n\nSets whether casts of parameters are kept.")},
    {"clear_autocast_cache", clear_cache, METH_NOARGS, PyDoc_STR("clear_autocast_cache($module, /)\n--\n\nDrops the casts of parameters.")},
    {"autocast_increment_nesting", increment_nesting, METH_NOARGS,
     PyDoc_STR("autocast_increment_nesting($module, /)\n--\n\nCounts a context that is entered.")},
    {"autocast_decrement_nesting", decrement_nesting, METH_NOARGS,
     PyDoc_STR("autocast_decrement_nesting($module, /)\n--\n\nCounts a context that is left.")},
    {0},
};
