/* Free extents and the system; see extents.h.
 *
 * A free extent keeps its pages, since the page faults of a new one cost more than most operators on it. It is found by its size, in the
 * list of the largest class it can serve, and by its age. How much is kept follows from what was in use: Note [What is kept].
 *
 * Invariants
 * - Every extent begins and ends at a page, and consists of pages mapped for reading and writing: neighbours can be joined, and any part
 *   returned to the system, no matter how they were mapped.
 * - `in_use` and `kept` are the bytes of all extents that are taken and that are free.
 * - No other lock is taken and no system call is made under `lock`. */
#define _GNU_SOURCE /* madvise, MAP_ANONYMOUS */
#include "base/extents.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cpu.h"
#include "base/fork.h"

enum {
    HUGE_PAGE = 2 * 1024 * 1024,
    CHUNK = 1024 * 1024,       /* smaller extents are cut from one of this size */
    LEEWAY = 64 * 1024 * 1024, /* is kept in any case, unless there is a limit */
    EPOCH_TURNS = 16,
    CLASSES = 40 + (GRD_EXTENT_MAX_LOG - 20) * 16,
    WORDS = (CLASSES + 63) / 64
};

/* At the beginning of every free extent. */
struct extent {
    struct extent *next, *previous; /* in the list of its class */
    struct extent *newer, *older;
    struct extent *following; /* in lists made for a moment: by address, or to be returned */
    size_t size;
    unsigned class;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct extent *lists[CLASSES];
static uint64_t filled[WORDS]; /* bit i: lists[i] is not empty */
static struct extent *newest, *oldest;
static size_t kept, in_use;
static _Atomic int64_t limit = INT64_MAX; /* for `kept`; set by the user */
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
    /* Fails where the process would have too many mappings: then at least the pages go. */
    if (size > 0 && munmap(start, size) != 0)
        madvise(start, size, MADV_DONTNEED);
}

/* Both sizes are multiples of the page's. */
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
 * What is taken and what is free are together at most a quarter more than what was in use lately at most, and LEEWAY: a program that
 * repeats itself, such as a training loop, finds its blocks again, and one that has freed its memory or takes ever other sizes holds
 * little more than it needed. "Lately" is measured by use, not by time: an epoch ends when EPOCH_TURNS times its greatest use has been
 * taken, and this epoch and the one before count. Faulting in once what is given back too early then costs a few percent of the work
 * done with as many bytes taken. A user's limit and a quarter of the machine's memory bound what is kept from above. */

static struct epoch {
    size_t most;   /* `in_use` at its greatest */
    size_t before; /* the same of the epoch before */
    size_t taken;
} epoch;

/* Under `lock`. */
static void note_taken(size_t size)
{
    in_use += size;
    epoch.taken += size;
    if (in_use > epoch.most)
        epoch.most = in_use;
    if (epoch.taken / EPOCH_TURNS > epoch.most + LEEWAY)
        epoch = (struct epoch){.most = in_use, .before = epoch.most};
}

/* The bound from above, which may be asked for without the lock only. */
static size_t upper_bound(void)
{
    const int64_t memory = grd_system_memory() / 4, wanted = atomic_load_explicit(&limit, memory_order_relaxed);
    return (size_t)(wanted < memory ? wanted : memory);
}

/* How many bytes may be kept beside what is in use; under `lock`. */
static size_t room(size_t bound)
{
    const size_t most = epoch.most > epoch.before ? epoch.most : epoch.before;
    const size_t held = most + most / 4 + LEEWAY, rest = held > in_use ? held - in_use : 0;
    return rest < bound ? rest : bound;
}

/* ---- Lists of free extents; under `lock` ------------------------------------------------------------------------------------ */

/* The largest class an extent can serve. */
static unsigned class_served(size_t size)
{
    const struct grd_size_class class = grd_size_class_of(size);
    return class.size == size ? class.index : class.index - 1;
}

/* Adds an extent just above `older` by age; NULL: as the oldest. */
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

/* Removes the oldest extents until at most `bytes` are kept, and returns them as a list. */
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

/* Takes a free extent, but for what lies before a multiple of `align` and behind `size` bytes from there: these parts keep its age. */
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

/* ---- Finding one; under `lock` ----------------------------------------------------------------------------------------------- */

/* The newest extent of the smallest class from `class` on that has any. */
static struct extent *first_from(unsigned class)
{
    uint64_t word = class < CLASSES ? filled[class / 64] & ~UINT64_C(0) << class % 64 : 0;
    for (unsigned i = class / 64; i < WORDS; word = ++i < WORDS ? filled[i] : 0)
        if (word != 0)
            return lists[i * 64 + (unsigned)__builtin_ctzll(word)];
    return NULL;
}

/* One of the class asked for; failing that, the smallest larger one of at most `most` bytes. */
static struct extent *find(size_t size, size_t align, size_t most)
{
    struct extent *extent = lists[grd_size_class_of(size).index];
    if (extent != NULL && (uintptr_t)extent % align == 0)
        return extent;
    extent = first_from(grd_size_class_of(size + align - page_size()).index);
    return extent != NULL && extent->size <= most ? extent : NULL;
}

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

/* All free extents as a list by address: merge sort, as a counter in base 2 whose digit i is a sorted list of 2^i extents. */
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

/* Takes the first neighbours that are `size` bytes together; what the last has beyond them stays. NULL when there are none. */
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

/* Maps an extent; of a chunk that is larger, the rest is kept. */
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

/* As long as there is room a size that is not there is mapped, so that a program that repeats itself has its sizes ready. Without room it
 * is made of what is there, by cutting or joining, and failing that the oldest extents make room. */
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
