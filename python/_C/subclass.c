/* Tensors as objects of subclasses: as_subclass and _make_subclass. Copies and pickling are in gradus/_tensor_copy.py. */
#include "interop.h"
#include "gradus/ops/detach.h"
#include "gradus/ops/view.h"

static PyTypeObject *subclass_argument(PyObject *object)
{
    if (PyType_Check(object) && PyType_IsSubtype((PyTypeObject *)object, py_tensor_type))
        return (PyTypeObject *)object;
    PyErr_SetString(PyExc_TypeError,
                    "Creating a Tensor subclass from a class that does not inherit from Tensor is not possible. Make sure your "
                    "class inherits from Tensor.");
    return NULL;
}

/* Wraps a tensor that is nobody's object yet, and closes the scope. */
static PyObject *take_as(grd_scope scope, PyTypeObject *type, grd_tensor *t)
{
    if (t == NULL || !grd_ok())
        return py_abandon(scope);
    PyObject *result = py_wrap_as(type, t);
    grd_scope_close(scope);
    return result;
}

/* The same elements with the same history. */
static PyObject *as_subclass(PyObject *self, PyObject *cls)
{
    PyTypeObject *type = subclass_argument(cls);
    if (type == NULL)
        return NULL;
    grd_tensor *t = py_tensor_of(self);
    const grd_scope scope = grd_scope_open();
    return take_as(scope, type, grd_view(t, grd_sizes(t)));
}

static PyObject *make_subclass(PyObject *unused, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    static const char *const parameters[] = {"cls", "data", "require_grad", NULL};
    static const struct py_simple function = {"_make_subclass", parameters, 3, 2};
    PyObject *given[PY_SIMPLE_MAX];
    bool requires_grad = false;
    (void)unused;
    if (!py_arrange(&function, args, nargs, names, given) || !py_bool_argument("_make_subclass", "require_grad", given[2], &requires_grad))
        return NULL;
    PyTypeObject *type = subclass_argument(given[0]);
    if (type == NULL)
        return NULL;
    if (!py_is_tensor(given[1]))
        return PyErr_Format(PyExc_TypeError, "_make_subclass(): argument 'data' must be Tensor, not %s", Py_TYPE(given[1])->tp_name);
    const grd_scope scope = grd_scope_open();
    grd_tensor *t = grd_detach(py_tensor_of(given[1]));
    return take_as(scope, type, requires_grad ? grd_set_requires_grad(t, true) : t);
}

PyMethodDef py_subclass_methods[] = {
    {"as_subclass", as_subclass, METH_O,
     "as_subclass($self, cls)\n--\n\nThe same elements, with their history, as an object of a subclass."},
    {"_make_subclass", (PyCFunction)(void (*)(void))make_subclass, METH_FASTCALL | METH_KEYWORDS | METH_STATIC,
     "_make_subclass(cls, data, require_grad=False)\n--\n\nA leaf over the elements of data, as an object of a subclass."},
    {0},
};
