/* Declares the functions for dual tensors, i.e. tensors with a tangent, in forward-mode differentiation.
 *
 * Note [Tangents]
 * A dual tensor has the key FORWARD, and its grd_autograd_meta holds a tangent with the sizes, dtype and strides of the tensor. An operator with
 * a dual argument first runs for the keys below FORWARD, where autograd records it as usual. Its forward rule then computes the tangents of the
 * results with operators that are recorded too. The results that a node saved get these tangents as well, so the backward formulas work on dual
 * tensors and gradients have tangents (forward over reverse).
 * This makes a reference cycle: the tangent of a result owns, through its history, the node that saved the result, and the node owns the tangent.
 * Therefore every tangent belongs to a dual level (grd_enter_dual_level), and the end of the level drops all its tangents. A tensor whose tangent
 * was dropped still has the key FORWARD but behaves like any other tensor. */
#ifndef GRD_AUTOGRAD_DUAL_H
#define GRD_AUTOGRAD_DUAL_H

#include "autograd/tangent.h"
#include "core/tensor.h"

enum { GRD_FORWARD_BIT = 1 << GRD_KEY_FORWARD };

/* Returns the tangent of `t`, or NULL if there is none. `t` must have the dispatch key FORWARD. If `t` is a view and only its base has a tangent,
 * returns the corresponding view of the base's tangent. The result is a temporary, owned by the innermost grd_scope. May leave an error pending. */
grd_tensor *grd_tangent_find(const grd_tensor *t);
/* Returns the dual level to which the tangent of `t` belongs, or NULL if `t` has no tangent. The caller owns a reference to the level. */
struct grd_dual_level *grd_tangent_level(const grd_tensor *t);
/* Makes `tangent` the tangent of `t` until `level` ends. Both must have the same sizes and dtype. If their strides differ, stores a copy of
 * `tangent`. False, with the error raised, on failure. */
bool grd_tangent_set(grd_tensor *t, grd_tensor *tangent, struct grd_dual_level *level);
/* Returns the tangent of `t`, so that an in-place operator can write to it. The tangent is a temporary, owned by the innermost grd_scope. If
 * `t` has no tangent, first gives it a tangent of zeros in the dual level `level`. If `t` is a view, its base gets the zeros, and the tangent of `t`
 * is a view of them. NULL, with the error raised, on failure. */
grd_tensor *grd_tangent_written(grd_tensor *t, struct grd_dual_level *level);
/* If `t` has a tangent, makes it the tangent of `alias` too. `alias` shares the memory of `t`. False, with the error raised, on failure. */
bool grd_tangent_share(grd_tensor *alias, const grd_tensor *t);

#endif
