/* Generated from schema/tiny.toml by codegen. Do not edit. */
#include <math.h>
#include <string.h>

#include "autograd/formula.h"
#include "dispatch/op.h"
#include "dispatch/option.h"
#include "gen/op_index.h"
#include "gen/hidden_ops.h"
#include "gen/op_impl.h"
#include "op/common.h"
#include "op/composite.h"
#include "op/elementwise.h"
#include "op/lines.h"
#include "op/plan.h"
#include "op/reduce.h"

/* ---- tanh(Tensor self) -> Tensor (schema/tiny.toml:3) */

static const struct grd_elementwise tanh_elementwise = {.inputs = 1, .rule = GRD_TYPE_FLOAT, .kernel = GRD_UNARY_TANH, .name = "tanh"};

grd_tensor *op_tanh(grd_tensor *out, grd_tensor *self)
{
    return grd_op_unary(out, self, &tanh_elementwise, NULL);
}

typedef grd_tensor *tanh_kernel(grd_tensor *out, grd_tensor *self);

static __attribute__((noinline)) void tanh_boxed(grd_keyset keys, grd_tensor *out, grd_tensor *self, grd_value *results)
{
    grd_value args[1];
    args[0].kind = GRD_KIND_TENSOR;
    args[0].v.tensor = self;
    grd_call_boxed(&grd_op_table[GRD_OP_TANH], keys, out, args, results);
}

GRD_INLINE grd_tensor *tanh_call(grd_tensor *out, grd_tensor *self)
{
    const struct grd_op *op = &grd_op_table[GRD_OP_TANH];
    if (grd_pending())
        return grd_failed;
    if (GRD_UNLIKELY(self == NULL)) {
        tanh_boxed(0, out, self, NULL);
        return grd_failed;
    }
    grd_tensor *returned;
    const grd_keyset keys = grd_active_keys(grd_keys_of(self) | (out ? grd_keys_of(out) : 0));
    const int64_t mark = grd_pool_mark();
    grd_kernel *kernel = grd_typed_kernel(op, keys);
    if (GRD_LIKELY(kernel != NULL)) {
        returned = ((tanh_kernel *)kernel)(out, self);
        grd_written(out);
    } else {
        grd_value boxed[1];
        tanh_boxed(keys, out, self, boxed);
        returned = boxed[0].v.tensor;
    }
    return grd_leave(GRD_OP_TANH, mark, returned);
}

static __attribute__((noinline)) grd_tensor *tanh_write(grd_tensor *out, grd_tensor *self)
{
    return grd_check_writable(&grd_op_table[GRD_OP_TANH], out) ? tanh_call(out, self) : grd_failed;
}

grd_tensor *grd_tanh(grd_tensor *self)
{
    return tanh_call(NULL, self);
}

grd_tensor *grd_tanh_(grd_tensor *self)
{
    return tanh_write(self, self);
}

grd_tensor *grd_tanh_out(grd_tensor *out, grd_tensor *self)
{
    return tanh_write(out, self);
}

static void tanh_backward(const struct grd_backward *b)
{
    grd_tensor *grad = b->grads[0];
    grd_tensor *result = b->saved[0].v.tensor;
    if (b->needs >> 0 & 1) { /* self: grad * (1 - result * result) */
        const int64_t mark0 = grd_pool_mark();
        grd_tensor *t0 = grd_formula_alone(mark0, grd_sub(grd_number(grd_int(1)), grd_mul(result, result)));
        b->ret_grads[b->first_edge[0]] = grd_mul(grad, t0);
    }
}

static const struct grd_save tanh_saves[] = {{.how = GRD_SAVE_TENSOR, .result = true, .index = 0, .used_by = 1}};
static const uint8_t tanh_differentiable[] = {0};
const struct grd_derivative grd_derivative_tanh = {
    .node_name = "TanhBackward0", .backward = tanh_backward, .saves = tanh_saves, .args = tanh_differentiable,
    .others = 0, .nsaves = 1, .nargs = 1, .results = 1};

/* ---- add(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor (schema/tiny.toml:13) */

static const grd_add_options add_defaults = {.alpha = {.kind = GRD_SCALAR_INT, .v.i = 1}};

typedef grd_tensor *add_kernel(grd_tensor *out, grd_tensor *self, grd_tensor *other, grd_scalar alpha);

static __attribute__((noinline)) void add_boxed(grd_keyset keys, grd_tensor *out, grd_tensor *self, grd_tensor *other, const grd_scalar *alpha, grd_value *results)
{
    grd_value args[3];
    args[0].kind = GRD_KIND_TENSOR;
    args[0].v.tensor = self;
    args[1].kind = GRD_KIND_TENSOR;
    args[1].v.tensor = other;
    args[2].kind = GRD_KIND_SCALAR;
    args[2].v.scalar = *alpha;
    grd_call_boxed(&grd_op_table[GRD_OP_ADD], keys, out, args, results);
}

GRD_INLINE grd_tensor *add_call(grd_tensor *out, grd_tensor *self, grd_tensor *other, const grd_scalar *alpha)
{
    const struct grd_op *op = &grd_op_table[GRD_OP_ADD];
    if (grd_pending())
        return grd_failed;
    if (GRD_UNLIKELY(self == NULL || other == NULL)) {
        add_boxed(0, out, self, other, alpha, NULL);
        return grd_failed;
    }
    grd_tensor *returned;
    const grd_keyset keys = grd_active_keys(grd_keys_of(self) | grd_keys_of(other) | (out ? grd_keys_of(out) : 0));
    const int64_t mark = grd_pool_mark();
    grd_kernel *kernel = grd_typed_kernel(op, keys);
    if (GRD_LIKELY(kernel != NULL)) {
        returned = ((add_kernel *)kernel)(out, self, other, *alpha);
        grd_written(out);
    } else {
        grd_value boxed[1];
        add_boxed(keys, out, self, other, alpha, boxed);
        returned = boxed[0].v.tensor;
    }
    return grd_leave(GRD_OP_ADD, mark, returned);
}

static __attribute__((noinline)) grd_tensor *add_write(grd_tensor *out, grd_tensor *self, grd_tensor *other, const grd_scalar *alpha)
{
    return grd_check_writable(&grd_op_table[GRD_OP_ADD], out) ? add_call(out, self, other, alpha) : grd_failed;
}

grd_tensor *grd_with_add(grd_tensor *self, grd_tensor *other, const grd_add_options *options)
{
    grd_scalar alpha;
    if (options == NULL)
        options = &add_defaults;
    return add_call(NULL, self, other, grd_given_number(&options->alpha, &add_defaults.alpha, &alpha));
}

grd_tensor *grd_with_add_scalar(grd_tensor *self, grd_scalar other, const grd_add_options *options)
{
    const int64_t mark = grd_pool_mark();
    return grd_leave_number(mark, grd_with_add(self, grd_number_argument(&grd_op_table[GRD_OP_ADD], other), options));
}

grd_tensor *grd_with_add_(grd_tensor *self, grd_tensor *other, const grd_add_options *options)
{
    grd_scalar alpha;
    if (options == NULL)
        options = &add_defaults;
    return add_write(self, self, other, grd_given_number(&options->alpha, &add_defaults.alpha, &alpha));
}

grd_tensor *grd_with_add_scalar_(grd_tensor *self, grd_scalar other, const grd_add_options *options)
{
    grd_scalar alpha;
    if (options == NULL)
        options = &add_defaults;
    const int64_t mark = grd_pool_mark();
    return grd_leave_number(mark, add_write(self, self, grd_number_argument(&grd_op_table[GRD_OP_ADD], other), grd_given_number(&options->alpha, &add_defaults.alpha, &alpha)));
}

grd_tensor *grd_with_add_out(grd_tensor *out, grd_tensor *self, grd_tensor *other, const grd_add_options *options)
{
    grd_scalar alpha;
    if (options == NULL)
        options = &add_defaults;
    return add_write(out, self, other, grd_given_number(&options->alpha, &add_defaults.alpha, &alpha));
}

static void add_backward(const struct grd_backward *b)
{
    grd_tensor *grad = b->grads[0];
    grd_scalar alpha = b->saved[0].v.scalar;
    if (b->needs >> 0 & 1) /* self: grad */
        b->ret_grads[b->first_edge[0]] = grad;
    if (b->needs >> 1 & 1) /* other: grad * alpha */
        b->ret_grads[b->first_edge[1]] = grd_mul(grad, grd_number(alpha));
}

static const struct grd_save add_saves[] = {{.how = GRD_SAVE_VALUE, .result = false, .index = 2, .used_by = 2}};
static const uint8_t add_differentiable[] = {0, 1};
const struct grd_derivative grd_derivative_add = {
    .node_name = "AddBackward0", .backward = add_backward, .saves = add_saves, .args = add_differentiable,
    .others = 0, .nsaves = 1, .nargs = 2, .results = 1};

/* ---- sub(Tensor self, Tensor other) -> Tensor (schema/tiny.toml:22) */

static const struct grd_elementwise sub_elementwise = {.inputs = 2, .rule = GRD_TYPE_PROMOTE, .kernel = GRD_BINARY_SUB, .name = "sub"};

grd_tensor *op_sub(grd_tensor *out, grd_tensor *self, grd_tensor *other)
{
    return grd_op_binary(out, self, other, &sub_elementwise, NULL);
}

typedef grd_tensor *sub_kernel(grd_tensor *out, grd_tensor *self, grd_tensor *other);

static __attribute__((noinline)) void sub_boxed(grd_keyset keys, grd_tensor *out, grd_tensor *self, grd_tensor *other, grd_value *results)
{
    grd_value args[2];
    args[0].kind = GRD_KIND_TENSOR;
    args[0].v.tensor = self;
    args[1].kind = GRD_KIND_TENSOR;
    args[1].v.tensor = other;
    grd_call_boxed(&grd_op_table[GRD_OP_SUB], keys, out, args, results);
}

GRD_INLINE grd_tensor *sub_call(grd_tensor *out, grd_tensor *self, grd_tensor *other)
{
    const struct grd_op *op = &grd_op_table[GRD_OP_SUB];
    if (grd_pending())
        return grd_failed;
    if (GRD_UNLIKELY(self == NULL || other == NULL)) {
        sub_boxed(0, out, self, other, NULL);
        return grd_failed;
    }
    grd_tensor *returned;
    const grd_keyset keys = grd_active_keys(grd_keys_of(self) | grd_keys_of(other) | (out ? grd_keys_of(out) : 0));
    const int64_t mark = grd_pool_mark();
    grd_kernel *kernel = grd_typed_kernel(op, keys);
    if (GRD_LIKELY(kernel != NULL)) {
        returned = ((sub_kernel *)kernel)(out, self, other);
        grd_written(out);
    } else {
        grd_value boxed[1];
        sub_boxed(keys, out, self, other, boxed);
        returned = boxed[0].v.tensor;
    }
    return grd_leave(GRD_OP_SUB, mark, returned);
}

static __attribute__((noinline)) grd_tensor *sub_write(grd_tensor *out, grd_tensor *self, grd_tensor *other)
{
    return grd_check_writable(&grd_op_table[GRD_OP_SUB], out) ? sub_call(out, self, other) : grd_failed;
}

grd_tensor *grd_sub(grd_tensor *self, grd_tensor *other)
{
    return sub_call(NULL, self, other);
}

grd_tensor *grd_sub_(grd_tensor *self, grd_tensor *other)
{
    return sub_write(self, self, other);
}

grd_tensor *grd_sub_out(grd_tensor *out, grd_tensor *self, grd_tensor *other)
{
    return sub_write(out, self, other);
}

static void sub_backward(const struct grd_backward *b)
{
    grd_tensor *grad = b->grads[0];
    if (b->needs >> 0 & 1) /* self: grad */
        b->ret_grads[b->first_edge[0]] = grad;
    if (b->needs >> 1 & 1) /* other: -grad */
        b->ret_grads[b->first_edge[1]] = grd_neg(grad);
}

static const uint8_t sub_differentiable[] = {0, 1};
const struct grd_derivative grd_derivative_sub = {
    .node_name = "SubBackward0", .backward = sub_backward, .saves = NULL, .args = sub_differentiable,
    .others = 0, .nsaves = 0, .nargs = 2, .results = 1};

/* ---- mul(Tensor self, Tensor other) -> Tensor (schema/tiny.toml:30) */

static const struct grd_elementwise mul_elementwise = {.inputs = 2, .rule = GRD_TYPE_PROMOTE, .kernel = GRD_BINARY_MUL, .name = "mul"};

grd_tensor *op_mul(grd_tensor *out, grd_tensor *self, grd_tensor *other)
{
    return grd_op_binary(out, self, other, &mul_elementwise, NULL);
}

typedef grd_tensor *mul_kernel(grd_tensor *out, grd_tensor *self, grd_tensor *other);

static __attribute__((noinline)) void mul_boxed(grd_keyset keys, grd_tensor *out, grd_tensor *self, grd_tensor *other, grd_value *results)
{
    grd_value args[2];
    args[0].kind = GRD_KIND_TENSOR;
    args[0].v.tensor = self;
    args[1].kind = GRD_KIND_TENSOR;
    args[1].v.tensor = other;
    grd_call_boxed(&grd_op_table[GRD_OP_MUL], keys, out, args, results);
}

GRD_INLINE grd_tensor *mul_call(grd_tensor *out, grd_tensor *self, grd_tensor *other)
{
    const struct grd_op *op = &grd_op_table[GRD_OP_MUL];
    if (grd_pending())
        return grd_failed;
    if (GRD_UNLIKELY(self == NULL || other == NULL)) {
        mul_boxed(0, out, self, other, NULL);
        return grd_failed;
    }
    grd_tensor *returned;
    const grd_keyset keys = grd_active_keys(grd_keys_of(self) | grd_keys_of(other) | (out ? grd_keys_of(out) : 0));
    const int64_t mark = grd_pool_mark();
    grd_kernel *kernel = grd_typed_kernel(op, keys);
    if (GRD_LIKELY(kernel != NULL)) {
        returned = ((mul_kernel *)kernel)(out, self, other);
        grd_written(out);
    } else {
        grd_value boxed[1];
        mul_boxed(keys, out, self, other, boxed);
        returned = boxed[0].v.tensor;
    }
    return grd_leave(GRD_OP_MUL, mark, returned);
}

static __attribute__((noinline)) grd_tensor *mul_write(grd_tensor *out, grd_tensor *self, grd_tensor *other)
{
    return grd_check_writable(&grd_op_table[GRD_OP_MUL], out) ? mul_call(out, self, other) : grd_failed;
}

grd_tensor *grd_mul(grd_tensor *self, grd_tensor *other)
{
    return mul_call(NULL, self, other);
}

grd_tensor *grd_mul_(grd_tensor *self, grd_tensor *other)
{
    return mul_write(self, self, other);
}

grd_tensor *grd_mul_out(grd_tensor *out, grd_tensor *self, grd_tensor *other)
{
    return mul_write(out, self, other);
}

static void mul_backward(const struct grd_backward *b)
{
    grd_tensor *grad = b->grads[0];
    grd_tensor *other = b->saved[0].v.tensor;
    grd_tensor *self = b->saved[1].v.tensor;
    if (b->needs >> 0 & 1) /* self: grad * other */
        b->ret_grads[b->first_edge[0]] = grd_mul(grad, other);
    if (b->needs >> 1 & 1) /* other: grad * self */
        b->ret_grads[b->first_edge[1]] = grd_mul(grad, self);
}

static const struct grd_save mul_saves[] = {{.how = GRD_SAVE_TENSOR, .result = false, .index = 1, .used_by = 1}, {.how = GRD_SAVE_TENSOR, .result = false, .index = 0, .used_by = 2}};
static const uint8_t mul_differentiable[] = {0, 1};
const struct grd_derivative grd_derivative_mul = {
    .node_name = "MulBackward0", .backward = mul_backward, .saves = mul_saves, .args = mul_differentiable,
    .others = 0, .nsaves = 2, .nargs = 2, .results = 1};

/* ---- neg(Tensor self) -> Tensor (schema/tiny.toml:38) */

static const struct grd_elementwise neg_elementwise = {.inputs = 1, .rule = GRD_TYPE_PROMOTE, .kernel = GRD_UNARY_NEG, .name = "neg"};

grd_tensor *op_neg(grd_tensor *out, grd_tensor *self)
{
    return grd_op_unary(out, self, &neg_elementwise, NULL);
}

typedef grd_tensor *neg_kernel(grd_tensor *out, grd_tensor *self);

static __attribute__((noinline)) void neg_boxed(grd_keyset keys, grd_tensor *out, grd_tensor *self, grd_value *results)
{
    grd_value args[1];
    args[0].kind = GRD_KIND_TENSOR;
    args[0].v.tensor = self;
    grd_call_boxed(&grd_op_table[GRD_OP_NEG], keys, out, args, results);
}

GRD_INLINE grd_tensor *neg_call(grd_tensor *out, grd_tensor *self)
{
    const struct grd_op *op = &grd_op_table[GRD_OP_NEG];
    if (grd_pending())
        return grd_failed;
    if (GRD_UNLIKELY(self == NULL)) {
        neg_boxed(0, out, self, NULL);
        return grd_failed;
    }
    grd_tensor *returned;
    const grd_keyset keys = grd_active_keys(grd_keys_of(self) | (out ? grd_keys_of(out) : 0));
    const int64_t mark = grd_pool_mark();
    grd_kernel *kernel = grd_typed_kernel(op, keys);
    if (GRD_LIKELY(kernel != NULL)) {
        returned = ((neg_kernel *)kernel)(out, self);
        grd_written(out);
    } else {
        grd_value boxed[1];
        neg_boxed(keys, out, self, boxed);
        returned = boxed[0].v.tensor;
    }
    return grd_leave(GRD_OP_NEG, mark, returned);
}

static __attribute__((noinline)) grd_tensor *neg_write(grd_tensor *out, grd_tensor *self)
{
    return grd_check_writable(&grd_op_table[GRD_OP_NEG], out) ? neg_call(out, self) : grd_failed;
}

grd_tensor *grd_neg(grd_tensor *self)
{
    return neg_call(NULL, self);
}

grd_tensor *grd_neg_(grd_tensor *self)
{
    return neg_write(self, self);
}

grd_tensor *grd_neg_out(grd_tensor *out, grd_tensor *self)
{
    return neg_write(out, self);
}

static void neg_backward(const struct grd_backward *b)
{
    grd_tensor *grad = b->grads[0];
    if (b->needs >> 0 & 1) /* self: -grad */
        b->ret_grads[b->first_edge[0]] = grd_neg(grad);
}

static const uint8_t neg_differentiable[] = {0};
const struct grd_derivative grd_derivative_neg = {
    .node_name = "NegBackward0", .backward = neg_backward, .saves = NULL, .args = neg_differentiable,
    .others = 0, .nsaves = 0, .nargs = 1, .results = 1};

/* ---- sin(Tensor self) -> Tensor (schema/tiny.toml:45) */

static const struct grd_elementwise sin_elementwise = {.inputs = 1, .rule = GRD_TYPE_FLOAT, .kernel = GRD_UNARY_SIN, .name = "sin"};

grd_tensor *op_sin(grd_tensor *out, grd_tensor *self)
{
    return grd_op_unary(out, self, &sin_elementwise, NULL);
}

typedef grd_tensor *sin_kernel(grd_tensor *out, grd_tensor *self);

static __attribute__((noinline)) void sin_boxed(grd_keyset keys, grd_tensor *out, grd_tensor *self, grd_value *results)
{
    grd_value args[1];
    args[0].kind = GRD_KIND_TENSOR;
    args[0].v.tensor = self;
    grd_call_boxed(&grd_op_table[GRD_OP_SIN], keys, out, args, results);
}

GRD_INLINE grd_tensor *sin_call(grd_tensor *out, grd_tensor *self)
{
    const struct grd_op *op = &grd_op_table[GRD_OP_SIN];
    if (grd_pending())
        return grd_failed;
    if (GRD_UNLIKELY(self == NULL)) {
        sin_boxed(0, out, self, NULL);
        return grd_failed;
    }
    grd_tensor *returned;
    const grd_keyset keys = grd_active_keys(grd_keys_of(self) | (out ? grd_keys_of(out) : 0));
    const int64_t mark = grd_pool_mark();
    grd_kernel *kernel = grd_typed_kernel(op, keys);
    if (GRD_LIKELY(kernel != NULL)) {
        returned = ((sin_kernel *)kernel)(out, self);
        grd_written(out);
    } else {
        grd_value boxed[1];
        sin_boxed(keys, out, self, boxed);
        returned = boxed[0].v.tensor;
    }
    return grd_leave(GRD_OP_SIN, mark, returned);
}

static __attribute__((noinline)) grd_tensor *sin_write(grd_tensor *out, grd_tensor *self)
{
    return grd_check_writable(&grd_op_table[GRD_OP_SIN], out) ? sin_call(out, self) : grd_failed;
}

grd_tensor *grd_sin(grd_tensor *self)
{
    return sin_call(NULL, self);
}

grd_tensor *grd_sin_(grd_tensor *self)
{
    return sin_write(self, self);
}

grd_tensor *grd_sin_out(grd_tensor *out, grd_tensor *self)
{
    return sin_write(out, self);
}

/* ---- lt(Tensor self, Tensor other) -> Tensor (schema/tiny.toml:54) */

static const struct grd_elementwise lt_elementwise = {.inputs = 2, .rule = GRD_TYPE_COMPARE, .kernel = GRD_BINARY_LT, .name = "lt"};

grd_tensor *op_lt(grd_tensor *out, grd_tensor *self, grd_tensor *other)
{
    return grd_op_binary(out, self, other, &lt_elementwise, NULL);
}

typedef grd_tensor *lt_kernel(grd_tensor *out, grd_tensor *self, grd_tensor *other);

static __attribute__((noinline)) void lt_boxed(grd_keyset keys, grd_tensor *out, grd_tensor *self, grd_tensor *other, grd_value *results)
{
    grd_value args[2];
    args[0].kind = GRD_KIND_TENSOR;
    args[0].v.tensor = self;
    args[1].kind = GRD_KIND_TENSOR;
    args[1].v.tensor = other;
    grd_call_boxed(&grd_op_table[GRD_OP_LT], keys, out, args, results);
}

GRD_INLINE grd_tensor *lt_call(grd_tensor *out, grd_tensor *self, grd_tensor *other)
{
    const struct grd_op *op = &grd_op_table[GRD_OP_LT];
    if (grd_pending())
        return grd_failed;
    if (GRD_UNLIKELY(self == NULL || other == NULL)) {
        lt_boxed(0, out, self, other, NULL);
        return grd_failed;
    }
    grd_tensor *returned;
    const grd_keyset keys = grd_active_keys(grd_keys_of(self) | grd_keys_of(other) | (out ? grd_keys_of(out) : 0));
    const int64_t mark = grd_pool_mark();
    grd_kernel *kernel = grd_typed_kernel(op, keys);
    if (GRD_LIKELY(kernel != NULL)) {
        returned = ((lt_kernel *)kernel)(out, self, other);
        grd_written(out);
    } else {
        grd_value boxed[1];
        lt_boxed(keys, out, self, other, boxed);
        returned = boxed[0].v.tensor;
    }
    return grd_leave(GRD_OP_LT, mark, returned);
}

static __attribute__((noinline)) grd_tensor *lt_write(grd_tensor *out, grd_tensor *self, grd_tensor *other)
{
    return grd_check_writable(&grd_op_table[GRD_OP_LT], out) ? lt_call(out, self, other) : grd_failed;
}

grd_tensor *grd_lt(grd_tensor *self, grd_tensor *other)
{
    return lt_call(NULL, self, other);
}

grd_tensor *grd_lt_(grd_tensor *self, grd_tensor *other)
{
    return lt_write(self, self, other);
}

grd_tensor *grd_lt_out(grd_tensor *out, grd_tensor *self, grd_tensor *other)
{
    return lt_write(out, self, other);
}

/* ---- twice(Tensor self) -> Tensor (schema/tiny.toml:62) */

grd_tensor *op_twice(grd_tensor *self)
{
    return grd_mul(grd_number(grd_int(2)), self);
}

typedef grd_tensor *twice_kernel(grd_tensor *self);

static __attribute__((noinline)) void twice_boxed(grd_keyset keys, grd_tensor *self, grd_value *results)
{
    grd_value args[1];
    args[0].kind = GRD_KIND_TENSOR;
    args[0].v.tensor = self;
    grd_call_boxed(&grd_op_table[GRD_OP_TWICE], keys, NULL, args, results);
}

GRD_INLINE grd_tensor *twice_call(grd_tensor *self)
{
    const struct grd_op *op = &grd_op_table[GRD_OP_TWICE];
    if (grd_pending())
        return grd_failed;
    if (GRD_UNLIKELY(self == NULL)) {
        twice_boxed(0, self, NULL);
        return grd_failed;
    }
    grd_tensor *returned;
    const grd_keyset keys = grd_active_keys(grd_keys_of(self));
    const int64_t mark = grd_pool_mark();
    grd_kernel *kernel = grd_typed_kernel(op, keys);
    if (GRD_LIKELY(kernel != NULL)) {
        returned = ((twice_kernel *)kernel)(self);
    } else {
        grd_value boxed[1];
        twice_boxed(keys, self, boxed);
        returned = boxed[0].v.tensor;
    }
    return grd_leave(GRD_OP_TWICE, mark, returned);
}

grd_tensor *grd_twice(grd_tensor *self)
{
    return twice_call(self);
}

/* ---- unbind(Tensor self, int dim=0) -> Tensor[] (schema/tiny.toml:67) */

static const grd_unbind_options unbind_defaults = {0};

typedef grd_tensors unbind_kernel(grd_tensor *self, int64_t dim);

static __attribute__((noinline)) void unbind_boxed(grd_keyset keys, grd_tensor *self, int64_t dim, grd_value *results)
{
    grd_value args[2];
    args[0].kind = GRD_KIND_TENSOR;
    args[0].v.tensor = self;
    args[1].kind = GRD_KIND_INT;
    args[1].v.integer = dim;
    grd_call_boxed(&grd_op_table[GRD_OP_UNBIND], keys, NULL, args, results);
}

GRD_INLINE grd_tensors_view unbind_call(grd_tensor *self, int64_t dim)
{
    const struct grd_op *op = &grd_op_table[GRD_OP_UNBIND];
    if (grd_pending())
        return (grd_tensors){0};
    if (GRD_UNLIKELY(self == NULL)) {
        unbind_boxed(0, self, dim, NULL);
        return (grd_tensors){0};
    }
    grd_tensors returned;
    const grd_keyset keys = grd_active_keys(grd_keys_of(self));
    const int64_t mark = grd_pool_mark();
    grd_kernel *kernel = grd_typed_kernel(op, keys);
    if (GRD_LIKELY(kernel != NULL)) {
        returned = ((unbind_kernel *)kernel)(self, dim);
    } else {
        grd_value boxed[1];
        unbind_boxed(keys, self, dim, boxed);
        returned = boxed[0].v.tensors;
    }
    return grd_leave_list(op, mark, returned);
}

grd_tensors_view grd_with_unbind(grd_tensor *self, const grd_unbind_options *options)
{
    if (options == NULL)
        options = &unbind_defaults;
    return unbind_call(self, options->dim);
}

static void unbind_backward(const struct grd_backward *b)
{
    grd_tensors grads = {b->ngrads, b->grads};
    int64_t dim = b->saved[0].v.integer;
    if (b->needs >> 0 & 1) /* self: stack(grads, dim=dim) */
        b->ret_grads[b->first_edge[0]] = grd_stack(grads, .dim = dim);
}

static const struct grd_save unbind_saves[] = {{.how = GRD_SAVE_VALUE, .result = false, .index = 1, .used_by = 1}};
static const uint8_t unbind_differentiable[] = {0};
const struct grd_derivative grd_derivative_unbind = {
    .node_name = "UnbindBackward0", .backward = unbind_backward, .saves = unbind_saves, .args = unbind_differentiable,
    .others = 0, .nsaves = 1, .nargs = 1, .results = 1, .materialize = true};

/* ---- stack(Tensor[] tensors, int dim=0) -> Tensor (schema/tiny.toml:74) */

static const grd_stack_options stack_defaults = {0};

typedef grd_tensor *stack_kernel(grd_tensors tensors, int64_t dim);

static __attribute__((noinline)) void stack_boxed(grd_keyset keys, grd_tensors tensors, int64_t dim, grd_value *results)
{
    grd_value args[2];
    args[0].kind = GRD_KIND_TENSORS;
    args[0].v.tensors = tensors;
    args[1].kind = GRD_KIND_INT;
    args[1].v.integer = dim;
    grd_call_boxed(&grd_op_table[GRD_OP_STACK], keys, NULL, args, results);
}

GRD_INLINE grd_tensor *stack_call(grd_tensors tensors, int64_t dim)
{
    const struct grd_op *op = &grd_op_table[GRD_OP_STACK];
    if (grd_pending())
        return grd_failed;
    if (GRD_UNLIKELY(!grd_is_tensor_list(tensors))) {
        stack_boxed(0, tensors, dim, NULL);
        return grd_failed;
    }
    grd_tensor *returned;
    const grd_keyset keys = grd_active_keys(grd_list_keys(tensors));
    const int64_t mark = grd_pool_mark();
    grd_kernel *kernel = grd_typed_kernel(op, keys);
    if (GRD_LIKELY(kernel != NULL)) {
        returned = ((stack_kernel *)kernel)(tensors, dim);
    } else {
        grd_value boxed[1];
        stack_boxed(keys, tensors, dim, boxed);
        returned = boxed[0].v.tensor;
    }
    return grd_leave(GRD_OP_STACK, mark, returned);
}

grd_tensor *grd_with_stack(grd_tensors_view tensors, const grd_stack_options *options)
{
    if (options == NULL)
        options = &stack_defaults;
    return stack_call(tensors, options->dim);
}

static void stack_backward(const struct grd_backward *b)
{
    grd_tensor *grad = b->grads[0];
    int64_t dim = b->saved[0].v.integer;
    if (b->needs >> 0 & 1) /* tensors: unbind(grad, dim=dim) */
        grd_backward_spread(b, 0, grd_unbind(grad, .dim = dim));
}

static const struct grd_save stack_saves[] = {{.how = GRD_SAVE_VALUE, .result = false, .index = 1, .used_by = 1}};
static const uint8_t stack_differentiable[] = {0};
const struct grd_derivative grd_derivative_stack = {
    .node_name = "StackBackward0", .backward = stack_backward, .saves = stack_saves, .args = stack_differentiable,
    .others = 0, .nsaves = 1, .nargs = 1, .results = 1, .lists = true};

/* ---- max_dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices) (schema/tiny.toml:80) */

static const grd_max_dim_options max_dim_defaults = {0};

typedef void max_dim_kernel(grd_tensor *self, int64_t dim, bool keepdim, grd_tensor **ret);

static __attribute__((noinline)) void max_dim_boxed(grd_keyset keys, grd_tensor *self, int64_t dim, bool keepdim, grd_value *results)
{
    grd_value args[3];
    args[0].kind = GRD_KIND_TENSOR;
    args[0].v.tensor = self;
    args[1].kind = GRD_KIND_INT;
    args[1].v.integer = dim;
    args[2].kind = GRD_KIND_BOOL;
    args[2].v.boolean = keepdim;
    grd_call_boxed(&grd_op_table[GRD_OP_MAX_DIM], keys, NULL, args, results);
}

GRD_INLINE grd_max_dim_result max_dim_call(grd_tensor *self, int64_t dim, bool keepdim)
{
    const struct grd_op *op = &grd_op_table[GRD_OP_MAX_DIM];
    if (grd_pending())
        return (grd_max_dim_result){grd_failed, grd_failed};
    if (GRD_UNLIKELY(self == NULL)) {
        max_dim_boxed(0, self, dim, keepdim, NULL);
        return (grd_max_dim_result){grd_failed, grd_failed};
    }
    grd_tensor *returned[2];
    const grd_keyset keys = grd_active_keys(grd_keys_of(self));
    const int64_t mark = grd_pool_mark();
    grd_kernel *kernel = grd_typed_kernel(op, keys);
    if (GRD_LIKELY(kernel != NULL)) {
        ((max_dim_kernel *)kernel)(self, dim, keepdim, returned);
    } else {
        grd_value boxed[2];
        max_dim_boxed(keys, self, dim, keepdim, boxed);
        returned[0] = boxed[0].v.tensor;
        returned[1] = boxed[1].v.tensor;
    }
    grd_leave_many(op, mark, returned, 2);
    return (grd_max_dim_result){returned[0], returned[1]};
}

grd_max_dim_result grd_with_max_dim(grd_tensor *self, int64_t dim, const grd_max_dim_options *options)
{
    if (options == NULL)
        options = &max_dim_defaults;
    return max_dim_call(self, dim, options->keepdim);
}

static void max_dim_backward(const struct grd_backward *b)
{
    grd_tensor *grad = b->grads[0];
    grd_tensor *indices = b->saved[0].v.tensor;
    int64_t dim = b->saved[1].v.integer;
    bool keepdim = b->saved[2].v.boolean;
    grd_dims self_shape = b->saved[3].v.dims;
    if (b->needs >> 0 & 1) /* self: _place(grad, indices, dim, keepdim, shape(self)) */
        b->ret_grads[b->first_edge[0]] = grd_hidden_place(grad, indices, dim, keepdim, self_shape);
}

static const struct grd_save max_dim_saves[] = {{.how = GRD_SAVE_TENSOR, .result = true, .index = 1, .used_by = 1}, {.how = GRD_SAVE_VALUE, .result = false, .index = 1, .used_by = 1}, {.how = GRD_SAVE_VALUE, .result = false, .index = 2, .used_by = 1}, {.how = GRD_SAVE_SHAPE, .result = false, .index = 0, .used_by = 1}};
static const uint8_t max_dim_differentiable[] = {0};
const struct grd_derivative grd_derivative_max_dim = {
    .node_name = "MaxDimBackward0", .backward = max_dim_backward, .saves = max_dim_saves, .args = max_dim_differentiable,
    .others = 0, .nsaves = 4, .nargs = 1, .results = 1, .sized = true, .materialize = true};

/* ---- _place(Tensor grad, Tensor indices, int dim, bool keepdim, int[] sizes) -> Tensor (schema/tiny.toml:86) */

typedef grd_tensor *hidden_place_kernel(grd_tensor *grad, grd_tensor *indices, int64_t dim, bool keepdim, grd_dims sizes);

static __attribute__((noinline)) void hidden_place_boxed(grd_keyset keys, grd_tensor *grad, grd_tensor *indices, int64_t dim, bool keepdim, grd_dims sizes, grd_value *results)
{
    grd_value args[5];
    args[0].kind = GRD_KIND_TENSOR;
    args[0].v.tensor = grad;
    args[1].kind = GRD_KIND_TENSOR;
    args[1].v.tensor = indices;
    args[2].kind = GRD_KIND_INT;
    args[2].v.integer = dim;
    args[3].kind = GRD_KIND_BOOL;
    args[3].v.boolean = keepdim;
    args[4].kind = GRD_KIND_DIMS;
    args[4].v.dims = sizes;
    grd_call_boxed(&grd_op_table[GRD_OP_HIDDEN_PLACE], keys, NULL, args, results);
}

GRD_INLINE grd_tensor *hidden_place_call(grd_tensor *grad, grd_tensor *indices, int64_t dim, bool keepdim, grd_dims sizes)
{
    const struct grd_op *op = &grd_op_table[GRD_OP_HIDDEN_PLACE];
    if (grd_pending())
        return grd_failed;
    if (GRD_UNLIKELY(grad == NULL || indices == NULL || !grd_is_int_list(sizes))) {
        hidden_place_boxed(0, grad, indices, dim, keepdim, sizes, NULL);
        return grd_failed;
    }
    grd_tensor *returned;
    const grd_keyset keys = grd_active_keys(grd_keys_of(grad) | grd_keys_of(indices));
    const int64_t mark = grd_pool_mark();
    grd_kernel *kernel = grd_typed_kernel(op, keys);
    if (GRD_LIKELY(kernel != NULL)) {
        returned = ((hidden_place_kernel *)kernel)(grad, indices, dim, keepdim, sizes);
    } else {
        grd_value boxed[1];
        hidden_place_boxed(keys, grad, indices, dim, keepdim, sizes, boxed);
        returned = boxed[0].v.tensor;
    }
    return grd_leave(GRD_OP_HIDDEN_PLACE, mark, returned);
}

grd_tensor *grd_hidden_place(grd_tensor *grad, grd_tensor *indices, int64_t dim, bool keepdim, grd_dims_view sizes)
{
    return hidden_place_call(grad, indices, dim, keepdim, sizes);
}

/* ---- zeros(int[] size, *, dtype? dtype=None, device? device=None, bool requires_grad=False) -> Tensor (schema/tiny.toml:91) */

static const grd_zeros_options zeros_defaults = {0};

typedef grd_tensor *zeros_kernel(grd_dims size, grd_dtype dtype, grd_device device, bool requires_grad);

static __attribute__((noinline)) void zeros_boxed(grd_keyset keys, grd_dims size, grd_dtype dtype, grd_device device, bool requires_grad, grd_value *results)
{
    grd_value args[4];
    args[0].kind = GRD_KIND_DIMS;
    args[0].v.dims = size;
    args[1].kind = GRD_KIND_DTYPE;
    args[1].v.dtype = dtype;
    args[2].kind = GRD_KIND_DEVICE;
    args[2].v.device = device;
    args[3].kind = GRD_KIND_BOOL;
    args[3].v.boolean = requires_grad;
    grd_call_boxed(&grd_op_table[GRD_OP_ZEROS], keys, NULL, args, results);
}

GRD_INLINE grd_tensor *zeros_call(grd_dims size, grd_dtype dtype, grd_device device, bool requires_grad)
{
    const struct grd_op *op = &grd_op_table[GRD_OP_ZEROS];
    if (grd_pending())
        return grd_failed;
    if (GRD_UNLIKELY(!grd_is_int_list(size) || !grd_is_dtype(dtype) || grd_is_plain_device(device))) {
        zeros_boxed(0, size, dtype, device, requires_grad, NULL);
        return grd_failed;
    }
    grd_tensor *returned;
    const grd_keyset keys = grd_active_keys(grd_device_keys(device));
    const int64_t mark = grd_pool_mark();
    grd_kernel *kernel = grd_typed_kernel(op, keys);
    if (GRD_LIKELY(kernel != NULL)) {
        returned = ((zeros_kernel *)kernel)(size, dtype, device, requires_grad);
    } else {
        grd_value boxed[1];
        zeros_boxed(keys, size, dtype, device, requires_grad, boxed);
        returned = boxed[0].v.tensor;
    }
    return grd_leave(GRD_OP_ZEROS, mark, returned);
}

grd_tensor *grd_with_zeros(grd_dims_view size, const grd_zeros_options *options)
{
    if (options == NULL)
        options = &zeros_defaults;
    return zeros_call(size, options->dtype, options->device, options->requires_grad);
}
