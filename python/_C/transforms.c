/* Defines the Python functions for dual tensors (forward-mode differentiation) and batch tensors (vmap). gradus.func and
 * gradus.autograd.forward_ad are built on them. */
#include "tables.h"
#include "tensor_object.h"
#include "gradus/transform.h"

static PyObject *enter_dual_level(PyObject *module, PyObject *nothing)
{
    (void)module;
    (void)nothing;
    const grd_scope scope = grd_scope_open();
    grd_enter_dual_level();
    return py_leave(scope);
}

static PyObject *exit_dual_level(PyObject *module, PyObject *nothing)
{
    (void)module;
    (void)nothing;
    const grd_scope scope = grd_scope_open();
    grd_exit_dual_level();
    return py_leave(scope);
}

/* True if there are exactly `wanted` arguments and all are tensors. Otherwise returns false with TypeError. */
static bool check_tensors(const char *name, PyObject *const *args, Py_ssize_t nargs, Py_ssize_t wanted)
{
    if (nargs != wanted) {
        PyErr_Format(PyExc_TypeError, "%s() takes %zd arguments (%zd given)", name, wanted, nargs);
        return false;
    }
    for (Py_ssize_t i = 0; i < nargs; i++)
        if (!py_is_tensor(args[i])) {
            PyErr_Format(PyExc_TypeError, "%s(): argument %zd must be Tensor, not %s", name, i + 1, py_class_name(args[i]));
            return false;
        }
    return true;
}

static PyObject *make_dual(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    (void)module;
    if (!check_tensors("_make_dual", args, nargs, 2))
        return NULL;
    const grd_scope scope = grd_scope_open();
    return py_take(scope, grd_make_dual(py_tensor_of(args[0]), py_tensor_of(args[1])));
}

static PyObject *unpack_dual(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    (void)module;
    if (!check_tensors("_unpack_dual", args, nargs, 1))
        return NULL;
    const grd_scope scope = grd_scope_open();
    grd_tensor *dual = py_tensor_of(args[0]), *tangent = grd_tangent(dual), *primal = grd_primal(dual);
    return py_take_tuple(scope, grd_tensors(primal, tangent));
}

/* ---- Batch tensors ----------------------------------------------------------------------------------------------- */

static const char *const names[] = {"error", "different", "same"}; /* vmap's values of randomness=, indexed by grd_randomness */

static PyObject *batch_begin(PyObject *module, PyObject *args)
{
    (void)module;
    long long size;
    const char *name;
    if (!PyArg_ParseTuple(args, "Ls:_batch_begin", &size, &name))
        return NULL;
    int randomness = 0;
    while (randomness < 3 && strcmp(names[randomness], name) != 0)
        randomness++;
    if (randomness == 3)
        return PyErr_Format(PyExc_ValueError, "_batch_begin(): randomness is 'error', 'different' or 'same', not '%s'", name);
    const grd_scope scope = grd_scope_open();
    grd_batch_begin(size, (grd_randomness)randomness);
    return py_leave(scope);
}

static PyObject *batch_end(PyObject *module, PyObject *nothing)
{
    (void)module;
    (void)nothing;
    grd_batch_end();
    Py_RETURN_NONE;
}

static PyObject *batch_size(PyObject *module, PyObject *nothing)
{
    (void)module;
    (void)nothing;
    return PyLong_FromLongLong(grd_batch_size());
}

static PyObject *batch_randomness(PyObject *module, PyObject *nothing)
{
    (void)module;
    (void)nothing;
    return PyUnicode_FromString(names[grd_batch_randomness()]);
}

static PyObject *is_batched(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    (void)module;
    return check_tensors("_is_batched", args, nargs, 1) ? PyBool_FromLong(grd_is_batched(py_tensor_of(args[0]))) : NULL;
}

/* Implements _batch and _unbatch: returns change(tensor, dim), where `dim` is 0 if left out. */
static PyObject *change_batch(const char *name, grd_tensor *(*change)(grd_tensor *, int64_t), PyObject *const *args, Py_ssize_t nargs)
{
    if (!check_tensors(name, args, nargs - (nargs == 2), 1))
        return NULL;
    const long long dim = nargs == 2 ? PyLong_AsLongLong(args[1]) : 0;
    if (dim == -1 && PyErr_Occurred())
        return NULL;
    const grd_scope scope = grd_scope_open();
    return py_take(scope, change(py_tensor_of(args[0]), dim));
}

static PyObject *batch(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    (void)module;
    return change_batch("_batch", grd_batch, args, nargs);
}

static PyObject *unbatch(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    (void)module;
    return change_batch("_unbatch", grd_unbatch, args, nargs);
}

PyMethodDef py_transform_functions[] = {
    {"_enter_dual_level", enter_dual_level, METH_NOARGS,
     PyDoc_STR("_enter_dual_level($module, /)\n--\n\nBegins the level of this thread.")},
    {"_exit_dual_level", exit_dual_level, METH_NOARGS, PyDoc_STR("_exit_dual_level($module, /)\n--\n\nEnds it, and with it all tangents.")},
    {"_make_dual", (PyCFunction)(void (*)(void))make_dual, METH_FASTCALL,
     PyDoc_STR("_make_dual($module, primal, tangent, /)\n--\n\nA view of a tensor that has a tangent.")},
    {"_unpack_dual", (PyCFunction)(void (*)(void))unpack_dual, METH_FASTCALL,
     PyDoc_STR("_unpack_dual($module, tensor, /)\n--\n\nThe tensor without tangent, and its tangent or None.")},
    {"_batch_begin", batch_begin, METH_VARARGS,
     PyDoc_STR("_batch_begin($module, size, randomness, /)\n--\n\nBegins the level of this thread, for batches of a size.")},
    {"_batch_end", batch_end, METH_NOARGS, PyDoc_STR("_batch_end($module, /)\n--\n\nEnds it.")},
    {"_batch_size", batch_size, METH_NOARGS, PyDoc_STR("_batch_size($module, /)\n--\n\nThe size of its batches; -1 outside of a level.")},
    {"_batch_randomness", batch_randomness, METH_NOARGS,
     PyDoc_STR("_batch_randomness($module, /)\n--\n\nWhat random functions do in it: 'error', 'different' or 'same'.")},
    {"_is_batched", (PyCFunction)(void (*)(void))is_batched, METH_FASTCALL,
     PyDoc_STR("_is_batched($module, tensor, /)\n--\n\nTrue for a batch tensor.")},
    {"_batch", (PyCFunction)(void (*)(void))batch, METH_FASTCALL,
     PyDoc_STR("_batch($module, tensor, dim=0, /)\n--\n\nThe batch tensor of the elements along a dimension.")},
    {"_unbatch", (PyCFunction)(void (*)(void))unbatch, METH_FASTCALL,
     PyDoc_STR("_unbatch($module, tensor, dim=0, /)\n--\n\nThe tensor of all elements of the batch, along a dimension.")},
    {0},
};
