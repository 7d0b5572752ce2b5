/* The host allocator: who holds which free block, and how many bytes are in use.
 *
 * A block goes through three places: the free lists of a thread (small and medium blocks, no lock), the shared lists
 * (one lock for small blocks, one for the rest), the system. Small blocks are cut from slabs; every other block is one
 * block of the system, through mmap above 1 MiB.
 *
 * Invariants
 * - A block's class follows from the size asked for, so the size given to grd_free is all that is needed to find it.
 * - The sum of the shared counters and the counters of all threads is what is in use. A thread tells the shared
 *   counters when its own go beyond SLACK, or at every allocation while a limit is set.
 * - No lock is held while another is taken, or while an error is raised.
 * - Under AddressSanitizer nothing is cached, so that it sees every block. */
#define _GNU_SOURCE /* madvise, MAP_ANONYMOUS */
#include "base/memory.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/cold.h"
#include "base/cpu.h"
#include "base/error.h"
#include "base/thread.h"
#include "gradus/runtime.h"

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifdef SANITIZED
#include <malloc.h>
#include <stdio.h>
#else
#define SANITIZED 0
#ifdef __GLIBC__
#include <malloc.h>
#endif
#endif

enum {
    SMALL_MAX = 1024,
    MAPPED_MIN = 1024 * 1024, /* above it: mmap */
    HUGE_PAGE = 2 * 1024 * 1024,
    SLAB_SIZE = 64 * 1024,
    LIST_BYTES = 64 * 1024,   /* a thread's free list of one small class holds about this much at most */
    MEDIUM_BYTES = 128 * 1024,
    REFILL_BYTES = 8 * 1024,
    SLACK = 256 * 1024,
    MAX_LOG = SANITIZED ? 39 : 47, /* AddressSanitizer ends the process when asked for more */
    LARGE_CLASSES = 40 + (MAX_LOG - 20) * 16
};
#define MAX_SIZE ((size_t)1 << MAX_LOG)

/* ---- Sizes and classes ---------------------------------------------------------------------------------------------- */

static inline unsigned small_class(size_t size)
{
    return size <= 32 ? 0 : (unsigned)((size + 63) / 64);
}

static inline size_t small_size(unsigned class)
{
    return class == 0 ? 32 : (size_t)class * 64;
}

struct large_class {
    unsigned index;
    size_t size; /* bytes of a block of the class */
};

/* Four sizes for each power of two up to 1 MiB, sixteen above. The first GRD_MEDIUM_CLASSES are the medium ones. */
static struct large_class large_class_of(size_t size)
{
    unsigned log = 63 - (unsigned)__builtin_clzll(size - 1);
    unsigned bits = log < 20 ? 2 : 4;
    unsigned step = (unsigned)((size - 1) >> (log - bits)) - (1u << bits);
    unsigned base = log < 20 ? (log - 10) * 4 : 40 + (log - 20) * 16;
    return (struct large_class){base + step, ((size_t)step + 1 + ((size_t)1 << bits)) << (log - bits)};
}

static size_t class_size(size_t size)
{
    return size <= SMALL_MAX ? small_size(small_class(size)) : large_class_of(size).size;
}

/* What a block counts for: small ones their class, larger ones what was asked for. */
static inline int64_t counted_size(size_t size)
{
    return (int64_t)(size <= SMALL_MAX ? small_size(small_class(size)) : (size + 63) / 64 * 64);
}

/* ---- Counters ------------------------------------------------------------------------------------------------------- */

static _Atomic int64_t shared_bytes, shared_blocks, peak_bytes;
static _Atomic int64_t system_bytes; /* taken from the system and not given back */
static _Atomic int64_t limit_bytes;
static _Atomic int64_t fail_countdown;
static atomic_bool fail_forever;
/* A limit is set or a failure is ordered: every allocation takes the slow path. */
static atomic_bool watched;

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
    while (bytes > peak && !atomic_compare_exchange_weak_explicit(&peak_bytes, &peak, bytes, memory_order_relaxed,
                                                                  memory_order_relaxed))
        continue;
}

/* Tells the shared counters. Its own are cleared first: a reader in between counts too little, and so never fails an
 * allocation that fits. */
static __attribute__((noinline)) void publish(void)
{
    int64_t bytes = load(&grd_thread.memory_bytes), blocks = load(&grd_thread.memory_blocks);
    raise_peak(load(&shared_bytes) + grd_thread.memory_high);
    grd_thread.memory_high = 0;
    store(&grd_thread.memory_bytes, 0);
    store(&grd_thread.memory_blocks, 0);
    add(&shared_bytes, bytes);
    add(&shared_blocks, blocks);
}

static inline void count_alloc(int64_t bytes)
{
    int64_t now = load(&grd_thread.memory_bytes) + bytes;
    store(&grd_thread.memory_bytes, now);
    store(&grd_thread.memory_blocks, load(&grd_thread.memory_blocks) + 1);
    if (GRD_UNLIKELY(now > grd_thread.memory_high)) {
        grd_thread.memory_high = now;
        if (now > SLACK)
            publish();
    }
}

static inline void count_free(int64_t bytes)
{
    int64_t now = load(&grd_thread.memory_bytes) - bytes;
    store(&grd_thread.memory_bytes, now);
    store(&grd_thread.memory_blocks, load(&grd_thread.memory_blocks) - 1);
    if (GRD_UNLIKELY(now < -SLACK))
        publish();
}

static void sum_counters(int64_t *ret_bytes, int64_t *ret_blocks)
{
    pthread_mutex_lock(&threads_lock);
    int64_t bytes = load(&shared_bytes), blocks = load(&shared_blocks);
    for (struct grd_thread_cold *t = threads; t != NULL; t = t->next) {
        bytes += load(&t->owner->memory_bytes);
        blocks += load(&t->owner->memory_blocks);
    }
    pthread_mutex_unlock(&threads_lock);
    *ret_bytes = bytes;
    *ret_blocks = blocks;
}

/* ---- The system ----------------------------------------------------------------------------------------------------- */

static void *map_block(size_t size)
{
    size_t align = size >= 2 * (size_t)HUGE_PAGE ? HUGE_PAGE : 0;
    char *map = mmap(NULL, size + align, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED)
        return NULL;
    if (align == 0)
        return map;
    size_t before = (size_t)(-(uintptr_t)map & (HUGE_PAGE - 1));
    if (before > 0)
        munmap(map, before);
    if (before < align)
        munmap(map + before + size, align - before);
#ifdef MADV_HUGEPAGE
    madvise(map + before, size, MADV_HUGEPAGE);
#endif
    return map + before;
}

static void *system_alloc_once(size_t size, size_t align)
{
    if (!SANITIZED && size > MAPPED_MIN)
        return map_block(size);
    void *block = NULL;
    return posix_memalign(&block, align, size > 0 ? size : 1) == 0 ? block : NULL;
}

/* NULL, with no error raised, when there is no memory even without what is cached. */
static void *system_alloc(size_t size, size_t align)
{
    void *block = system_alloc_once(size, align);
    if (block == NULL && !SANITIZED) {
        grd_memory_trim();
        block = system_alloc_once(size, align);
    }
    if (block != NULL)
        add(&system_bytes, (int64_t)size);
    return block;
}

static void system_free(void *block, size_t size)
{
    if (!SANITIZED && size > MAPPED_MIN)
        munmap(block, size);
    else
        free(block);
    add(&system_bytes, -(int64_t)size);
}

/* ---- Small blocks: slabs cut into blocks of one class ----------------------------------------------------------------- */

/* At the start of a slab, which is aligned to its size. */
struct slab {
    uint32_t blocks, idle; /* idle: blocks in the shared list, known only while trimming */
    struct slab *next;     /* while trimming */
};

static pthread_mutex_t small_lock = PTHREAD_MUTEX_INITIALIZER;
static void *small_shared[GRD_SMALL_CLASSES];

static inline void *next_of(const void *block)
{
    return *(void *const *)block;
}

static inline void link_block(void *block, void *next)
{
    *(void **)block = next;
}

static inline struct slab *slab_of(void *block)
{
    return (struct slab *)((uintptr_t)block & ~(uintptr_t)(SLAB_SIZE - 1));
}

static bool cut_slab(unsigned class)
{
    struct slab *slab = system_alloc(SLAB_SIZE, SLAB_SIZE);
    if (slab == NULL)
        return false;
    size_t size = small_size(class);
    char *first = (char *)slab + 64;
    uint32_t n = (uint32_t)((SLAB_SIZE - 64) / size);
    *slab = (struct slab){.blocks = n};
    for (uint32_t i = 0; i + 1 < n; i++)
        link_block(first + i * size, first + (i + 1) * size);
    char *last = first + (n - 1) * size;
    pthread_mutex_lock(&small_lock);
    link_block(last, small_shared[class]);
    small_shared[class] = first;
    pthread_mutex_unlock(&small_lock);
    return true;
}

static void *take_shared_small(unsigned class)
{
    int64_t n = 0, wanted = REFILL_BYTES / (int64_t)small_size(class);
    struct grd_block_list *list = &grd_thread.small[class];
    pthread_mutex_lock(&small_lock);
    void *block = small_shared[class];
    if (block != NULL) {
        void *first = next_of(block), *last = NULL;
        for (void *b = first; b != NULL && n < wanted && n < list->room; b = next_of(b), n++)
            last = b;
        small_shared[class] = first;
        if (last != NULL) {
            small_shared[class] = next_of(last);
            link_block(last, list->head);
            list->head = first;
            list->room -= n;
        }
    }
    pthread_mutex_unlock(&small_lock);
    return block;
}

static void *take_small(unsigned class)
{
    /* The list is empty unless failures are watched, or the thread is new. */
    struct grd_block_list *list = &grd_thread.small[class];
    if (list->head != NULL) {
        void *block = list->head;
        list->head = next_of(block);
        list->room++;
        return block;
    }
    if (grd_thread_get_cold() == NULL)
        return NULL;
    void *block = take_shared_small(class);
    while (block == NULL) {
        if (!cut_slab(class))
            return NULL;
        block = take_shared_small(class);
    }
    return block;
}

/* Hands the first n blocks of a list of this thread over. */
static void share_small(unsigned class, int64_t n)
{
    struct grd_block_list *list = &grd_thread.small[class];
    void *first = list->head, *last = NULL;
    int64_t moved = 0;
    for (void *b = first; b != NULL && moved < n; b = next_of(b), moved++)
        last = b;
    if (last == NULL)
        return;
    list->head = next_of(last);
    list->room += moved;
    pthread_mutex_lock(&small_lock);
    link_block(last, small_shared[class]);
    small_shared[class] = first;
    pthread_mutex_unlock(&small_lock);
}

static void give_small(void *block, unsigned class)
{
    struct grd_block_list *list = &grd_thread.small[class];
    if (list->room == 0 && grd_thread_get_cold() != NULL && list->room == 0)
        share_small(class, LIST_BYTES / (int64_t)small_size(class) / 2);
    link_block(block, list->head);
    list->head = block;
    list->room--;
    if (grd_thread.cold == NULL)
        share_small(class, 1);
}

/* Gives back the slabs all of whose blocks are in the shared list. */
static void trim_small(unsigned class)
{
    struct slab *empty = NULL;
    pthread_mutex_lock(&small_lock);
    for (void *b = small_shared[class]; b != NULL; b = next_of(b))
        slab_of(b)->idle = 0;
    for (void *b = small_shared[class]; b != NULL; b = next_of(b))
        slab_of(b)->idle++;
    void *rest = NULL;
    for (void *b = small_shared[class], *next; b != NULL; b = next) {
        next = next_of(b);
        struct slab *slab = slab_of(b);
        if (slab->idle < slab->blocks) {
            link_block(b, rest);
            rest = b;
        } else if (b == (char *)slab + 64) {
            slab->next = empty;
            empty = slab;
        }
    }
    small_shared[class] = rest;
    pthread_mutex_unlock(&small_lock);
    while (empty != NULL) {
        struct slab *slab = empty;
        empty = slab->next;
        system_free(slab, SLAB_SIZE);
    }
}

/* ---- Larger blocks: one list per class and one list by age, in the free blocks themselves -------------------------------- */

struct free_block {
    struct free_block *next, *previous; /* in the class */
    struct free_block *newer, *older;
    struct large_class class;
};

static pthread_mutex_t large_lock = PTHREAD_MUTEX_INITIALIZER;
static struct free_block *large_shared[LARGE_CLASSES];
static struct free_block *newest, *oldest;
static size_t large_cached; /* bytes in these lists */

/* Under large_lock. */
static void unlink_large(struct free_block *block)
{
    *(block->previous != NULL ? &block->previous->next : &large_shared[block->class.index]) = block->next;
    if (block->next != NULL)
        block->next->previous = block->previous;
    *(block->newer != NULL ? &block->newer->older : &newest) = block->older;
    *(block->older != NULL ? &block->older->newer : &oldest) = block->newer;
    large_cached -= block->class.size;
}

static void free_chain(struct free_block *chain)
{
    while (chain != NULL) {
        struct free_block *block = chain;
        chain = block->next;
        system_free(block, block->class.size);
    }
}

/* Gives the oldest free blocks back until at most `bytes` are held. */
static void shrink_large(size_t bytes)
{
    struct free_block *chain = NULL;
    pthread_mutex_lock(&large_lock);
    while (large_cached > bytes) {
        struct free_block *block = oldest;
        unlink_large(block);
        block->next = chain;
        chain = block;
    }
    pthread_mutex_unlock(&large_lock);
    free_chain(chain);
}

/* A quarter of the memory this process may use, or half of the limit. */
static size_t current_cap(void)
{
    int64_t memory = grd_system_memory() / 4, limit = load(&limit_bytes) / 2;
    return (size_t)(limit > 0 && limit < memory ? limit : memory);
}

static void share_large(void *memory, struct large_class class)
{
    size_t cap = current_cap();
    struct free_block *block = memory;
    *block = (struct free_block){.class = class};
    pthread_mutex_lock(&large_lock);
    block->next = large_shared[class.index];
    if (block->next != NULL)
        block->next->previous = block;
    large_shared[class.index] = block;
    block->older = newest;
    *(newest != NULL ? &newest->newer : &oldest) = block;
    newest = block;
    large_cached += class.size;
    bool full = large_cached > cap;
    pthread_mutex_unlock(&large_lock);
    if (full)
        shrink_large(cap);
}

/* Sets *ret_zero when the block is known to be all zero. */
static void *take_large(size_t size, bool *ret_zero)
{
    struct large_class class = large_class_of(size);
    if (class.index < GRD_MEDIUM_CLASSES && grd_thread.cold != NULL) {
        struct grd_block_list *list = &grd_thread.cold->medium[class.index];
        void *block = list->head;
        if (block != NULL) {
            list->head = next_of(block);
            list->room++;
            return block;
        }
    }
    pthread_mutex_lock(&large_lock);
    struct free_block *block = large_shared[class.index];
    if (block != NULL)
        unlink_large(block);
    pthread_mutex_unlock(&large_lock);
    if (block != NULL)
        return block;
    *ret_zero = class.size > MAPPED_MIN;
    return system_alloc(class.size, 64);
}

static void give_large(void *block, size_t size)
{
    struct large_class class = large_class_of(size);
    if (class.index < GRD_MEDIUM_CLASSES && grd_thread.cold != NULL) {
        struct grd_block_list *list = &grd_thread.cold->medium[class.index];
        if (list->room > 0) {
            link_block(block, list->head);
            list->head = block;
            list->room--;
            return;
        }
    }
    share_large(block, class);
}

/* The block size of a medium class: the inverse of large_class_of. */
static size_t medium_size(unsigned index)
{
    return (size_t)(index % 4 + 5) << (index / 4 + 8);
}

/* Hands all free blocks of this thread to the shared lists. */
static void share_all(void)
{
    for (unsigned class = 0; class < GRD_SMALL_CLASSES; class++)
        share_small(class, INT64_MAX);
    if (grd_thread.cold == NULL)
        return;
    for (unsigned index = 0; index < GRD_MEDIUM_CLASSES; index++) {
        struct grd_block_list *list = &grd_thread.cold->medium[index];
        while (list->head != NULL) {
            void *block = list->head;
            list->head = next_of(block);
            list->room++;
            share_large(block, (struct large_class){index, medium_size(index)});
        }
    }
}

/* ---- Allocation ------------------------------------------------------------------------------------------------------ */

static void update_watched(void)
{
    atomic_store(&watched, load(&limit_bytes) > 0 || load(&fail_countdown) > 0);
}

/* Whether the failure a test ordered is due. */
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

/* Checks and counts an allocation while watched. False, with MemoryError, when it may not be. */
static bool admit(size_t size)
{
    if (ordered_to_fail())
        return grd_raise(GRD_ERROR_MEMORY, "cannot allocate %zu bytes: the failure a test asked for", size);
    publish();
    int64_t counted = counted_size(size), total = add(&shared_bytes, counted), limit = load(&limit_bytes);
    if (limit > 0 && total > limit) {
        int64_t blocks;
        sum_counters(&total, &blocks); /* other threads may have freed and not told */
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

static __attribute__((noinline)) void *alloc_slow(size_t size, bool *ret_zero)
{
    *ret_zero = false;
    if (size > MAX_SIZE) {
        grd_raise(GRD_ERROR_MEMORY, "cannot allocate %zu bytes", size);
        return NULL;
    }
    bool watching = atomic_load_explicit(&watched, memory_order_relaxed);
    if (watching && !admit(size))
        return NULL;
    void *block;
    if (SANITIZED)
        block = system_alloc(size, size >= 64 ? 64 : 16);
    else
        block = size <= SMALL_MAX ? take_small(small_class(size)) : take_large(size, ret_zero);
    if (block == NULL) {
        if (watching) {
            add(&shared_bytes, -counted_size(size));
            add(&shared_blocks, -1);
        }
        grd_raise(GRD_ERROR_MEMORY, "cannot allocate %zu bytes", size);
        return NULL;
    }
    if (SANITIZED)
        grd_thread_get_cold(); /* so that the counters of this thread are seen */
    if (!watching)
        count_alloc(counted_size(size));
    return block;
}

void *grd_alloc(size_t size)
{
    if (GRD_LIKELY(!SANITIZED && size <= SMALL_MAX)) {
        unsigned class = small_class(size);
        struct grd_block_list *list = &grd_thread.small[class];
        void *block = list->head;
        if (GRD_LIKELY(block != NULL && !atomic_load_explicit(&watched, memory_order_relaxed))) {
            list->head = next_of(block);
            list->room++;
            count_alloc((int64_t)small_size(class));
            return block;
        }
    }
    bool zero;
    return alloc_slow(size, &zero);
}

void *grd_alloc_zeroed(size_t size)
{
    bool zero = false;
    void *block = size <= SMALL_MAX ? grd_alloc(size) : alloc_slow(size, &zero);
    if (block != NULL && !zero)
        memset(block, 0, size);
    return block;
}

#if SANITIZED
/* A wrong size is a bug of the library that AddressSanitizer cannot see. */
static void check_size(void *block, size_t size)
{
    size_t allocated = malloc_usable_size(block);
    if (allocated != (size > 0 ? size : 1)) {
        fprintf(stderr, "grd_free: a block of %zu bytes is freed as one of %zu\n", allocated, size);
        __builtin_trap();
    }
}
#else
static void check_size(void *block, size_t size)
{
    (void)block, (void)size;
}
#endif

static __attribute__((noinline)) void free_slow(void *block, size_t size)
{
    if (block == NULL)
        return;
    if (SANITIZED) {
        check_size(block, size);
        grd_thread_get_cold();
        system_free(block, size);
    } else if (size <= SMALL_MAX) {
        give_small(block, small_class(size));
    } else {
        give_large(block, size);
    }
    count_free(counted_size(size));
}

void grd_free(void *block, size_t size)
{
    if (GRD_LIKELY(!SANITIZED && size <= SMALL_MAX && block != NULL)) {
        unsigned class = small_class(size);
        struct grd_block_list *list = &grd_thread.small[class];
        if (GRD_LIKELY(list->room > 0)) {
            link_block(block, list->head);
            list->head = block;
            list->room--;
            count_free((int64_t)small_size(class));
            return;
        }
    }
    free_slow(block, size);
}

void *grd_realloc(void *block, size_t old_size, size_t new_size)
{
    if (block == NULL)
        return grd_alloc(new_size);
    /* Within a class the block stays, unless it must be counted against a limit. */
    if (!SANITIZED && new_size <= MAX_SIZE && class_size(old_size) == class_size(new_size) &&
        counted_size(old_size) == counted_size(new_size))
        return block;
    void *moved = grd_alloc(new_size);
    if (moved == NULL)
        return NULL;
    memcpy(moved, block, old_size < new_size ? old_size : new_size);
    grd_free(block, old_size);
    return moved;
}

/* ---- Threads and forks ------------------------------------------------------------------------------------------------- */

static void lock_all(void)
{
    pthread_mutex_lock(&threads_lock);
    pthread_mutex_lock(&small_lock);
    pthread_mutex_lock(&large_lock);
}

static void unlock_all(void)
{
    pthread_mutex_unlock(&large_lock);
    pthread_mutex_unlock(&small_lock);
    pthread_mutex_unlock(&threads_lock);
}

/* The child has only this thread. What the others held stays counted as in use; their free lists may have been in
 * the middle of a change and are given up. */
static void after_fork(void)
{
    struct grd_thread_cold *self = NULL;
    for (struct grd_thread_cold *t = threads; t != NULL; t = t->next) {
        if (t->owner == &grd_thread) {
            self = t;
        } else {
            add(&shared_bytes, load(&t->owner->memory_bytes));
            add(&shared_blocks, load(&t->owner->memory_blocks));
        }
    }
    threads = self;
    if (self != NULL)
        self->next = self->previous = NULL;
    unlock_all();
}

static void handle_forks(void)
{
    pthread_atfork(lock_all, unlock_all, after_fork);
}

void grd_memory_thread_start(struct grd_thread_cold *cold)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, handle_forks);
    for (unsigned class = 0; class < GRD_SMALL_CLASSES; class++)
        grd_thread.small[class].room = LIST_BYTES / (int64_t)small_size(class);
    for (unsigned index = 0; index < GRD_MEDIUM_CLASSES; index++) {
        int64_t room = MEDIUM_BYTES / (int64_t)medium_size(index);
        cold->medium[index].room = room < 16 ? room : 16;
    }
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
    if (cold == NULL)
        return;
    share_all();
    for (unsigned class = 0; class < GRD_SMALL_CLASSES; class++)
        grd_thread.small[class].room = 0;
    publish();
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
    grd_memory_stats stats = {.limit = load(&limit_bytes)};
    sum_counters(&stats.allocated, &stats.blocks);
    raise_peak(stats.allocated);
    stats.peak = load(&peak_bytes);
    int64_t cached = SANITIZED ? 0 : load(&system_bytes) - stats.allocated;
    stats.cached = cached > 0 ? cached : 0;
    return stats;
}

void grd_memory_reset_peak(void)
{
    publish();
    int64_t bytes, blocks;
    sum_counters(&bytes, &blocks);
    store(&peak_bytes, bytes);
}

void grd_memory_set_limit(int64_t bytes)
{
    store(&limit_bytes, bytes > 0 ? bytes : 0);
    update_watched();
    shrink_large(current_cap());
}

void grd_memory_trim(void)
{
    share_all();
    for (unsigned class = 0; class < GRD_SMALL_CLASSES; class++)
        trim_small(class);
    shrink_large(0);
#if defined(__GLIBC__) && !SANITIZED
    malloc_trim(0);
#endif
}

void grd_memory_fail_at(int64_t n, bool forever)
{
    atomic_store(&fail_forever, forever);
    store(&fail_countdown, n > 0 ? n : 0);
    update_watched();
}
