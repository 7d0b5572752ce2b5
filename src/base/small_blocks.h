/* Allocates and frees small blocks inline, from the free lists of this thread, for code that makes an object per call. A block that the lists
 * cannot serve goes to the slow functions of memory.c. All other code calls grd_alloc and grd_free. */
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

enum { GRD_SMALL_MAX = 1024 };

static inline size_t grd_small_class(size_t size)
{
    return size <= 32 ? 0 : (size + 63) / 64;
}

static inline size_t grd_small_size(size_t class)
{
    return class == 0 ? 32 : class * 64;
}

/* The first word of a free small or medium block points to the next. */
static inline void *grd_next_block(const void *block)
{
    return *(void *const *)block;
}

static inline void grd_link_block(void *block, void *next)
{
    *(void **)block = next;
}

/* ---- Counting: this thread writes, others read ------------------------------------------------------------------------ */

/* The most bytes that a thread counts before it adds them to the shared counters. Bytes and blocks share one counter of 64 bits. */
enum { GRD_MEMORY_SLACK = 256 * 1024 };

/* True while a memory limit is set or a test makes allocations fail: then every allocation takes the slow path. */
extern GRD_HIDDEN atomic_bool grd_memory_watched;

/* Adds what this thread has counted to the shared counters. */
void grd_memory_publish(void);

/* Returns what a block adds to the counter: one block in the upper half, its bytes in the lower half. */
static inline int64_t grd_counted_block(size_t bytes)
{
    return (INT64_C(1) << 32) + (int64_t)bytes;
}

/* Adds to the counter of this thread and returns the bytes counted. */
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

/* grd_alloc and grd_free without a look at the free lists of this thread (memory.c). */
void *grd_alloc_slow(size_t size);
void grd_free_slow(void *block, size_t size);

/* ---- Taking and giving ----------------------------------------------------------------------------------------------------- */

/* Returns a block for a size up to GRD_SMALL_MAX, which the caller counts, or NULL: then call grd_alloc_slow. */
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

/* grd_alloc for such a size. */
GRD_INLINE void *grd_small_alloc(size_t size)
{
    void *block = grd_small_take(size);
    if (GRD_UNLIKELY(block == NULL))
        return grd_alloc_slow(size);
    grd_count_alloc(grd_small_size(grd_small_class(size)));
    return block;
}

/* grd_free for a block of such a size. */
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
