/* What derivatives of functions and vmap are built on: dual tensors and their level. The functions themselves are in gradus.func and gradus.autograd.forward_ad. */
#include "graph.h"

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

/* A TypeError for an argument that is no tensor. False with the exception. */
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

static PyMethodDef functions[] = {
    {"_enter_dual_level", enter_dual_level, METH_NOARGS, PyDoc_STR("_enter_dual_level($module, /)\n--\n\nBegins the level of this thread.")},
    {"_exit_dual_level", exit_dual_level, METH_NOARGS, PyDoc_STR("_exit_dual_level($module, /)\n--\n\nEnds it, and with it all tangents.")},
    {"_make_dual", (PyCFunction)(void (*)(void))make_dual, METH_FASTCALL,
     PyDoc_STR("_make_dual($module, primal, tangent, /)\n--\n\nA view of a tensor that has a tangent.")},
    {"_unpack_dual", (PyCFunction)(void (*)(void))unpack_dual, METH_FASTCALL,
     PyDoc_STR("_unpack_dual($module, tensor, /)\n--\n\nThe tensor without tangent, and its tangent or None.")},
    {0},
};

bool py_add_transforms(PyObject *module)
{
    return PyModule_AddFunctions(module, functions) == 0;
}
