/* Checks, plans and runs all elementwise operators. Additional checks of some operators are in elementwise_checks.c.
 *
 * There are three paths, which give the same result bit for bit, from the most specialized to the most general:
 *    shortcut    small contiguous operands of one dtype and shape: calls the kernel
 *    contiguous  contiguous operands of one dtype and shape, or single elements that are broadcast with stride 0
 *    general     everything else, including out=, errors and meta tensors: planned and run by the iterator
 * The first two return NULL without any effect if they do not apply. GRADUS_SHORTCUTS=off disables them.
 * Invariant: a missing kernel or a zero divisor is found before anything is allocated, resized or written. */
#include "op/elementwise.h"

#include <stdatomic.h>
#include <string.h>

#include "base/parallel.h"
#include "core/dtype.h"
#include "core/geometry.h"
#include "core/new.h"
#include "core/scalar.h"
#include "core/shortcuts.h"
#include "core/small_tensor.h"
#include "core/tensor.h"
#include "dispatch/op.h"
#include "kernel/index.h"
#include "op/checks.h"
#include "op/dtypes.h"

enum { MAX_INPUTS = 3 };

/* Returns the operator's kernel for a dtype, or NULL. */
static inline const struct grd_map_kernel *kernel_of(const struct grd_elementwise *op, grd_dtype dtype)
{
    const struct grd_map_kernel *const row = op->gradient      ? grd_kernels->gradient[dtype]
                                             : op->inputs == 1 ? grd_kernels->unary[dtype]
                                             : op->inputs == 2 ? grd_kernels->binary[dtype]
                                                               : grd_kernels->ternary[dtype];
    return row != NULL && row[op->kernel].block != NULL ? &row[op->kernel] : NULL;
}

/* Returns how the operator is computed for a dtype. The kernel in the result is NULL if the dtype is not supported. A half type without its own
 * kernel is computed in grd_computed_dtype(dtype). */
static inline struct grd_map map_for(const struct grd_elementwise *op, grd_dtype dtype, const grd_scalar *params)
{
    const struct grd_map_kernel *const kernel = kernel_of(op, dtype);
    if (kernel == NULL && grd_is_half(dtype))
        return (struct grd_map){.kernel = kernel_of(op, grd_computed_dtype(dtype)), .params = params, .half = dtype};
    return (struct grd_map){.kernel = kernel, .params = params, .half = GRD_DTYPE_NONE};
}

/* ---- General ------------------------------------------------------------------------------------------------------------------- */

/* Raises the error for a dtype without a kernel and returns false. */
static bool refuse(const struct grd_elementwise *op, grd_dtype dtype)
{
    const struct grd_refusal *refusal = op->refusal;
    if (refusal != NULL && refusal->category == grd_category_of(dtype))
        return grd_raise(refusal->code, "%s", refusal->text);
    return grd_raise_no_kernel(op->name, dtype);
}

/* True if an element of `t`, a divisor, is 0 after conversion to `compute`, the dtype of the computation. */
static bool has_zero(const grd_tensor *t, grd_dtype compute)
{
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

/* Raises RuntimeError if an integer divisor has a zero. The check reads data, so it must come after the checks of sizes and dtypes. It must come
 * before the kernel runs, because what the kernel has written could not be undone. */
static bool check_divisor(const struct grd_elementwise *op, const struct grd_iter *it, const grd_tensor *divisor)
{
    if (!op->divides || grd_category_of(it->compute) != GRD_CATEGORY_INTEGER || it->numel == 0 || it->device.type == GRD_DEVICE_META)
        return true;
    return !has_zero(divisor, it->compute) || grd_raise(GRD_ERROR_RUNTIME, "ZeroDivisionError");
}

/* ---- Shortcut -------------------------------------------------------------------------------------------------------------------- */

/* True if `t` is on the CPU, has all of `flags`, and was not made from a Python number (wrapped number). */
static inline bool is_cpu_tensor(const grd_tensor *t, unsigned flags)
{
    return (t->traits & (GRD_TRAITS_DEVICE_TYPE | grd_traits_flags(flags | GRD_FLAG_NUMBER))) ==
           grd_traits(0, 0, (grd_device){GRD_DEVICE_CPU, 0}, flags, 0);
}

static inline bool same_sizes(const grd_tensor *a, const grd_tensor *b)
{
    for (int i = 0; i < a->ndim; i++)
        if (a->sizes[i] != b->sizes[i])
            return false;
    return true;
}

/* True if `a` and `b` have the same dtype, device and shape, if both or neither are contiguous, and if both or neither were made from Python
 * numbers (wrapped numbers). */
static inline bool have_same_kind(const grd_tensor *a, const grd_tensor *b)
{
    const uint64_t looked_at = GRD_TRAITS_KIND | grd_traits_flags(GRD_FLAG_CONTIGUOUS | GRD_FLAG_NUMBER);
    return ((a->traits ^ b->traits) & looked_at) == 0 && same_sizes(a, b);
}

/* True if the kernel can be called without further checks. This is false for integer divisions, whose divisors must be checked for zeros. */
static inline bool is_direct(const struct grd_elementwise *op, const grd_tensor *like)
{
    return !(op->divides && grd_category_of(like->dtype) == GRD_CATEGORY_INTEGER);
}

/* Returns a new tensor with the shape of `like` for the result of an operator: bool if the operator returns bool, otherwise of like's dtype.
 * `like` must have exactly the strides of a new contiguous tensor (GRD_FLAG_CANONICAL). Returns NULL if the result would have more than 512 bytes
 * of data. */
GRD_INLINE grd_tensor *small_result(const struct grd_elementwise *op, const grd_tensor *like)
{
    const unsigned flags = GRD_FLAG_CONTIGUOUS | GRD_FLAG_CANONICAL | GRD_FLAG_CHANNELS_LAST;
    uint64_t traits = like->traits & (GRD_TRAITS_KIND | grd_traits_flags(flags));
    size_t itemsize = like->itemsize;
    if (grd_gives_bool(op->rule)) {
        traits = (traits & ~GRD_TRAITS_DTYPE) | GRD_BOOL;
        itemsize = 1;
    }
    grd_tensor *result = grd_is_small_data((size_t)like->numel * itemsize) ? grd_make_small(traits, (size_t)like->numel, itemsize) : NULL;
    if (GRD_LIKELY(result != NULL))
        memcpy(result->inline_dims, like->inline_dims, sizeof result->inline_dims);
    return result;
}

/* Runs the operator's kernel from `row`, the kernels of one dtype, on contiguous inputs of this dtype and of one shape, and returns the result.
 * Returns NULL, having done nothing, if there is no kernel, if divisors must be checked for zeros, or if the result has more than 512 bytes. */
GRD_INLINE grd_tensor *run_shortcut(const struct grd_elementwise *op, const struct grd_map_kernel *row, const grd_tensor *x,
                                    const grd_tensor *y, const grd_tensor *z, const void *params)
{
    grd_block_kernel *const block = row != NULL && is_direct(op, x) ? row[op->kernel].block : NULL;
    grd_tensor *const result = GRD_LIKELY(block != NULL && grd_shortcuts) ? small_result(op, x) : NULL;
    if (GRD_LIKELY(result != NULL))
        block(result->numel, (char *const[]){result->data, x->data, y->data, z->data}, params);
    return result;
}

/* ---- Numbers beside half types --------------------------------------------------------------------------------------------------- */

/* True if `t` counts as a number next to `half`, a float16 or bfloat16 tensor. A tensor made from a Python number (wrapped number) counts. If `half`
 * is the only other operand (`tensors` is 1), a zero-dimensional tensor of another dtype counts, too. */
static bool counts_as_number(const grd_tensor *t, const grd_tensor *half, int tensors)
{
    const bool counts = grd_has(t, GRD_FLAG_NUMBER) || (tensors == 1 && t->ndim == 0 && half->ndim > 0 && t->dtype != half->dtype);
    return counts && t->device == GRD_DEVICE_CPU && t->data != NULL && grd_category_of((grd_dtype)t->dtype) <= GRD_CATEGORY_FLOAT;
}

/* Runs the variant of the operator that takes one input as a double. Like PyTorch, it does not round this number to the dtype of the tensors. Returns
 * NULL, having done nothing, unless one input counts as a number (see counts_as_number) and the others are float16 or bfloat16 tensors. */
static grd_tensor *run_by_number(const struct grd_elementwise *op, grd_tensor *out, grd_tensor *const *inputs)
{
    const bool first = op->commutes && grd_has(inputs[0], GRD_FLAG_NUMBER);
    grd_tensor *const *tensors = inputs + first;
    if (GRD_LIKELY(tensors[0]->dtype != GRD_FLOAT16 && tensors[0]->dtype != GRD_BFLOAT16))
        return NULL;
    const grd_tensor *number = inputs[first ? 0 : op->inputs - 1];
    const int n = op->number->inputs;
    if (!counts_as_number(number, tensors[0], n) || tensors[n - 1]->dtype != tensors[0]->dtype)
        return NULL;
    const grd_scalar value = grd_scalar_read(number->data, (grd_dtype)number->dtype);
    return n == 1 ? grd_op_unary(out, tensors[0], op->number, &value) : grd_op_binary(out, tensors[0], tensors[1], op->number, &value);
}

/* ---- Contiguous ------------------------------------------------------------------------------------------------------------------- */

/* The operands of one call, if all are contiguous or single elements. Element 0 of `data` and `strides` is the result; strides are in bytes. */
struct run {
    struct grd_map map;
    char *data[1 + MAX_INPUTS];
    int64_t strides[1 + MAX_INPUTS];
    int noperands;
    bool expanded;  /* true if an input is a single element that is broadcast */
    bool canonical; /* true if all inputs of the result's shape have exactly the strides of new contiguous tensors */
    /* For each input that was made from a Python number (wrapped number): this number, converted to the dtype of the computation. */
    uint64_t numbers[MAX_INPUTS][2];
};

static void run_piece(int64_t begin, int64_t end, void *context)
{
    const struct run *run = context;
    char *at[1 + MAX_INPUTS];
    for (int i = 0; i < run->noperands; i++)
        at[i] = run->data[i] + begin * run->strides[i];
    grd_map(end - begin, at, run->strides, &run->map);
}

/* True if `t` is one element of like's dtype that is broadcast to like's shape, e.g. the gradient of sum(). It must also have strides that do not
 * affect the order of the result's dimensions; see Note [Strides of results] in iter.c. */
static inline bool is_expanded(const grd_tensor *t, const grd_tensor *like)
{
    if (((t->traits ^ like->traits) & (GRD_TRAITS_DTYPE | GRD_TRAITS_DEVICE)) != 0)
        return false;
    if (t->numel == 1 && t->ndim <= like->ndim && grd_has(t, GRD_FLAG_CANONICAL))
        return true;
    if (t->ndim != like->ndim)
        return false;
    int with_stride = 0;
    for (int i = 0; i < t->ndim; i++) {
        const int64_t size = t->sizes[i];
        if ((size != like->sizes[i] || t->strides[i] != 0) && size != 1)
            return false;
        with_stride += t->strides[i] != 0;
    }
    return with_stride <= 1;
}

/* True if `dtype` remains the dtype of the computation when `number`, a tensor made from a Python number (wrapped number), is an operand. In this
 * case, writes `number`, converted to `dtype`, to ret_element. */
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

/* Sets operand number `operand` of *run from the input `t`. Accepts a tensor with the dtype, device and shape of `like`, a tensor made from a
 * Python number (wrapped number), or a single element that is broadcast. Returns false for any other input. */
static bool set_operand(const struct grd_elementwise *op, const grd_tensor *t, const grd_tensor *like, struct run *run, int operand)
{
    run->data[operand] = t->data;
    run->strides[operand] = like->itemsize;
    if (t == like || have_same_kind(t, like)) {
        run->canonical &= grd_has(t, GRD_FLAG_CANONICAL);
        return true;
    }
    run->expanded = true;
    run->strides[operand] = 0;
    if (!grd_has(t, GRD_FLAG_NUMBER))
        return is_expanded(t, like);
    run->data[operand] = (char *)run->numbers[operand - 1];
    return number_fits(op, t, like->dtype, run->data[operand]);
}

/* Sets the first input of *run from a mask. Returns false if the mask is not bool or does not have the shape of `like`. */
static bool set_mask(const grd_tensor *mask, const grd_tensor *like, struct run *run)
{
    run->data[1] = mask->data;
    run->strides[1] = 1;
    run->canonical = grd_has(mask, GRD_FLAG_CANONICAL);
    return mask->dtype == GRD_BOOL && is_cpu_tensor(mask, GRD_FLAG_CONTIGUOUS) && mask->ndim == like->ndim && same_sizes(mask, like);
}

/* True if the result can be written to `out` directly. `out` must have the dtype and shape of the result. An input that shares out's storage must
 * have out's address and strides, so that each element is read before it is overwritten. */
static bool can_write(const struct grd_elementwise *op, const grd_tensor *out, grd_dtype dtype, const grd_tensor *like,
                      grd_tensor *const *inputs, const struct run *run)
{
    if (out->dtype != dtype || !is_cpu_tensor(out, GRD_FLAG_CONTIGUOUS) || out->ndim != like->ndim || !same_sizes(out, like) ||
        out->storage->release != NULL)
        return false;
    for (int i = 0; i < op->inputs; i++)
        if (inputs[i]->storage == out->storage && (inputs[i]->data != out->data || run->strides[i + 1] != out->itemsize))
            return false;
    return true;
}

/* Returns a new contiguous tensor for the result. Returns NULL if PyTorch's result might have other strides. This is possible if one input is a
 * broadcast element and another input does not have exactly the strides of a new contiguous tensor (GRD_FLAG_CANONICAL). */
static grd_tensor *new_result(const struct grd_elementwise *op, grd_dtype dtype, const grd_tensor *like, const struct run *run)
{
    if (run->expanded && !run->canonical)
        return NULL;
    grd_tensor *result = grd_has(like, GRD_FLAG_CANONICAL) ? small_result(op, like) : NULL;
    return GRD_LIKELY(result != NULL) ? result : grd_new(grd_dims_from(like->sizes, like->ndim), dtype, grd_device_of(like));
}

/* Runs the operator if its operands are contiguous tensors of one dtype and shape, or single elements that are broadcast. Returns NULL, having done
 * nothing, for all other operands. */
static grd_tensor *run_contiguous(const struct grd_elementwise *op, grd_tensor *out, grd_tensor *const *inputs, const grd_scalar *params)
{
    const grd_tensor *like = inputs[op->mask];
    for (int i = op->mask + 1; i < op->inputs && !is_cpu_tensor(like, GRD_FLAG_CONTIGUOUS); i++)
        like = inputs[i];
    if (!is_cpu_tensor(like, GRD_FLAG_CONTIGUOUS))
        return NULL;
    struct run run;
    run.expanded = false;
    run.canonical = true;
    run.map = map_for(op, (grd_dtype)like->dtype, params);
    if (run.map.kernel == NULL || !is_direct(op, like) || (op->mask && !set_mask(inputs[0], like, &run)))
        return NULL;
    for (int i = op->mask; i < op->inputs; i++)
        if (!set_operand(op, inputs[i], like, &run, i + 1))
            return NULL;
    const grd_dtype dtype = grd_gives_bool(op->rule) ? GRD_BOOL : (grd_dtype)like->dtype;
    if (out != NULL && !can_write(op, out, dtype, like, inputs, &run))
        return NULL;
    grd_tensor *const result = out != NULL ? out : new_result(op, dtype, like, &run);
    if (result == NULL || grd_is_failed(result))
        return result;
    run.noperands = 1 + op->inputs;
    run.data[0] = result->data;
    run.strides[0] = result->itemsize;
    if (GRD_LIKELY(result->numel <= GRD_ITER_GRAIN)) {
        grd_map(result->numel, run.data, run.strides, &run.map);
        return result;
    }
    int64_t bytes = 0;
    for (int i = 0; i < run.noperands; i++)
        bytes += result->numel * run.strides[i];
    run.map.stores = grd_stores_for(bytes, run.noperands, run.data);
    grd_parallel_for(0, result->numel, grd_iter_grain(result->numel), run_piece, &run);
    return result;
}

/* ---- The three ways ------------------------------------------------------------------------------------------------------------ */

static bool check_mask(const struct grd_elementwise *op, const grd_tensor *x)
{
    return !op->mask || x->dtype == GRD_BOOL || x->dtype == GRD_UINT8 ||
           grd_raise(GRD_ERROR_RUNTIME, "where expected condition to be a boolean tensor, but got a tensor with dtype %s",
                     grd_dtype_type_name((grd_dtype)x->dtype));
}

static __attribute__((noinline)) grd_tensor *run_general(grd_tensor *out, grd_tensor *x, grd_tensor *y, grd_tensor *z,
                                                         const struct grd_elementwise *op, const grd_scalar *params)
{
    const struct grd_iter_spec spec = {
        .out = out, .inputs = {x, y, z}, .ninputs = op->inputs, .rule = (enum grd_type_rule)op->rule, .promote_from = op->mask};
    struct grd_iter it;
    struct grd_planned planned;
    grd_tensor *result = grd_pending() ? grd_failed : op->number != NULL ? run_by_number(op, out, spec.inputs) : NULL;
    if (result == NULL && grd_shortcuts)
        result = run_contiguous(op, out, spec.inputs, params);
    if (result != NULL)
        return result;
    if (!check_mask(op, x) || !grd_iter_plan(&it, &planned, &spec))
        return grd_failed;
    const struct grd_map map = map_for(op, it.compute, params);
    if (map.kernel == NULL ? !refuse(op, it.compute) : !check_divisor(op, &it, spec.inputs[op->inputs - 1]))
        return grd_failed;
    result = grd_iter_bind(&it, &planned, &spec);
    if (!grd_is_failed(result))
        grd_iter_map(&it, &map);
    return result;
}

grd_tensor *grd_op_unary(grd_tensor *out, grd_tensor *x, const struct grd_elementwise *op, const grd_scalar *params)
{
    grd_tensor *result = NULL;
    if (GRD_LIKELY(out == NULL && is_cpu_tensor(x, GRD_FLAG_CONTIGUOUS | GRD_FLAG_CANONICAL)))
        result = run_shortcut(op, grd_kernels->unary[x->dtype], x, x, x, params);
    return GRD_LIKELY(result != NULL) ? result : run_general(out, x, NULL, NULL, op, params);
}

grd_tensor *grd_op_binary(grd_tensor *out, grd_tensor *x, grd_tensor *y, const struct grd_elementwise *op, const grd_scalar *params)
{
    grd_tensor *result = NULL;
    if (GRD_LIKELY(out == NULL && is_cpu_tensor(x, GRD_FLAG_CONTIGUOUS | GRD_FLAG_CANONICAL) && have_same_kind(x, y)))
        result = run_shortcut(op, grd_kernels->binary[x->dtype], x, y, y, params);
    return GRD_LIKELY(result != NULL) ? result : run_general(out, x, y, NULL, op, params);
}

grd_tensor *grd_op_ternary(grd_tensor *out, grd_tensor *x, grd_tensor *y, grd_tensor *z, const struct grd_elementwise *op,
                           const grd_scalar *params)
{
    grd_tensor *result = NULL;
    if (out == NULL && is_cpu_tensor(x, GRD_FLAG_CONTIGUOUS | GRD_FLAG_CANONICAL) && have_same_kind(x, y) && have_same_kind(x, z) &&
        !op->mask)
        result = run_shortcut(op, grd_kernels->ternary[x->dtype], x, y, z, params);
    return result != NULL ? result : run_general(out, x, y, z, op, params);
}

grd_tensor *grd_op_gradient(grd_tensor *x, grd_tensor *y, grd_tensor *z, const struct grd_elementwise *op, const grd_scalar *params)
{
    const grd_keyset keys = grd_keys_read(x) | grd_keys_read(y) | (z != NULL ? grd_keys_read(z) : 0);
    const bool same_dtype = y->dtype == x->dtype && (z == NULL || z->dtype == x->dtype);
    if (!grd_accelerations || grd_top_key(grd_active_keys(keys)) > GRD_KEY_META || !same_dtype ||
        grd_category_of((grd_dtype)x->dtype) != GRD_CATEGORY_FLOAT || map_for(op, (grd_dtype)x->dtype, params).kernel == NULL)
        return NULL;
    return run_general(NULL, x, y, z, op, params);
}
