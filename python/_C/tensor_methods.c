/* Defines the table of the hand-written methods of Tensor, and implements the methods that only read properties of a tensor. Methods that compute are
 * generated. */
#include "tensor_methods.h"
#include "dtype.h"
#include "errors.h"
#include "gil.h"
#include "override.h"
#include "parse.h"
#include "scalar.h"
#include "size.h"
#include "tables.h"
#include "tensor_slots.h"
#include "gradus/ops/flip.h"

#define SELF                                                                                                                               \
    {                                                                                                                                      \
        "self", GRD_KIND_TENSOR, 0, NULL                                                                                                   \
    }

/* ---- Geometry ---------------------------------------------------------------------------------------------------- */

static const struct py_param dim_params[] = {SELF, {"dim", GRD_KIND_INT, PY_OPTIONAL | PY_NONE, "None"}};
static const struct py_signature dim_signature = {.params = dim_params, .nparams = 2, .nvalues = 2, .positional = 2};
static const struct py_function size_function = {.name = "size", .signatures = &dim_signature, .nsignatures = 1, .home = PY_METHOD};
static const struct py_function stride_function = {.name = "stride", .signatures = &dim_signature, .nsignatures = 1, .home = PY_METHOD};

typedef int64_t length_function(const grd_tensor *t, int64_t dim);

static PyObject *length_at(PyObject *self, int64_t dim, length_function *length)
{
    grd_tensor *t = py_tensor_of(self);
    if (grd_ndim(t) == 0)
        return PyErr_Format(PyExc_IndexError, "Dimension specified as %lld but tensor has no dimensions", (long long)dim);
    const int64_t value = length(t, dim);
    return PY_LIKELY(grd_ok()) ? PyLong_FromLongLong(value) : py_raise();
}

/* Implements size() and stride(): returns the value for one dimension if `dim` is given, otherwise all values. */
static PyObject *lengths(const struct py_function *function, length_function *length, PyObject *(*all)(PyObject *), PyObject *self,
                         PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    if (PY_LIKELY(names == NULL && !py_is_overloaded(self))) {
        int64_t dim;
        if (nargs == 0)
            return all(self);
        if (nargs == 1 && PyLong_CheckExact(args[0]))
            return py_as_int(args[0], &dim) > 0 ? length_at(self, dim, length) : NULL;
    }
    struct py_arguments arguments;
    PyObject *result;
    if (!py_accept(function, self, args, nargs, names, &arguments, &result))
        return result;
    const grd_value dim = arguments.values[1];
    py_arguments_done(&arguments);
    return dim.kind == GRD_KIND_INT ? length_at(self, dim.v.integer, length) : all(self);
}

static PyObject *all_sizes(PyObject *self)
{
    return py_size(grd_sizes(py_tensor_of(self)));
}

static PyObject *all_strides(PyObject *self)
{
    const grd_dims strides = grd_strides(py_tensor_of(self));
    PyObject *tuple = PyTuple_New(strides.n);
    for (Py_ssize_t i = 0; tuple != NULL && i < strides.n; i++) {
        PyObject *stride = PyLong_FromLongLong(strides.data[i]);
        if (stride == NULL)
            Py_CLEAR(tuple);
        else
            PyTuple_SET_ITEM(tuple, i, stride);
    }
    return tuple;
}

static PyObject *tensor_size(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    return lengths(&size_function, grd_size, all_sizes, self, args, nargs, names);
}

static PyObject *tensor_stride(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    return lengths(&stride_function, grd_stride, all_strides, self, args, nargs, names);
}

static PyObject *tensor_dim(PyObject *self, PyObject *Py_UNUSED(none))
{
    if (PY_UNLIKELY(py_is_overloaded(self)))
        return py_override(self, "dim", NULL, 0, NULL);
    return PyLong_FromLongLong(grd_ndim(py_tensor_of(self)));
}

static PyObject *tensor_numel(PyObject *self, PyObject *Py_UNUSED(none))
{
    if (PY_UNLIKELY(py_is_overloaded(self)))
        return py_override(self, "numel", NULL, 0, NULL);
    return PyLong_FromLongLong(grd_numel(py_tensor_of(self)));
}

static PyObject *tensor_element_size(PyObject *self, PyObject *Py_UNUSED(none))
{
    if (PY_UNLIKELY(py_is_overloaded(self)))
        return py_override(self, "element_size", NULL, 0, NULL);
    return PyLong_FromLongLong(grd_dtype_size(grd_tensor_dtype(py_tensor_of(self))));
}

static PyObject *tensor_storage_offset(PyObject *self, PyObject *Py_UNUSED(none))
{
    if (PY_UNLIKELY(py_is_overloaded(self)))
        return py_override(self, "storage_offset", NULL, 0, NULL);
    return PyLong_FromLongLong(grd_offset(py_tensor_of(self)));
}

/* Implements data_ptr(): returns the address of the first element, or 0 if there are no elements. */
static PyObject *tensor_data_ptr(PyObject *self, PyObject *Py_UNUSED(none))
{
    if (PY_UNLIKELY(py_is_overloaded(self)))
        return py_override(self, "data_ptr", NULL, 0, NULL);
    grd_tensor *t = py_tensor_of(self);
    void *data = grd_numel(t) > 0 ? grd_data(t) : NULL;
    return grd_ok() ? PyLong_FromVoidPtr(data) : py_raise();
}

/* Implements get_device(): returns the index of the device, which is -1 for the CPU and meta. */
static PyObject *tensor_get_device(PyObject *self, PyObject *Py_UNUSED(none))
{
    if (PY_UNLIKELY(py_is_overloaded(self)))
        return py_override(self, "get_device", NULL, 0, NULL);
    return PyLong_FromLong(grd_tensor_device(py_tensor_of(self)).index);
}

static const struct py_param format_params[] = {
    SELF, {"memory_format", PY_KIND_MEMORY_FORMAT, PY_OPTIONAL | PY_KEYWORD, "torch.contiguous_format"}};
static const struct py_signature format_signature = {.params = format_params, .nparams = 2, .nvalues = 1, .positional = 1};
static const struct py_function is_contiguous_function = {
    .name = "is_contiguous", .signatures = &format_signature, .nsignatures = 1, .home = PY_METHOD};

static PyObject *tensor_is_contiguous(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    grd_tensor *t = py_tensor_of(self);
    if (PY_LIKELY(nargs == 0 && names == NULL && !py_is_overloaded(self)))
        return PyBool_FromLong(grd_is_contiguous(t));
    struct py_arguments arguments;
    PyObject *result;
    if (!py_accept(&is_contiguous_function, self, args, nargs, names, &arguments, &result))
        return result;
    PyObject *format = arguments.objects[1];
    const int ndim = format != NULL ? py_memory_format_ndim(format) : 0;
    const bool is_contiguous = ndim == 0 ? grd_is_contiguous(t) : grd_ndim(t) == ndim && grd_is_channels_last(t);
    py_arguments_done(&arguments);
    return PyBool_FromLong(is_contiguous);
}

/* ---- Dtype ------------------------------------------------------------------------------------------------------- */

static PyObject *tensor_is_floating_point(PyObject *self, PyObject *Py_UNUSED(none))
{
    if (PY_UNLIKELY(py_is_overloaded(self)))
        return py_override(self, "is_floating_point", NULL, 0, NULL);
    return PyBool_FromLong(grd_dtype_is_floating(grd_tensor_dtype(py_tensor_of(self))));
}

static PyObject *tensor_is_complex(PyObject *self, PyObject *Py_UNUSED(none))
{
    if (PY_UNLIKELY(py_is_overloaded(self)))
        return py_override(self, "is_complex", NULL, 0, NULL);
    return PyBool_FromLong(grd_dtype_is_complex(grd_tensor_dtype(py_tensor_of(self))));
}

static PyObject *tensor_is_signed(PyObject *self, PyObject *Py_UNUSED(none))
{
    if (PY_UNLIKELY(py_is_overloaded(self)))
        return py_override(self, "is_signed", NULL, 0, NULL);
    return PyBool_FromLong(py_dtype_is_signed(grd_tensor_dtype(py_tensor_of(self))));
}

static PyObject *tensor_is_conj(PyObject *self, PyObject *Py_UNUSED(none))
{
    if (PY_UNLIKELY(py_is_overloaded(self)))
        return py_override(self, "is_conj", NULL, 0, NULL);
    return PyBool_FromLong(grd_is_conj(py_tensor_of(self)));
}

static PyObject *tensor_is_neg(PyObject *self, PyObject *Py_UNUSED(none))
{
    if (PY_UNLIKELY(py_is_overloaded(self)))
        return py_override(self, "is_neg", NULL, 0, NULL);
    return PyBool_FromLong(grd_is_neg(py_tensor_of(self)));
}

static PyObject *tensor_is_inference(PyObject *self, PyObject *Py_UNUSED(none))
{
    if (PY_UNLIKELY(py_is_overloaded(self)))
        return py_override(self, "is_inference", NULL, 0, NULL);
    Py_RETURN_FALSE;
}

static PyObject *itself(PyObject *self, PyObject *Py_UNUSED(none))
{
    Py_INCREF(self);
    return self;
}

/* ---- Values ------------------------------------------------------------------------------------------------------ */

static PyObject *tensor_item(PyObject *self, PyObject *Py_UNUSED(none))
{
    if (PY_UNLIKELY(py_is_overloaded(self)))
        return py_override(self, "item", NULL, 0, NULL);
    return py_item(py_tensor_of(self));
}

static PyObject *tensor_complex(PyObject *self, PyObject *Py_UNUSED(none))
{
    if (PY_UNLIKELY(py_is_overloaded(self)))
        return py_override(self, "__complex__", NULL, 0, NULL);
    grd_tensor *t = py_tensor_of(self);
    if (grd_numel(t) != 1)
        return PyErr_Format(PyExc_ValueError, "only one element tensors can be converted to Python scalars");
    PyObject *item = py_item(t);
    PyObject *number = item != NULL ? PyObject_CallFunctionObjArgs((PyObject *)&PyComplex_Type, item, NULL) : NULL;
    Py_XDECREF(item);
    return number;
}

static PyObject *tensor_is_nonzero(PyObject *self, PyObject *Py_UNUSED(none))
{
    if (PY_UNLIKELY(py_is_overloaded(self)))
        return py_override(self, "is_nonzero", NULL, 0, NULL);
    const int truth = py_tensor_bool(self);
    return truth < 0 ? NULL : PyBool_FromLong(truth);
}

static PyObject *tensor_reversed(PyObject *self, PyObject *Py_UNUSED(none))
{
    if (PY_UNLIKELY(py_is_overloaded(self)))
        return py_override(self, "__reversed__", NULL, 0, NULL);
    grd_tensor *t = py_tensor_of(self);
    if (grd_ndim(t) == 0)
        return itself(self, NULL);
    grd_scope scope = grd_scope_open();
    return py_take(scope, grd_flip(t, grd_dims(0)));
}

/* ---- Gradients --------------------------------------------------------------------------------------------------- */

static const struct py_param requires_params[] = {SELF, {"requires_grad", GRD_KIND_BOOL, PY_OPTIONAL, "True"}};
static const struct py_signature requires_signature = {.params = requires_params, .nparams = 2, .nvalues = 2, .positional = 2};
static const struct py_function requires_function = {
    .name = "requires_grad_", .signatures = &requires_signature, .nsignatures = 1, .home = PY_METHOD};

static PyObject *tensor_requires_grad_(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    struct py_arguments arguments;
    PyObject *result;
    if (!py_accept(&requires_function, self, args, nargs, names, &arguments, &result))
        return result;
    grd_set_requires_grad(py_tensor_of(self), py_bool_or(&arguments, 1, true));
    py_arguments_done(&arguments);
    return grd_ok() ? itself(self, NULL) : py_raise();
}

static PyObject *tensor_detach_(PyObject *self, PyObject *Py_UNUSED(none))
{
    if (PY_UNLIKELY(py_is_overloaded(self)))
        return py_override(self, "detach_", NULL, 0, NULL);
    py_begin_change();
    grd_detach_(py_tensor_of(self));
    py_end_change();
    return grd_ok() ? itself(self, NULL) : py_raise();
}

static PyObject *tensor_is_view(PyObject *self, PyObject *Py_UNUSED(none))
{
    if (PY_UNLIKELY(py_is_overloaded(self)))
        return py_override(self, "_is_view", NULL, 0, NULL);
    return PyBool_FromLong(grd_view_base(py_tensor_of(self)) != NULL);
}

/* ---- Memory ------------------------------------------------------------------------------------------------------ */

static PyObject *refuse_pinning(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    if (PY_UNLIKELY(py_is_overloaded(self)))
        return py_override(self, "pin_memory", args, nargs, names);
    return PyErr_Format(PyExc_RuntimeError, "Cannot access accelerator device when none is available.");
}

static PyObject *is_pinned(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    if (PY_UNLIKELY(py_is_overloaded(self)))
        return py_override(self, "is_pinned", args, nargs, names);
    Py_RETURN_FALSE;
}

/* ---- The table --------------------------------------------------------------------------------------------------- */

#define EXAMPLE "\n\n>>> import gradus as torch\n"
#define FORMAT "\nmemory_format: the order of dimensions of the result; torch.preserve_format keeps that of the tensor."

PyMethodDef py_tensor_methods[] = {
    PY_ENTRY("size", tensor_size,
             "size($self, dim=None)\n--\n\nThe sizes of all dimensions, or of one. IndexError when there is no such dimension." EXAMPLE
             ">>> torch.zeros(2, 3).size(1)\n3"),
    PY_ENTRY("stride", tensor_stride,
             "stride($self, dim=None)\n--\n\nHow many elements lie between neighbours along each dimension, or along one." EXAMPLE
             ">>> torch.zeros(2, 3).stride()\n(3, 1)"),
    {"dim", tensor_dim, METH_NOARGS, "dim($self)\n--\n\nThe number of dimensions."},
    {"ndimension", tensor_dim, METH_NOARGS, "ndimension($self)\n--\n\nThe number of dimensions."},
    {"numel", tensor_numel, METH_NOARGS, "numel($self)\n--\n\nThe number of elements."},
    {"nelement", tensor_numel, METH_NOARGS, "nelement($self)\n--\n\nThe number of elements."},
    {"element_size", tensor_element_size, METH_NOARGS, "element_size($self)\n--\n\nBytes of one element."},
    {"storage_offset", tensor_storage_offset, METH_NOARGS,
     "storage_offset($self)\n--\n\nHow many elements lie between the start of the storage and the first element."},
    {"data_ptr", tensor_data_ptr, METH_NOARGS, "data_ptr($self)\n--\n\nThe address of the first element; 0 where there is none."},
    {"get_device", tensor_get_device, METH_NOARGS, "get_device($self)\n--\n\nThe index of the device; -1 for the cpu."},
    PY_ENTRY("is_contiguous", tensor_is_contiguous,
             "is_contiguous($self, *, memory_format=None)\n--\n\nWhether the elements lie one after the other in the order of the format."),
    PY_ENTRY("is_same_size", py_method_is_same_size, "is_same_size($self, other)\n--\n\nWhether two tensors have the same sizes."),
    {"is_floating_point", tensor_is_floating_point, METH_NOARGS,
     "is_floating_point($self)\n--\n\nWhether the elements are real floating-point numbers."},
    {"is_complex", tensor_is_complex, METH_NOARGS, "is_complex($self)\n--\n\nWhether the elements are complex."},
    {"is_signed", tensor_is_signed, METH_NOARGS, "is_signed($self)\n--\n\nWhether the elements can be negative."},
    {"is_conj", tensor_is_conj, METH_NOARGS,
     "is_conj($self)\n--\n\nTrue for a view that conj() made: its elements are the conjugates of those in memory."},
    {"is_neg", tensor_is_neg, METH_NOARGS,
     "is_neg($self)\n--\n\nTrue for the imaginary part of such a view: its elements are the negatives of those in memory."},
    {"is_inference", tensor_is_inference, METH_NOARGS,
     "is_inference($self)\n--\n\nFalse: tensors made in inference mode are tensors like others."},
    {"item", tensor_item, METH_NOARGS,
     "item($self)\n--\n\nThe only element as a Python number. RuntimeError unless there is exactly one." EXAMPLE
     ">>> torch.ones(1).item()\n1.0"},
    {"tolist", py_method_tolist, METH_NOARGS,
     "tolist($self)\n--\n\nThe elements as nested lists of Python numbers." EXAMPLE ">>> torch.eye(2).tolist()\n[[1.0, 0.0], [0.0, 1.0]]"},
    {"__complex__", tensor_complex, METH_NOARGS,
     "__complex__($self)\n--\n\nThe only element as a complex number. ValueError unless there is exactly one."},
    {"__format__", py_method_format, METH_O,
     "A 0-d tensor formatted as its number. TypeError for other tensors unless the format is empty."},
    {"__reversed__", tensor_reversed, METH_NOARGS, "__reversed__($self)\n--\n\nA copy with the order along the first dimension reversed."},
    {"is_nonzero", tensor_is_nonzero, METH_NOARGS,
     "is_nonzero($self)\n--\n\nWhether the only element is not zero. RuntimeError unless there is exactly one."},
    PY_ENTRY("equal", py_method_equal,
             "equal($self, other)\n--\n\nWhether two tensors have the same sizes and equal elements; NaN equals nothing."),
    PY_ENTRY("allclose", py_method_allclose,
             "allclose($self, other, rtol=1e-05, atol=1e-08, equal_nan=False)\n--\n\n"
             "True if abs(self - other) <= atol + rtol * abs(other) for all elements, which broadcast."),
    {"apply_", py_method_apply_, METH_O,
     "apply_($self, callable)\n--\n\nSets every element to callable(element). For tensors on the cpu; slow, since it calls Python for each "
     "element."},
    {"map_", py_method_map_, METH_VARARGS,
     "map_($self, tensor, callable)\n--\n\nSets every element to callable(element, element of tensor), which is broadcast. Slow."},
    {"map2_", py_method_map2_, METH_VARARGS,
     "map2_($self, x, y, callable)\n--\n\nSets every element to callable(element, element of x, element of y). Slow."},
    PY_ENTRY("to", py_method_to,
             "to(self, device=None, dtype=None, non_blocking=False, copy=False, *, memory_format=None)\n"
             "to(self, dtype, non_blocking=False, copy=False, *, memory_format=None)\n"
             "to(self, tensor, non_blocking=False, copy=False, *, memory_format=None)\n\n"
             "The tensor with another dtype, on another device, or as `tensor` is: itself when that changes nothing and `copy` is not "
             "set." FORMAT EXAMPLE ">>> torch.ones(2).to(torch.int32)\ntensor([1, 1], dtype=torch.int32)"),
    PY_ENTRY(
        "type", py_method_type,
        "type($self, dtype=None, non_blocking=False)\n--\n\nThe name of the type, 'torch.FloatTensor', or the tensor with another dtype."),
    PY_ENTRY("type_as", py_method_type_as, "type_as($self, other)\n--\n\nThe tensor with the dtype and on the device of other."),
    PY_ENTRY("bool", py_method_bool, "bool($self, *, memory_format=None)\n--\n\nAs torch.bool: whether each element is not zero." FORMAT),
    PY_ENTRY("byte", py_method_byte, "byte($self, *, memory_format=None)\n--\n\nAs torch.uint8." FORMAT),
    PY_ENTRY("char", py_method_char, "char($self, *, memory_format=None)\n--\n\nAs torch.int8." FORMAT),
    PY_ENTRY("short", py_method_short, "short($self, *, memory_format=None)\n--\n\nAs torch.int16." FORMAT),
    PY_ENTRY("int", py_method_int, "int($self, *, memory_format=None)\n--\n\nAs torch.int32." FORMAT),
    PY_ENTRY("long", py_method_long, "long($self, *, memory_format=None)\n--\n\nAs torch.int64." FORMAT),
    PY_ENTRY("half", py_method_half, "half($self, *, memory_format=None)\n--\n\nAs torch.float16." FORMAT),
    PY_ENTRY("bfloat16", py_method_bfloat16, "bfloat16($self, *, memory_format=None)\n--\n\nAs torch.bfloat16." FORMAT),
    PY_ENTRY("float", py_method_float, "float($self, *, memory_format=None)\n--\n\nAs torch.float32." FORMAT),
    PY_ENTRY("double", py_method_double, "double($self, *, memory_format=None)\n--\n\nAs torch.float64." FORMAT),
    PY_ENTRY("chalf", py_method_chalf, "chalf($self, *, memory_format=None)\n--\n\nAs torch.complex32." FORMAT),
    PY_ENTRY("cfloat", py_method_cfloat, "cfloat($self, *, memory_format=None)\n--\n\nAs torch.complex64." FORMAT),
    PY_ENTRY("cdouble", py_method_cdouble, "cdouble($self, *, memory_format=None)\n--\n\nAs torch.complex128." FORMAT),
    PY_ENTRY("cpu", py_method_cpu, "cpu($self, *, memory_format=None)\n--\n\nThe tensor on the cpu: itself when it is there." FORMAT),
    PY_ENTRY("cuda", py_method_cuda,
             "cuda($self, device=None, non_blocking=False, *, memory_format=None)\n--\n\n"
             "The tensor on a device of type 'cuda'. AssertionError when no plug-in has brought one."),
    {"new", (PyCFunction)(void (*)(void))py_method_new, METH_VARARGS | METH_KEYWORDS,
     "new($self, *args, device=None)\n--\n\nAs Tensor(...), with the dtype and the device of this tensor: of sizes, of data, or of another "
     "tensor."},
    PY_ENTRY("new_tensor", py_method_new_tensor,
             "new_tensor($self, data, *, dtype=None, device=None, requires_grad=False)\n--\n\n"
             "As torch.tensor(), with the dtype and the device of this tensor unless others are given."),
    PY_ENTRY("new_empty", py_method_new_empty,
             "new_empty($self, *size, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False)\n--\n\n"
             "A tensor whose elements are not set, of the dtype and on the device of this tensor unless others are given."),
    PY_ENTRY(
        "new_empty_strided", py_method_new_empty_strided,
        "new_empty_strided($self, size, stride, *, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False)\n--\n\n"
        "As new_empty(), with the given strides, in elements."),
    PY_ENTRY("new_zeros", py_method_new_zeros,
             "new_zeros($self, *size, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False)\n--\n\n"
             "Zeros of the dtype and on the device of this tensor unless others are given." EXAMPLE
             ">>> torch.ones(1, dtype=torch.int8).new_zeros(2)\ntensor([0, 0], dtype=torch.int8)"),
    PY_ENTRY("new_ones", py_method_new_ones,
             "new_ones($self, *size, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False)\n--\n\nAs new_zeros(), "
             "of ones."),
    PY_ENTRY("new_full", py_method_new_full,
             "new_full($self, size, fill_value, *, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False)\n--\n\nAs "
             "new_zeros(), of fill_value."),
    PY_ENTRY("requires_grad_", tensor_requires_grad_,
             "requires_grad_($self, requires_grad=True)\n--\n\nSets requires_grad and returns the tensor. RuntimeError for integer dtypes, "
             "and when it is turned "
             "off for a tensor that is no leaf."),
    {"detach_", tensor_detach_, METH_NOARGS,
     "detach_($self)\n--\n\nTakes the tensor out of the graph that computed it: it is a leaf that needs no gradient. RuntimeError for a "
     "view."},
    {"_is_view", tensor_is_view, METH_NOARGS, "_is_view($self)\n--\n\nWhether the tensor is a view of another, which is _base."},
    PY_ENTRY("pin_memory", refuse_pinning, "pin_memory($self)\n--\n\nRuntimeError: there is no device that would need it."),
    PY_ENTRY("is_pinned", is_pinned, "is_pinned($self)\n--\n\nFalse: there is no device that would need it."),
    {NULL, NULL, 0, NULL},
};
