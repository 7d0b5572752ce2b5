/* Makes calls and attribute access of nn.Module faster.
 *
 * Module.__call__ and Module.__getattr__ are written in Python and define the behaviour. _accelerate_module(cls, Module) puts the functions below
 * into the type slots of a class that inherits both methods. These functions handle the common cases with the same results and call the Python
 * methods in all other cases. If __call__ or __getattr__ is later assigned to the class, the interpreter makes the slot call the new method. */
#include "tables.h"

enum { MEMBER_KINDS = 3, MAX_ARGUMENTS = 8 };
static PyObject *members[MEMBER_KINDS]; /* names of the dicts in which __getattr__ looks: parameters, buffers, submodules */
static PyObject *name_of_hooked, *name_of_forward, *name_of_call, *name_of_getattr, *name_of_getattribute;

/* Returns the parameter, buffer or submodule called `name`, borrowed. Returns NULL, without an exception, if there is none. */
static PyObject *find_member(PyObject *dict, PyObject *name)
{
    PyObject *found = NULL;
    for (int i = 0; i < MEMBER_KINDS && found == NULL && !PyErr_Occurred(); i++) {
        PyObject *kind = PyDict_GetItemWithError(dict, members[i]);
        if (kind != NULL && PyDict_Check(kind))
            found = PyDict_GetItemWithError(kind, name);
    }
    return found;
}

/* Returns the attribute `name` as object.__getattribute__ followed by Module.__getattr__ would, but without the cost of an AttributeError raised and
 * caught in between. */
static PyObject *module_getattr(PyObject *self, PyObject *name)
{
    if (_PyType_Lookup(Py_TYPE(self), name) !=
        NULL) { /* a class attribute, such as a method or property; an instance attribute may hide it */
        PyObject *found = PyObject_GenericGetAttr(self, name);
        if (found != NULL || !PyErr_ExceptionMatches(PyExc_AttributeError))
            return found;
        PyErr_Clear();
    }
    PyObject *dict = PyObject_GenericGetDict(self, NULL);
    if (dict == NULL)
        return NULL;
    PyObject *found = PyDict_GetItemWithError(dict, name);
    if (found == NULL && !PyErr_Occurred())
        found = find_member(dict, name);
    Py_XINCREF(found);
    Py_DECREF(dict);
    if (found == NULL && !PyErr_Occurred())
        PyErr_Format(PyExc_AttributeError, "'%.200s' object has no attribute '%U'", Py_TYPE(self)->tp_name, name);
    return found;
}

/* Calls function(self, *args). */
static PyObject *call_positional(PyObject *function, PyObject *self, PyObject *args)
{
    PyObject *all[1 + MAX_ARGUMENTS] = {self};
    const Py_ssize_t count = PyTuple_GET_SIZE(args);
    for (Py_ssize_t i = 0; i < count; i++)
        all[1 + i] = PyTuple_GET_ITEM(args, i);
    return PyObject_Vectorcall(function, all, (size_t)count + 1, NULL);
}

/* True if a call of the module needs to run only the method forward() of the class. This is so if `_hooked`, an attribute of the instance or else
 * of the class, is False and the instance has no attribute `forward`. */
static bool is_forward_only(PyObject *self, PyObject *dict)
{
    PyObject *hooked = PyDict_GetItemWithError(dict, name_of_hooked);
    if (hooked == NULL && !PyErr_Occurred())
        hooked = _PyType_Lookup(Py_TYPE(self), name_of_hooked);
    return hooked == Py_False && PyDict_GetItemWithError(dict, name_of_forward) == NULL && !PyErr_Occurred();
}

/* Implements a call of a module. Calls the class's forward directly if the module has no hooks and forward is a Python function; otherwise calls
 * Module.__call__. */
static PyObject *module_call(PyObject *self, PyObject *args, PyObject *kwargs)
{
    PyObject *dict = PyObject_GenericGetDict(self, NULL);
    if (dict == NULL)
        return NULL;
    const bool forward_only = is_forward_only(self, dict);
    Py_DECREF(dict);
    if (PyErr_Occurred())
        return NULL;
    PyObject *forward = _PyType_Lookup(Py_TYPE(self), name_of_forward);
    if (forward_only && forward != NULL && PyFunction_Check(forward) && PyTuple_GET_SIZE(args) <= MAX_ARGUMENTS &&
        (kwargs == NULL || PyDict_GET_SIZE(kwargs) == 0)) {
        Py_INCREF(forward);
        PyObject *result = call_positional(forward, self, args);
        Py_DECREF(forward);
        return result;
    }
    PyObject *call = PyObject_GetAttr(self, name_of_call);
    PyObject *result = call == NULL ? NULL : PyObject_Call(call, args, kwargs);
    Py_XDECREF(call);
    return result;
}

/* True if `type` has the same method `name` as `base`, that is, does not override it. */
static bool inherits(PyTypeObject *type, PyTypeObject *base, PyObject *name)
{
    return _PyType_Lookup(type, name) == _PyType_Lookup(base, name);
}

static PyObject *accelerate_module(PyObject *self, PyObject *const *args, Py_ssize_t nargs)
{
    (void)self;
    if (nargs != 2 || !PyType_Check(args[0]) || !PyType_Check(args[1]) ||
        !PyType_IsSubtype((PyTypeObject *)args[0], (PyTypeObject *)args[1]) ||
        !PyType_HasFeature((PyTypeObject *)args[0], Py_TPFLAGS_HEAPTYPE)) {
        PyErr_SetString(PyExc_TypeError, "_accelerate_module(): expected a class and nn.Module, a base of it");
        return NULL;
    }
    PyTypeObject *type = (PyTypeObject *)args[0], *base = (PyTypeObject *)args[1];
    if (inherits(type, base, name_of_getattr) && inherits(type, &PyBaseObject_Type, name_of_getattribute))
        type->tp_getattro = module_getattr;
    if (inherits(type, base, name_of_call))
        type->tp_call = module_call;
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {{"_accelerate_module", (PyCFunction)(void (*)(void))accelerate_module, METH_FASTCALL,
                                   "_accelerate_module(cls, Module): calls and attributes of a class of modules by the shortest way."},
                                  {NULL, NULL, 0, NULL}};

bool py_add_nn_module(PyObject *module)
{
    struct {
        PyObject **name;
        const char *text;
    } names[] = {{&members[0], "_parameters"},      {&members[1], "_buffers"},
                 {&members[2], "_modules"},         {&name_of_hooked, "_hooked"},
                 {&name_of_forward, "forward"},     {&name_of_call, "__call__"},
                 {&name_of_getattr, "__getattr__"}, {&name_of_getattribute, "__getattribute__"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if ((*names[i].name = PyUnicode_InternFromString(names[i].text)) == NULL)
            return false;
    return PyModule_AddFunctions(module, functions) == 0;
}
