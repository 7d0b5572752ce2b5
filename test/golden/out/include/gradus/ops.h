/* Generated from schema by codegen. Do not edit. */
#ifndef GRADUS_OPS_H
#define GRADUS_OPS_H

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
typedef struct grd_add_options {
    grd_scalar alpha; /* default 1 */
} grd_add_options;
GRD_API grd_tensor *grd_with_add(grd_tensor *self, grd_tensor *other, const grd_add_options *options);
GRD_API grd_tensor *grd_with_add_scalar(grd_tensor *self, grd_scalar other, const grd_add_options *options);
GRD_API grd_tensor *grd_with_add_(grd_tensor *self, grd_tensor *other, const grd_add_options *options);
GRD_API grd_tensor *grd_with_add_scalar_(grd_tensor *self, grd_scalar other, const grd_add_options *options);
GRD_API grd_tensor *grd_with_add_out(grd_tensor *out, grd_tensor *self, grd_tensor *other, const grd_add_options *options);
#ifdef __cplusplus
extern "C++" inline grd_tensor *grd_add(grd_tensor *self, grd_tensor *other, const grd_add_options &options = grd_add_options())
{
    return grd_with_add(self, other, &options);
}
extern "C++" inline grd_tensor *grd_add_scalar(grd_tensor *self, grd_scalar other, const grd_add_options &options = grd_add_options())
{
    return grd_with_add_scalar(self, other, &options);
}
extern "C++" inline grd_tensor *grd_add_(grd_tensor *self, grd_tensor *other, const grd_add_options &options = grd_add_options())
{
    return grd_with_add_(self, other, &options);
}
extern "C++" inline grd_tensor *grd_add_scalar_(grd_tensor *self, grd_scalar other, const grd_add_options &options = grd_add_options())
{
    return grd_with_add_scalar_(self, other, &options);
}
extern "C++" inline grd_tensor *grd_add_out(grd_tensor *out, grd_tensor *self, grd_tensor *other, const grd_add_options &options = grd_add_options())
{
    return grd_with_add_out(out, self, other, &options);
}
#else
#define grd_add(self, other, ...) grd_with_add((self), (other), &(grd_add_options){__VA_ARGS__})
#define grd_add_scalar(self, other, ...) grd_with_add_scalar((self), (other), &(grd_add_options){__VA_ARGS__})
#define grd_add_(self, other, ...) grd_with_add_((self), (other), &(grd_add_options){__VA_ARGS__})
#define grd_add_scalar_(self, other, ...) grd_with_add_scalar_((self), (other), &(grd_add_options){__VA_ARGS__})
#define grd_add_out(out, self, other, ...) grd_with_add_out((out), (self), (other), &(grd_add_options){__VA_ARGS__})
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
typedef struct grd_unbind_options {
    grd_scalar dim;
} grd_unbind_options;
GRD_API grd_tensors grd_with_unbind(grd_tensor *self, const grd_unbind_options *options);
#ifdef __cplusplus
extern "C++" inline grd_tensors grd_unbind(grd_tensor *self, const grd_unbind_options &options = grd_unbind_options())
{
    return grd_with_unbind(self, &options);
}
#else
#define grd_unbind(self, ...) grd_with_unbind((self), &(grd_unbind_options){__VA_ARGS__})
#endif

/* stack(Tensor[] tensors, int dim=0) -> Tensor
 * Joins along a new dimension.
 * d/dtensors: unbind(grad, dim=dim) */
typedef struct grd_stack_options {
    grd_scalar dim;
} grd_stack_options;
GRD_API grd_tensor *grd_with_stack(grd_tensors tensors, const grd_stack_options *options);
#ifdef __cplusplus
extern "C++" inline grd_tensor *grd_stack(grd_tensors tensors, const grd_stack_options &options = grd_stack_options())
{
    return grd_with_stack(tensors, &options);
}
#else
#define grd_stack(tensors, ...) grd_with_stack((tensors), &(grd_stack_options){__VA_ARGS__})
#endif

/* max_dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)
 * Largest values along dim and where they are.
 * d/dself: _place(grad, indices, dim, keepdim, shape(self)) */
typedef struct grd_max_dim_result {
    grd_tensor *values;
    grd_tensor *indices;
} grd_max_dim_result;
typedef struct grd_max_dim_options {
    bool keepdim;
} grd_max_dim_options;
GRD_API grd_max_dim_result grd_with_max_dim(grd_tensor *self, int64_t dim, const grd_max_dim_options *options);
#ifdef __cplusplus
extern "C++" inline grd_max_dim_result grd_max_dim(grd_tensor *self, int64_t dim, const grd_max_dim_options &options = grd_max_dim_options())
{
    return grd_with_max_dim(self, dim, &options);
}
#else
#define grd_max_dim(self, dim, ...) grd_with_max_dim((self), (dim), &(grd_max_dim_options){__VA_ARGS__})
#endif

/* _place(Tensor grad, Tensor indices, int dim, bool keepdim, int[] sizes) -> Tensor
 * The inverse of max_dim. */
GRD_API grd_tensor *grd__place(grd_tensor *grad, grd_tensor *indices, int64_t dim, bool keepdim, grd_dims sizes);

/* zeros(int[] size, *, dtype? dtype=None, device? device=None, bool requires_grad=False) -> Tensor
 * Filled with zeros. */
typedef struct grd_zeros_options {
    grd_dtype dtype;
    grd_device device;
    bool requires_grad;
} grd_zeros_options;
GRD_API grd_tensor *grd_with_zeros(grd_dims size, const grd_zeros_options *options);
#ifdef __cplusplus
extern "C++" inline grd_tensor *grd_zeros(grd_dims size, const grd_zeros_options &options = grd_zeros_options())
{
    return grd_with_zeros(size, &options);
}
#else
#define grd_zeros(size, ...) grd_with_zeros((size), &(grd_zeros_options){__VA_ARGS__})
#endif

GRD_END_DECLS
#endif
