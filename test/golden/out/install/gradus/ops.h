/* Generated from schema by codegen. Do not edit. */
/* Every operator, from its entry in schema/, and below it the header that declares its functions.
 *
 * How to read it. Above each header stands the operator's signature as PyTorch writes it, what it computes, and for each argument that has a derivative its
 * formula: d/dself: grad * other, and below them the parts that they name. "Formula" is what the operator is, in terms of others. grd_add returns a new tensor (or a view, where it says so), grd_add_ writes
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
