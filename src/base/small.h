/* Small blocks: taken from the free lists of this thread and given back, in the body of the caller. For memory.c, and for what makes an
 * object per call. Everything that is not an entry of a list being moved goes through grd_alloc and grd_free. */
#ifndef GRD_BASE_SMALL_H
#define GRD_BASE_SMALL_H

#include <stddef.h>

#include "base/memory.h"
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

/* What a thread keeps to itself at most, in bytes: so that they and the number of blocks fit the halves of one counter. */
enum { GRD_MEMORY_SLACK = 256 * 1024 };

/* A limit is set or a failure is ordered: every allocation takes the slow path. */
extern GRD_HIDDEN atomic_bool grd_memory_watched;

/* Tells the shared counters what this thread has counted. */
void grd_memory_publish(void);

/* A block of so many bytes, as it is counted. */
static inline int64_t grd_counted_block(size_t bytes)
{
    return (INT64_C(1) << 32) + (int64_t)bytes;
}

/* Returns the bytes counted. */
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

/* The same as grd_alloc and grd_free, not looking at the lists first. */
void *grd_alloc_slow(size_t size);
void grd_free_slow(void *block, size_t size);

/* ---- Taking and giving ----------------------------------------------------------------------------------------------------- */

/* A block for a size up to GRD_SMALL_MAX, to be counted by the caller; NULL where that is for grd_alloc_slow. */
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
