/* Forward mode: tangents beside values.
 *
 * Note [Tangents]
 * A dual tensor has the key FORWARD, and in its grd_meta a tangent, whose sizes, dtype and strides are its own. An operator that gets one is run for the keys below, so it
 * is recorded as ever, and its rule then makes the tangents of its results by operators that are recorded too. The results that a node saved get the tangents of the results.
 * So the formulas of backward work with dual tensors, and gradients have tangents: forward over reverse.
 * The tangent of a result leads, through its history, to the node that saved the result, and this to the tangent: a cycle, which the end of the level breaks. Every tangent
 * belongs to a level, and goes when that ends; a tensor whose tangent has gone is a plain one that still has the key. */
#ifndef GRD_AUTOGRAD_FORWARD_H
#define GRD_AUTOGRAD_FORWARD_H

#include "autograd/node.h"
#include "core/tensor.h"

enum { GRD_FORWARD_BIT = 1 << GRD_KEY_FORWARD };

/* The tangent of a tensor with the key FORWARD, for a view what it sees of its base's. Pooled; NULL where there is none. May leave an error pending. */
grd_tensor *grd_tangent_find(const grd_tensor *t);
/* The level that the tangent belongs to. Owned by the caller; NULL where there is none. */
struct grd_dual_level *grd_tangent_level(const grd_tensor *t);
/* The level this thread has entered. Owned by the caller; NULL where there is none. */
struct grd_dual_level *grd_dual_level_current(void);
/* Gives a tensor a tangent, of its sizes and dtype: this, or a copy with its strides. False, with the error raised, on failure. */
bool grd_tangent_set(grd_tensor *t, grd_tensor *tangent, struct grd_dual_level *level);
/* The tangent that an operator in place writes to: where there is none, zeros, for a view those of its base. Pooled; NULL, with the error raised, on failure. */
grd_tensor *grd_tangent_written(grd_tensor *t, struct grd_dual_level *level);
/* Gives `alias`, which has the memory of `t`, its tangent, if it has one. */
bool grd_tangent_share(grd_tensor *alias, const grd_tensor *t);
/* Does so for the results that the node of `t` has saved (op_node.c). `written`: in place, so for a view it is the node of its base. */
bool grd_tangent_share_saved(const grd_tensor *t, bool written);

/* The boxed kernel of the FORWARD key (forward.c). */
grd_boxed_kernel grd_forward_record;

#endif
