/* Declares spin locks. A spin lock is held for a few instructions, or for the addition of a gradient to .grad. */
#ifndef GRD_AUTOGRAD_SPIN_H
#define GRD_AUTOGRAD_SPIN_H

#include "base/error.h"

struct grd_spin {
    atomic_flag flag;
};

static inline void grd_spin_init(struct grd_spin *spin)
{
    atomic_flag_clear_explicit(&spin->flag, memory_order_relaxed);
}

/* Takes the lock if it is free; returns false if another thread holds it. */
static inline bool grd_spin_try(struct grd_spin *spin)
{
    return !atomic_flag_test_and_set_explicit(&spin->flag, memory_order_acquire);
}

/* The slow path of grd_spin_lock: waits until the lock is free and takes it. */
void grd_spin_wait(struct grd_spin *spin);

static inline void grd_spin_lock(struct grd_spin *spin)
{
    if (GRD_UNLIKELY(!grd_spin_try(spin)))
        grd_spin_wait(spin);
}

static inline void grd_spin_unlock(struct grd_spin *spin)
{
    atomic_flag_clear_explicit(&spin->flag, memory_order_release);
}

#endif
