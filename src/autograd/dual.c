/* Reads and sets the tangents of tensors, and makes dual tensors. Note [Tangents] is in dual.h; forward.c computes the tangents of results. */
#include "autograd/dual.h"

#include "autograd/tangent.h"
#include "autograd/variable.h"
#include "autograd/view_place.h"
#include "base/text.h"
#include "core/dtype.h"
#include "core/given.h"
#include "core/new.h"
#include "core/shape.h"
#include "core/tensor.h"
#include "dispatch/op.h"
#include "gen/uses/autograd/dual.h"

/* ---- Reading --------------------------------------------------------------------------------------------------------------------- */
/* Returns the tangent that `t` itself holds, or NULL if there is none; ignores the base of `t`. If ret_level is not NULL, also writes the dual level
 * of the tangent to *ret_level. The caller owns the tangent and the level. */
static grd_tensor *held_by(const grd_tensor *t, struct grd_dual_level **ret_level)
{
    const struct grd_autograd_meta *meta = grd_autograd_meta_get(t);
    return meta != NULL ? grd_tangent_get(&meta->tangent, ret_level) : NULL;
}

grd_tensor *grd_tangent_find(const grd_tensor *t)
{
    grd_tensor *own = held_by(t, NULL), *tangent = own == NULL && t->base != NULL ? held_by(t->base, NULL) : own;
    if (tangent == NULL || !grd_pool_push(tangent))
        return NULL;
    return own == NULL ? grd_view_like(tangent, t) : own;
}

struct grd_dual_level *grd_tangent_level(const grd_tensor *t)
{
    struct grd_dual_level *level = NULL;
    grd_tensor *tangent = held_by(t, &level);
    if (tangent == NULL && t->base != NULL)
        tangent = held_by(t->base, &level);
    grd_object_drop(tangent);
    return level;
}

/* ---- Setting --------------------------------------------------------------------------------------------------------------------- */
/* Returns `tangent` if it has the strides of `t`, otherwise a copy with these strides. With equal strides, a view of `t` has the same sizes, strides
 * and offset as the corresponding view of its tangent. If elements of `t` share memory or a stride is negative, no copy is made and `tangent` itself
 * is returned. */
static grd_tensor *laid_out(const grd_tensor *t, grd_tensor *tangent)
{
    bool same = true, forward = true;
    for (int64_t i = 0; i < t->ndim; i++) {
        same = same && (t->sizes[i] == 1 || t->strides[i] == tangent->strides[i]);
        forward = forward && t->strides[i] >= 0;
    }
    if (same || !forward || grd_shape_may_overlap(grd_sizes(t), t->strides))
        return tangent;
    return grd_copy_(grd_new_strided(grd_sizes(t), grd_strides(t), (grd_dtype)t->dtype, grd_device_of(t)), tangent);
}

bool grd_tangent_set(grd_tensor *t, grd_tensor *tangent, struct grd_dual_level *level)
{
    tangent = laid_out(t, tangent);
    struct grd_autograd_meta *meta = grd_pending() ? NULL : grd_autograd_meta_ensure(t);
    if (meta == NULL)
        return false;
    grd_tangent_exchange(&meta->tangent, tangent, level);
    __atomic_fetch_or(&t->keys, GRD_FORWARD_BIT, __ATOMIC_RELAXED);
    return true;
}

bool grd_tangent_share(grd_tensor *alias, const grd_tensor *t)
{
    if ((grd_keys_of(t) & GRD_FORWARD_BIT) == 0)
        return true;
    grd_tensor *tangent = grd_tangent_find(t);
    struct grd_dual_level *level = tangent != NULL ? grd_tangent_level(t) : NULL;
    const bool ok = level != NULL ? grd_tangent_set(alias, tangent, level) : !grd_pending();
    grd_object_drop(level);
    return ok;
}

grd_tensor *grd_tangent_written(grd_tensor *t, struct grd_dual_level *level)
{
    grd_tensor *tangent = grd_tangent_find(t), *owner = t->base != NULL ? t->base : t;
    if (tangent != NULL || grd_pending())
        return tangent;
    grd_tensor *zeros = grd_zero_(grd_new_strided(grd_sizes(owner), grd_strides(owner), (grd_dtype)owner->dtype, grd_device_of(owner)));
    return !grd_pending() && grd_tangent_set(owner, zeros, level) ? grd_tangent_find(t) : NULL;
}

/* ---- Duals ----------------------------------------------------------------------------------------------------------------------- */
/* True if `tangent` has the dtype and sizes of `primal` and the dtype can have gradients. False, with the error raised, otherwise. */
static bool check_tangent(const grd_tensor *primal, const grd_tensor *tangent)
{
    char of_primal[256], of_tangent[256];
    if (!grd_dtype_is_inexact(primal->dtype))
        return grd_raise(GRD_ERROR_VALUE, "Expected primal to be floating point or complex, but got: torch.%s",
                         grd_dtype_name(primal->dtype));
    if (tangent->dtype != primal->dtype)
        return grd_raise(GRD_ERROR_RUNTIME,
                         "Trying to set a forward gradient that has a different dtype than that of the original Tensor, this is not "
                         "supported. Tensor is of dtype %s while the given "
                         "forward gradient is of dtype %s.",
                         grd_dtype_name(primal->dtype), grd_dtype_name(tangent->dtype));
    return grd_dims_equal(grd_sizes(primal), grd_sizes(tangent)) ||
           grd_raise(GRD_ERROR_RUNTIME,
                     "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not supported. "
                     "Tensor is of size %s while the given "
                     "forward gradient is of size %s.",
                     grd_format_int64s(of_primal, sizeof of_primal, primal->sizes, primal->ndim),
                     grd_format_int64s(of_tangent, sizeof of_tangent, tangent->sizes, tangent->ndim));
}

grd_tensor *grd_make_dual(grd_tensor *primal, grd_tensor *tangent)
{
    if (grd_pending() || !grd_given(primal, "grd_make_dual", "primal") || !grd_given(tangent, "grd_make_dual", "tangent") ||
        !check_tangent(primal, tangent))
        return grd_failed;
    if (!grd_dual_level_is_entered())
        return grd_fail(GRD_ERROR_RUNTIME,
                        "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first.");
    const grd_key_guard guard = grd_key_guard_set(GRD_FORWARD_BIT, 0);
    grd_tensor *dual = grd_hidden_make_dual(primal, tangent);
    grd_key_guard_restore(guard);
    return dual;
}

grd_tensor *grd_primal(grd_tensor *dual)
{
    return grd_hidden_primal(dual);
}

grd_tensor *grd_tangent(grd_tensor *dual)
{
    if (grd_pending() || !grd_given(dual, "grd_tangent", "dual"))
        return NULL;
    if (grd_keys_of(dual) >> GRD_KEY_BATCH & 1)
        return grd_hidden_tangent(dual);
    if ((grd_keys_of(dual) & GRD_FORWARD_BIT) == 0)
        return NULL;
    grd_tensor *tangent = grd_tangent_find(dual);
    return grd_pending() ? grd_failed : tangent;
}
