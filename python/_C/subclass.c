/* Converts tensors to subclasses: as_subclass and _make_subclass. Copying and pickling are in gradus/_tensor_copy.py. */
#include "errors.h"
#include "parse.h"
#include "tables.h"
#include "tensor_object.h"
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

/* Closes `scope`, which frees the temporary tensors of the call, and returns a new Python object of class `type` for `t`. `t` must not have a
 * Python object yet. */
static PyObject *take_as(grd_scope scope, PyTypeObject *type, grd_tensor *t)
{
    if (t == NULL || !grd_ok())
        return py_abandon(scope);
    PyObject *result = py_wrap_as(type, t);
    grd_scope_close(scope);
    return result;
}

/* Implements self.as_subclass(cls): returns an alias of `self` with the same autograd history, as an object of class `cls`. */
static PyObject *as_subclass(PyObject *self, PyObject *cls)
{
    PyTypeObject *type = subclass_argument(cls);
    if (type == NULL)
        return NULL;
    grd_tensor *t = py_tensor_of(self);
    const grd_scope scope = grd_scope_open();
    return take_as(scope, type, grd_view(t, grd_sizes(t)));
}

static const struct py_param make_params[] = {
    {"cls", PY_KIND_OBJECT, 0, NULL},
    {"data", PY_KIND_OBJECT, 0, NULL},
    {"require_grad", GRD_KIND_BOOL, PY_OPTIONAL, "False"},
};
static const struct py_signature make_signature = {.params = make_params, .nparams = 3, .positional = 3};
static const struct py_function make_function = {.name = "_make_subclass", .signatures = &make_signature, .nsignatures = 1};

static PyObject *make_subclass(PyObject *Py_UNUSED(unused), PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    struct py_arguments arguments;
    if (!py_parse(&make_function, NULL, args, nargs, names, &arguments))
        return NULL;
    PyObject *data = arguments.objects[1];
    PyTypeObject *type = subclass_argument(arguments.objects[0]);
    const bool requires_grad = py_bool_or(&arguments, 2, false);
    py_arguments_done(&arguments);
    if (type == NULL)
        return NULL;
    if (!py_is_tensor(data))
        return PyErr_Format(PyExc_TypeError, "_make_subclass(): argument 'data' must be Tensor, not %s", Py_TYPE(data)->tp_name);
    const grd_scope scope = grd_scope_open();
    grd_tensor *t = grd_detach(py_tensor_of(data));
    return take_as(scope, type, requires_grad ? grd_set_requires_grad(t, true) : t);
}

PyMethodDef py_subclass_methods[] = {
    {"as_subclass", as_subclass, METH_O,
     "as_subclass($self, cls)\n--\n\nThe same elements, with their history, as an object of a subclass."},
    {"_make_subclass", (PyCFunction)(void (*)(void))make_subclass, METH_FASTCALL | METH_KEYWORDS | METH_STATIC,
     "_make_subclass(cls, data, require_grad=False)\n--\n\nA leaf over the elements of data, as an object of a subclass."},
    {0},
};
