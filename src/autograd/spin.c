/* Waits for spin locks that another thread holds. */
#include "autograd/spin.h"

#include <sched.h>

void grd_spin_wait(struct grd_spin *spin)
{
    while (atomic_flag_test_and_set_explicit(&spin->flag, memory_order_acquire))
        sched_yield();
}
