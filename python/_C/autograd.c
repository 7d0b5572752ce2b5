/* backward() and grad(), and what the garbage collector sees of a graph.
 *
 * While the engine runs the interpreter is free for other threads. The tensors of a call are kept meanwhile: so the collector, which looks only at
 * graphs whose tensor has no other owner, does not look at one that is being run. */
#include "graph.h"
#include "gradus/ops/zeros_like.h"

/* ---- Arguments ------------------------------------------------------------------------------------------------------------ */
static int find_param(const char *const *params, int nparams, PyObject *name)
{
    for (int i = 0; i < nparams; i++)
        if (PyUnicode_CompareWithASCIIString(name, params[i]) == 0)
            return i;
    return -1;
}

bool py_bind(const char *name, const char *const *params, int nparams, int required, PyObject *const *args, Py_ssize_t nargs,
             PyObject *names, PyObject **ret_values)
{
    if (nargs > nparams) {
        PyErr_Format(PyExc_TypeError, "%s() takes at most %d arguments (%zd given)", name, nparams, nargs);
        return false;
    }
    for (int i = 0; i < nparams; i++)
        ret_values[i] = i < nargs ? args[i] : NULL;
    for (Py_ssize_t i = 0; names != NULL && i < PyTuple_GET_SIZE(names); i++) {
        PyObject *keyword = PyTuple_GET_ITEM(names, i);
        const int at = find_param(params, nparams, keyword);
        if (at < 0 || ret_values[at] != NULL) {
            PyErr_Format(PyExc_TypeError,
                         at < 0 ? "%s() got an unexpected keyword argument '%U'" : "%s() got multiple values for argument '%U'", name,
                         keyword);
            return false;
        }
        ret_values[at] = args[nargs + i];
    }
    for (int i = 0; i < required; i++)
        if (ret_values[i] == NULL) {
            PyErr_Format(PyExc_TypeError, "%s() missing required argument: '%s'", name, params[i]);
            return false;
        }
    return true;
}

/* A flag; left out or None it is `otherwise`. False with an exception. */
static bool read_flag(PyObject *object, bool otherwise, bool *ret_flag)
{
    const int truth = object == NULL || object == Py_None ? otherwise : PyObject_IsTrue(object);
    *ret_flag = truth > 0;
    return truth >= 0;
}

/* Tensors of a call, kept. */
struct tensors {
    grd_tensor **data;
    Py_ssize_t n;
    grd_tensor *inline_data[4];
};

static void tensors_done(struct tensors *tensors)
{
    for (Py_ssize_t i = 0; i < tensors->n; i++)
        grd_drop(tensors->data[i]);
    if (tensors->data != tensors->inline_data)
        PyMem_Free(tensors->data);
}

static bool add_tensor(struct tensors *tensors, PyObject *object, bool optional, const char *what)
{
    if (optional && object == Py_None) {
        tensors->data[tensors->n++] = NULL;
        return true;
    }
    if (!py_is_tensor(object)) {
        PyErr_Format(PyExc_TypeError, "%s, but got %s", what, py_class_name(object));
        return false;
    }
    tensors->data[tensors->n++] = grd_keep(py_tensor_of(object));
    return true;
}

/* One tensor or a sequence of them; `optional`: some may be None. To be given up with tensors_done, on failure (false) too. */
static bool read_tensors(PyObject *object, bool optional, const char *what, struct tensors *ret_tensors)
{
    ret_tensors->data = ret_tensors->inline_data;
    ret_tensors->n = 0;
    if (object == NULL || object == Py_None)
        return true;
    if (py_is_tensor(object))
        return add_tensor(ret_tensors, object, optional, what);
    PyObject *items = PySequence_Tuple(object);
    if (items == NULL) {
        if (PyErr_ExceptionMatches(PyExc_TypeError))
            PyErr_Format(PyExc_TypeError, "%s, but got %s", what, py_class_name(object));
        return false;
    }
    const Py_ssize_t n = PyTuple_GET_SIZE(items);
    bool ok = true;
    if (n > (Py_ssize_t)(sizeof ret_tensors->inline_data / sizeof *ret_tensors->inline_data)) {
        ret_tensors->data = PyMem_New(grd_tensor *, (size_t)n);
        ok = ret_tensors->data != NULL || PyErr_NoMemory() != NULL;
    }
    for (Py_ssize_t i = 0; ok && i < n; i++)
        ok = add_tensor(ret_tensors, PyTuple_GET_ITEM(items, i), optional, what);
    Py_DECREF(items);
    return ok;
}

static inline grd_tensors list_of(const struct tensors *tensors)
{
    return grd_tensors_from(tensors->data, tensors->n);
}

/* ---- backward ---------------------------------------------------------------------------------------------------------------- */
static bool warn_of_cycle(void)
{
    static bool warned;
    if (warned)
        return true;
    warned = true;
    return PyErr_WarnEx(
               PyExc_UserWarning,
               "Using backward() with create_graph=True makes a reference cycle between a parameter and its gradient, which can keep "
               "memory. Prefer autograd.grad when creating the graph. If you have to use this function, set the .grad of your "
               "parameters to None after use to break the cycle.",
               1) == 0;
}

/* The whole of a call. Absent objects are NULL. */
static PyObject *run_backward(PyObject *outputs, PyObject *grads, PyObject *retain, PyObject *create, PyObject *inputs)
{
    struct tensors roots, gradients = {.n = 0}, leaves = {.n = 0};
    grd_backward_options options = {0};
    PyObject *result = NULL;
    const bool restricted = inputs != NULL && inputs != Py_None, given = grads != NULL && grads != Py_None;
    gradients.data = gradients.inline_data;
    leaves.data = leaves.inline_data;
    if (read_tensors(outputs, false, "tensors must be a Tensor or a sequence of Tensors", &roots) &&
        read_tensors(grads, true, "gradients can be either Tensors or None", &gradients) &&
        read_tensors(inputs, false, "inputs must be a Tensor or a sequence of Tensors", &leaves) &&
        read_flag(create, false, &options.create_graph) && read_flag(retain, options.create_graph, &options.retain_graph) &&
        (!options.create_graph || warn_of_cycle())) {
        if (given)
            options.grad_outputs = list_of(&gradients);
        if (restricted)
            options.inputs = list_of(&leaves);
        const grd_scope scope = grd_scope_open();
        PyThreadState *state = py_begin_work();
        grd_backward_all(list_of(&roots), &options);
        py_end_work(state);
        result = py_leave(scope);
    }
    tensors_done(&roots);
    tensors_done(&gradients);
    tensors_done(&leaves);
    return result;
}

/* loss.backward() */
static PyObject *run_backward_alone(PyObject *self)
{
    grd_tensor *loss = grd_keep(py_tensor_of(self));
    const grd_scope scope = grd_scope_open();
    PyThreadState *state = py_begin_work();
    grd_backward(loss);
    py_end_work(state);
    PyObject *result = py_leave(scope);
    grd_drop(loss);
    return result;
}

static PyObject *tensor_backward(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    if (PY_UNLIKELY(py_is_overloaded(self)))
        return py_override(self, "backward", args, nargs, names);
    static const char *const params[] = {"gradient", "retain_graph", "create_graph", "inputs"};
    PyObject *values[4];
    if (PY_LIKELY(nargs == 0 && names == NULL))
        return run_backward_alone(self);
    if (!py_bind("backward", params, 4, 0, args, nargs, names, values))
        return NULL;
    return run_backward(self, values[0], values[1], values[2], values[3]);
}

static PyObject *autograd_backward(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    (void)module;
    static const char *const params[] = {"tensors", "grad_tensors", "retain_graph", "create_graph", "grad_variables", "inputs"};
    PyObject *values[6];
    if (!py_bind("backward", params, 6, 1, args, nargs, names, values))
        return NULL;
    if (values[4] != NULL && values[4] != Py_None) {
        if (values[1] != NULL && values[1] != Py_None)
            return PyErr_Format(PyExc_RuntimeError, "'grad_tensors' and 'grad_variables' (deprecated) arguments both passed to backward(). "
                                                    "Please only use 'grad_tensors'.");
        values[1] = values[4];
    }
    return run_backward(values[0], values[1], values[2], values[3], values[5]);
}

/* ---- grad ------------------------------------------------------------------------------------------------------------------------ */
/* Zeros for inputs that were not used. */
static void materialize(const struct tensors *inputs, grd_tensor **grads, bool requires_grad)
{
    for (Py_ssize_t i = 0; i < inputs->n; i++)
        if (grads[i] == NULL) {
            grads[i] = grd_zeros_like(inputs->data[i]);
            if (requires_grad)
                grd_set_requires_grad(grads[i], true);
        }
}

static PyObject *run_grad(const struct tensors *outputs, const struct tensors *inputs, const grd_backward_options *options, bool zeros)
{
    grd_tensor *inline_grads[4], **grads = inline_grads;
    if (inputs->n == 0)
        return PyErr_Format(PyExc_RuntimeError, "`inputs` argument to `grad()` cannot be empty.");
    if (inputs->n > 4 && (grads = PyMem_New(grd_tensor *, (size_t)inputs->n)) == NULL)
        return PyErr_NoMemory();
    const grd_scope scope = grd_scope_open();
    PyThreadState *state = py_begin_work();
    if (grd_grad(list_of(outputs), list_of(inputs), options, grads) && zeros)
        materialize(inputs, grads, options->create_graph);
    py_end_work(state);
    PyObject *result = py_take_tuple(scope, grd_tensors_from(grads, inputs->n));
    if (grads != inline_grads)
        PyMem_Free(grads);
    return result;
}

enum {
    OUTPUTS,
    INPUTS,
    GRAD_OUTPUTS,
    RETAIN_GRAPH,
    CREATE_GRAPH,
    ONLY_INPUTS,
    ALLOW_UNUSED,
    IS_GRADS_BATCHED,
    MATERIALIZE_GRADS,
    GRAD_PARAMS
};

/* The flags of grad. False with an exception. */
static bool read_grad_options(PyObject *const *values, grd_backward_options *ret_options, bool *ret_zeros)
{
    bool only_inputs;
    if (!read_flag(values[CREATE_GRAPH], false, &ret_options->create_graph) ||
        !read_flag(values[RETAIN_GRAPH], ret_options->create_graph, &ret_options->retain_graph) ||
        !read_flag(values[MATERIALIZE_GRADS], false, ret_zeros) ||
        !read_flag(values[ALLOW_UNUSED], *ret_zeros, &ret_options->allow_unused) || !read_flag(values[ONLY_INPUTS], true, &only_inputs))
        return false;
    if (*ret_zeros && !ret_options->allow_unused) {
        PyErr_SetString(PyExc_ValueError, "Expected allow_unused to be True or not passed when materialize_grads=True, but got: "
                                          "allow_unused=False.");
        return false;
    }
    return only_inputs ||
           PyErr_WarnEx(PyExc_FutureWarning,
                        "only_inputs argument is deprecated and is ignored now (defaults to True). To accumulate gradient for "
                        "other parts of the graph, please use torch.autograd.backward.",
                        1) == 0;
}

/* With gradients of the outputs for all elements of a batch, by vmap. */
static PyObject *grad_of_batch(PyObject *const *values, const grd_backward_options *options, bool zeros)
{
    PyObject *batching = PyImport_ImportModule("gradus.func.batching"), *grads = values[GRAD_OUTPUTS];
    PyObject *result = batching == NULL ? NULL
                                        : PyObject_CallMethod(batching, "grad_of_batch", "OOONNN", values[OUTPUTS], values[INPUTS],
                                                              grads != NULL ? grads : Py_None, PyBool_FromLong(options->create_graph),
                                                              PyBool_FromLong(options->allow_unused), PyBool_FromLong(zeros));
    Py_XDECREF(batching);
    return result;
}

static const char *const grad_params[] = {"outputs",     "inputs",       "grad_outputs",     "retain_graph",     "create_graph",
                                          "only_inputs", "allow_unused", "is_grads_batched", "materialize_grads"};

/* True if a tensor, or one of a sequence, has a class that takes over calls. */
static bool takes_over(PyObject *given)
{
    if (!PyTuple_Check(given) && !PyList_Check(given))
        return py_has_override(given);
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(given); i++)
        if (py_has_override(PySequence_Fast_GET_ITEM(given, i)))
            return true;
    return false;
}

/* Calls __torch_function__ of the classes of outputs and inputs for grad. */
static PyObject *hand_over_grad(PyObject *const *values)
{
    PyObject *result = NULL, *package = PyImport_ImportModule("gradus.overrides");
    PyObject *named = package != NULL ? PyDict_New() : NULL;
    for (int i = GRAD_OUTPUTS; named != NULL && i < GRAD_PARAMS; i++)
        if (values[i] != NULL && PyDict_SetItemString(named, grad_params[i], values[i]) < 0)
            Py_CLEAR(named);
    PyObject *function = named != NULL ? PyObject_GetAttrString(package, "_grad_of_overloaded") : NULL;
    PyObject *args = function != NULL ? PyTuple_Pack(2, values[OUTPUTS], values[INPUTS]) : NULL;
    if (args != NULL)
        result = PyObject_Call(function, args, named);
    Py_XDECREF(args);
    Py_XDECREF(function);
    Py_XDECREF(named);
    Py_XDECREF(package);
    return result;
}

static PyObject *autograd_grad(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    (void)module;
    PyObject *values[GRAD_PARAMS], *result = NULL;
    struct tensors outputs, inputs = {.n = 0}, grads = {.n = 0};
    grd_backward_options options = {0};
    bool zeros, batched;
    inputs.data = inputs.inline_data;
    grads.data = grads.inline_data;
    if (!py_bind("grad", grad_params, GRAD_PARAMS, 2, args, nargs, names, values) || !read_grad_options(values, &options, &zeros) ||
        !read_flag(values[IS_GRADS_BATCHED], false, &batched))
        return NULL;
    if (takes_over(values[OUTPUTS]) || takes_over(values[INPUTS]))
        return hand_over_grad(values);
    if (batched)
        return grad_of_batch(values, &options, zeros);
    if (read_tensors(values[OUTPUTS], false, "outputs must be a Tensor or a sequence of Tensors", &outputs) &&
        read_tensors(values[INPUTS], false, "inputs must be a Tensor or a sequence of Tensors", &inputs) &&
        read_tensors(values[GRAD_OUTPUTS], true, "gradients can be either Tensors or None", &grads)) {
        if (values[GRAD_OUTPUTS] != NULL && values[GRAD_OUTPUTS] != Py_None)
            options.grad_outputs = list_of(&grads);
        result = run_grad(&outputs, &inputs, &options, zeros);
    }
    tensors_done(&outputs);
    tensors_done(&inputs);
    tensors_done(&grads);
    return result;
}

/* grad(outputs, inputs, grad_outputs, allow_unused=True), but without the hooks on the inputs. */
static PyObject *grad_unhooked(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    (void)module;
    struct tensors outputs, inputs = {.n = 0}, grads = {.n = 0};
    grd_backward_options options = {.allow_unused = true, .unhooked_inputs = true};
    PyObject *result = NULL;
    if (nargs != 3)
        return PyErr_Format(PyExc_TypeError, "_grad_unhooked() takes 3 arguments (%zd given)", nargs);
    inputs.data = inputs.inline_data;
    grads.data = grads.inline_data;
    if (read_tensors(args[0], false, "outputs must be a Tensor or a sequence of Tensors", &outputs) &&
        read_tensors(args[1], false, "inputs must be a Tensor or a sequence of Tensors", &inputs) &&
        read_tensors(args[2], true, "gradients can be either Tensors or None", &grads)) {
        options.grad_outputs = list_of(&grads);
        result = run_grad(&outputs, &inputs, &options, false);
    }
    tensors_done(&outputs);
    tensors_done(&inputs);
    tensors_done(&grads);
    return result;
}

/* ---- For the garbage collector -------------------------------------------------------------------------------------------------------- */
struct visitor {
    visitproc visit;
    void *arg;
};

static int visit_context(void *context, void (*release)(void *context), void *arg)
{
    const struct visitor *visitor = arg;
    return release == py_release_hook || release == py_release_context ? visitor->visit(context, visitor->arg) : 0;
}

int py_traverse_graph(grd_tensor *t, visitproc visit, void *arg)
{
    return grd_visit_contexts(t, visit_context, &(struct visitor){visit, arg});
}

int py_traverse_node(grd_node *node, visitproc visit, void *arg)
{
    return grd_node_visit_contexts(node, visit_context, &(struct visitor){visit, arg});
}

/* ---- The module -------------------------------------------------------------------------------------------------------------------------- */
PyObject *py_tuple_of(grd_tensor *const *tensors, Py_ssize_t n)
{
    PyObject *tuple = PyTuple_New(n);
    for (Py_ssize_t i = 0; tuple != NULL && i < n; i++) {
        PyObject *object = py_wrap(tensors[i]);
        if (object == NULL)
            Py_CLEAR(tuple);
        else
            PyTuple_SET_ITEM(tuple, i, object);
    }
    return tuple;
}

PyMethodDef py_tensor_autograd_methods[] = {
    {"backward", (PyCFunction)(void (*)(void))tensor_backward, METH_FASTCALL | METH_KEYWORDS,
     PyDoc_STR("backward($self, /, gradient=None, retain_graph=None, create_graph=False, inputs=None)\n--\n\n"
               "Computes the gradient of the tensor with respect to the leaves of its graph, and adds it to their .grad.")},
    {"register_hook", (PyCFunction)(void (*)(void))py_tensor_register_hook, METH_FASTCALL | METH_KEYWORDS,
     PyDoc_STR(
         "register_hook($self, /, hook)\n--\n\n"
         "Calls hook(grad) when the gradient of the tensor is computed; a tensor it returns replaces it. Returns a handle with remove().")},
    {"register_post_accumulate_grad_hook", (PyCFunction)(void (*)(void))py_tensor_register_accumulated, METH_FASTCALL | METH_KEYWORDS,
     PyDoc_STR("register_post_accumulate_grad_hook($self, /, hook)\n--\n\n"
               "Calls hook(tensor) after a gradient was added to the .grad of this leaf. Returns a handle with remove().")},
    {"retain_grad", py_tensor_retain_grad, METH_NOARGS,
     PyDoc_STR("retain_grad($self, /)\n--\n\nGives the tensor a .grad in backward(), although it is no leaf. Of no effect for leaves.")},
    {0},
};

static PyMethodDef functions[] = {
    {"_grad_unhooked", (PyCFunction)(void (*)(void))grad_unhooked, METH_FASTCALL,
     PyDoc_STR("grad() that allows unused inputs and does not call the hooks on them.")},
    {0},
};

/* Functions of gradus.autograd, whose names there are others' here. */
static PyMethodDef public_functions[] = {
    {"backward", (PyCFunction)(void (*)(void))autograd_backward, METH_FASTCALL | METH_KEYWORDS,
     PyDoc_STR("backward(tensors, grad_tensors=None, retain_graph=None, create_graph=False, grad_variables=None, "
               "inputs=None)\n--\n\n"
               "Computes the sum of the gradients of the tensors with respect to the leaves of their graph, and adds it to their .grad.")},
    {"grad", (PyCFunction)(void (*)(void))autograd_grad, METH_FASTCALL | METH_KEYWORDS,
     PyDoc_STR("grad(outputs, inputs, grad_outputs=None, retain_graph=None, create_graph=False, only_inputs=True, "
               "allow_unused=None, is_grads_batched=False, materialize_grads=False)\n--\n\n"
               "Computes and returns the sum of the gradients of the outputs with respect to the inputs.")},
    {0},
};

/* Adds the functions of gradus.autograd as _autograd_NAME. False with an exception. */
static bool add_public_functions(PyObject *module)
{
    PyObject *home = PyUnicode_FromString("gradus.autograd");
    bool ok = home != NULL;
    for (PyMethodDef *one = public_functions; ok && one->ml_name != NULL; one++) {
        char name[32];
        snprintf(name, sizeof name, "_autograd_%s", one->ml_name);
        PyObject *function = PyCFunction_NewEx(one, NULL, home);
        ok = function != NULL && PyModule_AddObjectRef(module, name, function) == 0;
        Py_XDECREF(function);
    }
    Py_XDECREF(home);
    return ok;
}

bool py_add_autograd(PyObject *module)
{
    return PyModule_AddFunctions(module, functions) == 0 && add_public_functions(module) && py_add_node(module) && py_add_hooks(module) &&
           py_add_function(module) && py_add_modes(module) && py_add_autocast(module);
}
