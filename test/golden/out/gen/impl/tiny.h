/* Generated from schema/tiny.toml by codegen. Do not edit. */
#pragma once

#include "gradus/types.h"

struct grd_plan;
struct grd_elementwise;

extern struct grd_op grd_operator_add, grd_operator_stack, grd_operator_max_dim, grd_operator_hidden_place, grd_operator_zeros;
extern const struct grd_elementwise elementwise_tanh, elementwise_sub, elementwise_mul, elementwise_neg, elementwise_sin, elementwise_lt, elementwise_hidden_tanh_backward;
grd_tensor *op_tanh(grd_tensor *out, grd_tensor *self);
grd_tensor *op_add(grd_tensor *out, grd_tensor *self, grd_tensor *other, grd_scalar alpha);
grd_tensor *op_sub(grd_tensor *out, grd_tensor *self, grd_tensor *other);
grd_tensor *op_mul(grd_tensor *out, grd_tensor *self, grd_tensor *other);
grd_tensor *op_neg(grd_tensor *out, grd_tensor *self);
grd_tensor *op_sin(grd_tensor *out, grd_tensor *self);
grd_tensor *op_lt(grd_tensor *out, grd_tensor *self, grd_tensor *other);
grd_tensor *op_twice(grd_tensor *self);
grd_tensors op_unbind(grd_tensor *self, int64_t dim);
grd_tensor *op_stack(grd_tensors tensors, int64_t dim);
void op_max_dim(grd_tensor *self, int64_t dim, bool keepdim, grd_tensor **ret);
grd_tensor *op_hidden_place(grd_tensor *grad, grd_tensor *indices, int64_t dim, bool keepdim, grd_dims sizes);
grd_tensor *op_zeros(grd_dims size, grd_dtype dtype, grd_device device, bool requires_grad);
grd_tensor *op_scaled_tanh(grd_tensor *out, grd_tensor *self, double limit, const char *mode);
bool plan_add(struct grd_plan *plan, grd_tensor *self, grd_tensor *other, grd_scalar alpha);
void run_add(const struct grd_plan *plan, grd_tensor *self, grd_tensor *other, grd_scalar alpha);
bool plan_stack(struct grd_plan *plan, grd_tensors tensors, int64_t dim);
void run_stack(const struct grd_plan *plan, grd_tensors tensors, int64_t dim);
bool plan_max_dim(struct grd_plan *plan, grd_tensor *self, int64_t dim, bool keepdim);
void run_max_dim(const struct grd_plan *plan, grd_tensor *self, int64_t dim, bool keepdim);
bool plan_hidden_place(struct grd_plan *plan, grd_tensor *grad, grd_tensor *indices, int64_t dim, bool keepdim, grd_dims sizes);
void run_hidden_place(const struct grd_plan *plan, grd_tensor *grad, grd_tensor *indices, int64_t dim, bool keepdim, grd_dims sizes);
bool plan_zeros(struct grd_plan *plan, grd_dims size, grd_dtype dtype, grd_device device, bool requires_grad);
void run_zeros(const struct grd_plan *plan, grd_dims size, grd_dtype dtype, grd_device device, bool requires_grad);
