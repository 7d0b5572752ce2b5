/* Dual tensors: levels, and where tangents are kept. Note [Tangents] in forward.h; what operators do with them is in forward.c.
 * Invariant: a grd_tangent is in the list of its level while it holds a tensor. Lists and tangents change under one lock, which is never held while
 * something is freed. */
#include <pthread.h>

#include "autograd/forward.h"
#include "autograd/inplace.h"
#include "autograd/tangent.h"
#include "autograd/variable.h"
#include "base/fork.h"
#include "base/text.h"
#include "core/given.h"
#include "core/new.h"
#include "core/shape.h"
#include "core/tensor.h"
#include "dispatch/op.h"
#include "gen/uses/autograd/tangent.h"

struct grd_dual_level {
    struct grd_object object;
    struct grd_tangent *first;
    bool ended;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* The level that this thread has entered, owned; NULL if there is none. */
static _Thread_local struct grd_dual_level *current;

void grd_tangent_init(void)
{
    static struct grd_held_lock held = {.lock = &lock};
    grd_hold_around_fork(&held);
}

/* ---- Lists ----------------------------------------------------------------------------------------------------------------------- */
/* Removes the tangent from `self` and from the list of its level, and returns it, owned by the caller; NULL if there is none. The lock is held. */
static grd_tensor *take(struct grd_tangent *self)
{
    grd_tensor *tangent = self->tensor;
    if (tangent == NULL)
        return NULL;
    self->tensor = NULL;
    *self->at = self->after;
    if (self->after != NULL)
        self->after->at = self->at;
    return tangent;
}

/* Stores a tangent in `self` and in the list of the level. False, with nothing stored, if the level has ended. Adds no reference. The lock
 * is held. */
static bool put(struct grd_tangent *self, grd_tensor *tangent, struct grd_dual_level *level)
{
    if (level->ended)
        return false;
    self->tensor = tangent;
    self->at = &level->first;
    self->after = level->first;
    if (self->after != NULL)
        self->after->at = &self->after;
    level->first = self;
    return true;
}

/* Replaces the tangent and level of `self` by the given ones, adding references; NULL and NULL clear it. Drops the old ones after unlocking. */
static void exchange(struct grd_tangent *self, grd_tensor *tangent, struct grd_dual_level *level)
{
    pthread_mutex_lock(&lock);
    grd_tensor *old = take(self);
    struct grd_dual_level *old_level = self->level;
    if (tangent != NULL && put(self, tangent, level))
        grd_object_keep(tangent);
    self->level = level != NULL ? grd_object_keep(level) : NULL;
    pthread_mutex_unlock(&lock);
    grd_object_drop(old);
    grd_object_drop(old_level);
}

void grd_tangent_clear(struct grd_tangent *self)
{
    if (self->level != NULL)
        exchange(self, NULL, NULL);
}

/* ---- Levels ---------------------------------------------------------------------------------------------------------------------- */
static void level_destroy(struct grd_object *object)
{
    grd_free(object, sizeof(struct grd_dual_level));
}

static const struct grd_object_type level_type = {.name = "level", .destroy = level_destroy};

bool grd_enter_dual_level(void)
{
    if (grd_pending())
        return false;
    if (current != NULL)
        return grd_raise(GRD_ERROR_RUNTIME, "Nested forward mode AD is not supported at the moment");
    struct grd_dual_level *level = grd_alloc_zeroed(sizeof *level);
    if (level == NULL)
        return false;
    level->object.type = &level_type;
    atomic_init(&level->object.refs, 1);
    current = level;
    return true;
}

bool grd_exit_dual_level(void)
{
    struct grd_dual_level *level = current;
    if (level == NULL)
        return grd_raise(GRD_ERROR_RUNTIME, "Trying to exit a forward AD level but no level is currently active");
    current = NULL;
    grd_tensor *tangent;
    do {
        pthread_mutex_lock(&lock);
        level->ended = true;
        tangent = level->first != NULL ? take(level->first) : NULL;
        pthread_mutex_unlock(&lock);
        grd_object_drop(tangent);
    } while (tangent != NULL);
    grd_object_drop(level);
    return true;
}

struct grd_dual_level *grd_dual_level_current(void)
{
    return current != NULL ? grd_object_keep(current) : NULL;
}

/* ---- Reading --------------------------------------------------------------------------------------------------------------------- */
/* Returns the tangent that the tensor itself (not its base) holds, or NULL. Writes its level to ret_level, unless that is NULL. The caller
 * owns both. */
static grd_tensor *held_by(const grd_tensor *t, struct grd_dual_level **ret_level)
{
    const struct grd_meta *meta = grd_meta_get(t);
    grd_tensor *tangent = NULL;
    if (meta != NULL) {
        pthread_mutex_lock(&lock);
        tangent = meta->tangent.tensor;
        if (tangent != NULL) {
            grd_object_keep(tangent);
            if (ret_level != NULL)
                *ret_level = grd_object_keep(meta->tangent.level);
        }
        pthread_mutex_unlock(&lock);
    }
    return tangent;
}

grd_tensor *grd_tangent_find(const grd_tensor *t)
{
    grd_tensor *own = held_by(t, NULL), *tangent = own == NULL && t->base != NULL ? held_by(t->base, NULL) : own;
    if (tangent == NULL || !grd_pool_push(tangent))
        return NULL;
    return own == NULL ? grd_view_of_whole(tangent, t) : own;
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
/* Returns the tangent, or a copy of it with the strides of `t`, so that a view of `t` and the same view of the tangent see the same elements. Does
 * not copy if `t` overlaps itself or has negative strides. */
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
    struct grd_meta *meta = grd_pending() ? NULL : grd_meta_ensure(t);
    if (meta == NULL)
        return false;
    exchange(&meta->tangent, tangent, level);
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
static bool check_tangent(const grd_tensor *primal, const grd_tensor *tangent)
{
    char of_primal[256], of_tangent[256];
    if (!grd_dtype_carries(primal->dtype))
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
    if (current == NULL)
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
