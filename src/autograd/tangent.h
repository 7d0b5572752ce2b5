/* Levels of forward mode, and the struct that holds the tangent of one tensor. Note [Tangents] is in dual.h. */
#ifndef GRD_AUTOGRAD_TANGENT_H
#define GRD_AUTOGRAD_TANGENT_H

#include "core/tensor.h"

struct grd_dual_level;

/* The tangent of a dual tensor: Note [Tangents] in dual.h. */
struct grd_tangent {
    grd_tensor *tensor;              /* owned; NULL if the tensor has no tangent */
    struct grd_dual_level *level;    /* owned; NULL if no tangent was ever set */
    struct grd_tangent **at, *after; /* links of the level's list; valid while `tensor` is not NULL */
};

/* Returns the tangent, owned by the caller, or NULL. If there is one and ret_level is not NULL, also writes its level, owned by the caller. */
grd_tensor *grd_tangent_get(const struct grd_tangent *self, struct grd_dual_level **ret_level);
/* Replaces the tangent and level of `self` by the given ones, adding references; NULL and NULL clear it. Stores no tangent if the level has ended.
 * Drops the old ones after unlocking. */
void grd_tangent_exchange(struct grd_tangent *self, grd_tensor *tangent, struct grd_dual_level *level);
/* Drops the tangent and the level. */
void grd_tangent_clear(struct grd_tangent *self);
/* Returns the dual level that this thread has entered, owned by the caller; NULL if there is none. */
struct grd_dual_level *grd_dual_level_current(void);
/* True if this thread has entered a dual level. */
bool grd_dual_level_is_entered(void);
void grd_tangent_init(void);

#endif
