/* __torch_function__: classes that take over the calls in which their objects are arguments.
 *
 * A subclass of Tensor inherits Tensor's own, which calls the function for plain Tensors and gives its results the class of the subclass.
 * Parameter has the disabled one: it costs nothing and gives plain Tensors. */
#include "extension.h"

static PyObject *name_of_override, *disabled_override;
static _Thread_local bool switched_off; /* subclasses are plain Tensors */

bool py_is_overloaded(PyObject *object)
{
    if (py_is_exact(object) || switched_off)
        return false;
    PyObject *found = _PyType_Lookup(Py_TYPE(object), name_of_override);
    return found != NULL && found != disabled_override && (py_is_tensor(object) || !PyType_Check(object));
}

/* The function as users see it. */
static PyObject *public_function(const struct py_function *function)
{
    PyObject *owner = function->home == PY_METHOD ? Py_NewRef((PyObject *)py_tensor_type)
                                                  : PyImport_ImportModule(function->home == PY_NN       ? "gradus._C.nn"
                                                                          : function->home == PY_LINALG ? "gradus._C.linalg"
                                                                                                        : "gradus");
    PyObject *found = owner == NULL ? NULL : PyObject_GetAttrString(owner, function->name);
    Py_XDECREF(owner);
    return found;
}

static PyObject *positional(PyObject *self, PyObject *const *args, Py_ssize_t nargs)
{
    const int shift = self != NULL;
    PyObject *tuple = PyTuple_New(nargs + shift);
    if (tuple != NULL && shift)
        PyTuple_SET_ITEM(tuple, 0, Py_NewRef(self));
    for (Py_ssize_t i = 0; tuple != NULL && i < nargs; i++)
        PyTuple_SET_ITEM(tuple, i + shift, Py_NewRef(args[i]));
    return tuple;
}

static PyObject *keywords(PyObject *const *values, PyObject *names)
{
    PyObject *dict = PyDict_New();
    for (Py_ssize_t i = 0; dict != NULL && names != NULL && i < PyTuple_GET_SIZE(names); i++)
        if (PyDict_SetItem(dict, PyTuple_GET_ITEM(names, i), values[i]) < 0)
            Py_CLEAR(dict);
    return dict;
}

/* Subclasses come before their bases; among the rest the first given is asked first. */
static void order(struct py_arguments *arguments)
{
    for (int i = 1; i < arguments->noverloaded; i++)
        for (int k = 0; k < i; k++) {
            PyObject *later = arguments->overloaded[i], *earlier = arguments->overloaded[k];
            if (PyType_IsSubtype(Py_TYPE(later), Py_TYPE(earlier))) {
                for (int m = i; m > k; m--)
                    arguments->overloaded[m] = arguments->overloaded[m - 1];
                arguments->overloaded[k] = later;
                break;
            }
        }
}

static PyObject *ask_in_order(const struct py_arguments *arguments, const char *name, PyObject *public, PyObject *args, PyObject *kwargs)
{
    PyObject *types = PyTuple_New(arguments->noverloaded);
    if (types == NULL)
        return NULL;
    for (int i = 0; i < arguments->noverloaded; i++)
        PyTuple_SET_ITEM(types, i, Py_NewRef((PyObject *)Py_TYPE(arguments->overloaded[i])));
    PyObject *result = Py_NewRef(Py_NotImplemented);
    for (int i = 0; i < arguments->noverloaded && result == Py_NotImplemented; i++) {
        Py_DECREF(result);
        result = PyObject_CallMethodObjArgs(arguments->overloaded[i], name_of_override, public, types, args, kwargs, NULL);
    }
    if (result == Py_NotImplemented) {
        Py_CLEAR(result);
        PyErr_Format(PyExc_TypeError, "no implementation found for '%s' on types that implement __torch_function__: %R", name, types);
    }
    Py_DECREF(types);
    return result;
}

PyObject *py_call_overloaded(const struct py_function *function, struct py_arguments *arguments, PyObject *self, PyObject *const *args,
                             Py_ssize_t nargs, PyObject *names)
{
    if (!py_has_stack())
        return NULL;
    order(arguments);
    PyObject *public = public_function(function);
    PyObject *tuple = public == NULL ? NULL : positional(self, args, nargs);
    PyObject *dict = tuple == NULL ? NULL : keywords(args + nargs, names);
    PyObject *result = dict == NULL ? NULL : ask_in_order(arguments, function->name, public, tuple, dict);
    Py_XDECREF(dict);
    Py_XDECREF(tuple);
    Py_XDECREF(public);
    return result;
}

/* ---- The two that the module offers --------------------------------------------------------------------------------------- */

/* The __torch_function__ of classes that want none. */
static PyObject *disabled(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *function, *types, *tuple = NULL, *dict = NULL;
    if (!PyArg_ParseTuple(args, "OO|OO", &function, &types, &tuple, &dict))
        return NULL;
    if ((tuple != NULL && tuple != Py_None && !PyTuple_Check(tuple)) || (dict != NULL && dict != Py_None && !PyDict_Check(dict)))
        return PyErr_Format(PyExc_TypeError, "__torch_function__(): args must be a tuple and kwargs a dict");
    PyObject *empty = tuple == NULL || tuple == Py_None ? PyTuple_New(0) : Py_NewRef(tuple);
    PyObject *result = empty == NULL ? NULL : PyObject_Call(function, empty, dict == Py_None ? NULL : dict);
    Py_XDECREF(empty);
    return result;
}

static PyMethodDef disabled_method = {
    "_disabled_torch_function_impl", disabled, METH_VARARGS,
    "The __torch_function__ of a class that wants none: calls of the library treat it as a plain Tensor."};

/* A result of the class: one that nobody else has becomes it, another gets an alias. */
static PyObject *as_class(PyObject *result, PyObject *class)
{
    if (PyTuple_CheckExact(result) || PyList_CheckExact(result)) {
        const bool is_list = PyList_CheckExact(result);
        const Py_ssize_t n = PySequence_Fast_GET_SIZE(result);
        PyObject *sequence = is_list ? PyList_New(n) : PyTuple_New(n);
        for (Py_ssize_t i = 0; sequence != NULL && i < n; i++) {
            PyObject *item = as_class(Py_NewRef(PySequence_Fast_GET_ITEM(result, i)), class);
            if (item == NULL)
                Py_CLEAR(sequence);
            else if (is_list)
                PyList_SET_ITEM(sequence, i, item);
            else
                PyTuple_SET_ITEM(sequence, i, item);
        }
        Py_DECREF(result);
        return sequence;
    }
    if (!py_is_tensor(result) || PyObject_TypeCheck(result, (PyTypeObject *)class))
        return result;
    if (Py_REFCNT(result) == 1 && py_is_exact(result)) {
        if (PyObject_SetAttrString(result, "__class__", class) == 0)
            return result;
        Py_DECREF(result);
        return NULL;
    }
    PyObject *alias = PyObject_CallMethod(result, "as_subclass", "O", class);
    Py_DECREF(result);
    return alias;
}

/* Tensor.__torch_function__ */
static PyObject *inherited(PyObject *class, PyObject *args)
{
    PyObject *function, *types, *tuple = NULL, *dict = NULL;
    if (!PyArg_ParseTuple(args, "OO|OO", &function, &types, &tuple, &dict))
        return NULL;
    PyObject *type, *iterator = PyObject_GetIter(types);
    if (iterator == NULL)
        return NULL;
    int related = 1;
    while (related > 0 && (type = PyIter_Next(iterator)) != NULL) {
        related = PyObject_IsSubclass(class, type);
        Py_DECREF(type);
    }
    Py_DECREF(iterator);
    if (related < 0 || PyErr_Occurred())
        return NULL;
    if (!related)
        Py_RETURN_NOTIMPLEMENTED;
    const bool before = switched_off;
    switched_off = true;
    PyObject *result = disabled(NULL, args);
    switched_off = before;
    return result == NULL ? NULL : as_class(result, class);
}

/* Returns what it was. */
static PyObject *switch_off(PyObject *self, PyObject *value)
{
    (void)self;
    int wanted = PyObject_IsTrue(value);
    if (wanted < 0)
        return NULL;
    PyObject *before = PyBool_FromLong(switched_off);
    switched_off = wanted;
    return before;
}

PyMethodDef py_tensor_override_methods[] = {
    {"__torch_function__", inherited, METH_VARARGS | METH_CLASS,
     "Calls the function for plain Tensors; its results are of the class of the subclass."},
    {0},
};

static PyMethodDef switch_method = {"_disable_torch_function", switch_off, METH_O,
                                    "Whether subclasses of Tensor count as plain Tensors on this thread; returns what it was."};

bool py_add_overrides(PyObject *module)
{
    name_of_override = PyUnicode_InternFromString("__torch_function__");
    disabled_override = PyCFunction_New(&disabled_method, NULL);
    PyObject *switching = PyCFunction_New(&switch_method, NULL);
    bool ok = switching != NULL && PyModule_AddObjectRef(module, switch_method.ml_name, switching) == 0;
    Py_XDECREF(switching);
    return ok && name_of_override != NULL && disabled_override != NULL &&
           PyModule_AddObjectRef(module, disabled_method.ml_name, disabled_override) == 0;
}
