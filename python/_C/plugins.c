/* Loads plug-ins (shared objects), and lets Python call operators that were defined at run time. */
#include "add_type.h"
#include "call.h"
#include "errors.h"
#include "tables.h"

#include <stddef.h>
#include <structmember.h>

/* Callable Python object for an operator that was defined at run time. Its signature table is built from the operator's schema. */
struct op_object {
    PyObject_HEAD vectorcallfunc call;
    const grd_op *op;
    struct py_function function;
    struct py_signature signature;
    struct py_param params[GRD_MAX_ARGS];
};

static PyTypeObject *op_type;

static PyObject *call_op(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *names)
{
    struct op_object *self = (struct op_object *)callable;
    return py_call(&self->function, NULL, args, PyVectorcall_NARGS(nargsf), names);
}

/* Returns the number of arguments before the star in a schema such as "f(Tensor self, *, Scalar scale=1) -> Tensor", or `nargs` if there is no
 * star. */
static int count_positional(const char *schema, int nargs)
{
    int before = 0, depth = 0;
    for (const char *at = strchr(schema, '('); at != NULL && *at != '\0'; at++) {
        depth += (*at == '(' || *at == '[') - (*at == ')' || *at == ']');
        if (depth == 0)
            break;
        if (*at == '*' && depth == 1)
            return before;
        before += *at == ',' && depth == 1;
    }
    return nargs;
}

static PyObject *new_op(const grd_op *op)
{
    struct op_object *self = (struct op_object *)op_type->tp_alloc(op_type, 0);
    if (self == NULL)
        return NULL;
    const int nargs = grd_op_arg_count(op);
    self->call = call_op;
    self->op = op;
    self->signature = (struct py_signature){.params = self->params,
                                            .nparams = (uint8_t)nargs,
                                            .nvalues = (uint8_t)nargs,
                                            .positional = (uint8_t)count_positional(grd_op_schema(op), nargs),
                                            .op = grd_op_name(op)};
    self->function = (struct py_function){.name = grd_op_name(op), .signatures = &self->signature, .nsignatures = 1, .ops = &self->op};
    for (int i = 0; i < nargs; i++) {
        const bool optional = grd_op_arg_optional(op, i), keyword = i >= self->signature.positional;
        self->params[i] = (struct py_param){.name = grd_op_arg_name(op, i),
                                            .kind = (uint8_t)grd_op_arg_kind(op, i),
                                            .flags = (uint8_t)((optional ? PY_OPTIONAL | PY_NONE : 0) | (keyword ? PY_KEYWORD : 0))};
    }
    return (PyObject *)self;
}

static PyObject *op_repr(PyObject *self)
{
    return PyUnicode_FromFormat("<operator %s>", grd_op_schema(((struct op_object *)self)->op));
}

static PyObject *op_schema(PyObject *self, void *Py_UNUSED(closure))
{
    return PyUnicode_FromString(grd_op_schema(((struct op_object *)self)->op));
}

static PyMemberDef op_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(struct op_object, call), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef op_properties[] = {
    {"schema", op_schema, NULL, "The signature: 'mylib::cube(Tensor self, *, Scalar scale=1) -> Tensor'.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot op_slots[] = {
    {Py_tp_doc, "An operator as a function."},
    {Py_tp_dealloc, py_free_object},
    {Py_tp_repr, op_repr},
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_members, op_members},
    {Py_tp_getset, op_properties},
    {0, NULL},
};

static PyType_Spec op_spec = {"gradus.Operator", sizeof(struct op_object), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL, op_slots};

/* ---- Functions of the module ------------------------------------------------------------------------------------- */

static PyObject *find_op(PyObject *Py_UNUSED(module), PyObject *name)
{
    const char *text = PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : NULL;
    if (text == NULL)
        return PyErr_Occurred() ? NULL
                                : PyErr_Format(PyExc_TypeError, "_find_op(): argument 'name' must be str, not %s", Py_TYPE(name)->tp_name);
    const grd_op *op = grd_op_find(text);
    if (op == NULL)
        Py_RETURN_NONE;
    return new_op(op);
}

static PyObject *load_library(PyObject *Py_UNUSED(module), PyObject *path)
{
    PyObject *bytes;
    if (!PyUnicode_FSConverter(path, &bytes))
        return NULL;
    Py_BEGIN_ALLOW_THREADS grd_load_library(PyBytes_AS_STRING(bytes));
    Py_END_ALLOW_THREADS Py_DECREF(bytes);
    if (!grd_ok())
        return py_raise();
    Py_RETURN_NONE;
}

static PyObject *providers(PyObject *Py_UNUSED(module), PyObject *name)
{
    const char *text = PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : NULL;
    if (text == NULL)
        return PyErr_Occurred() ? NULL
                                : PyErr_Format(PyExc_TypeError, "providers(): argument 'name' must be str, not %s", Py_TYPE(name)->tp_name);
    const char *names = grd_providers(text);
    if (!grd_ok())
        return py_raise();
    PyObject *list = PyUnicode_FromString(names), *words = list != NULL ? PyUnicode_Split(list, NULL, -1) : NULL;
    Py_XDECREF(list);
    return words;
}

static PyMethodDef functions[] = {
    {"load_library", load_library, METH_O,
     "load_library(path)\n--\n\nLoads a plug-in: its operators are then in gradus.ops, its devices among the devices. OSError when the "
     "file cannot be "
     "read; RuntimeError when it is no plug-in, or one of another version."},
    {"providers", providers, METH_O,
     "providers(name)\n--\n\nWhat may run an operator, in the order it is tried; an empty list for one that is made of others. The "
     "environment variable "
     "GRADUS_PROVIDER=mm:native,-blas wants and forbids some. RuntimeError: there is no such operator.\n\n"
     ">>> import gradus as torch\n>>> torch.ops.providers('mm')\n['blas', 'native']"},
    {"_find_op", find_op, METH_O, "_find_op(name)\n--\n\nThe operator of that name as a function, or None."},
    {NULL, NULL, 0, NULL},
};

bool py_add_plugins(PyObject *module)
{
    op_type = py_add_type(module, &op_spec, NULL);
    return op_type != NULL && PyModule_AddFunctions(module, functions) == 0;
}
