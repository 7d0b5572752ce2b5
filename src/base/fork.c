/* The list of locks that are held around a fork. Invariant: it does not change once the library is loaded. */
#include "base/fork.h"

#include "base/cold.h"

enum { MAX_LOCKS = 8 };

static pthread_mutex_t *locks[MAX_LOCKS];
static int nlocks;

static void take_locks(void)
{
    for (int i = nlocks - 1; i >= 0; i--)
        pthread_mutex_lock(locks[i]);
}

static void give_locks(void)
{
    for (int i = 0; i < nlocks; i++)
        pthread_mutex_unlock(locks[i]);
}

void grd_hold_around_fork(pthread_mutex_t *lock)
{
    if (nlocks == 0) {
        grd_thread_get_cold(); /* handlers run last first: those of the allocator must be there */
        pthread_atfork(take_locks, give_locks, give_locks);
    }
    locks[nlocks++] = lock;
}
