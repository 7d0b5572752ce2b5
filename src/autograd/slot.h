/* Declares slots. A slot holds the .grad of one tensor, which any thread may read or replace at any time. */
#ifndef GRD_AUTOGRAD_SLOT_H
#define GRD_AUTOGRAD_SLOT_H

#include "autograd/spin.h"
#include "base/object.h"
#include "core/tensor.h"

/* A slot, which holds the .grad of one tensor. The lock is held only while pointers are exchanged, never while a tensor is computed or freed. */
struct grd_grad_slot {
    grd_tensor *grad; /* the .grad; owned; NULL if there is none */
    struct grd_spin lock;
};

/* Returns the .grad in the slot as a reference owned by the caller, or NULL. */
grd_tensor *grd_slot_get(struct grd_grad_slot *slot);
/* Stores `grad`, which may be NULL, as the .grad and takes the reference to `grad`. Drops the .grad that was in the slot. */
void grd_slot_set(struct grd_grad_slot *slot, grd_tensor *grad);
/* If the .grad in the slot is still `expected`, which may be NULL, replaces it by `grad` and takes the reference to `grad`. Otherwise returns
 * false and does nothing. */
bool grd_slot_exchange(struct grd_grad_slot *slot, const grd_tensor *expected, grd_tensor *grad);

/* The .grad of a non-leaf tensor after retain_grad(). The tensor and the hook that stores the gradient share it. */
struct grd_retained {
    struct grd_object object;
    struct grd_grad_slot slot;
};

/* Returns a grd_retained without a gradient, owned by the caller. NULL, with MemoryError, on failure. */
struct grd_retained *grd_retained_new(void);

#endif
