/* Spin locks, held for a few instructions or for one accumulation. */
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

static inline bool grd_spin_try(struct grd_spin *spin)
{
    return !atomic_flag_test_and_set_explicit(&spin->flag, memory_order_acquire);
}

/* Waits for a lock that is held, and takes it: the slow path of grd_spin_lock. */
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
