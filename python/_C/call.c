/* Runs the Python functions that are generated from the schema. Calls the operator directly if the only arguments are one or two Tensors.
 * Otherwise parses the arguments, calls the operator with an array of grd_value and wraps the results as Python objects. */
#include "call.h"
#include "device.h"
#include "dtype.h"
#include "errors.h"
#include "gil.h"
#include "override.h"
#include "parse.h"

#include <structmember.h>
#include <structseq.h>

/* ---- Work without the GIL ---------------------------------------------------------------------------------------- */

/* Returns the number of elements of `t`, but at most PY_MUCH so that a sum over several tensors does not overflow. */
static inline int64_t elements_of(const grd_tensor *t)
{
    const int64_t n = grd_numel(t);
    return n < PY_MUCH ? n : PY_MUCH;
}

grd_tensor *py_call_unary(grd_tensor *(*call)(grd_tensor *), grd_tensor *x)
{
    if (PY_LIKELY(grd_numel(x) < PY_MUCH))
        return call(x);
    grd_keep(x); /* keeps the tensor alive, because another thread may free the Python object while the GIL is released */
    PyThreadState *state = py_begin_work();
    grd_tensor *result = call(x);
    py_end_work(state);
    grd_drop(x);
    return result;
}

grd_tensor *py_call_binary(grd_tensor *(*call)(grd_tensor *, grd_tensor *), grd_tensor *x, grd_tensor *y)
{
    if (PY_LIKELY(elements_of(x) + elements_of(y) < PY_MUCH))
        return call(x, y);
    grd_keep(x);
    grd_keep(y);
    PyThreadState *state = py_begin_work();
    grd_tensor *result = call(x, y);
    py_end_work(state);
    grd_drop(x);
    grd_drop(y);
    return result;
}

/* Returns the number of elements that a call reads or, if it has no tensor arguments, the number of elements that it creates. The call releases
 * the GIL if the returned number is at least PY_MUCH. */
static int64_t count_elements(const struct py_arguments *arguments)
{
    int64_t read = 0, made = 1;
    for (int i = 0; i < arguments->signature->nvalues; i++) {
        const grd_value *value = &arguments->values[i];
        if (value->kind == GRD_KIND_TENSOR && value->v.tensor != NULL)
            read += elements_of(value->v.tensor);
        for (int64_t k = 0; value->kind == GRD_KIND_TENSORS && k < value->v.tensors.n; k++)
            read += elements_of(value->v.tensors.data[k]);
        for (int64_t k = 0; value->kind == GRD_KIND_DIMS && k < value->v.dims.n && made < PY_MUCH && made > 0; k++)
            made =
                (uint64_t)value->v.dims.data[k] < PY_MUCH ? made * value->v.dims.data[k] : PY_MUCH; /* a negative size counts as PY_MUCH */
    }
    return read > 0 ? read : made;
}

/* Takes a reference to every tensor argument if `keep` is true; drops these references otherwise. */
static void keep_or_drop(const struct py_arguments *arguments, bool keep)
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

/* True if the operator has an out form in the schema, so that it writes to out= directly. */
static bool has_out_form(const grd_op *op)
{
    return grd_op_forms(op) >> GRD_OUT & 1;
}

/* Calls the operator with the converted arguments. Returns false if an error is pending. Releases the GIL during the call if the call reads or
 * creates at least PY_MUCH elements. */
static bool call_op(const grd_op *op, const struct py_arguments *arguments, grd_value *ret_results)
{
    const struct py_signature *signature = arguments->signature;
    const bool into = arguments->nouts > 0 && has_out_form(op);
    const grd_form form = into ? GRD_OUT : arguments->form;
    grd_tensor *out = into ? arguments->outs[0] : NULL;
    if (PY_LIKELY(count_elements(arguments) < PY_MUCH))
        return grd_call(op, form, arguments->values, signature->nvalues, out, ret_results);
    keep_or_drop(arguments, true);
    PyThreadState *state = py_begin_work();
    bool ok = grd_call(op, form, arguments->values, signature->nvalues, out, ret_results);
    py_end_work(state);
    keep_or_drop(arguments, false);
    return ok;
}

/* Calls the in-place form of an operator that changes the sizes or the memory of its tensor. First waits until no other thread runs operators
 * without the GIL, because these may read the tensor. On failure an error of the library is pending. */
static void call_alone(const grd_op *op, const struct py_arguments *arguments, grd_value *ret_results)
{
    py_begin_change();
    grd_call(op, GRD_INPLACE, arguments->values, arguments->signature->nvalues, NULL, ret_results);
    py_end_change();
}

/* Writes all tensor arguments, including the tensors in lists, to ret_inputs unless ret_inputs is NULL. Returns the number of these tensors. */
static int64_t input_tensors(const struct py_arguments *arguments, grd_tensor **ret_inputs)
{
    int64_t n = 0;
    for (int i = 0; i < arguments->signature->nvalues; i++) {
        const grd_value *value = &arguments->values[i];
        const grd_tensors list =
            value->kind == GRD_KIND_TENSORS ? value->v.tensors : grd_tensors_from(&value->v.tensor, value->kind == GRD_KIND_TENSOR);
        for (int64_t k = 0; k < list.n; k++, n++)
            if (ret_inputs != NULL)
                ret_inputs[n] = list.data[k];
    }
    return n;
}

/* True if the first argument is a tensor whose dtype cannot be cast to `dtype`. */
static bool cannot_be_cast(const struct py_arguments *arguments, grd_dtype dtype)
{
    const grd_value *first = &arguments->values[0];
    return first->kind == GRD_KIND_TENSOR && first->v.tensor != NULL && !grd_can_cast(grd_tensor_dtype(first->v.tensor), dtype);
}

/* Handles out= for an operator that has a dtype argument but no out form. If the caller gave no dtype, sets it to the dtype of the out= tensor.
 * Returns false, with an error pending, if the caller gave another dtype and the operator has no tensor arguments. */
static bool take_dtype(struct py_arguments *arguments)
{
    const struct py_signature *signature = arguments->signature;
    const grd_dtype given = grd_tensor_dtype(arguments->outs[0]);
    for (int i = 0; i < signature->nvalues && signature->order == NULL && !signature->keeps_dtype; i++) {
        grd_value *value = &arguments->values[i];
        if (signature->params[i].kind != GRD_KIND_DTYPE)
            continue;
        if (value->kind == GRD_KIND_NONE && cannot_be_cast(arguments, given))
            continue; /* the result keeps its own dtype, and grd_write_results raises the error for the failed cast */
        if (value->kind == GRD_KIND_NONE)
            *value = (grd_value){.kind = GRD_KIND_DTYPE, .v.dtype = given};
        else if (value->v.dtype != given && input_tensors(arguments, NULL) == 0) {
            grd_error_set(GRD_ERROR_RUNTIME, "dtype %s does not match dtype of out parameter (%s)", py_dtype_tensor_name(value->v.dtype),
                          py_dtype_tensor_name(given));
            return false;
        }
    }
    return true;
}

/* Copies the results of an operator without an out form to the tensors that the caller gave as out=. On failure returns false, and an error of the
 * library is pending. */
static bool write_results(const grd_op *op, const struct py_arguments *arguments, grd_tensors results)
{
    const int64_t n = input_tensors(arguments, NULL);
    grd_tensor **inputs = PyMem_Malloc((size_t)(n > 0 ? n : 1) * sizeof *inputs);
    if (inputs == NULL) {
        grd_error_set(GRD_ERROR_MEMORY, "a list of %lld tensors", (long long)n);
        return false;
    }
    input_tensors(arguments, inputs);
    const bool ok = grd_write_results(op, grd_tensors_from(inputs, n), grd_tensors_from(arguments->outs, arguments->nouts), results);
    PyMem_Free(inputs);
    return ok;
}

/* Runs a call with out=, and sets ret_results[i] to the tensor that the caller gave for result i. On failure an error of the library is pending. */
static void call_into(const grd_op *op, struct py_arguments *arguments, grd_value *ret_results)
{
    const int n = grd_op_result_count(op);
    grd_tensor *results[GRD_MAX_RESULTS];
    if (!has_out_form(op) && !take_dtype(arguments))
        return;
    if (!call_op(op, arguments, ret_results))
        return;
    for (int i = 0; i < n; i++)
        results[i] = ret_results[i].v.tensor;
    if (!has_out_form(op) && !write_results(op, arguments, grd_tensors_from(results, n)))
        return;
    for (int i = 0; i < n; i++)
        ret_results[i].v.tensor = arguments->outs[i];
}

/* ---- Results ----------------------------------------------------------------------------------------------------- */

/* Returns the repr of a named tuple, with each field on a new line: e.g. "torch.return_types.max(\nvalues=...,\nindices=...)". */
static PyObject *result_repr(PyObject *self)
{
    PyObject *text = PyUnicode_FromFormat("%s(", Py_TYPE(self)->tp_name);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self) && text != NULL; i++) {
        const char *field = Py_TYPE(self)->tp_members[i].name;
        PyUnicode_AppendAndDel(&text, PyUnicode_FromFormat("%s\n%s=%R", i > 0 ? "," : "", field, PyTuple_GET_ITEM(self, i)));
    }
    if (text != NULL)
        PyUnicode_AppendAndDel(&text, PyUnicode_FromString(")"));
    return text;
}

static PyTypeObject *result_type(struct py_result *result)
{
    PyStructSequence_Field fields[GRD_MAX_RESULTS + 1] = {0};
    int n = 0;
    for (; result->fields[n] != NULL; n++)
        fields[n].name = result->fields[n];
    PyStructSequence_Desc description = {result->name, "Results by name.", fields, n};
    if (result->type == NULL) {
        result->type = PyStructSequence_NewType(&description);
        if (result->type != NULL)
            result->type->tp_repr = result_repr;
    }
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

/* Sets the device argument of a function that creates tensors to the default device, unless the call has a device or out=. */
static void fill_device(struct py_arguments *arguments)
{
    grd_value *value = &arguments->values[arguments->signature->device];
    const grd_device device = py_default_device();
    if (device.type != GRD_DEVICE_NONE && value->kind == GRD_KIND_NONE && arguments->nouts == 0)
        *value = (grd_value){.kind = GRD_KIND_DEVICE, .v.device = device};
}

/* Runs a parsed call and closes `scope`, which frees the temporary tensors of the call. An in-place call returns `self`, and a call with out= returns
 * the objects of out=. */
static PyObject *run(const struct py_function *function, struct py_arguments *arguments, grd_scope scope)
{
    const struct py_signature *signature = arguments->signature;
    const grd_op **op = &function->ops[signature - function->signatures];
    if (*op == NULL)
        *op = grd_op_find(signature->op);
    if (signature->device != 0)
        fill_device(arguments);
    grd_value results[GRD_MAX_RESULTS];
    if (arguments->nouts > 0)
        call_into(*op, arguments, results);
    else if (PY_UNLIKELY(signature->alone))
        call_alone(*op, arguments, results);
    else
        call_op(*op, arguments, results);
    const int n = grd_op_result_count(*op);
    if ((arguments->nouts > 0 && n == 1) || arguments->form == GRD_INPLACE) {
        PyObject *left = py_leave(scope);
        Py_XDECREF(left);
        return left == NULL ? NULL : arguments->nouts > 0 ? py_wrap(arguments->outs[0]) : Py_NewRef(arguments->objects[0]);
    }
    if (results[0].kind == GRD_KIND_TENSORS)
        return py_take_tuple(scope, results[0].v.tensors);
    if (n == 1)
        return py_take(scope, results[0].v.tensor);
    PyObject *tuple = wrap_results(signature, results, n);
    grd_scope_close(scope);
    return tuple;
}

/* ---- The call ---------------------------------------------------------------------------------------------------- */

/* Runs a call that needs the argument parser. The __torch_function__ of a mode or of an argument's class may take over the call. */
static PyObject *parse_and_run(const struct py_function *function, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    struct py_arguments arguments;
    grd_scope scope = grd_scope_open();
    if (!py_parse(function, self, args, nargs, names, &arguments)) {
        grd_scope_close(scope);
        return NULL;
    }
    PyObject *result;
    if (PY_UNLIKELY(arguments.noverloaded > 0 || py_is_mode_active())) {
        grd_scope_close(scope);
        result = py_call_overloaded(function, &arguments, self, args, nargs, names);
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
        if (nargs + shift == 1 && function->unary != NULL && (shift ? py_is_exact_no_mode(self) : py_is_exact_no_mode(args[0]))) {
            grd_scope scope = grd_scope_open();
            return py_take(scope, py_call_unary(function->unary, py_tensor_of(shift ? self : args[0])));
        }
        if (nargs + shift == 2 && function->binary != NULL && py_is_exact_no_mode(args[nargs - 1]) &&
            (shift ? py_is_exact_no_mode(self) : py_is_exact_no_mode(args[0]))) {
            grd_scope scope = grd_scope_open();
            return py_take(scope, py_call_binary(function->binary, py_tensor_of(shift ? self : args[0]), py_tensor_of(args[nargs - 1])));
        }
    }
    return parse_and_run(function, self, args, nargs, names);
}

void py_fill(PyMethodDef *ret_table, struct py_listed *functions, int n, const grd_op **ops)
{
    for (int i = 0; i < n; i++) {
        struct py_function *function = &functions[i].function;
        function->ops = ops;
        ops += function->nsignatures + function->nothers;
        ret_table[i] =
            (PyMethodDef){function->name, (PyCFunction)(void (*)(void))functions[i].call, METH_FASTCALL | METH_KEYWORDS, functions[i].doc};
    }
}
