/* Generated from schema by codegen. Do not edit. */
/* All operators, generated from their entries in schema/. Below each comment is the include of the header that declares the operator's functions.
 *
 * Comments. Each comment consists of the operator's signature in PyTorch's notation, a description of the result, and the gradient formula of each argument that has
 * one, as in "d/dself: grad * other", followed by the subexpressions that the formulas name. "Formula" defines the operator by other operators.
 *
 * Functions. grd_add returns a new tensor (or a view, if the comment says so). grd_add_ writes its first argument and returns it. grd_add_out writes `out` and sets
 * the sizes of `out`. grd_add_scalar is grd_add with a number instead of the second tensor.
 *
 * Options. Arguments without a default come first. All other arguments may be left out, or are given by name in any order, as in grd_sum(x, .dim = 1, .keepdim = true).
 * An argument of type Scalar accepts a C number. A whole number below 2^53 then counts as an integer; grd_int, grd_float and grd_complex_number determine the kind
 * explicitly. A list is written grd_dims(0, 1), or as a single number for a list of one. An absent argument is NULL, or 0 for a pointer. In C++ options
 * are a struct, as in grd_sum(x, {.dim = 1}). grd_with_sum is the function that the macro grd_sum calls. In C, a variable of type grd_sum_options must be initialized
 * with {GRD_SUM_DEFAULTS}. If the pointer to the options is NULL, all options have their defaults.
 *
 * Results and scopes. A returned tensor belongs to the innermost open scope of the thread and is dropped when that scope closes, unless grd_keep is called
 * (gradus/runtime.h). A returned list and its `data` also belong to that scope. They need not be freed, and must not be used after the scope has closed.
 *
 * Errors. A call that fails changes nothing, returns grd_failed and leaves an error pending. While an error is pending all operators return grd_failed at once, so it
 * is enough to check once after several calls (gradus/error.h). TypeError: an argument of the wrong kind, or NULL for a tensor. IndexError: a dimension or an index is
 * out of range. RuntimeError: shapes, dtypes or devices do not fit. Other errors are named in the operator's comment.
 *
 * Threads. Several threads may call operators at the same time. gradus/runtime.h says which calls may use one tensor at the same time. */
#ifndef GRADUS_OPS_H
#define GRADUS_OPS_H

#include "gradus/options.h"
#include "gradus/tensor.h"
#include "gradus/types.h"

GRD_BEGIN_DECLS

/* tanh(Tensor self) -> Tensor
 * Hyperbolic tangent, elementwise.
 * d/dself: grad * (1 - result * result) */
#include "gradus/ops/tanh.h" /* grd_tanh, grd_tanh_, grd_tanh_out */
/* add(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
 * self + alpha * other, elementwise.
 * d/dself: grad
 * d/dother: grad * alpha */
#include "gradus/ops/add.h" /* grd_add, grd_add_scalar, grd_add_, grd_add_scalar_, grd_add_out */
/* sub(Tensor self, Tensor other) -> Tensor
 * self - other, elementwise.
 * d/dself: grad
 * d/dother: -grad */
#include "gradus/ops/sub.h" /* grd_sub, grd_sub_, grd_sub_out */
/* mul(Tensor self, Tensor other) -> Tensor
 * self * other, elementwise.
 * d/dself: grad * other
 * d/dother: grad * self */
#include "gradus/ops/mul.h" /* grd_mul, grd_mul_, grd_mul_out */
/* neg(Tensor self) -> Tensor
 * -self, elementwise.
 * d/dself: -grad */
#include "gradus/ops/neg.h" /* grd_neg, grd_neg_, grd_neg_out */
/* sin(Tensor self) -> Tensor
 * Sine of radians, elementwise. */
#include "gradus/ops/sin.h" /* grd_sin, grd_sin_, grd_sin_out */
/* lt(Tensor self, Tensor other) -> Tensor
 * self < other, elementwise. */
#include "gradus/ops/lt.h" /* grd_lt, grd_lt_, grd_lt_out */
/* twice(Tensor self) -> Tensor
 * 2 * self.
 * Formula: 2 * self */
#include "gradus/ops/twice.h" /* grd_twice */
/* unbind(Tensor self, int dim=0) -> Tensor[]
 * Slices along dim.
 * d/dself: stack(grads, dim=dim) */
#include "gradus/ops/unbind.h" /* grd_unbind */
/* stack(Tensor[] tensors, int dim=0) -> Tensor
 * Joins along a new dimension.
 * d/dtensors: unbind(grad, dim=dim) */
#include "gradus/ops/stack.h" /* grd_stack */
/* max_dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)
 * Largest values along dim and where they are.
 * d/dself: _place(grad, indices, dim, keepdim, shape(self)) */
#include "gradus/ops/max_dim.h" /* grd_max_dim */
/* zeros(int[] size, *, dtype? dtype=None, device? device=None, bool requires_grad=False) -> Tensor
 * Filled with zeros. */
#include "gradus/ops/zeros.h" /* grd_zeros */
/* scaled_tanh(Tensor self, float limit, *, str mode='tanh') -> Tensor
 * tanh(self), or self itself in another mode, times a limit. RuntimeError: the limit is not positive.
 * mode: "tanh" or "none". */
#include "gradus/ops/scaled_tanh.h" /* grd_scaled_tanh, grd_scaled_tanh_ */

GRD_END_DECLS
#endif
