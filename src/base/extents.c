/* Allocates extents (runs of pages), from free extents or from the system, and keeps free extents for reuse; see extents.h.
 *
 * A free extent keeps its pages, because the page faults of a new extent take longer than most operators that work on it. Each free extent is in
 * two lists: one for the largest size class that the extent can serve, and one of all free extents by age. Note [What is kept] says how many
 * bytes are kept free.
 *
 * Invariants
 * - Every extent begins and ends at a page boundary, and its pages are mapped for reading and writing. So adjacent extents can be joined, and a
 *   part of an extent can be unmapped, no matter which calls mapped the pages.
 * - `in_use` is the number of bytes of all allocated extents, `kept` the number of bytes of all free extents.
 * - While `lock` is held, no other lock is taken and no system call is made. */
#define _GNU_SOURCE /* for madvise and MAP_ANONYMOUS */
#include "base/extents.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cpu.h"
#include "base/fork.h"

enum {
    HUGE_PAGE = 2 * 1024 * 1024,
    CHUNK = 1024 * 1024,       /* bytes; a smaller extent is cut from an extent of this size */
    LEEWAY = 64 * 1024 * 1024, /* bytes that may be kept free even if little memory was used recently: Note [What is kept] */
    /* an epoch ends when more than EPOCH_TURNS * (peak of `in_use` + LEEWAY) bytes were allocated in it: Note [What is kept] */
    EPOCH_TURNS = 16,
    CLASSES = 40 + (GRD_EXTENT_MAX_LOG - 20) * 16,
    WORDS = (CLASSES + 63) / 64
};

/* The header at the start of every free extent. */
struct extent {
    struct extent *next, *previous; /* neighbours in the list of its size class; NULL at the ends */
    struct extent *newer, *older;   /* neighbours in the list of all free extents by age; NULL at the ends */
    struct extent *following;       /* next extent in a temporary list, e.g. one sorted by address */
    size_t size;
    unsigned class;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct extent *lists[CLASSES];
static uint64_t filled[WORDS]; /* bit i is 1 if lists[i] is not empty */
static struct extent *newest, *oldest;
static size_t kept, in_use;
static _Atomic int64_t limit = INT64_MAX; /* largest value of `kept`, in bytes, that the user allows */
static _Atomic int64_t mapped_bytes, most_mapped_bytes;

static size_t page_size(void)
{
    const long size = sysconf(_SC_PAGESIZE);
    return size > 0 ? (size_t)size : 4096;
}

static size_t round_up(size_t size, size_t unit)
{
    return (size + unit - 1) & ~(unit - 1);
}

/* ---- The system ---------------------------------------------------------------------------------------------------------- */

int64_t grd_extents_held(void)
{
    return atomic_load_explicit(&mapped_bytes, memory_order_relaxed);
}

int64_t grd_extents_most_held(void)
{
    return atomic_load_explicit(&most_mapped_bytes, memory_order_relaxed);
}

void grd_extents_reset_most_held(void)
{
    atomic_store_explicit(&most_mapped_bytes, grd_extents_held(), memory_order_relaxed);
}

static void unmap(void *start, size_t size)
{
    /* munmap fails if the process would get too many mappings. Then madvise at least releases the memory of the pages. */
    if (size > 0 && munmap(start, size) != 0)
        madvise(start, size, MADV_DONTNEED);
}

/* Maps `size` bytes at an address that is a multiple of `align`. Returns this address, or NULL if there is no memory. Both arguments are
 * multiples of the page size. */
static void *map(size_t size, size_t align)
{
    if (align < HUGE_PAGE && size >= 2 * (size_t)HUGE_PAGE)
        align = HUGE_PAGE;
    const size_t more = align > page_size() ? align : 0;
    char *start = mmap(NULL, size + more, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED)
        return NULL;
    if (more > 0) {
        const size_t before = (size_t)(-(uintptr_t)start & (align - 1));
        unmap(start, before);
        start += before;
        unmap(start + size, more - before);
    }
#ifdef MADV_HUGEPAGE
    if (size >= 2 * (size_t)HUGE_PAGE)
        madvise(start, size, MADV_HUGEPAGE);
#endif
    const int64_t held = atomic_fetch_add_explicit(&mapped_bytes, (int64_t)size, memory_order_relaxed) + (int64_t)size;
    int64_t most = grd_extents_most_held();
    while (held > most &&
           !atomic_compare_exchange_weak_explicit(&most_mapped_bytes, &most, held, memory_order_relaxed, memory_order_relaxed))
        continue;
    return start;
}

/* Unmaps the extents (runs of pages) of a list whose members are linked by `following`. */
static void return_to_system(struct extent *extents)
{
    while (extents != NULL) {
        struct extent *extent = extents;
        const size_t size = extent->size;
        extents = extent->following;
        unmap(extent, size);
        atomic_fetch_sub_explicit(&mapped_bytes, (int64_t)size, memory_order_relaxed);
    }
}

/* ---- How much is kept --------------------------------------------------------------------------------------------------------
 * Note [What is kept]
 *
 * Allocated and free extents together have at most 1.25 times the recent peak of `in_use`, plus LEEWAY. So a program that repeats itself, such as
 * a training loop, finds its extents again, and a program that has freed its memory or that always allocates new sizes holds little more than it
 * needs.
 * "Recent" is measured in allocated bytes, not in time. An epoch ends when the bytes allocated in it are more than EPOCH_TURNS times its peak
 * (plus LEEWAY), and the recent peak is the larger of the peaks of this epoch and the one before. If an extent is unmapped too early, its pages
 * must be faulted in again about once in an epoch, which costs a few percent of the time that a program needs to use all bytes allocated in the
 * epoch.
 * The number of free bytes is also bounded by the user's limit and by a quarter of the machine's memory. */

static struct epoch {
    size_t most;   /* peak of `in_use` in the present epoch, in bytes; Note [What is kept] says when an epoch ends */
    size_t before; /* peak of `in_use` in the epoch before this one */
    size_t taken;  /* bytes allocated since this epoch began */
} epoch;

/* Counts `size` bytes as allocated. The caller holds `lock`. */
static void note_taken(size_t size)
{
    in_use += size;
    epoch.taken += size;
    if (in_use > epoch.most)
        epoch.most = in_use;
    if (epoch.taken / EPOCH_TURNS > epoch.most + LEEWAY)
        epoch = (struct epoch){.most = in_use, .before = epoch.most};
}

/* Returns the largest number of bytes of free extents that may be kept: the user's limit, but at most a quarter of the machine's memory. Must not be
 * called while `lock` is held, because grd_system_memory reads files. */
static size_t upper_bound(void)
{
    const int64_t memory = grd_system_memory() / 4, wanted = atomic_load_explicit(&limit, memory_order_relaxed);
    return (size_t)(wanted < memory ? wanted : memory);
}

/* Returns how many bytes of free extents may be kept, at most `bound`; see Note [What is kept]. The caller holds `lock`. */
static size_t room(size_t bound)
{
    const size_t most = epoch.most > epoch.before ? epoch.most : epoch.before;
    const size_t held = most + most / 4 + LEEWAY, rest = held > in_use ? held - in_use : 0;
    return rest < bound ? rest : bound;
}

/* ---- Lists of free extents; under `lock` ------------------------------------------------------------------------------------ */

/* Returns the number of the largest size class whose blocks fit into `size` bytes. */
static unsigned class_served(size_t size)
{
    const struct grd_size_class class = grd_size_class_of(size);
    return class.size == size ? class.index : class.index - 1;
}

/* Adds a free extent (a run of pages) to the list of its size class, and to the list by age directly after `older`, or as the oldest one if
 * `older` is NULL. */
static void add_extent(void *start, size_t size, struct extent *older)
{
    struct extent *extent = start;
    const unsigned class = class_served(size);
    *extent = (struct extent){.size = size, .class = class, .older = older, .next = lists[class]};
    if (extent->next != NULL)
        extent->next->previous = extent;
    lists[class] = extent;
    filled[class / 64] |= UINT64_C(1) << class % 64;
    struct extent **below = older != NULL ? &older->newer : &oldest;
    extent->newer = *below;
    *below = extent;
    *(extent->newer != NULL ? &extent->newer->older : &newest) = extent;
    kept += size;
}

static void remove_extent(struct extent *extent)
{
    *(extent->previous != NULL ? &extent->previous->next : &lists[extent->class]) = extent->next;
    if (extent->next != NULL)
        extent->next->previous = extent->previous;
    if (lists[extent->class] == NULL)
        filled[extent->class / 64] &= ~(UINT64_C(1) << extent->class % 64);
    *(extent->newer != NULL ? &extent->newer->older : &newest) = extent->older;
    *(extent->older != NULL ? &extent->older->newer : &oldest) = extent->newer;
    kept -= extent->size;
}

/* Removes the oldest free extents (runs of pages) from the lists until at most `bytes` bytes are kept. Returns the removed extents as a list linked
 * by `following`. */
static struct extent *remove_oldest(size_t bytes)
{
    struct extent *removed = NULL;
    while (kept > bytes) {
        struct extent *extent = oldest;
        remove_extent(extent);
        extent->following = removed;
        removed = extent;
    }
    return removed;
}

/* Allocates `size` bytes of a free extent, starting at the first multiple of `align` in it, and returns their address. The bytes of the extent before
 * and behind the allocated ones become free extents, at the place of `extent` in the list of all free extents by age. */
static void *cut(struct extent *extent, size_t size, size_t align)
{
    char *start = (char *)round_up((uintptr_t)extent, align);
    const size_t before = (size_t)(start - (char *)extent), behind = extent->size - before - size;
    struct extent *older = extent->older;
    remove_extent(extent);
    if (before > 0)
        add_extent(extent, before, older);
    if (behind > 0)
        add_extent(start + size, behind, older);
    return start;
}

/* ---- Finding a free extent; under `lock` ------------------------------------------------------------------------------------- */

/* Returns the first free extent in the first non-empty list of the size classes from `class` on. Returns NULL if all these lists are empty. */
static struct extent *first_from(unsigned class)
{
    uint64_t word = class < CLASSES ? filled[class / 64] & ~UINT64_C(0) << class % 64 : 0;
    for (unsigned i = class / 64; i < WORDS; word = ++i < WORDS ? filled[i] : 0)
        if (word != 0)
            return lists[i * 64 + (unsigned)__builtin_ctzll(word)];
    return NULL;
}

/* Returns a free extent that contains `size` bytes at a multiple of `align`. Looks first in the size class of `size`, then in the larger classes.
 * Returns NULL if no extent is found, or if the extent found in a larger class has more than `most` bytes. */
static struct extent *find(size_t size, size_t align, size_t most)
{
    struct extent *extent = lists[grd_size_class_of(size).index];
    if (extent != NULL && (uintptr_t)extent % align == 0)
        return extent;
    extent = first_from(grd_size_class_of(size + align - page_size()).index);
    return extent != NULL && extent->size <= most ? extent : NULL;
}

/* Merges two lists of extents that are sorted by address and linked by `following`. Returns the merged list. */
static struct extent *merge_by_address(struct extent *a, struct extent *b)
{
    struct extent *first = NULL, **end = &first;
    while (a != NULL && b != NULL) {
        struct extent **lower = a < b ? &a : &b;
        *end = *lower;
        *lower = (*lower)->following;
        end = &(*end)->following;
    }
    *end = a != NULL ? a : b;
    return first;
}

/* Returns all free extents as a list sorted by address and linked by `following`. This merge sort works like a binary counter: digits[i] is
 * either empty or a sorted list of 2^i extents, and two lists of the same length are merged into a carry to the next digit. */
static struct extent *sort_by_address(void)
{
    struct extent *digits[64] = {NULL}, *sorted = NULL;
    for (struct extent *extent = newest; extent != NULL; extent = extent->older) {
        struct extent *carry = extent;
        carry->following = NULL;
        int i = 0;
        for (; digits[i] != NULL; digits[i++] = NULL)
            carry = merge_by_address(digits[i], carry);
        digits[i] = carry;
    }
    for (int i = 0; i < 64; i++)
        sorted = merge_by_address(digits[i], sorted);
    return sorted;
}

/* Allocates `size` bytes that span several adjacent free extents, at the lowest address where this is possible. Returns this address, or NULL if
 * there is none. The bytes of the last extent beyond `size` remain free. */
static void *join(size_t size)
{
    if (kept < size)
        return NULL;
    struct extent *first = NULL;
    size_t bytes = 0;
    for (struct extent *extent = sort_by_address(); extent != NULL; extent = extent->following) {
        if (first == NULL || (char *)first + bytes != (char *)extent) {
            first = extent;
            bytes = 0;
        }
        bytes += extent->size;
        if (bytes < size)
            continue;
        const size_t last = extent->size - (bytes - size);
        cut(extent, last, page_size());
        for (size_t at = 0; at < size - last;) {
            struct extent *member = (struct extent *)((char *)first + at);
            at += member->size;
            remove_extent(member);
        }
        return first;
    }
    return NULL;
}

/* ---- Taking and giving --------------------------------------------------------------------------------------------------------- */

/* Maps an extent of `size` bytes at a multiple of `align`, followed by `rest` bytes that become a free extent. Returns the address of the first
 * extent, or NULL if there is no memory. */
static void *map_extent(size_t size, size_t align, size_t rest)
{
    char *extent = map(size + rest, align);
    if (extent != NULL && rest > 0) {
        pthread_mutex_lock(&lock);
        add_extent(extent + size, rest, newest);
        pthread_mutex_unlock(&lock);
    }
    return extent;
}

/* Takes a free extent of a suitable size if there is one, otherwise maps a new extent. So a loop that allocates the same sizes in every pass soon
 * finds free extents of all these sizes. But if no more free bytes may be kept, first tries to cut a larger free extent or to join adjacent free
 * extents. If that fails too, unmaps the oldest free extents and then maps a new one. Returns NULL if there is no memory. */
void *grd_extent_take(size_t size, size_t align, bool *ret_zero)
{
    const size_t page = page_size(), bound = upper_bound();
    size = round_up(size, page);
    align = align > page ? align : page;
    pthread_mutex_lock(&lock);
    note_taken(size);
    const size_t most_kept = room(bound), rest = size < CHUNK && most_kept >= CHUNK ? CHUNK - size : 0;
    const bool is_full = kept + rest > most_kept || kept + size > bound;
    struct extent *found = find(size, align, size < CHUNK ? CHUNK : is_full ? SIZE_MAX : size);
    void *extent = found != NULL ? cut(found, size, align) : is_full && align == page ? join(size) : NULL;
    struct extent *old = extent == NULL ? remove_oldest(most_kept - rest) : NULL;
    pthread_mutex_unlock(&lock);
    return_to_system(old);
    if (extent != NULL)
        return extent;
    extent = map_extent(size, align, rest);
    if (extent == NULL) {
        grd_extents_trim();
        extent = map_extent(size, align, 0);
    }
    if (extent == NULL) {
        pthread_mutex_lock(&lock);
        in_use -= size;
        pthread_mutex_unlock(&lock);
        return NULL;
    }
    *ret_zero = true;
    return extent;
}

void grd_extent_give(void *extent, size_t size)
{
    const size_t bound = upper_bound();
    size = round_up(size, page_size());
    pthread_mutex_lock(&lock);
    in_use -= size;
    add_extent(extent, size, newest);
    struct extent *old = remove_oldest(room(bound));
    pthread_mutex_unlock(&lock);
    return_to_system(old);
}

/* Unmaps the oldest free extents until at most `bytes` bytes are kept. */
static void shrink(size_t bytes)
{
    pthread_mutex_lock(&lock);
    struct extent *old = remove_oldest(bytes);
    pthread_mutex_unlock(&lock);
    return_to_system(old);
}

void grd_extents_trim(void)
{
    shrink(0);
}

void grd_extents_set_limit(int64_t bytes)
{
    atomic_store_explicit(&limit, bytes, memory_order_relaxed);
    shrink((size_t)bytes);
}

void grd_extents_init(void)
{
    static struct grd_held_lock held = {.lock = &lock};
    grd_hold_around_fork(&held);
}
