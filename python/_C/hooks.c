/* Implements hooks written in Python, for tensors, for leaves (register_post_accumulate_grad_hook) and for graph nodes.
 *
 * The library gets one of the C functions below as the hook and the Python callable as its context. The C functions check only the type of the
 * object that the callable returns. The library checks that a replacement has the right sizes, dtype and device. */
#include "hooks.h"
#include "errors.h"
#include "gil.h"
#include "override.h"
#include "parse.h"
#include "tables.h"

/* Returns a new gradus.autograd.graph.GraphHandle, whose remove() removes the hook that the library has registered as `number`. Raises the pending
 * error if `number` is 0. */
static PyObject *handle_of(uint64_t number)
{
    static PyObject *type;
    if (number == 0)
        return py_raise();
    if (type == NULL) {
        PyObject *module = PyImport_ImportModule("gradus.autograd.graph");
        type = module != NULL ? PyObject_GetAttrString(module, "GraphHandle") : NULL;
        Py_XDECREF(module);
    }
    PyObject *handle = type != NULL ? PyObject_CallFunction(type, "K", (unsigned long long)number) : NULL;
    if (handle == NULL)
        grd_hook_remove(number);
    return handle;
}

/* Returns the callable argument of a method that registers a hook, as a new reference that the library will own. Returns NULL with TypeError if the
 * argument is not callable. */
static PyObject *read_hook(const char *name, const char *param, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    const struct py_param params[] = {{param, PY_KIND_OBJECT, 0, NULL}};
    const struct py_signature signature = {.params = params, .nparams = 1, .positional = 1};
    const struct py_function function = {.name = name, .signatures = &signature, .nsignatures = 1};
    struct py_arguments arguments;
    if (!py_parse(&function, NULL, args, nargs, names, &arguments))
        return NULL;
    PyObject *hook = arguments.objects[0];
    py_arguments_done(&arguments);
    if (!PyCallable_Check(hook))
        return PyErr_Format(PyExc_TypeError, "%s(): argument '%s' must be callable, not %s", name, param, py_class_name(hook));
    return Py_NewRef(hook);
}

/* Returns a handle whose remove() removes the hook that the library has registered as `number`. If `number` is 0, the library has refused the
 * hook: drops the reference to `hook`, raises the pending error and returns NULL. */
static PyObject *registered(uint64_t number, PyObject *hook)
{
    if (number == 0)
        Py_DECREF(hook);
    return handle_of(number);
}

/* True if `object`, which a hook returned, is a tensor. Otherwise returns false with TypeError. */
static bool check_tensor(PyObject *object)
{
    const bool ok = py_is_tensor(object);
    if (!ok)
        PyErr_Format(PyExc_TypeError, "expected Variable, but hook returned '%s'", py_class_name(object));
    return ok;
}

/* ---- Hooks of tensors -------------------------------------------------------------------------------------------- */
/* Calls hook(tensor) with the Python object of `t`. Returns a new reference to the result. */
static PyObject *call_with(PyObject *hook, grd_tensor *t)
{
    PyObject *object = py_wrap(t);
    PyObject *result = object != NULL ? PyObject_CallOneArg(hook, object) : NULL;
    Py_XDECREF(object);
    return result;
}

/* The hook function of tensors, which the library calls with the gradient `grad`. Calls the Python callable `context` with `grad`. Returns the
 * tensor that the callable returns, or `grad` if it returns None. */
static grd_tensor *run_tensor_hook(grd_tensor *grad, void *context)
{
    const struct py_callback callback = py_begin_callback();
    grd_tensor *replacement = grad;
    PyObject *result = call_with(context, grad);
    if (result != NULL && result != Py_None && check_tensor(result))
        replacement = py_lend(result);
    Py_XDECREF(result);
    if (PyErr_Occurred())
        py_carry();
    py_end_callback(callback);
    return replacement;
}

PyObject *py_tensor_register_hook(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    if (PY_UNLIKELY(py_is_overloaded(self)))
        return py_override(self, "register_hook", args, nargs, names);
    PyObject *hook = read_hook("register_hook", "hook", args, nargs, names);
    return hook != NULL ? registered(grd_hook_tensor(py_tensor_of(self), run_tensor_hook, hook, py_release_object), hook) : NULL;
}

static void run_accumulated_hook(grd_tensor *leaf, void *context)
{
    const struct py_callback callback = py_begin_callback();
    PyObject *result = call_with(context, leaf);
    if (result != NULL && result != Py_None)
        check_tensor(result); /* a returned tensor is ignored; anything else but None is an error */
    Py_XDECREF(result);
    if (PyErr_Occurred())
        py_carry();
    py_end_callback(callback);
}

PyObject *py_tensor_register_accumulated(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    if (PY_UNLIKELY(py_is_overloaded(self)))
        return py_override(self, "register_post_accumulate_grad_hook", args, nargs, names);
    PyObject *hook = read_hook("register_post_accumulate_grad_hook", "hook", args, nargs, names);
    return hook != NULL ? registered(grd_hook_accumulated(py_tensor_of(self), run_accumulated_hook, hook, py_release_object), hook) : NULL;
}

PyObject *py_tensor_retain_grad(PyObject *self, PyObject *nothing)
{
    if (PY_UNLIKELY(py_is_overloaded(self)))
        return py_override(self, "retain_grad", NULL, 0, NULL);
    (void)nothing;
    grd_retain_grad(py_tensor_of(self));
    if (!grd_ok())
        return py_raise();
    Py_RETURN_NONE;
}

/* ---- Hooks of nodes ---------------------------------------------------------------------------------------------- */
/* Raises RuntimeError "hook 'f' has returned an incorrect number of values (got 1, but expected 2)". */
static void refuse_count(PyObject *hook, Py_ssize_t got, Py_ssize_t expected)
{
    PyObject *name = PyObject_GetAttrString(hook, "__name__");
    if (name == NULL) {
        PyErr_Clear();
        name = PyObject_Repr(hook);
    }
    if (name != NULL)
        PyErr_Format(PyExc_RuntimeError, "hook '%S' has returned an incorrect number of values (got %zd, but expected %zd)", name, got,
                     expected);
    Py_XDECREF(name);
}

/* Checks that `result`, which `hook` returned, is a tuple of n items, each a tensor or None, and writes the items to `grads`. Returns false with an
 * exception. */
static bool take_gradients(PyObject *hook, PyObject *result, grd_tensor **grads, Py_ssize_t n)
{
    if (!PyTuple_Check(result)) {
        PyErr_Format(PyExc_TypeError, "expected tuple, but hook returned '%s'", py_class_name(result));
        return false;
    }
    if (PyTuple_GET_SIZE(result) != n) {
        refuse_count(hook, PyTuple_GET_SIZE(result), n);
        return false;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *item = PyTuple_GET_ITEM(result, i);
        if (item != Py_None && !check_tensor(item))
            return false;
        if (item != Py_None && grads[i] == NULL) {
            PyErr_SetString(PyExc_RuntimeError, "can't replace a None gradient with a non-None value");
            return false;
        }
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *item = PyTuple_GET_ITEM(result, i);
        grads[i] = item != Py_None ? py_lend(item) : NULL;
    }
    return true;
}

/* The hook function of graph nodes, which the library calls before a node runs or after it has run. Calls the Python callable `context` with the n
 * gradients in `grads`. After the node, also passes `grad_outputs`; before the node, grad_outputs.data is NULL. If the callable returns gradients,
 * writes them to `grads`. */
static void run_node_hook(grd_node *node, grd_tensors grad_outputs, grd_tensor **grads, int n, void *context)
{
    (void)node;
    const struct py_callback callback = py_begin_callback();
    const bool after = grad_outputs.data != NULL;
    PyObject *own = py_tuple_of(grads, n), *outputs = after && own != NULL ? py_tuple_of(grad_outputs.data, grad_outputs.n) : NULL;
    PyObject *result = own != NULL && (!after || outputs != NULL) ? PyObject_CallFunctionObjArgs(context, own, outputs, NULL) : NULL;
    Py_XDECREF(own);
    Py_XDECREF(outputs);
    const bool ok = result != NULL && (result == Py_None || take_gradients(context, result, grads, n));
    Py_XDECREF(result);
    if (!ok)
        py_carry();
    py_end_callback(callback);
}

PyObject *py_hook_node(grd_node *node, bool pre, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    PyObject *hook = read_hook(pre ? "register_prehook" : "register_hook", "fn", args, nargs, names);
    if (hook == NULL)
        return NULL;
    if (node != NULL)
        return registered(grd_hook_node(node, pre, run_node_hook, hook, py_release_object), hook);
    Py_DECREF(hook);
    return PyErr_Format(PyExc_RuntimeError, "cannot register a hook: the graph of this context has been freed");
}

/* ---- The module -------------------------------------------------------------------------------------------------- */
static PyObject *remove_hook(PyObject *module, PyObject *number)
{
    (void)module;
    const unsigned long long handle = PyLong_AsUnsignedLongLong(number);
    if (PyErr_Occurred())
        return NULL;
    grd_hook_remove(handle);
    Py_RETURN_NONE;
}

PyMethodDef py_hook_functions[] = {
    {"_remove_hook", remove_hook, METH_O, PyDoc_STR("Removes the hook of that number, if there still is one.")},
    {0},
};
