/* The field of a tensor's grd_meta that holds its forward-mode tangent. Dual tensors are declared in forward.h. */
#ifndef GRD_AUTOGRAD_TANGENT_H
#define GRD_AUTOGRAD_TANGENT_H

#include "core/tensor.h"

struct grd_dual_level;

/* The tangent of a dual tensor: Note [Tangents] in forward.h. */
struct grd_tangent {
    grd_tensor *tensor;              /* owned; NULL if the tensor has no tangent */
    struct grd_dual_level *level;    /* owned; NULL if no tangent was ever set */
    struct grd_tangent **at, *after; /* links of the level's list; valid while `tensor` is not NULL */
};
/* Drops the tangent and the level. */
void grd_tangent_clear(struct grd_tangent *self);
void grd_tangent_init(void);

#endif
