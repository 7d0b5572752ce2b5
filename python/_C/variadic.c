/* Implements the functions with any number of shapes or tensors as arguments: broadcast_shapes, broadcast_tensors, block_diag, cartesian_prod,
 * meshgrid. */
#include "override.h"
#include "parse.h"
#include "scalar.h"
#include "size.h"
#include "tables.h"
#include "gradus/ops/block_diag.h"
#include "gradus/ops/broadcast_tensors.h"
#include "gradus/ops/cartesian_prod.h"
#include "gradus/ops/meshgrid.h"

/* ---- broadcast_shapes -------------------------------------------------------------------------------------------- */

/* Converts a shape, given as an int or a sequence of ints, to ret_sizes. Returns the number of sizes; -1 with an exception. */
static int64_t read_shape(PyObject *shape, int64_t *ret_sizes)
{
    const int is_int = py_as_int(shape, &ret_sizes[0]);
    if (is_int != 0)
        return is_int;
    PyObject *items = PySequence_Fast(shape, "Input shapes should be of type ints, a tuple of ints, or a list of ints");
    if (items == NULL)
        return -1;
    Py_ssize_t n = PySequence_Fast_GET_SIZE(items);
    if (n > GRD_MAX_DIMS) {
        PyErr_Format(PyExc_RuntimeError, "a shape has at most %d dimensions, got %zd", GRD_MAX_DIMS, n);
        n = -1;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *item = PySequence_Fast_GET_ITEM(items, i);
        const int item_is_int = py_as_int(item, &ret_sizes[i]);
        if (item_is_int == 0)
            PyErr_Format(PyExc_TypeError, "torch.Size() takes an iterable of 'int' (item %zd is '%s')", i, Py_TYPE(item)->tp_name);
        if (item_is_int <= 0)
            n = -1;
    }
    Py_DECREF(items);
    return n;
}

/* Returns the last n entries of `sizes`, or all of them if there are fewer. */
static grd_dims last_sizes(grd_dims sizes, int64_t n)
{
    return n < sizes.n ? grd_dims_from(sizes.data + sizes.n - n, n) : sizes;
}

/* Raises PyTorch's RuntimeError for argument i, whose shape `sizes` does not broadcast with `common`, the broadcast shape of the earlier
 * arguments. PyTorch broadcasts from the last dimension to the first. So the text shows `common` with the dimensions to the right of the mismatch
 * already broadcast with `sizes`. Always returns NULL. */
static PyObject *refuse_shape(int64_t *common, int64_t ncommon, grd_dims sizes, Py_ssize_t i, PyObject *argument)
{
    int64_t merged[GRD_MAX_DIMS], n, back = 1;
    grd_error_clear();
    for (; grd_broadcast_shapes(last_sizes(grd_dims_from(common, ncommon), back), last_sizes(sizes, back), merged, &n); back++)
        memcpy(common + ncommon - n, merged, (size_t)n * sizeof *merged);
    grd_error_clear();
    PyObject *shape = py_size(grd_dims_from(common, ncommon)), *expected = shape != NULL ? PySequence_List(shape) : NULL;
    Py_XDECREF(shape);
    if (expected != NULL)
        PyErr_Format(PyExc_RuntimeError,
                     "Attempting to broadcast a dimension of length %lld at -%lld! Mismatching argument at index %zd had %R; but expected "
                     "shape should be broadcastable to %R",
                     (long long)sizes.data[sizes.n - back], (long long)back, i, argument, expected);
    Py_XDECREF(expected);
    return NULL;
}

static PyObject *broadcast_shapes(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs)
{
    int64_t common[GRD_MAX_DIMS], merged[GRD_MAX_DIMS], ncommon = 0, nmerged;
    for (Py_ssize_t i = 0; i < nargs; i++) {
        int64_t sizes[GRD_MAX_DIMS];
        const int64_t n = read_shape(args[i], sizes);
        if (n < 0)
            return NULL;
        for (int64_t dim = 0; dim < n; dim++)
            if (sizes[dim] < 0)
                return PyErr_Format(PyExc_ValueError, "Attempting to broadcast a dimension with negative length!");
        const grd_dims shape = grd_dims_from(sizes, n);
        if (!grd_broadcast_shapes(grd_dims_from(common, ncommon), shape, merged, &nmerged))
            return refuse_shape(common, ncommon, shape, i, args[i]);
        ncommon = nmerged;
        memcpy(common, merged, (size_t)ncommon * sizeof *common);
    }
    return py_size(grd_dims_from(common, ncommon));
}

/* ---- Functions of any number of tensors -------------------------------------------------------------------------- */

/* Returns an array of the tensors of n objects, to be freed with PyMem_Free. Returns NULL with TypeError for the first object that is not a tensor,
 * or with MemoryError. */
static grd_tensor **read_tensors(PyObject *const *items, Py_ssize_t n)
{
    grd_tensor **tensors = PyMem_New(grd_tensor *, n > 0 ? n : 1);
    if (tensors == NULL)
        PyErr_NoMemory();
    for (Py_ssize_t i = 0; tensors != NULL && i < n; i++) {
        if (py_is_tensor(items[i])) {
            tensors[i] = py_tensor_of(items[i]);
            continue;
        }
        PyErr_Format(PyExc_TypeError, "expected Tensor as element %zd in argument 0, but got %s", i, Py_TYPE(items[i])->tp_name);
        PyMem_Free(tensors);
        tensors = NULL;
    }
    return tensors;
}

/* The arguments of a Python call, in the form that py_call_overloaded needs. `tensors` are the n tensors among them. */
struct call {
    const char *name;
    PyObject *const *tensors;
    Py_ssize_t n;
    PyObject *const *args;
    Py_ssize_t nargs;
    PyObject *names;
};

/* True if the __torch_function__ of a mode, or of the class of a tensor argument, takes over the call. Then *ret_result is the result, or NULL with
 * an exception. */
static bool is_taken_over(const struct call *call, PyObject **ret_result)
{
    struct py_arguments arguments = {.noverloaded = 0};
    for (Py_ssize_t i = 0; i < call->n; i++)
        if (py_has_override(call->tensors[i]))
            py_note_overloaded(call->tensors[i], &arguments);
    if (PY_LIKELY(arguments.noverloaded == 0 && !py_is_mode_active()))
        return false;
    const struct py_function function = {.name = call->name, .home = PY_FUNCTION};
    *ret_result = py_call_overloaded(&function, &arguments, NULL, call->args, call->nargs, call->names);
    return true;
}

static PyObject *broadcast_tensors(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs)
{
    PyObject *result;
    if (is_taken_over(&(struct call){"broadcast_tensors", args, nargs, args, nargs, NULL}, &result))
        return result;
    grd_tensor **tensors = read_tensors(args, nargs);
    if (tensors == NULL)
        return NULL;
    grd_scope scope = grd_scope_open();
    PyObject *views = py_take_tuple(scope, grd_broadcast_tensors(grd_tensors_from(tensors, nargs)));
    PyMem_Free(tensors);
    return views;
}

/* Implements a function of any number of tensors with one result, such as block_diag: returns call(tensors). */
static PyObject *join(const char *name, PyObject *const *args, Py_ssize_t nargs, grd_tensor *(*call)(grd_tensors))
{
    PyObject *result;
    if (is_taken_over(&(struct call){name, args, nargs, args, nargs, NULL}, &result))
        return result;
    grd_tensor **tensors = read_tensors(args, nargs);
    if (tensors == NULL)
        return NULL;
    grd_scope scope = grd_scope_open();
    PyObject *joined = py_take(scope, call(grd_tensors_from(tensors, nargs)));
    PyMem_Free(tensors);
    return joined;
}

static PyObject *block_diag(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs)
{
    return join("block_diag", args, nargs, grd_block_diag);
}

static PyObject *cartesian_prod(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs)
{
    return join("cartesian_prod", args, nargs, grd_cartesian_prod);
}

/* Returns the tuple of grids that torch.meshgrid returns for the tensors of `call`. */
static PyObject *grid(const struct call *call, const char *indexing)
{
    PyObject *result;
    if (is_taken_over(call, &result))
        return result;
    grd_tensor **tensors = read_tensors(call->tensors, call->n);
    if (tensors == NULL)
        return NULL;
    grd_scope scope = grd_scope_open();
    PyObject *views = py_take_tuple(scope, grd_meshgrid(grd_tensors_from(tensors, call->n), .indexing = indexing));
    PyMem_Free(tensors);
    return views;
}

static const struct py_param meshgrid_params[] = {{"indexing", GRD_KIND_STRING, PY_OPTION, "None"}};
static const struct py_signature meshgrid_signature = {.params = meshgrid_params, .nparams = 1, .positional = 0};
static const struct py_function meshgrid_function = {.name = "meshgrid", .signatures = &meshgrid_signature, .nsignatures = 1};

/* Implements meshgrid(*tensors, indexing="ij"). The argument parser converts only the keyword; the tensors are read here, because their number is
 * not limited. */
static PyObject *meshgrid(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    struct py_arguments arguments;
    if (!py_parse(&meshgrid_function, NULL, args + nargs, 0, names, &arguments))
        return NULL;
    const char *indexing = arguments.values[0].kind == GRD_KIND_STRING ? arguments.values[0].v.string : "ij";
    py_arguments_done(&arguments);
    if (nargs != 1 || py_is_tensor(args[0]))
        return grid(&(struct call){"meshgrid", args, nargs, args, nargs, names}, indexing);
    PyObject *list = PySequence_Fast(args[0], "meshgrid(): argument 'tensors' must be Tensors");
    PyObject *views = NULL;
    if (list != NULL)
        views = grid(&(struct call){"meshgrid", PySequence_Fast_ITEMS(list), PySequence_Fast_GET_SIZE(list), args, nargs, names}, indexing);
    Py_XDECREF(list);
    return views;
}

PyMethodDef py_variadic_functions[] = {
    {"broadcast_shapes", (PyCFunction)(void (*)(void))broadcast_shapes, METH_FASTCALL,
     "broadcast_shapes($module, *shapes)\n--\n\nThe sizes that tensors of these sizes broadcast to. RuntimeError when they do not.\n\n"
     ">>> import gradus as torch\n>>> torch.broadcast_shapes((2, 1), (3,))\ntorch.Size([2, 3])"},
    {"block_diag", (PyCFunction)(void (*)(void))block_diag, METH_FASTCALL,
     "block_diag($module, *tensors)\n--\n\nZeros with matrices, vectors as rows and numbers as (1, 1), along the diagonal.\n\n"
     ">>> import gradus as torch\n>>> torch.block_diag(torch.tensor([1, 2]), torch.tensor(3))\ntensor([[1, 2, 0],\n        [0, 0, 3]])"},
    {"cartesian_prod", (PyCFunction)(void (*)(void))cartesian_prod, METH_FASTCALL,
     "cartesian_prod($module, *tensors)\n--\n\nEvery choice of one element from each vector, a row each; one vector alone is itself the "
     "result.\n\n"
     ">>> import gradus as torch\n>>> torch.cartesian_prod(torch.tensor([1, 2]), torch.tensor([3, 4])).shape\ntorch.Size([4, 2])"},
    {"broadcast_tensors", (PyCFunction)(void (*)(void))broadcast_tensors, METH_FASTCALL,
     "broadcast_tensors($module, *tensors)\n--\n\nViews of the tensors in the sizes they broadcast to; one that has these is itself there. "
     "RuntimeError when they do not "
     "broadcast."},
    PY_ENTRY(
        "meshgrid", meshgrid,
        "meshgrid($module, *tensors, indexing='ij')\n--\n\nOne view for each tensor of 0 or 1 dimensions, repeated along a dimension for "
        "each of the others; 'xy' exchanges the first two dimensions.\nRuntimeError when dtypes differ or a tensor has more dimensions."),
    {NULL, NULL, 0, NULL},
};
