/* Implements Tensor.backward, autograd.backward and autograd.grad.
 *
 * The engine runs without the GIL, and the garbage collector must not visit a graph meanwhile. The collector visits the graph of a tensor only if the
 * tensor has a single owner (node.c). Therefore this file owns a second reference to each tensor of a call. */
#include "gil.h"
#include "hooks.h"
#include "override.h"
#include "parse.h"
#include "tables.h"
#include "gradus/ops/zeros_like.h"

/* ---- Arguments --------------------------------------------------------------------------------------------------- */
/* Sets *ret_flag to the truth value of `object`, or to `otherwise` if `object` is NULL or None. Returns false with an exception if the truth value
 * cannot be determined. */
static bool read_flag(PyObject *object, bool otherwise, bool *ret_flag)
{
    const int truth = py_is_given(object) ? PyObject_IsTrue(object) : otherwise;
    *ret_flag = truth > 0;
    return truth >= 0;
}

/* An array of n tensors, each an owned reference. `data` points to `inline_data` if there are at most 4 tensors, otherwise to allocated memory. */
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

/* Appends the tensor of `object`, or NULL for None if `optional` is true. Returns false with TypeError for anything else. `what` begins the error
 * text. */
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

/* Reads one tensor or a sequence of tensors into ret_tensors. If `optional` is true an item may be None, which gives NULL. Returns false with
 * TypeError. The caller must call tensors_done, also on failure. */
static bool read_tensors(PyObject *object, bool optional, const char *what, struct tensors *ret_tensors)
{
    ret_tensors->data = ret_tensors->inline_data;
    ret_tensors->n = 0;
    if (!py_is_given(object))
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

/* Returns the tensors as the library's list type, which borrows the array and the references. */
static inline grd_tensors list_of(const struct tensors *tensors)
{
    return grd_tensors_from(tensors->data, tensors->n);
}

/* ---- backward ---------------------------------------------------------------------------------------------------- */
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

/* Implements Tensor.backward and autograd.backward. An argument that was left out is NULL. Returns None. */
static PyObject *run_backward(PyObject *outputs, PyObject *grads, PyObject *retain, PyObject *create, PyObject *inputs)
{
    struct tensors roots, gradients = {.n = 0}, leaves = {.n = 0};
    grd_backward_options options = {0};
    PyObject *result = NULL;
    const bool restricted = py_is_given(inputs), given = py_is_given(grads);
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

/* Implements loss.backward() without arguments; `self` is the loss. */
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

static const struct py_param method_params[] = {
    {"gradient", PY_KIND_OBJECT, PY_OPTIONAL, "None"},
    {"retain_graph", PY_KIND_OBJECT, PY_OPTIONAL, "None"},
    {"create_graph", PY_KIND_OBJECT, PY_OPTIONAL, "False"},
    {"inputs", PY_KIND_OBJECT, PY_OPTIONAL, "None"},
};
static const struct py_signature method_signature = {.params = method_params, .nparams = 4, .positional = 4};
static const struct py_function method_function = {.name = "backward", .signatures = &method_signature, .nsignatures = 1};

static PyObject *tensor_backward(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    if (PY_UNLIKELY(py_is_overloaded(self)))
        return py_override(self, "backward", args, nargs, names);
    if (PY_LIKELY(nargs == 0 && names == NULL))
        return run_backward_alone(self);
    struct py_arguments arguments;
    if (!py_parse(&method_function, NULL, args, nargs, names, &arguments))
        return NULL;
    PyObject *const *given = arguments.objects;
    PyObject *result = run_backward(self, given[0], given[1], given[2], given[3]);
    py_arguments_done(&arguments);
    return result;
}

static const struct py_param backward_params[] = {
    {"tensors", PY_KIND_OBJECT, 0, NULL},
    {"grad_tensors", PY_KIND_OBJECT, PY_OPTIONAL, "None"},
    {"retain_graph", PY_KIND_OBJECT, PY_OPTIONAL, "None"},
    {"create_graph", PY_KIND_OBJECT, PY_OPTIONAL, "False"},
    {"grad_variables", PY_KIND_OBJECT, PY_OPTIONAL, "None"},
    {"inputs", PY_KIND_OBJECT, PY_OPTIONAL, "None"},
};
static const struct py_signature backward_signature = {.params = backward_params, .nparams = 6, .positional = 6};
static const struct py_function backward_function = {.name = "backward", .signatures = &backward_signature, .nsignatures = 1};

static PyObject *autograd_backward(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    struct py_arguments arguments;
    if (!py_parse(&backward_function, NULL, args, nargs, names, &arguments))
        return NULL;
    PyObject *const *given = arguments.objects;
    PyObject *result = NULL;
    if (py_is_given(given[1]) && py_is_given(given[4]))
        PyErr_SetString(PyExc_RuntimeError, "'grad_tensors' and 'grad_variables' (deprecated) arguments both passed to backward(). "
                                            "Please only use 'grad_tensors'.");
    else
        result = run_backward(given[0], py_is_given(given[4]) ? given[4] : given[1], given[2], given[3], given[5]);
    py_arguments_done(&arguments);
    return result;
}

/* ---- grad -------------------------------------------------------------------------------------------------------- */
/* Replaces each NULL in `grads` by zeros with the sizes and dtype of the input. The gradient of an input is NULL if the outputs do not depend on
 * that input. */
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

/* Reads the boolean arguments of grad() into *ret_options and *ret_zeros (materialize_grads). Returns false with an exception if they are invalid. */
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

/* Implements grad(is_grads_batched=True). Dimension 0 of each tensor in grad_outputs is a batch, and vmap runs grad for every element of that
 * batch. */
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

static const struct py_param grad_params[] = {
    [OUTPUTS] = {"outputs", PY_KIND_OBJECT, 0, NULL},
    [INPUTS] = {"inputs", PY_KIND_OBJECT, 0, NULL},
    [GRAD_OUTPUTS] = {"grad_outputs", PY_KIND_OBJECT, PY_OPTIONAL, "None"},
    [RETAIN_GRAPH] = {"retain_graph", PY_KIND_OBJECT, PY_OPTIONAL, "None"},
    [CREATE_GRAPH] = {"create_graph", PY_KIND_OBJECT, PY_OPTIONAL, "False"},
    [ONLY_INPUTS] = {"only_inputs", PY_KIND_OBJECT, PY_OPTIONAL, "True"},
    [ALLOW_UNUSED] = {"allow_unused", PY_KIND_OBJECT, PY_OPTIONAL, "None"},
    [IS_GRADS_BATCHED] = {"is_grads_batched", PY_KIND_OBJECT, PY_OPTIONAL, "False"},
    [MATERIALIZE_GRADS] = {"materialize_grads", PY_KIND_OBJECT, PY_OPTIONAL, "False"},
};
static const struct py_signature grad_signature = {.params = grad_params, .nparams = GRAD_PARAMS, .positional = GRAD_PARAMS};
static const struct py_function grad_function = {.name = "grad", .signatures = &grad_signature, .nsignatures = 1};

/* True if the class of `given` has a __torch_function__. If `given` is a tuple or list, true if the class of one of its items has one. */
static bool takes_over(PyObject *given)
{
    if (!PyTuple_Check(given) && !PyList_Check(given))
        return py_has_override(given);
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(given); i++)
        if (py_has_override(PySequence_Fast_GET_ITEM(given, i)))
            return true;
    return false;
}

/* Passes a call of grad() to the __torch_function__ of the classes of the arguments `outputs` and `inputs`. `values` are the argument objects in
 * the order of grad_params. Returns the result of __torch_function__. */
static PyObject *hand_over_grad(PyObject *const *values)
{
    PyObject *result = NULL, *package = PyImport_ImportModule("gradus.overrides");
    PyObject *named = package != NULL ? PyDict_New() : NULL;
    for (int i = GRAD_OUTPUTS; named != NULL && i < GRAD_PARAMS; i++)
        if (values[i] != NULL && PyDict_SetItemString(named, grad_params[i].name, values[i]) < 0)
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

/* Reads the tensors among the arguments of grad(), runs the engine and returns a tuple of gradients. If `zeros` is true, a missing gradient is
 * zeros instead of None. */
static PyObject *grad_of(PyObject *outputs, PyObject *inputs, PyObject *grad_outputs, grd_backward_options *options, bool zeros)
{
    struct tensors roots, leaves = {.n = 0}, grads = {.n = 0};
    PyObject *result = NULL;
    leaves.data = leaves.inline_data;
    grads.data = grads.inline_data;
    if (read_tensors(outputs, false, "outputs must be a Tensor or a sequence of Tensors", &roots) &&
        read_tensors(inputs, false, "inputs must be a Tensor or a sequence of Tensors", &leaves) &&
        read_tensors(grad_outputs, true, "gradients can be either Tensors or None", &grads)) {
        if (py_is_given(grad_outputs))
            options->grad_outputs = list_of(&grads);
        result = run_grad(&roots, &leaves, options, zeros);
    }
    tensors_done(&roots);
    tensors_done(&leaves);
    tensors_done(&grads);
    return result;
}

/* Implements autograd.grad for `values`, the argument objects in the order of grad_params. An argument that was left out is NULL. Returns a tuple
 * of gradients. */
static PyObject *parsed_grad(PyObject *const *values)
{
    grd_backward_options options = {0};
    bool zeros, batched;
    if (!read_grad_options(values, &options, &zeros) || !read_flag(values[IS_GRADS_BATCHED], false, &batched))
        return NULL;
    if (takes_over(values[OUTPUTS]) || takes_over(values[INPUTS]))
        return hand_over_grad(values);
    if (batched)
        return grad_of_batch(values, &options, zeros);
    return grad_of(values[OUTPUTS], values[INPUTS], values[GRAD_OUTPUTS], &options, zeros);
}

static PyObject *autograd_grad(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    struct py_arguments arguments;
    if (!py_parse(&grad_function, NULL, args, nargs, names, &arguments))
        return NULL;
    PyObject *result = parsed_grad(arguments.objects);
    py_arguments_done(&arguments);
    return result;
}

/* Implements _grad_unhooked(outputs, inputs, grad_outputs): returns the gradients as grad(..., allow_unused=True) does, but without running the
 * hooks of the inputs. */
static PyObject *grad_unhooked(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs)
{
    grd_backward_options options = {.allow_unused = true, .unhooked_inputs = true};
    if (nargs != 3)
        return PyErr_Format(PyExc_TypeError, "_grad_unhooked() takes 3 arguments (%zd given)", nargs);
    return grad_of(args[0], args[1], args[2], &options, false);
}

/* ---- The module -------------------------------------------------------------------------------------------------- */

PyMethodDef py_tensor_autograd_methods[] = {
    PY_ENTRY("backward", tensor_backward,
             PyDoc_STR("backward($self, /, gradient=None, retain_graph=None, create_graph=False, inputs=None)\n--\n\n"
                       "Computes the gradient of the tensor with respect to the leaves of its graph, and adds it to their .grad.")),
    PY_ENTRY("register_hook", py_tensor_register_hook,
             PyDoc_STR("register_hook($self, /, hook)\n--\n\n"
                       "Calls hook(grad) when the gradient of the tensor is computed; a tensor it returns replaces it. Returns a handle "
                       "with remove().")),
    PY_ENTRY("register_post_accumulate_grad_hook", py_tensor_register_accumulated,
             PyDoc_STR("register_post_accumulate_grad_hook($self, /, hook)\n--\n\n"
                       "Calls hook(tensor) after a gradient was added to the .grad of this leaf. Returns a handle with remove().")),
    {"retain_grad", py_tensor_retain_grad, METH_NOARGS,
     PyDoc_STR("retain_grad($self, /)\n--\n\nGives the tensor a .grad in backward(), although it is no leaf. Of no effect for leaves.")},
    {0},
};

static PyMethodDef functions[] = {
    {"_grad_unhooked", (PyCFunction)(void (*)(void))grad_unhooked, METH_FASTCALL,
     PyDoc_STR("grad() that allows unused inputs and does not call the hooks on them.")},
    {0},
};

/* Functions of gradus.autograd. They have a table of their own, because the generated table of gradus._C has operators with the same names. */
static PyMethodDef public_functions[] = {
    PY_ENTRY(
        "backward", autograd_backward,
        PyDoc_STR(
            "backward(tensors, grad_tensors=None, retain_graph=None, create_graph=False, grad_variables=None, "
            "inputs=None)\n--\n\n"
            "Computes the sum of the gradients of the tensors with respect to the leaves of their graph, and adds it to their .grad.")),
    PY_ENTRY("grad", autograd_grad,
             PyDoc_STR("grad(outputs, inputs, grad_outputs=None, retain_graph=None, create_graph=False, only_inputs=True, "
                       "allow_unused=None, is_grads_batched=False, materialize_grads=False)\n--\n\n"
                       "Computes and returns the sum of the gradients of the outputs with respect to the inputs.")),
    {0},
};

/* Adds the functions of gradus.autograd to gradus._C under the names _autograd_NAME. */
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
    return PyModule_AddFunctions(module, functions) == 0 && add_public_functions(module);
}
