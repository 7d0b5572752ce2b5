/* Slots that hold the gradient of a tensor. Any thread may read or replace the gradient at any time. */
#ifndef GRD_AUTOGRAD_SLOT_H
#define GRD_AUTOGRAD_SLOT_H

#include "autograd/spin.h"
#include "base/object.h"
#include "core/tensor.h"

/* Holds a .grad. The lock is held only while pointers are exchanged, never while something is computed or freed. */
struct grd_grad_slot {
    grd_tensor *grad; /* owned */
    struct grd_spin lock;
};

/* Returns the gradient as a reference owned by the caller, or NULL. */
grd_tensor *grd_slot_get(struct grd_grad_slot *slot);
/* Stores `grad`, whose reference the slot takes; NULL empties the slot. Drops the gradient that was there. */
void grd_slot_set(struct grd_grad_slot *slot, grd_tensor *grad);
/* Replaces `expected` by `grad`, whose reference it takes, NULL included. Returns false and does nothing if the slot no longer holds `expected`. */
bool grd_slot_exchange(struct grd_grad_slot *slot, const grd_tensor *expected, grd_tensor *grad);

/* The gradient of a non-leaf tensor after retain_grad(): shared by the tensor and the hook that stores the gradient. */
struct grd_retained {
    struct grd_object object;
    struct grd_grad_slot slot;
};

/* Returns a grd_retained without a gradient, owned by the caller. NULL, with MemoryError, on failure. */
struct grd_retained *grd_retained_new(void);

#endif
