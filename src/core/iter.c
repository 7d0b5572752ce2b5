/* Plans elementwise iteration; see iter.h. This file promotes the dtypes of the inputs, checks for overlap, decides the strides of the result and
 * orders the dimensions. The loops over the elements are in iter_run.c.
 *
 * Invariant: after grd_iter_bind nothing can fail. */
#include "core/iter.h"

#include <string.h>

#include "base/text.h"
#include "core/device.h"
#include "core/dtype.h"
#include "core/geometry.h"
#include "core/given.h"
#include "core/new.h"
#include "core/resize.h"
#include "core/scalar.h"
#include "core/shape.h"
#include "core/tensor.h"

static enum grd_category category_of(grd_dtype dtype)
{
    return (enum grd_category)grd_dtype_table[dtype].category;
}

static bool is_integral(grd_dtype dtype)
{
    return category_of(dtype) <= GRD_CATEGORY_INTEGER;
}

/* ---- Promotion --------------------------------------------------------------------------------------------------------- */

/* Returns the dtype that counts in promotion for a tensor made from a Python number. `dtype` is the dtype of this tensor. For a floating-point or
 * complex number the result is the default dtype of that category, otherwise `dtype`. */
static grd_dtype number_dtype(grd_dtype dtype)
{
    switch (category_of(dtype)) {
    case GRD_CATEGORY_FLOAT:
        return grd_default_dtype();
    case GRD_CATEGORY_COMPLEX:
        return grd_dtype_to_complex(grd_default_dtype());
    default:
        return dtype;
    }
}

/* Returns the promoted dtype of two groups of inputs. `high` is the dtype of the group with priority: tensors with dimensions have priority over
 * zero-dimensional tensors, and zero-dimensional tensors over numbers. `low` is the dtype of the other group. `low` counts only if its category
 * (bool, integer, floating, complex) is higher than the category of `high`. */
static grd_dtype join_ranks(grd_dtype high, grd_dtype low)
{
    if (high == GRD_DTYPE_NONE || low == GRD_DTYPE_NONE)
        return high == GRD_DTYPE_NONE ? low : high;
    if (category_of(high) == GRD_CATEGORY_COMPLEX)
        return high;
    if (category_of(high) == GRD_CATEGORY_FLOAT)
        return category_of(low) == GRD_CATEGORY_COMPLEX ? grd_dtype_to_complex(high) : high;
    return high == GRD_BOOL || category_of(low) > GRD_CATEGORY_INTEGER ? grd_promote(high, low) : high;
}

grd_dtype grd_result_type(grd_tensor *const *inputs, int n)
{
    enum { SIZED, ZERO_DIM, NUMBER, RANKS };
    grd_dtype of[RANKS] = {GRD_DTYPE_NONE, GRD_DTYPE_NONE, GRD_DTYPE_NONE};
    if (n < 0 || (n > 0 && inputs == NULL)) {
        grd_raise(GRD_ERROR_TYPE, "grd_result_type: argument 'inputs' must be an array of %d tensors", n);
        return GRD_DTYPE_NONE;
    }
    for (int i = 0; i < n; i++) {
        if (inputs[i] == NULL)
            continue;
        if (!grd_given(inputs[i], "grd_result_type", "inputs"))
            return GRD_DTYPE_NONE;
        grd_dtype dtype = inputs[i]->dtype;
        bool number = grd_has(inputs[i], GRD_FLAG_NUMBER);
        int rank = number ? NUMBER : inputs[i]->ndim == 0 ? ZERO_DIM : SIZED;
        if (number)
            dtype = number_dtype(dtype);
        if (dtype != of[rank])
            of[rank] = grd_promote(of[rank], dtype);
        if (grd_pending())
            return GRD_DTYPE_NONE;
    }
    grd_dtype result = join_ranks(of[SIZED], join_ranks(of[ZERO_DIM], of[NUMBER]));
    return grd_pending() ? GRD_DTYPE_NONE : result;
}

/* Note [Numbers out of range]
 * In comparisons, a number that the dtype of the tensors cannot represent is not wrapped around. For example, a uint8 tensor is compared with 300
 * and not with 44. In this case the comparison is computed in int64, or in float64 if a uint64 tensor is compared with a negative number. */
grd_dtype grd_dtype_to_compare(grd_tensor *const *inputs, int n, grd_dtype common)
{
    if (category_of(common) != GRD_CATEGORY_INTEGER)
        return common;
    for (int i = 0; i < n; i++) {
        const grd_tensor *t = inputs[i];
        if (!grd_has(t, GRD_FLAG_NUMBER) || t->dtype != GRD_INT64 || t->data == NULL)
            continue;
        char element[16];
        int64_t value, back;
        memcpy(&value, t->data, sizeof value);
        grd_element_convert(&value, GRD_INT64, element, common);
        grd_element_convert(element, common, &back, GRD_INT64);
        if (common == GRD_UINT64 && value < 0)
            return GRD_FLOAT64;
        if (back != value)
            return GRD_INT64;
    }
    return common;
}

/* True if elements can be converted from dtype `from` to `to`; otherwise raises NotImplementedError. */
static bool can_convert(grd_dtype from, grd_dtype to)
{
    return from == to || grd_cast_kernel(from, to) != NULL ||
           grd_raise(GRD_ERROR_NOT_IMPLEMENTED, "\"copy_\" not implemented for '%s' to '%s'", grd_dtype_type_name(from),
                     grd_dtype_type_name(to));
}

/* Returns the dtype to which input number `input` is converted for the kernel; `common` is the promoted dtype of the inputs. */
static grd_dtype wanted_input(const struct grd_iter_spec *spec, int input, grd_dtype common)
{
    return spec->rule == GRD_TYPE_KEEP ? (grd_dtype)spec->inputs[input]->dtype : input < spec->promote_from ? GRD_BOOL : common;
}

/* Sets `compute`, `dtypes`, `wanted` and `converts` of `it`; `common` is the promoted dtype of the inputs. */
GRD_INLINE void set_dtypes(struct grd_iter *it, const struct grd_iter_spec *spec, grd_dtype common)
{
    const bool all_common = spec->rule != GRD_TYPE_KEEP && spec->promote_from == 0;
    if (spec->rule == GRD_TYPE_FLOAT && is_integral(common))
        common = grd_default_dtype();
    if (spec->rule == GRD_TYPE_COMPARE)
        common = grd_dtype_to_compare(spec->inputs, spec->ninputs, common);
    it->compute = common;
    it->wanted[0] = grd_gives_bool(spec->rule) ? GRD_BOOL : common;
    it->dtypes[0] = spec->out != NULL ? (grd_dtype)spec->out->dtype : it->wanted[0];
    unsigned different = it->dtypes[0] ^ it->wanted[0];
    for (int i = 0; i < spec->ninputs; i++) {
        const grd_dtype own = (grd_dtype)spec->inputs[i]->dtype, wanted = all_common ? common : wanted_input(spec, i, common);
        it->dtypes[i + 1] = own;
        it->wanted[i + 1] = wanted;
        different |= own ^ wanted;
    }
    it->converts = different != 0;
}

/* True if all dtype conversions that the iteration needs exist; otherwise raises NotImplementedError. */
static bool check_conversions(const struct grd_iter *it)
{
    if (!it->converts)
        return true;
    for (int i = 1; i < it->noperands; i++)
        if (!can_convert(it->dtypes[i], it->wanted[i]))
            return false;
    return can_convert(it->wanted[0], it->dtypes[0]);
}

/* ---- Devices ------------------------------------------------------------------------------------------------------------- */

static bool same_device(const grd_tensor *a, const grd_tensor *b)
{
    return a->device == b->device && a->device_index == b->device_index;
}

/* True for a zero-dimensional CPU tensor, which can be combined with tensors of any device. */
static bool is_bare(const grd_tensor *t)
{
    return t->ndim == 0 && t->device == GRD_DEVICE_CPU;
}

/* Sets it->device, the device of the result. Returns false, with RuntimeError, if the inputs or the out= tensor are on different devices.
 * Zero-dimensional CPU tensors among the inputs fit any device. */
static bool plan_device(struct grd_iter *it, const struct grd_iter_spec *spec)
{
    const grd_tensor *chosen = spec->inputs[0];
    for (int i = 1; i < spec->ninputs; i++)
        if (is_bare(chosen) && !same_device(spec->inputs[i], chosen))
            chosen = spec->inputs[i];
    it->device = grd_device_of(chosen);
    for (int i = 0; i < spec->ninputs; i++)
        if (!same_device(spec->inputs[i], chosen) && !is_bare(spec->inputs[i]))
            return grd_raise_devices(it->device, grd_device_of(spec->inputs[i]));
    return spec->out == NULL || same_device(spec->out, chosen) || grd_raise_devices(it->device, grd_device_of(spec->out));
}

/* Sets the device and the dtypes of `it`. Takes a fast path if all inputs have one dtype and one device and none was made from a Python number.
 * Returns false, with the error raised, if devices or dtypes do not fit. */
static bool plan_kinds(struct grd_iter *it, const struct grd_iter_spec *spec)
{
    const uint64_t looked_at = GRD_TRAITS_DTYPE | GRD_TRAITS_DEVICE | grd_traits_flags(GRD_FLAG_NUMBER);
    const uint64_t kind = spec->inputs[0]->traits & looked_at & ~grd_traits_flags(GRD_FLAG_NUMBER);
    uint64_t others = 0;
    for (int i = 0; i < spec->ninputs; i++)
        others |= spec->inputs[i]->traits ^ kind;
    it->device = grd_device_of(spec->inputs[0]);
    if (GRD_LIKELY((others & looked_at) == 0 && spec->out == NULL && spec->rule != GRD_TYPE_KEEP)) {
        set_dtypes(it, spec, (grd_dtype)spec->inputs[0]->dtype);
        return true;
    }
    if (!plan_device(it, spec))
        return false;
    grd_dtype common = spec->dtype;
    if (spec->rule != GRD_TYPE_KEEP)
        common = grd_result_type(spec->inputs + spec->promote_from, spec->ninputs - spec->promote_from);
    if (common == GRD_DTYPE_NONE)
        return false;
    set_dtypes(it, spec, common);
    return true;
}

/* ---- Overlap --------------------------------------------------------------------------------------------------------------- */

/* One term of an integer sum: stride * k, where stride > 0 and the count `k` may be any integer in [low, high]. */
struct term {
    int64_t stride, low, high;
};

/* Returns a / b rounded down; b > 0. */
static int64_t floor_divide(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

/* True if a count within its limits can be chosen for each of the `n` terms so that the sum of count * stride is in [low, high]. The terms are
 * sorted by decreasing stride, so that few counts need to be tried. `budget` is the number of tries left. Returns false when no try is
 * left, because PyTorch also allows overlap that is too hard to prove. */
static bool sum_reaches(const struct term *terms, int n, int64_t low, int64_t high, int *budget)
{
    if (n == 0)
        return low <= 0 && high >= 0;
    int64_t rest_low = 0, rest_high = 0;
    for (int i = 1; i < n; i++) {
        rest_low += terms[i].stride * terms[i].low;
        rest_high += terms[i].stride * terms[i].high;
    }
    int64_t first = -floor_divide(rest_high - low, terms[0].stride), last = floor_divide(high - rest_low, terms[0].stride);
    if (first < terms[0].low)
        first = terms[0].low;
    if (last > terms[0].high)
        last = terms[0].high;
    for (int64_t count = first; count <= last; count++) {
        if (--*budget < 0)
            return false;
        int64_t part = count * terms[0].stride;
        if (sum_reaches(terms + 1, n - 1, low - part, high - part, budget))
            return true;
    }
    return false;
}

enum { OVERLAP_BUDGET = 4096, MAX_TERMS = 2 * GRD_MAX_DIMS };

/* Adds a term to the list of `n` terms, which is sorted by decreasing stride, and returns the new number of terms. The term stands for stride * k
 * with k from 0 to `count` - 1, or for the negatives of these values if `negative` is true. If the list has a term with the same stride, extends
 * the range of that term instead. */
static int add_term(struct term *terms, int n, int64_t stride, int64_t count, bool negative)
{
    if (stride == 0 || count < 2)
        return n;
    negative ^= stride < 0;
    stride = stride < 0 ? -stride : stride;
    int place = 0;
    while (place < n && terms[place].stride > stride)
        place++;
    if (place == n || terms[place].stride != stride) {
        memmove(terms + place + 1, terms + place, (size_t)(n - place) * sizeof *terms);
        terms[place] = (struct term){stride, 0, 0};
        n++;
    }
    if (negative)
        terms[place].low -= count - 1;
    else
        terms[place].high += count - 1;
    return n;
}

bool grd_check_no_internal_overlap(const grd_tensor *written)
{
    static const char text[] = "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
                               "Please clone() the tensor before performing the operation.";
    if (grd_has(written, GRD_FLAG_CONTIGUOUS) || written->numel < 2)
        return true;
    for (int i = 0; i < written->ndim; i++)
        if (written->strides[i] == 0 && written->sizes[i] > 1)
            return grd_raise(GRD_ERROR_RUNTIME, text);
    if (!grd_shape_may_overlap(grd_sizes(written), written->strides))
        return true;
    /* Two different elements share an address if sum(d[j] * stride[j]) = 0, where d[j] is the difference of their indices in dimension j. Exchanging
     * the two elements negates d. So it is enough to try, for each dimension i, all d whose first nonzero entry is d[i] and in which d[i] is
     * positive. */
    int budget = OVERLAP_BUDGET;
    for (int i = 0; i < written->ndim; i++) {
        struct term terms[MAX_TERMS];
        int n = 0;
        for (int j = i; j < written->ndim; j++) {
            n = add_term(terms, n, written->strides[j], written->sizes[j] - (j == i), false);
            if (j > i)
                n = add_term(terms, n, written->strides[j], written->sizes[j], true);
        }
        if (written->sizes[i] > 1 && sum_reaches(terms, n, -written->strides[i], -written->strides[i], &budget))
            return grd_raise(GRD_ERROR_RUNTIME, text);
    }
    return true;
}

/* True if each element of `read`, broadcast to the sizes of `written`, has the same address and size as the element of `written` with the same
 * index. */
static bool is_same_view(const grd_tensor *written, const grd_tensor *read)
{
    if (written->data != read->data || written->offset != read->offset || written->itemsize != read->itemsize || read->ndim > written->ndim)
        return false;
    for (int64_t i = 0; i < written->ndim; i++) {
        int64_t own = i - (written->ndim - read->ndim), size = own < 0 ? 1 : read->sizes[own];
        if (size != written->sizes[i] || (size != 1 && read->strides[own] != written->strides[i]))
            return false;
    }
    return true;
}

/* Returns the address of the first element of `t`. A tensor on the meta device has no memory. For such a tensor the function returns the offset
 * in bytes from the start of the storage, which is enough to compare two tensors over one storage. */
static int64_t address(const grd_tensor *t)
{
    return t->data != NULL ? (int64_t)(intptr_t)t->data : t->offset * (int64_t)t->itemsize;
}

/* True if the tensors have one storage, or if both storages hold borrowed memory, which may be the same memory. */
static bool may_share(const grd_tensor *a, const grd_tensor *b)
{
    return a->storage == b->storage || (a->storage->release != NULL && b->storage->release != NULL);
}

/* True if some byte belongs both to an element of `a` and to an element of `b`. */
static bool overlaps(const grd_tensor *a, const grd_tensor *b)
{
    struct term terms[MAX_TERMS];
    int n = 0, budget = OVERLAP_BUDGET;
    int64_t distance = address(b) - address(a); /* bytes from the first element of `a` to the first element of `b` */
    for (int i = 0; i < a->ndim; i++)
        n = add_term(terms, n, grd_byte_stride(a, i), a->sizes[i], false);
    for (int i = 0; i < b->ndim; i++)
        n = add_term(terms, n, grd_byte_stride(b, i), b->sizes[i], true);
    return sum_reaches(terms, n, distance - ((int64_t)a->itemsize - 1), distance + ((int64_t)b->itemsize - 1), &budget);
}

/* Raises PyTorch's RuntimeError for an input that overlaps the written tensor. Always returns false. */
static bool partial_overlap(void)
{
    return grd_raise(GRD_ERROR_RUNTIME,
                     "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single "
                     "memory location. Please clone() the tensor before performing the operation.");
}

bool grd_overlaps(const grd_tensor *a, const grd_tensor *b)
{
    return GRD_UNLIKELY(may_share(a, b)) && a->numel > 0 && b->numel > 0 && overlaps(a, b);
}

bool grd_check_no_overlap(const grd_tensor *written, const grd_tensor *read)
{
    return GRD_LIKELY(!grd_overlaps(written, read)) || (written != read && !(grd_is_dense(written) && grd_is_dense(read))) ||
           partial_overlap();
}

bool grd_check_no_partial_overlap(const grd_tensor *written, const grd_tensor *read)
{
    if (GRD_LIKELY(written == read || !may_share(written, read)) || written->numel == 0 || read->numel == 0 ||
        is_same_view(written, read) || !overlaps(written, read))
        return true;
    return partial_overlap();
}

/* ---- Sizes and strides ------------------------------------------------------------------------------------------------------- */

static grd_dims planned_sizes(const struct grd_planned *planned)
{
    return grd_dims_from(planned->sizes, planned->ndim);
}

static bool has_sizes(const grd_tensor *t, const struct grd_planned *planned)
{
    return grd_dims_equal(grd_dims_from(t->sizes, t->ndim), planned_sizes(planned));
}

/* True if broadcasting `t` with the sizes planned so far leaves these sizes unchanged. */
static bool stays_within(const grd_tensor *t, const struct grd_planned *planned)
{
    const int missing = planned->ndim - t->ndim;
    for (int i = 0; i < t->ndim && missing >= 0; i++)
        if (t->sizes[i] != planned->sizes[i + missing] && t->sizes[i] != 1)
            return false;
    return missing >= 0;
}

/* Sets the planned sizes to the sizes that the inputs broadcast to, and writes their product to *ret_numel. Returns false, with RuntimeError, if the
 * inputs do not broadcast. */
static bool plan_sizes(struct grd_planned *planned, const struct grd_iter_spec *spec, int64_t *ret_numel)
{
    const grd_tensor *first = spec->inputs[0];
    bool grows = false;
    planned->ndim = (uint8_t)first->ndim;
    for (int i = 0; i < first->ndim; i++)
        planned->sizes[i] = first->sizes[i];
    for (int i = 1; i < spec->ninputs; i++) {
        int64_t ndim;
        if (stays_within(spec->inputs[i], planned))
            continue;
        grows = true;
        if (!grd_shape_broadcast(planned_sizes(planned), grd_sizes(spec->inputs[i]), planned->sizes, &ndim))
            return false;
        planned->ndim = (uint8_t)ndim;
    }
    *ret_numel = first->numel;
    return !grows || grd_shape_numel(planned_sizes(planned), ret_numel);
}

/* Writes the strides in bytes that `t` has after it is broadcast to `sizes`. They are 0 in broadcast dimensions. `strides` holds the strides of
 * `t` in elements. A stride that overflows becomes 0, because no element uses it; see Note [Unused strides]. */
static void byte_strides(const grd_tensor *t, const int64_t *strides, grd_dims sizes, int64_t *ret_strides)
{
    const int64_t missing = sizes.n - t->ndim;
    for (int64_t i = 0; i < sizes.n; i++) {
        const bool broadcast = i < missing || (t->sizes[i - missing] == 1 && sizes.data[i] != 1);
        if (__builtin_mul_overflow(broadcast ? 0 : strides[i - missing], (int64_t)t->itemsize, &ret_strides[i]))
            ret_strides[i] = 0;
    }
}

/* Returns the strides of `t`, operand number `operand`, by which the dimensions of the result are ordered, as in PyTorch's iterator. Usually these
 * are t->strides. If `t` must be converted and is not dense, PyTorch would convert it to a dense tensor. In this case writes the strides of that
 * dense tensor to `buffer` and returns `buffer`. */
static const int64_t *strides_as_computed(const struct grd_iter *it, int operand, const grd_tensor *t, int64_t *buffer)
{
    if (it->dtypes[operand] == it->wanted[operand] || grd_shape_is_dense(grd_sizes(t), t->strides))
        return t->strides;
    grd_shape_dense_strides(grd_sizes(t), t->strides, buffer);
    return buffer;
}

/* Writes the strides of the result if all inputs are contiguous, all are channels last, or all are dense with equal strides. Otherwise returns
 * false. All inputs must have the sizes of the result. */
static bool common_strides(const struct grd_iter *it, const struct grd_iter_spec *spec, grd_dims sizes, int64_t *ret_strides)
{
    int64_t buffers[2][GRD_MAX_DIMS];
    const int64_t *model = strides_as_computed(it, 1, spec->inputs[0], buffers[0]);
    bool contiguous = true, channels_last = sizes.n == 4, equal = true;
    for (int i = 0; i < spec->ninputs; i++) {
        const int64_t *strides = i == 0 ? model : strides_as_computed(it, i + 1, spec->inputs[i], buffers[1]);
        contiguous &= grd_shape_is_contiguous(sizes, strides);
        channels_last &= sizes.n == 4 && grd_shape_is_channels_last(sizes, strides);
        equal &= memcmp(strides, model, (size_t)sizes.n * sizeof *strides) == 0;
    }
    if (contiguous)
        grd_shape_contiguous_strides(sizes, ret_strides);
    else if (channels_last)
        grd_shape_channels_last_strides(sizes, ret_strides);
    else if (equal && grd_shape_is_dense(sizes, model))
        memcpy(ret_strides, model, (size_t)sizes.n * sizeof *model);
    else
        return false;
    return true;
}

/* Writes the strides of a dense result of these sizes, whose dimensions are ordered by the strides of the inputs (grd_shape_ordered_strides). */
static void ordered_strides(const struct grd_iter *it, const struct grd_iter_spec *spec, grd_dims sizes, int64_t *ret_strides)
{
    int64_t told[GRD_ITER_INPUTS][GRD_MAX_DIMS], buffer[GRD_MAX_DIMS];
    for (int i = 0; i < spec->ninputs; i++)
        byte_strides(spec->inputs[i], strides_as_computed(it, i + 1, spec->inputs[i], buffer), sizes, told[i]);
    grd_shape_ordered_strides(sizes, (const int64_t(*)[GRD_MAX_DIMS])told, spec->ninputs, ret_strides);
}

static bool all_have_sizes(const struct grd_iter_spec *spec, const struct grd_planned *planned)
{
    for (int i = 0; i < spec->ninputs; i++)
        if (!has_sizes(spec->inputs[i], planned))
            return false;
    return true;
}

/* True if `t`, the first input, is contiguous and has the planned sizes, all of which are greater than 1. In this case the result is row-major,
 * and the strides of the other inputs need not be read. */
static bool decides_row_major(const grd_tensor *t, const struct grd_planned *planned)
{
    if (!grd_has(t, GRD_FLAG_CONTIGUOUS) || t->ndim != planned->ndim)
        return false;
    for (int i = 0; i < t->ndim; i++)
        if (t->sizes[i] < 2 || t->sizes[i] != planned->sizes[i])
            return false;
    return true;
}

/* Note [Strides of results]
 * The strides of results are those that PyTorch gives. If all inputs have the sizes of the result and are all contiguous, all channels last, or
 * all dense with equal strides, the result has the same layout. Otherwise the result is dense, and its dimensions are ordered by the strides of
 * the inputs (grd_shape_order). This second rule also applies if one of the inputs is a number and the result has dimensions, because a
 * number does not have the sizes of the result. */
static void plan_strides(const struct grd_iter *it, struct grd_planned *planned, const struct grd_iter_spec *spec)
{
    const grd_dims sizes = planned_sizes(planned);
    if (!all_have_sizes(spec, planned) || !common_strides(it, spec, sizes, planned->strides))
        ordered_strides(it, spec, sizes, planned->strides);
    planned->strided = true;
}

/* ---- The plan ------------------------------------------------------------------------------------------------------------------ */

bool grd_check_castable(grd_dtype from, grd_dtype to)
{
    return grd_can_cast(from, to) || grd_raise(GRD_ERROR_RUNTIME, "result type %s can't be cast to the desired output type %s",
                                               grd_dtype_type_name(from), grd_dtype_type_name(to));
}

bool grd_check_inplace_shape(const grd_tensor *self, grd_dims sizes)
{
    char have[256], need[256];
    const grd_dims own = grd_dims_from(self->sizes, self->ndim);
    return grd_dims_equal(own, sizes) ||
           grd_raise(GRD_ERROR_RUNTIME, "output with shape %s doesn't match the broadcast shape %s",
                     grd_format_int64s(have, sizeof have, own.data, own.n), grd_format_int64s(need, sizeof need, sizes.data, sizes.n));
}

/* True if the result may be written to `out`, the out= tensor spec->out. Otherwise raises an error, for example if elements of `out` overlap each
 * other, if `out` partly overlaps an input, or if the result cannot be cast to the dtype of `out`. */
static bool check_out(const struct grd_iter *it, const struct grd_iter_spec *spec, const struct grd_planned *planned)
{
    const grd_tensor *out = spec->out;
    const bool fits = has_sizes(out, planned);
    if (!grd_check_no_internal_overlap(out))
        return false;
    for (int i = 0; i < spec->ninputs; i++) {
        if (spec->inputs[i] == out && !grd_check_inplace_shape(out, planned_sizes(planned)))
            return false;
        /* If `out` must be resized, its new elements may overlap an input in the same storage. */
        if (!fits && may_share(out, spec->inputs[i]))
            return partial_overlap();
        if (!grd_check_no_partial_overlap(out, spec->inputs[i]))
            return false;
    }
    return grd_check_castable(it->wanted[0], (grd_dtype)out->dtype);
}

bool grd_iter_plan(struct grd_iter *it, struct grd_planned *ret_planned, const struct grd_iter_spec *spec)
{
    it->noperands = spec->ninputs + 1;
    if (!plan_kinds(it, spec) || !plan_sizes(ret_planned, spec, &it->numel))
        return false;
    if ((spec->out != NULL && !check_out(it, spec, ret_planned)) || !check_conversions(it))
        return false;
    ret_planned->dtype = ret_planned->as = it->wanted[0];
    ret_planned->strided = false;
    /* Only a tensor that is allocated or resized needs planned strides. */
    const bool made = spec->out == NULL || !has_sizes(spec->out, ret_planned);
    if (made && ret_planned->ndim > 1 && !decides_row_major(spec->inputs[0], ret_planned))
        plan_strides(it, ret_planned, spec);
    return true;
}

bool grd_iter_plan_result(grd_tensors inputs, grd_dtype dtype, struct grd_planned *ret_planned)
{
    struct grd_iter_spec spec = {.ninputs = (int)inputs.n, .rule = GRD_TYPE_KEEP, .dtype = dtype};
    struct grd_iter it;
    for (int i = 0; i < spec.ninputs; i++)
        spec.inputs[i] = inputs.data[i];
    return grd_iter_plan(&it, ret_planned, &spec);
}

/* ---- Memory -------------------------------------------------------------------------------------------------------------------- */

/* Sets the shape and strides of the iteration so that neighbouring elements in memory are visited one after another. Dimensions of size 1 are
 * removed, and adjacent dimensions are merged if the strides of every operand allow it. No size may be 0. */
static void set_walk(struct grd_iter *it, grd_dims sizes, const int64_t (*strides)[GRD_MAX_DIMS])
{
    int order[GRD_MAX_DIMS], ndim = 0;
    grd_shape_order(sizes, strides, it->noperands, order);
    for (int64_t k = 0; k < sizes.n; k++) {
        const int dim = order[k];
        if (sizes.data[dim] == 1)
            continue;
        bool joins = ndim > 0;
        for (int i = 0; joins && i < it->noperands; i++)
            joins = strides[i][dim] == grd_wrapping_product(it->strides[i][ndim - 1], it->shape[ndim - 1]);
        if (joins) {
            it->shape[ndim - 1] = grd_wrapping_product(it->shape[ndim - 1], sizes.data[dim]);
            continue;
        }
        it->shape[ndim] = sizes.data[dim];
        for (int i = 0; i < it->noperands; i++)
            it->strides[i][ndim] = strides[i][dim];
        ndim++;
    }
    it->ndim = ndim;
}

/* Sets the addresses, shape and strides of `it`. Called only for more than GRD_ITER_FEW elements. Smaller iterations do not use the addresses and
 * strides in `it` (Note [Few elements]). */
static __attribute__((noinline)) void bind_many(struct grd_iter *it, grd_dims sizes)
{
    int64_t strides[GRD_ITER_OPERANDS][GRD_MAX_DIMS];
    for (int i = 0; i < it->noperands; i++) {
        it->data[i] = it->tensors[i]->data;
        byte_strides(it->tensors[i], it->tensors[i]->strides, sizes, strides[i]);
    }
    set_walk(it, sizes, (const int64_t(*)[GRD_MAX_DIMS])strides);
}

grd_tensor *grd_iter_bind(struct grd_iter *it, const struct grd_planned *planned, const struct grd_iter_spec *spec)
{
    const grd_dims sizes = planned_sizes(planned);
    grd_tensor *result = spec->out;
    if (result == NULL)
        result = grd_new_planned(planned, planned->dtype, it->device);
    else if (!has_sizes(result, planned) && !grd_resize_out(result, sizes, planned->strided ? planned->strides : NULL))
        return grd_failed;
    if (grd_is_failed(result) || it->device.type == GRD_DEVICE_META || it->numel == 0)
        return result;
    it->tensors[0] = result;
    for (int i = 0; i < spec->ninputs; i++)
        it->tensors[i + 1] = spec->inputs[i];
    it->few = it->numel <= GRD_ITER_FEW;
    it->ndim = (int)sizes.n;
    for (int64_t i = 0; i < sizes.n && it->few; i++)
        it->shape[i] = sizes.data[sizes.n - 1 - i];
    if (!it->few)
        bind_many(it, sizes);
    return result;
}

void grd_iter_raw(struct grd_iter *it, grd_dims sizes, int noperands, char *const *data, const int64_t *const *strides_bytes)
{
    int64_t strides[GRD_ITER_OPERANDS][GRD_MAX_DIMS];
    it->noperands = noperands;
    it->compute = GRD_DTYPE_NONE;
    it->device = GRD_CPU;
    it->few = it->converts = false;
    it->numel = grd_sizes_product(sizes.data, sizes.n);
    for (int i = 0; i < noperands; i++) {
        it->dtypes[i] = it->wanted[i] = GRD_DTYPE_NONE;
        it->data[i] = data[i];
        for (int64_t dim = 0; dim < sizes.n; dim++)
            strides[i][dim] = strides_bytes[i][dim];
    }
    if (it->numel > 0)
        set_walk(it, sizes, (const int64_t(*)[GRD_MAX_DIMS])strides);
}
