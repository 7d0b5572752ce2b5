/* Implements Tensor as a sequence: len, iteration, `in`, tolist, and methods that call a Python function for each element (apply_, map_, map2_). */
#include "dtype.h"
#include "errors.h"
#include "override.h"
#include "scalar.h"
#include "tensor_methods.h"
#include "tensor_slots.h"
#include "gradus/ops/any.h"
#include "gradus/ops/contiguous.h"
#include "gradus/ops/copy.h"
#include "gradus/ops/empty.h"
#include "gradus/ops/eq.h"
#include "gradus/ops/expand.h"
#include "gradus/ops/fill.h"
#include "gradus/ops/select.h"
#include "gradus/ops/to.h"
#include "gradus/ops/unbind.h"
#include "gradus/ops/view.h"

static Py_ssize_t overridden_length(PyObject *self)
{
    PyObject *result = py_override(self, "__len__", NULL, 0, NULL);
    const Py_ssize_t length = result != NULL ? PyNumber_AsSsize_t(result, PyExc_OverflowError) : -1;
    Py_XDECREF(result);
    if (length < 0 && !PyErr_Occurred())
        PyErr_SetString(PyExc_ValueError, "__len__() should return >= 0");
    return length;
}

Py_ssize_t py_tensor_length(PyObject *self)
{
    if (PY_UNLIKELY(py_is_overloaded(self)))
        return overridden_length(self);
    grd_tensor *t = py_tensor_of(self);
    if (grd_ndim(t) == 0) {
        PyErr_SetString(PyExc_TypeError, "len() of a 0-d tensor");
        return -1;
    }
    return grd_sizes(t).data[0];
}

/* Implements iter(self): returns an iterator over the views that self.unbind() returns. */
PyObject *py_tensor_iter(PyObject *self)
{
    grd_tensor *t = py_tensor_of(self);
    const bool is_overloaded = py_is_overloaded(self);
    PyObject *dims = is_overloaded ? PyObject_CallMethod(self, "dim", NULL) : NULL; /* a subclass may override dim(), as in PyTorch */
    const int64_t ndim = !is_overloaded ? grd_ndim(t) : dims != NULL ? PyLong_AsLongLong(dims) : -1;
    Py_XDECREF(dims);
    if (ndim < 0 && PyErr_Occurred())
        return NULL;
    if (ndim == 0)
        return PyErr_Format(PyExc_TypeError, "iteration over a 0-d tensor");
    PyObject *parts;
    if (PY_UNLIKELY(is_overloaded)) {
        parts = PyObject_CallMethod(self, "unbind", "i", 0);
    } else {
        grd_scope scope = grd_scope_open();
        parts = py_take_tuple(scope, grd_unbind(t));
    }
    PyObject *iterator = parts != NULL ? PyObject_GetIter(parts) : NULL;
    Py_XDECREF(parts);
    return iterator;
}

static int overridden_contains(PyObject *self, PyObject *element)
{
    PyObject *result = py_override(self, "__contains__", &element, 1, NULL);
    const int found = result != NULL ? PyObject_IsTrue(result) : -1;
    Py_XDECREF(result);
    return found;
}

int py_tensor_contains(PyObject *self, PyObject *element)
{
    if (PY_UNLIKELY(py_is_overloaded(self)))
        return overridden_contains(self, element);
    grd_scope scope = grd_scope_open();
    grd_tensor *wanted;
    if (py_is_tensor(element)) {
        wanted = py_tensor_of(element);
    } else {
        grd_scalar scalar;
        const int is_scalar = py_as_scalar(element, &scalar);
        if (is_scalar == 0)
            PyErr_Format(PyExc_RuntimeError, "Tensor.__contains__ only supports Tensor or scalar, but you passed in a %R.",
                         Py_TYPE(element));
        if (is_scalar <= 0) {
            grd_scope_close(scope);
            return -1;
        }
        wanted = grd_number(scalar);
    }
    const int64_t found = grd_item_int64(grd_any(grd_eq(py_tensor_of(self), wanted)));
    PyObject *left = py_leave(scope);
    Py_XDECREF(left);
    return left != NULL ? found != 0 : -1;
}

/* ---- tolist ------------------------------------------------------------------------------------------------------ */

/* Returns the dtype to which elements are converted before they become Python numbers. The returned dtype holds every value of `dtype` without
 * loss. */
static grd_dtype read_dtype(grd_dtype dtype)
{
    if (grd_dtype_is_floating(dtype))
        return GRD_FLOAT64;
    if (grd_dtype_is_complex(dtype))
        return GRD_COMPLEX128;
    return dtype == GRD_BOOL || dtype == GRD_UINT64 ? dtype : GRD_INT64;
}

/* Returns the Python number at `element`. `dtype` must be a result of read_dtype. */
static inline PyObject *from_element(const char *element, grd_dtype dtype)
{
    switch (dtype) {
    case GRD_FLOAT64:
        return PyFloat_FromDouble(*(const double *)element);
    case GRD_INT64:
        return PyLong_FromLongLong(*(const int64_t *)element);
    case GRD_UINT64:
        return PyLong_FromUnsignedLongLong(*(const uint64_t *)element);
    case GRD_COMPLEX128:
        return PyComplex_FromDoubles(((const double *)element)[0], ((const double *)element)[1]);
    default:
        return PyBool_FromLong(*(const uint8_t *)element != 0);
    }
}

/* Returns a list of the n Python numbers at `data`. */
static PyObject *list_of(const char *data, grd_dtype dtype, Py_ssize_t n)
{
    const int64_t itemsize = grd_dtype_size(dtype);
    PyObject *list = PyList_New(n);
    for (Py_ssize_t i = 0; list != NULL && i < n; i++) {
        PyObject *element = from_element(data + i * itemsize, dtype);
        if (element == NULL)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, i, element);
    }
    return list;
}

/* Returns the elements at *data as nested lists of the given sizes, and advances *data past the elements, which are in row-major order. */
static PyObject *nested(const char **data, grd_dtype dtype, grd_dims sizes)
{
    if (sizes.n == 0)
        return from_element(*data, dtype);
    const Py_ssize_t n = (Py_ssize_t)sizes.data[0];
    if (sizes.n == 1) {
        PyObject *list = list_of(*data, dtype, n);
        *data += n * grd_dtype_size(dtype);
        return list;
    }
    PyObject *list = PyList_New(n);
    for (Py_ssize_t i = 0; list != NULL && i < n; i++) {
        PyObject *part = nested(data, dtype, grd_dims_from(sizes.data + 1, sizes.n - 1));
        if (part == NULL)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, i, part);
    }
    return list;
}

/* Returns a copy of the elements of `t`, converted to `dtype`, in row-major order. The innermost open scope owns the copy. Python code that changes
 * the tensor later does not change the copy. Returns NULL with an exception. */
static const char *copied_elements(grd_tensor *t, grd_dtype dtype)
{
    const bool recorded = grd_set_grad_enabled(false);
    grd_tensor *copy = grd_contiguous(grd_to(t, .dtype = dtype, .device = GRD_CPU, .copy = true));
    grd_set_grad_enabled(recorded);
    const char *data = grd_ok() ? grd_data(copy) : NULL;
    if (grd_ok())
        return data;
    py_raise();
    return NULL;
}

PyObject *py_method_tolist(PyObject *self, PyObject *Py_UNUSED(none))
{
    if (PY_UNLIKELY(py_is_overloaded(self)))
        return py_override(self, "tolist", NULL, 0, NULL);
    grd_tensor *t = py_tensor_of(self);
    const grd_dtype dtype = read_dtype(grd_tensor_dtype(t));
    if (grd_tensor_device(t).type == GRD_DEVICE_META)
        return PyErr_Format(PyExc_NotImplementedError, "Cannot copy out of meta tensor; no data!");
    grd_scope scope = grd_scope_open();
    const char *data = copied_elements(t, dtype);
    PyObject *list = data != NULL ? nested(&data, dtype, grd_sizes(t)) : NULL;
    grd_scope_close(scope);
    return list;
}

/* ---- apply_, map_, map2_ ----------------------------------------------------------------------------------------- */

enum { MAX_OPERANDS = 3 };

/* Arguments of apply_, map_ or map2_: the elements of all operands, copied in row-major order, and the Python function. */
struct walk {
    int noperands;
    grd_dtype dtype;
    const char *data[MAX_OPERANDS];
    PyObject *function;
};

static PyObject *call_at(const struct walk *walk, int64_t i)
{
    PyObject *args[MAX_OPERANDS] = {NULL, NULL, NULL}, *result = NULL;
    int n = 0;
    while (n < walk->noperands && (args[n] = from_element(walk->data[n] + i * grd_dtype_size(walk->dtype), walk->dtype)) != NULL)
        n++;
    if (n == walk->noperands)
        result = PyObject_Vectorcall(walk->function, args, (size_t)n, NULL);
    while (n-- > 0)
        Py_DECREF(args[n]);
    return result;
}

/* Sets element i of the 1-d tensor `values` to `result`, a Python number. Returns false with an exception. */
static bool store(grd_tensor *values, int64_t i, PyObject *result)
{
    grd_scalar scalar;
    const int is_scalar = py_as_scalar(result, &scalar);
    if (is_scalar == 0)
        PyErr_Format(PyExc_TypeError, "must be real number, not %s", Py_TYPE(result)->tp_name);
    if (is_scalar <= 0)
        return false;
    grd_scope scope = grd_scope_open();
    grd_fill_(grd_select(values, 0, i), scalar);
    PyObject *done = py_leave(scope);
    Py_XDECREF(done);
    return done != NULL;
}

/* Calls the function for each of the `numel` elements. Returns the results in row-major order as a 1-d tensor that the caller owns; NULL with an
 * exception. */
static grd_tensor *call_all(const struct walk *walk, int64_t numel, grd_dtype dtype)
{
    grd_scope scope = grd_scope_open();
    grd_tensor *values = grd_scope_take(scope, grd_empty(grd_dims(numel), .dtype = dtype));
    if (!grd_ok()) {
        py_raise();
        grd_drop(values);
        return NULL;
    }
    for (int64_t i = 0; i < numel; i++) {
        PyObject *result = call_at(walk, i);
        const bool stored = result != NULL && store(values, i, result);
        Py_XDECREF(result);
        if (!stored) {
            grd_drop(values);
            return NULL;
        }
    }
    return values;
}

/* Sets every element of `self` to function(x, ...), where the arguments are the elements of all operands at the same index. operands[0] is the tensor
 * of `self`. Writes nothing if one of the calls fails. */
static PyObject *for_each(const char *name, PyObject *self, grd_tensor *const *operands, int noperands, PyObject *function)
{
    grd_tensor *t = operands[0];
    const grd_dtype dtype = grd_tensor_dtype(t);
    for (int i = 0; i < noperands; i++)
        if (grd_requires_grad(operands[i]))
            return PyErr_Format(PyExc_RuntimeError, "Can't call %s() on Variable that requires grad. Use var.detach().%s() instead.", name,
                                name);
    if (!PyCallable_Check(function))
        return PyErr_Format(PyExc_TypeError, "'%s' object is not callable", Py_TYPE(function)->tp_name);
    for (int i = 1; i < noperands; i++)
        if (grd_tensor_dtype(operands[i]) != dtype)
            return PyErr_Format(PyExc_TypeError, "%s: expected torch.%sTensor for 'other' (got torch.%sTensor)", name,
                                py_dtype_tensor_name(dtype), py_dtype_tensor_name(grd_tensor_dtype(operands[i])));
    struct walk walk = {.noperands = noperands, .dtype = read_dtype(dtype), .function = function};
    grd_scope scope = grd_scope_open();
    grd_tensor *values = NULL;
    bool read = true;
    for (int i = 0; i < noperands && read; i++) {
        grd_tensor *operand = i > 0 ? grd_expand(operands[i], grd_sizes(t)) : t;
        if (!grd_ok())
            py_raise();
        else
            walk.data[i] = copied_elements(operand, walk.dtype);
        read = walk.data[i] != NULL;
    }
    if (read)
        values = call_all(&walk, grd_numel(t), dtype);
    if (values != NULL)
        grd_copy_(t, grd_view(values, grd_sizes(t)));
    PyObject *left = values != NULL ? py_leave(scope) : NULL;
    if (values == NULL)
        grd_scope_close(scope);
    grd_drop(values);
    Py_XDECREF(left);
    if (left == NULL)
        return NULL;
    Py_INCREF(self);
    return self;
}

PyObject *py_method_apply_(PyObject *self, PyObject *function)
{
    if (PY_UNLIKELY(py_is_overloaded(self)))
        return py_override(self, "apply_", &function, 1, NULL);
    return for_each("apply_", self, (grd_tensor *[]){py_tensor_of(self)}, 1, function);
}

/* Implements map_ and map2_. `args` holds `nothers` tensors, then the function. Returns `self`. */
static PyObject *map_over(const char *name, PyObject *self, PyObject *args, int nothers)
{
    grd_tensor *operands[MAX_OPERANDS] = {py_tensor_of(self)};
    if (PY_UNLIKELY(py_is_overloaded(self)))
        return py_override(self, name, &PyTuple_GET_ITEM(args, 0), PyTuple_GET_SIZE(args), NULL);
    if (PyTuple_GET_SIZE(args) != nothers + 1)
        return PyErr_Format(PyExc_TypeError, "%s() takes %d positional arguments but %zd were given", name, nothers + 1,
                            PyTuple_GET_SIZE(args));
    for (int i = 0; i < nothers; i++) {
        PyObject *other = PyTuple_GET_ITEM(args, i);
        if (!py_is_tensor(other))
            return PyErr_Format(PyExc_TypeError, "%s(): argument 'other' (position %d) must be Tensor, not %s", name, i + 1,
                                Py_TYPE(other)->tp_name);
        operands[i + 1] = py_tensor_of(other);
    }
    return for_each(name, self, operands, nothers + 1, PyTuple_GET_ITEM(args, nothers));
}

PyObject *py_method_map_(PyObject *self, PyObject *args)
{
    return map_over("map_", self, args, 1);
}

PyObject *py_method_map2_(PyObject *self, PyObject *args)
{
    return map_over("map2_", self, args, 2);
}
