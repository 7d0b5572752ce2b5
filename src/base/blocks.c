/* Where free blocks are, and how they move; see blocks.h.
 *
 * A block goes through three places: the free lists of a thread (small and medium blocks, no lock), the shared lists (one lock for small
 * blocks, one for the rest), the system. Small blocks are cut from slabs; every other block is one block of the system, through mmap
 * above 1 MiB.
 *
 * Invariants
 * - A block's class follows from the size asked for, so the size given back is all that is needed to find it.
 * - No lock is held while another is taken, except around a fork. */
#define _GNU_SOURCE /* madvise, MAP_ANONYMOUS */
#include "base/blocks.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#if GRD_BLOCKS_SANITIZED
#include <stdio.h>
#endif
#if GRD_BLOCKS_SANITIZED || defined(__GLIBC__)
#include <malloc.h>
#endif

#include "base/cpu.h"

enum {
    MAPPED_MIN = 1024 * 1024, /* above it: mmap */
    HUGE_PAGE = 2 * 1024 * 1024,
    SLAB_SIZE = 64 * 1024,
    LIST_BYTES = 64 * 1024, /* a thread's free list of one small class holds about this much at most */
    MEDIUM_BYTES = 128 * 1024,
    REFILL_BYTES = 8 * 1024,
    LARGE_CLASSES = 40 + (GRD_BLOCK_MAX_LOG - 20) * 16
};

/* ---- Classes ------------------------------------------------------------------------------------------------------------- */

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

size_t grd_block_size(size_t size)
{
    return size <= GRD_SMALL_MAX ? grd_small_size(grd_small_class(size)) : large_class_of(size).size;
}

/* The block size of a medium class: the inverse of large_class_of. */
static size_t medium_size(unsigned index)
{
    return (size_t)(index % 4 + 5) << (index / 4 + 8);
}

/* ---- The system ---------------------------------------------------------------------------------------------------------- */

static _Atomic int64_t system_bytes; /* taken from the system and not given back */

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
    munmap(map + before + size, align - before);
#ifdef MADV_HUGEPAGE
    madvise(map + before, size, MADV_HUGEPAGE);
#endif
    return map + before;
}

static void *system_alloc_once(size_t size, size_t align)
{
    if (!GRD_BLOCKS_SANITIZED && size > MAPPED_MIN)
        return map_block(size);
    void *block = NULL;
    return posix_memalign(&block, align, size > 0 ? size : 1) == 0 ? block : NULL;
}

/* NULL when there is no memory even without what is cached. */
static void *system_alloc(size_t size, size_t align)
{
    void *block = system_alloc_once(size, align);
    if (block == NULL && !GRD_BLOCKS_SANITIZED) {
        grd_blocks_trim();
        block = system_alloc_once(size, align);
    }
    if (block != NULL)
        atomic_fetch_add_explicit(&system_bytes, (int64_t)size, memory_order_relaxed);
    return block;
}

static void system_free(void *block, size_t size)
{
    if (!GRD_BLOCKS_SANITIZED && size > MAPPED_MIN)
        munmap(block, size);
    else
        free(block);
    atomic_fetch_sub_explicit(&system_bytes, (int64_t)size, memory_order_relaxed);
}

int64_t grd_blocks_held(void)
{
    return atomic_load_explicit(&system_bytes, memory_order_relaxed);
}

/* ---- Small blocks: slabs cut into blocks of one class -------------------------------------------------------------------- */

/* At the start of a slab, which is aligned to its size. */
struct slab {
    uint32_t blocks, idle; /* idle: blocks in the shared list, known only while trimming */
    struct slab *next;     /* while trimming */
};

static pthread_mutex_t small_lock = PTHREAD_MUTEX_INITIALIZER;
static void *small_shared[GRD_SMALL_CLASSES];

static inline struct slab *slab_of(void *block)
{
    return (struct slab *)((uintptr_t)block & ~(uintptr_t)(SLAB_SIZE - 1));
}

static bool cut_slab(unsigned class)
{
    struct slab *slab = system_alloc(SLAB_SIZE, SLAB_SIZE);
    if (slab == NULL)
        return false;
    size_t size = grd_small_size(class);
    char *first = (char *)slab + 64;
    uint32_t n = (uint32_t)((SLAB_SIZE - 64) / size);
    *slab = (struct slab){.blocks = n};
    for (uint32_t i = 0; i + 1 < n; i++)
        grd_link_block(first + i * size, first + (i + 1) * size);
    char *last = first + (n - 1) * size;
    pthread_mutex_lock(&small_lock);
    grd_link_block(last, small_shared[class]);
    small_shared[class] = first;
    pthread_mutex_unlock(&small_lock);
    return true;
}

static void *take_shared_small(unsigned class)
{
    int64_t n = 0, wanted = REFILL_BYTES / (int64_t)grd_small_size(class);
    struct grd_block_list *list = &grd_thread.small[class];
    pthread_mutex_lock(&small_lock);
    void *block = small_shared[class];
    if (block != NULL) {
        void *first = grd_next_block(block), *last = NULL;
        for (void *b = first; b != NULL && n < wanted && n < list->room; b = grd_next_block(b), n++)
            last = b;
        small_shared[class] = first;
        if (last != NULL) {
            small_shared[class] = grd_next_block(last);
            grd_link_block(last, list->head);
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
        list->head = grd_next_block(block);
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
    for (void *b = first; b != NULL && moved < n; b = grd_next_block(b), moved++)
        last = b;
    if (last == NULL)
        return;
    list->head = grd_next_block(last);
    list->room += moved;
    pthread_mutex_lock(&small_lock);
    grd_link_block(last, small_shared[class]);
    small_shared[class] = first;
    pthread_mutex_unlock(&small_lock);
}

static void give_small(void *block, unsigned class)
{
    struct grd_block_list *list = &grd_thread.small[class];
    if (list->room == 0 && grd_thread_get_cold() != NULL && list->room == 0)
        share_small(class, LIST_BYTES / (int64_t)grd_small_size(class) / 2);
    grd_link_block(block, list->head);
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
    for (void *b = small_shared[class]; b != NULL; b = grd_next_block(b))
        slab_of(b)->idle = 0;
    for (void *b = small_shared[class]; b != NULL; b = grd_next_block(b))
        slab_of(b)->idle++;
    void *rest = NULL;
    for (void *b = small_shared[class], *next; b != NULL; b = next) {
        next = grd_next_block(b);
        struct slab *slab = slab_of(b);
        if (slab->idle < slab->blocks) {
            grd_link_block(b, rest);
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
static size_t large_cached;        /* bytes in these lists */
static _Atomic int64_t wanted_cap; /* 0: none */

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

/* A quarter of the memory this process may use, or less when asked. */
static size_t current_cap(void)
{
    int64_t memory = grd_system_memory() / 4, wanted = atomic_load_explicit(&wanted_cap, memory_order_relaxed);
    return (size_t)(wanted > 0 && wanted < memory ? wanted : memory);
}

void grd_blocks_set_cap(int64_t bytes)
{
    atomic_store_explicit(&wanted_cap, bytes, memory_order_relaxed);
    shrink_large(current_cap());
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
            list->head = grd_next_block(block);
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
            grd_link_block(block, list->head);
            list->head = block;
            list->room--;
            return;
        }
    }
    share_large(block, class);
}

/* ---- Any block ----------------------------------------------------------------------------------------------------------- */

#if GRD_BLOCKS_SANITIZED
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

void *grd_block_take(size_t size, bool *ret_zero)
{
    if (GRD_BLOCKS_SANITIZED)
        return system_alloc(size, size >= 64 ? 64 : 16);
    return size <= GRD_SMALL_MAX ? take_small(grd_small_class(size)) : take_large(size, ret_zero);
}

void grd_block_give(void *block, size_t size)
{
    if (GRD_BLOCKS_SANITIZED) {
        check_size(block, size);
        system_free(block, size);
    } else if (size <= GRD_SMALL_MAX) {
        give_small(block, grd_small_class(size));
    } else {
        give_large(block, size);
    }
}

void grd_blocks_start(struct grd_thread_cold *cold)
{
    for (unsigned class = 0; class < GRD_SMALL_CLASSES; class ++)
        grd_thread.small[class].room = LIST_BYTES / (int64_t)grd_small_size(class);
    for (unsigned index = 0; index < GRD_MEDIUM_CLASSES; index++) {
        int64_t room = MEDIUM_BYTES / (int64_t)medium_size(index);
        cold->medium[index].room = room < 16 ? room : 16;
    }
}

void grd_blocks_share(void)
{
    for (unsigned class = 0; class < GRD_SMALL_CLASSES; class ++)
        share_small(class, INT64_MAX);
    if (grd_thread.cold == NULL)
        return;
    for (unsigned index = 0; index < GRD_MEDIUM_CLASSES; index++) {
        struct grd_block_list *list = &grd_thread.cold->medium[index];
        while (list->head != NULL) {
            void *block = list->head;
            list->head = grd_next_block(block);
            list->room++;
            share_large(block, (struct large_class){index, medium_size(index)});
        }
    }
}

void grd_blocks_trim(void)
{
    grd_blocks_share();
    for (unsigned class = 0; class < GRD_SMALL_CLASSES; class ++)
        trim_small(class);
    shrink_large(0);
#if defined(__GLIBC__) && !GRD_BLOCKS_SANITIZED
    malloc_trim(0);
#endif
}

void grd_blocks_lock(void)
{
    pthread_mutex_lock(&small_lock);
    pthread_mutex_lock(&large_lock);
}

void grd_blocks_unlock(void)
{
    pthread_mutex_unlock(&large_lock);
    pthread_mutex_unlock(&small_lock);
}
