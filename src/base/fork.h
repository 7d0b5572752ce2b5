/* Holds locks of the library around a fork, so that the child process finds them free. */
#ifndef GRD_BASE_FORK_H
#define GRD_BASE_FORK_H

#include <pthread.h>

/* An entry of the list of locks that are held around a fork. The entry must live as long as the process. */
struct grd_held_lock {
    pthread_mutex_t *lock;
    struct grd_held_lock *older; /* next entry of the list; set by grd_hold_around_fork */
};

/* Registers a lock that is taken before every fork and released after it, so that the child finds the lock free and its data consistent. The locks
 * are taken in reverse order of registration. So if code takes B while it holds A, B must be registered first. The allocator's locks are registered
 * before all others, because code may allocate while it holds another lock. Called while the library is loaded. */
void grd_hold_around_fork(struct grd_held_lock *held);

#endif
