/* Implements indexing: x[...] and x[...] = value.
 *
 * The index is parsed into a list of items, which are applied from left to right. Integers, slices and None make views. Index tensors, masks, lists
 * and arrays are collected for one call of index or index_put_ on the resulting view. As in PyTorch, an integer next to an index tensor makes a
 * view; NumPy would broadcast the integer with the index tensor. */
#include "index.h"
#include "dtype.h"
#include "errors.h"
#include "from_sequence.h"
#include "gil.h"
#include "override.h"
#include "scalar.h"
#include "gradus/ops/copy.h"
#include "gradus/ops/fill.h"
#include "gradus/ops/full.h"
#include "gradus/ops/index.h"
#include "gradus/ops/index_put.h"
#include "gradus/ops/masked_fill_tensor.h"
#include "gradus/ops/select.h"
#include "gradus/ops/slice.h"
#include "gradus/ops/to.h"
#include "gradus/ops/unsqueeze.h"
#include "gradus/ops/view.h"
#include "gradus/ops/zeros.h"
#include "gradus/transform.h"

enum item_kind { ITEM_INT, ITEM_SLICE, ITEM_NEW, ITEM_REST, ITEM_BOOL, ITEM_TENSOR };

struct slice {
    Py_ssize_t start, stop, step;
};

struct item {
    enum item_kind kind;
    union {
        int64_t number;
        bool boolean;
        struct slice slice;
        grd_tensor *tensor; /* borrowed from the innermost open scope or from a Python object in the index */
    } v;
};

/* Maximum number of items in an index: GRD_MAX_DIMS items that index a dimension, GRD_MAX_DIMS items that insert a dimension, and one ellipsis. */
enum { MAX_ITEMS = 2 * GRD_MAX_DIMS + 1 };

struct index {
    int n;
    int64_t taken; /* number of the tensor's dimensions that the items index, not counting an ellipsis */
    struct item items[MAX_ITEMS];
};

/* The elements that an index selects, given as a view and index tensors that are still to be applied to the view. */
struct selection {
    grd_tensor *view; /* view of the indexed tensor, or that tensor itself if no item made a view */
    int64_t n;
    grd_tensor *tensors[GRD_MAX_DIMS];
    int64_t dims[GRD_MAX_DIMS]; /* dims[i] is the first dimension of `view` that tensors[i] indexes */
    grd_scalar number;          /* value of x[...] = number */
};

/* ---- Reading ----------------------------------------------------------------------------------------------------- */

static bool refuse_item(PyObject *object)
{
    PyErr_Format(PyExc_IndexError,
                 "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices (got %s)",
                 Py_TYPE(object)->tp_name);
    return false;
}

/* True if an index tensor is a mask. As in PyTorch, uint8 tensors are masks as well as bool tensors. */
static bool is_mask(const grd_tensor *t)
{
    return grd_tensor_dtype(t) == GRD_BOOL || grd_tensor_dtype(t) == GRD_UINT8;
}

static bool read_number(PyObject *object, struct item *ret_item)
{
    int overflow;
    ret_item->kind = ITEM_INT;
    ret_item->v.number = PyLong_AsLongLongAndOverflow(object, &overflow);
    if (overflow != 0)
        PyErr_SetString(PyExc_ValueError, "Overflow when unpacking long long");
    return overflow == 0;
}

/* Converts a tensor in the index to an item. A 0-d tensor becomes an integer or a bool. Under vmap, a batch of 0-d integers becomes an index
 * tensor with one index for each element of the batch. Returns false with an error if the dtype cannot index. */
static bool read_tensor(grd_tensor *t, struct item *ret_item)
{
    const grd_dtype dtype = grd_tensor_dtype(t);
    if (!is_mask(t) && !grd_dtype_is_integer(dtype)) {
        PyErr_SetString(PyExc_IndexError, "tensors used as indices must be long, int, byte or bool tensors");
        return false;
    }
    if (dtype == GRD_UINT8 &&
        PyErr_WarnEx(PyExc_UserWarning, "indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead.", 1) < 0)
        return false;
    if (grd_ndim(t) > 0 || (grd_is_batched(t) && !is_mask(t))) {
        *ret_item = (struct item){.kind = ITEM_TENSOR, .v.tensor = t};
        return true;
    }
    const int64_t value = grd_item_int64(t);
    if (is_mask(t))
        *ret_item = (struct item){.kind = ITEM_BOOL, .v.boolean = value != 0};
    else
        *ret_item = (struct item){.kind = ITEM_INT, .v.number = value};
    return grd_ok();
}

/* Converts a list, an array, a NumPy scalar or an object with __index__ to an item of the index. Returns false with an exception. */
static bool read_other(PyObject *object, struct item *ret_item)
{
    grd_scalar scalar;
    int64_t number;
    if (PyUnicode_Check(object) || PyBytes_Check(object) || PyByteArray_Check(object))
        return refuse_item(object);
    if (PySequence_Check(object)) {
        grd_tensor *t = py_from_data(object, GRD_DTYPE_NONE);
        if (t == NULL)
            return false;
        if (grd_numel(t) == 0 && !is_mask(t))
            t = grd_to(t, .dtype = GRD_INT64);
        return grd_ok() && read_tensor(t, ret_item);
    }
    const int is_scalar = py_as_scalar(object, &scalar);
    if (is_scalar < 0)
        return false;
    if (is_scalar && scalar.kind == GRD_SCALAR_BOOL) {
        *ret_item = (struct item){.kind = ITEM_BOOL, .v.boolean = scalar.v.i != 0};
        return true;
    }
    const int is_number = py_as_int(object, &number);
    if (is_number <= 0)
        return is_number < 0 ? false : refuse_item(object);
    *ret_item = (struct item){.kind = ITEM_INT, .v.number = number};
    return true;
}

static bool read_item(PyObject *object, struct item *ret_item)
{
    if (PyLong_CheckExact(object))
        return read_number(object, ret_item);
    if (PySlice_Check(object)) {
        ret_item->kind = ITEM_SLICE;
        return PySlice_Unpack(object, &ret_item->v.slice.start, &ret_item->v.slice.stop, &ret_item->v.slice.step) == 0;
    }
    if (object == Py_None || object == Py_Ellipsis) {
        ret_item->kind = object == Py_None ? ITEM_NEW : ITEM_REST;
        return true;
    }
    if (PyBool_Check(object)) {
        *ret_item = (struct item){.kind = ITEM_BOOL, .v.boolean = object == Py_True};
        return true;
    }
    if (py_is_tensor(object))
        return read_tensor(py_tensor_of(object), ret_item);
    return PyLong_Check(object) ? read_number(object, ret_item) : read_other(object, ret_item);
}

/* Returns the number of dimensions that `item` indexes in the indexed tensor. A mask indexes as many dimensions as it has. Any other tensor, an
 * integer and a slice index 1. All other items, e.g. None and the ellipsis, index 0. */
static int64_t item_span(const struct item *item)
{
    if (item->kind == ITEM_TENSOR && is_mask(item->v.tensor))
        return grd_ndim(item->v.tensor);
    return item->kind == ITEM_INT || item->kind == ITEM_SLICE || item->kind == ITEM_TENSOR;
}

static bool refuse_many(int64_t ndim)
{
    PyErr_Format(PyExc_IndexError, "too many indices for tensor of dimension %lld", (long long)ndim);
    return false;
}

/* Returns false with IndexError if an item follows a second ellipsis, as in t[..., 0, ..., 1] for three-dimensional t. The first ellipsis already
 * skips all dimensions that no item indexes. If there are no such dimensions, any number of ellipses is valid, as in PyTorch. */
static bool check_ellipses(const struct index *index, int64_t ndim)
{
    int rests = 0;
    for (int i = 0; i < index->n && index->taken < ndim; i++) {
        rests += index->items[i].kind == ITEM_REST;
        if (rests > 1 && index->items[i].kind != ITEM_REST) {
            PyErr_SetString(PyExc_IndexError, "an index has one ellipsis ('...') at most before an item");
            return false;
        }
    }
    return true;
}

static bool read_index(PyObject *object, int64_t ndim, struct index *ret_index)
{
    const bool several = PyTuple_Check(object);
    const Py_ssize_t n = several ? PyTuple_GET_SIZE(object) : 1;
    if (n > MAX_ITEMS)
        return refuse_many(ndim);
    ret_index->n = (int)n;
    ret_index->taken = 0;
    for (Py_ssize_t i = 0; i < n; i++) {
        struct item *item = &ret_index->items[i];
        if (!read_item(several ? PyTuple_GET_ITEM(object, i) : object, item))
            return false;
        ret_index->taken += item_span(item);
    }
    if (ret_index->taken <= ndim)
        return check_ellipses(ret_index, ndim);
    if (ndim > 0 || ret_index->items[0].kind != ITEM_INT)
        return refuse_many(ndim);
    PyErr_SetString(PyExc_IndexError,
                    "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to convert "
                    "a 0-dim tensor to a number");
    return false;
}

/* ---- Applying ---------------------------------------------------------------------------------------------------- */

/* Returns t.select(dim, number). If `number` is out of range, raises IndexError, which names `original`, the index of this dimension in the tensor
 * that the user indexed. */
static grd_tensor *select_at(grd_tensor *t, int64_t dim, int64_t original, int64_t number)
{
    const int64_t size = grd_sizes(t).data[dim];
    if (PY_LIKELY(number >= -size && number < size))
        return grd_select(t, dim, number);
    PyErr_Format(PyExc_IndexError, "index %lld is out of bounds for dimension %lld with size %lld", (long long)number, (long long)original,
                 (long long)size);
    return NULL;
}

static grd_tensor *apply_slice(grd_tensor *t, int64_t dim, const struct slice *slice)
{
    if (slice->start == 0 && slice->step == 1 && slice->stop >= grd_sizes(t).data[dim])
        return t;
    return grd_slice(t, .dim = dim, .start = grd_int(slice->start), .end = grd_int(slice->stop), .step = slice->step);
}

/* Returns the index tensor for a bool in the index: [0] for True, [] for False. It indexes a new dimension of size 1, so the result has one
 * element or none along that dimension. */
static grd_tensor *index_of_bool(bool boolean)
{
    return grd_zeros(grd_dims(boolean ? 1 : 0), .dtype = GRD_INT64);
}

static bool add_index_tensor(struct selection *s, int64_t dim, grd_tensor *index)
{
    if (s->n == GRD_MAX_DIMS)
        return refuse_many(grd_ndim(s->view));
    s->tensors[s->n] = index;
    s->dims[s->n++] = dim;
    return true;
}

/* The position in the indexed tensor while the items of an index are applied from left to right. */
struct place {
    int64_t dim;      /* dimension of the view to which the next item applies */
    int64_t original; /* index of that dimension in the tensor that the user indexed */
    int64_t left;     /* number of dimensions that the remaining items index */
};

/* Applies `item`, one item of an index, to s->view, or adds the item's index tensor to `s`. Advances `place` behind the item. Returns false with
 * an error. */
static bool apply(struct selection *s, const struct item *item, struct place *place)
{
    const int64_t span = item->kind == ITEM_REST ? grd_ndim(s->view) - place->dim - place->left : item_span(item);
    bool named = true;
    switch (item->kind) {
    case ITEM_INT:
        s->view = select_at(s->view, place->dim, place->original, item->v.number);
        break;
    case ITEM_SLICE:
        s->view = apply_slice(s->view, place->dim++, &item->v.slice);
        break;
    case ITEM_REST:
        place->dim += span;
        place->left += span;
        break;
    case ITEM_NEW:
        s->view = grd_unsqueeze(s->view, place->dim++);
        break;
    case ITEM_BOOL:
        s->view = grd_unsqueeze(s->view, place->dim);
        named = add_index_tensor(s, place->dim++, index_of_bool(item->v.boolean));
        break;
    case ITEM_TENSOR:
        named = add_index_tensor(s, place->dim, item->v.tensor);
        place->dim += span;
        break;
    }
    place->original += span;
    place->left -= span;
    return named && s->view != NULL && grd_ok();
}

/* Reads the index `object`, i.e. what stands in x[...], and applies it to `t`. Returns false with an error. */
static bool select_index(grd_tensor *t, PyObject *object, struct selection *ret_selection)
{
    struct index index;
    if (!read_index(object, grd_ndim(t), &index))
        return false;
    struct place place = {.left = index.taken};
    ret_selection->view = t;
    ret_selection->n = 0;
    for (int i = 0; i < index.n; i++)
        if (!apply(ret_selection, &index.items[i], &place))
            return false;
    return true;
}

static grd_tensors named_tensors(const struct selection *s)
{
    return grd_tensors_from(s->tensors, s->n);
}

/* ---- __torch_function__ ------------------------------------------------------------------------------------------ */

static inline void add_overloaded(struct py_arguments *arguments, PyObject *object)
{
    if (!PyLong_CheckExact(object) && !PySlice_Check(object) && py_is_tensor(object) && py_has_override(object) &&
        arguments->noverloaded < PY_MAX_OVERLOADED)
        arguments->overloaded[arguments->noverloaded++] = object;
}

/* True if the __torch_function__ of a mode or of an argument's class takes over the call. The arguments are `self`, `index`, the items of `index`,
 * and `value`. Writes the arguments whose class has a __torch_function__ to ret_arguments. */
static bool find_overloaded(PyObject *self, PyObject *index, PyObject *value, struct py_arguments *ret_arguments)
{
    ret_arguments->noverloaded = 0;
    add_overloaded(ret_arguments, self);
    add_overloaded(ret_arguments, index);
    for (Py_ssize_t i = 0; PyTuple_Check(index) && i < PyTuple_GET_SIZE(index); i++)
        add_overloaded(ret_arguments, PyTuple_GET_ITEM(index, i));
    if (value != NULL)
        add_overloaded(ret_arguments, value);
    return ret_arguments->noverloaded > 0 || py_is_mode_active();
}

/* Descriptions of the methods Tensor.__getitem__ and Tensor.__setitem__. __torch_function__ gets one of these methods as its argument `func`. */
static const struct py_function get_function = {.name = "__getitem__", .home = PY_METHOD};
static const struct py_function set_function = {.name = "__setitem__", .home = PY_METHOD};

/* ---- Work without the GIL ---------------------------------------------------------------------------------------- */

static void keep_all(const struct selection *s)
{
    grd_keep(s->view);
    for (int64_t i = 0; i < s->n; i++)
        grd_keep(s->tensors[i]);
}

static void drop_all(const struct selection *s)
{
    grd_drop(s->view);
    for (int64_t i = 0; i < s->n; i++)
        grd_drop(s->tensors[i]);
}

/* Calls access(s, value), which reads or writes the selected elements. Releases the GIL during the call if the view has at least PY_MUCH elements. */
static grd_tensor *run(grd_tensor *(*access)(const struct selection *s, grd_tensor *value), const struct selection *s, grd_tensor *value)
{
    if (grd_numel(s->view) < PY_MUCH)
        return access(s, value);
    keep_all(s);
    grd_keep(value);
    PyThreadState *state = py_begin_work();
    grd_tensor *result = access(s, value);
    py_end_work(state);
    grd_drop(value);
    drop_all(s);
    return result;
}

/* ---- Reading elements -------------------------------------------------------------------------------------------- */

/* Implements reading x[...]: returns the elements of s->view that the index tensors in `s` select. */
static grd_tensor *get_named(const struct selection *s, grd_tensor *unused)
{
    (void)unused;
    return grd_index(s->view, named_tensors(s), .dims = grd_dims_from(s->dims, s->n));
}

PyObject *py_get_item(PyObject *self, PyObject *index)
{
    struct py_arguments arguments;
    struct selection s;
    grd_tensor *t = py_tensor_of(self);
    if (PyLong_CheckExact(index) && PY_LIKELY(py_is_exact_no_mode(self)) && grd_ndim(t) > 0) {
        struct item item;
        const grd_scope scope = grd_scope_open();
        grd_tensor *result = read_number(index, &item) ? select_at(t, 0, 0, item.v.number) : NULL;
        return PY_LIKELY(result != NULL) ? py_take(scope, result) : py_abandon(scope);
    }
    if (find_overloaded(self, index, NULL, &arguments))
        return py_call_overloaded(&get_function, &arguments, self, &index, 1, NULL);
    const grd_scope scope = grd_scope_open();
    if (!select_index(t, index, &s))
        return py_abandon(scope);
    if (s.n > 0)
        return py_take(scope, run(get_named, &s, NULL));
    /* The result of x[...] is always a new tensor that shares memory with x, never x itself. */
    return py_take(scope, s.view != t ? s.view : grd_ndim(t) > 0 ? grd_slice(t) : grd_view(t, GRD_NO_DIMS));
}

/* ---- Writing elements -------------------------------------------------------------------------------------------- */

/* Removes leading dimensions of size 1 while `t` has more than `ndim` dimensions, so that x[0] = y accepts a `y` with an extra leading dimension. */
static grd_tensor *without_leading_ones(grd_tensor *t, int64_t ndim)
{
    const grd_dims sizes = grd_sizes(t);
    int64_t ones = 0;
    while (sizes.n - ones > ndim && sizes.data[ones] == 1)
        ones++;
    return ones > 0 ? grd_view(t, grd_dims_from(sizes.data + ones, sizes.n - ones)) : t;
}

/* If the index is a single bool mask, returns the mask with dimensions of size 1 appended, so that it broadcasts to the view. Returns NULL if the index
 * is no single mask or if the mask does not have the sizes of the dimensions that it selects from. Returns grd_failed on failure. */
static grd_tensor *single_mask(const struct selection *s)
{
    if (s->n != 1 || grd_tensor_dtype(s->tensors[0]) != GRD_BOOL)
        return NULL;
    const grd_dims mask = grd_sizes(s->tensors[0]), sizes = grd_sizes(s->view);
    int64_t aligned[GRD_MAX_DIMS];
    for (int64_t i = s->dims[0]; i < sizes.n; i++) {
        const int64_t at = i - s->dims[0];
        if (at < mask.n && mask.data[at] != sizes.data[i])
            return NULL;
        aligned[at] = at < mask.n ? mask.data[at] : 1;
    }
    return s->dims[0] + mask.n > sizes.n ? NULL : grd_view(s->tensors[0], grd_dims_from(aligned, sizes.n - s->dims[0]));
}

static grd_tensor *put_tensor(const struct selection *s, grd_tensor *value)
{
    if (s->n == 0)
        return grd_copy_(s->view, without_leading_ones(value, grd_ndim(s->view)));
    value = grd_to(value, .device = grd_tensor_device(s->view));
    grd_tensor *const mask = grd_numel(value) == 1 ? single_mask(s) : NULL;
    if (mask != NULL)
        return grd_masked_fill_tensor_(s->view, mask, grd_view(value, GRD_NO_DIMS));
    return grd_index_put_(s->view, named_tensors(s), without_leading_ones(value, 0), .dims = grd_dims_from(s->dims, s->n));
}

static grd_tensor *put_number(const struct selection *s, grd_tensor *unused)
{
    (void)unused;
    if (s->n > 0)
        return put_tensor(s, grd_full(GRD_NO_DIMS, s->number, .dtype = grd_tensor_dtype(s->view)));
    return grd_fill_(s->view, s->number);
}

static bool refuse_value(const grd_tensor *t, PyObject *value)
{
    PyErr_Format(PyExc_TypeError, "can't assign a %s to a torch.%sTensor", Py_TYPE(value)->tp_name,
                 py_dtype_tensor_name(grd_tensor_dtype(t)));
    return false;
}

/* Writes `value` (a number, a tensor, an array or nested sequences of these) to the selected elements. Returns false with an exception. */
static bool put(grd_tensor *t, struct selection *s, PyObject *value)
{
    grd_tensor *tensor = py_is_tensor(value) ? py_tensor_of(value) : NULL;
    const int is_number = tensor == NULL ? py_as_scalar(value, &s->number) : 0;
    const bool too_large = is_number < 0 ? PyErr_ExceptionMatches(PyExc_OverflowError)
                                         : is_number > 0 && s->number.kind == GRD_SCALAR_UINT && grd_tensor_dtype(t) != GRD_UINT64;
    if (too_large)
        PyErr_SetString(PyExc_ValueError, "Overflow when unpacking long long");
    if (is_number < 0 || too_large)
        return false;
    if (tensor == NULL && !is_number) {
        if (PyUnicode_Check(value) || PyBytes_Check(value) || !PySequence_Check(value))
            return refuse_value(t, value);
        tensor = py_from_data(value, GRD_DTYPE_NONE);
        if (tensor != NULL)
            tensor = grd_to(tensor, .dtype = grd_tensor_dtype(t));
        if (tensor == NULL)
            return false;
    }
    run(is_number ? put_number : put_tensor, s, tensor);
    return grd_ok();
}

int py_set_item(PyObject *self, PyObject *index, PyObject *value)
{
    struct py_arguments arguments;
    struct selection s;
    grd_tensor *t = py_tensor_of(self);
    if (value == NULL) {
        PyErr_SetString(PyExc_TypeError, "Tensor does not support deleting items");
        return -1;
    }
    if (find_overloaded(self, index, value, &arguments)) {
        PyObject *result = py_call_overloaded(&set_function, &arguments, self, (PyObject *const[]){index, value}, 2, NULL);
        Py_XDECREF(result);
        return result != NULL ? 0 : -1;
    }
    const grd_scope scope = grd_scope_open();
    if (!select_index(t, index, &s) || !put(t, &s, value)) {
        py_abandon(scope);
        return -1;
    }
    grd_scope_close(scope);
    return 0;
}
