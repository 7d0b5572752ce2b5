/* Allocates and frees memory blocks; see blocks.h.
 *
 * A freed block of at most 64 KiB goes into a free list of the thread that frees it. Such a list needs no lock. If the list is full, the block goes
 * back to its slab (slabs.c) or, above 32 KiB, to the free extents (extents.c), and from there to the system. A block has no header: its size class
 * follows from the requested size, which the caller passes again when it frees the block. */
#include "base/blocks.h"

#include <stdlib.h>
#if GRD_BLOCKS_SANITIZED
#include <malloc.h>
#include <stdio.h>
#endif

#include "base/debug.h"
#include "base/extents.h"
#include "base/poison.h"
#include "base/quarantine.h"
#include "base/slabs.h"

enum {
    LIST_BYTES = 64 * 1024,    /* most bytes in a thread's free list of one small size class */
    MEDIUM_BYTES = 128 * 1024, /* most bytes in a thread's free list of one medium size class */
    REFILL_BYTES = 8 * 1024    /* bytes that move from a slab to a thread's empty free list in one call */
};

/* If true, free blocks are not cached: the system allocates and frees every block. So AddressSanitizer and memcheck see every block, and the debug
 * mode "lifetimes" can keep a freed block in quarantine. */
static bool checked = GRD_BLOCKS_SANITIZED;

size_t grd_block_size(size_t size)
{
    if (checked)
        return size;
    return size <= GRD_SMALL_MAX ? grd_small_size(grd_small_class(size)) : grd_size_class_of(size).size;
}

/* ---- Small blocks ----------------------------------------------------------------------------------------------------------- */

static void *take_small(unsigned class)
{
    /* `list` is usually empty. It may hold blocks while grd_memory_watched is set, because every allocation then calls this function. */
    struct grd_block_list *list = &grd_thread.small[class];
    if (list->head == NULL) {
        if (grd_thread_get_cold() == NULL)
            return NULL;
        const int64_t wanted = 1 + REFILL_BYTES / (int64_t)grd_small_size(class), fit = 1 + list->room;
        int64_t taken;
        list->head = grd_slab_take(class, wanted < fit ? wanted : fit, &taken);
        if (list->head == NULL)
            return NULL;
        list->room -= taken;
    }
    void *block = list->head;
    list->head = grd_next_block(block);
    list->room++;
    return block;
}

/* Moves the first `n` blocks of `list`, a free list of this thread, to their slabs, which all threads share. A slab is a run of pages that is cut
 * into blocks of one size, and `slab_class` is the size class of these blocks. */
static void share(struct grd_block_list *list, unsigned slab_class, int64_t n)
{
    void *first = list->head, *last = NULL;
    int64_t moved = 0;
    for (void *b = first; b != NULL && moved < n; b = grd_next_block(b), moved++)
        last = b;
    if (last == NULL)
        return;
    list->head = grd_next_block(last);
    list->room += moved;
    grd_link_block(last, NULL);
    grd_slab_give(slab_class, first);
}

/* Frees a block of the small size class `class` by adding it to this thread's free list. If the list is full, half of its blocks are first moved
 * to their slabs (memory that all threads share). */
static void give_small(void *block, unsigned class)
{
    struct grd_block_list *list = &grd_thread.small[class];
    if (list->room == 0 && grd_thread_get_cold() != NULL && list->room == 0)
        share(list, class, LIST_BYTES / (int64_t)grd_small_size(class) / 2);
    grd_link_block(block, list->head);
    list->head = block;
    list->room--;
    if (grd_thread.cold == NULL)
        share(list, class, 1);
}

/* ---- Medium and large blocks -------------------------------------------------------------------------------------------------- */

/* Returns this thread's free list for the medium size class number `index`. NULL if this class is too large to be medium, or if the thread's state
 * in base/cold.h is not allocated. */
static struct grd_block_list *medium_list(unsigned index)
{
    return index < GRD_MEDIUM_CLASSES && grd_thread.cold != NULL ? &grd_thread.cold->medium[index] : NULL;
}

/* Returns a block of at least `size` bytes; NULL if there is no memory. `size` is more than GRD_SMALL_MAX. Sets *ret_zero to true if all bytes of
 * the block are known to be zero, and leaves it unchanged otherwise. */
static void *take_large(size_t size, bool *ret_zero)
{
    const struct grd_size_class class = grd_size_class_of(size);
    struct grd_block_list *list = medium_list(class.index);
    if (list != NULL && list->head != NULL) {
        void *block = list->head;
        list->head = grd_next_block(block);
        list->room++;
        return block;
    }
    int64_t taken;
    if (class.index < GRD_MEDIUM_SLAB_CLASSES)
        return grd_slab_take(GRD_SMALL_CLASSES + class.index, 1, &taken);
    return grd_extent_take(class.size, 64, ret_zero);
}

/* Gives a freed block of size class `class` to the memory that all threads share: to its slab or, if the block is too large for a slab, to the
 * free extents (runs of pages). */
static void give_shared(void *block, struct grd_size_class class)
{
    if (class.index < GRD_MEDIUM_SLAB_CLASSES) {
        grd_link_block(block, NULL);
        grd_slab_give(GRD_SMALL_CLASSES + class.index, block);
    } else {
        grd_extent_give(block, class.size);
    }
}

static void give_large(void *block, size_t size)
{
    const struct grd_size_class class = grd_size_class_of(size);
    struct grd_block_list *list = medium_list(class.index);
    if (list != NULL && list->room > 0) {
        grd_link_block(block, list->head);
        list->head = block;
        list->room--;
        return;
    }
    give_shared(block, class);
}

/* ---- Any block ----------------------------------------------------------------------------------------------------------------- */

void grd_blocks_init(void)
{
    checked = GRD_BLOCKS_SANITIZED || grd_debugging(GRD_DEBUG_LIFETIMES) || grd_poison_is_watched();
    if (grd_debugging(GRD_DEBUG_LIFETIMES))
        grd_quarantine_init();
}

static void *system_alloc(size_t size)
{
    void *block = NULL;
    return posix_memalign(&block, size >= 64 ? 64 : 16, size > 0 ? size : 1) == 0 ? block : NULL;
}

static void system_free(void *block, size_t size)
{
#if GRD_BLOCKS_SANITIZED
    /* A wrong `size` is a bug of this library, which must be detected here: AddressSanitizer does not notice it, because free() takes no size. */
    size_t allocated = malloc_usable_size(block);
    if (allocated != (size > 0 ? size : 1)) {
        fprintf(stderr, "grd_free: a block of %zu bytes is freed as one of %zu\n", allocated, size);
        __builtin_trap();
    }
#endif
    (void)size;
    free(block);
}

static void give_checked(void *block, size_t size)
{
    if (grd_debugging(GRD_DEBUG_LIFETIMES))
        grd_quarantine_put(block, size, system_free);
    else
        system_free(block, size);
}

void *grd_block_take(size_t size, bool *ret_zero)
{
    if (checked)
        return system_alloc(size);
    return size <= GRD_SMALL_MAX ? take_small(grd_small_class(size)) : take_large(size, ret_zero);
}

void grd_block_give(void *block, size_t size)
{
    if (checked)
        give_checked(block, size);
    else if (size <= GRD_SMALL_MAX)
        give_small(block, grd_small_class(size));
    else
        give_large(block, size);
}

void grd_blocks_start(struct grd_thread_cold *cold)
{
    if (checked)
        return;
    for (unsigned class = 0; class < GRD_SMALL_CLASSES; class ++)
        grd_thread.small[class].room = LIST_BYTES / (int64_t)grd_small_size(class);
    for (unsigned index = 0; index < GRD_MEDIUM_CLASSES; index++) {
        int64_t room = MEDIUM_BYTES / (int64_t)grd_medium_size(index);
        cold->medium[index].room = room < 16 ? room : 16;
    }
}

void grd_blocks_share(void)
{
    for (unsigned class = 0; class < GRD_SMALL_CLASSES; class ++)
        share(&grd_thread.small[class], class, INT64_MAX);
    if (grd_thread.cold == NULL)
        return;
    for (unsigned index = 0; index < GRD_MEDIUM_CLASSES; index++) {
        struct grd_block_list *list = &grd_thread.cold->medium[index];
        while (list->head != NULL) {
            void *block = list->head;
            list->head = grd_next_block(block);
            list->room++;
            give_shared(block, (struct grd_size_class){index, grd_medium_size(index)});
        }
    }
}

void grd_blocks_trim(void)
{
    grd_blocks_share();
    grd_slabs_trim();
    grd_extents_trim();
}
