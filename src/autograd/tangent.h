/* The place of a tangent in a tensor. Dual tensors are in forward.h. */
#ifndef GRD_AUTOGRAD_TANGENT_H
#define GRD_AUTOGRAD_TANGENT_H

#include "core/tensor.h"

struct grd_dual_level;

/* The tangent of a dual tensor: Note [Tangents] in forward.h. */
struct grd_tangent {
    grd_tensor *tensor;              /* owned; NULL: none */
    struct grd_dual_level *level;    /* owned; NULL: there has been none */
    struct grd_tangent **at, *after; /* in the list of the level, while there is a tensor */
};
/* Lets go of it. */
void grd_tangent_clear(struct grd_tangent *self);
void grd_tangent_init(void);

#endif
