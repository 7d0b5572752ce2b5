/* Locks of the whole process and fork. */
#ifndef GRD_BASE_FORK_H
#define GRD_BASE_FORK_H

#include <pthread.h>

/* Lives as long as the process. */
struct grd_held_lock {
    pthread_mutex_t *lock;
    struct grd_held_lock *older; /* for the list */
};

/* The thread that forks takes the lock before and gives it back after, in parent and child: so the child finds it free and what it guards whole.
 * Called while the library is loaded. A lock under which another is taken must come after that one; the allocator's come before all. */
void grd_hold_around_fork(struct grd_held_lock *held);

#endif
