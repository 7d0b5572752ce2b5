/* The thread pool: workers that wait until a loop is posted, take pieces of it, and wait again.
 *
 * Invariants
 * - One loop at a time is posted; a loop that finds another one posted runs in its caller.
 * - A worker joins and leaves a loop under the lock, and the caller waits until all have left, so that the loop can
 *   live on its stack.
 * - The pieces do not depend on who runs them. */
#define _GNU_SOURCE /* pthread_setname_np, sched_getcpu */
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
    SHARES = 32,
    CACHE_LINE = 64,
    LOOKS = 50 /* between two looks at the clock: a few microseconds */,
    AWAKE = 200 * 1000 /* nanoseconds */
};

/* Pieces that a thread takes first. */
struct share {
    _Alignas(CACHE_LINE) _Atomic int64_t next;
    int64_t end;
};

/* Note [Shares]
 * A thread takes pieces that lie one after the other, and those at the same places again in the next loop over as much: they are in its processor's caches.
 * When its own are done, it takes those that others have left. */
struct loop {
    int64_t begin, end, grain;
    grd_task *task;
    void *context;
    int cpu;           /* the processor that its caller runs on */
    int places;        /* workers that may still join; under the lock */
    atomic_int joined; /* workers that have joined and not left; changed under the lock */
    int nshares;
    struct share shares[SHARES];
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

static void run_piece(const struct loop *loop, int64_t piece)
{
    const int64_t begin = loop->begin + piece * loop->grain;
    loop->task(begin, loop->end - begin > loop->grain ? begin + loop->grain : loop->end, loop->context);
}

/* `own`: the number of the thread. */
static void run_shares(struct loop *loop, int own)
{
    for (int i = 0; i < loop->nshares; i++) {
        struct share *share = &loop->shares[(own + i) % loop->nshares];
        for (int64_t piece; (piece = atomic_fetch_add_explicit(&share->next, 1, memory_order_relaxed)) < share->end;)
            run_piece(loop, piece);
    }
}

static bool has_pieces(const struct loop *loop)
{
    for (int i = 0; i < loop->nshares; i++)
        if (atomic_load_explicit(&loop->shares[i].next, memory_order_relaxed) < loop->shares[i].end)
            return true;
    return false;
}

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
 * To wake a sleeping thread takes a system call, and some 50 microseconds in a virtual machine, whose host has given the processor away meanwhile.
 * Therefore who waits for a loop, or for its end, stays awake for AWAKE nanoseconds first, as long as the gap between two operators usually is.
 * A kernel may also wake a worker on the processor of its caller, to leave others asleep, and then both share it: a worker that finds itself there
 * moves away before it joins the loop. Its caller does not wait for that. */

static int64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

typedef bool condition(void *context);

/* Returns when the condition holds, or after AWAKE nanoseconds. */
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

static bool is_posted(void *seen)
{
    return atomic_load_explicit(&pool.posts, memory_order_relaxed) != *(const uint64_t *)seen;
}

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

/* Moves this thread to another processor, if it may use another. */
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

/* Under the lock. */
static bool has_place(const struct loop *loop)
{
    return loop != NULL && loop->places > 0 && has_pieces(loop);
}

/* Under the lock, which is given up meanwhile. Returns a loop that a worker can join. */
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
    if (!is_left(loop)) {
        pthread_mutex_unlock(&pool.lock);
        wait_awake(is_left, loop);
        pthread_mutex_lock(&pool.lock);
    }
    while (atomic_load_explicit(&loop->joined, memory_order_relaxed) > 0)
        pthread_cond_wait(&pool.left_cond, &pool.lock);
    pthread_mutex_unlock(&pool.lock);
}

/* True when the pool was this caller's: all pieces are done. */
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
