/* Implements the classes no_grad, enable_grad, set_grad_enabled and inference_mode. Also implements the settings of anomaly mode.
 *
 * A mode is an object of one of these four classes, usable as a context manager or a decorator. While a mode is entered, it replaces some settings of
 * the thread; leaving it restores the previous settings. inference_mode behaves like no_grad. In contrast to PyTorch, a tensor made in inference mode
 * is an ordinary tensor. */
#include "errors.h"
#include "tables.h"

enum settings { GRAD = 1, INFERENCE = 2, SETTING_BITS = 2 };

typedef struct py_mode {
    PyObject_HEAD uint8_t mask, value; /* mask: bits of the settings that the mode replaces; value: their new bits */
    /* set_grad_enabled(...) replaces the settings when it is created. `ahead` is true from then until the mode is entered or decorates a function. */
    bool ahead;
    /* stack of the settings to restore, SETTING_BITS bits for each time that the mode was entered and not yet left; the top is in the lowest bits */
    uint64_t previous;
} py_mode;

static _Thread_local bool inference;

static inline uint8_t settings(void)
{
    return (uint8_t)((grd_grad_enabled() ? GRAD : 0) | (inference ? INFERENCE : 0));
}

static inline void set_settings(uint8_t value)
{
    grd_set_grad_enabled((value & GRAD) != 0);
    inference = (value & INFERENCE) != 0;
}

/* ---- Entering and leaving ---------------------------------------------------------------------------------------- */
static void replace_settings(py_mode *self)
{
    const uint8_t now = settings();
    self->previous = self->previous << SETTING_BITS | now;
    set_settings((uint8_t)((now & ~self->mask) | self->value));
}

static void restore_settings(py_mode *self)
{
    const uint8_t now = settings(), before = self->previous & (GRAD | INFERENCE);
    self->previous >>= SETTING_BITS;
    set_settings((uint8_t)((now & ~self->mask) | (before & self->mask)));
}

static PyObject *mode_enter(PyObject *object, PyObject *nothing)
{
    (void)nothing;
    py_mode *self = (py_mode *)object;
    if (!self->ahead)
        replace_settings(self);
    self->ahead = false;
    Py_RETURN_NONE;
}

static PyObject *mode_exit(PyObject *object, PyObject *const *args, Py_ssize_t nargs)
{
    (void)args;
    (void)nargs;
    restore_settings((py_mode *)object);
    Py_RETURN_NONE;
}

/* Returns a new context manager of class `type`, e.g. no_grad. While it is entered, it replaces the settings in `mask` by the bits of `value`. */
static PyObject *make(PyTypeObject *type, uint8_t mask, uint8_t value)
{
    py_mode *self = (py_mode *)type->tp_alloc(type, 0);
    if (self != NULL) {
        self->mask = mask;
        self->value = value;
    }
    return (PyObject *)self;
}

static PyObject *mode_clone(PyObject *object, PyObject *nothing)
{
    (void)nothing;
    const py_mode *self = (const py_mode *)object;
    return make(Py_TYPE(object), self->mask, self->value);
}

/* Implements mode(func): returns a function that runs `func` inside the mode. */
static PyObject *mode_call(PyObject *object, PyObject *args, PyObject *names)
{
    static PyObject *decorate;
    static char *params[] = {"func", NULL};
    py_mode *self = (py_mode *)object;
    PyObject *function;
    if (!PyArg_ParseTupleAndKeywords(args, names, "O", params, &function))
        return NULL;
    if (!PyCallable_Check(function))
        return PyErr_Format(PyExc_TypeError, "%s can only decorate a function, not %s", py_class_name(object), py_class_name(function));
    if (self->ahead)
        restore_settings(self);
    self->ahead = false;
    if (decorate == NULL) {
        PyObject *module = PyImport_ImportModule("gradus.autograd.grad_mode");
        decorate = module != NULL ? PyObject_GetAttrString(module, "decorate") : NULL;
        Py_XDECREF(module);
    }
    return decorate != NULL ? PyObject_CallFunctionObjArgs(decorate, object, function, NULL) : NULL;
}

static PyObject *mode_repr(PyObject *self)
{
    return PyUnicode_FromFormat("<%s object at %p>", Py_TYPE(self)->tp_name, (void *)self);
}

static void mode_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyObject *get_mode(PyObject *self, void *setting)
{
    return PyBool_FromLong(((py_mode *)self)->value & (uint8_t)(uintptr_t)setting);
}

/* ---- no_grad, enable_grad, set_grad_enabled, inference_mode ------------------------------------------------------ */
/* Implements no_grad() and enable_grad(): returns a mode object, or the decorated function if a function is given, as in no_grad(f). */
static PyObject *new_or_decorated(PyTypeObject *type, PyObject *args, PyObject *names, uint8_t value)
{
    static char *params[] = {"orig_func", NULL};
    PyObject *function = NULL;
    if ((names != NULL || PyTuple_GET_SIZE(args) > 0) && !PyArg_ParseTupleAndKeywords(args, names, "|O", params, &function))
        return NULL;
    PyObject *mode = make(type, GRAD, value);
    if (mode == NULL || function == NULL || function == Py_None)
        return mode;
    PyObject *decorated = PyObject_CallOneArg(mode, function);
    Py_DECREF(mode);
    return decorated;
}

static PyObject *no_grad_new(PyTypeObject *type, PyObject *args, PyObject *names)
{
    return new_or_decorated(type, args, names, 0);
}

static PyObject *enable_grad_new(PyTypeObject *type, PyObject *args, PyObject *names)
{
    return new_or_decorated(type, args, names, GRAD);
}

static PyObject *set_grad_enabled_new(PyTypeObject *type, PyObject *args, PyObject *names)
{
    static char *params[] = {"mode", NULL};
    int mode;
    if (!PyArg_ParseTupleAndKeywords(args, names, "p:set_grad_enabled", params, &mode))
        return NULL;
    PyObject *self = make(type, GRAD, mode ? GRAD : 0);
    if (self != NULL) {
        replace_settings((py_mode *)self);
        ((py_mode *)self)->ahead = true;
    }
    return self;
}

static PyObject *inference_mode_new(PyTypeObject *type, PyObject *args, PyObject *names)
{
    static char *params[] = {"mode", NULL};
    PyObject *mode = Py_True;
    if (!PyArg_ParseTupleAndKeywords(args, names, "|O:inference_mode", params, &mode))
        return NULL;
    const bool decorates = !PyBool_Check(mode) && PyCallable_Check(mode);
    const int on = decorates ? 1 : PyObject_IsTrue(mode);
    PyObject *self = on >= 0 ? make(type, GRAD | INFERENCE, on ? INFERENCE : GRAD) : NULL;
    if (self == NULL || !decorates)
        return self;
    PyObject *decorated = PyObject_CallOneArg(self, mode);
    Py_DECREF(self);
    return decorated;
}

/* ---- Types ------------------------------------------------------------------------------------------------------- */
static PyMethodDef mode_methods[] = {
    {"__enter__", mode_enter, METH_NOARGS, PyDoc_STR("Starts the mode in this thread.")},
    {"__exit__", (PyCFunction)(void (*)(void))mode_exit, METH_FASTCALL, PyDoc_STR("Goes back to what was set before.")},
    {"clone", mode_clone, METH_NOARGS, PyDoc_STR("Another such mode.")},
    {0},
};

static PyType_Slot base_slots[] = {
    {Py_tp_methods, mode_methods}, {Py_tp_call, mode_call}, {Py_tp_repr, mode_repr}, {Py_tp_dealloc, mode_dealloc}, {0, NULL},
};

static PyType_Spec base_spec = {
    .name = "gradus._C.Mode",
    .basicsize = sizeof(py_mode),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = base_slots,
};

static PyGetSetDef set_grad_enabled_properties[] = {
    {"mode", get_mode, NULL, PyDoc_STR("The grad mode that the context sets."), (void *)GRAD},
    {0},
};

static PyGetSetDef inference_mode_properties[] = {
    {"mode", get_mode, NULL, PyDoc_STR("True if the context turns inference mode on."), (void *)INFERENCE},
    {0},
};

static PyType_Slot no_grad_slots[] = {
    {Py_tp_doc, (void *)"Context manager and decorator: nothing is recorded for gradients."},
    {Py_tp_new, no_grad_new},
    {0, NULL},
};

static PyType_Slot enable_grad_slots[] = {
    {Py_tp_doc, (void *)"Context manager and decorator: operations are recorded for gradients, within no_grad too."},
    {Py_tp_new, enable_grad_new},
    {0, NULL},
};

static PyType_Slot set_grad_enabled_slots[] = {
    {Py_tp_doc,
     (void
          *)"set_grad_enabled(mode)\n--\n\nSets at once whether operations are recorded for gradients. As a context manager it goes back."},
    {Py_tp_new, set_grad_enabled_new},
    {Py_tp_getset, set_grad_enabled_properties},
    {0, NULL},
};

static PyType_Slot inference_mode_slots[] = {
    {Py_tp_doc, (void *)"inference_mode(mode=True)\n--\n\nContext manager and decorator that does what no_grad does: tensors made in it "
                        "are ordinary ones, which may "
                        "be used for gradients later."},
    {Py_tp_new, inference_mode_new},
    {Py_tp_getset, inference_mode_properties},
    {0, NULL},
};

static bool add_mode(PyObject *module, PyObject *bases, const char *name, PyType_Slot *slots)
{
    PyType_Spec spec = {.name = name, .basicsize = sizeof(py_mode), .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, .slots = slots};
    PyObject *type = PyType_FromSpecWithBases(&spec, bases);
    const bool ok = type != NULL && PyModule_AddType(module, (PyTypeObject *)type) == 0;
    Py_XDECREF(type);
    return ok;
}

static PyObject *is_grad_enabled(PyObject *module, PyObject *nothing)
{
    (void)module;
    (void)nothing;
    return PyBool_FromLong(grd_grad_enabled());
}

static PyObject *is_inference_mode_enabled(PyObject *module, PyObject *nothing)
{
    (void)module;
    (void)nothing;
    return PyBool_FromLong(inference);
}

/* ---- Anomaly mode ------------------------------------------------------------------------------------------------ */
static PyObject *set_anomaly_enabled(PyObject *module, PyObject *args, PyObject *names)
{
    static char *params[] = {"enabled", "check_nan", NULL};
    int enabled, check_nan = 1;
    (void)module;
    if (!PyArg_ParseTupleAndKeywords(args, names, "p|p:set_anomaly_enabled", params, &enabled, &check_nan))
        return NULL;
    grd_set_anomaly_mode(enabled, check_nan);
    Py_RETURN_NONE;
}

static PyObject *is_anomaly_enabled(PyObject *module, PyObject *nothing)
{
    (void)module;
    (void)nothing;
    return PyBool_FromLong(grd_anomaly_mode(NULL));
}

static PyObject *is_anomaly_check_nan_enabled(PyObject *module, PyObject *nothing)
{
    bool check_nan;
    (void)module;
    (void)nothing;
    grd_anomaly_mode(&check_nan);
    return PyBool_FromLong(check_nan);
}

static const char *trace_python(void)
{
    static _Thread_local PyObject *last; /* the str that owns the returned text, kept until the next call */
    const PyGILState_STATE state = PyGILState_Ensure();
    PyObject *module = PyImport_ImportModule("gradus.autograd.anomaly_mode");
    PyObject *stack = module != NULL ? PyObject_CallMethod(module, "_format_stack", NULL) : NULL;
    const char *text = stack != NULL ? PyUnicode_AsUTF8(stack) : NULL;
    if (text == NULL)
        py_carry();
    Py_XDECREF(module);
    Py_XSETREF(last, stack);
    PyGILState_Release(state);
    return text;
}

static PyMethodDef functions[] = {
    {"set_anomaly_enabled", (PyCFunction)(void (*)(void))set_anomaly_enabled, METH_VARARGS | METH_KEYWORDS,
     PyDoc_STR("set_anomaly_enabled($module, /, enabled, check_nan=True)\n--\n\nSets whether anomalies of backward passes are looked for, "
               "and NaN among them.")},
    {"is_anomaly_enabled", is_anomaly_enabled, METH_NOARGS,
     PyDoc_STR("is_anomaly_enabled($module, /)\n--\n\nWhether anomalies of backward passes are looked for.")},
    {"is_anomaly_check_nan_enabled", is_anomaly_check_nan_enabled, METH_NOARGS,
     PyDoc_STR("is_anomaly_check_nan_enabled($module, /)\n--\n\nWhether NaN in gradients counts as an anomaly.")},
    {"is_grad_enabled", is_grad_enabled, METH_NOARGS,
     PyDoc_STR("is_grad_enabled($module, /)\n--\n\nWhether operations are recorded for gradients.")},
    {"is_inference_mode_enabled", is_inference_mode_enabled, METH_NOARGS,
     PyDoc_STR("is_inference_mode_enabled($module, /)\n--\n\nWhether inference mode is on.")},
    {0},
};

bool py_add_grad_modes(PyObject *module)
{
    grd_set_anomaly_tracer(trace_python);
    PyObject *base = PyType_FromSpec(&base_spec), *bases = base != NULL ? PyTuple_Pack(1, base) : NULL;
    Py_XDECREF(base);
    const bool ok = bases != NULL && add_mode(module, bases, "gradus.autograd.grad_mode.no_grad", no_grad_slots) &&
                    add_mode(module, bases, "gradus.autograd.grad_mode.enable_grad", enable_grad_slots) &&
                    add_mode(module, bases, "gradus.autograd.grad_mode.set_grad_enabled", set_grad_enabled_slots) &&
                    add_mode(module, bases, "gradus.autograd.grad_mode.inference_mode", inference_mode_slots) &&
                    PyModule_AddFunctions(module, functions) == 0;
    Py_XDECREF(bases);
    return ok;
}
