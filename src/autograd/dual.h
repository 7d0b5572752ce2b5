/* Dual tensors of forward-mode differentiation: a dual tensor carries a tangent.
 *
 * Note [Tangents]
 * A dual tensor has the key FORWARD, and its grd_autograd_meta holds a tangent with the sizes, dtype and strides of the tensor. An operator with a dual
 * argument first runs for the keys below FORWARD, where autograd records it as usual. Its forward rule then computes the tangents of the results with
 * operators that are recorded too. The results that a node saved get these tangents as well, so the backward formulas work on dual tensors and
 * gradients have tangents (forward over reverse). The tangent of a result owns, through its history, the node that saved the result, and that node
 * owns the tangent. The end of the level breaks this cycle: every tangent belongs to a level and is dropped when the level ends. A tensor without its
 * tangent still has the key FORWARD but behaves like any other tensor. */
#ifndef GRD_AUTOGRAD_DUAL_H
#define GRD_AUTOGRAD_DUAL_H

#include "autograd/tangent.h"
#include "core/tensor.h"

enum { GRD_FORWARD_BIT = 1 << GRD_KEY_FORWARD };

/* Returns the tangent of a tensor with the key FORWARD. A view without its own tangent gets the corresponding view of its base's tangent. Pooled;
 * NULL if there is none. May leave an error pending. */
grd_tensor *grd_tangent_find(const grd_tensor *t);
/* Returns the level that the tangent of `t` belongs to, owned by the caller; NULL if there is no tangent. */
struct grd_dual_level *grd_tangent_level(const grd_tensor *t);
/* Sets the tangent of `t`, which has the sizes and dtype of `t`. Stores a copy if its strides differ from those of `t`. False, with the error raised,
 * on failure. */
bool grd_tangent_set(grd_tensor *t, grd_tensor *tangent, struct grd_dual_level *level);
/* Returns the tangent that an in-place operator writes to. If there is none, first gives `t` (or the base of a view) a tangent of zeros. Pooled;
 * NULL, with the error raised, on failure. */
grd_tensor *grd_tangent_written(grd_tensor *t, struct grd_dual_level *level);
/* Gives `alias`, which shares the memory of `t`, the tangent of `t`, if there is one. False, with the error raised, on failure. */
bool grd_tangent_share(grd_tensor *alias, const grd_tensor *t);

#endif
