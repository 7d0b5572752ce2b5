/* autograd.Function: forward and backward in Python.
 *
 * The object that forward and backward get as ctx is the context of the library's call, which owns it, and it is the object of the call's node.
 * It only points to the node, and forgets it when the library releases it. Where somebody holds it when the rest of the graph lets go of the node,
 * it takes the node over; then they own each other, until the garbage collector finds them. What forward saves and marks is noted, and told the
 * library when the outputs are known. */
#include "graph.h"

#include <stddef.h>
#include <structmember.h>

typedef struct py_context {
    py_node node;
    PyObject *function;                            /* the class */
    PyObject *to_save, *dirty, *non_differentiable; /* what forward said, until it is over */
    PyObject *needs_input_grad;
    bool *is_tensor; /* per argument of forward */
    Py_ssize_t narguments, noutputs;
    int nsaved;
    bool materialize, forward, owns_node; /* forward: it has not ended */
} py_context;

static PyTypeObject *context_type;
static PyObject *str_forward, *str_backward, *str_vjp, *str_setup_context, *str_backward_class, *str_has_setup, *str_binds;
static PyObject *base_function; /* the class Function, which has a backward and a vjp that only raise */

void py_release_context(void *context)
{
    if (!Py_IsInitialized())
        return;
    const PyGILState_STATE state = PyGILState_Ensure();
    ((py_node *)context)->node = NULL;
    Py_DECREF((PyObject *)context);
    PyGILState_Release(state);
}

/* Somebody in Python holds the context besides the node. */
static bool take_over_node(void *context)
{
    py_context *self = context;
    if (!Py_IsInitialized())
        return false;
    const PyGILState_STATE state = PyGILState_Ensure();
    const bool taken = !self->forward && !self->owns_node && Py_REFCNT(self) > 1;
    self->owns_node |= taken;
    PyGILState_Release(state);
    return taken;
}

static inline grd_custom_call *call_of(const py_context *self)
{
    return self->node.node != NULL ? grd_node_custom_call(self->node.node, py_release_context) : NULL;
}

/* ---- Backward ------------------------------------------------------------------------------------------------------------------- */
/* The function's own backward, or vjp where that is what it has. New reference. */
static PyObject *find_backward(const py_context *self)
{
    PyObject *backward = PyObject_GetAttr(self->function, str_backward), *vjp = backward != NULL ? PyObject_GetAttr(self->function, str_vjp) : NULL;
    PyObject *missing = vjp != NULL ? PyObject_GetAttr(base_function, str_vjp) : NULL;
    PyObject *found = NULL;
    if (missing != NULL && backward != missing && vjp != missing)
        PyErr_SetString(PyExc_RuntimeError, "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only "
                                            "implement one of them.");
    else if (missing != NULL)
        found = vjp != missing ? vjp : backward;
    Py_XINCREF(found);
    Py_XDECREF(backward);
    Py_XDECREF(vjp);
    Py_XDECREF(missing);
    return found;
}

/* Hands the gradients of the tensors among the arguments to the library. False with an exception. */
static bool take_gradients(const py_context *self, PyObject *grads, grd_tensor **ret_grads)
{
    const char *name = py_class_name((PyObject *)self);
    Py_ssize_t given = PyTuple_GET_SIZE(grads), input = 0;
    while (given > self->narguments && PyTuple_GET_ITEM(grads, given - 1) == Py_None)
        given--;
    if (given != self->narguments) {
        PyErr_Format(PyExc_RuntimeError, "function %s returned an incorrect number of gradients (expected %zd, got %zd)", name, self->narguments,
                     given);
        return false;
    }
    for (Py_ssize_t i = 0; i < given; i++) {
        PyObject *grad = PyTuple_GET_ITEM(grads, i);
        if (!self->is_tensor[i] && grad != Py_None) {
            PyErr_Format(PyExc_RuntimeError,
                         "function %s returned a gradient different than None at position %zd, but the corresponding forward input was not a "
                         "Variable",
                         name, i + 1);
            return false;
        }
        if (grad != Py_None && !py_is_tensor(grad)) {
            PyErr_Format(PyExc_RuntimeError, "expected Variable or None (got %s)", py_class_name(grad));
            return false;
        }
        if (self->is_tensor[i])
            ret_grads[input++] = grad != Py_None ? py_lend(grad) : NULL;
    }
    return true;
}

/* Calls `callable` with `first` (unless NULL) and the items of a tuple. */
static PyObject *call_with_items(PyObject *callable, PyObject *first, PyObject *const *items, Py_ssize_t n)
{
    enum { INLINE = 8 };
    PyObject *inline_stack[INLINE], **stack = inline_stack;
    const Py_ssize_t shift = first != NULL;
    if (n + shift > INLINE && (stack = PyMem_New(PyObject *, (size_t)(n + shift))) == NULL)
        return PyErr_NoMemory();
    if (first != NULL)
        stack[0] = first;
    for (Py_ssize_t i = 0; i < n; i++)
        stack[i + shift] = items[i];
    PyObject *result = PyObject_Vectorcall(callable, stack, (size_t)(n + shift), NULL);
    if (stack != inline_stack)
        PyMem_Free(stack);
    return result;
}

static PyObject *as_tuple(PyObject *object)
{
    if (!PyTuple_Check(object))
        return PyTuple_Pack(1, object);
    Py_INCREF(object);
    return object;
}

static bool run_backward_locked(py_context *self, grd_tensor *const *grad_outputs, grd_tensor **ret_grads)
{
    PyObject *backward = find_backward(self), *grads = backward != NULL ? py_tuple_of(grad_outputs, self->noutputs) : NULL;
    PyObject *result = NULL, *tuple = NULL;
    if (grads != NULL)
        result = call_with_items(backward, (PyObject *)self, &PyTuple_GET_ITEM(grads, 0), self->noutputs);
    if (result != NULL)
        tuple = as_tuple(result);
    const bool ok = tuple != NULL && take_gradients(self, tuple, ret_grads);
    Py_XDECREF(backward);
    Py_XDECREF(grads);
    Py_XDECREF(result);
    Py_XDECREF(tuple);
    return ok;
}

static void run_backward(grd_custom_call *call, grd_tensor *const *grad_outputs, grd_tensor **ret_grads)
{
    const PyGILState_STATE state = PyGILState_Ensure();
    PyObject *self = grd_custom_context(call);
    Py_INCREF(self);
    if (!run_backward_locked((py_context *)self, grad_outputs, ret_grads))
        py_carry();
    Py_DECREF(self);
    PyGILState_Release(state);
}

/* ---- Forward ---------------------------------------------------------------------------------------------------------------------- */
/* One call of apply. */
struct application {
    py_context *context;
    PyObject *function; /* the class; borrowed */
    PyObject *const *args;
    Py_ssize_t nargs;
    grd_tensor **inputs; /* the tensors among the arguments; borrowed */
    int ninputs;
    bool recorded;
};

/* Sorts the arguments, and notes on the context what they are. */
static bool read_inputs(struct application *application)
{
    py_context *context = application->context;
    const Py_ssize_t n = application->nargs;
    context->is_tensor = PyMem_New(bool, (size_t)n);
    context->needs_input_grad = PyTuple_New(n);
    context->narguments = n;
    if (context->is_tensor == NULL)
        PyErr_NoMemory();
    if (context->is_tensor == NULL || context->needs_input_grad == NULL)
        return false;
    bool needs = false;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *argument = application->args[i], *needed = Py_False;
        context->is_tensor[i] = py_is_tensor(argument);
        if (context->is_tensor[i]) {
            grd_tensor *input = application->inputs[application->ninputs++] = py_tensor_of(argument);
            if (grd_requires_grad(input))
                needed = Py_True;
        }
        needs |= needed == Py_True;
        Py_INCREF(needed);
        PyTuple_SET_ITEM(context->needs_input_grad, i, needed);
    }
    application->recorded = needs && grd_grad_enabled();
    return true;
}

/* forward, and setup_context where the class has one; with grad mode off. */
static PyObject *run_forward(const struct application *application)
{
    PyObject *context = (PyObject *)application->context, *has_setup = PyObject_GetAttr(application->function, str_has_setup);
    PyObject *forward = has_setup != NULL ? PyObject_GetAttr(application->function, str_forward) : NULL;
    PyObject *result = NULL;
    if (forward != NULL)
        result = call_with_items(forward, has_setup == Py_True ? NULL : context, application->args, application->nargs);
    if (result != NULL && has_setup == Py_True) {
        PyObject *inputs = PyTuple_New(application->nargs);
        for (Py_ssize_t i = 0; inputs != NULL && i < application->nargs; i++) {
            Py_INCREF(application->args[i]);
            PyTuple_SET_ITEM(inputs, i, application->args[i]);
        }
        PyObject *nothing =
            inputs != NULL ? PyObject_CallMethodObjArgs(application->function, str_setup_context, context, inputs, result, NULL) : NULL;
        Py_XDECREF(inputs);
        if (nothing == NULL)
            Py_CLEAR(result);
        Py_XDECREF(nothing);
    }
    Py_XDECREF(has_setup);
    Py_XDECREF(forward);
    return result;
}

/* ---- What forward said --------------------------------------------------------------------------------------------------------------- */
static bool is_among(const grd_tensor *t, grd_tensor *const *list, Py_ssize_t n)
{
    for (Py_ssize_t i = 0; i < n; i++)
        if (list[i] == t)
            return true;
    return false;
}

/* Whether what forward gave is nothing or a tuple of tensors; `optional`: some may be None. False with an exception. */
static bool check_noted(PyObject *noted, PyObject *error, const char *name, const char *verb, bool optional)
{
    if (noted != NULL && !PyTuple_Check(noted)) {
        PyErr_Format(PyExc_TypeError, "%s of a context must be a tuple, not %s", name, py_class_name(noted));
        return false;
    }
    for (Py_ssize_t i = 0; noted != NULL && i < PyTuple_GET_SIZE(noted); i++) {
        PyObject *item = PyTuple_GET_ITEM(noted, i);
        if (!py_is_tensor(item) && !(optional && item == Py_None)) {
            PyErr_Format(error, "%s can only %s variables, but argument %zd is of type %s", name, verb, i, py_class_name(item));
            return false;
        }
    }
    return true;
}

static inline Py_ssize_t count(PyObject *noted)
{
    return noted != NULL ? PyTuple_GET_SIZE(noted) : 0;
}

static bool mark_dirty(const struct application *application, grd_custom_call *call, grd_tensor *const *outputs, Py_ssize_t noutputs)
{
    PyObject *noted = application->context->dirty;
    for (Py_ssize_t i = 0; i < count(noted); i++) {
        grd_tensor *t = py_tensor_of(PyTuple_GET_ITEM(noted, i));
        if (!is_among(t, outputs, noutputs)) {
            PyErr_SetString(PyExc_RuntimeError, "Some elements marked as dirty during the forward method were not returned as output. The inputs "
                                                "that are modified inplace must all be outputs of the Function.");
            return false;
        }
        if (is_among(t, application->inputs, application->ninputs))
            grd_custom_mark_dirty(call, t);
        else if (PyErr_WarnEx(PyExc_UserWarning, "Only input Tensors should be given to ctx.mark_dirty(). If a Tensor is not an input, there is no "
                                                 "need to pass it to mark_dirty().", 1) != 0)
            return false;
    }
    return true;
}

/* Tells the library what forward noted. False with an exception. */
static bool tell(const struct application *application, grd_custom_call *call, grd_tensor *const *outputs, Py_ssize_t noutputs)
{
    py_context *context = application->context;
    if (!check_noted(context->to_save, PyExc_TypeError, "save_for_backward", "save", true) ||
        !check_noted(context->dirty, PyExc_RuntimeError, "mark_dirty", "accept", false) ||
        !check_noted(context->non_differentiable, PyExc_RuntimeError, "mark_non_differentiable", "accept", false) ||
        !mark_dirty(application, call, outputs, noutputs))
        return false;
    for (Py_ssize_t i = 0; i < count(context->non_differentiable); i++) {
        grd_tensor *t = py_tensor_of(PyTuple_GET_ITEM(context->non_differentiable, i));
        if (is_among(t, outputs, noutputs))
            grd_custom_mark_non_differentiable(call, t);
    }
    context->nsaved = application->recorded ? (int)count(context->to_save) : 0;
    for (int i = 0; i < context->nsaved; i++) {
        PyObject *item = PyTuple_GET_ITEM(context->to_save, i);
        grd_custom_save(call, item != Py_None ? py_tensor_of(item) : NULL);
    }
    grd_custom_materialize_grads(call, context->materialize);
    return true;
}

static void forget(py_context *context)
{
    Py_CLEAR(context->to_save);
    Py_CLEAR(context->dirty);
    Py_CLEAR(context->non_differentiable);
}

/* The result of forward with outputs[i] for its items: the same objects where the library left the tensors as they were. */
static PyObject *wrap_results(PyObject *items, bool single, grd_tensor *const *outputs)
{
    const Py_ssize_t n = PyTuple_GET_SIZE(items);
    PyObject *results = single ? NULL : PyTuple_New(n);
    for (Py_ssize_t i = 0; (single || results != NULL) && i < n; i++) {
        PyObject *item = PyTuple_GET_ITEM(items, i);
        if (outputs[i] == NULL || outputs[i] == py_tensor_of(item))
            Py_INCREF(item);
        else
            item = py_wrap(outputs[i]);
        if (single)
            return item;
        if (item == NULL)
            Py_CLEAR(results);
        else
            PyTuple_SET_ITEM(results, i, item);
    }
    return results;
}

/* From what forward returned to what apply does. Ends the call. */
static PyObject *finish(const struct application *application, grd_custom_call *call, PyObject *result)
{
    enum { INLINE = 8 };
    grd_tensor *inline_outputs[INLINE], **outputs = inline_outputs;
    PyObject *items = result != NULL ? as_tuple(result) : NULL, *wrapped = NULL;
    const Py_ssize_t n = items != NULL ? PyTuple_GET_SIZE(items) : 0;
    if (n > INLINE && (outputs = PyMem_New(grd_tensor *, (size_t)n)) == NULL)
        PyErr_NoMemory();
    for (Py_ssize_t i = 0; outputs != NULL && i < n; i++) {
        PyObject *item = PyTuple_GET_ITEM(items, i);
        outputs[i] = py_is_tensor(item) ? py_tensor_of(item) : NULL;
    }
    application->context->noutputs = n;
    if (items == NULL || outputs == NULL || !tell(application, call, outputs, n))
        py_carry();
    if (grd_custom_end(call, outputs, (int)n))
        wrapped = wrap_results(items, items != result, outputs);
    else
        py_raise();
    forget(application->context);
    Py_XDECREF(items);
    if (outputs != inline_outputs)
        PyMem_Free(outputs);
    return wrapped;
}

/* Everything between the context and the result. */
static PyObject *run(struct application *application)
{
    const grd_custom_function function = {.name = ((PyTypeObject *)application->function)->tp_name,
                                          .backward = run_backward,
                                          .inputs = application->ninputs,
                                          .context = application->context,
                                          .release = py_release_context,
                                          .take_over = take_over_node};
    Py_INCREF(application->context);
    grd_custom_call *call = grd_custom_begin(&function, application->inputs);
    if (call == NULL)
        return py_raise();
    application->context->node.node = grd_custom_node(call);
    application->context->forward = true;
    const bool enabled = grd_set_grad_enabled(false);
    PyObject *result = run_forward(application);
    grd_set_grad_enabled(enabled);
    PyObject *wrapped = finish(application, call, result);
    application->context->forward = false;
    Py_XDECREF(result);
    return wrapped;
}

static PyObject *apply_to(PyObject *function, PyObject *const *args, Py_ssize_t nargs)
{
    enum { INLINE = 8 };
    grd_tensor *inline_inputs[INLINE];
    PyObject *class = PyObject_GetAttr(function, str_backward_class), *context = class != NULL ? PyObject_CallNoArgs(class) : NULL;
    PyObject *result = NULL;
    struct application application = {(py_context *)context, function, args, nargs, inline_inputs, 0, false};
    Py_XDECREF(class);
    if (context == NULL)
        return NULL;
    Py_INCREF(function);
    Py_XSETREF(application.context->function, function);
    if (nargs > INLINE && (application.inputs = PyMem_New(grd_tensor *, (size_t)nargs)) == NULL)
        PyErr_NoMemory();
    const grd_scope scope = grd_scope_open();
    if (application.inputs != NULL && read_inputs(&application))
        result = run(&application);
    grd_scope_close(scope);
    if (application.inputs != inline_inputs)
        PyMem_Free(application.inputs);
    Py_DECREF(context);
    return result;
}

/* With keywords, or defaults: they are brought in the order of forward's parameters. */
static PyObject *apply_bound(PyObject *function, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    PyObject *values = PyTuple_New(nargs), *keywords = PyDict_New(), *bound = NULL, *result = NULL;
    bool ok = values != NULL && keywords != NULL;
    for (Py_ssize_t i = 0; ok && i < nargs; i++) {
        Py_INCREF(args[i]);
        PyTuple_SET_ITEM(values, i, args[i]);
    }
    for (Py_ssize_t i = 0; ok && names != NULL && i < PyTuple_GET_SIZE(names); i++)
        ok = PyDict_SetItem(keywords, PyTuple_GET_ITEM(names, i), args[nargs + i]) == 0;
    if (ok)
        bound = PyObject_CallMethod(function, "_bind_arguments", "OO", values, keywords);
    if (bound != NULL)
        result = apply_to(function, &PyTuple_GET_ITEM(bound, 0), PyTuple_GET_SIZE(bound));
    Py_XDECREF(values);
    Py_XDECREF(keywords);
    Py_XDECREF(bound);
    return result;
}

static PyObject *apply(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    (void)module;
    if (nargs == 0 || !PyType_Check(args[0]) || base_function == NULL || !PyType_IsSubtype((PyTypeObject *)args[0], (PyTypeObject *)base_function))
        return PyErr_Format(PyExc_TypeError, "apply() is a class method of an autograd.Function");
    PyObject *binds = PyObject_GetAttr(args[0], str_binds);
    Py_XDECREF(binds);
    if (binds == NULL)
        return NULL;
    if (binds == Py_True || (names != NULL && PyTuple_GET_SIZE(names) > 0))
        return apply_bound(args[0], args + 1, nargs - 1, names);
    return apply_to(args[0], args + 1, nargs - 1);
}

/* ---- Methods and attributes of ctx ------------------------------------------------------------------------------------------------------ */
static PyObject *note(PyObject **slot, PyObject *items)
{
    Py_INCREF(items);
    Py_XSETREF(*slot, items);
    Py_RETURN_NONE;
}

static PyObject *context_save_for_backward(PyObject *self, PyObject *tensors)
{
    return note(&((py_context *)self)->to_save, tensors);
}

static PyObject *context_mark_dirty(PyObject *self, PyObject *tensors)
{
    return note(&((py_context *)self)->dirty, tensors);
}

static PyObject *context_mark_non_differentiable(PyObject *self, PyObject *tensors)
{
    return note(&((py_context *)self)->non_differentiable, tensors);
}

static PyObject *context_set_materialize_grads(PyObject *self, PyObject *value)
{
    const int truth = PyObject_IsTrue(value);
    if (truth < 0)
        return NULL;
    ((py_context *)self)->materialize = truth;
    Py_RETURN_NONE;
}

static PyObject *get_saved_tensors(PyObject *object, void *nothing)
{
    (void)nothing;
    const py_context *self = (const py_context *)object;
    enum { INLINE = 8 };
    grd_tensor *inline_saved[INLINE], **saved = inline_saved;
    grd_custom_call *call = call_of(self);
    if (self->nsaved > 0 && call == NULL)
        return PyErr_Format(PyExc_RuntimeError, "the saved tensors of this context are gone with its graph");
    if (self->nsaved > INLINE && (saved = PyMem_New(grd_tensor *, (size_t)self->nsaved)) == NULL)
        return PyErr_NoMemory();
    const grd_scope scope = grd_scope_open();
    for (int i = 0; i < self->nsaved; i++)
        saved[i] = grd_custom_saved(call, i);
    PyObject *result = py_take_tuple(scope, grd_tensors_from(saved, self->nsaved));
    if (saved != inline_saved)
        PyMem_Free(saved);
    return result;
}

static int context_traverse(PyObject *object, visitproc visit, void *arg)
{
    const py_context *self = (const py_context *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->node.metadata);
    Py_VISIT(self->function);
    Py_VISIT(self->to_save);
    Py_VISIT(self->dirty);
    Py_VISIT(self->non_differentiable);
    return self->owns_node && self->node.node != NULL ? py_traverse_node(self->node.node, visit, arg) : 0;
}

static int context_clear(PyObject *object)
{
    py_context *self = (py_context *)object;
    Py_CLEAR(self->node.metadata);
    forget(self);
    if (self->owns_node && self->node.node != NULL)
        grd_drop_node(self->node.node);
    self->owns_node = false;
    return 0;
}

static void context_dealloc(PyObject *object)
{
    py_context *self = (py_context *)object;
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    if (self->node.weakrefs != NULL)
        PyObject_ClearWeakRefs(object);
    context_clear(object);
    Py_CLEAR(self->function);
    Py_CLEAR(self->needs_input_grad);
    PyMem_Free(self->is_tensor);
    type->tp_free(object);
    Py_DECREF(type);
}

static PyObject *context_new(PyTypeObject *type, PyObject *args, PyObject *names)
{
    (void)args;
    (void)names;
    py_context *self = (py_context *)type->tp_alloc(type, 0);
    if (self != NULL)
        self->materialize = true;
    return (PyObject *)self;
}

static PyMethodDef context_methods[] = {
    {"save_for_backward", context_save_for_backward, METH_VARARGS,
     PyDoc_STR("save_for_backward($self, /, *tensors)\n--\n\nKeeps tensors for backward, where they are ctx.saved_tensors. Some may be None.")},
    {"mark_dirty", context_mark_dirty, METH_VARARGS, PyDoc_STR("mark_dirty($self, /, *args)\n--\n\nSays which inputs forward wrote in place.")},
    {"mark_non_differentiable", context_mark_non_differentiable, METH_VARARGS,
     PyDoc_STR("mark_non_differentiable($self, /, *args)\n--\n\nSays which outputs have no gradient.")},
    {"set_materialize_grads", context_set_materialize_grads, METH_O,
     PyDoc_STR("set_materialize_grads($self, value, /)\n--\n\nWhether backward gets zeros, or None, for outputs that nothing depends on.")},
    {0},
};

static PyGetSetDef context_properties[] = {
    {"saved_tensors", get_saved_tensors, NULL, PyDoc_STR("What forward saved."), NULL},
    {0},
};

static PyMemberDef context_members[] = {
    {"needs_input_grad", T_OBJECT_EX, offsetof(py_context, needs_input_grad), 0, PyDoc_STR("For each argument of forward whether it needs a gradient.")},
    {"to_save", T_OBJECT, offsetof(py_context, to_save), 0, PyDoc_STR("The tensors of save_for_backward, during forward.")},
    {"dirty_tensors", T_OBJECT, offsetof(py_context, dirty), 0, PyDoc_STR("The tensors of mark_dirty, during forward.")},
    {"non_differentiable", T_OBJECT, offsetof(py_context, non_differentiable), 0, PyDoc_STR("The tensors of mark_non_differentiable, during forward.")},
    {"materialize_grads", T_BOOL, offsetof(py_context, materialize), 0, PyDoc_STR("As set by set_materialize_grads.")},
    {0},
};

static PyType_Slot context_slots[] = {
    {Py_tp_doc, (void *)"What a Function's forward and backward share, and the node of its call."},
    {Py_tp_new, context_new},
    {Py_tp_traverse, context_traverse},
    {Py_tp_clear, context_clear},
    {Py_tp_dealloc, context_dealloc},
    {Py_tp_methods, context_methods},
    {Py_tp_getset, context_properties},
    {Py_tp_members, context_members},
    {0, NULL},
};

static PyType_Spec context_spec = {
    .name = "gradus.autograd.function.FunctionCtx",
    .basicsize = sizeof(py_context),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = context_slots,
};

/* ---- The module ---------------------------------------------------------------------------------------------------------------------------- */
/* Tells which class all functions derive from. */
static PyObject *set_function_class(PyObject *module, PyObject *class)
{
    (void)module;
    Py_INCREF(class);
    Py_XSETREF(base_function, class);
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"_apply", (PyCFunction)(void (*)(void))apply, METH_FASTCALL | METH_KEYWORDS, PyDoc_STR("Applies the Function that comes first to the rest.")},
    {"_set_function_class", set_function_class, METH_O, PyDoc_STR("Tells which class all functions derive from.")},
    {0},
};

static bool intern_all(void)
{
    return (str_forward = PyUnicode_InternFromString("forward")) != NULL && (str_backward = PyUnicode_InternFromString("backward")) != NULL &&
           (str_vjp = PyUnicode_InternFromString("vjp")) != NULL && (str_setup_context = PyUnicode_InternFromString("setup_context")) != NULL &&
           (str_backward_class = PyUnicode_InternFromString("_backward_cls")) != NULL &&
           (str_has_setup = PyUnicode_InternFromString("_has_setup_context")) != NULL &&
           (str_binds = PyUnicode_InternFromString("_binds_defaults")) != NULL;
}

bool py_add_function(PyObject *module)
{
    PyObject *bases = PyTuple_Pack(1, py_node_type);
    context_type = bases != NULL && intern_all() ? (PyTypeObject *)PyType_FromSpecWithBases(&context_spec, bases) : NULL;
    Py_XDECREF(bases);
    return context_type != NULL && PyModule_AddFunctions(module, functions) == 0 && PyModule_AddObjectRef(module, "_FunctionCtx", (PyObject *)context_type) == 0;
}
