/* Tests the allocator's cache of freed memory, namely how much it keeps, which extents it releases first, and how it serves requests of other
 * sizes. An extent is a run of whole pages of memory. The tests take and give back extents without writing to them, so large sizes need no
 * physical memory. */
#define _GNU_SOURCE /* for pthread barriers */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/blocks.h"
#include "base/cpu.h"
#include "base/extents.h"
#include "base/memory.h"
#include "base/slabs.h"
#include "support.h"

enum { MIB = 1 << 20 };

/* ---- Wrappers of the system calls (see CMakeLists.txt) ------------------------------------------------------------------------------ */

enum { MOST_LOGGED = 64 };
static size_t returned[MOST_LOGGED]; /* sizes in bytes of the unmapped regions, in the order of the calls of munmap */
static int returns, maps;
static bool is_logged, is_map_refused, is_unmap_refused;

int __real_munmap(void *address, size_t size);
int __wrap_munmap(void *address, size_t size);
void *__real_mmap(void *address, size_t size, int protection, int flags, int file, off_t offset);
void *__wrap_mmap(void *address, size_t size, int protection, int flags, int file, off_t offset);

int __wrap_munmap(void *address, size_t size)
{
    if (is_logged && returns < MOST_LOGGED)
        returned[returns++] = size;
    if (is_unmap_refused) {
        errno = ENOMEM;
        return -1;
    }
    return __real_munmap(address, size);
}

void *__wrap_mmap(void *address, size_t size, int protection, int flags, int file, off_t offset)
{
    if (is_logged)
        maps++;
    if (is_map_refused) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    return __real_mmap(address, size, protection, flags, file, offset);
}

static void begin_log(void)
{
    returns = maps = 0;
    is_logged = true;
}

static char *take(size_t size)
{
    bool zero;
    return grd_extent_take(size, 1, &zero);
}

/* Empties the cache, and takes and gives extents until the allocator's record of earlier peak use has decayed. */
static int empty_before(void **state)
{
    (void)state;
    is_logged = is_map_refused = is_unmap_refused = false;
    grd_memory_set_cache_limit(-1);
    for (int i = 0; i < 50000; i++)
        grd_extent_give(take(MIB), MIB);
    grd_memory_trim();
    return 0;
}

/* ---- Order of release and size of the cache -------------------------------------------------------------------------------------------- */

static void the_extent_freed_first_is_released_first(void **state)
{
    (void)state;
    static const size_t sizes[] = {5 * MIB, 2 * MIB, 7 * MIB, 3 * MIB}, order[] = {2, 0, 3, 1};
    char *extents[4];
    int64_t bytes = 0;
    for (int i = 0; i < 4; i++) {
        extents[i] = take(sizes[i]);
        assert_non_null(extents[i]);
        bytes += (int64_t)sizes[i];
    }
    for (int i = 0; i < 4; i++)
        grd_extent_give(extents[order[i]], sizes[order[i]]);
    begin_log();
    for (int i = 0; i < 4; i++) {
        grd_extents_set_limit(bytes - 1);
        assert_int_equal(returns, i + 1);
        assert_int_equal(returned[i], sizes[order[i]]);
        bytes -= (int64_t)sizes[order[i]];
    }
    grd_extents_set_limit(INT64_MAX);
}

/* An extent (a run of pages) that was taken from the cache and given back counts as the most recently used one. */
static void reuse_makes_an_extent_the_most_recent(void **state)
{
    (void)state;
    char *a = take(3 * MIB), *b = take(5 * MIB);
    grd_extent_give(a, 3 * MIB);
    grd_extent_give(b, 5 * MIB);
    assert_ptr_equal(take(3 * MIB), a);
    grd_extent_give(a, 3 * MIB);
    begin_log();
    grd_extents_set_limit(8 * MIB - 1);
    grd_extents_set_limit(INT64_MAX);
    assert_int_equal(returns, 1);
    assert_int_equal(returned[0], 5 * MIB);
}

static uint64_t random_below(uint64_t n)
{
    static uint64_t x = 88172645463325252u;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return x % n;
}

/* For random sizes, the memory held never exceeds 5/4 of the peak use plus a constant. */
static void held_memory_is_bounded_by_peak_use(void **state)
{
    (void)state;
    enum { LIVE = 16, LEEWAY = 65 };
    char *live[LIVE] = {NULL};
    size_t sizes[LIVE];
    int64_t in_use = 0, most = 0;
    const int64_t others = grd_extents_held();
    for (int step = 0; step < 4000; step++) {
        const int i = (int)random_below(LIVE);
        if (live[i] != NULL) {
            grd_extent_give(live[i], sizes[i]);
            in_use -= (int64_t)sizes[i];
            live[i] = NULL;
        } else {
            sizes[i] = grd_block_size((size_t)1 << (16 + random_below(12))) + (size_t)random_below(1000) * 4096;
            live[i] = take(sizes[i]);
            assert_non_null(live[i]);
            in_use += (int64_t)sizes[i];
            most = in_use > most ? in_use : most;
        }
        assert_true(grd_extents_held() - others <= most + most / 4 + LEEWAY * MIB);
    }
    for (int i = 0; i < LIVE; i++)
        if (live[i] != NULL)
            grd_extent_give(live[i], sizes[i]);
}

/* After a long time of much smaller use, a large peak no longer raises the amount that is cached. */
static void an_old_peak_no_longer_enlarges_the_cache(void **state)
{
    (void)state;
    const size_t large = (size_t)1 << 30;
    char *peak = take(large);
    grd_extent_give(peak, large);
    assert_true(grd_extents_held() >= (int64_t)large);
    for (int i = 0; i < 40000; i++)
        grd_extent_give(take(MIB), MIB);
    assert_true(grd_extents_held() <= 80 * MIB);
}

static void the_cache_stays_within_its_limit(void **state)
{
    (void)state;
    grd_memory_set_cache_limit(4 * MIB);
    assert_int_equal(grd_memory_get_stats().cache_limit, 4 * MIB);
    const int64_t before = grd_extents_held();
    for (size_t size = 64 * 1024; size < 64 * MIB; size *= 2) {
        grd_extent_give(take(size), size);
        assert_true(grd_extents_held() - before <= 4 * MIB);
    }
    grd_memory_set_cache_limit(0);
    assert_int_equal(grd_extents_held(), before);
    grd_extent_give(take(3 * MIB), 3 * MIB);
    assert_int_equal(grd_extents_held(), before);
    grd_memory_set_cache_limit(-5);
    assert_true(grd_memory_get_stats().cache_limit < 0);
    /* the cache may hold at most half of the memory limit, so an extent of 16 MiB does not fit */
    grd_memory_set_limit(grd_memory_get_stats().allocated + 4 * MIB);
    grd_extent_give(take(16 * MIB), 16 * MIB);
    assert_int_equal(grd_extents_held(), before);
    grd_memory_set_limit(0);
}

/* ---- Requests of other sizes ------------------------------------------------------------------------------------------------------------- */

/* Size of an extent in bytes. After a peak use of LARGE bytes, allocated and free extents together have at most 5/4 * LARGE + 64 MiB. This is less
 * than LARGE + LARGE / 3, so no free extents of LARGE / 3 bytes are kept besides an extent of LARGE bytes. */
static const size_t LARGE = (size_t)900 * MIB;

static void skip_unless_kept(size_t size)
{
    if ((size_t)grd_system_memory() / 4 < size)
        skip_because("this machine has too little memory to keep a large block");
}

static void free_extents_are_split_and_merged(void **state)
{
    (void)state;
    enum { PIECES = 3 };
    const size_t large = LARGE, small = large / PIECES;
    skip_unless_kept(large);
    char *whole = take(large), *pieces[PIECES], *end = whole + large;
    grd_extent_give(whole, large);
    begin_log();
    for (int i = 0; i < PIECES; i++) {
        pieces[i] = take(small);
        assert_true(pieces[i] >= whole && pieces[i] + small <= end);
        memset(pieces[i], i + 1, 100);
    }
    for (int i = 0; i < PIECES; i++)
        assert_int_equal(pieces[i][99], i + 1);
    for (int i = 0; i < PIECES; i++)
        grd_extent_give(pieces[i * 2 % PIECES], small);
    assert_ptr_equal(take(large), whole);
    assert_int_equal(maps, 0);
    assert_int_equal(returns, 0);
    grd_extent_give(whole, large);
}

/* Two free extents (runs of pages) are not merged into one if an extent between them is in use. */
static void an_extent_in_use_is_not_merged(void **state)
{
    (void)state;
    const size_t large = LARGE, small = large / 3;
    skip_unless_kept(large);
    char *whole = take(large), *pieces[3];
    grd_extent_give(whole, large);
    for (int i = 0; i < 3; i++) {
        pieces[i] = take(small);
        assert_true(pieces[i] >= whole && pieces[i] + small <= whole + large);
    }
    char *middle = whole + small;
    memset(middle, 7, small / 100);
    for (int i = 0; i < 3; i++)
        if (pieces[i] != middle)
            grd_extent_give(pieces[i], small);
    char *other = take(2 * small);
    assert_true(other + 2 * small <= middle || other >= middle + small);
    assert_int_equal(middle[small / 100 - 1], 7);
    grd_extent_give(middle, small);
    grd_extent_give(other, 2 * small);
}

static void extents_are_aligned(void **state)
{
    (void)state;
    bool zero;
    for (int round = 0; round < 3; round++) {
        char *extents[8];
        for (int i = 0; i < 8; i++) {
            const size_t size = (size_t)4096 << (i + 2);
            extents[i] = grd_extent_take(size, size, &zero);
            assert_int_equal((uintptr_t)extents[i] % size, 0);
        }
        for (int i = 0; i < 8; i++)
            grd_extent_give(extents[i], (size_t)4096 << (i + 2));
    }
}

/* ---- Slabs -------------------------------------------------------------------------------------------------------------------------------- */

static void empty_slabs_are_released(void **state)
{
    (void)state;
    enum { N = 3000 };
    static void *blocks[N];
    for (unsigned class = 0; class < GRD_SLAB_CLASSES; class ++) {
        const size_t size = class < GRD_SMALL_CLASSES ? grd_small_size(class) : grd_medium_size(class - GRD_SMALL_CLASSES);
        int64_t taken;
        grd_slabs_trim();
        grd_extents_trim();
        const int64_t before = grd_extents_held();
        for (int i = 0; i < N; i++) {
            blocks[i] = grd_slab_take(class, 1, &taken);
            assert_non_null(blocks[i]);
            memset(blocks[i], i, size);
        }
        for (int i = 0; i < N; i++) {
            assert_int_equal(((unsigned char *)blocks[i])[size - 1], (unsigned char)i);
            grd_link_block(blocks[i], NULL);
            grd_slab_give(class, blocks[i]);
        }
        grd_extents_trim();
        /* one slab (an extent cut into blocks of this size) stays cached, so that repeatedly allocating and freeing one block is cheap */
        assert_true(grd_extents_held() - before <= 256 * 1024);
        grd_slabs_trim();
        grd_extents_trim();
        assert_int_equal(grd_extents_held(), before);
    }
}

/* After any number of allocations, frees and trims of blocks of all sizes the statistics return to their first values. */
static void statistics_return_to_their_first_values(void **state)
{
    (void)state;
    enum { N = 400, CYCLES = 60 };
    static void *blocks[N];
    static size_t sizes[N];
    grd_memory_stats first = {0};
    for (int cycle = 0; cycle < CYCLES; cycle++) {
        for (int i = 0; i < N; i++) {
            sizes[i] = (size_t)1 << random_below(22);
            sizes[i] += random_below(sizes[i]);
            blocks[i] = grd_alloc(sizes[i]);
            assert_non_null(blocks[i]);
        }
        for (int i = N - 1; i > 0; i--) {
            const int j = (int)random_below((uint64_t)i + 1);
            void *block = blocks[i];
            const size_t size = sizes[i];
            blocks[i] = blocks[j];
            sizes[i] = sizes[j];
            blocks[j] = block;
            sizes[j] = size;
            grd_free(blocks[i], sizes[i]);
            if (i % 150 == 0)
                grd_memory_trim();
        }
        grd_free(blocks[0], sizes[0]);
        grd_memory_trim();
        const grd_memory_stats now = grd_memory_get_stats();
        if (cycle == 0)
            first = now;
        assert_int_equal(now.allocated, first.allocated);
        assert_int_equal(now.blocks, first.blocks);
        assert_int_equal(now.cached, first.cached);
    }
}

static void the_peak_of_held_memory_is_recorded(void **state)
{
    (void)state;
    grd_memory_reset_peak();
    const int64_t before = grd_memory_get_stats().peak_held;
    grd_free(grd_alloc(100 * MIB), 100 * MIB);
    grd_memory_trim();
    assert_true(grd_memory_get_stats().peak_held >= before + 99 * MIB);
    assert_true(grd_memory_get_stats().peak_held <= before + 101 * MIB);
    grd_memory_reset_peak();
    assert_int_equal(grd_memory_get_stats().peak_held, before);
}

/* ---- System calls that fail ----------------------------------------------------------------------------------------------------------------- */

/* If mmap fails, the cache is released and mmap tried once more. A request that fails changes no statistics. */
static void a_failed_mmap_is_retried_without_the_cache(void **state)
{
    (void)state;
    grd_extent_give(take(3 * MIB), 3 * MIB);
    assert_true(grd_extents_held() >= 3 * MIB);
    begin_log();
    is_map_refused = true;
    assert_null(take(5 * MIB));
    is_map_refused = false;
    assert_int_equal(maps, 2);
    assert_true(returns >= 1);
    assert_int_equal(returned[0], 3 * MIB);
    const int64_t before = grd_extents_held();
    const size_t large = (size_t)1 << 30;
    for (int i = 0; i < 100; i++) {
        is_map_refused = true;
        assert_null(take(large));
        is_map_refused = false;
    }
    assert_int_equal(grd_extents_held(), before);
}

/* If munmap fails, the pages are still released, although the address range stays mapped. */
static void a_failed_munmap_still_releases_the_pages(void **state)
{
    (void)state;
    char *extent = take(3 * MIB);
    memset(extent, 1, 3 * MIB);
    grd_extent_give(extent, 3 * MIB);
    is_unmap_refused = true;
    const int64_t before = grd_extents_held();
    grd_extents_trim();
    is_unmap_refused = false;
    assert_true(grd_extents_held() <= before - 3 * MIB);
    assert_int_equal(extent[4096], 0);
    assert_int_equal(__real_munmap(extent, 3 * MIB), 0);
}

/* ---- Threads ---------------------------------------------------------------------------------------------------------------------------------- */

enum { THREADS = 4 };
static pthread_barrier_t barrier;

/* Thread function: takes and gives back extents. Writes the number of this thread to the first and the last byte of each extent that it takes.
 * Checks these bytes before it gives the extent back. Returns NULL, or an error text, e.g. if another thread has overwritten a byte. */
static void *use_extents(void *number)
{
    enum { LIVE = 6, STEPS = 1500 };
    uint64_t x = 1 + (uint64_t)(uintptr_t)number * 77777;
    char *live[LIVE] = {NULL}, mark = (char)(uintptr_t)number;
    size_t sizes[LIVE];
    pthread_barrier_wait(&barrier);
    for (int step = 0; step < STEPS; step++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        const int i = (int)((x >> 33) % LIVE);
        if (live[i] != NULL) {
            if (live[i][0] != mark || live[i][sizes[i] - 1] != mark)
                return "an extent was changed by another thread";
            grd_extent_give(live[i], sizes[i]);
            live[i] = NULL;
            continue;
        }
        sizes[i] = ((size_t)1 + (x >> 40) % 9000) * 4096;
        live[i] = take(sizes[i]);
        if (live[i] == NULL)
            return "there is no memory";
        live[i][0] = live[i][sizes[i] - 1] = mark;
        if (step % 500 == 499)
            grd_extents_trim();
    }
    for (int i = 0; i < LIVE; i++)
        if (live[i] != NULL)
            grd_extent_give(live[i], sizes[i]);
    return NULL;
}

static void threads_do_not_corrupt_each_others_extents(void **state)
{
    (void)state;
    const int64_t before = grd_extents_held();
    pthread_t threads[THREADS];
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, use_extents, (void *)(uintptr_t)(i + 1)), 0);
    for (int i = 0; i < THREADS; i++) {
        void *message;
        pthread_join(threads[i], &message);
        assert_null(message);
    }
    pthread_barrier_destroy(&barrier);
    grd_extents_trim();
    assert_int_equal(grd_extents_held(), before);
}

#define EMPTY(test) cmocka_unit_test_setup_teardown(test, empty_before, empty_before)

int main(void)
{
    const struct CMUnitTest tests[] = {
        EMPTY(the_extent_freed_first_is_released_first),
        EMPTY(reuse_makes_an_extent_the_most_recent),
        EMPTY(held_memory_is_bounded_by_peak_use),
        EMPTY(an_old_peak_no_longer_enlarges_the_cache),
        EMPTY(the_cache_stays_within_its_limit),
        EMPTY(free_extents_are_split_and_merged),
        EMPTY(an_extent_in_use_is_not_merged),
        EMPTY(extents_are_aligned),
        EMPTY(empty_slabs_are_released),
        EMPTY(statistics_return_to_their_first_values),
        EMPTY(the_peak_of_held_memory_is_recorded),
        EMPTY(a_failed_mmap_is_retried_without_the_cache),
        EMPTY(a_failed_munmap_still_releases_the_pages),
        EMPTY(threads_do_not_corrupt_each_others_extents),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
