/* The host allocator: counts the bytes in use and refuses allocations beyond the memory limit. blocks.c provides the memory blocks.
 *
 * Invariants
 * - The memory in use is the sum of the shared counters and the counters of all threads. A thread adds its counters to the shared ones when they
 *   exceed GRD_MEMORY_SLACK, and at every allocation while a limit is set.
 * - No lock is held while an error is raised. Except around a fork, no lock is held while another lock is taken. */
#include "base/memory.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/blocks.h"
#include "base/cold.h"
#include "base/error.h"
#include "base/fork.h"
#include "base/slabs.h"
#include "base/thread.h"
#include "gradus/runtime.h"

/* ---- Counters ------------------------------------------------------------------------------------------------------- */

/* Returns the number of bytes that a block of `size` bytes adds to the memory in use: the size of its size class if the block is small, otherwise
 * `size` rounded up to a multiple of 64. */
static inline int64_t counted_size(size_t size)
{
    return (int64_t)(size <= GRD_SMALL_MAX ? grd_small_size(grd_small_class(size)) : (size + 63) / 64 * 64);
}

static _Atomic int64_t shared_bytes, shared_blocks, peak_bytes;
static _Atomic int64_t limit_bytes;
static _Atomic int64_t fail_countdown;
static atomic_bool fail_forever;
atomic_bool grd_memory_watched;

static pthread_mutex_t threads_lock = PTHREAD_MUTEX_INITIALIZER;
static struct grd_thread_cold *threads;

static inline int64_t load(const _Atomic int64_t *value)
{
    return atomic_load_explicit(value, memory_order_relaxed);
}

static inline void store(_Atomic int64_t *value, int64_t n)
{
    atomic_store_explicit(value, n, memory_order_relaxed);
}

static inline int64_t add(_Atomic int64_t *value, int64_t n)
{
    return atomic_fetch_add_explicit(value, n, memory_order_relaxed) + n;
}

static void raise_peak(int64_t bytes)
{
    int64_t peak = load(&peak_bytes);
    while (bytes > peak && !atomic_compare_exchange_weak_explicit(&peak_bytes, &peak, bytes, memory_order_relaxed, memory_order_relaxed))
        continue;
}

/* Returns the number of bytes in `counted`, a value of grd_thread.memory_counted. It is the lower 32 bits. */
static int64_t counted_bytes(int64_t counted)
{
    return (int32_t)counted;
}

/* Returns the number of blocks in `counted`, a value of grd_thread.memory_counted. It is the upper 32 bits. */
static int64_t counted_blocks(int64_t counted)
{
    return (counted - counted_bytes(counted)) / (INT64_C(1) << 32);
}

/* Adds this thread's counter to the shared counters and sets it to 0. The order of these two steps depends on the counter's sign. In the wrong order,
 * a thread that sums all counters between the two steps would get too large a sum, and could refuse an allocation that fits into the limit. */
void grd_memory_publish(void)
{
    const int64_t counted = load(&grd_thread.memory_counted), bytes = counted_bytes(counted);
    raise_peak(load(&shared_bytes) + grd_thread.memory_high);
    grd_thread.memory_high = 0;
    if (bytes < 0)
        add(&shared_bytes, bytes);
    store(&grd_thread.memory_counted, 0);
    if (bytes > 0)
        add(&shared_bytes, bytes);
    add(&shared_blocks, counted_blocks(counted));
}

/* Counts one block of `bytes` bytes as allocated (`sign` 1) or freed (`sign` -1). For a block of more than GRD_MEMORY_SLACK bytes the shared
 * counters change at once, for a smaller one only this thread's counter. */
static void count(int sign, int64_t bytes)
{
    if (bytes > GRD_MEMORY_SLACK) {
        grd_memory_publish();
        raise_peak(add(&shared_bytes, sign * bytes));
        add(&shared_blocks, sign);
        return;
    }
    grd_thread_get_cold(); /* adds this thread to the list that sum_counters reads */
    if (sign > 0)
        grd_count_alloc((size_t)bytes);
    else
        grd_count_free((size_t)bytes);
}

/* Writes the bytes and the number of blocks in use. They are the sums of the shared counters and the counters of all threads. */
static void sum_counters(int64_t *ret_bytes, int64_t *ret_blocks)
{
    pthread_mutex_lock(&threads_lock);
    int64_t bytes = load(&shared_bytes), blocks = load(&shared_blocks);
    for (struct grd_thread_cold *t = threads; t != NULL; t = t->next) {
        int64_t counted = load(&t->owner->memory_counted);
        bytes += counted_bytes(counted);
        blocks += counted_blocks(counted);
    }
    pthread_mutex_unlock(&threads_lock);
    *ret_bytes = bytes;
    *ret_blocks = blocks;
}

/* ---- Allocation ------------------------------------------------------------------------------------------------------ */

static void update_watched(void)
{
    atomic_store(&grd_memory_watched, load(&limit_bytes) > 0 || load(&fail_countdown) > 0);
}

/* True if a test has ordered, with grd_memory_fail_at, that this allocation fails. */
static bool ordered_to_fail(void)
{
    int64_t left = load(&fail_countdown);
    while (left > 0) {
        if (left == 1 && atomic_load(&fail_forever))
            return true;
        if (atomic_compare_exchange_weak(&fail_countdown, &left, left - 1)) {
            if (left == 1)
                update_watched();
            return left == 1;
        }
    }
    return false;
}

/* Counts an allocation of `size` bytes while grd_memory_watched is set. If a test makes the allocation fail, or if the allocation would exceed the
 * limit, counts nothing and returns false, with MemoryError. Before an allocation is refused because of the limit, all counters are summed. The
 * shared counters alone may still contain blocks that other threads have freed. */
static bool admit(size_t size)
{
    if (ordered_to_fail())
        return grd_raise(GRD_ERROR_MEMORY, "cannot allocate %zu bytes: the failure a test asked for", size);
    grd_memory_publish();
    int64_t counted = counted_size(size), total = add(&shared_bytes, counted), limit = load(&limit_bytes);
    if (limit > 0 && total > limit) {
        int64_t blocks;
        sum_counters(&total, &blocks); /* corrects `total`, which may still count bytes that other threads have freed */
        if (total > limit) {
            add(&shared_bytes, -counted);
            return grd_raise(GRD_ERROR_MEMORY, "cannot allocate %zu bytes: %lld are in use and the limit is %lld", size,
                             (long long)(total - counted), (long long)limit);
        }
    }
    add(&shared_blocks, 1);
    raise_peak(total);
    return true;
}

/* Allocates a block of `size` bytes and counts it. Returns NULL, with MemoryError, on failure. Sets *ret_zero to true if all bytes of the block
 * are known to be zero, otherwise to false. */
static __attribute__((noinline)) void *take(size_t size, bool *ret_zero)
{
    *ret_zero = false;
    if (size > GRD_BLOCK_MAX) {
        grd_raise(GRD_ERROR_MEMORY, "cannot allocate %zu bytes", size);
        return NULL;
    }
    bool watching = atomic_load_explicit(&grd_memory_watched, memory_order_relaxed);
    if (watching && !admit(size))
        return NULL;
    void *block = grd_block_take(size, ret_zero);
    if (block == NULL) {
        if (watching) {
            add(&shared_bytes, -counted_size(size));
            add(&shared_blocks, -1);
        }
        grd_raise(GRD_ERROR_MEMORY, "cannot allocate %zu bytes", size);
        return NULL;
    }
    if (!watching)
        count(1, counted_size(size));
    return block;
}

void *grd_alloc_slow(size_t size)
{
    bool zero;
    return take(size, &zero);
}

void *grd_alloc(size_t size)
{
    return GRD_LIKELY(size <= GRD_SMALL_MAX) ? grd_small_alloc(size) : grd_alloc_slow(size);
}

void *grd_alloc_zeroed(size_t size)
{
    bool zero = false;
    void *block = size <= GRD_SMALL_MAX ? grd_alloc(size) : take(size, &zero);
    if (block != NULL && !zero)
        memset(block, 0, size);
    return block;
}

void grd_free_slow(void *block, size_t size)
{
    grd_block_give(block, size);
    count(-1, counted_size(size));
}

void grd_free(void *block, size_t size)
{
    if (block == NULL)
        return;
    if (GRD_LIKELY(size <= GRD_SMALL_MAX))
        grd_small_free(block, size);
    else
        grd_free_slow(block, size);
}

void *grd_realloc(void *block, size_t old_size, size_t new_size)
{
    if (block == NULL)
        return grd_alloc(new_size);
    /* The block is reused in place if both sizes have the same size class and add the same number of bytes to the count of memory in use. */
    if (!GRD_BLOCKS_SANITIZED && new_size <= GRD_BLOCK_MAX && grd_block_size(old_size) == grd_block_size(new_size) &&
        counted_size(old_size) == counted_size(new_size))
        return block;
    void *moved = grd_alloc(new_size);
    if (moved == NULL)
        return NULL;
    memcpy(moved, block, old_size < new_size ? old_size : new_size);
    grd_free(block, old_size);
    return moved;
}

bool grd_reserve(void *list, int64_t n, int64_t *capacity, size_t item)
{
    if (n <= *capacity)
        return true;
    const int64_t twice = *capacity > 0 ? 2 * *capacity : 16, wanted = n > twice ? n : twice;
    void *block;
    memcpy(&block, list, sizeof block);
    block = grd_realloc(block, (size_t)*capacity * item, (size_t)wanted * item);
    if (block == NULL)
        return false;
    memcpy(list, &block, sizeof block);
    *capacity = wanted;
    return true;
}

/* ---- What is kept ------------------------------------------------------------------------------------------------------ */

/* Limits on the bytes of free extents (runs of pages) that are kept for reuse. cache_limit is set by grd_memory_set_cache_limit. While cache_limit is
 * negative, default_cache_limit applies. default_cache_limit is the value of the environment variable GRADUS_CACHE_LIMIT, or negative if this
 * variable is not set or not valid. */
static _Atomic int64_t cache_limit = -1;
static int64_t default_cache_limit = -1;

/* Returns the number of bytes that a text such as "512M" means. The text is digits, optionally followed by K, M, G or T for a power of 1024.
 * Returns -1 for any other text. */
static int64_t parse_bytes(const char *text)
{
    static const char units[] = "KMGT";
    if (*text < '0' || *text > '9')
        return -1;
    char *end;
    const unsigned long long number = strtoull(text, &end, 10);
    const char *unit = *end != '\0' ? strchr(units, *end) : NULL;
    const unsigned shift = unit != NULL ? 10 * (unsigned)(unit - units + 1) : 0;
    const bool is_whole = end[unit != NULL] == '\0';
    return is_whole && number <= (unsigned long long)INT64_MAX >> shift ? (int64_t)(number << shift) : -1;
}

static void read_default_cache_limit(void)
{
    const char *text = getenv("GRADUS_CACHE_LIMIT");
    default_cache_limit = text != NULL ? parse_bytes(text) : -1;
}

/* Returns the limit that applies now to the bytes of free extents that are kept for reuse, or a negative number if there is none. */
static int64_t current_cache_limit(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, read_default_cache_limit);
    const int64_t set = load(&cache_limit);
    return set >= 0 ? set : default_cache_limit;
}

/* Sets how many bytes of free extents (runs of pages) are kept for reuse: current_cache_limit() bytes, but at most half of the memory limit if one
 * is set. */
static void limit_cache(void)
{
    const int64_t set = current_cache_limit(), in_use = load(&limit_bytes);
    int64_t bytes = set >= 0 ? set : INT64_MAX;
    if (in_use > 0 && in_use / 2 < bytes)
        bytes = in_use / 2;
    grd_extents_set_limit(bytes);
}

/* ---- Threads and forks ------------------------------------------------------------------------------------------------- */

/* Runs in the child of a fork, where only the forking thread exists. The blocks of the other threads stay counted as in use. The blocks in
 * their free lists are not used again, because a thread may have been changing its lists at the time of the fork. */
static void after_fork(void)
{
    struct grd_thread_cold *self = NULL;
    for (struct grd_thread_cold *t = threads; t != NULL; t = t->next) {
        if (t->owner == &grd_thread) {
            self = t;
        } else {
            add(&shared_bytes, counted_bytes(load(&t->owner->memory_counted)));
            add(&shared_blocks, counted_blocks(load(&t->owner->memory_counted)));
        }
    }
    threads = self;
    if (self != NULL)
        self->next = self->previous = NULL;
}

static void start(void)
{
    static struct grd_held_lock held = {.lock = &threads_lock};
    pthread_atfork(NULL, NULL, after_fork);
    grd_extents_init();
    grd_slabs_init();
    grd_hold_around_fork(&held);
    limit_cache();
}

void grd_memory_thread_start(struct grd_thread_cold *cold)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, start);
    grd_blocks_start(cold);
    pthread_mutex_lock(&threads_lock);
    cold->previous = NULL;
    cold->next = threads;
    if (threads != NULL)
        threads->previous = cold;
    threads = cold;
    pthread_mutex_unlock(&threads_lock);
}

void grd_memory_thread_exit(void)
{
    struct grd_thread_cold *cold = grd_thread.cold;
    grd_blocks_share();
    for (unsigned class = 0; class < GRD_SMALL_CLASSES; class ++)
        grd_thread.small[class].room = 0;
    grd_memory_publish();
    pthread_mutex_lock(&threads_lock);
    *(cold->previous != NULL ? &cold->previous->next : &threads) = cold->next;
    if (cold->next != NULL)
        cold->next->previous = cold->previous;
    pthread_mutex_unlock(&threads_lock);
}

/* ---- The public part --------------------------------------------------------------------------------------------------- */

grd_memory_stats grd_memory_get_stats(void)
{
    raise_peak(load(&shared_bytes) + grd_thread.memory_high);
    grd_memory_stats stats = {.limit = load(&limit_bytes), .cache_limit = current_cache_limit()};
    sum_counters(&stats.allocated, &stats.blocks);
    raise_peak(stats.allocated);
    stats.peak = load(&peak_bytes);
    const int64_t held = grd_extents_held(), most_held = grd_extents_most_held();
    stats.cached = held > stats.allocated ? held - stats.allocated : 0;
    stats.peak_held = most_held > stats.peak ? most_held : stats.peak;
    return stats;
}

void grd_memory_reset_peak(void)
{
    grd_memory_publish();
    int64_t bytes, blocks;
    sum_counters(&bytes, &blocks);
    store(&peak_bytes, bytes);
    grd_extents_reset_most_held();
}

void grd_memory_set_limit(int64_t bytes)
{
    store(&limit_bytes, bytes > 0 ? bytes : 0);
    update_watched();
    limit_cache();
}

void grd_memory_set_cache_limit(int64_t bytes)
{
    store(&cache_limit, bytes >= 0 ? bytes : -1);
    limit_cache();
}

static void (*release_kept)(void);

void grd_memory_on_trim(void (*release)(void))
{
    release_kept = release;
}

void grd_memory_trim(void)
{
    if (release_kept != NULL)
        release_kept();
    grd_blocks_trim();
}

void grd_memory_fail_at(int64_t n, bool forever)
{
    atomic_store(&fail_forever, forever);
    store(&fail_countdown, n > 0 ? n : 0);
    update_watched();
}
