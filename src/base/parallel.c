/* The thread pool. Its workers wait until a parallel loop is posted, run pieces of the loop (ranges of `grain` indices), and wait again.
 *
 * Invariants
 * - At most one loop is posted at a time. A loop that starts while another one is posted runs in its caller's thread alone.
 * - A worker joins and leaves a loop under the lock, and the caller waits until all workers have left, so that the struct loop can be on the
 *   caller's stack.
 * - The boundaries of the pieces do not depend on the threads that run them. */
#define _GNU_SOURCE /* for pthread_setname_np and sched_getcpu */
#include "base/parallel.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "base/cpu.h"
#include "base/error.h"
#include "base/fork.h"
#include "base/thread.h"
#include "gradus/runtime.h"

enum {
    MAX_THREADS = 1024,
    SHARES = 32, /* largest number of shares of a loop: Note [Shares] */
    CACHE_LINE = 64,
    LOOKS = 50 /* tests of the awaited condition between two readings of the clock, which are a few microseconds apart */,
    AWAKE = 200 * 1000 /* nanoseconds that a thread spins before it sleeps: Note [Waiting awake] */
};

/* A share of a loop: the pieces (ranges of `grain` indices) that are numbered from `next` to `end` - 1. Each thread has a share whose pieces it
 * runs first. */
struct share {
    _Alignas(CACHE_LINE) _Atomic int64_t next;
    int64_t end;
};

/* Note [Shares]
 * A loop is divided into pieces of `grain` indices, and the pieces into shares of adjacent pieces, one share for each thread. A thread runs the
 * pieces of its share in order. When the next loop works on the same data, the thread runs the same pieces again and finds their data in its
 * processor's caches. After its own share a thread runs pieces that are left in other shares. */
struct loop {
    int64_t begin, end, grain;
    grd_task *task;
    void *context;
    int cpu;           /* the processor that the caller runs on; -1 if unknown */
    int places;        /* number of workers that may still join the loop; guarded by the lock */
    atomic_int joined; /* number of workers that have joined the loop and not left it; changed under the lock */
    int nshares;
    struct share shares[SHARES];
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t posted_cond, left_cond;
    struct loop *posted;
    int workers;
    _Atomic uint64_t posts; /* number of loops posted so far; an idle worker spins until the number changes */
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER, .posted_cond = PTHREAD_COND_INITIALIZER, .left_cond = PTHREAD_COND_INITIALIZER};

static atomic_bool busy;          /* true while a caller runs a loop with the pool's workers */
static atomic_int wanted_threads; /* number of threads for a loop; 0 until it is first needed or set */

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
    /* If another thread has set the number in the meantime, that number is returned. */
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

static void run_piece(const struct loop *loop, int64_t piece)
{
    const int64_t begin = loop->begin + piece * loop->grain;
    loop->task(begin, loop->end - begin > loop->grain ? begin + loop->grain : loop->end, loop->context);
}

/* Runs the pieces (ranges of `grain` indices) of share number `own`, which belongs to this thread, and then the pieces that other threads have
 * left in their shares; see Note [Shares]. */
static void run_shares(struct loop *loop, int own)
{
    for (int i = 0; i < loop->nshares; i++) {
        struct share *share = &loop->shares[(own + i) % loop->nshares];
        for (int64_t piece; (piece = atomic_fetch_add_explicit(&share->next, 1, memory_order_relaxed)) < share->end;)
            run_piece(loop, piece);
    }
}

/* True if some piece of the loop (a range of `grain` indices) has not been started yet. */
static bool has_pieces(const struct loop *loop)
{
    for (int i = 0; i < loop->nshares; i++)
        if (atomic_load_explicit(&loop->shares[i].next, memory_order_relaxed) < loop->shares[i].end)
            return true;
    return false;
}

/* Divides the pieces (ranges of `grain` indices) of the loop into one share per thread, but at most SHARES; see Note [Shares]. */
static void set_shares(struct loop *loop, int64_t pieces, int threads)
{
    loop->nshares = threads < SHARES ? threads : SHARES;
    const int64_t each = pieces / loop->nshares, longer = pieces % loop->nshares;
    int64_t begin = 0;
    for (int i = 0; i < loop->nshares; i++) {
        atomic_init(&loop->shares[i].next, begin);
        begin += each + (i < longer);
        loop->shares[i].end = begin;
    }
}

/* ---- Waiting --------------------------------------------------------------------------------------------------------- */
/* Note [Waiting awake]
 * Waking a sleeping thread takes a system call. In a virtual machine, waking takes some 50 microseconds if the host has given the processor to
 * another machine in the meantime. So a thread that waits for a loop, or for the end of one, first spins for AWAKE nanoseconds, which is longer than
 * the usual gap between two operators.
 * The operating system may also wake a worker on the processor of the loop's caller, to let other processors sleep. Both threads would then share
 * that processor, so the worker moves to another processor before it joins the loop. The caller does not wait for this move. */

static int64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

typedef bool condition(void *context);

/* Spins until holds(context) is true, but for at most AWAKE nanoseconds. */
static void wait_awake(condition *holds, void *context)
{
    for (int64_t end = 0; !holds(context);) {
        for (int i = 0; i < LOOKS; i++) {
            if (holds(context))
                return;
            grd_relax();
        }
        const int64_t time = now();
        if (end == 0)
            end = time + AWAKE;
        else if (time > end)
            return;
    }
}

/* True if a loop was posted since `*seen`, a uint64_t, was read from pool.posts. */
static bool is_posted(void *seen)
{
    return atomic_load_explicit(&pool.posts, memory_order_relaxed) != *(const uint64_t *)seen;
}

/* True if all workers that joined the loop have left it. */
static bool is_left(void *loop)
{
    return atomic_load_explicit(&((struct loop *)loop)->joined, memory_order_relaxed) == 0;
}

static int current_cpu(void)
{
#ifdef __linux__
    return sched_getcpu();
#else
    return -1;
#endif
}

/* Moves this thread away from processor `cpu`, if its affinity mask allows another one. */
static void leave_cpu(int cpu)
{
#ifdef __linux__
    cpu_set_t allowed, others;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0)
        return;
    others = allowed;
    CPU_CLR(cpu, &others);
    if (CPU_COUNT(&others) > 0 && sched_setaffinity(0, sizeof others, &others) == 0)
        sched_setaffinity(0, sizeof allowed, &allowed);
#else
    (void)cpu;
#endif
}

/* True if a worker can join `loop`, which may be NULL. The caller holds the lock. */
static bool has_place(const struct loop *loop)
{
    return loop != NULL && loop->places > 0 && has_pieces(loop);
}

/* Waits for a loop that a worker can join, and returns it. The caller holds the lock, which is released during the wait. */
static struct loop *wait_for_loop(void)
{
    for (bool stays = false;;) {
        for (; !has_place(pool.posted); stays = false)
            pthread_cond_wait(&pool.posted_cond, &pool.lock);
        const int cpu = pool.posted->cpu;
        if (stays || cpu < 0 || current_cpu() != cpu)
            return pool.posted;
        pthread_mutex_unlock(&pool.lock);
        leave_cpu(cpu);
        pthread_mutex_lock(&pool.lock);
        stays = true;
    }
}

/* The main function of a worker thread. `number` is the worker's number, counted from 1. */
static void *work(void *number)
{
    grd_thread.in_parallel = true;
    pthread_mutex_lock(&pool.lock);
    for (;;) {
        struct loop *loop = wait_for_loop();
        loop->places--;
        atomic_fetch_add_explicit(&loop->joined, 1, memory_order_relaxed);
        uint64_t seen = atomic_load_explicit(&pool.posts, memory_order_relaxed);
        pthread_mutex_unlock(&pool.lock);

        run_shares(loop, (int)(intptr_t)number);

        pthread_mutex_lock(&pool.lock);
        if (atomic_fetch_sub_explicit(&loop->joined, 1, memory_order_release) == 1)
            pthread_cond_signal(&pool.left_cond);
        pthread_mutex_unlock(&pool.lock);
        wait_awake(is_posted, &seen);
        pthread_mutex_lock(&pool.lock);
    }
    return NULL;
}

/* ---- Starting ------------------------------------------------------------------------------------------------------- */

/* Runs in the child of a fork, which has no workers. The child's next loop starts new ones. */
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

/* Starts workers until there are `n`, or until the system allows no more. The caller has set `busy`. */
static void start_workers(int n)
{
    /* Block all signals in the workers, so that the threads of the program handle them. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (pool.workers < n) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, work, (void *)(intptr_t)(pool.workers + 1)) != 0)
            break;
#ifdef __linux__
        pthread_setname_np(thread, "gradus");
#endif
        pthread_detach(thread);
        pool.workers++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* Makes the loop visible to the workers and wakes as many workers as may join it. */
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

/* Lets no more workers join the loop, and waits until the workers that have joined it have left it. */
static void wait_for_workers(struct loop *loop)
{
    pthread_mutex_lock(&pool.lock);
    pool.posted = NULL;
    if (!is_left(loop)) {
        pthread_mutex_unlock(&pool.lock);
        wait_awake(is_left, loop);
        pthread_mutex_lock(&pool.lock);
    }
    while (atomic_load_explicit(&loop->joined, memory_order_relaxed) > 0)
        pthread_cond_wait(&pool.left_cond, &pool.lock);
    pthread_mutex_unlock(&pool.lock);
}

/* Runs all pieces of the loop with the help of workers and returns true. If another caller uses the pool, runs nothing and returns false. */
static bool run_in_pool(struct loop *loop, int64_t pieces, int threads)
{
    if (atomic_exchange_explicit(&busy, true, memory_order_acquire))
        return false;
    int helpers = pieces < threads ? (int)pieces - 1 : threads - 1;
    if (GRD_UNLIKELY(pool.workers < helpers))
        start_workers(helpers);
    loop->places = helpers < pool.workers ? helpers : pool.workers;
    loop->cpu = current_cpu();
    set_shares(loop, pieces, 1 + loop->places);
    if (loop->places > 0)
        post(loop);
    run_shares(loop, 0);
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
    const int64_t pieces = (end - begin - 1) / grain + 1;
    struct loop loop;
    loop.begin = begin;
    loop.end = end;
    loop.grain = grain;
    loop.task = task;
    loop.context = context;
    atomic_init(&loop.joined, 0);
    bool nested = grd_thread.in_parallel;
    int threads = nested ? 1 : grd_num_threads();
    grd_thread.in_parallel = true;
    if (threads == 1 || !run_in_pool(&loop, pieces, threads))
        for (int64_t piece = 0; piece < pieces; piece++)
            run_piece(&loop, piece);
    grd_thread.in_parallel = nested;
}
