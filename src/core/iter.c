/* Elementwise iteration: what iter.h promises.
 *
 * Lives here: promotion of several inputs, overlap of tensors, the order of dimensions, the loops over everything but the innermost
 * dimension, conversion in cache-sized pieces. Not here: what an operator computes, and conversions themselves (grd_iter_cast).
 *
 * Invariant: after grd_iter_elementwise nothing can fail; pieces of work are the same for every number of threads. */
#include "core/iter.h"

#include <string.h>

#include "base/parallel.h"
#include "base/text.h"

grd_loop *(*grd_iter_cast)(grd_dtype from, grd_dtype to);

static enum grd_category category_of(grd_dtype dtype)
{
    return (enum grd_category)grd_dtype_table[dtype].category;
}

static bool is_integral(grd_dtype dtype)
{
    return category_of(dtype) <= GRD_CATEGORY_INTEGER;
}

/* ---- Promotion --------------------------------------------------------------------------------------------------------- */

/* What a plain number brings: the default dtype of its kind. */
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

/* Joins a dtype of higher rank with one of lower rank, which only counts when its category is above. */
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
 * A uint8 tensor is compared with the number 300 as what it is, not as the 44 it would wrap to. */
static grd_dtype dtype_to_compare(const struct grd_iter_spec *spec, grd_dtype common)
{
    if (category_of(common) != GRD_CATEGORY_INTEGER)
        return common;
    for (int i = 0; i < spec->ninputs; i++) {
        const grd_tensor *t = spec->inputs[i];
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

/* Sets compute, dtypes and wanted of the inputs, and wanted[0]. */
static bool resolve_dtypes(struct grd_iter *it, const struct grd_iter_spec *spec)
{
    grd_dtype common = spec->dtype;
    if (spec->rule != GRD_TYPE_KEEP) {
        common = grd_result_type(spec->inputs + spec->promote_from, spec->ninputs - spec->promote_from);
        if (common == GRD_DTYPE_NONE)
            return false;
    }
    if (spec->rule == GRD_TYPE_FLOAT && is_integral(common))
        common = grd_default_dtype();
    if (spec->rule == GRD_TYPE_COMPARE)
        common = dtype_to_compare(spec, common);
    it->compute = common;
    it->wanted[0] = spec->rule == GRD_TYPE_COMPARE || spec->rule == GRD_TYPE_BOOL ? GRD_BOOL : common;
    for (int i = 0; i < spec->ninputs; i++) {
        it->dtypes[i + 1] = spec->inputs[i]->dtype;
        it->wanted[i + 1] = spec->rule == GRD_TYPE_KEEP ? (grd_dtype)spec->inputs[i]->dtype : i < spec->promote_from ? GRD_BOOL : common;
    }
    return true;
}

static bool can_convert(grd_dtype from, grd_dtype to)
{
    return from == to || (grd_iter_cast != NULL && grd_iter_cast(from, to) != NULL) ||
           grd_raise(GRD_ERROR_NOT_IMPLEMENTED, "\"copy_\" not implemented for '%s' to '%s'", grd_dtype_type_name(from),
                     grd_dtype_type_name(to));
}

static bool check_conversions(const struct grd_iter *it)
{
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

static bool different_devices(const grd_tensor *a, const grd_tensor *b)
{
    return grd_raise_devices(grd_device_of(a), grd_device_of(b));
}

/* The tensor whose device is that of the result: 0-d cpu tensors go anywhere. */
static const grd_tensor *resolve_device(const struct grd_iter_spec *spec)
{
    const grd_tensor *chosen = NULL;
    for (int i = 0; i < spec->ninputs; i++) {
        const grd_tensor *t = spec->inputs[i];
        if (chosen == NULL || (chosen->ndim == 0 && chosen->device == GRD_DEVICE_CPU && !same_device(t, chosen)))
            chosen = t;
    }
    for (int i = 0; i < spec->ninputs; i++) {
        const grd_tensor *t = spec->inputs[i];
        if (!same_device(t, chosen) && !(t->ndim == 0 && t->device == GRD_DEVICE_CPU)) {
            different_devices(chosen, t);
            return NULL;
        }
    }
    if (spec->out != NULL && !same_device(spec->out, chosen)) {
        different_devices(chosen, spec->out);
        return NULL;
    }
    return chosen;
}

/* ---- Overlap --------------------------------------------------------------------------------------------------------------- */

/* One unknown of a bounded integer sum: stride > 0 times a count in [low, high]. */
struct term {
    int64_t stride, low, high;
};

static int64_t floor_divide(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

/* Whether some choice of counts makes the sum of terms fall into [low, high]. Terms are sorted by falling stride, so that few choices
 * remain at each step; a search beyond the budget counts as "no", as PyTorch lets pass what is too hard to tell. */
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

/* Adds stride * [0, count - 1], or its negative, joining it with a term of the same stride. */
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
    /* Two indices that share an address differ by counts d with sum(d * stride) = 0; the first that is not zero may be taken positive. */
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

/* Whether both are read and written element by element at the same addresses. */
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

/* First byte, for tensors of one storage or of memory that is not ours. */
static int64_t address(const grd_tensor *t)
{
    return t->data != NULL ? (int64_t)(intptr_t)t->data : t->offset * (int64_t)t->itemsize;
}

static bool may_share(const grd_tensor *a, const grd_tensor *b)
{
    return a->storage == b->storage || (a->storage->release != NULL && b->storage->release != NULL);
}

static bool overlaps(const grd_tensor *a, const grd_tensor *b)
{
    struct term terms[MAX_TERMS];
    int n = 0, budget = OVERLAP_BUDGET;
    int64_t distance = address(b) - address(a); /* sum(a) = distance + sum(b), within the bytes of an element */
    for (int i = 0; i < a->ndim; i++)
        n = add_term(terms, n, grd_byte_stride(a, i), a->sizes[i], false);
    for (int i = 0; i < b->ndim; i++)
        n = add_term(terms, n, grd_byte_stride(b, i), b->sizes[i], true);
    return sum_reaches(terms, n, distance - ((int64_t)a->itemsize - 1), distance + ((int64_t)b->itemsize - 1), &budget);
}

static bool partial_overlap(void)
{
    return grd_raise(GRD_ERROR_RUNTIME,
                     "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single "
                     "memory location. Please clone() the tensor before performing the operation.");
}

bool grd_check_no_overlap(const grd_tensor *written, const grd_tensor *read)
{
    if (GRD_LIKELY(!may_share(written, read)) || written->numel == 0 || read->numel == 0 || !overlaps(written, read))
        return true;
    return partial_overlap();
}

bool grd_check_no_partial_overlap(const grd_tensor *written, const grd_tensor *read)
{
    if (GRD_LIKELY(written == read || !may_share(written, read)) || written->numel == 0 || read->numel == 0 ||
        is_same_view(written, read) || !overlaps(written, read))
        return true;
    return partial_overlap();
}

/* ---- Geometry ---------------------------------------------------------------------------------------------------------------- */

/* The operands as logical dimensions, before they are ordered: strides in bytes. */
struct geometry {
    int64_t ndim, numel;
    int64_t sizes[GRD_MAX_DIMS];
    int64_t strides[GRD_ITER_OPERANDS][GRD_MAX_DIMS];
    int order[GRD_MAX_DIMS]; /* innermost first */
};

static bool same_shape(const grd_tensor *t, const struct geometry *g)
{
    return t->ndim == g->ndim && memcmp(t->sizes, g->sizes, (size_t)g->ndim * sizeof *g->sizes) == 0;
}

static bool resolve_shape(struct geometry *g, const struct grd_iter_spec *spec)
{
    g->ndim = spec->inputs[0]->ndim;
    memcpy(g->sizes, spec->inputs[0]->sizes, (size_t)g->ndim * sizeof *g->sizes);
    for (int i = 1; i < spec->ninputs; i++) {
        const grd_tensor *t = spec->inputs[i];
        if (same_shape(t, g))
            continue;
        int64_t sizes[GRD_MAX_DIMS];
        if (!grd_shape_broadcast(grd_dims_from(g->sizes, g->ndim), grd_sizes(t), sizes, &g->ndim))
            return false;
        memcpy(g->sizes, sizes, (size_t)g->ndim * sizeof *sizes);
    }
    return grd_shape_numel(grd_dims_from(g->sizes, g->ndim), &g->numel);
}

/* Sets an operand's strides in bytes: those given for `t`, and 0 where `t` is broadcast. A stride too large for that is of a dimension with at most
 * one element, which needs none. */
static void set_strides(struct geometry *g, int operand, const grd_tensor *t, const int64_t *strides)
{
    const int64_t missing = g->ndim - t->ndim;
    for (int64_t i = 0; i < g->ndim; i++) {
        const bool broadcast = i < missing || (t->sizes[i - missing] == 1 && g->sizes[i] != 1);
        if (__builtin_mul_overflow(broadcast ? 0 : strides[i - missing], (int64_t)t->itemsize, &g->strides[operand][i]))
            g->strides[operand][i] = 0;
    }
}

/* Orders dimensions so that memory is walked in small steps. */
static void order_dims(struct geometry *g, int noperands)
{
    grd_shape_order(grd_dims_from(g->sizes, g->ndim), (const int64_t(*)[GRD_MAX_DIMS])g->strides, noperands, g->order);
}

/* Fills shape and strides of the iterator, unless it is empty: in order, without dimensions of size 1, neighbours joined where every operand allows it. */
static void coalesce(struct grd_iter *it, const struct geometry *g)
{
    int ndim = 0;
    for (int64_t k = 0; k < g->ndim && g->numel > 0; k++) {
        int dim = g->order[k];
        if (g->sizes[dim] == 1)
            continue;
        bool joins = ndim > 0;
        for (int i = 0; joins && i < it->noperands; i++)
            joins = g->strides[i][dim] == grd_wrapping_product(it->strides[i][ndim - 1], it->shape[ndim - 1]);
        if (joins) {
            it->shape[ndim - 1] = grd_wrapping_product(it->shape[ndim - 1], g->sizes[dim]);
            continue;
        }
        it->shape[ndim] = g->sizes[dim];
        for (int i = 0; i < it->noperands; i++)
            it->strides[i][ndim] = g->strides[i][dim];
        ndim++;
    }
    it->ndim = ndim;
}

/* ---- The result ----------------------------------------------------------------------------------------------------------------- */

static bool wrong_inplace_shape(const grd_tensor *out, const struct geometry *g)
{
    char have[256], need[256];
    grd_dims sizes = grd_sizes(out);
    return grd_raise(GRD_ERROR_RUNTIME, "output with shape %s doesn't match the broadcast shape %s",
                     grd_format_int64s(have, sizeof have, sizes.data, sizes.n), grd_format_int64s(need, sizeof need, g->sizes, g->ndim));
}

/* Everything that can be said against a given result tensor. */
static bool check_out(const struct grd_iter *it, const struct grd_iter_spec *spec, const struct geometry *g)
{
    const grd_tensor *out = spec->out;
    bool fits = same_shape(out, g);
    if (!spec->repeats && !grd_check_no_internal_overlap(out))
        return false;
    for (int i = 0; i < spec->ninputs; i++) {
        if (!fits && spec->inputs[i] == out)
            return wrong_inplace_shape(out, g);
        if (!fits && may_share(out, spec->inputs[i])) /* after resizing it would cover other elements */
            return partial_overlap();
        if (!grd_check_no_partial_overlap(out, spec->inputs[i]))
            return false;
    }
    return grd_can_cast(it->wanted[0], out->dtype) ||
           grd_raise(GRD_ERROR_RUNTIME, "result type %s can't be cast to the desired output type %s", grd_dtype_type_name(it->wanted[0]),
                     grd_dtype_type_name(out->dtype));
}

/* Strides of `t` as PyTorch's iterator sees them, which converts an input of another dtype into a dense tensor first. */
static const int64_t *strides_as_computed(const struct grd_iter *it, int operand, const grd_tensor *t, int64_t *buffer)
{
    if (it->dtypes[operand] == it->wanted[operand] || grd_shape_is_dense(grd_sizes(t), t->strides))
        return t->strides;
    grd_shape_dense_strides(grd_sizes(t), t->strides, buffer);
    return buffer;
}

/* Writes strides that need no order of dimensions: those of row-major order, of channels last, or of all inputs. The inputs have the result's
 * shape. False if there are none. */
static bool common_strides(const struct grd_iter *it, const struct grd_iter_spec *spec, const struct geometry *g, int64_t *ret_strides)
{
    const grd_dims sizes = grd_dims_from(g->sizes, g->ndim);
    int64_t buffers[2][GRD_MAX_DIMS];
    const int64_t *model = strides_as_computed(it, 1, spec->inputs[0], buffers[0]);
    bool contiguous = true, channels_last = g->ndim == 4, equal = true;
    for (int i = 0; i < spec->ninputs; i++) {
        const int64_t *strides = i == 0 ? model : strides_as_computed(it, i + 1, spec->inputs[i], buffers[1]);
        contiguous &= grd_shape_is_contiguous(sizes, strides);
        channels_last &= g->ndim == 4 && grd_shape_is_channels_last(sizes, strides);
        equal &= memcmp(strides, model, (size_t)g->ndim * sizeof *strides) == 0;
    }
    if (contiguous)
        grd_shape_contiguous_strides(sizes, ret_strides);
    else if (channels_last)
        grd_shape_channels_last_strides(sizes, ret_strides);
    else if (equal && grd_shape_is_dense(sizes, model))
        memcpy(ret_strides, model, (size_t)g->ndim * sizeof *model);
    else
        return false;
    return true;
}

/* Writes the strides of a dense result whose dimensions are ordered as the inputs' strides say. */
static void ordered_strides(const struct grd_iter *it, const struct grd_iter_spec *spec, const struct geometry *g, int64_t *ret_strides)
{
    struct geometry told;
    told.ndim = g->ndim;
    memcpy(told.sizes, g->sizes, (size_t)g->ndim * sizeof *g->sizes);
    for (int i = 0; i < spec->ninputs; i++) {
        int64_t buffer[GRD_MAX_DIMS];
        set_strides(&told, i, spec->inputs[i], strides_as_computed(it, i + 1, spec->inputs[i], buffer));
    }
    grd_shape_ordered_strides(grd_dims_from(g->sizes, g->ndim), (const int64_t(*)[GRD_MAX_DIMS])told.strides, spec->ninputs, ret_strides);
}

static bool inputs_have_result_shape(const struct grd_iter_spec *spec, const struct geometry *g)
{
    for (int i = 0; i < spec->ninputs; i++)
        if (!same_shape(spec->inputs[i], g))
            return false;
    return true;
}

/* Note [Strides of results]
 * They are PyTorch's. Inputs of one shape that are all contiguous, all channels last, or all dense with equal strides give a result like them.
 * Otherwise the result is dense, with its dimensions in the order that the inputs' strides tell. A zero-dimensional input is not of the result's
 * shape, so beside a number even the strides of dimensions of size 1 count. */
static void result_strides(const struct grd_iter *it, const struct grd_iter_spec *spec, const struct geometry *g, int64_t *ret_strides)
{
    if (!inputs_have_result_shape(spec, g) || !common_strides(it, spec, g, ret_strides))
        ordered_strides(it, spec, g, ret_strides);
}

bool grd_iter_result_strides(grd_tensors inputs, int64_t *ret_strides)
{
    struct grd_iter_spec spec = {.ninputs = (int)inputs.n};
    struct grd_iter it = {.noperands = spec.ninputs + 1};
    struct geometry g;
    for (int i = 0; i < spec.ninputs; i++)
        spec.inputs[i] = inputs.data[i];
    if (!resolve_shape(&g, &spec))
        return false;
    result_strides(&it, &spec, &g, ret_strides);
    return true;
}

static grd_tensor *new_result(const struct grd_iter *it, const struct grd_iter_spec *spec, const struct geometry *g, grd_device device)
{
    const grd_dims sizes = grd_dims_from(g->sizes, g->ndim);
    int64_t strides[GRD_MAX_DIMS];
    if (g->ndim < 2 || spec->row_major)
        return grd_new(sizes, it->wanted[0], device);
    result_strides(it, spec, g, strides);
    return grd_new_strided(sizes, grd_dims_from(strides, g->ndim), it->wanted[0], device);
}

grd_tensor *grd_iter_elementwise(struct grd_iter *it, const struct grd_iter_spec *spec)
{
    struct geometry g;
    it->noperands = spec->ninputs + 1;
    it->numel = 0;
    const grd_tensor *on = resolve_device(spec);
    if (on == NULL || !resolve_dtypes(it, spec) || !resolve_shape(&g, spec))
        return grd_failed;
    it->dtypes[0] = spec->out != NULL ? (grd_dtype)spec->out->dtype : it->wanted[0];
    if ((spec->out != NULL && !check_out(it, spec, &g)) || (spec->accept != NULL && !spec->accept(spec, it->compute, spec->context)) ||
        !check_conversions(it))
        return grd_failed;
    for (int i = 0; i < spec->ninputs; i++)
        set_strides(&g, i + 1, spec->inputs[i], spec->inputs[i]->strides);
    grd_tensor *result = spec->out;
    if (result == NULL)
        result = new_result(it, spec, &g, grd_device_of(on));
    else if (!same_shape(result, &g) && !grd_resize_out(result, grd_dims_from(g.sizes, g.ndim)))
        return grd_failed;
    if (grd_is_failed(result))
        return grd_failed;
    set_strides(&g, 0, result, result->strides);
    order_dims(&g, it->noperands);
    coalesce(it, &g);
    it->numel = g.numel;
    it->meta = grd_is_meta(result);
    it->data[0] = result->data;
    for (int i = 0; i < spec->ninputs; i++)
        it->data[i + 1] = spec->inputs[i]->data;
    return result;
}

void grd_iter_raw(struct grd_iter *it, grd_dims sizes, int noperands, char *const *data, const int64_t *const *strides_bytes)
{
    struct geometry g = {.ndim = sizes.n, .numel = grd_sizes_product(sizes.data, sizes.n)};
    it->noperands = noperands;
    it->compute = GRD_DTYPE_NONE;
    it->meta = false;
    for (int64_t i = 0; i < sizes.n; i++)
        g.sizes[i] = sizes.data[i];
    for (int i = 0; i < noperands; i++) {
        it->dtypes[i] = it->wanted[i] = GRD_DTYPE_NONE;
        it->data[i] = data[i];
        for (int64_t dim = 0; dim < sizes.n; dim++)
            g.strides[i][dim] = strides_bytes[i][dim];
    }
    order_dims(&g, noperands);
    coalesce(it, &g);
    it->numel = g.numel;
}

/* ---- Running ---------------------------------------------------------------------------------------------------------------------- */

/* Bytes of one operand converted at a time: all of them stay in the first-level cache. */
enum { BUFFER_BYTES = 4096, BUFFER_ELEMENTS = BUFFER_BYTES / 16 };

struct run {
    const struct grd_iter *it;
    grd_loop *kernel;
    const void *params;
    bool converts;
    grd_loop *cast[GRD_ITER_OPERANDS]; /* NULL: as it lies in memory */
};

static struct run make_run(const struct grd_iter *it, grd_loop *kernel, const void *params)
{
    struct run run = {.it = it, .kernel = kernel, .params = params};
    for (int i = 0; i < it->noperands; i++) {
        if (it->dtypes[i] == it->wanted[i])
            continue;
        run.cast[i] = i == 0 ? grd_iter_cast(it->wanted[0], it->dtypes[0]) : grd_iter_cast(it->dtypes[i], it->wanted[i]);
        run.converts = true;
    }
    return run;
}

/* n elements in a line, some of them in another dtype than the kernel's. An operand with stride 0 is converted once. */
static void run_converted(const struct run *run, int64_t n, char *const *data, const int64_t *strides)
{
    _Alignas(64) char buffers[GRD_ITER_OPERANDS][BUFFER_BYTES];
    const struct grd_iter *it = run->it;
    char *at[GRD_ITER_OPERANDS];
    int64_t steps[GRD_ITER_OPERANDS];
    for (int i = 0; i < it->noperands; i++) {
        at[i] = run->cast[i] != NULL ? buffers[i] : data[i];
        steps[i] = run->cast[i] == NULL ? strides[i] : i > 0 && strides[i] == 0 ? 0 : (int64_t)grd_dtype_table[it->wanted[i]].size;
        if (run->cast[i] != NULL && steps[i] == 0)
            run->cast[i](1, (char *const[]){buffers[i], data[i]}, (const int64_t[]){0, 0}, NULL);
    }
    for (int64_t done = 0; done < n; done += BUFFER_ELEMENTS) {
        int64_t count = n - done < BUFFER_ELEMENTS ? n - done : BUFFER_ELEMENTS;
        for (int i = 0; i < it->noperands; i++) {
            if (run->cast[i] == NULL)
                at[i] = data[i] + done * strides[i];
            else if (i > 0 && steps[i] != 0)
                run->cast[i](count, (char *const[]){buffers[i], data[i] + done * strides[i]}, (const int64_t[]){steps[i], strides[i]},
                             NULL);
        }
        run->kernel(count, at, steps, run->params);
        if (run->cast[0] != NULL)
            run->cast[0](count, (char *const[]){data[0] + done * strides[0], buffers[0]}, (const int64_t[]){strides[0], steps[0]}, NULL);
    }
}

static void run_line(const struct run *run, int64_t n, char *const *data, const int64_t *strides)
{
    if (run->converts)
        run_converted(run, n, data, strides);
    else
        run->kernel(n, data, strides, run->params);
}

/* Where a walk over the outer dimensions stands. */
struct cursor {
    int64_t index[GRD_MAX_DIMS];   /* [0] is within the innermost line */
    char *line[GRD_ITER_OPERANDS]; /* first element of the line */
};

static void cursor_set(struct cursor *c, const struct grd_iter *it, int64_t position)
{
    for (int i = 0; i < it->noperands; i++)
        c->line[i] = it->data[i];
    for (int d = 0; d < it->ndim; d++) {
        c->index[d] = position % it->shape[d];
        position /= it->shape[d];
        for (int i = 0; d > 0 && i < it->noperands; i++)
            c->line[i] += c->index[d] * it->strides[i][d];
    }
}

/* Moves on by `lines` along dimension 1, which has that many left. */
static void cursor_advance(struct cursor *c, const struct grd_iter *it, int64_t lines)
{
    c->index[0] = 0;
    for (int d = 1; d < it->ndim; d++) {
        c->index[d] += lines;
        for (int i = 0; i < it->noperands; i++)
            c->line[i] += lines * it->strides[i][d];
        if (c->index[d] < it->shape[d])
            return;
        for (int i = 0; i < it->noperands; i++)
            c->line[i] -= it->shape[d] * it->strides[i][d];
        c->index[d] = 0;
        lines = 1;
    }
}

enum { SHORT_LINE = 8, COLUMN = 1024 };

/* Note [Short lines]
 * With few elements in the innermost dimension the calls would cost more than the work. Whole lines are then taken
 * COLUMN at a time and worked on column by column, while they are in the cache. */
static void run_columns(const struct run *run, const struct cursor *c, int64_t lines)
{
    const struct grd_iter *it = run->it;
    int64_t strides[GRD_ITER_OPERANDS];
    char *at[GRD_ITER_OPERANDS];
    for (int i = 0; i < it->noperands; i++)
        strides[i] = it->strides[i][1];
    for (int64_t column = 0; column < it->shape[0]; column++) {
        for (int i = 0; i < it->noperands; i++)
            at[i] = c->line[i] + column * it->strides[i][0];
        run_line(run, lines, at, strides);
    }
}

static void run_range(const struct run *run, int64_t begin, int64_t end, bool columns)
{
    const struct grd_iter *it = run->it;
    int64_t strides[GRD_ITER_OPERANDS];
    char *at[GRD_ITER_OPERANDS];
    for (int i = 0; i < it->noperands; i++)
        strides[i] = it->ndim > 0 ? it->strides[i][0] : 0;
    if (it->ndim < 2) {
        for (int i = 0; i < it->noperands; i++)
            at[i] = it->data[i] + begin * strides[i];
        run_line(run, end - begin, at, strides);
        return;
    }
    struct cursor c;
    cursor_set(&c, it, begin);
    while (begin < end) {
        int64_t lines = 1, left = it->shape[1] - c.index[1], whole = (end - begin) / it->shape[0];
        if (columns && c.index[0] == 0 && whole > 1 && left > 1) {
            lines = left < whole ? left : whole;
            lines = lines < COLUMN ? lines : COLUMN;
            run_columns(run, &c, lines);
            begin += lines * it->shape[0];
        } else {
            int64_t n = it->shape[0] - c.index[0] < end - begin ? it->shape[0] - c.index[0] : end - begin;
            for (int i = 0; i < it->noperands; i++)
                at[i] = c.line[i] + c.index[0] * strides[i];
            run_line(run, n, at, strides);
            begin += n;
        }
        if (begin < end)
            cursor_advance(&c, it, lines);
    }
}

static bool has_short_lines(const struct grd_iter *it)
{
    return it->ndim > 1 && it->shape[0] <= SHORT_LINE && it->shape[1] > it->shape[0];
}

static void run_piece(int64_t begin, int64_t end, void *context)
{
    const struct run *run = context;
    run_range(run, begin, end, has_short_lines(run->it));
}

void grd_iter_run(const struct grd_iter *it, grd_loop *kernel, const void *params)
{
    if (it->meta || it->numel == 0)
        return;
    struct run run = make_run(it, kernel, params);
    if (it->numel <= GRD_ITER_GRAIN)
        run_piece(0, it->numel, &run);
    else
        grd_parallel_for(0, it->numel, GRD_ITER_GRAIN, run_piece, &run);
}

void grd_iter_run_serial(const struct grd_iter *it, grd_loop *kernel, const void *params)
{
    if (it->meta || it->numel == 0)
        return;
    struct run run = make_run(it, kernel, params);
    run_range(&run, 0, it->numel, false);
}
