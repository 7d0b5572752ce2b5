/* Creates tensors from nested sequences of numbers, as torch.tensor([[1, 2], [3, 4]]) does.
 *
 * The sequence is traversed three times. The first pass follows only the first items and finds the sizes, the second finds the dtype and the third
 * writes the numbers. Converting an item may run Python code that changes the sequence. Therefore every pass checks what it reads and relies only on
 * the sizes that the first pass found. */
#include "from_sequence.h"
#include "buffer.h"
#include "tensor_object.h"

#include <math.h>

#include "gradus/ops/empty.h"
#include "gradus/ops/to.h"

/* ---- Kinds of elements ------------------------------------------------------------------------------------------- */

enum element { ELEMENT_BOOL, ELEMENT_INT, ELEMENT_FLOAT, ELEMENT_COMPLEX, ELEMENT_SEQUENCE, ELEMENT_BLOCK, ELEMENT_OTHER };

/* Returns the kind of `object`, an item of a sequence. Tensors and arrays are of kind ELEMENT_BLOCK and are not searched for items, because they
 * have sizes and a dtype. */
static enum element element_of(PyObject *object)
{
    if (PyFloat_CheckExact(object))
        return ELEMENT_FLOAT;
    if (PyBool_Check(object))
        return ELEMENT_BOOL;
    if (PyLong_CheckExact(object))
        return ELEMENT_INT;
    if (PyList_Check(object) || PyTuple_Check(object))
        return ELEMENT_SEQUENCE;
    if (PyComplex_CheckExact(object))
        return ELEMENT_COMPLEX;
    if (py_is_tensor(object) || py_is_array(object))
        return ELEMENT_BLOCK;
    if (PyFloat_Check(object))
        return ELEMENT_FLOAT;
    if (PyLong_Check(object))
        return ELEMENT_INT;
    if (PyComplex_Check(object))
        return ELEMENT_COMPLEX;
    return PySequence_Check(object) && !PyUnicode_Check(object) && !PyBytes_Check(object) ? ELEMENT_SEQUENCE : ELEMENT_OTHER;
}

/* Returns the library's tensor if `object` is a Tensor, otherwise a tensor over the memory of the array `object`. Returns NULL on failure. */
static grd_tensor *block_of(PyObject *object)
{
    bool writable;
    return py_is_tensor(object) ? py_tensor_of(object) : py_over_array(object, &writable);
}

/* Returns the number of dimensions that a tensor or array adds to the result. A tensor of one element counts as a number and adds none. */
static int64_t block_ndim(PyObject *object, const grd_tensor *block)
{
    return py_is_tensor(object) && grd_numel(block) == 1 ? 0 : grd_ndim(block);
}

static bool refuse_number(PyObject *object)
{
    PyErr_Format(PyExc_TypeError, "expected a number, not %s", Py_TYPE(object)->tp_name);
    return false;
}

/* ---- Sizes ------------------------------------------------------------------------------------------------------- */

struct sizes {
    int64_t n, data[GRD_MAX_DIMS];
};

static bool refuse_depth(PyObject *object)
{
    PyErr_Format(PyExc_ValueError, "too many dimensions '%s'", Py_TYPE(object)->tp_name);
    return false;
}

static bool add_block_sizes(PyObject *object, struct sizes *sizes)
{
    const grd_tensor *block = block_of(object);
    if (block == NULL)
        return false;
    const int64_t ndim = block_ndim(object, block);
    if (sizes->n + ndim > GRD_MAX_DIMS)
        return refuse_depth(object);
    if (ndim > 0)
        memcpy(sizes->data + sizes->n, grd_sizes(block).data, (size_t)ndim * sizeof *sizes->data);
    sizes->n += ndim;
    return true;
}

static bool find_sizes(PyObject *object, struct sizes *ret_sizes)
{
    ret_sizes->n = 0;
    Py_INCREF(object);
    bool ok = true;
    enum element element;
    while (ok && (element = element_of(object)) == ELEMENT_SEQUENCE) {
        const Py_ssize_t n = PySequence_Size(object);
        if (n >= 0 && ret_sizes->n == GRD_MAX_DIMS)
            refuse_depth(object);
        PyObject *first = n > 0 && !PyErr_Occurred() ? PySequence_GetItem(object, 0) : NULL;
        ok = !PyErr_Occurred();
        if (ok)
            ret_sizes->data[ret_sizes->n++] = n;
        if (first == NULL)
            break;
        Py_DECREF(object);
        object = first;
    }
    if (ok && element == ELEMENT_BLOCK)
        ok = add_block_sizes(object, ret_sizes);
    if (ok && (PyUnicode_Check(object) || PyBytes_Check(object)))
        ok = refuse_depth(object);
    Py_DECREF(object);
    return ok;
}

/* ---- dtype ------------------------------------------------------------------------------------------------------- */

/* `has[kind]` is true if the sequence contains a number of this kind. `blocks` is the dtype to which its tensors and arrays promote, or
 * GRD_DTYPE_NONE if it contains none. */
struct kinds {
    bool has[ELEMENT_COMPLEX + 1];
    grd_dtype blocks;
};

static bool add_kinds(PyObject *object, int64_t depth, struct kinds *kinds);

static bool add_kinds_of_items(PyObject *object, int64_t depth, struct kinds *kinds)
{
    PyObject *items = depth > 0 ? PySequence_Fast(object, "not a sequence") : NULL;
    if (items == NULL)
        return depth > 0 ? false : refuse_number(object);
    bool ok = true;
    for (Py_ssize_t i = 0; ok && i < PySequence_Fast_GET_SIZE(items); i++) {
        PyObject *item = PySequence_Fast_GET_ITEM(items, i);
        if (PyFloat_CheckExact(item) || PyLong_CheckExact(item)) {
            kinds->has[PyFloat_CheckExact(item) ? ELEMENT_FLOAT : ELEMENT_INT] = true;
            continue;
        }
        Py_INCREF(item);
        ok = add_kinds(item, depth - 1, kinds);
        Py_DECREF(item);
    }
    Py_DECREF(items);
    return ok;
}

static bool add_kinds(PyObject *object, int64_t depth, struct kinds *kinds)
{
    const enum element element = element_of(object);
    if (element == ELEMENT_SEQUENCE)
        return add_kinds_of_items(object, depth, kinds);
    if (element == ELEMENT_BLOCK) {
        const grd_tensor *block = block_of(object);
        if (block != NULL)
            kinds->blocks = kinds->blocks == GRD_DTYPE_NONE ? grd_tensor_dtype(block) : grd_promote(kinds->blocks, grd_tensor_dtype(block));
        return block != NULL && grd_ok();
    }
    if (element == ELEMENT_OTHER) {
        PyErr_Format(PyUnicode_Check(object) || PyBytes_Check(object) ? PyExc_TypeError : PyExc_RuntimeError,
                     PyUnicode_Check(object) || PyBytes_Check(object) ? "new(): invalid data type '%s'" : "Could not infer dtype of %s",
                     Py_TYPE(object)->tp_name);
        return false;
    }
    kinds->has[element] = true;
    return true;
}

/* Returns the dtype to which all numbers, tensors and arrays found in the sequence promote. Returns the default dtype if the sequence contains
 * none. */
static grd_dtype dtype_of_kinds(const struct kinds *kinds)
{
    const grd_dtype real = grd_default_dtype(), complex = grd_dtype_to_complex(real);
    const grd_dtype dtypes[] = {GRD_BOOL, GRD_INT64, real, complex};
    grd_dtype dtype = kinds->blocks;
    for (int i = ELEMENT_BOOL; i <= ELEMENT_COMPLEX; i++)
        if (kinds->has[i])
            dtype = dtype == GRD_DTYPE_NONE ? dtypes[i] : grd_promote(dtype, dtypes[i]);
    return dtype == GRD_DTYPE_NONE ? real : dtype;
}

/* ---- Writing ----------------------------------------------------------------------------------------------------- */

/* State of writing the numbers of a sequence to memory: the position of the next element and its dtype. Elements are written as `dtype` and later
 * cast to `target`, the dtype of the result. The range of `target` may be smaller than that of `dtype`. */
struct writer {
    grd_dtype dtype, target;
    int64_t itemsize;
    const struct sizes *sizes;
    char *at;
};

static bool overflows(const struct writer *w)
{
    PyErr_Format(PyExc_RuntimeError, "value cannot be converted to type %s without overflow", grd_dtype_name(w->target));
    return false;
}

/* True if `value` is in the range of the integer dtype `target`. As in PyTorch, an unsigned dtype also accepts a negative value whose magnitude is
 * in range; the value wraps around. */
static bool fits(int64_t value, grd_dtype target)
{
    const bool is_signed = target == GRD_INT8 || target == GRD_INT16 || target == GRD_INT32 || target == GRD_INT64;
    const uint64_t largest = UINT64_MAX >> (64 - 8 * grd_dtype_size(target) + is_signed);
    return value < 0 ? -(uint64_t)value <= largest + is_signed : (uint64_t)value <= largest;
}

static bool write_integer(struct writer *w, PyObject *object)
{
    int overflow = 0;
    int64_t value;
    if (PyFloat_Check(object)) {
        const double number = trunc(PyFloat_AS_DOUBLE(object));
        if (!(number >= -0x1p63 && number < 0x1p63))
            return overflows(w);
        value = (int64_t)number;
    } else if (PyComplex_Check(object))
        return refuse_number(object);
    else
        value = PyLong_AsLongLongAndOverflow(object, &overflow);
    if (overflow > 0 && w->target == GRD_UINT64) {
        const uint64_t bits = PyLong_AsUnsignedLongLong(object);
        memcpy(w->at, &bits, sizeof bits);
        return !PyErr_Occurred();
    }
    if (overflow != 0)
        PyErr_SetString(PyExc_ValueError, "Overflow when unpacking long long");
    if (PyErr_Occurred())
        return false;
    if (!fits(value, w->target))
        return overflows(w);
    memcpy(w->at, &value, sizeof value);
    return true;
}

static bool write_number(struct writer *w, PyObject *object)
{
    Py_complex number;
    float part;
    int truth;
    switch (w->dtype) {
    case GRD_FLOAT32:
        part = (float)PyFloat_AsDouble(object);
        memcpy(w->at, &part, sizeof part);
        break;
    case GRD_FLOAT64:
        number.real = PyFloat_AsDouble(object);
        memcpy(w->at, &number.real, sizeof number.real);
        break;
    case GRD_COMPLEX128:
        number = PyComplex_AsCComplex(object);
        memcpy(w->at, &number, sizeof number);
        break;
    case GRD_BOOL:
        if (!PyNumber_Check(object))
            return refuse_number(object);
        truth = PyObject_IsTrue(object);
        *w->at = truth > 0;
        break;
    default:
        return write_integer(w, object);
    }
    return !PyErr_Occurred();
}

static bool refuse_length(int64_t length, int64_t dim, int64_t got)
{
    PyErr_Format(PyExc_ValueError, "expected sequence of length %lld at dim %lld (got %lld)", (long long)length, (long long)dim,
                 (long long)got);
    return false;
}

/* Writes all elements of `object`, a tensor or array whose first dimension is dimension `dim` of the result. Returns false with ValueError if its
 * sizes differ from those that the first pass over the data found. */
static bool write_block(struct writer *w, PyObject *object, int64_t dim)
{
    grd_tensor *block = block_of(object);
    if (block == NULL)
        return false;
    const int64_t ndim = block_ndim(object, block);
    if (dim + ndim != w->sizes->n) {
        PyErr_Format(PyExc_ValueError, "expected a sequence of %lld dimensions at dim %lld (got %lld)", (long long)(w->sizes->n - dim),
                     (long long)dim, (long long)ndim);
        return false;
    }
    for (int64_t i = 0; i < ndim; i++)
        if (grd_sizes(block).data[i] != w->sizes->data[dim + i])
            return refuse_length(w->sizes->data[dim + i], dim + i, grd_sizes(block).data[i]);
    grd_to_memory(block, w->at, w->dtype);
    w->at += grd_numel(block) * w->itemsize;
    return grd_ok();
}

/* Fast path for the most frequent items: writes an exact float as float32 or an exact int as int64. Returns false, without an exception, for all
 * other items. */
static inline bool write_exact(struct writer *w, PyObject *item)
{
    if (w->dtype == GRD_FLOAT32 && PyFloat_CheckExact(item)) {
        const float number = (float)PyFloat_AS_DOUBLE(item);
        memcpy(w->at, &number, sizeof number);
    } else if (w->target == GRD_INT64 && PyLong_CheckExact(item)) {
        int overflow;
        const int64_t number = PyLong_AsLongLongAndOverflow(item, &overflow);
        if (overflow != 0)
            return false;
        memcpy(w->at, &number, sizeof number);
    } else
        return false;
    w->at += w->itemsize;
    return true;
}

static bool write_data(struct writer *w, PyObject *object, int64_t dim);

/* Writes all items of a sequence along dimension `dim` of the result. Returns false with ValueError if the length differs from the size found
 * before. */
static bool write_items(struct writer *w, PyObject *object, int64_t dim)
{
    PyObject *items = PySequence_Fast(object, "not a sequence");
    if (items == NULL)
        return false;
    const int64_t length = w->sizes->data[dim];
    const bool numbers = dim + 1 == w->sizes->n;
    bool ok = true;
    Py_ssize_t i = 0;
    for (; ok && i < length && i < PySequence_Fast_GET_SIZE(items); i++) {
        PyObject *item = PySequence_Fast_GET_ITEM(items, i);
        if (numbers && write_exact(w, item))
            continue;
        Py_INCREF(item);
        ok = write_data(w, item, dim + 1);
        Py_DECREF(item);
    }
    if (ok && (i < length || PySequence_Fast_GET_SIZE(items) != length))
        ok = refuse_length(length, dim, PySequence_Fast_GET_SIZE(items));
    Py_DECREF(items);
    return ok;
}

static bool write_data(struct writer *w, PyObject *object, int64_t dim)
{
    const enum element element = element_of(object);
    if (element == ELEMENT_BLOCK)
        return write_block(w, object, dim);
    if (dim < w->sizes->n) {
        if (element == ELEMENT_SEQUENCE)
            return write_items(w, object, dim);
        PyErr_SetString(PyExc_TypeError, "not a sequence");
        return false;
    }
    if (element == ELEMENT_SEQUENCE)
        return refuse_number(object);
    if (!write_number(w, object))
        return false;
    w->at += w->itemsize;
    return true;
}

/* Returns one of the few dtypes that struct writer can write. The numbers of a sequence are written in this dtype. Then the tensor is cast to
 * `dtype`. */
static grd_dtype written_as(grd_dtype dtype)
{
    if (grd_dtype_is_complex(dtype))
        return GRD_COMPLEX128;
    if (grd_dtype_is_floating(dtype))
        return dtype == GRD_FLOAT32 ? GRD_FLOAT32 : GRD_FLOAT64;
    return dtype == GRD_BOOL || dtype == GRD_UINT64 ? dtype : GRD_INT64;
}

grd_tensor *py_from_sequence(PyObject *object, grd_dtype dtype)
{
    struct sizes sizes;
    if (PyUnicode_Check(object) || PyBytes_Check(object)) {
        PyErr_Format(PyExc_TypeError, "new(): invalid data type '%s'", Py_TYPE(object)->tp_name);
        return NULL;
    }
    if (!find_sizes(object, &sizes))
        return NULL;
    if (dtype == GRD_DTYPE_NONE) {
        struct kinds kinds = {0};
        if (!add_kinds(object, sizes.n, &kinds))
            return NULL;
        dtype = dtype_of_kinds(&kinds);
    }
    const grd_dtype written = written_as(dtype);
    grd_tensor *t = grd_empty(grd_dims_from(sizes.data, sizes.n), .dtype = written);
    if (!grd_ok())
        return NULL;
    struct writer w = {.dtype = written, .target = dtype, .itemsize = grd_dtype_size(written), .sizes = &sizes, .at = grd_data(t)};
    if (!write_data(&w, object, 0))
        return NULL;
    return written == dtype ? t : grd_to(t, .dtype = dtype);
}

grd_tensor *py_from_data(PyObject *object, grd_dtype dtype)
{
    bool writable;
    if (!py_is_array(object))
        return py_from_sequence(object, dtype);
    grd_tensor *t = py_over_array(object, &writable);
    if (t != NULL)
        t = grd_to(t, .dtype = dtype, .copy = true);
    return grd_ok() ? t : NULL;
}
