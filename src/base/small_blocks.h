/* Allocates and frees small memory blocks by inline code, from the free lists of this thread. It is meant for code that makes an object in each
 * call; all other code calls grd_alloc and grd_free. If a list is empty or full, the slow functions of memory.c do the work. */
#ifndef GRD_BASE_SMALL_BLOCKS_H
#define GRD_BASE_SMALL_BLOCKS_H

#include <stddef.h>

#include "base/thread.h"

#if defined(__SANITIZE_ADDRESS__)
#define GRD_BLOCKS_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define GRD_BLOCKS_SANITIZED 1
#endif
#endif
#ifndef GRD_BLOCKS_SANITIZED
#define GRD_BLOCKS_SANITIZED 0
#endif

enum { GRD_SMALL_MAX = 1024 }; /* bytes of the largest small block */

/* Returns the number of the smallest small size class whose blocks hold `size` bytes. */
static inline size_t grd_small_class(size_t size)
{
    return size <= 32 ? 0 : (size + 63) / 64;
}

/* Returns the size in bytes of the blocks of small size class `class`. */
static inline size_t grd_small_size(size_t class)
{
    return class == 0 ? 32 : class * 64;
}

/* Returns the block that follows a free block in its linked list. The first word of a free block points to the next one. */
static inline void *grd_next_block(const void *block)
{
    return *(void *const *)block;
}

/* Makes `next` the successor of a free block in its linked list. */
static inline void grd_link_block(void *block, void *next)
{
    *(void **)block = next;
}

/* ---- Counting: this thread writes, others read ------------------------------------------------------------------------ */

/* A number of bytes. Each thread counts the memory that it allocates and frees. If its counter holds more bytes than this number, the thread adds the
 * counter to the shared counters of all threads. A thread's counter is one 64-bit number, with the number of bytes in one half and the number of
 * blocks in the other. */
enum { GRD_MEMORY_SLACK = 256 * 1024 };

/* True while a memory limit is set or a test makes allocations fail. Every allocation then takes the slow path. */
extern GRD_HIDDEN atomic_bool grd_memory_watched;

/* Adds this thread's counter of allocated bytes and blocks to the counters that all threads share, and sets it to 0. */
void grd_memory_publish(void);

/* Returns the number that one block of `bytes` bytes adds to a thread's counter of memory. The upper half counts blocks and the lower half bytes. */
static inline int64_t grd_counted_block(size_t bytes)
{
    return (INT64_C(1) << 32) + (int64_t)bytes;
}

/* Adds `more` to this thread's counter of memory and returns the number of bytes that the counter then holds. */
static inline int32_t grd_count(int64_t more)
{
    int64_t now = atomic_load_explicit(&grd_thread.memory_counted, memory_order_relaxed) + more;
    atomic_store_explicit(&grd_thread.memory_counted, now, memory_order_relaxed);
    return (int32_t)now;
}

static inline void grd_count_alloc(size_t bytes)
{
    int32_t now = grd_count(grd_counted_block(bytes));
    if (GRD_UNLIKELY(now > grd_thread.memory_high)) {
        grd_thread.memory_high = now;
        if (now > GRD_MEMORY_SLACK)
            grd_memory_publish();
    }
}

static inline void grd_count_free(size_t bytes)
{
    if (GRD_UNLIKELY(grd_count(-grd_counted_block(bytes)) < -GRD_MEMORY_SLACK))
        grd_memory_publish();
}

/* The two functions below are the slow paths of grd_alloc and grd_free. They are defined in memory.c. */
void *grd_alloc_slow(size_t size);
void grd_free_slow(void *block, size_t size);

/* ---- Taking and giving ----------------------------------------------------------------------------------------------------- */

/* Returns a block of at least `size` bytes from this thread's free list, without adding it to the memory counter. `size` is at most GRD_SMALL_MAX.
 * Returns NULL if the list is empty or the fast path is turned off; the caller then uses grd_alloc_slow. */
GRD_INLINE void *grd_small_take(size_t size)
{
    struct grd_block_list *list = &grd_thread.small[grd_small_class(size)];
    void *block = list->head;
    if (GRD_UNLIKELY(GRD_BLOCKS_SANITIZED || block == NULL || atomic_load_explicit(&grd_memory_watched, memory_order_relaxed)))
        return NULL;
    list->head = grd_next_block(block);
    list->room++;
    return block;
}

/* Does what grd_alloc does, by inline code, for at most GRD_SMALL_MAX bytes. */
GRD_INLINE void *grd_small_alloc(size_t size)
{
    void *block = grd_small_take(size);
    if (GRD_UNLIKELY(block == NULL))
        return grd_alloc_slow(size);
    grd_count_alloc(grd_small_size(grd_small_class(size)));
    return block;
}

/* Does what grd_free does, by inline code, for a block of at most GRD_SMALL_MAX bytes. */
GRD_INLINE void grd_small_free(void *block, size_t size)
{
    const size_t class = grd_small_class(size);
    struct grd_block_list *list = &grd_thread.small[class];
    if (GRD_UNLIKELY(GRD_BLOCKS_SANITIZED || list->room <= 0)) {
        grd_free_slow(block, size);
        return;
    }
    grd_link_block(block, list->head);
    list->head = block;
    list->room--;
    grd_count_free(grd_small_size(class));
}

#endif
