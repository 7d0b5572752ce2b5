/* Declares parallel loops, which run in a thread pool. Loops are divided at fixed points, so that results do not depend on the number of threads. */
#ifndef GRD_BASE_PARALLEL_H
#define GRD_BASE_PARALLEL_H

#include <stdbool.h>
#include <stdint.h>

/* The body of a parallel loop: processes the indices from `begin` to `end` - 1. It must not raise errors or allocate, and runs on any thread. */
typedef void grd_task(int64_t begin, int64_t end, void *context);

/* Runs `task` over the indices from `begin` to `end` - 1 in pieces of `grain` indices (the last one may be shorter), and returns when all are done.
 * Piece k starts at begin + k*grain, whatever the number of threads. Only the calling thread runs pieces if it is already inside a task, if the
 * number of threads is 1, or if another loop uses the pool. */
void grd_parallel_for(int64_t begin, int64_t end, int64_t grain, grd_task *task, void *context);

/* Tells the processor that this thread spins. Called between two tests of a condition that another thread will make true. */
static inline void grd_relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Prepares the thread pool for forks, so that loops can run in the child process. The library's constructor calls it once. */
void grd_parallel_init(void);

#endif
