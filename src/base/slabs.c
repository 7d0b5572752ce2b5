/* Cuts extents (runs of pages) into small and medium memory blocks; see slabs.h. */
#include "base/slabs.h"

#include <pthread.h>

#include "base/extents.h"
#include "base/fork.h"

enum { SMALL_SLAB = 64 * 1024, MEDIUM_SLAB = 256 * 1024, HEADER = 64 };

struct slab {
    struct slab *next, *previous; /* neighbours in the list of the slab's size class; NULL at the ends */
    void *given;                  /* linked list of free blocks that have been used before */
    char *uncut;                  /* start of the blocks that have never been used and whose pages have not been touched */
    uint32_t blocks, idle;        /* number of blocks in the slab, and how many of them are free */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct slab *lists[GRD_SLAB_CLASSES];

static size_t block_size(unsigned class)
{
    return class < GRD_SMALL_CLASSES ? grd_small_size(class) : grd_medium_size(class - GRD_SMALL_CLASSES);
}

static size_t slab_size(unsigned class)
{
    return class < GRD_SMALL_CLASSES ? SMALL_SLAB : MEDIUM_SLAB;
}

static struct slab *slab_of(void *block, unsigned class)
{
    return (struct slab *)((uintptr_t)block & ~(uintptr_t)(slab_size(class) - 1));
}

/* ---- Lists; under the lock ------------------------------------------------------------------------------------------------- */

static void add_slab(struct slab *slab, unsigned class)
{
    slab->previous = NULL;
    slab->next = lists[class];
    if (slab->next != NULL)
        slab->next->previous = slab;
    lists[class] = slab;
}

static void remove_slab(struct slab *slab, unsigned class)
{
    *(slab->previous != NULL ? &slab->previous->next : &lists[class]) = slab->next;
    if (slab->next != NULL)
        slab->next->previous = slab->previous;
}

/* Moves `n` free blocks, of `size` bytes each, from a slab to the front of the linked list `list`. Returns the new start of the list. */
static void *take_blocks(struct slab *slab, size_t size, int64_t n, void *list)
{
    for (; n > 0; n--, slab->idle--) {
        void *block = slab->given;
        if (block != NULL) {
            slab->given = grd_next_block(block);
        } else {
            block = slab->uncut;
            slab->uncut += size;
        }
        grd_link_block(block, list);
        list = block;
    }
    return list;
}

/* ---- Taking and giving -------------------------------------------------------------------------------------------------------- */

/* Adds a new slab, an extent that is cut into blocks of one size, to the list of a size class. Returns false if there is no memory. */
static bool make_slab(unsigned class)
{
    bool zero;
    const size_t size = slab_size(class);
    struct slab *slab = grd_extent_take(size, size, &zero);
    if (slab == NULL)
        return false;
    const uint32_t blocks = (uint32_t)((size - HEADER) / block_size(class));
    *slab = (struct slab){.uncut = (char *)slab + HEADER, .blocks = blocks, .idle = blocks};
    pthread_mutex_lock(&lock);
    add_slab(slab, class);
    pthread_mutex_unlock(&lock);
    return true;
}

static void *take_from_lists(unsigned class, int64_t n, int64_t *ret_taken)
{
    void *blocks = NULL;
    int64_t taken = 0;
    pthread_mutex_lock(&lock);
    for (struct slab *slab; taken < n && (slab = lists[class]) != NULL;) {
        const int64_t here = n - taken < slab->idle ? n - taken : slab->idle;
        blocks = take_blocks(slab, block_size(class), here, blocks);
        taken += here;
        if (slab->idle == 0)
            remove_slab(slab, class);
    }
    pthread_mutex_unlock(&lock);
    *ret_taken = taken;
    return blocks;
}

void *grd_slab_take(unsigned class, int64_t n, int64_t *ret_taken)
{
    void *blocks = take_from_lists(class, n, ret_taken);
    while (blocks == NULL) { /* repeated, because another thread may take all blocks of the new slab first */
        if (!make_slab(class))
            return NULL;
        blocks = take_from_lists(class, n, ret_taken);
    }
    return blocks;
}

static void give_extents(struct slab *slabs, unsigned class)
{
    while (slabs != NULL) {
        struct slab *slab = slabs;
        slabs = slab->next;
        grd_extent_give(slab, slab_size(class));
    }
}

/* Frees the blocks. Moves the slab of each block to the front of the list of its class, so that the blocks freed last are allocated first. */
void grd_slab_give(unsigned class, void *blocks)
{
    struct slab *unused = NULL;
    pthread_mutex_lock(&lock);
    for (void *block = blocks, *next; block != NULL; block = next) {
        next = grd_next_block(block);
        struct slab *slab = slab_of(block, class);
        grd_link_block(block, slab->given);
        slab->given = block;
        if (slab->idle++ == 0) {
            add_slab(slab, class);
        } else if (slab != lists[class]) {
            remove_slab(slab, class);
            add_slab(slab, class);
        }
        if (slab->idle == slab->blocks && slab->next != NULL) {
            remove_slab(slab, class);
            slab->next = unused;
            unused = slab;
        }
    }
    pthread_mutex_unlock(&lock);
    give_extents(unused, class);
}

/* Frees the slabs of a size class that have no block in use, i.e. gives their extents back to extents.c. */
static void trim_class(unsigned class)
{
    struct slab *unused = NULL;
    pthread_mutex_lock(&lock);
    for (struct slab *slab = lists[class], *next; slab != NULL; slab = next) {
        next = slab->next;
        if (slab->idle < slab->blocks)
            continue;
        remove_slab(slab, class);
        slab->next = unused;
        unused = slab;
    }
    pthread_mutex_unlock(&lock);
    give_extents(unused, class);
}

void grd_slabs_trim(void)
{
    for (unsigned class = 0; class < GRD_SLAB_CLASSES; class ++)
        trim_class(class);
}

void grd_slabs_init(void)
{
    static struct grd_held_lock held = {.lock = &lock};
    grd_hold_around_fork(&held);
}
