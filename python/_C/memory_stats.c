/* Gives Python access to the library's memory statistics and limits. gradus.cpu offers these functions under PyTorch's names. */
#include "scalar.h"
#include "tables.h"

static PyObject *memory_stats(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    const grd_memory_stats stats = grd_memory_get_stats();
    return Py_BuildValue("{s:L,s:L,s:L,s:L,s:L,s:L,s:L}", "allocated", (long long)stats.allocated, "cached", (long long)stats.cached,
                         "peak", (long long)stats.peak, "peak_held", (long long)stats.peak_held, "blocks", (long long)stats.blocks, "limit",
                         (long long)stats.limit, "cache_limit", (long long)stats.cache_limit);
}

static PyObject *memory_trim(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    Py_BEGIN_ALLOW_THREADS grd_memory_trim();
    Py_END_ALLOW_THREADS Py_RETURN_NONE;
}

static PyObject *memory_reset_peak(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    grd_memory_reset_peak();
    Py_RETURN_NONE;
}

/* Converts a non-negative Python integer, a number of bytes. None gives the value `none`. Returns false with TypeError or ValueError. */
static bool as_bytes(PyObject *object, const char *function, int64_t none, int64_t *ret_bytes)
{
    *ret_bytes = none;
    if (object == Py_None)
        return true;
    const int is_int = py_as_int(object, ret_bytes);
    if (is_int == 0)
        PyErr_Format(PyExc_TypeError, "%s(): argument 'bytes' must be int or None, not %s", function, Py_TYPE(object)->tp_name);
    else if (is_int > 0 && *ret_bytes < 0)
        PyErr_Format(PyExc_ValueError, "%s(): 'bytes' must not be negative, got %lld", function, (long long)*ret_bytes);
    return is_int > 0 && *ret_bytes >= 0;
}

static PyObject *memory_set_limit(PyObject *Py_UNUSED(module), PyObject *given)
{
    int64_t bytes;
    if (!as_bytes(given, "set_memory_limit", 0, &bytes))
        return NULL;
    grd_memory_set_limit(bytes);
    Py_RETURN_NONE;
}

static PyObject *memory_set_cache_limit(PyObject *Py_UNUSED(module), PyObject *given)
{
    int64_t bytes;
    if (!as_bytes(given, "set_cache_limit", -1, &bytes))
        return NULL;
    grd_memory_set_cache_limit(bytes);
    Py_RETURN_NONE;
}

PyMethodDef py_memory_stats_functions[] = {
    {"memory_stats", memory_stats, METH_NOARGS,
     "memory_stats($module)\n--\n\nThe memory of the library, as a dict of bytes: 'allocated' is in use, 'cached' is held for reuse, "
     "'peak' and "
     "'peak_held' are the highest 'allocated' and the highest sum of both since gradus.cpu.reset_peak_memory_stats(), 'limit' (0: none) "
     "and "
     "'cache_limit' (negative: none) bound 'allocated' and 'cached'. 'blocks' is the number of blocks in use.\n\n"
     ">>> import gradus as torch\n>>> before = torch.memory_stats()['allocated']\n>>> x = torch.ones(1000, 1000)\n"
     ">>> torch.memory_stats()['allocated'] - before >= 4_000_000\nTrue"},
    {"_memory_trim", memory_trim, METH_NOARGS, NULL},
    {"_memory_reset_peak", memory_reset_peak, METH_NOARGS, NULL},
    {"_memory_set_limit", memory_set_limit, METH_O, NULL},
    {"_memory_set_cache_limit", memory_set_cache_limit, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};
