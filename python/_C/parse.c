/* Implements the argument parser, which works from tables of signatures (parse.h).
 *
 * Signatures are tried in order. A signature does not fit if the kind of an argument is not that of its parameter. If an argument has the right kind
 * but cannot be converted (an integer beyond 64 bits) the call fails at once. The reason why a signature does not fit is determined only if no
 * signature fits, for the error message. */
#include "parse.h"
#include "device.h"
#include "dtype.h"
#include "errors.h"
#include "generator.h"
#include "override.h"
#include "scalar.h"

enum match { MATCH_NO, MATCH_YES, MATCH_ERROR };

static inline enum match as_match(int known)
{
    return known < 0 ? MATCH_ERROR : known ? MATCH_YES : MATCH_NO;
}

/* ---- Lists ------------------------------------------------------------------------------------------------------- */

struct block {
    struct block *next;
    _Alignas(16) char data[];
};

/* Allocates `size` bytes that py_arguments_done frees. Returns NULL with MemoryError. */
static void *allocate(struct py_arguments *arguments, size_t size)
{
    struct block *block = PyMem_Malloc(sizeof *block + size);
    if (block == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    block->next = arguments->blocks;
    arguments->blocks = block;
    return block->data;
}

void py_arguments_done(struct py_arguments *arguments)
{
    for (struct block *block = arguments->blocks, *next; block != NULL; block = next) {
        next = block->next;
        PyMem_Free(block);
    }
    arguments->blocks = NULL;
}

/* Returns an array for n integers, which is inside of `arguments` if there is room, and otherwise allocated. Returns NULL with MemoryError. */
static int64_t *ints(struct py_arguments *arguments, Py_ssize_t n)
{
    if (arguments->nints + n <= PY_INLINE_INTS) {
        int64_t *room = arguments->ints + arguments->nints;
        arguments->nints += (int)n;
        return room;
    }
    return allocate(arguments, (size_t)n * sizeof(int64_t));
}

/* Converts n integers to a list in *ret_value. Returns MATCH_NO if the first element is no integer, because in PyTorch only the first element decides
 * whether a signature fits. Later elements may be integers or bools; otherwise the result is MATCH_ERROR with TypeError. */
static enum match convert_ints(const struct py_param *param, PyObject *const *items, Py_ssize_t n, struct py_arguments *arguments,
                               grd_value *ret_value)
{
    int64_t *data = ints(arguments, n);
    if (data == NULL)
        return MATCH_ERROR;
    for (Py_ssize_t i = 0; i < n; i++) {
        const int known = py_as_element(items[i], i, &data[i]);
        if (known == 0 && i > 0)
            py_refuse_element(arguments->function, param->name, items[i], i);
        if (known <= 0)
            return as_match(i > 0 ? -1 : known);
    }
    ret_value->kind = GRD_KIND_DIMS;
    ret_value->v.dims = grd_dims_from(data, n);
    return MATCH_YES;
}

/* Converts a tuple or list of integers, or a single integer, which counts as a list of one element. Returns MATCH_NO if `object` is neither. */
static enum match convert_dims(const struct py_param *param, PyObject *object, struct py_arguments *arguments, grd_value *ret_value)
{
    if (PyTuple_Check(object) || PyList_Check(object))
        return convert_ints(param, PySequence_Fast_ITEMS(object), PySequence_Fast_GET_SIZE(object), arguments, ret_value);
    return convert_ints(param, &object, 1, arguments, ret_value);
}

/* ---- Tensors ----------------------------------------------------------------------------------------------------- */

static enum match convert_float(PyObject *object, grd_value *ret_value)
{
    if (PyLong_CheckExact(object)) { /* not by way of py_as_scalar, which refuses integers of more than 64 bits */
        ret_value->v.number = PyLong_AsDouble(object);
        return as_match(ret_value->v.number == -1 && PyErr_Occurred() ? -1 : 1);
    }
    grd_scalar scalar;
    int known = py_as_scalar(object, &scalar);
    if (known <= 0 || scalar.kind == GRD_SCALAR_COMPLEX)
        return as_match(known < 0 ? -1 : 0);
    ret_value->v.number = grd_scalar_double(scalar);
    return MATCH_YES;
}

/* Converts a tuple or list of real numbers to a float64 tensor. Returns MATCH_NO if an item is no real number. */
static enum match convert_numbers(PyObject *object, struct py_arguments *arguments, grd_tensor **ret_tensor)
{
    const Py_ssize_t n = PySequence_Fast_GET_SIZE(object);
    double *data = allocate(arguments, (size_t)(n ? n : 1) * sizeof *data);
    enum match match = data == NULL ? MATCH_ERROR : MATCH_YES;
    for (Py_ssize_t i = 0; i < n && match == MATCH_YES; i++) {
        grd_value value;
        match = convert_float(PySequence_Fast_GET_ITEM(object, i), &value);
        data[i] = match == MATCH_YES ? value.v.number : 0;
    }
    if (match == MATCH_YES)
        *ret_tensor = grd_from_data(data, grd_dims(n), GRD_FLOAT64);
    return match;
}

/* Converts a Tensor to the library's tensor. If the parameter's flags `flags` allow it, also converts a number, or a tuple or list of numbers.
 * Returns MATCH_NO for any other object. */
static enum match convert_tensor(PyObject *object, int flags, struct py_arguments *arguments, grd_tensor **ret_tensor)
{
    *ret_tensor = NULL;
    if (PY_LIKELY(py_is_exact(object))) {
        *ret_tensor = py_tensor_of(object);
        return MATCH_YES;
    }
    if (py_has_override(object)) { /* accepted as a tensor; __torch_function__ runs instead of the operator */
        py_note_overloaded(object, arguments);
        return MATCH_YES;
    }
    if (py_is_tensor(object)) {
        *ret_tensor = py_tensor_of(object);
        return MATCH_YES;
    }
    grd_scalar scalar;
    if ((flags & PY_NUMBERS) && (PyTuple_Check(object) || PyList_Check(object)))
        return convert_numbers(object, arguments, ret_tensor);
    int known = flags & PY_NUMBER ? py_as_scalar(object, &scalar) : 0;
    if (known > 0)
        *ret_tensor = grd_number(scalar);
    return as_match(known);
}

static enum match convert_tensors(PyObject *object, struct py_arguments *arguments, grd_value *ret_value)
{
    if (!PyTuple_Check(object) && !PyList_Check(object))
        return MATCH_NO;
    Py_ssize_t n = PySequence_Fast_GET_SIZE(object);
    grd_tensor **data = allocate(arguments, (size_t)(n ? n : 1) * sizeof *data);
    if (data == NULL)
        return MATCH_ERROR;
    for (Py_ssize_t i = 0; i < n; i++) {
        enum match match = convert_tensor(PySequence_Fast_GET_ITEM(object, i), 0, arguments, &data[i]);
        if (match != MATCH_YES)
            return match;
    }
    ret_value->kind = GRD_KIND_TENSORS;
    ret_value->v.tensors = grd_tensors_from(data, n);
    return MATCH_YES;
}

/* ---- Other kinds ------------------------------------------------------------------------------------------------- */

static enum match convert_string(PyObject *object, grd_value *ret_value)
{
    const char *text = PyUnicode_Check(object) ? PyUnicode_AsUTF8(object) : py_as_memory_format(object);
    if (text == NULL)
        return PyErr_Occurred() ? MATCH_ERROR : MATCH_NO;
    ret_value->v.string = text;
    return MATCH_YES;
}

static enum match check_pin_memory(PyObject *object)
{
    if (object == Py_False)
        return MATCH_YES;
    if (object != Py_True)
        return MATCH_NO;
    PyErr_SetString(PyExc_RuntimeError, "Cannot pin memory: no accelerator is available");
    return MATCH_ERROR;
}

static enum match check_sparse_grad(PyObject *object)
{
    if (object == Py_True)
        PyErr_SetString(PyExc_NotImplementedError, "sparse gradients are not available yet: pass sparse_grad=False");
    return object == Py_False ? MATCH_YES : object == Py_True ? MATCH_ERROR : MATCH_NO;
}

/* Converts the argument inplace=, which may be any object with a truth value. If it is true, selects the in-place form. */
static enum match check_inplace(PyObject *object, struct py_arguments *arguments)
{
    const int truth = PyObject_IsTrue(object);
    if (truth > 0)
        arguments->form = GRD_INPLACE;
    return truth < 0 ? MATCH_ERROR : MATCH_YES;
}

static enum match convert_reduction(PyObject *object, grd_value *ret_value)
{
    static const char *const words[] = {"none", "mean", "sum"};
    int64_t number = 0;
    const int known = object == NULL ? 1 : py_as_int(object, &number);
    if (known > 0 && (number < 0 || number > 2)) {
        PyErr_Format(PyExc_ValueError, "%lld is not a valid value for reduction", (long long)number);
        return MATCH_ERROR;
    }
    ret_value->kind = GRD_KIND_STRING;
    ret_value->v.string = words[number];
    return as_match(known);
}

static enum match check_layout(PyObject *object)
{
    grd_layout layout;
    return py_as_layout(object, &layout) ? MATCH_YES : MATCH_NO;
}

static enum match convert_outs(PyObject *const *items, Py_ssize_t n, struct py_arguments *arguments)
{
    enum match match = n <= GRD_MAX_RESULTS ? MATCH_YES : MATCH_NO;
    for (Py_ssize_t i = 0; i < n && match == MATCH_YES; i++)
        match = convert_tensor(items[i], 0, arguments, &arguments->outs[i]);
    arguments->nouts = (int)n;
    return match;
}

/* Converts a number, i.e. an object that py_as_scalar accepts, to a scalar. If `param` has the flag PY_VALUE, also reads the element of a 0-d tensor
 * that requires a gradient; if it has the flag PY_NO_TENSOR, accepts no tensor. Returns MATCH_NO for an object of another type. */
static enum match convert_scalar(const struct py_param *param, PyObject *object, const struct py_arguments *arguments,
                                 grd_scalar *ret_scalar)
{
    if (!(param->flags & (PY_VALUE | PY_NO_TENSOR)) || !py_is_tensor(object))
        return as_match(py_as_scalar(object, ret_scalar));
    if (param->flags & PY_NO_TENSOR)
        return MATCH_NO;
    grd_tensor *t = py_tensor_of(object);
    if (grd_ndim(t) != 0) {
        PyErr_Format(PyExc_RuntimeError, "%s only supports 0-dimensional start and end tensors, but got %s with %d dimension(s).",
                     arguments->signature->op, param->name, (int)grd_ndim(t));
        return MATCH_ERROR;
    }
    *ret_scalar = grd_item(t);
    if (grd_ok())
        return MATCH_YES;
    py_raise();
    return MATCH_ERROR;
}

static enum match convert(const struct py_param *param, PyObject *object, struct py_arguments *arguments, grd_value *value)
{
    if (object == Py_None && (param->flags & PY_NONE))
        return MATCH_YES;
    value->kind = (grd_kind)param->kind;
    switch (param->kind) {
    case GRD_KIND_TENSOR:
        return convert_tensor(object, param->flags, arguments, &value->v.tensor);
    case GRD_KIND_TENSORS:
        return convert_tensors(object, arguments, value);
    case GRD_KIND_SCALAR:
        return convert_scalar(param, object, arguments, &value->v.scalar);
    case GRD_KIND_INT:
        return as_match(py_as_int(object, &value->v.integer));
    case GRD_KIND_FLOAT:
        return convert_float(object, value);
    case GRD_KIND_BOOL:
        value->v.boolean = object == Py_True;
        return PyBool_Check(object) ? MATCH_YES : MATCH_NO;
    case GRD_KIND_DIMS:
        return convert_dims(param, object, arguments, value);
    case GRD_KIND_DTYPE:
        return py_as_dtype(object, &value->v.dtype) ? MATCH_YES : MATCH_NO;
    case GRD_KIND_DEVICE:
        return as_match(py_as_device(object, &value->v.device));
    case GRD_KIND_STRING:
        return convert_string(object, value);
    case GRD_KIND_GENERATOR:
        return py_as_generator(object, &value->v.generator) ? MATCH_YES : MATCH_NO;
    case PY_KIND_OUT:
        return convert_outs(&object, 1, arguments);
    case PY_KIND_OUTS:
        return PyTuple_Check(object) || PyList_Check(object)
                   ? convert_outs(PySequence_Fast_ITEMS(object), PySequence_Fast_GET_SIZE(object), arguments)
                   : MATCH_NO;
    case PY_KIND_SPARSE_GRAD:
        return check_sparse_grad(object);
    case PY_KIND_LAYOUT:
        return check_layout(object);
    case PY_KIND_PIN_MEMORY:
        return check_pin_memory(object);
    case PY_KIND_MEMORY_FORMAT:
        return py_as_memory_format(object) != NULL ? MATCH_YES : MATCH_NO;
    case PY_KIND_INPLACE:
        return check_inplace(object, arguments);
    case PY_KIND_REDUCTION:
        return convert_reduction(object, value);
    case PY_KIND_OBJECT:
        return MATCH_YES;
    default:
        return MATCH_NO;
    }
}

/* ---- Names ------------------------------------------------------------------------------------------------------- */

static int find_exactly(const struct py_signature *signature, int first, const char *name)
{
    for (int i = first; i < signature->nparams; i++)
        if (signature->params[i].name[0] == name[0] && strcmp(signature->params[i].name, name) == 0)
            return i;
    return -1;
}

/* Returns the index of the parameter `name`; -1 if there is none from index `first` on. Also finds a parameter by NumPy's name for it, such as
 * axis for dim. */
static int find_param(const struct py_signature *signature, int first, PyObject *name)
{
    static const struct {
        const char *synonym, *name;
    } synonyms[] = {{"axis", "dim"}, {"keepdims", "keepdim"}, {"x", "input"}, {"a", "input"}, {"x1", "input"}, {"x2", "other"}};
    const char *text = PyUnicode_AsUTF8(name);
    int at = text == NULL ? -1 : find_exactly(signature, first, text);
    if (text == NULL)
        PyErr_Clear(); /* a name that cannot be encoded matches no parameter */
    for (size_t i = 0; at < 0 && text != NULL && i < sizeof synonyms / sizeof *synonyms; i++)
        if (strcmp(synonyms[i].synonym, text) == 0)
            at = find_exactly(signature, first, synonyms[i].name);
    return at;
}

/* ---- Matching ---------------------------------------------------------------------------------------------------- */

/* The arguments of a vectorcall. */
struct call {
    PyObject *self; /* NULL for a module function */
    PyObject *const *args;
    Py_ssize_t nargs, nnames;
    PyObject *names;
};

/* Writes the argument object of each parameter to arguments->objects. Returns false, without an exception, if there are too many arguments, a keyword
 * is unknown or a parameter is given twice. */
static bool place(const struct py_signature *signature, const struct call *call, struct py_arguments *arguments)
{
    const int shift = call->self != NULL;
    if (call->nargs + shift > signature->positional)
        return false;
    memset(arguments->objects, 0, signature->nparams * sizeof *arguments->objects);
    if (shift)
        arguments->objects[0] = call->self;
    for (Py_ssize_t i = 0; i < call->nargs; i++)
        arguments->objects[i + shift] = call->args[i];
    for (Py_ssize_t i = 0; i < call->nnames; i++) {
        int at = find_param(signature, shift, PyTuple_GET_ITEM(call->names, i));
        if (at < 0 || arguments->objects[at] != NULL)
            return false;
        arguments->objects[at] = call->args[call->nargs + i];
    }
    return true;
}

/* Resets `arguments` for an attempt to match `signature`. */
static void begin(const struct py_signature *signature, struct py_arguments *arguments)
{
    arguments->signature = signature;
    arguments->form = signature->form;
    arguments->nouts = 0;
    arguments->noverloaded = 0;
    arguments->blocks = NULL;
    arguments->nints = 0;
}

/* Converts all argument objects to arguments->values. Returns MATCH_YES on success. Otherwise returns MATCH_NO or MATCH_ERROR, and *ret_at is the
 * index of the first argument that is missing or does not fit. */
static enum match convert_all(const struct py_signature *signature, struct py_arguments *arguments, int *ret_at)
{
    for (int i = 0; i < signature->nparams; i++) {
        const struct py_param *param = &signature->params[i];
        arguments->values[i].kind = GRD_KIND_NONE;
        *ret_at = i;
        if (arguments->objects[i] == NULL) {
            if (!(param->flags & PY_OPTIONAL))
                return MATCH_NO;
            if (param->kind == PY_KIND_REDUCTION)
                convert_reduction(NULL, &arguments->values[i]);
            continue;
        }
        enum match match = convert(param, arguments->objects[i], arguments, &arguments->values[i]);
        if (match != MATCH_YES)
            return match;
    }
    return MATCH_YES;
}

/* Permutes arguments->values and arguments->objects from the order of the Python parameters to the order of the operator's arguments. */
static void reorder(const struct py_signature *signature, struct py_arguments *arguments)
{
    grd_value values[PY_MAX_PARAMS] = {{0}};
    PyObject *objects[PY_MAX_PARAMS] = {NULL};
    for (int i = 0; i < signature->nparams; i++) {
        values[signature->order[i]] = arguments->values[i];
        objects[signature->order[i]] = arguments->objects[i];
    }
    memcpy(arguments->values, values, signature->nvalues * sizeof *values);
    memcpy(arguments->objects, objects, signature->nvalues * sizeof *objects);
}

/* Matches a call that gives sizes as separate arguments, as in view(2, 3). Returns MATCH_NO if a positional argument after self is no size. */
static enum match match_loose(const struct py_signature *signature, const struct call *call, struct py_arguments *arguments)
{
    const int shift = call->self != NULL, at = signature->positional - 1;
    if (call->nargs + shift < signature->positional || (call->nargs + shift == signature->positional && !PyLong_Check(call->args[0])))
        return MATCH_NO;
    const struct call rest = {call->self, call->args + call->nargs, 0, call->nnames, call->names};
    if (!place(signature, &rest, arguments) || arguments->objects[at] != NULL)
        return MATCH_NO;
    int missing;
    arguments->objects[at] = call->args[0]; /* keeps convert_all from treating this argument as missing; the list of all sizes replaces
                                             * its value below */
    enum match match = convert_all(signature, arguments, &missing);
    return match == MATCH_YES ? convert_ints(&signature->params[at], call->args, call->nargs, arguments, &arguments->values[at]) : match;
}

/* Matches the call with `signature` and converts the arguments. Returns MATCH_NO if they do not fit; the caller then tries the next signature.
 * Returns MATCH_ERROR if an exception is set. */
static enum match match_signature(const struct py_signature *signature, const struct call *call, struct py_arguments *arguments)
{
    enum match match = MATCH_NO;
    int at;
    begin(signature, arguments);
    if (signature->loose)
        match = match_loose(signature, call, arguments);
    if (match == MATCH_NO && place(signature, call, arguments))
        match = convert_all(signature, arguments, &at);
    if (match != MATCH_YES)
        py_arguments_done(arguments);
    else if (signature->order != NULL)
        reorder(signature, arguments);
    return match;
}

/* ---- Error messages ---------------------------------------------------------------------------------------------- */

static const char *kind_text(const struct py_param *param)
{
    const bool number = (param->flags & PY_NUMBER) != 0;
    switch (param->kind) {
    case GRD_KIND_TENSOR:
    case PY_KIND_OUT:
        return number ? "Tensor or Number" : param->flags & PY_NUMBERS ? "tuple of floats" : "Tensor";
    case GRD_KIND_TENSORS:
    case PY_KIND_OUTS:
        return "tuple of Tensors";
    case GRD_KIND_SCALAR:
        return "Number";
    case GRD_KIND_INT:
    case PY_KIND_REDUCTION:
        return "int";
    case GRD_KIND_FLOAT:
        return "float";
    case GRD_KIND_BOOL:
    case PY_KIND_PIN_MEMORY:
    case PY_KIND_SPARSE_GRAD:
    case PY_KIND_INPLACE:
        return "bool";
    case GRD_KIND_DIMS:
        return "tuple of ints";
    case GRD_KIND_DTYPE:
        return "torch.dtype";
    case GRD_KIND_DEVICE:
        return "torch.device";
    case GRD_KIND_GENERATOR:
        return "torch.Generator";
    case PY_KIND_LAYOUT:
        return "torch.layout";
    case PY_KIND_MEMORY_FORMAT:
        return "torch.memory_format";
    case PY_KIND_OBJECT:
        return "object";
    default:
        return "str";
    }
}

/* Returns a signature as error text, e.g. "(Tensor input, Number alpha = 1, *, Tensor out = None)". Parameters before index `first` are left out.
 * Returns NULL with an exception. */
static PyObject *signature_text(const struct py_signature *signature, int first)
{
    PyObject *text = PyUnicode_FromString("(");
    bool keyword = false;
    for (int i = first; i < signature->nparams; i++) {
        const struct py_param *param = &signature->params[i];
        const char *star = (param->flags & PY_KEYWORD) && !keyword ? "*, " : "";
        keyword = keyword || (param->flags & PY_KEYWORD);
        PyUnicode_AppendAndDel(&text, PyUnicode_FromFormat("%s%s%s %s", i > first ? ", " : "", star, kind_text(param), param->name));
        if (text != NULL && param->text != NULL)
            PyUnicode_AppendAndDel(&text, PyUnicode_FromFormat(" = %s", param->text));
    }
    if (text != NULL)
        PyUnicode_AppendAndDel(&text, PyUnicode_FromString(")"));
    return text;
}

static const char *type_text(PyObject *object)
{
    return Py_TYPE(object)->tp_name;
}

/* Returns the types of the given arguments as error text, e.g. "(Tensor, str, out=int)". */
static PyObject *given_text(const struct call *call)
{
    PyObject *text = PyUnicode_FromString("(");
    for (Py_ssize_t i = 0; i < call->nargs + call->nnames && text != NULL; i++) {
        const char *comma = i > 0 ? ", " : "";
        PyObject *name = i < call->nargs ? NULL : PyTuple_GET_ITEM(call->names, i - call->nargs);
        PyUnicode_AppendAndDel(&text, name == NULL ? PyUnicode_FromFormat("%s%s", comma, type_text(call->args[i]))
                                                   : PyUnicode_FromFormat("%s%U=%s", comma, name, type_text(call->args[i])));
    }
    if (text != NULL)
        PyUnicode_AppendAndDel(&text, PyUnicode_FromString(")"));
    return text;
}

/* Raises TypeError with a list of all signatures of the function. */
static void refuse_all(const struct py_function *function, const struct call *call)
{
    const int first = call->self != NULL;
    PyObject *given = given_text(call);
    PyObject *text = given == NULL
                         ? NULL
                         : PyUnicode_FromFormat(
                               "%s() received an invalid combination of arguments - got %U, but expected one of:", function->name, given);
    for (int i = 0; i < function->nsignatures && text != NULL; i++) {
        PyObject *line = signature_text(&function->signatures[i], first);
        PyUnicode_AppendAndDel(&text, line == NULL ? NULL : PyUnicode_FromFormat("\n * %U", line));
        Py_XDECREF(line);
    }
    if (text != NULL)
        PyErr_SetObject(PyExc_TypeError, text);
    Py_XDECREF(text);
    Py_XDECREF(given);
}

/* Returns true, with TypeError, if a keyword matches no parameter or its parameter was also given by position. */
static bool refuse_names(const struct py_function *function, const struct py_signature *signature, const struct call *call)
{
    const int shift = call->self != NULL;
    for (Py_ssize_t i = 0; i < call->nnames; i++) {
        PyObject *name = PyTuple_GET_ITEM(call->names, i);
        int at = find_param(signature, shift, name);
        if (at < 0)
            PyErr_Format(PyExc_TypeError, "%s() got an unexpected keyword argument '%U'", function->name, name);
        else if (at < call->nargs + shift)
            PyErr_Format(PyExc_TypeError, "%s() got multiple values for argument '%U'", function->name, name);
        else
            continue;
        return true;
    }
    return false;
}

static void refuse_missing(const struct py_function *function, const struct py_signature *signature, const struct py_arguments *arguments)
{
    PyObject *text = NULL;
    int count = 0;
    for (int i = 0; i < signature->nparams; i++)
        if (arguments->objects[i] == NULL && !(signature->params[i].flags & PY_OPTIONAL)) {
            PyObject *name = PyUnicode_FromFormat("%s\"%s\"", count++ > 0 ? ", " : "", signature->params[i].name);
            if (text == NULL)
                text = name;
            else
                PyUnicode_AppendAndDel(&text, name);
        }
    if (text != NULL)
        PyErr_Format(PyExc_TypeError, "%s() missing %d required positional argument%s: %U", function->name, count, count == 1 ? "s" : "",
                     text); /* PyTorch says "arguments" for one missing argument and "argument" for several */
    Py_XDECREF(text);
}

/* Returns true with TypeError if `object` is a tuple or list with an element of the wrong kind. The error names the first such element. Otherwise
 * returns false without an exception. */
static bool refuse_element(const struct py_function *function, const struct py_param *param, PyObject *object, int at, const char *position)
{
    if (!PyTuple_Check(object) && !PyList_Check(object))
        return false;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(object); i++) {
        PyObject *item = PySequence_Fast_GET_ITEM(object, i);
        int64_t value;
        if (param->kind == GRD_KIND_TENSORS && !py_is_tensor(item))
            PyErr_Format(PyExc_TypeError, "expected Tensor as element %zd in argument %d, but got %s", i, at, type_text(item));
        else if (param->kind == GRD_KIND_DIMS && py_as_int(item, &value) == 0)
            PyErr_Format(PyExc_TypeError, "%s(): argument '%s'%s must be tuple of ints, but found element of type %s at pos %zd",
                         function->name, param->name, position, type_text(item), i);
        else
            continue;
        return true;
    }
    return false;
}

static void refuse_argument(const struct py_function *function, const struct py_signature *signature, const struct call *call,
                            const struct py_arguments *arguments, int at)
{
    const struct py_param *param = &signature->params[at];
    PyObject *object = arguments->objects[at];
    char position[32] = "";
    if (at < call->nargs + (call->self != NULL))
        PyOS_snprintf(position, sizeof position, " (position %d)", at + (call->self == NULL));
    if (!refuse_element(function, param, object, at, position))
        PyErr_Format(PyExc_TypeError, "%s(): argument '%s'%s must be %s, not %s", function->name, param->name, position, kind_text(param),
                     type_text(object));
}

static int count_required(const struct py_signature *signature)
{
    int required = 0;
    for (int i = 0; i < signature->nparams; i++)
        required += (signature->params[i].flags & PY_OPTIONAL) == 0;
    return required;
}

/* Returns the signature that accepts the number of arguments of the call, if exactly one does; NULL otherwise. */
static const struct py_signature *only_of_length(const struct py_function *function, const struct call *call)
{
    const struct py_signature *found = NULL;
    const Py_ssize_t given = call->nargs + call->nnames + (call->self != NULL);
    for (int i = 0; i < function->nsignatures; i++) {
        const struct py_signature *signature = &function->signatures[i];
        if (given < count_required(signature) || given > signature->nparams)
            continue;
        if (found != NULL)
            return NULL;
        found = signature;
    }
    return found;
}

/* Raises TypeError with the reason why the call does not fit `signature`. */
static void refuse_one(const struct py_function *function, const struct py_signature *signature, const struct call *call,
                       struct py_arguments *arguments)
{
    const int shift = call->self != NULL, allowed = signature->positional - shift, required = count_required(signature) - shift;
    if (refuse_names(function, signature, call))
        return;
    begin(signature, arguments);
    if (!place(signature, call, arguments)) {
        if (required != allowed)
            PyErr_Format(PyExc_TypeError, "%s() takes from %d to %d positional arguments but %zd were given", function->name, required,
                         allowed, call->nargs);
        else
            PyErr_Format(PyExc_TypeError, "%s() takes %d positional argument%s but %zd %s given", function->name, allowed,
                         allowed == 1 ? "" : "s", call->nargs, call->nargs == 1 ? "was" : "were");
        return;
    }
    int at;
    enum match match = convert_all(signature, arguments, &at);
    if (match == MATCH_NO && arguments->objects[at] == NULL)
        refuse_missing(function, signature, arguments);
    else if (match == MATCH_NO)
        refuse_argument(function, signature, call, arguments, at);
    py_arguments_done(arguments);
}

/* ---- Deprecated and other signatures ----------------------------------------------------------------------------- */

static bool is_in_order(const struct py_signature *signature)
{
    for (int i = 1; i < signature->nparams; i++)
        if (signature->order[i] < signature->order[i - 1])
            return false;
    return true;
}

static bool warn_deprecated(const struct py_function *function, const struct py_signature *signature, int first)
{
    PyObject *old = signature_text(signature, first), *now = signature_text(&function->signatures[0], first);
    const int failed = old == NULL || now == NULL
                           ? -1
                           : PyErr_WarnFormat(PyExc_UserWarning, 1,
                                              "This overload of %s is deprecated:\n\t%s%U\nConsider using one of the following signatures "
                                              "instead:\n\t%s%U",
                                              function->name, function->name, old, function->name, now);
    Py_XDECREF(old);
    Py_XDECREF(now);
    return failed == 0;
}

/* Tries the last `nothers` signatures of a function, most of which are deprecated. Returns MATCH_NO if none fits. If a signature fits
 * but has its parameters in another order than the operator, warns that this order is deprecated. */
static enum match match_other(const struct py_function *function, const struct call *call, struct py_arguments *arguments)
{
    for (int i = function->nsignatures; i < function->nsignatures + function->nothers; i++) {
        const struct py_signature *signature = &function->signatures[i];
        const enum match match = match_signature(signature, call, arguments);
        if (match == MATCH_NO)
            continue;
        if (match == MATCH_YES && !is_in_order(signature) && !warn_deprecated(function, signature, call->self != NULL)) {
            py_arguments_done(arguments);
            return MATCH_ERROR;
        }
        return match;
    }
    return MATCH_NO;
}

bool py_parse(const struct py_function *function, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names,
              struct py_arguments *ret_arguments)
{
    const struct call call = {self, args, nargs, names == NULL ? 0 : PyTuple_GET_SIZE(names), names};
    ret_arguments->function = function->name;
    for (int i = 0; i < function->nsignatures; i++) {
        enum match match = match_signature(&function->signatures[i], &call, ret_arguments);
        if (match != MATCH_NO)
            return match == MATCH_YES;
    }
    const enum match other = match_other(function, &call, ret_arguments);
    if (other != MATCH_NO)
        return other == MATCH_YES;
    const struct py_signature *one = function->nsignatures == 1 ? &function->signatures[0] : only_of_length(function, &call);
    if (one != NULL)
        refuse_one(function, one, &call, ret_arguments);
    else
        refuse_all(function, &call);
    return false;
}

bool py_parse_tuple(const struct py_function *function, PyObject *args, PyObject *keywords, struct py_arguments *ret_arguments)
{
    const Py_ssize_t nargs = PyTuple_GET_SIZE(args), nnames = keywords != NULL ? PyDict_GET_SIZE(keywords) : 0;
    PyObject *names = PyTuple_New(nnames), **given = PyMem_New(PyObject *, nargs + nnames + 1), *name, *value;
    bool ok = names != NULL && (given != NULL || PyErr_NoMemory() != NULL);
    for (Py_ssize_t i = 0; ok && i < nargs; i++)
        given[i] = PyTuple_GET_ITEM(args, i);
    for (Py_ssize_t i = 0, at = 0; ok && nnames > 0 && PyDict_Next(keywords, &at, &name, &value); i++) {
        PyTuple_SET_ITEM(names, i, Py_NewRef(name));
        given[nargs + i] = value;
    }
    ok = ok && py_parse(function, NULL, given, nargs, names, ret_arguments);
    PyMem_Free(given);
    Py_XDECREF(names);
    return ok;
}

bool py_accept(const struct py_function *function, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names,
               struct py_arguments *ret_arguments, PyObject **ret_result)
{
    *ret_result = NULL;
    if (!py_parse(function, self, args, nargs, names, ret_arguments))
        return false;
    if (PY_LIKELY(ret_arguments->noverloaded == 0 && !py_is_mode_active()))
        return true;
    *ret_result = py_call_overloaded(function, ret_arguments, self, args, nargs, names);
    py_arguments_done(ret_arguments);
    return false;
}
