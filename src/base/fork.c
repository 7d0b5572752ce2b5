/* The list of locks that are held around a fork, the newest first. Invariant: it does not change once the library is loaded. */
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
    grd_thread_get_cold(); /* the allocator's locks come first, when the first thread joins it */
    if (newest == NULL)
        pthread_atfork(take_locks, give_locks, give_locks);
    held->older = newest;
    newest = held;
}
