/* Generated from schema/tiny.toml by codegen. Do not edit. */
#include <math.h>
#include <string.h>

#include "autograd/formula.h"
#include "base/frames.h"
#include "base/text.h"
#include "core/dtype.h"
#include "core/new.h"
#include "core/shortcuts.h"
#include "dispatch/op.h"
#include "dispatch/option.h"
#include "gen/impl/tiny.h"
#include "op/elementwise.h"
#include "op/formula.h"
#include "op/index_loops.h"
#include "op/lines.h"
#include "op/plan.h"
#include "op/reduce.h"
#include "transform/formula.h"
#include "gen/calls/c_tfz.h"
#include "gen/calls/l_ti.h"
#include "gen/calls/m2_tib.h"
#include "gen/calls/o_t.h"
#include "gen/calls/o_tt.h"
#include "gen/calls/o_ttS.h"
#include "gen/calls/t_dYvb.h"
#include "gen/calls/t_li.h"
#include "gen/calls/t_t.h"
#include "gen/calls/t_ttibd.h"
#include "gen/ops/_place.h"
#include "gradus/ops/add.h"
#include "gradus/ops/lt.h"
#include "gradus/ops/max_dim.h"
#include "gradus/ops/mul.h"
#include "gradus/ops/neg.h"
#include "gradus/ops/scaled_tanh.h"
#include "gradus/ops/sin.h"
#include "gradus/ops/stack.h"
#include "gradus/ops/sub.h"
#include "gradus/ops/tanh.h"
#include "gradus/ops/twice.h"
#include "gradus/ops/unbind.h"
#include "gradus/ops/zeros.h"

/* ---- tanh(Tensor self) -> Tensor (schema/tiny.toml:3) */
const struct grd_elementwise elementwise_tanh = {.inputs = 1, .rule = GRD_TYPE_FLOAT, .kernel = GRD_UNARY_TANH, .name = "tanh"};
grd_tensor *op_tanh(grd_tensor *out, grd_tensor *self) { return grd_op_unary(out, self, &elementwise_tanh, NULL); }
static void tanh_backward(const struct grd_backward *b)
{
    grd_tensor *grad = b->grads[0], *result = b->saved[0].v.tensor;
    if (b->needs >> 0 & 1 && !grd_backward_fused(b, 0, grd_op_gradient(grad, result, NULL, &elementwise_hidden_tanh_backward, NULL))) { /* self: grad * (1 - result * result) */
        const int64_t mark0 = grd_pool_mark();
        grd_tensor *t0 = grd_formula_alone(mark0, grd_sub(grd_number(grd_int(1)), grd_mul(result, result)));
        b->ret_grads[b->first_edge[0]] = grd_mul(grad, t0);
    }
}
static const struct grd_derivative tanh_derivative = {.node_name = "TanhBackward0", .backward = tanh_backward, .forward_rule = GRD_FORWARD_POINTWISE, .args = (const uint8_t[]){0},
    .nargs = 1, .saves = (const struct grd_save[]){{.how = GRD_SAVE_TENSOR, .result = true, .index = 0, .used_by = 1}}, .nsaves = 1, .results = 1};
static const struct grd_arg tanh_args[] = {{"self", GRD_KIND_TENSOR}};
struct grd_op grd_operator_tanh = {"tanh", "tanh(Tensor self) -> Tensor", tanh_args, 1, 1, GRD_FORMS_ALL, unbox_o_t, (grd_kernel *)op_tanh, .derivative = &tanh_derivative,
    .has_out = true, .counts_writes = true};
grd_tensor *grd_tanh(grd_tensor *self) { return call_o_t(self, NULL, &grd_operator_tanh); }
grd_tensor *grd_tanh_(grd_tensor *self) { return write_o_t(self, self, &grd_operator_tanh); }
grd_tensor *grd_tanh_out(grd_tensor *out, grd_tensor *self) { return write_o_t(self, out, &grd_operator_tanh); }
/* ---- add(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor (schema/tiny.toml:13) */
grd_tensor *op_add(grd_tensor *out, grd_tensor *self, grd_tensor *other, grd_scalar alpha)
{
    struct grd_plan plan;
    grd_plan_open(&plan, &grd_operator_add, out, GRD_OVERLAP_ANY);
    if (plan_add(&plan, self, other, alpha) && grd_plan_prepare(&plan)) run_add(&plan, self, other, alpha);
    return grd_plan_close(&plan);
}
static void add_backward(const struct grd_backward *b)
{
    grd_tensor *grad = b->grads[0];
    grd_scalar alpha = b->saved[0].v.scalar;
    if (b->needs >> 0 & 1) b->ret_grads[b->first_edge[0]] = grad; /* self: grad */
    if (b->needs >> 1 & 1) b->ret_grads[b->first_edge[1]] = grd_formula_times(grad, alpha); /* other: grad * alpha */
}
static const struct grd_derivative add_derivative = {.node_name = "AddBackward0", .backward = add_backward, .forward_rule = GRD_FORWARD_ADJOINT, .args = (const uint8_t[]){0, 1},
    .nargs = 2, .saves = (const struct grd_save[]){{.how = GRD_SAVE_VALUE, .index = 2, .used_by = 2}}, .nsaves = 1, .results = 1};
static const struct grd_arg add_args[] = {{"self", GRD_KIND_TENSOR}, {"other", GRD_KIND_TENSOR}, {"alpha", GRD_KIND_SCALAR, .value = {.kind = GRD_KIND_SCALAR,
    .v.scalar = {.kind = GRD_SCALAR_INT, .v.i = 1}}}};
struct grd_op grd_operator_add = {"add", "add(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", add_args, 3, 1, GRD_FORMS_ALL, unbox_o_ttS, (grd_kernel *)op_add,
    .derivative = &add_derivative, .has_out = true, .counts_writes = true};
static const grd_add_options add_defaults = {.alpha = {.kind = GRD_SCALAR_INT, .v.i = 1}};
grd_tensor *grd_with_add(grd_tensor *self, grd_tensor *other, const grd_add_options *options)
{
    return call_o_ttS(self, other, &(options ? options : &add_defaults)->alpha, NULL, &grd_operator_add);
}
grd_tensor *grd_with_add_scalar(grd_tensor *self, grd_scalar other, const grd_add_options *options)
{
    const int64_t mark = grd_pool_mark();
    return grd_leave_number(mark, grd_with_add(self, grd_number_argument(&grd_operator_add, other), options));
}
grd_tensor *grd_with_add_(grd_tensor *self, grd_tensor *other, const grd_add_options *options)
{
    return write_o_ttS(self, other, &(options ? options : &add_defaults)->alpha, self, &grd_operator_add);
}
grd_tensor *grd_with_add_scalar_(grd_tensor *self, grd_scalar other, const grd_add_options *options)
{
    const int64_t mark = grd_pool_mark();
    return grd_leave_number(mark, write_o_ttS(self, grd_number_argument(&grd_operator_add, other), &(options ? options : &add_defaults)->alpha, self, &grd_operator_add));
}
grd_tensor *grd_with_add_out(grd_tensor *out, grd_tensor *self, grd_tensor *other, const grd_add_options *options)
{
    return write_o_ttS(self, other, &(options ? options : &add_defaults)->alpha, out, &grd_operator_add);
}
/* ---- sub(Tensor self, Tensor other) -> Tensor (schema/tiny.toml:24) */
const struct grd_elementwise elementwise_sub = {.inputs = 2, .rule = GRD_TYPE_PROMOTE, .kernel = GRD_BINARY_SUB, .name = "sub"};
grd_tensor *op_sub(grd_tensor *out, grd_tensor *self, grd_tensor *other) { return grd_op_binary(out, self, other, &elementwise_sub, NULL); }
static void sub_backward(const struct grd_backward *b)
{
    grd_tensor *grad = b->grads[0];
    if (b->needs >> 0 & 1) b->ret_grads[b->first_edge[0]] = grad; /* self: grad */
    if (b->needs >> 1 & 1) b->ret_grads[b->first_edge[1]] = grd_neg(grad); /* other: -grad */
}
static const struct grd_derivative sub_derivative = {.node_name = "SubBackward0", .backward = sub_backward, .forward_rule = GRD_FORWARD_POINTWISE, .args = (const uint8_t[]){0, 1},
    .nargs = 2, .results = 1};
static const struct grd_arg sub_args[] = {{"self", GRD_KIND_TENSOR}, {"other", GRD_KIND_TENSOR}};
struct grd_op grd_operator_sub = {"sub", "sub(Tensor self, Tensor other) -> Tensor", sub_args, 2, 1, GRD_FORMS_ALL, unbox_o_tt, (grd_kernel *)op_sub, .derivative = &sub_derivative,
    .has_out = true, .counts_writes = true};
grd_tensor *grd_sub(grd_tensor *self, grd_tensor *other) { return call_o_tt(self, other, NULL, &grd_operator_sub); }
grd_tensor *grd_sub_(grd_tensor *self, grd_tensor *other) { return write_o_tt(self, other, self, &grd_operator_sub); }
grd_tensor *grd_sub_out(grd_tensor *out, grd_tensor *self, grd_tensor *other) { return write_o_tt(self, other, out, &grd_operator_sub); }
/* ---- mul(Tensor self, Tensor other) -> Tensor (schema/tiny.toml:34) */
const struct grd_elementwise elementwise_mul = {.inputs = 2, .rule = GRD_TYPE_PROMOTE, .kernel = GRD_BINARY_MUL, .name = "mul"};
grd_tensor *op_mul(grd_tensor *out, grd_tensor *self, grd_tensor *other) { return grd_op_binary(out, self, other, &elementwise_mul, NULL); }
static void mul_backward(const struct grd_backward *b)
{
    grd_tensor *grad = b->grads[0], *other = b->saved[0].v.tensor, *self = b->saved[1].v.tensor;
    if (b->needs >> 0 & 1) b->ret_grads[b->first_edge[0]] = grd_mul(grad, other); /* self: grad * other */
    if (b->needs >> 1 & 1) b->ret_grads[b->first_edge[1]] = grd_mul(grad, self); /* other: grad * self */
}
static const struct grd_derivative mul_derivative = {.node_name = "MulBackward0", .backward = mul_backward, .forward_rule = GRD_FORWARD_POINTWISE, .args = (const uint8_t[]){0, 1},
    .nargs = 2, .saves = (const struct grd_save[]){{.how = GRD_SAVE_TENSOR, .index = 1, .used_by = 1}, {.how = GRD_SAVE_TENSOR, .index = 0, .used_by = 2}}, .nsaves = 2,
    .results = 1};
struct grd_op grd_operator_mul = {"mul", "mul(Tensor self, Tensor other) -> Tensor", sub_args, 2, 1, GRD_FORMS_ALL, unbox_o_tt, (grd_kernel *)op_mul, .derivative = &mul_derivative,
    .has_out = true, .counts_writes = true};
grd_tensor *grd_mul(grd_tensor *self, grd_tensor *other) { return call_o_tt(self, other, NULL, &grd_operator_mul); }
grd_tensor *grd_mul_(grd_tensor *self, grd_tensor *other) { return write_o_tt(self, other, self, &grd_operator_mul); }
grd_tensor *grd_mul_out(grd_tensor *out, grd_tensor *self, grd_tensor *other) { return write_o_tt(self, other, out, &grd_operator_mul); }
/* ---- neg(Tensor self) -> Tensor (schema/tiny.toml:43) */
const struct grd_elementwise elementwise_neg = {.inputs = 1, .rule = GRD_TYPE_PROMOTE, .kernel = GRD_UNARY_NEG, .name = "neg"};
grd_tensor *op_neg(grd_tensor *out, grd_tensor *self) { return grd_op_unary(out, self, &elementwise_neg, NULL); }
static void neg_backward(const struct grd_backward *b)
{
    grd_tensor *grad = b->grads[0];
    if (b->needs >> 0 & 1) b->ret_grads[b->first_edge[0]] = grd_neg(grad); /* self: -grad */
}
static const struct grd_derivative neg_derivative = {.node_name = "NegBackward0", .backward = neg_backward, .forward_rule = GRD_FORWARD_POINTWISE, .args = (const uint8_t[]){0},
    .nargs = 1, .results = 1};
struct grd_op grd_operator_neg = {"neg", "neg(Tensor self) -> Tensor", tanh_args, 1, 1, GRD_FORMS_ALL, unbox_o_t, (grd_kernel *)op_neg, .derivative = &neg_derivative,
    .has_out = true, .counts_writes = true};
grd_tensor *grd_neg(grd_tensor *self) { return call_o_t(self, NULL, &grd_operator_neg); }
grd_tensor *grd_neg_(grd_tensor *self) { return write_o_t(self, self, &grd_operator_neg); }
grd_tensor *grd_neg_out(grd_tensor *out, grd_tensor *self) { return write_o_t(self, out, &grd_operator_neg); }
/* ---- sin(Tensor self) -> Tensor (schema/tiny.toml:53) */
const struct grd_elementwise elementwise_sin = {.inputs = 1, .rule = GRD_TYPE_FLOAT, .kernel = GRD_UNARY_SIN, .name = "sin"};
grd_tensor *op_sin(grd_tensor *out, grd_tensor *self) { return grd_op_unary(out, self, &elementwise_sin, NULL); }
struct grd_op grd_operator_sin = {"sin", "sin(Tensor self) -> Tensor", tanh_args, 1, 1, GRD_FORMS_ALL, unbox_o_t, (grd_kernel *)op_sin, .has_out = true, .counts_writes = true};
grd_tensor *grd_sin(grd_tensor *self) { return call_o_t(self, NULL, &grd_operator_sin); }
grd_tensor *grd_sin_(grd_tensor *self) { return write_o_t(self, self, &grd_operator_sin); }
grd_tensor *grd_sin_out(grd_tensor *out, grd_tensor *self) { return write_o_t(self, out, &grd_operator_sin); }
/* ---- lt(Tensor self, Tensor other) -> Tensor (schema/tiny.toml:63) */
const struct grd_elementwise elementwise_lt = {.inputs = 2, .rule = GRD_TYPE_COMPARE, .kernel = GRD_BINARY_LT, .name = "lt"};
grd_tensor *op_lt(grd_tensor *out, grd_tensor *self, grd_tensor *other) { return grd_op_binary(out, self, other, &elementwise_lt, NULL); }
struct grd_op grd_operator_lt = {"lt", "lt(Tensor self, Tensor other) -> Tensor", sub_args, 2, 1, GRD_FORMS_ALL, unbox_o_tt, (grd_kernel *)op_lt, .has_out = true,
    .counts_writes = true};
grd_tensor *grd_lt(grd_tensor *self, grd_tensor *other) { return call_o_tt(self, other, NULL, &grd_operator_lt); }
grd_tensor *grd_lt_(grd_tensor *self, grd_tensor *other) { return write_o_tt(self, other, self, &grd_operator_lt); }
grd_tensor *grd_lt_out(grd_tensor *out, grd_tensor *self, grd_tensor *other) { return write_o_tt(self, other, out, &grd_operator_lt); }
/* ---- twice(Tensor self) -> Tensor (schema/tiny.toml:72) */
grd_tensor *op_twice(grd_tensor *self) { return grd_mul(grd_number(grd_int(2)), self); }
struct grd_op grd_operator_twice = {"twice", "twice(Tensor self) -> Tensor", tanh_args, 1, 1, GRD_FORM_NEW, unbox_t_t, (grd_kernel *)op_twice, .composite = true};
grd_tensor *grd_twice(grd_tensor *self) { return call_t_t(self, &grd_operator_twice); }
/* ---- unbind(Tensor self, int dim=0) -> Tensor[] (schema/tiny.toml:77) */
static void unbind_backward(const struct grd_backward *b)
{
    grd_tensors grads = {b->ngrads, b->grads};
    int64_t dim = b->saved[0].v.integer;
    if (b->needs >> 0 & 1) b->ret_grads[b->first_edge[0]] = grd_stack(grads, .dim = dim); /* self: stack(grads, dim=dim) */
}
static const struct grd_derivative unbind_derivative = {.node_name = "UnbindBackward0", .backward = unbind_backward, .forward_rule = GRD_FORWARD_LINEAR,
    .args = (const uint8_t[]){0}, .nargs = 1, .saves = (const struct grd_save[]){{.how = GRD_SAVE_VALUE, .index = 1, .used_by = 1}}, .nsaves = 1, .results = 1,
    .materialize = true};
static const struct grd_arg unbind_args[] = {{"self", GRD_KIND_TENSOR}, {"dim", GRD_KIND_INT, .role = GRD_ROLE_DIM, .value = {.kind = GRD_KIND_INT, .v.integer = 0}}};
struct grd_op grd_operator_unbind = {"unbind", "unbind(Tensor self, int dim=0) -> Tensor[]", unbind_args, 2, 1, GRD_FORM_NEW, unbox_l_ti, (grd_kernel *)op_unbind,
    .derivative = &unbind_derivative, .batch = GRD_BATCH_SHIFT, .is_view = true, .everywhere = true, .returns_list = true};
grd_tensors_view grd_with_unbind(grd_tensor *self, const grd_unbind_options *options)
{
    return call_l_ti(self, (options ? options : &(const grd_unbind_options){0})->dim, &grd_operator_unbind);
}
/* ---- stack(Tensor[] tensors, int dim=0) -> Tensor (schema/tiny.toml:84) */
grd_tensor *op_stack(grd_tensors tensors, int64_t dim)
{
    struct grd_plan plan;
    grd_plan_open(&plan, &grd_operator_stack, NULL, GRD_OVERLAP_ANY);
    if (plan_stack(&plan, tensors, dim) && grd_plan_prepare(&plan)) run_stack(&plan, tensors, dim);
    return grd_plan_close(&plan);
}
static void stack_backward(const struct grd_backward *b)
{
    grd_tensor *grad = b->grads[0];
    int64_t dim = b->saved[0].v.integer;
    if (b->needs >> 0 & 1) grd_backward_spread(b, 0, grd_unbind(grad, .dim = dim)); /* tensors: unbind(grad, dim=dim) */
}
static const struct grd_derivative stack_derivative = {.node_name = "StackBackward0", .backward = stack_backward, .forward_rule = GRD_FORWARD_ADJOINT, .args = (const uint8_t[]){0},
    .nargs = 1, .saves = (const struct grd_save[]){{.how = GRD_SAVE_VALUE, .index = 1, .used_by = 1}}, .nsaves = 1, .results = 1, .lists = true};
static grd_tensor *stack_batch(const grd_value *args, grd_tensor **ret)
{
    return grd_stack(args[0].v.tensors, .dim = grd_batch_dim(args[1].v.integer, grd_ndim(grd_list_at(args[0].v.tensors, 0))));
}
static const struct grd_arg stack_args[] = {{"tensors", GRD_KIND_TENSORS}, {"dim", GRD_KIND_INT, .value = {.kind = GRD_KIND_INT, .v.integer = 0}}};
struct grd_op grd_operator_stack = {"stack", "stack(Tensor[] tensors, int dim=0) -> Tensor", stack_args, 2, 1, GRD_FORM_NEW, unbox_t_li, (grd_kernel *)op_stack,
    .derivative = &stack_derivative, .batch = GRD_BATCH_FORMULA, .batched.formula = stack_batch};
grd_tensor *grd_with_stack(grd_tensors_view tensors, const grd_stack_options *options)
{
    return call_t_li(tensors, (options ? options : &(const grd_stack_options){0})->dim, &grd_operator_stack);
}
/* ---- max_dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices) (schema/tiny.toml:91) */
void op_max_dim(grd_tensor *self, int64_t dim, bool keepdim, grd_tensor **ret)
{
    struct grd_plan plan;
    grd_plan_open(&plan, &grd_operator_max_dim, NULL, GRD_OVERLAP_ANY);
    if (plan_max_dim(&plan, self, dim, keepdim) && grd_plan_prepare(&plan)) run_max_dim(&plan, self, dim, keepdim);
    grd_plan_close_many(&plan, ret);
}
static void max_dim_backward(const struct grd_backward *b)
{
    grd_tensor *grad = b->grads[0], *indices = b->saved[0].v.tensor;
    int64_t dim = b->saved[1].v.integer;
    bool keepdim = b->saved[2].v.boolean;
    grd_dims self_shape = b->saved[3].v.dims;
    if (b->needs >> 0 & 1) b->ret_grads[b->first_edge[0]] = grd_hidden_place(grad, indices, dim, keepdim, self_shape); /* self: _place(grad, indices, dim, keepdim, shape(self)) */
}
static const struct grd_derivative max_dim_derivative = {.node_name = "MaxDimBackward0", .backward = max_dim_backward, .forward_rule = GRD_FORWARD_ADJOINT,
    .args = (const uint8_t[]){0}, .nargs = 1, .saves = (const struct grd_save[]){{.how = GRD_SAVE_TENSOR, .result = true, .index = 1, .used_by = 1}, {.how = GRD_SAVE_VALUE,
    .index = 1, .used_by = 1}, {.how = GRD_SAVE_VALUE, .index = 2, .used_by = 1}, {.how = GRD_SAVE_SHAPE, .index = 0, .used_by = 1}}, .nsaves = 4, .results = 1, .sized = true,
    .materialize = true};
static const struct grd_arg max_dim_args[] = {{"self", GRD_KIND_TENSOR}, {"dim", GRD_KIND_INT, .role = GRD_ROLE_DIM}, {"keepdim", GRD_KIND_BOOL, .value = {.kind = GRD_KIND_BOOL,
    .v.boolean = false}}};
struct grd_op grd_operator_max_dim = {"max_dim", "max_dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)", max_dim_args, 3, 2, GRD_FORM_NEW,
    unbox_m2_tib, (grd_kernel *)op_max_dim, .derivative = &max_dim_derivative, .batch = GRD_BATCH_SHIFT};
grd_max_dim_result grd_with_max_dim(grd_tensor *self, int64_t dim, const grd_max_dim_options *options)
{
    grd_tensor *r[2];
    call_m2_tib(self, dim, (options ? options : &(const grd_max_dim_options){0})->keepdim, r, &grd_operator_max_dim);
    return (grd_max_dim_result){r[0], r[1]};
}
/* ---- _place(Tensor grad, Tensor indices, int dim, bool keepdim, int[] sizes) -> Tensor (schema/tiny.toml:99) */
grd_tensor *op_hidden_place(grd_tensor *grad, grd_tensor *indices, int64_t dim, bool keepdim, grd_dims sizes)
{
    struct grd_plan plan;
    grd_plan_open(&plan, &grd_operator_hidden_place, NULL, GRD_OVERLAP_ANY);
    if (plan_hidden_place(&plan, grad, indices, dim, keepdim, sizes) && grd_plan_prepare(&plan)) run_hidden_place(&plan, grad, indices, dim, keepdim, sizes);
    return grd_plan_close(&plan);
}
static const struct grd_arg hidden_place_args[] = {{"grad", GRD_KIND_TENSOR}, {"indices", GRD_KIND_TENSOR}, {"dim", GRD_KIND_INT, .role = GRD_ROLE_DIM}, {"keepdim", GRD_KIND_BOOL},
    {"sizes", GRD_KIND_DIMS, .role = GRD_ROLE_SIZES}};
struct grd_op grd_operator_hidden_place = {"_place", "_place(Tensor grad, Tensor indices, int dim, bool keepdim, int[] sizes) -> Tensor", hidden_place_args, 5, 1, GRD_FORM_NEW,
    unbox_t_ttibd, (grd_kernel *)op_hidden_place, .batch = GRD_BATCH_SHIFT};
grd_tensor *grd_hidden_place(grd_tensor *grad, grd_tensor *indices, int64_t dim, bool keepdim, grd_dims_view sizes)
{
    return call_t_ttibd(grad, indices, dim, keepdim, sizes, &grd_operator_hidden_place);
}
/* ---- zeros(int[] size, *, dtype? dtype=None, device? device=None, bool requires_grad=False) -> Tensor (schema/tiny.toml:105) */
grd_tensor *op_zeros(grd_dims size, grd_dtype dtype, grd_device device, bool requires_grad)
{
    struct grd_plan plan;
    grd_plan_open(&plan, &grd_operator_zeros, NULL, GRD_OVERLAP_ANY);
    if (plan_zeros(&plan, size, dtype, device, requires_grad) && grd_plan_prepare(&plan)) run_zeros(&plan, size, dtype, device, requires_grad);
    return grd_plan_close(&plan);
}
static const struct grd_arg zeros_args[] = {{"size", GRD_KIND_DIMS}, {"dtype", GRD_KIND_DTYPE, .optional = true}, {"device", GRD_KIND_DEVICE, .optional = true}, {"requires_grad",
    GRD_KIND_BOOL, .value = {.kind = GRD_KIND_BOOL, .v.boolean = false}}};
struct grd_op grd_operator_zeros = {"zeros", "zeros(int[] size, *, dtype? dtype=None, device? device=None, bool requires_grad=False) -> Tensor", zeros_args, 4, 1, GRD_FORM_NEW,
    unbox_t_dYvb, (grd_kernel *)op_zeros};
grd_tensor *grd_with_zeros(grd_dims_view size, const grd_zeros_options *options)
{
    options = options ? options : &(const grd_zeros_options){0};
    return call_t_dYvb(size, options->dtype, options->device, options->requires_grad, &grd_operator_zeros);
}
/* ---- scaled_tanh(Tensor self, float limit, *, str mode='tanh') -> Tensor (schema/tiny.toml:109) */
grd_tensor *op_scaled_tanh(grd_tensor *out, grd_tensor *self, double limit, const char *mode)
{
    grd_tensor *given = self;
    self = grd_composite_input(out, given);
    if (!(limit > 0))
        return grd_fail(GRD_ERROR_RUNTIME, "the limit of %s must be positive, not %g", grd_list_text(grd_sizes(self)), limit);
    grd_tensor *value = ((strcmp(mode, "tanh") == 0) ? grd_tanh(self) : self);
    return grd_composite_finish(out, given, grd_mul(value, grd_number(grd_float(limit))));
}
static const struct grd_arg scaled_tanh_args[] = {{"self", GRD_KIND_TENSOR}, {"limit", GRD_KIND_FLOAT}, {"mode", GRD_KIND_STRING, .value = {.kind = GRD_KIND_STRING,
    .v.string = "tanh"}}};
struct grd_op grd_operator_scaled_tanh = {"scaled_tanh", "scaled_tanh(Tensor self, float limit, *, str mode='tanh') -> Tensor", scaled_tanh_args, 3, 1,
    GRD_FORM_NEW | GRD_FORM_INPLACE, unbox_c_tfz, (grd_kernel *)op_scaled_tanh, .has_out = true, .composite = true};
grd_tensor *grd_with_scaled_tanh(grd_tensor *self, double limit, const grd_scaled_tanh_options *options)
{
    options = options ? options : &(const grd_scaled_tanh_options){0};
    return call_c_tfz(self, limit, options->mode ? options->mode : "tanh", NULL, &grd_operator_scaled_tanh);
}
grd_tensor *grd_with_scaled_tanh_(grd_tensor *self, double limit, const grd_scaled_tanh_options *options)
{
    options = options ? options : &(const grd_scaled_tanh_options){0};
    return write_c_tfz(self, limit, options->mode ? options->mode : "tanh", self, &grd_operator_scaled_tanh);
}
const struct grd_elementwise elementwise_hidden_tanh_backward = {.inputs = 2, .rule = GRD_TYPE_PROMOTE, .kernel = GRD_GRADIENT_HIDDEN_TANH_BACKWARD, .gradient = true,
    .name = "_tanh_backward"};
