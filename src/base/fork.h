/* Holds locks of the library around a fork, so that the child process finds them free. */
#ifndef GRD_BASE_FORK_H
#define GRD_BASE_FORK_H

#include <pthread.h>

/* An entry of the list of locks that are held around a fork. The entry must live as long as the process. */
struct grd_held_lock {
    pthread_mutex_t *lock;
    struct grd_held_lock *older; /* next entry of the list; set by grd_hold_around_fork */
};

/* Registers a lock. A thread that forks takes the lock before the fork and releases it afterwards, in the parent and in the child, so that the
 * child finds the lock free and the data that it guards consistent. Called while the library is loaded. If lock A is held while lock B is taken,
 * B must be registered before A, because the locks are taken in the reverse order of registration. The allocator's locks are registered first. */
void grd_hold_around_fork(struct grd_held_lock *held);

#endif
