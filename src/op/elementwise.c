/* The one implementation behind kernel = "unary", "binary" and "ternary". The operators with more to say are in arithmetic.c.
 *
 * Three ways, from narrow to wide, with the same result: contiguous operands of one dtype and shape go straight to the kernel; plain
 * numbers, elements expanded and a given result go there flattened, small ones as a block full of the element; all others go through the
 * iterator.
 * Invariant: a missing kernel and a zero divisor are found before anything is allocated, resized or written. */
#include "op/elementwise.h"

#include <stdatomic.h>
#include <string.h>

#include "base/parallel.h"
#include "core/small.h"
#include "kernel/index.h"
#include "op/common.h"

static grd_loop_kernel *find_kernel(const struct grd_elementwise *op, grd_dtype dtype)
{
    grd_loop_kernel *const *row = op->inputs == 1   ? grd_kernels->unary[dtype]
                                  : op->inputs == 2 ? grd_kernels->binary[dtype]
                                                    : grd_kernels->ternary[dtype];
    return row != NULL ? row[op->kernel] : NULL;
}

/* ---- Refusals --------------------------------------------------------------------------------------------------------------- */

/* Where PyTorch says more than that there is no kernel. */
static const struct refusal {
    const char *name;
    enum grd_category category;
    grd_error_code code;
    const char *text;
} refusals[] = {
    {"neg", GRD_CATEGORY_BOOL, GRD_ERROR_RUNTIME,
     "Negation, the `-` operator, on a bool tensor is not supported. "
     "If you are trying to invert a mask, use the `~` or `logical_not()` operator instead."},
    {"relu", GRD_CATEGORY_BOOL, GRD_ERROR_RUNTIME, "Boolean inputs not supported for relu"},
    {"maximum", GRD_CATEGORY_COMPLEX, GRD_ERROR_RUNTIME, "maximum not implemented for complex tensors."},
    {"minimum", GRD_CATEGORY_COMPLEX, GRD_ERROR_RUNTIME, "minimum not implemented for complex tensors."},
    {"fmax", GRD_CATEGORY_COMPLEX, GRD_ERROR_RUNTIME, "fmax not implemented for complex tensors."},
    {"fmin", GRD_CATEGORY_COMPLEX, GRD_ERROR_RUNTIME, "fmin not implemented for complex tensors."},
    {"floor", GRD_CATEGORY_COMPLEX, GRD_ERROR_NOT_IMPLEMENTED, "floor is not supported for complex inputs"},
    {"ceil", GRD_CATEGORY_COMPLEX, GRD_ERROR_NOT_IMPLEMENTED, "ceil is not supported for complex inputs"},
    {"trunc", GRD_CATEGORY_COMPLEX, GRD_ERROR_NOT_IMPLEMENTED, "trunc is not supported for complex inputs"},
};

static bool refuse(const struct grd_elementwise *op, grd_dtype dtype)
{
    for (int i = 0; i < GRD_LENGTH(refusals); i++)
        if (strcmp(refusals[i].name, op->name) == 0 && refusals[i].category == grd_category_of(dtype))
            return grd_raise(refusals[i].code, "%s", refusals[i].text);
    return grd_raise_no_kernel(op->name, dtype);
}

/* Whether a divisor has a zero once it is of the dtype that is computed in. */
static bool has_zero(const grd_tensor *t, grd_dtype compute)
{
    if (t->data == NULL || t->numel == 0)
        return false;
    if (t->ndim == 0) {
        uint64_t element[2] = {0, 0};
        grd_element_convert(t->data, t->dtype, element, compute);
        return element[0] == 0;
    }
    int64_t strides[GRD_MAX_DIMS];
    for (int i = 0; i < t->ndim; i++)
        strides[i] = grd_byte_stride(t, i);
    struct grd_iter it;
    grd_iter_raw(&it, grd_sizes(t), 1, (char *const[]){t->data}, (const int64_t *const[]){strides});
    atomic_bool found = false, *flag = &found;
    grd_iter_run(&it, grd_kernels->index->find_zero[grd_index_size(t->itemsize)], &flag);
    return atomic_load_explicit(&found, memory_order_relaxed);
}

static bool accept(const struct grd_iter_spec *spec, grd_dtype compute, const void *context)
{
    const struct grd_elementwise *op = context;
    if (find_kernel(op, compute) == NULL)
        return refuse(op, compute);
    if (!op->divides || grd_category_of(compute) != GRD_CATEGORY_INTEGER)
        return true;
    for (int i = 0; i + 1 < spec->ninputs; i++)
        if (spec->inputs[i]->numel == 0)
            return true;
    return !has_zero(spec->inputs[spec->ninputs - 1], compute) || grd_raise(GRD_ERROR_RUNTIME, "ZeroDivisionError");
}

/* ---- Through the iterator ------------------------------------------------------------------------------------------------------ */

static __attribute__((noinline)) grd_tensor *run_general(const struct grd_elementwise *op, grd_tensor *out, grd_tensor *const *inputs,
                                                         const grd_scalar *params)
{
    struct grd_iter_spec spec = {.out = out,
                                 .ninputs = op->inputs,
                                 .rule = (enum grd_type_rule)op->rule,
                                 .dtype = (grd_dtype)inputs[0]->dtype,
                                 .promote_from = op->mask,
                                 .name = op->name,
                                 .accept = accept,
                                 .context = op};
    for (int i = 0; i < op->inputs; i++)
        spec.inputs[i] = inputs[i];
    if (op->mask && inputs[0]->dtype != GRD_BOOL && inputs[0]->dtype != GRD_UINT8)
        return grd_fail(GRD_ERROR_RUNTIME, "expected condition to be a boolean tensor, but got a tensor with dtype %s",
                        grd_dtype_type_name(inputs[0]->dtype));
    struct grd_iter it;
    grd_tensor *result = grd_iter_elementwise(&it, &spec);
    if (grd_pending())
        return grd_failed;
    grd_iter_run(&it, find_kernel(op, it.compute), params);
    return result;
}

/* ---- Straight ---------------------------------------------------------------------------------------------------------------------------- */

/* Plain, and a result like it has the same dimensions, all of them inline. */
static inline bool is_straight(const grd_tensor *t)
{
    const unsigned flags = GRD_FLAG_CONTIGUOUS | GRD_FLAG_CANONICAL;
    const uint64_t looked_at = grd_traits(0, 0, (grd_device){UINT8_MAX, 0}, flags | GRD_FLAG_NUMBER, 0);
    return (t->traits & looked_at) == grd_traits(0, 0, (grd_device){GRD_DEVICE_CPU, 0}, flags, 0);
}

static __attribute__((noinline)) grd_tensor *new_result(const grd_tensor *like, grd_dtype dtype)
{
    return grd_new(grd_dims_from(like->sizes, like->ndim), dtype, grd_device_of(like));
}

/* A small result, when the inputs are all like `like`, which is straight, and data[1...] is theirs; NULL where it is not that simple. */
static inline __attribute__((always_inline)) grd_tensor *run_straight(const struct grd_elementwise *op, grd_loop_kernel *kernel,
                                                                      const grd_tensor *like, char **data, const void *params)
{
    const unsigned flags = GRD_FLAG_CONTIGUOUS | GRD_FLAG_CANONICAL | GRD_FLAG_CHANNELS_LAST;
    const uint64_t kept = grd_traits(UINT8_MAX, UINT8_MAX, (grd_device){UINT8_MAX, -1}, flags, UINT16_MAX);
    uint64_t traits = like->traits & kept;
    size_t itemsize = like->itemsize;
    if (op->truth) {
        traits = (traits & ~grd_traits(UINT8_MAX, 0, (grd_device){0, 0}, 0, 0)) | GRD_BOOL;
        itemsize = 1;
    }
    if (!grd_is_small_data((size_t)like->numel * itemsize))
        return NULL;
    grd_tensor *result = grd_make_small(traits, (size_t)like->numel, itemsize);
    if (GRD_LIKELY(result != NULL))
        memcpy(result->inline_dims, like->inline_dims, sizeof result->inline_dims);
    else if (grd_is_failed(result = new_result(like, (grd_dtype)(traits & UINT8_MAX))))
        return result;
    data[0] = result->data;
    kernel(result->numel, data, NULL, params);
    return result;
}

/* ---- Flattened ------------------------------------------------------------------------------------------------------------------------ */

enum { MAX_INPUTS = 3 };

struct flat {
    grd_loop_kernel *kernel;
    const void *params;
    char *data[1 + MAX_INPUTS];
    int64_t strides[1 + MAX_INPUTS];
};

static void run_piece(int64_t begin, int64_t end, void *context)
{
    const struct flat *flat = context;
    char *at[1 + MAX_INPUTS];
    for (int i = 0; i <= MAX_INPUTS; i++)
        at[i] = flat->data[i] + begin * flat->strides[i];
    flat->kernel(end - begin, at, flat->strides, flat->params);
}

/* Contiguous, in memory that can be read, and not a plain number. */
static inline bool is_plain(const grd_tensor *t)
{
    const uint64_t looked_at = grd_traits(0, 0, (grd_device){UINT8_MAX, 0}, GRD_FLAG_CONTIGUOUS | GRD_FLAG_NUMBER, 0);
    return (t->traits & looked_at) == grd_traits(0, 0, (grd_device){GRD_DEVICE_CPU, 0}, GRD_FLAG_CONTIGUOUS, 0);
}

static inline bool same_sizes(const grd_tensor *a, const grd_tensor *b)
{
    for (int i = 0; i < a->ndim; i++)
        if (a->sizes[i] != b->sizes[i])
            return false;
    return true;
}

/* Of one dtype and shape, and plain when the other is. */
static inline bool are_alike(const grd_tensor *a, const grd_tensor *b)
{
    const uint64_t looked_at =
        grd_traits(UINT8_MAX, UINT8_MAX, (grd_device){UINT8_MAX, -1}, GRD_FLAG_CONTIGUOUS | GRD_FLAG_NUMBER, UINT16_MAX);
    return ((a->traits ^ b->traits) & looked_at) == 0 && same_sizes(a, b);
}

/* True if `t` is one element broadcast to like's shape, e.g. the gradient of sum(), and its strides do not change the order of dimensions of a result
 * like `like`: Note [Strides of results] in iter.c. */
static bool is_expanded(const grd_tensor *t, const grd_tensor *like)
{
    if (t->device != GRD_DEVICE_CPU || t->ndim > like->ndim)
        return false;
    if (t->ndim == 0 || (t->numel == 1 && grd_has(t, GRD_FLAG_CANONICAL)))
        return true;
    if (t->ndim != like->ndim)
        return false;
    int with_stride = 0;
    for (int i = 0; i < t->ndim; i++) {
        if (t->strides[i] != 0 && t->sizes[i] != 1)
            return false;
        with_stride += t->strides[i] != 0;
    }
    return (t->numel == 1 || same_sizes(t, like)) && with_stride <= 1;
}

/* is_expanded for a small tensor of like's dtype and rank. `like` is not empty. */
static inline bool is_repeated(const grd_tensor *t, const grd_tensor *like)
{
    const uint64_t looked_at = grd_traits(UINT8_MAX, UINT8_MAX, (grd_device){UINT8_MAX, -1}, GRD_FLAG_NUMBER, UINT16_MAX);
    if (((t->traits ^ like->traits) & looked_at) != 0 || (size_t)like->numel - 1 >= GRD_SMALL_BYTES ||
        (size_t)like->numel * like->itemsize > GRD_SMALL_BYTES)
        return false;
    int with_stride = 0;
    for (int i = 0; i < like->ndim; i++) {
        if (t->sizes[i] != like->sizes[i] || (t->strides[i] != 0 && t->sizes[i] != 1))
            return false;
        with_stride += t->strides[i] != 0;
    }
    return with_stride <= 1;
}

/* True if every dimension has the stride that a new contiguous tensor of its sizes has. */
static bool is_canonical(const grd_tensor *t)
{
    if (GRD_LIKELY(grd_has(t, GRD_FLAG_CANONICAL)))
        return true;
    int64_t strides[GRD_MAX_DIMS];
    grd_shape_contiguous_strides(grd_sizes(t), strides);
    return memcmp(t->strides, strides, (size_t)t->ndim * sizeof *strides) == 0;
}

/* Whether a plain number leaves the dtype as it is; then it is written to `ret_element` as one. */
static bool number_fits(const struct grd_elementwise *op, const grd_tensor *number, grd_dtype dtype, void *ret_element)
{
    enum grd_category category = grd_category_of(dtype);
    if (grd_category_of(number->dtype) > category ||
        (op->rule == GRD_TYPE_COMPARE && category == GRD_CATEGORY_INTEGER && dtype != GRD_INT64))
        return false;
    if (dtype == GRD_FLOAT32 && number->dtype == GRD_FLOAT64)
        *(float *)ret_element = (float)*(const double *)number->data;
    else
        grd_element_convert(number->data, number->dtype, ret_element, dtype);
    return true;
}

/* Fills an operand of flat's from an input: one like `like`, a plain number that is written to `ret_number` in its dtype, or one element
 * expanded. False when it is none of these. */
static bool flatten(const struct grd_elementwise *op, const grd_tensor *t, const grd_tensor *like, struct flat *flat, int operand,
                    uint64_t *ret_number)
{
    flat->data[operand] = t->data;
    flat->strides[operand] = like->itemsize;
    if (t == like || are_alike(t, like))
        return true;
    flat->strides[operand] = 0;
    if (!grd_has(t, GRD_FLAG_NUMBER))
        return t->dtype == like->dtype && is_expanded(t, like);
    flat->data[operand] = (char *)ret_number;
    return number_fits(op, t, like->dtype, ret_number);
}

/* True if a new result is contiguous: all inputs have its shape, or beside those that are broadcast the others are canonical. */
static bool keeps_order(const struct grd_elementwise *op, grd_tensor *const *inputs, const struct flat *flat)
{
    bool expanded = false, canonical = true;
    for (int i = 0; i < op->inputs; i++) {
        expanded |= flat->strides[i + 1] == 0;
        canonical &= flat->strides[i + 1] == 0 || is_canonical(inputs[i]);
    }
    return !expanded || canonical;
}

/* A mask: bool, and of the shape of the others. */
static bool flatten_mask(const grd_tensor *mask, const grd_tensor *like, struct flat *flat)
{
    flat->data[1] = mask->data;
    flat->strides[1] = 1;
    return mask->dtype == GRD_BOOL && is_plain(mask) && mask->ndim == like->ndim && same_sizes(mask, like);
}

/* The kernel for operands like this one, which is plain; NULL when there is none or the kernel is not all there is to do. */
static inline grd_loop_kernel *direct_kernel(const struct grd_elementwise *op, grd_loop_kernel *const *row, const grd_tensor *like)
{
    if (row == NULL || (op->integers && grd_category_of(like->dtype) <= GRD_CATEGORY_INTEGER))
        return NULL;
    return row[op->kernel];
}

static inline grd_dtype result_dtype(const struct grd_elementwise *op, const grd_tensor *like)
{
    return op->truth ? GRD_BOOL : (grd_dtype)like->dtype;
}

/* Whether `out` may be written as it is: alike, and no input reads its memory in another order. */
static bool takes_flat(const struct grd_elementwise *op, const grd_tensor *out, const grd_tensor *like, grd_tensor *const *inputs,
                       const struct flat *flat)
{
    if (out->dtype != result_dtype(op, like) || !is_plain(out) || out->ndim != like->ndim || !same_sizes(out, like) ||
        out->storage->release != NULL)
        return false;
    for (int i = 0; i < op->inputs; i++)
        if (inputs[i]->storage == out->storage && (inputs[i]->data != out->data || flat->strides[i + 1] != out->itemsize))
            return false;
    return true;
}

static grd_tensor *run_flat(const struct grd_elementwise *op, grd_tensor *out, const grd_tensor *like, struct flat *flat)
{
    if (out == NULL)
        out = grd_new(grd_dims_from(like->sizes, like->ndim), result_dtype(op, like), grd_device_of(like));
    if (grd_is_failed(out))
        return grd_failed;
    for (int i = 0; i <= MAX_INPUTS; i++) {
        if (i > 0 && i <= op->inputs)
            continue;
        flat->data[i] = out->data;
        flat->strides[i] = out->itemsize;
    }
    if (GRD_LIKELY(like->numel <= GRD_ITER_GRAIN))
        flat->kernel(like->numel, flat->data, flat->strides, flat->params);
    else
        grd_parallel_for(0, like->numel, GRD_ITER_GRAIN, run_piece, flat);
    return out;
}

/* Fills `bytes`, which are not 0, of a block with one element; up to 15 more than those are written. */
static inline void fill(char *block, size_t bytes, const char *element, size_t size)
{
    uint64_t pattern[2];
    uint32_t word;
    uint16_t half;
    if (size == sizeof word) {
        memcpy(&word, element, sizeof word);
        pattern[0] = pattern[1] = word * UINT64_C(0x100000001);
    } else if (size == sizeof half) {
        memcpy(&half, element, sizeof half);
        pattern[0] = pattern[1] = half * UINT64_C(0x1000100010001);
    } else if (size == 1) {
        pattern[0] = pattern[1] = (uint8_t)*element * UINT64_C(0x101010101010101);
    } else {
        memcpy(&pattern[0], element, sizeof pattern[0]);
        memcpy(&pattern[1], element + size - sizeof pattern[1], sizeof pattern[1]);
    }
    size_t at = 0;
    do
        memcpy(block + at, pattern, sizeof pattern);
    while ((at += sizeof pattern) < bytes);
}

/* A small result: a block full of the one element costs less than buffers do. NULL where it is not that simple. */
static grd_tensor *run_filled(const struct grd_elementwise *op, const grd_tensor *like, struct flat *flat)
{
    _Alignas(64) char blocks[MAX_INPUTS][GRD_SMALL_BYTES];
    const size_t bytes = (size_t)like->numel * like->itemsize;
    if (like->numel > GRD_SMALL_BYTES || bytes - 1 >= GRD_SMALL_BYTES || !is_straight(like))
        return NULL;
    for (int i = 0; i < op->inputs; i++) {
        if (flat->strides[i + 1] != 0)
            continue;
        fill(blocks[i], bytes, flat->data[i + 1], like->itemsize);
        flat->data[i + 1] = blocks[i];
    }
    return run_straight(op, flat->kernel, like, flat->data, flat->params);
}

/* Operators of half types whose last input may be a number, which is then not rounded to that type, as in PyTorch. */
static const struct by_number {
    const char *name;
    bool tensor; /* a zero-dimensional tensor of another dtype counts as a number */
    struct grd_elementwise op;
} by_number[] = {
    {"mul", true, {.inputs = 1, .kernel = GRD_UNARY_HIDDEN_SCALE, .rule = GRD_TYPE_PROMOTE, .name = "mul"}},
    {"_div_true", true, {.inputs = 1, .kernel = GRD_UNARY_HIDDEN_DIVIDE, .rule = GRD_TYPE_PROMOTE, .name = "div"}},
    {"_div_floor", true, {.inputs = 1, .kernel = GRD_UNARY_HIDDEN_DIVIDE_FLOOR, .rule = GRD_TYPE_PROMOTE, .name = "floor_divide"}},
    {"_div_trunc", true, {.inputs = 1, .kernel = GRD_UNARY_HIDDEN_DIVIDE_TRUNC, .rule = GRD_TYPE_PROMOTE, .name = "div"}},
    {"lerp", false, {.inputs = 2, .kernel = GRD_BINARY_HIDDEN_LERP_NUMBER, .rule = GRD_TYPE_PROMOTE, .name = "lerp"}},
};

static bool is_half(const grd_tensor *t)
{
    return t->dtype == GRD_FLOAT16 || t->dtype == GRD_BFLOAT16;
}

/* True if `t` is a number for a tensor of a half type. */
static bool counts_as_number(const grd_tensor *t, const grd_tensor *half, bool tensor)
{
    const bool counts = grd_has(t, GRD_FLAG_NUMBER) || (tensor && t->ndim == 0 && half->ndim > 0 && t->dtype != half->dtype);
    return counts && t->device == GRD_DEVICE_CPU && t->data != NULL && grd_category_of((grd_dtype)t->dtype) <= GRD_CATEGORY_FLOAT;
}

/* The way of such a call; NULL for any other. A number may come first in a product. */
static grd_tensor *run_by_number(const struct grd_elementwise *op, grd_tensor *out, grd_tensor *const *inputs)
{
    const int last = op->inputs - 1;
    for (int i = 0; i < GRD_LENGTH(by_number); i++) {
        const struct by_number *row = &by_number[i];
        if (strcmp(row->name, op->name) != 0)
            continue;
        const bool first = i == 0 && grd_has(inputs[0], GRD_FLAG_NUMBER);
        const grd_tensor *number = inputs[first ? 0 : last];
        grd_tensor *x = inputs[first ? 1 : 0];
        if (!is_half(x) || !counts_as_number(number, x, row->tensor) || (row->op.inputs == 2 && inputs[1]->dtype != x->dtype))
            return NULL;
        const grd_scalar value = grd_scalar_read(number->data, (grd_dtype)number->dtype);
        return row->op.inputs == 1 ? grd_op_unary(out, x, &row->op, &value) : grd_op_binary(out, x, inputs[1], &row->op, &value);
    }
    return NULL;
}

static __attribute__((noinline)) grd_tensor *run_wide(const struct grd_elementwise *op, grd_loop_kernel *const *const *rows,
                                                      grd_tensor *out, grd_tensor *const *inputs, const grd_scalar *params)
{
    if (grd_pending())
        return grd_failed;
    if (op->inputs > 1 && (is_half(inputs[0]) || is_half(inputs[1]))) {
        grd_tensor *scaled = run_by_number(op, out, inputs);
        if (scaled != NULL)
            return scaled;
    }
    const grd_tensor *like = inputs[op->mask];
    for (int i = op->mask + 1; i < op->inputs && !is_plain(like); i++)
        like = inputs[i];
    struct flat flat;
    uint64_t numbers[MAX_INPUTS][2];
    flat.kernel = is_plain(like) ? direct_kernel(op, rows[like->dtype], like) : NULL;
    flat.params = params;
    bool fits = flat.kernel != NULL && (!op->mask || flatten_mask(inputs[0], like, &flat));
    for (int i = op->mask; i < op->inputs && fits; i++)
        fits = flatten(op, inputs[i], like, &flat, i + 1, numbers[i]);
    if (fits && out == NULL && !keeps_order(op, inputs, &flat))
        fits = false;
    grd_tensor *result = fits && out == NULL ? run_filled(op, like, &flat) : NULL;
    if (GRD_LIKELY(result != NULL))
        return result;
    if (fits && (out == NULL || takes_flat(op, out, like, inputs, &flat)))
        return run_flat(op, out, like, &flat);
    return run_general(op, out, inputs, params);
}

/* ---- The three ways ------------------------------------------------------------------------------------------------------------ */

static __attribute__((noinline)) grd_tensor *unary_wide(grd_tensor *out, grd_tensor *x, const struct grd_elementwise *op,
                                                        const grd_scalar *params)
{
    return run_wide(op, grd_kernels->unary, out, (grd_tensor *const[]){x}, params);
}

grd_tensor *grd_op_unary(grd_tensor *out, grd_tensor *x, const struct grd_elementwise *op, const grd_scalar *params)
{
    grd_loop_kernel *kernel = is_straight(x) ? direct_kernel(op, grd_kernels->unary[x->dtype], x) : NULL;
    grd_tensor *result = NULL;
    char *data[2];
    data[1] = x->data;
    if (GRD_LIKELY(kernel != NULL && out == NULL))
        result = run_straight(op, kernel, x, data, params);
    return GRD_LIKELY(result != NULL) ? result : unary_wide(out, x, op, params);
}

/* One operand, `data[operand]`, is one element in the place of all of the other's, which is straight. NULL where it is not that simple. */
GRD_INLINE grd_tensor *run_repeated(const struct grd_elementwise *op, const grd_tensor *like, char **data, int operand, const void *params)
{
    _Alignas(16) char block[GRD_SMALL_BYTES];
    grd_loop_kernel *kernel = direct_kernel(op, grd_kernels->binary[like->dtype], like);
    if (kernel == NULL)
        return NULL;
    fill(block, (size_t)like->numel * like->itemsize, data[operand], like->itemsize);
    data[operand] = block;
    return run_straight(op, kernel, like, data, params);
}

static __attribute__((noinline)) grd_tensor *binary_wide(grd_tensor *out, grd_tensor *x, grd_tensor *y, const struct grd_elementwise *op,
                                                         const grd_scalar *params)
{
    char *data[] = {NULL, x->data, y->data};
    const bool before = is_straight(y) && is_repeated(x, y);
    grd_tensor *result = NULL;
    if (out == NULL && (before || (is_straight(x) && is_repeated(y, x))))
        result = run_repeated(op, before ? y : x, data, before ? 1 : 2, params);
    return result != NULL ? result : run_wide(op, grd_kernels->binary, out, (grd_tensor *const[]){x, y}, params);
}

grd_tensor *grd_op_binary(grd_tensor *out, grd_tensor *x, grd_tensor *y, const struct grd_elementwise *op, const grd_scalar *params)
{
    if (GRD_UNLIKELY(!is_straight(x)))
        return binary_wide(out, x, y, op, params);
    grd_loop_kernel *kernel = direct_kernel(op, grd_kernels->binary[x->dtype], x);
    grd_tensor *result = NULL;
    char *data[3];
    data[1] = x->data;
    data[2] = y->data;
    if (GRD_LIKELY(kernel != NULL && out == NULL && are_alike(x, y)))
        result = run_straight(op, kernel, x, data, params);
    return GRD_LIKELY(result != NULL) ? result : binary_wide(out, x, y, op, params);
}

grd_tensor *grd_op_ternary(grd_tensor *out, grd_tensor *x, grd_tensor *y, grd_tensor *z, const struct grd_elementwise *op,
                           const grd_scalar *params)
{
    return run_wide(op, grd_kernels->ternary, out, (grd_tensor *const[]){x, y, z}, params);
}
