/* Implements __torch_function__: classes take over the calls in which their objects are arguments, and modes take over all calls of a thread.
 *
 * A subclass of Tensor inherits Tensor.__torch_function__, which runs the function with subclasses treated as Tensor and converts the results to the
 * subclass. Parameter has the disabled __torch_function__, so its calls are not taken over and their results are Tensors. Modes are asked before
 * classes, the innermost mode first. While the __torch_function__ of a mode runs, the mode is removed from the stack, so the next outer mode becomes
 * the innermost. */
#include "override.h"
#include "errors.h"
#include "tables.h"
#include "vectorcall.h"

static PyObject *name_of_override, *disabled_override;
PyTypeObject *py_exact_type_no_mode;
static int64_t modes_of_all; /* number of __torch_function__ modes on the stacks of all threads; the GIL protects it */

enum state { ENABLED, NO_SUBCLASSES, NOTHING };
static _Thread_local enum state state; /* NO_SUBCLASSES: only modes take over calls; NOTHING: neither classes nor modes do */
static _Thread_local PyObject *called; /* function that Tensor.__torch_function__ is running, borrowed; NULL if none */
static _Thread_local PyObject *modes;  /* list of this thread's __torch_function__ modes, the innermost last; NULL if there are none */

bool py_has_override(PyObject *object)
{
    if (py_is_exact(object) || state != ENABLED)
        return false;
    PyObject *found = _PyType_Lookup(Py_TYPE(object), name_of_override);
    return found != NULL && found != disabled_override && (py_is_tensor(object) || !PyType_Check(object));
}

bool py_is_mode_active(void)
{
    return PY_UNLIKELY(py_exact_type_no_mode == NULL) && modes != NULL && PyList_GET_SIZE(modes) > 0 && state != NOTHING;
}

bool py_is_overloaded(PyObject *object)
{
    return !py_is_exact_no_mode(object) && (py_has_override(object) || (py_is_mode_active() && py_is_tensor(object)));
}

/* Returns the Python function object that `function` describes, from the module or class where users find it. A name that begins with an underscore
 * exists only in gradus._C. */
static PyObject *public_function(const struct py_function *function)
{
    static const char *const modules[] = {[PY_NN] = "gradus._C.nn",
                                          [PY_LINALG] = "gradus._C.linalg",
                                          [PY_SPECIAL] = "gradus._C.special",
                                          [PY_FFT] = "gradus._C.fft",
                                          [PY_WINDOWS] = "gradus._C.windows"};
    const char *name = function->home != PY_FUNCTION ? modules[function->home] : function->name[0] == '_' ? "gradus._C" : "gradus";
    PyObject *owner = function->home == PY_METHOD ? Py_NewRef((PyObject *)py_tensor_type) : PyImport_ImportModule(name);
    PyObject *found = owner == NULL ? NULL : PyObject_GetAttrString(owner, function->name);
    Py_XDECREF(owner);
    return found;
}

/* Sorts the overloaded arguments so that subclasses come before their base classes; otherwise the order of the call remains. */
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

/* ---- Modes ------------------------------------------------------------------------------------------------------- */

static void count_modes(int change)
{
    modes_of_all += change;
    py_exact_type_no_mode = modes_of_all > 0 ? NULL : py_tensor_type;
}

static bool push_mode(PyObject *mode)
{
    if (modes == NULL && (modes = PyList_New(0)) == NULL)
        return false;
    if (PyList_Append(modes, mode) < 0)
        return false;
    count_modes(1);
    return true;
}

/* Removes the innermost mode from this thread's stack and returns it. Returns NULL with RuntimeError if the stack is empty. */
static PyObject *pop_mode(void)
{
    const Py_ssize_t n = modes == NULL ? 0 : PyList_GET_SIZE(modes);
    if (n == 0)
        return PyErr_Format(PyExc_RuntimeError, "There is no mode to pop");
    PyObject *mode = Py_NewRef(PyList_GET_ITEM(modes, n - 1));
    if (PyList_SetSlice(modes, n - 1, n, NULL) < 0) {
        Py_DECREF(mode);
        return NULL;
    }
    count_modes(-1);
    if (n == 1)
        Py_CLEAR(modes); /* free the list now, because nothing frees it when the thread ends */
    return mode;
}

/* Calls mode.__torch_function__(public, types, args, kwargs). The mode is removed from the stack during the call. */
static PyObject *ask_mode(PyObject *mode, PyObject *public, PyObject *types, PyObject *args, PyObject *kwargs)
{
    PyObject *popped = pop_mode();
    if (popped == NULL)
        return NULL;
    PyObject *result = PyObject_CallMethodObjArgs(mode, name_of_override, public, types, args, kwargs, NULL);
    if (!push_mode(popped))
        Py_CLEAR(result);
    Py_DECREF(popped);
    return result;
}

/* Raises TypeError because every __torch_function__ returned NotImplemented. Always returns NULL. */
static PyObject *refusal(const char *name, PyObject *types, PyObject *mode)
{
    if (mode == NULL)
        return PyErr_Format(PyExc_TypeError, "no implementation found for '%s' on types that implement __torch_function__: %R", name,
                            types);
    return PyErr_Format(PyExc_TypeError, "no implementation found for '%s' on types that implement __torch_function__: %R nor in mode %R",
                        name, types, mode);
}

PyObject *py_call_override(const char *name, PyObject *public, PyObject *const *overloaded, int noverloaded, PyObject *args,
                           PyObject *kwargs)
{
    PyObject *types = PyTuple_New(noverloaded);
    if (types == NULL)
        return NULL;
    for (int i = 0; i < noverloaded; i++)
        PyTuple_SET_ITEM(types, i, Py_NewRef((PyObject *)Py_TYPE(overloaded[i])));
    PyObject *mode = py_is_mode_active() ? Py_NewRef(PyList_GET_ITEM(modes, PyList_GET_SIZE(modes) - 1)) : NULL;
    PyObject *result = mode == NULL ? Py_NewRef(Py_NotImplemented) : ask_mode(mode, public, types, args, kwargs);
    for (int i = 0; i < noverloaded && result == Py_NotImplemented; i++) {
        Py_DECREF(result);
        result = PyObject_CallMethodObjArgs(overloaded[i], name_of_override, public, types, args, kwargs, NULL);
    }
    if (result == Py_NotImplemented) {
        Py_DECREF(result);
        result = refusal(name, types, mode);
    }
    Py_XDECREF(mode);
    Py_DECREF(types);
    return result;
}

/* ---- Calls ------------------------------------------------------------------------------------------------------- */

void py_note_overloaded(PyObject *object, struct py_arguments *arguments)
{
    for (int i = 0; i < arguments->noverloaded; i++)
        if (Py_TYPE(arguments->overloaded[i]) == Py_TYPE(object))
            return;
    if (arguments->noverloaded < PY_MAX_OVERLOADED)
        arguments->overloaded[arguments->noverloaded++] = object;
}

PyObject *py_call_overloaded(const struct py_function *function, struct py_arguments *arguments, PyObject *self, PyObject *const *args,
                             Py_ssize_t nargs, PyObject *names)
{
    if (!py_has_stack())
        return NULL;
    order(arguments);
    PyObject *public = public_function(function);
    PyObject *tuple = public == NULL ? NULL : py_pack_positional(self, args, nargs);
    PyObject *dict = tuple == NULL ? NULL : py_pack_keywords(args + nargs, names);
    PyObject *result =
        dict == NULL ? NULL : py_call_override(function->name, public, arguments->overloaded, arguments->noverloaded, tuple, dict);
    Py_XDECREF(dict);
    Py_XDECREF(tuple);
    Py_XDECREF(public);
    return result;
}

/* Appends all arguments whose class has a __torch_function__ to arguments->overloaded, one for each class. */
static void note_all(PyObject *const *args, Py_ssize_t nargs, struct py_arguments *arguments)
{
    for (Py_ssize_t i = 0; i < nargs; i++)
        if (py_has_override(args[i]))
            py_note_overloaded(args[i], arguments);
}

PyObject *py_override(PyObject *self, const char *name, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    const struct py_function method = {.name = name, .home = PY_METHOD};
    struct py_arguments arguments = {.noverloaded = 0};
    note_all(&self, 1, &arguments);
    note_all(args, nargs, &arguments);
    return py_call_overloaded(&method, &arguments, self, args, nargs, names);
}

/* ---- Tensor.__torch_function__ and the disabled one -------------------------------------------------------------- */

/* The disabled __torch_function__, for classes whose calls shall not be taken over. Runs the function with subclasses treated as Tensor. */
static PyObject *disabled_torch_function(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *function, *types, *tuple = NULL, *dict = NULL;
    if (!PyArg_ParseTuple(args, "OO|OO", &function, &types, &tuple, &dict))
        return NULL;
    if ((tuple != NULL && tuple != Py_None && !PyTuple_Check(tuple)) || (dict != NULL && dict != Py_None && !PyDict_Check(dict)))
        return PyErr_Format(PyExc_TypeError, "__torch_function__(): args must be a tuple and kwargs a dict");
    PyObject *empty = tuple == NULL || tuple == Py_None ? PyTuple_New(0) : PySequence_Tuple(tuple);
    const enum state before = state;
    if (state == ENABLED)
        state = NO_SUBCLASSES;
    PyObject *result = empty == NULL ? NULL : PyObject_Call(function, empty, dict == Py_None ? NULL : dict);
    state = before;
    Py_XDECREF(empty);
    return result;
}

static PyMethodDef disabled_method = {"_disabled_torch_function_impl", disabled_torch_function, METH_VARARGS,
                                      "The __torch_function__ of a class that wants none: calls of the library treat it as a Tensor."};

/* Converts a tensor, or each tensor in a tuple or list, to the class `class`. Changes the class of an exact Tensor that nothing else references.
 * Replaces any other tensor by an alias of class `class`. Takes over the reference to `result`. */
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

/* Calls the function of Gradus that has the same name as `function`, a function of the real package torch. PyTorch's function does not know the
 * Tensor of Gradus, so it would call __torch_function__ again without end. */
static PyObject *call_counterpart(PyObject *function, PyObject *tuple, PyObject *dict)
{
    PyObject *overrides = PyImport_ImportModule("gradus.overrides");
    PyObject *found = overrides == NULL ? NULL : PyObject_CallMethod(overrides, "_counterpart", "O", function);
    PyObject *empty = found == NULL || tuple == NULL || tuple == Py_None ? PyTuple_New(0) : PySequence_Tuple(tuple);
    PyObject *result = found == NULL || empty == NULL ? NULL : PyObject_Call(found, empty, dict == Py_None ? NULL : dict);
    Py_XDECREF(empty);
    Py_XDECREF(found);
    Py_XDECREF(overrides);
    return result;
}

/* Implements Tensor.__torch_function__: runs the function with subclasses treated as Tensor and converts the results to `class`. Returns
 * NotImplemented if a class in `types` is not a base of `class`. */
static PyObject *tensor_torch_function(PyObject *class, PyObject *args)
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
    if (function == called)
        return call_counterpart(function, tuple, dict);
    PyObject *const before = called;
    called = function;
    PyObject *result = disabled_torch_function(NULL, args);
    called = before;
    return result == NULL ? NULL : as_class(result, class);
}

PyMethodDef py_tensor_override_methods[] = {
    {"__torch_function__", tensor_torch_function, METH_VARARGS | METH_CLASS,
     "Calls the function with subclasses treated as Tensor; its results are of the class of the subclass."},
    {0},
};

/* ---- DisableTorchFunction ---------------------------------------------------------------------------------------- */

/* Object of the context managers DisableTorchFunctionSubclass and DisableTorchFunction. Inside DisableTorchFunctionSubclass, classes do not take over
 * calls. Inside DisableTorchFunction, neither classes nor __torch_function__ modes take over calls. */
struct guard {
    PyObject_HEAD enum state inside, before;
};

static PyObject *new_guard(PyTypeObject *type, enum state inside)
{
    struct guard *guard = (struct guard *)type->tp_alloc(type, 0);
    if (guard != NULL)
        guard->inside = inside;
    return (PyObject *)guard;
}

static PyObject *new_without_subclasses(PyTypeObject *type, PyObject *Py_UNUSED(args), PyObject *Py_UNUSED(kwargs))
{
    return new_guard(type, NO_SUBCLASSES);
}

static PyObject *new_without_anything(PyTypeObject *type, PyObject *Py_UNUSED(args), PyObject *Py_UNUSED(kwargs))
{
    return new_guard(type, NOTHING);
}

static PyObject *enter_guard(PyObject *self, PyObject *Py_UNUSED(none))
{
    struct guard *guard = (struct guard *)self;
    guard->before = state;
    if (state < guard->inside)
        state = guard->inside;
    return Py_NewRef(self);
}

static PyObject *exit_guard(PyObject *self, PyObject *Py_UNUSED(args))
{
    state = ((struct guard *)self)->before;
    Py_RETURN_NONE;
}

static PyMethodDef guard_methods[] = {
    {"__enter__", enter_guard, METH_NOARGS, "Switches off."}, {"__exit__", exit_guard, METH_VARARGS, "Switches on again."}, {0}};
static PyType_Slot without_subclasses_slots[] = {{Py_tp_new, new_without_subclasses},
                                                 {Py_tp_methods, guard_methods},
                                                 {Py_tp_doc, "Inside of a with block subclasses of Tensor are treated as Tensor."},
                                                 {0}};
static PyType_Slot without_anything_slots[] = {
    {Py_tp_new, new_without_anything},
    {Py_tp_methods, guard_methods},
    {Py_tp_doc, "Inside of a with block subclasses of Tensor are treated as Tensor, and modes are not asked."},
    {0}};
static PyType_Spec without_subclasses = {"gradus._C.DisableTorchFunctionSubclass", sizeof(struct guard), 0, Py_TPFLAGS_DEFAULT,
                                         without_subclasses_slots};
static PyType_Spec without_anything = {"gradus._C.DisableTorchFunction", sizeof(struct guard), 0, Py_TPFLAGS_DEFAULT,
                                       without_anything_slots};

/* ---- The stack of modes, for Python ------------------------------------------------------------------------------ */

static PyObject *push(PyObject *Py_UNUSED(module), PyObject *mode)
{
    return push_mode(mode) ? Py_NewRef(Py_None) : NULL;
}

static PyObject *pop(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    return pop_mode();
}

static PyObject *stack(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    return modes == NULL ? PyList_New(0) : PyList_GetSlice(modes, 0, PyList_GET_SIZE(modes));
}

/* _overloaded_among(args) in Python: returns a list of the arguments that have a __torch_function__ or are exact Tensors, one for each class,
 * subclasses first. */
static PyObject *overloaded_among(PyObject *Py_UNUSED(module), PyObject *given)
{
    PyObject *items = PySequence_Fast(given, "expected a sequence of arguments");
    PyObject *found = items == NULL ? NULL : PyList_New(0);
    for (Py_ssize_t i = 0; found != NULL && i < PySequence_Fast_GET_SIZE(items); i++) {
        PyObject *item = PySequence_Fast_GET_ITEM(items, i);
        Py_ssize_t at = py_is_exact(item) || py_has_override(item) ? 0 : -1;
        for (Py_ssize_t k = 0; at >= 0 && k < PyList_GET_SIZE(found); k++)
            if (Py_TYPE(PyList_GET_ITEM(found, k)) == Py_TYPE(item))
                at = -1;
        const Py_ssize_t n = PyList_GET_SIZE(found);
        while (at >= 0 && at < n && !PyType_IsSubtype(Py_TYPE(item), Py_TYPE(PyList_GET_ITEM(found, at))))
            at++;
        if (at >= 0 && PyList_Insert(found, at, item) < 0)
            Py_CLEAR(found);
    }
    Py_XDECREF(items);
    return found;
}

static PyObject *has_override(PyObject *Py_UNUSED(module), PyObject *given)
{
    PyObject *items = PySequence_Fast(given, "expected a sequence of arguments");
    bool found = py_is_mode_active();
    for (Py_ssize_t i = 0; items != NULL && !found && i < PySequence_Fast_GET_SIZE(items); i++)
        found = py_has_override(PySequence_Fast_GET_ITEM(items, i));
    Py_XDECREF(items);
    return items != NULL ? PyBool_FromLong(found) : NULL;
}

static PyObject *call_override(PyObject *Py_UNUSED(module), PyObject *given)
{
    PyObject *public, *overloaded, *args, *kwargs;
    if (!PyArg_ParseTuple(given, "OO!O!O!", &public, &PyTuple_Type, &overloaded, &PyTuple_Type, &args, &PyDict_Type, &kwargs))
        return NULL;
    PyObject *name = PyObject_GetAttrString(public, "__name__");
    const char *text = name == NULL ? NULL : PyUnicode_AsUTF8(name);
    PyObject *result = text == NULL ? NULL
                                    : py_call_override(text, public, ((PyTupleObject *)overloaded)->ob_item,
                                                       (int)PyTuple_GET_SIZE(overloaded), args, kwargs);
    Py_XDECREF(name);
    return result;
}

static PyMethodDef functions[] = {
    {"_push_on_torch_function_stack", push, METH_O, "Makes a mode the innermost of this thread."},
    {"_pop_torch_function_stack", pop, METH_NOARGS, "Takes the innermost mode of this thread away and returns it."},
    {"_torch_function_stack", stack, METH_NOARGS, "The modes of this thread, the innermost last."},
    {"_has_torch_function", has_override, METH_O, "True if a mode is active, or the class of one of the arguments takes calls over."},
    {"_overloaded_among", overloaded_among, METH_O,
     "The arguments whose classes take a call over, and Tensors, in the order they are asked."},
    {"_call_override", call_override, METH_VARARGS,
     "_call_override(function, overloaded, args, kwargs): asks the mode and the overloaded arguments."},
    {0},
};

static bool add_guards(PyObject *module)
{
    PyObject *first = PyType_FromSpec(&without_subclasses), *second = PyType_FromSpec(&without_anything);
    const bool ok = first != NULL && second != NULL && PyModule_AddObjectRef(module, "DisableTorchFunctionSubclass", first) == 0 &&
                    PyModule_AddObjectRef(module, "DisableTorchFunction", second) == 0;
    Py_XDECREF(first);
    Py_XDECREF(second);
    return ok;
}

bool py_add_overrides(PyObject *module)
{
    name_of_override = PyUnicode_InternFromString("__torch_function__");
    disabled_override = PyCFunction_New(&disabled_method, NULL);
    return name_of_override != NULL && disabled_override != NULL && PyModule_AddFunctions(module, functions) == 0 && add_guards(module) &&
           PyModule_AddObjectRef(module, disabled_method.ml_name, disabled_override) == 0;
}
