/* The thread pool: workers that sleep until a loop is posted, take pieces of it from a counter, and sleep again.
 *
 * Invariants
 * - One loop at a time is posted; a loop that finds another one posted runs in its caller.
 * - A worker joins and leaves a loop under the lock, and the caller waits until all have left, so that the loop can
 *   live on its stack.
 * - The pieces do not depend on who runs them. */
#define _GNU_SOURCE /* pthread_setname_np */
#include "base/parallel.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "base/cpu.h"
#include "base/error.h"
#include "base/fork.h"
#include "base/thread.h"
#include "gradus/runtime.h"

enum { MAX_THREADS = 1024, SPINS = 100 /* a few microseconds */ };

struct loop {
    int64_t begin, end, grain, pieces;
    grd_task *task;
    void *context;
    _Atomic int64_t next; /* the next piece to run */
    int places;           /* workers that may still join; under the lock */
    atomic_int joined;    /* workers that have joined and not left; changed under the lock */
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t posted_cond, left_cond;
    struct loop *posted;
    int workers;
    _Atomic uint64_t posts; /* how many loops were posted: what idle workers spin on */
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER, .posted_cond = PTHREAD_COND_INITIALIZER, .left_cond = PTHREAD_COND_INITIALIZER};

static atomic_bool busy; /* a caller owns the pool */
static atomic_int wanted_threads;

static inline void relax(void)
{
#if defined(__x86_64__)
    _mm_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* ---- How many threads --------------------------------------------------------------------------------------------- */

int grd_num_threads(void)
{
    int n = atomic_load_explicit(&wanted_threads, memory_order_relaxed);
    if (GRD_LIKELY(n > 0))
        return n;
    const char *text = getenv("GRADUS_NUM_THREADS");
    char *end = NULL;
    long given = text != NULL ? strtol(text, &end, 10) : 0;
    bool valid = text != NULL && end != text && *end == '\0' && given >= 1 && given <= MAX_THREADS;
    int chosen = valid ? (int)given : grd_cpu_count();
    if (chosen > MAX_THREADS)
        chosen = MAX_THREADS;
    /* Another thread may have set it meanwhile: that stands. */
    return atomic_compare_exchange_strong(&wanted_threads, &n, chosen) ? chosen : n;
}

void grd_set_num_threads(int n)
{
    if (n < 1 || n > MAX_THREADS) {
        grd_raise(GRD_ERROR_VALUE, "the number of threads must be between 1 and %d, got %d", MAX_THREADS, n);
        return;
    }
    atomic_store(&wanted_threads, n);
}

/* ---- Running -------------------------------------------------------------------------------------------------------- */

static void run_pieces(struct loop *loop)
{
    for (;;) {
        int64_t piece = atomic_fetch_add_explicit(&loop->next, 1, memory_order_relaxed);
        if (piece >= loop->pieces)
            return;
        const int64_t begin = loop->begin + piece * loop->grain;
        loop->task(begin, loop->end - begin > loop->grain ? begin + loop->grain : loop->end, loop->context);
    }
}

static void spin_for_post(uint64_t seen)
{
    for (int i = 0; i < SPINS && atomic_load_explicit(&pool.posts, memory_order_relaxed) == seen; i++)
        relax();
}

/* Under the lock. */
static bool has_place(const struct loop *loop)
{
    return loop->places > 0 && atomic_load_explicit(&loop->next, memory_order_relaxed) < loop->pieces;
}

static void *work(void *unused)
{
    (void)unused;
    grd_thread.in_parallel = true;
    pthread_mutex_lock(&pool.lock);
    for (;;) {
        while (pool.posted == NULL || !has_place(pool.posted))
            pthread_cond_wait(&pool.posted_cond, &pool.lock);
        struct loop *loop = pool.posted;
        loop->places--;
        atomic_fetch_add_explicit(&loop->joined, 1, memory_order_relaxed);
        uint64_t seen = atomic_load_explicit(&pool.posts, memory_order_relaxed);
        pthread_mutex_unlock(&pool.lock);

        run_pieces(loop);

        pthread_mutex_lock(&pool.lock);
        if (atomic_fetch_sub_explicit(&loop->joined, 1, memory_order_release) == 1)
            pthread_cond_signal(&pool.left_cond);
        pthread_mutex_unlock(&pool.lock);
        spin_for_post(seen);
        pthread_mutex_lock(&pool.lock);
    }
    return NULL;
}

/* ---- Starting ------------------------------------------------------------------------------------------------------- */

/* The workers are not in the child: the next loop starts new ones. */
static void in_child(void)
{
    pthread_cond_init(&pool.posted_cond, NULL);
    pthread_cond_init(&pool.left_cond, NULL);
    pool.posted = NULL;
    pool.workers = 0;
    atomic_store(&busy, false);
}

void grd_parallel_init(void)
{
    static struct grd_held_lock held = {.lock = &pool.lock};
    grd_hold_around_fork(&held);
    pthread_atfork(NULL, NULL, in_child);
}

/* Starts what is missing of n workers, as far as the system lets us. Called by the owner of the pool. */
static void start_workers(int n)
{
    /* Signals are for the program's threads. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (pool.workers < n) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, work, NULL) != 0)
            break;
#ifdef __linux__
        pthread_setname_np(thread, "gradus");
#endif
        pthread_detach(thread);
        pool.workers++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void post(struct loop *loop)
{
    pthread_mutex_lock(&pool.lock);
    int places = loop->places;
    pool.posted = loop;
    atomic_fetch_add_explicit(&pool.posts, 1, memory_order_relaxed);
    if (places == pool.workers)
        pthread_cond_broadcast(&pool.posted_cond);
    else
        for (int i = 0; i < places; i++)
            pthread_cond_signal(&pool.posted_cond);
    pthread_mutex_unlock(&pool.lock);
}

static void wait_for_workers(struct loop *loop)
{
    pthread_mutex_lock(&pool.lock);
    pool.posted = NULL;
    if (atomic_load_explicit(&loop->joined, memory_order_relaxed) > 0) {
        pthread_mutex_unlock(&pool.lock);
        for (int i = 0; i < SPINS && atomic_load_explicit(&loop->joined, memory_order_relaxed) > 0; i++)
            relax();
        pthread_mutex_lock(&pool.lock);
    }
    while (atomic_load_explicit(&loop->joined, memory_order_relaxed) > 0)
        pthread_cond_wait(&pool.left_cond, &pool.lock);
    pthread_mutex_unlock(&pool.lock);
}

/* True when the pool was this caller's: all pieces are done. */
static bool run_in_pool(struct loop *loop, int threads)
{
    if (atomic_exchange_explicit(&busy, true, memory_order_acquire))
        return false;
    int helpers = loop->pieces < threads ? (int)loop->pieces - 1 : threads - 1;
    if (GRD_UNLIKELY(pool.workers < helpers))
        start_workers(helpers);
    loop->places = helpers < pool.workers ? helpers : pool.workers;
    if (loop->places > 0)
        post(loop);
    run_pieces(loop);
    if (pool.workers > 0)
        wait_for_workers(loop);
    atomic_store_explicit(&busy, false, memory_order_release);
    return true;
}

void grd_parallel_for(int64_t begin, int64_t end, int64_t grain, grd_task *task, void *context)
{
    if (begin >= end)
        return;
    if (grain < 1)
        grain = 1;
    if (end - begin <= grain) {
        task(begin, end, context);
        return;
    }
    struct loop loop = {
        .begin = begin, .end = end, .grain = grain, .pieces = (end - begin - 1) / grain + 1, .task = task, .context = context};
    bool nested = grd_thread.in_parallel;
    int threads = nested ? 1 : grd_num_threads();
    grd_thread.in_parallel = true;
    if (threads == 1 || !run_in_pool(&loop, threads))
        run_pieces(&loop);
    grd_thread.in_parallel = nested;
}
