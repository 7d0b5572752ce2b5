/* Keeps the list of locks that are held around a fork, the last registered lock first. Invariant: the list does not change after the library is
 * loaded. */
#include "base/fork.h"

#include "base/cold.h"

static struct grd_held_lock *newest;

static void take_locks(void)
{
    for (struct grd_held_lock *held = newest; held != NULL; held = held->older)
        pthread_mutex_lock(held->lock);
}

static void give_locks(void)
{
    for (struct grd_held_lock *held = newest; held != NULL; held = held->older)
        pthread_mutex_unlock(held->lock);
}

void grd_hold_around_fork(struct grd_held_lock *held)
{
    /* This call makes the allocator register its locks before `held`. Locks are taken in reverse order of registration. So a fork takes `held`
     * before the allocator's locks, in the same order as code that allocates while it holds `held`. */
    grd_thread_get_cold();
    if (newest == NULL)
        pthread_atfork(take_locks, give_locks, give_locks);
    held->older = newest;
    newest = held;
}
