/* The one implementation behind kernel = "unary", "binary" and "ternary". The operators with more to say are in arithmetic.c.
 *
 * Two ways: operands of one dtype and shape that lie contiguous, plain numbers and expanded elements among them, go straight to the
 * kernel; all others through the iterator. Both give the same result.
 * Invariant: a missing kernel and a zero divisor are found before anything is allocated, resized or written. */
#include "op/elementwise.h"

#include <stdatomic.h>
#include <string.h>

#include "base/parallel.h"
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
    {"addcdiv", GRD_CATEGORY_INTEGER, GRD_ERROR_RUNTIME, "Integer division with addcdiv is not supported."},
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
        strides[i] = t->strides[i] * (int64_t)t->itemsize;
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

static grd_tensor *run_general(const struct grd_elementwise *op, grd_tensor *out, grd_tensor *const *inputs, const grd_scalar *params)
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
    if (op->mask && inputs[0]->dtype != GRD_BOOL && inputs[0]->dtype != GRD_UINT8) {
        grd_raise(GRD_ERROR_RUNTIME, "expected condition to be a boolean tensor, but got a tensor with dtype %s",
                  grd_dtype_type_name(inputs[0]->dtype));
        return grd_failed;
    }
    struct grd_iter it;
    grd_tensor *result = grd_iter_elementwise(&it, &spec);
    if (grd_pending())
        return grd_failed;
    grd_iter_run(&it, find_kernel(op, it.compute), params);
    return result;
}

/* ---- Straight to the kernel --------------------------------------------------------------------------------------------------------- */

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

static inline bool is_plain(const grd_tensor *t)
{
    return grd_has(t, GRD_FLAG_CONTIGUOUS) && t->device == GRD_DEVICE_CPU;
}

static inline bool same_sizes(const grd_tensor *a, const grd_tensor *b)
{
    if (a->ndim != b->ndim)
        return false;
    for (int i = 0; i < a->ndim; i++)
        if (a->sizes[i] != b->sizes[i])
            return false;
    return true;
}

/* One element expanded, as the gradient of a sum is. */
static inline bool is_expanded(const grd_tensor *t)
{
    for (int i = 0; i < t->ndim; i++)
        if (t->strides[i] != 0 && t->sizes[i] != 1)
            return false;
    return t->device == GRD_DEVICE_CPU;
}

/* Whether a plain number leaves the dtype as it is; then it is written to `ret_element` as one. */
static inline bool number_fits(const struct grd_elementwise *op, const grd_tensor *number, grd_dtype dtype, void *ret_element)
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

/* The input whose dtype and shape are those of the computation, with flat's operands filled; NULL when this is not the simple case. */
static inline const grd_tensor *flatten(const struct grd_elementwise *op, grd_tensor *const *inputs, struct flat *flat,
                                        uint64_t (*numbers)[2])
{
    const grd_tensor *first = NULL, *like = NULL;
    for (int i = op->mask; i < op->inputs; i++) {
        const grd_tensor *t = inputs[i];
        if (grd_has(t, GRD_FLAG_NUMBER))
            continue;
        const bool plain = is_plain(t);
        if ((!plain && !is_expanded(t)) || (first != NULL && (t->dtype != first->dtype || !same_sizes(t, first))))
            return NULL;
        first = t;
        like = plain ? t : like;
        flat->data[i + 1] = t->data;
        flat->strides[i + 1] = plain ? t->itemsize : 0;
    }
    if (like == NULL)
        return NULL;
    enum grd_category category = grd_category_of(like->dtype);
    if ((op->rule == GRD_TYPE_FLOAT && category <= GRD_CATEGORY_INTEGER) || (op->divides && category == GRD_CATEGORY_INTEGER))
        return NULL;
    for (int i = op->mask; i < op->inputs; i++) {
        if (!grd_has(inputs[i], GRD_FLAG_NUMBER))
            continue;
        if (!number_fits(op, inputs[i], like->dtype, numbers[i]))
            return NULL;
        flat->data[i + 1] = (char *)numbers[i];
        flat->strides[i + 1] = 0;
    }
    if (op->mask) {
        if (inputs[0]->dtype != GRD_BOOL || !is_plain(inputs[0]) || !same_sizes(inputs[0], like))
            return NULL;
        flat->data[1] = inputs[0]->data;
        flat->strides[1] = 1;
    }
    return like;
}

/* Whether `out` may be written as it is: alike, and no input reads its memory in another order. */
static inline bool takes_flat(const grd_tensor *out, const grd_tensor *like, grd_dtype dtype, const struct grd_elementwise *op,
                              grd_tensor *const *inputs, const struct flat *flat)
{
    if (out->dtype != dtype || !is_plain(out) || !same_sizes(out, like) || out->storage->release != NULL)
        return false;
    for (int i = 0; i < op->inputs; i++)
        if (inputs[i]->storage == out->storage && (inputs[i]->data != out->data || flat->strides[i + 1] != out->itemsize))
            return false;
    return true;
}

grd_tensor *grd_op_elementwise(const struct grd_elementwise *op, grd_tensor *out, grd_tensor *const *inputs, const grd_scalar *params)
{
    if (grd_pending())
        return grd_failed;
    struct flat flat;
    uint64_t numbers[MAX_INPUTS][2];
    const grd_tensor *like = flatten(op, inputs, &flat, numbers);
    if (like == NULL)
        return run_general(op, out, inputs, params);
    grd_dtype dtype = op->rule == GRD_TYPE_COMPARE || op->rule == GRD_TYPE_BOOL ? GRD_BOOL : (grd_dtype)like->dtype;
    flat.kernel = find_kernel(op, like->dtype);
    if (flat.kernel == NULL || (out != NULL && !takes_flat(out, like, dtype, op, inputs, &flat)))
        return run_general(op, out, inputs, params);
    if (out == NULL) {
        out = grd_new(grd_dims_from(like->sizes, like->ndim), dtype, grd_device_of(like));
        if (grd_is_failed(out))
            return grd_failed;
    }
    flat.params = params;
    flat.data[0] = out->data;
    flat.strides[0] = out->itemsize;
    if (GRD_LIKELY(like->numel <= GRD_ITER_GRAIN)) {
        flat.kernel(like->numel, flat.data, flat.strides, params);
        return out;
    }
    for (int i = op->inputs + 1; i <= MAX_INPUTS; i++) {
        flat.data[i] = flat.data[0];
        flat.strides[i] = 0;
    }
    grd_parallel_for(0, like->numel, GRD_ITER_GRAIN, run_piece, &flat);
    return out;
}
