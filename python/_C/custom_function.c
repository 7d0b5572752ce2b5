/* Implements autograd.Function: apply(), and the callbacks through which the library runs backward and jvp.
 *
 * forward saves and marks tensors by methods of ctx (custom_context.c). After forward has returned, this file passes these tensors and the outputs to
 * the library. */
#include "custom_function.h"
#include "errors.h"
#include "gil.h"
#include "override.h"
#include "tables.h"
#include "vectorcall.h"
#include "gradus/transform.h"
#include "gradus/ops/zeros_like.h"

static PyObject *str_forward, *str_backward, *str_vjp, *str_jvp, *str_apply_batched, *str_setup_context, *str_backward_class,
    *str_has_setup, *str_binds;
static PyObject *base_function; /* the class autograd.Function; its own backward and vjp only raise an exception */

/* ---- Backward ---------------------------------------------------------------------------------------------------- */
/* Returns a new reference to the method `backward` of the user's class, or to `vjp` if the class defines `vjp` instead. */
static PyObject *find_backward(const py_context *self)
{
    PyObject *backward = PyObject_GetAttr(self->function, str_backward),
             *vjp = backward != NULL ? PyObject_GetAttr(self->function, str_vjp) : NULL;
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

/* Checks the tuple `grads` that backward returned and writes the gradients of the tensor arguments to ret_grads. Returns false with an exception. */
static bool take_gradients(const py_context *self, PyObject *grads, grd_tensor **ret_grads)
{
    const char *name = py_class_name((PyObject *)self);
    Py_ssize_t given = PyTuple_GET_SIZE(grads), input = 0;
    while (given > self->narguments && PyTuple_GET_ITEM(grads, given - 1) == Py_None)
        given--;
    if (given != self->narguments) {
        PyErr_Format(PyExc_RuntimeError, "function %s returned an incorrect number of gradients (expected %zd, got %zd)", name,
                     self->narguments, given);
        return false;
    }
    for (Py_ssize_t i = 0; i < given; i++) {
        PyObject *grad = PyTuple_GET_ITEM(grads, i);
        if (!self->is_tensor[i] && grad != Py_None) {
            PyErr_Format(
                PyExc_RuntimeError,
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

/* Returns callable(first, *items) for the n items, or callable(*items) if `first` is NULL. */
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

/* Returns `object` if it is a tuple, otherwise a tuple with `object` as its only item. */
static PyObject *as_tuple(PyObject *object)
{
    if (!PyTuple_Check(object))
        return PyTuple_Pack(1, object);
    Py_INCREF(object);
    return object;
}

/* Calls the user's backward with the gradients of the outputs, and writes the gradients that it returns to ret_grads. The caller holds the GIL.
 * Returns false with an exception. */
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
    const struct py_callback callback = py_begin_callback();
    PyObject *self = grd_custom_context(call);
    Py_INCREF(self);
    if (!run_backward_locked((py_context *)self, grad_outputs, ret_grads))
        py_carry();
    Py_DECREF(self);
    py_end_callback(callback);
}

/* ---- Forward mode ------------------------------------------------------------------------------------------------ */
/* Returns a new tuple of the arguments of jvp: a tangent for each tensor argument of forward and None for each other argument. A missing tangent is
 * zeros, or None after set_materialize_grads(False). */
static PyObject *tangents_of_arguments(const py_context *self, grd_tensor *const *tangents)
{
    PyObject *tuple = PyTuple_New(self->narguments);
    Py_ssize_t input = 0;
    for (Py_ssize_t i = 0; tuple != NULL && i < self->narguments; i++) {
        PyObject *object = Py_None;
        Py_INCREF(object);
        if (self->is_tensor[i]) {
            grd_tensor *tangent = tangents[input];
            if (tangent == NULL && self->materialize)
                tangent = grd_zeros_like(self->inputs[input]);
            input++;
            Py_SETREF(object, py_wrap(tangent));
        }
        if (object == NULL)
            Py_CLEAR(tuple);
        else
            PyTuple_SET_ITEM(tuple, i, object);
    }
    return tuple;
}

static bool take_tangents(const py_context *self, PyObject *tangents, grd_tensor **ret_tangents)
{
    if (PyTuple_GET_SIZE(tangents) != self->noutputs) {
        PyErr_Format(PyExc_RuntimeError, "Function's jvp returned an invalid number of forward gradients (expected %zd but got %zd)",
                     self->noutputs, PyTuple_GET_SIZE(tangents));
        return false;
    }
    for (Py_ssize_t i = 0; i < self->noutputs; i++) {
        PyObject *tangent = PyTuple_GET_ITEM(tangents, i);
        if (tangent != Py_None && !py_is_tensor(tangent)) {
            PyErr_Format(PyExc_RuntimeError, "expected Variable or None (got %s) for grad output %zd.", py_class_name(tangent), i);
            return false;
        }
        ret_tangents[i] = tangent != Py_None ? py_lend(tangent) : NULL;
    }
    return true;
}

static void run_jvp(grd_custom_call *call, grd_tensor *const *tangents, grd_tensor **ret_tangents)
{
    const struct py_callback callback = py_begin_callback();
    py_context *self = grd_custom_context(call);
    PyObject *jvp = PyObject_GetAttr(self->function, str_jvp), *given = NULL, *result = NULL, *tuple = NULL;
    if (jvp != NULL)
        given = tangents_of_arguments(self, tangents);
    if (given != NULL)
        result = call_with_items(jvp, (PyObject *)self, &PyTuple_GET_ITEM(given, 0), self->narguments);
    if (result != NULL)
        tuple = as_tuple(result);
    if (tuple == NULL || !take_tangents(self, tuple, ret_tangents))
        py_carry();
    Py_XDECREF(jvp);
    Py_XDECREF(given);
    Py_XDECREF(result);
    Py_XDECREF(tuple);
    py_end_callback(callback);
}

/* ---- Forward ----------------------------------------------------------------------------------------------------- */
/* State of one call of the method apply() of an autograd.Function. */
struct application {
    py_context *context;
    PyObject *function; /* the user's class; borrowed */
    PyObject *const *args;
    Py_ssize_t nargs;
    grd_tensor **inputs; /* the tensors among the arguments; borrowed */
    int ninputs;
    /* true if an argument needs a gradient and grad mode is on */
    bool recorded;
};

/* Collects the tensor arguments in application->inputs. Sets ctx->is_tensor and ctx->needs_input_grad, which have an item for each argument. */
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

/* Calls forward of the user's class, and then setup_context if the class has one. Returns the result of forward, or NULL with an exception. The
 * caller has switched grad mode off. */
static PyObject *run_forward(const struct application *application)
{
    PyObject *context = (PyObject *)application->context, *has_setup = PyObject_GetAttr(application->function, str_has_setup);
    PyObject *forward = has_setup != NULL ? PyObject_GetAttr(application->function, str_forward) : NULL;
    PyObject *result = NULL;
    if (forward != NULL)
        result = call_with_items(forward, has_setup == Py_True ? NULL : context, application->args, application->nargs);
    if (result != NULL && has_setup == Py_True) {
        PyObject *inputs = py_pack_positional(NULL, application->args, application->nargs);
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

/* ---- Tensors saved and marked on ctx ----------------------------------------------------------------------------- */
static bool is_among(const grd_tensor *t, grd_tensor *const *list, Py_ssize_t n)
{
    for (Py_ssize_t i = 0; i < n; i++)
        if (list[i] == t)
            return true;
    return false;
}

/* True if `noted`, the arguments that forward passed to a method of ctx, is NULL or a tuple of tensors. If `optional` is true, items may also be
 * None. Returns false with TypeError if `noted` is no tuple, and with the exception `error` if an item is not allowed. */
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
            PyErr_SetString(PyExc_RuntimeError,
                            "Some elements marked as dirty during the forward method were not returned as output. The inputs "
                            "that are modified inplace must all be outputs of the Function.");
            return false;
        }
        if (is_among(t, application->inputs, application->ninputs))
            grd_custom_mark_dirty(call, t);
        else if (PyErr_WarnEx(PyExc_UserWarning,
                              "Only input Tensors should be given to ctx.mark_dirty(). If a Tensor is not an input, there is no "
                              "need to pass it to mark_dirty().",
                              1) != 0)
            return false;
    }
    return true;
}

/* Tells the library which tensors forward passed to methods of ctx, e.g. save_for_backward and mark_dirty. Returns false with an exception. */
static bool tell_library(const struct application *application, grd_custom_call *call, grd_tensor *const *outputs, Py_ssize_t noutputs)
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

/* Returns the result of apply(): the only item of `items` if `single` is true, otherwise a tuple of all items. `items` are the results of forward.
 * If outputs[i] is another tensor than item i, the Python object of outputs[i] replaces item i. */
static PyObject *wrap_results(PyObject *items, bool single, grd_tensor *const *outputs)
{
    const Py_ssize_t n = PyTuple_GET_SIZE(items);
    PyObject *results = single ? NULL : PyTuple_New(n);
    for (Py_ssize_t i = 0; (single || results != NULL) && i < n; i++) {
        PyObject *item = PyTuple_GET_ITEM(items, i);
        if (outputs[i] == NULL || outputs[i] == py_tensor_of(item))
            Py_INCREF(item);
        else if (py_has_override(item))
            item = py_wrap_as(Py_TYPE(item), outputs[i]);
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

/* Ends `call`, the library's record of one call of apply(), after forward has run. Passes `result`, the return value of forward, to the library.
 * If forward failed, `result` is NULL, with an exception. Returns the result of apply(). */
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
    if (items == NULL || outputs == NULL || !tell_library(application, call, outputs, n))
        py_carry();
    if (grd_custom_end(call, outputs, (int)n))
        wrapped = wrap_results(items, items != result, outputs);
    else
        py_raise();
    py_context_forget(application->context);
    Py_XDECREF(items);
    if (outputs != inline_outputs)
        PyMem_Free(outputs);
    return wrapped;
}

/* Calls forward between grd_custom_begin and grd_custom_end, so that the library records the call of apply() as one node. Returns the result of
 * apply(). */
static PyObject *run(struct application *application)
{
    const grd_custom_function function = {.name = ((PyTypeObject *)application->function)->tp_name,
                                          .backward = run_backward,
                                          .jvp = run_jvp,
                                          .inputs = application->ninputs,
                                          .context = application->context,
                                          .release = py_release_context,
                                          .take_over = py_take_over_node};
    Py_INCREF(application->context);
    grd_custom_call *call = grd_custom_begin(&function, application->inputs);
    if (call == NULL)
        return py_raise();
    application->context->node.node = grd_custom_node(call);
    application->context->forward = true;
    application->context->inputs = application->inputs;
    const bool enabled = grd_set_grad_enabled(false);
    PyObject *result = run_forward(application);
    grd_set_grad_enabled(enabled);
    PyObject *wrapped = finish(application, call, result);
    application->context->forward = false;
    Py_XDECREF(result);
    return wrapped;
}

/* True if one of the arguments is a batch tensor, i.e. if apply() is called inside vmap. */
static bool any_is_batched(PyObject *const *args, Py_ssize_t nargs)
{
    for (Py_ssize_t i = 0; i < nargs; i++)
        if (py_is_tensor(args[i]) && grd_is_batched(py_tensor_of(args[i])))
            return true;
    return false;
}

/* Implements apply() for positional arguments. Inside vmap, calls the class method _apply_batched instead. */
static PyObject *apply_to(PyObject *function, PyObject *const *args, Py_ssize_t nargs)
{
    if (any_is_batched(args, nargs)) {
        PyObject *batched = PyObject_GetAttr(function, str_apply_batched),
                 *result = batched != NULL ? PyObject_Vectorcall(batched, args, (size_t)nargs, NULL) : NULL;
        Py_XDECREF(batched);
        return result;
    }
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

/* Implements apply() if the call has keyword arguments or if forward has default values. Converts the arguments to positional arguments of
 * forward, then calls apply_to. */
static PyObject *apply_bound(PyObject *function, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    PyObject *values = py_pack_positional(NULL, args, nargs), *keywords = py_pack_keywords(args + nargs, names), *result = NULL;
    PyObject *bound = values != NULL && keywords != NULL ? PyObject_CallMethod(function, "_bind_arguments", "OO", values, keywords) : NULL;
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
    if (nargs == 0 || !PyType_Check(args[0]) || base_function == NULL ||
        !PyType_IsSubtype((PyTypeObject *)args[0], (PyTypeObject *)base_function))
        return PyErr_Format(PyExc_TypeError, "apply() is a class method of an autograd.Function");
    PyObject *binds = PyObject_GetAttr(args[0], str_binds);
    Py_XDECREF(binds);
    if (binds == NULL)
        return NULL;
    if (binds == Py_True || (names != NULL && PyTuple_GET_SIZE(names) > 0))
        return apply_bound(args[0], args + 1, nargs - 1, names);
    return apply_to(args[0], args + 1, nargs - 1);
}

/* ---- The module -------------------------------------------------------------------------------------------------- */
/* _set_function_class(class) in Python: sets base_function, the class autograd.Function. Raises RuntimeError on the second call. */
static PyObject *set_function_class(PyObject *module, PyObject *class)
{
    (void)module;
    if (!PyType_Check(class))
        return PyErr_Format(PyExc_TypeError, "_set_function_class() takes a class, not %s", Py_TYPE(class)->tp_name);
    if (base_function != NULL)
        return PyErr_Format(PyExc_RuntimeError, "the class of functions is already set");
    base_function = Py_NewRef(class);
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    PY_ENTRY("_apply", apply, PyDoc_STR("Applies the Function that comes first to the rest.")),
    {"_set_function_class", set_function_class, METH_O, PyDoc_STR("Tells which class all functions derive from.")},
    {0},
};

static bool intern_all(void)
{
    return (str_forward = PyUnicode_InternFromString("forward")) != NULL &&
           (str_backward = PyUnicode_InternFromString("backward")) != NULL && (str_vjp = PyUnicode_InternFromString("vjp")) != NULL &&
           (str_jvp = PyUnicode_InternFromString("jvp")) != NULL &&
           (str_apply_batched = PyUnicode_InternFromString("_apply_batched")) != NULL &&
           (str_setup_context = PyUnicode_InternFromString("setup_context")) != NULL &&
           (str_backward_class = PyUnicode_InternFromString("_backward_cls")) != NULL &&
           (str_has_setup = PyUnicode_InternFromString("_has_setup_context")) != NULL &&
           (str_binds = PyUnicode_InternFromString("_binds_defaults")) != NULL;
}

bool py_add_custom_function(PyObject *module)
{
    return intern_all() && PyModule_AddFunctions(module, functions) == 0;
}
