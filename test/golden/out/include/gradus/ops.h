/* Generated from schema by codegen. Do not edit. */
/* Every operator, generated from its entry in schema/.
 *
 * How to read it. Above each function stands the operator's signature as PyTorch writes it, what it computes, and for each argument that has a derivative its
 * formula: d/dself: grad * other. "Formula" is what the operator is, in terms of others. grd_add returns a new tensor (or a view, where it says so), grd_add_ writes
 * its first argument and returns it, grd_add_out writes `out`, whose size it sets. grd_add_scalar is grd_add with a number for a tensor.
 *
 * Options. Arguments without a default come first. The others are given by name, in any order, or left out: grd_sum(x, .dim = 1, .keepdim = true). A
 * plain number is that number. A Scalar of the signature may be an integer or floating: a plain whole number below 2^53 counts as an integer, and grd_int, grd_float
 * and grd_complex_number say it. A list is grd_dims(0, 1), or a plain number for a list of one. NULL, or 0 for a pointer, is absent. In C++ options
 * are a struct: grd_sum(x, {.dim = 1}). grd_with_sum is the function below the macro. A grd_sum_options that a C program keeps begins as {GRD_SUM_DEFAULTS}; an
 * options argument that is NULL stands for the defaults.
 *
 * Results and scopes. A returned tensor belongs to the innermost open scope of the thread and goes when it closes, unless grd_keep is called
 * (gradus/runtime.h). A returned list and its `data` belong to that scope as its tensors do: nothing is freed, and a list is not used after the scope.
 *
 * Errors. A call that fails changes nothing, returns grd_failed, and leaves an error pending: then all operators return grd_failed at once. So one looks once,
 * at the end (gradus/error.h). TypeError, an argument of the wrong kind, NULL for a tensor; IndexError, a dimension or an index out of range; RuntimeError, shapes, dtypes,
 * devices that do not fit; others are named at the operator.
 *
 * Threads. Operators may be called by any threads at the same time: gradus/runtime.h says which calls may meet on one tensor. */
#ifndef GRADUS_OPS_H
#define GRADUS_OPS_H

#include "gradus/options.h"
#include "gradus/tensor.h"
#include "gradus/types.h"

GRD_BEGIN_DECLS

/* tanh(Tensor self) -> Tensor
 * Hyperbolic tangent, elementwise.
 * d/dself: grad * (1 - result * result) */
GRD_API grd_tensor *grd_tanh(grd_tensor *self);
GRD_API grd_tensor *grd_tanh_(grd_tensor *self);
GRD_API grd_tensor *grd_tanh_out(grd_tensor *out, grd_tensor *self);

/* add(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
 * self + alpha * other, elementwise.
 * d/dself: grad
 * d/dother: grad * alpha */
typedef struct grd_add_options { grd_scalar alpha GRD_DEFAULT(1); } grd_add_options;
GRD_API grd_tensor *grd_with_add(grd_tensor *self, grd_tensor *other, const grd_add_options *options);
GRD_API grd_tensor *grd_with_add_scalar(grd_tensor *self, grd_scalar other, const grd_add_options *options);
GRD_API grd_tensor *grd_with_add_(grd_tensor *self, grd_tensor *other, const grd_add_options *options);
GRD_API grd_tensor *grd_with_add_scalar_(grd_tensor *self, grd_scalar other, const grd_add_options *options);
GRD_API grd_tensor *grd_with_add_out(grd_tensor *out, grd_tensor *self, grd_tensor *other, const grd_add_options *options);
#ifdef __cplusplus
extern "C++" inline grd_tensor *grd_add(grd_tensor *self, grd_tensor *other, const grd_add_options &options = grd_add_options()) { return grd_with_add(self, other, &options); }
extern "C++" inline grd_tensor *grd_add_scalar(grd_tensor *self, grd_scalar other, const grd_add_options &options = grd_add_options())
{
    return grd_with_add_scalar(self, other, &options);
}
extern "C++" inline grd_tensor *grd_add_(grd_tensor *self, grd_tensor *other, const grd_add_options &options = grd_add_options()) { return grd_with_add_(self, other, &options); }
extern "C++" inline grd_tensor *grd_add_scalar_(grd_tensor *self, grd_scalar other, const grd_add_options &options = grd_add_options())
{
    return grd_with_add_scalar_(self, other, &options);
}
extern "C++" inline grd_tensor *grd_add_out(grd_tensor *out, grd_tensor *self, grd_tensor *other, const grd_add_options &options = grd_add_options())
{
    return grd_with_add_out(out, self, other, &options);
}
#else
#define GRD_ADD_DEFAULTS .alpha = GRD_NO_NUMBER
#define grd_add(...) grd_named_add(__VA_ARGS__, )
#define grd_named_add(self, other, ...) GRD_NAMED(grd_with_add((self), (other), GRD_GIVEN(#__VA_ARGS__, &(grd_add_options){GRD_ADD_DEFAULTS, __VA_ARGS__})))
#define grd_add_scalar(...) grd_named_add_scalar(__VA_ARGS__, )
#define grd_named_add_scalar(self, other, ...) GRD_NAMED(grd_with_add_scalar((self), (other), GRD_GIVEN(#__VA_ARGS__, &(grd_add_options){GRD_ADD_DEFAULTS, __VA_ARGS__})))
#define grd_add_(...) grd_named_add_(__VA_ARGS__, )
#define grd_named_add_(self, other, ...) GRD_NAMED(grd_with_add_((self), (other), GRD_GIVEN(#__VA_ARGS__, &(grd_add_options){GRD_ADD_DEFAULTS, __VA_ARGS__})))
#define grd_add_scalar_(...) grd_named_add_scalar_(__VA_ARGS__, )
#define grd_named_add_scalar_(self, other, ...) GRD_NAMED(grd_with_add_scalar_((self), (other), GRD_GIVEN(#__VA_ARGS__, &(grd_add_options){GRD_ADD_DEFAULTS, __VA_ARGS__})))
#define grd_add_out(...) grd_named_add_out(__VA_ARGS__, )
#define grd_named_add_out(out, self, other, ...) GRD_NAMED(grd_with_add_out((out), (self), (other), GRD_GIVEN(#__VA_ARGS__, &(grd_add_options){GRD_ADD_DEFAULTS, __VA_ARGS__})))
#endif

/* sub(Tensor self, Tensor other) -> Tensor
 * self - other, elementwise.
 * d/dself: grad
 * d/dother: -grad */
GRD_API grd_tensor *grd_sub(grd_tensor *self, grd_tensor *other);
GRD_API grd_tensor *grd_sub_(grd_tensor *self, grd_tensor *other);
GRD_API grd_tensor *grd_sub_out(grd_tensor *out, grd_tensor *self, grd_tensor *other);

/* mul(Tensor self, Tensor other) -> Tensor
 * self * other, elementwise.
 * d/dself: grad * other
 * d/dother: grad * self */
GRD_API grd_tensor *grd_mul(grd_tensor *self, grd_tensor *other);
GRD_API grd_tensor *grd_mul_(grd_tensor *self, grd_tensor *other);
GRD_API grd_tensor *grd_mul_out(grd_tensor *out, grd_tensor *self, grd_tensor *other);

/* neg(Tensor self) -> Tensor
 * -self, elementwise.
 * d/dself: -grad */
GRD_API grd_tensor *grd_neg(grd_tensor *self);
GRD_API grd_tensor *grd_neg_(grd_tensor *self);
GRD_API grd_tensor *grd_neg_out(grd_tensor *out, grd_tensor *self);

/* sin(Tensor self) -> Tensor
 * Sine of radians, elementwise. */
GRD_API grd_tensor *grd_sin(grd_tensor *self);
GRD_API grd_tensor *grd_sin_(grd_tensor *self);
GRD_API grd_tensor *grd_sin_out(grd_tensor *out, grd_tensor *self);

/* lt(Tensor self, Tensor other) -> Tensor
 * self < other, elementwise. */
GRD_API grd_tensor *grd_lt(grd_tensor *self, grd_tensor *other);
GRD_API grd_tensor *grd_lt_(grd_tensor *self, grd_tensor *other);
GRD_API grd_tensor *grd_lt_out(grd_tensor *out, grd_tensor *self, grd_tensor *other);

/* twice(Tensor self) -> Tensor
 * 2 * self.
 * Formula: 2 * self */
GRD_API grd_tensor *grd_twice(grd_tensor *self);

/* unbind(Tensor self, int dim=0) -> Tensor[]
 * Slices along dim.
 * d/dself: stack(grads, dim=dim) */
typedef struct grd_unbind_options { int64_t dim GRD_DEFAULT(0); } grd_unbind_options;
GRD_API grd_tensors_view grd_with_unbind(grd_tensor *self, const grd_unbind_options *options);
#ifdef __cplusplus
extern "C++" inline grd_tensors_view grd_unbind(grd_tensor *self, const grd_unbind_options &options = grd_unbind_options()) { return grd_with_unbind(self, &options); }
#else
#define GRD_UNBIND_DEFAULTS .dim = 0
#define grd_unbind(...) grd_named_unbind(__VA_ARGS__, )
#define grd_named_unbind(self, ...) GRD_NAMED(grd_with_unbind((self), GRD_GIVEN(#__VA_ARGS__, &(grd_unbind_options){GRD_UNBIND_DEFAULTS, __VA_ARGS__})))
#endif

/* stack(Tensor[] tensors, int dim=0) -> Tensor
 * Joins along a new dimension.
 * d/dtensors: unbind(grad, dim=dim) */
typedef struct grd_stack_options { int64_t dim GRD_DEFAULT(0); } grd_stack_options;
GRD_API grd_tensor *grd_with_stack(grd_tensors_view tensors, const grd_stack_options *options);
#ifdef __cplusplus
extern "C++" inline grd_tensor *grd_stack(grd_tensors_view tensors, const grd_stack_options &options = grd_stack_options()) { return grd_with_stack(tensors, &options); }
#else
#define GRD_STACK_DEFAULTS .dim = 0
#define grd_stack(...) grd_named_stack(__VA_ARGS__, )
#define grd_named_stack(tensors, ...) GRD_NAMED(grd_with_stack((tensors), GRD_GIVEN(#__VA_ARGS__, &(grd_stack_options){GRD_STACK_DEFAULTS, __VA_ARGS__})))
#endif

/* max_dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)
 * Largest values along dim and where they are.
 * d/dself: _place(grad, indices, dim, keepdim, shape(self)) */
typedef struct grd_max_dim_result {
    grd_tensor *values;
    grd_tensor *indices;
} grd_max_dim_result;
typedef struct grd_max_dim_options { bool keepdim GRD_DEFAULT(false); } grd_max_dim_options;
GRD_API grd_max_dim_result grd_with_max_dim(grd_tensor *self, int64_t dim, const grd_max_dim_options *options);
#ifdef __cplusplus
extern "C++" inline grd_max_dim_result grd_max_dim(grd_tensor *self, int64_t dim, const grd_max_dim_options &options = grd_max_dim_options())
{
    return grd_with_max_dim(self, dim, &options);
}
#else
#define GRD_MAX_DIM_DEFAULTS .keepdim = false
#define grd_max_dim(...) grd_named_max_dim(__VA_ARGS__, )
#define grd_named_max_dim(self, dim, ...) GRD_NAMED(grd_with_max_dim((self), (dim), GRD_GIVEN(#__VA_ARGS__, &(grd_max_dim_options){GRD_MAX_DIM_DEFAULTS, __VA_ARGS__})))
#endif

/* zeros(int[] size, *, dtype? dtype=None, device? device=None, bool requires_grad=False) -> Tensor
 * Filled with zeros. */
typedef struct grd_zeros_options { grd_dtype dtype GRD_DEFAULT(GRD_DTYPE_NONE); grd_device device GRD_DEFAULT({}); bool requires_grad GRD_DEFAULT(false); } grd_zeros_options;
GRD_API grd_tensor *grd_with_zeros(grd_dims_view size, const grd_zeros_options *options);
#ifdef __cplusplus
extern "C++" inline grd_tensor *grd_zeros(grd_dims_view size, const grd_zeros_options &options = grd_zeros_options()) { return grd_with_zeros(size, &options); }
#else
#define GRD_ZEROS_DEFAULTS .device = GRD_NO_DEVICE, .requires_grad = false
#define grd_zeros(...) grd_named_zeros(__VA_ARGS__, )
#define grd_named_zeros(size, ...) GRD_NAMED(grd_with_zeros((size), GRD_GIVEN(#__VA_ARGS__, &(grd_zeros_options){GRD_ZEROS_DEFAULTS, __VA_ARGS__})))
#endif

GRD_END_DECLS
#endif
