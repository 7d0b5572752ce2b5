/* What a generated function does: a short cut for plain tensors, otherwise arguments are parsed, the operator is called with generic values, and
 * its results become objects. */
#include "extension.h"

#include <structseq.h>

/* ---- With the interpreter going on ---------------------------------------------------------------------------------------- */

grd_tensor *py_call_unary(grd_tensor *(*call)(grd_tensor *), grd_tensor *x)
{
    if (PY_LIKELY(grd_numel(x) < PY_MUCH))
        return call(x);
    grd_keep(x); /* other threads may let go of the object meanwhile */
    PyThreadState *state = PyEval_SaveThread();
    grd_tensor *result = call(x);
    PyEval_RestoreThread(state);
    grd_drop(x);
    return result;
}

grd_tensor *py_call_binary(grd_tensor *(*call)(grd_tensor *, grd_tensor *), grd_tensor *x, grd_tensor *y)
{
    if (PY_LIKELY(grd_numel(x) + grd_numel(y) < PY_MUCH))
        return call(x, y);
    grd_keep(x);
    grd_keep(y);
    PyThreadState *state = PyEval_SaveThread();
    grd_tensor *result = call(x, y);
    PyEval_RestoreThread(state);
    grd_drop(x);
    grd_drop(y);
    return result;
}

/* Elements that a call reads, or makes where it reads none. */
static int64_t work_of(const struct py_arguments *arguments)
{
    int64_t read = 0, made = 1;
    for (int i = 0; i < arguments->signature->nvalues; i++) {
        const grd_value *value = &arguments->values[i];
        if (value->kind == GRD_KIND_TENSOR && value->v.tensor != NULL)
            read += grd_numel(value->v.tensor);
        for (int64_t k = 0; value->kind == GRD_KIND_TENSORS && k < value->v.tensors.n; k++)
            read += value->v.tensors.data[k] == NULL ? 0 : grd_numel(value->v.tensors.data[k]);
        for (int64_t k = 0; value->kind == GRD_KIND_DIMS && k < value->v.dims.n && made < PY_MUCH && made > 0; k++)
            made = value->v.dims.data[k] < PY_MUCH ? made * value->v.dims.data[k] : PY_MUCH;
    }
    return read > 0 ? read : made;
}

/* Every tensor of the call is kept, or dropped, once more. */
static void hold(const struct py_arguments *arguments, bool keep)
{
    for (int i = 0; i < arguments->signature->nvalues; i++) {
        const grd_value *value = &arguments->values[i];
        grd_tensor *const *tensors = value->kind == GRD_KIND_TENSORS ? value->v.tensors.data : &value->v.tensor;
        int64_t n = value->kind == GRD_KIND_TENSORS ? value->v.tensors.n : value->kind == GRD_KIND_TENSOR;
        for (int64_t k = 0; k < n; k++)
            if (tensors[k] != NULL && keep)
                grd_keep(tensors[k]);
            else
                grd_drop(tensors[k]);
    }
}

static bool call_op(const grd_op *op, const struct py_arguments *arguments, grd_value *ret_results)
{
    const struct py_signature *signature = arguments->signature;
    const grd_form form = arguments->out != NULL ? GRD_OUT : signature->form;
    if (PY_LIKELY(work_of(arguments) < PY_MUCH))
        return grd_call(op, form, arguments->values, signature->nvalues, arguments->out, ret_results);
    hold(arguments, true);
    PyThreadState *state = PyEval_SaveThread();
    bool ok = grd_call(op, form, arguments->values, signature->nvalues, arguments->out, ret_results);
    PyEval_RestoreThread(state);
    hold(arguments, false);
    return ok;
}

/* ---- Results -------------------------------------------------------------------------------------------------------------------- */

static PyTypeObject *result_type(struct py_result *result)
{
    PyStructSequence_Field fields[GRD_MAX_RESULTS + 1] = {0};
    int n = 0;
    for (; result->fields[n] != NULL; n++)
        fields[n].name = result->fields[n];
    PyStructSequence_Desc description = {result->name, "Results by name.", fields, n};
    if (result->type == NULL)
        result->type = PyStructSequence_NewType(&description);
    return result->type;
}

static PyObject *wrap_results(const struct py_signature *signature, const grd_value *results, int n)
{
    if (!grd_ok())
        return py_raise();
    PyTypeObject *type = signature->result == NULL ? NULL : result_type(signature->result);
    if (signature->result != NULL && type == NULL)
        return NULL;
    PyObject *tuple = type == NULL ? PyTuple_New(n) : PyStructSequence_New(type);
    for (int i = 0; tuple != NULL && i < n; i++) {
        PyObject *item = py_wrap(results[i].v.tensor);
        if (item == NULL)
            Py_CLEAR(tuple);
        else if (type == NULL)
            PyTuple_SET_ITEM(tuple, i, item);
        else
            PyStructSequence_SetItem(tuple, i, item);
    }
    return tuple;
}

/* In place and with out=, the object that was given is given back. */
static PyObject *run(const struct py_function *function, struct py_arguments *arguments, grd_scope scope)
{
    const struct py_signature *signature = arguments->signature;
    const grd_op **op = &function->ops[signature - function->signatures];
    if (*op == NULL)
        *op = grd_op_find(signature->op);
    grd_value results[GRD_MAX_RESULTS];
    call_op(*op, arguments, results);
    if (arguments->out != NULL || signature->form == GRD_INPLACE) {
        PyObject *written = arguments->out != NULL ? arguments->out_object : arguments->objects[0];
        PyObject *left = py_leave(scope);
        Py_XDECREF(left);
        return left == NULL ? NULL : Py_NewRef(written);
    }
    if (results[0].kind == GRD_KIND_TENSORS)
        return py_take_tuple(scope, results[0].v.tensors);
    const int n = grd_op_result_count(*op);
    if (n == 1)
        return py_take(scope, results[0].v.tensor);
    PyObject *tuple = wrap_results(signature, results, n);
    grd_scope_close(scope);
    return tuple;
}

/* ---- __torch_function__ ------------------------------------------------------------------------------------------------------------ */

static PyObject *name_of_override, *disabled_override;

bool py_is_overloaded(PyObject *object)
{
    if (py_is_exact(object))
        return false;
    PyObject *found = _PyType_Lookup(Py_TYPE(object), name_of_override);
    return found != NULL && found != disabled_override && (py_is_tensor(object) || !PyType_Check(object));
}

/* The function as users see it. */
static PyObject *public_function(const struct py_function *function)
{
    PyObject *owner = function->home == PY_METHOD ? Py_NewRef((PyObject *)py_tensor_type)
                                                  : PyImport_ImportModule(function->home == PY_NN ? "gradus._C.nn" : "gradus");
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
        result = PyObject_CallMethod(arguments->overloaded[i], "__torch_function__", "OOOO", public, types, args, kwargs);
    }
    if (result == Py_NotImplemented) {
        Py_CLEAR(result);
        PyErr_Format(PyExc_TypeError, "no implementation found for '%s' on types that implement __torch_function__: %R", name, types);
    }
    Py_DECREF(types);
    return result;
}

static PyObject *call_overloaded(const struct py_function *function, struct py_arguments *arguments, PyObject *self, PyObject *const *args,
                                 Py_ssize_t nargs, PyObject *names)
{
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

/* ---- The call -------------------------------------------------------------------------------------------------------------------------- */

static PyObject *parse_and_run(const struct py_function *function, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    struct py_arguments arguments;
    grd_scope scope = grd_scope_open();
    if (!py_parse(function, self, args, nargs, names, &arguments)) {
        grd_scope_close(scope);
        return NULL;
    }
    PyObject *result;
    if (PY_UNLIKELY(arguments.noverloaded > 0)) {
        grd_scope_close(scope);
        result = call_overloaded(function, &arguments, self, args, nargs, names);
    } else {
        result = run(function, &arguments, scope);
    }
    py_arguments_done(&arguments);
    return result;
}

PyObject *py_call(const struct py_function *function, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    if (names == NULL) {
        const int shift = self != NULL;
        if (nargs + shift == 1 && function->unary != NULL && (shift ? py_is_exact(self) : py_is_exact(args[0]))) {
            grd_scope scope = grd_scope_open();
            return py_take(scope, py_call_unary(function->unary, py_tensor_of(shift ? self : args[0])));
        }
        if (nargs + shift == 2 && function->binary != NULL && py_is_exact(args[nargs - 1]) &&
            (shift ? py_is_exact(self) : py_is_exact(args[0]))) {
            grd_scope scope = grd_scope_open();
            return py_take(scope, py_call_binary(function->binary, py_tensor_of(shift ? self : args[0]), py_tensor_of(args[nargs - 1])));
        }
    }
    return parse_and_run(function, self, args, nargs, names);
}

/* ---- What the module offers of this ------------------------------------------------------------------------------------------------------ */

/* The __torch_function__ of classes that want none. */
static PyObject *disabled(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *function, *types, *tuple = NULL, *dict = NULL;
    if (!PyArg_ParseTuple(args, "OO|OO", &function, &types, &tuple, &dict))
        return NULL;
    PyObject *empty = tuple == NULL || tuple == Py_None ? PyTuple_New(0) : Py_NewRef(tuple);
    PyObject *result = empty == NULL ? NULL : PyObject_Call(function, empty, dict == Py_None ? NULL : dict);
    Py_XDECREF(empty);
    return result;
}

static PyMethodDef disabled_method = {
    "_disabled_torch_function_impl", disabled, METH_VARARGS,
    "The __torch_function__ of a class that wants none: calls of the library treat it as a plain Tensor."};

bool py_add_calls(PyObject *module)
{
    name_of_override = PyUnicode_InternFromString("__torch_function__");
    disabled_override = PyCFunction_New(&disabled_method, NULL);
    return name_of_override != NULL && disabled_override != NULL &&
           PyModule_AddObjectRef(module, disabled_method.ml_name, disabled_override) == 0;
}
