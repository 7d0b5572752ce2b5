/* Declares the dual levels of forward mode, and the struct that holds the tangent of one tensor. Note [Tangents] is in dual.h. */
#ifndef GRD_AUTOGRAD_TANGENT_H
#define GRD_AUTOGRAD_TANGENT_H

#include "core/tensor.h"

struct grd_dual_level;

/* The tangent of one tensor. This struct is in the list of its dual level as long as `tensor` is not NULL. */
struct grd_tangent {
    grd_tensor *tensor;              /* the tangent; owned; NULL if the tensor has none */
    struct grd_dual_level *level;    /* the dual level of the tangent; owned; NULL if no tangent was ever set */
    struct grd_tangent **at, *after; /* links of the level's list; at: address of the pointer to this element; after: next element */
};

/* Returns the tangent in `self`, owned by the caller, or NULL. If there is a tangent and ret_level is not NULL, also writes the tangent's dual
 * level, owned by the caller. */
grd_tensor *grd_tangent_get(const struct grd_tangent *self, struct grd_dual_level **ret_level);
/* Replaces the tangent and the dual level in `self` by `tangent` and `level`, and adds references to them; both may be NULL. Stores no tangent if
 * the level has ended. */
void grd_tangent_exchange(struct grd_tangent *self, grd_tensor *tangent, struct grd_dual_level *level);
/* Drops the tangent and the dual level in `self`. */
void grd_tangent_clear(struct grd_tangent *self);
/* Returns the dual level that this thread has entered, owned by the caller; NULL if there is none. */
struct grd_dual_level *grd_dual_level_current(void);
/* True if this thread has entered a dual level. */
bool grd_dual_level_is_entered(void);
/* Makes fork wait until no thread holds the lock of tangent.c. Called once, when the library is loaded. */
void grd_tangent_init(void);

#endif
