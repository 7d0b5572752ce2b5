/* The thread pool. Work is split at fixed points, so that results do not depend on the number of threads. */
#ifndef GRD_BASE_PARALLEL_H
#define GRD_BASE_PARALLEL_H

#include <stdbool.h>
#include <stdint.h>

/* A piece of work: indices [begin, end). Must not raise errors or allocate; runs on any thread. */
typedef void grd_task(int64_t begin, int64_t end, void *context);

/* Runs `task` over [begin, end) in pieces of exactly `grain` indices (the last may be shorter): piece k is
 * [begin + k*grain, …) whatever the number of threads. Returns when all are done. A nested call runs inline.
 * One piece, or one thread, runs in the caller without touching the pool. */
void grd_parallel_for(int64_t begin, int64_t end, int64_t grain, grd_task *task, void *context);

/* To be called between two looks at what another thread will change. */
static inline void grd_relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* The pool outlives a fork; run once, by the library's constructor. */
void grd_parallel_init(void);

#endif
