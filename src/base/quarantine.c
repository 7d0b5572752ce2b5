/* Keeps freed memory blocks in a queue, the quarantine, before they can be reused. The entries of the queue are allocated outside the blocks, because
 * the blocks are poisoned. */
#include "base/quarantine.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/fork.h"
#include "base/poison.h"

struct entry {
    struct entry *newer;
    void *block;
    size_t size;
    void (*release)(void *block, size_t size);
};

const struct grd_quarantine_watcher *grd_quarantine_watcher;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct entry *oldest, *newest;
static size_t kept;

void grd_quarantine_init(void)
{
    static struct grd_held_lock held = {.lock = &lock};
    grd_hold_around_fork(&held);
}

static void append(struct entry *entry)
{
    pthread_mutex_lock(&lock);
    *(newest != NULL ? &newest->newer : &oldest) = entry;
    newest = entry;
    kept += entry->size;
    pthread_mutex_unlock(&lock);
}

/* If the blocks in the quarantine have more than GRD_QUARANTINE_BYTES bytes together, removes the oldest entry from the queue and returns it.
 * Otherwise returns NULL. */
static struct entry *take_surplus(void)
{
    pthread_mutex_lock(&lock);
    struct entry *entry = kept > GRD_QUARANTINE_BYTES ? oldest : NULL;
    if (entry != NULL) {
        oldest = entry->newer;
        if (oldest == NULL)
            newest = NULL;
        kept -= entry->size;
    }
    pthread_mutex_unlock(&lock);
    return entry;
}

/* Lets a block leave the quarantine: tells the watcher, ends the poisoning, and frees the block with `release`. */
static void leave(void *block, size_t size, void (*release)(void *block, size_t size))
{
    if (grd_quarantine_watcher != NULL)
        grd_quarantine_watcher->leave(block);
    grd_unpoison(block, size);
    release(block, size);
}

void grd_quarantine_put(void *block, size_t size, void (*release)(void *block, size_t size))
{
    const size_t readable = grd_quarantine_watcher != NULL ? grd_quarantine_watcher->enter(block) : 0;
    struct entry *entry = malloc(sizeof *entry);
    if (entry == NULL) {
        leave(block, size, release);
        return;
    }
    if (size > readable) {
        memset((char *)block + readable, 0xff, size - readable);
        grd_poison((char *)block + readable, size - readable);
    }
    *entry = (struct entry){NULL, block, size, release};
    append(entry);
    while ((entry = take_surplus()) != NULL) {
        leave(entry->block, entry->size, entry->release);
        free(entry);
    }
}
