/* Locks of the whole process and fork. */
#ifndef GRD_BASE_FORK_H
#define GRD_BASE_FORK_H

#include <pthread.h>

/* The thread that forks takes `lock` before and gives it back after, in parent and child: so the child finds it free and what it guards whole.
 * Called while the library is loaded. A lock under which another is taken must come after that one; the allocator's come before all. */
void grd_hold_around_fork(pthread_mutex_t *lock);

#endif
