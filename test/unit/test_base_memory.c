/* Tests the allocator: alignment, contents of blocks, statistics, the memory limit, simulated failures, threads and fork. */
#define _GNU_SOURCE /* for pthread barriers */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/memory.h"
#include "support.h"

static const size_t sizes[] = {0,    1,    16,   31,   32,   33,    63,    64,    65,      128,           512,     1000,
                               1024, 1025, 1280, 1281, 4096, 65536, 65537, 99999, 1 << 20, (1 << 20) + 1, 3 << 20, (5 << 20) + 12345};
enum { SIZES = sizeof sizes / sizeof *sizes };

static int balanced_before(void **state)
{
    static int64_t blocks;
    blocks = grd_memory_get_stats().blocks;
    *state = &blocks;
    return 0;
}

static int balanced_after(void **state)
{
    grd_memory_fail_at(0, false);
    grd_memory_set_limit(0);
    grd_error_clear();
    return grd_memory_get_stats().blocks != *(int64_t *)*state;
}

static void blocks_are_aligned_and_do_not_overlap(void **state)
{
    (void)state;
    enum { EACH = 5 };
    unsigned char *blocks[SIZES][EACH];
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < SIZES; i++) {
            for (int k = 0; k < EACH; k++) {
                blocks[i][k] = grd_alloc(sizes[i]);
                assert_non_null(blocks[i][k]);
                assert_int_equal((uintptr_t)blocks[i][k] % (sizes[i] >= 64 ? 64 : 16), 0);
                memset(blocks[i][k], i * EACH + k, sizes[i]);
            }
        }
        for (int i = 0; i < SIZES; i++) {
            for (int k = 0; k < EACH; k++) {
                unsigned char mark = (unsigned char)(i * EACH + k);
                for (size_t j = 0; j < sizes[i]; j += sizes[i] / 7 + 1)
                    assert_int_equal(blocks[i][k][j], mark);
                if (sizes[i] > 0)
                    assert_int_equal(blocks[i][k][sizes[i] - 1], mark);
                grd_free(blocks[i][k], sizes[i]);
            }
        }
    }
    grd_free(NULL, 100);
}

static void zeroed_blocks_are_zero(void **state)
{
    (void)state;
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < SIZES; i++) {
            unsigned char *block = grd_alloc_zeroed(sizes[i]);
            for (size_t j = 0; j < sizes[i]; j++)
                if (block[j] != 0)
                    fail_msg("byte %zu of %zu is %d", j, sizes[i], block[j]);
            memset(block, 0xff, sizes[i]);
            grd_free(block, sizes[i]);
        }
    }
    grd_memory_trim(); /* the next block comes from mmap, which returns zeroed memory */
    unsigned char *fresh = grd_alloc_zeroed(5 << 20);
    assert_true(fresh[0] == 0 && fresh[(5 << 20) - 1] == 0);
    grd_free(fresh, 5 << 20);
}

static void realloc_keeps_the_contents(void **state)
{
    (void)state;
    for (int i = 0; i < SIZES; i++) {
        for (int k = 0; k < SIZES; k++) {
            size_t from = sizes[i], to = sizes[k], common = from < to ? from : to;
            unsigned char *block = grd_alloc(from);
            for (size_t j = 0; j < from; j += 13)
                block[j] = (unsigned char)j;
            block = grd_realloc(block, from, to);
            for (size_t j = 0; j < common; j += 13)
                if (block[j] != (unsigned char)j)
                    fail_msg("byte %zu of %zu to %zu", j, from, to);
            grd_free(block, to);
        }
    }
    void *block = grd_realloc(NULL, 0, 100);
    grd_memory_fail_at(1, false);
    assert_null(grd_realloc(block, 100, 5000));
    assert_int_equal(grd_error_get(), GRD_ERROR_MEMORY);
    grd_error_clear();
    assert_null(grd_realloc(block, 100, SIZE_MAX));
    assert_int_equal(grd_error_get(), GRD_ERROR_MEMORY);
    grd_free(block, 100);
}

static void statistics_count_allocations_and_frees(void **state)
{
    (void)state;
    grd_memory_reset_peak();
    grd_memory_stats before = grd_memory_get_stats();
    assert_int_equal(before.peak, before.allocated);
    void *small = grd_alloc(128), *medium = grd_alloc(8192), *large = grd_alloc(4 << 20);
    grd_memory_stats during = grd_memory_get_stats();
    assert_int_equal(during.allocated - before.allocated, 128 + 8192 + (4 << 20));
    assert_int_equal(during.blocks - before.blocks, 3);
    assert_int_equal(during.peak, during.allocated);
    grd_free(small, 128);
    grd_free(medium, 8192);
    grd_free(large, 4 << 20);
    grd_memory_stats after = grd_memory_get_stats();
    assert_int_equal(after.allocated, before.allocated);
    assert_int_equal(after.blocks, before.blocks);
    assert_int_equal(after.peak, during.peak);
    grd_memory_reset_peak();
    assert_int_equal(grd_memory_get_stats().peak, before.allocated);
}

static void the_recorded_peak_of_small_blocks_is_exact(void **state)
{
    (void)state;
    enum { N = 10000 };
    static void *blocks[N];
    grd_memory_reset_peak();
    int64_t before = grd_memory_get_stats().allocated;
    for (int i = 0; i < N; i++)
        blocks[i] = grd_alloc(192);
    for (int i = 0; i < N; i++)
        grd_free(blocks[i], 192);
    grd_memory_stats after = grd_memory_get_stats();
    assert_int_equal(after.allocated, before);
    assert_int_equal(after.peak, before + 192 * N);
}

static void allocations_beyond_the_memory_limit_fail(void **state)
{
    (void)state;
    int64_t base = grd_memory_get_stats().allocated;
    grd_memory_set_limit(base + 10000);
    assert_int_equal(grd_memory_get_stats().limit, base + 10000);
    void *block = grd_alloc(8192);
    assert_non_null(block);
    assert_null(grd_alloc(8192));
    assert_int_equal(grd_error_get(), GRD_ERROR_MEMORY);
    assert_non_null(strstr(grd_error_message(), "8192"));
    grd_error_clear();
    void *small = grd_alloc(1024);
    assert_non_null(small);
    assert_null(grd_alloc(1024));
    grd_error_clear();
    assert_int_equal(grd_memory_get_stats().allocated, base + 8192 + 1024);
    grd_free(small, 1024);
    grd_free(block, 8192);
    block = grd_alloc(9984);
    assert_non_null(block);
    grd_free(block, 9984);
    grd_memory_set_limit(base + 8192); /* an allocation may reach the limit exactly */
    block = grd_alloc(8192);
    assert_non_null(block);
    assert_int_equal(grd_memory_get_stats().allocated, base + 8192);
    assert_null(grd_alloc(1));
    grd_error_clear();
    grd_free(block, 8192);
    assert_null(grd_alloc(SIZE_MAX));
    grd_error_clear();
    grd_memory_set_limit(0);
    assert_null(grd_alloc(SIZE_MAX / 2));
    grd_error_clear();
    assert_null(grd_alloc((size_t)1 << 47)); /* more than the address space of a process */
    assert_int_equal(grd_error_get(), GRD_ERROR_MEMORY);
}

static pthread_barrier_t freed;

static void *free_and_wait(void *block)
{
    grd_free(block, 8192);
    pthread_barrier_wait(&freed);
    pthread_barrier_wait(&freed);
    return NULL;
}

/* Blocks in another thread's free list count as freed, so the limit allows a new allocation of their size. */
static void the_memory_limit_counts_frees_by_other_threads(void **state)
{
    (void)state;
    pthread_t thread;
    pthread_barrier_init(&freed, NULL, 2);
    grd_memory_set_limit(grd_memory_get_stats().allocated + 10000);
    void *block = grd_alloc(8192);
    assert_int_equal(pthread_create(&thread, NULL, free_and_wait, block), 0);
    pthread_barrier_wait(&freed);
    block = grd_alloc(8192);
    pthread_barrier_wait(&freed);
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&freed);
    assert_non_null(block);
    grd_free(block, 8192);
}

static void grd_memory_fail_at_makes_allocations_fail(void **state)
{
    (void)state;
    grd_memory_fail_at(3, false);
    void *a = grd_alloc(10), *b = grd_alloc(10000), *c = grd_alloc(10);
    assert_true(a != NULL && b != NULL && c == NULL);
    assert_int_equal(grd_error_get(), GRD_ERROR_MEMORY);
    grd_error_clear();
    c = grd_alloc(10);
    assert_non_null(c);
    grd_memory_fail_at(1, true);
    for (int i = 0; i < 3; i++) {
        assert_null(grd_alloc(10));
        grd_error_clear();
    }
    grd_memory_fail_at(0, true);
    grd_free(a, 10);
    grd_free(b, 10000);
    grd_free(c, 10);
}

static void trimming_releases_free_memory(void **state)
{
    (void)state;
    enum { N = 3000 };
    static void *blocks[N];
    for (int i = 0; i < N; i++)
        blocks[i] = grd_alloc(512);
    for (int i = 0; i < N; i++)
        grd_free(blocks[i], 512);
    grd_free(grd_alloc(10 << 20), 10 << 20);
    grd_free(grd_alloc(20000), 20000);
    grd_memory_trim();
    /* A slab with a block in use cannot be released. At most one slab of 64 KiB is left in each size class. */
    assert_true(grd_memory_get_stats().cached < 18 * 65536);
    void *again = grd_alloc(512);
    assert_non_null(again);
    grd_free(again, 512);
}

/* The threads of the next test form a ring. Each thread frees the blocks that the next thread has allocated. */
enum { THREADS = 4, TRAVELLERS = 300, ROUNDS = 20 };
static void *ring[THREADS][TRAVELLERS];
static pthread_barrier_t barrier;

static size_t traveller_size(int i)
{
    return sizes[i % (SIZES - 5)];
}

static void *travel(void *index)
{
    int self = (int)(intptr_t)index, other = (self + 1) % THREADS;
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < TRAVELLERS; i++) {
            ring[self][i] = grd_alloc(traveller_size(i));
            memset(ring[self][i], self, traveller_size(i));
        }
        pthread_barrier_wait(&barrier);
        for (int i = 0; i < TRAVELLERS; i++) {
            size_t size = traveller_size(i);
            if (size > 0 && ((unsigned char *)ring[other][i])[size - 1] != other)
                return "a block changed";
            grd_free(ring[other][i], size);
        }
        grd_memory_get_stats();
        if (round % 7 == self)
            grd_memory_trim();
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

static void threads_free_each_others_blocks(void **state)
{
    (void)state;
    int64_t before = grd_memory_get_stats().allocated;
    pthread_t threads[THREADS];
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, travel, (void *)(intptr_t)i), 0);
    for (int i = 0; i < THREADS; i++) {
        void *message;
        pthread_join(threads[i], &message);
        assert_null(message);
    }
    pthread_barrier_destroy(&barrier);
    assert_int_equal(grd_memory_get_stats().allocated, before);
}

static void *hoard(void *unused)
{
    (void)unused;
    enum { N = 100000 };
    void **blocks = malloc(N * sizeof *blocks);
    for (int i = 0; i < N; i++)
        blocks[i] = grd_alloc(64);
    for (int i = 0; i < N; i++)
        grd_free(blocks[i], 64);
    free(blocks);
    return NULL;
}

static void free_blocks_of_an_ended_thread_are_reused(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, hoard, NULL), 0);
        pthread_join(thread, NULL);
    }
    /* the second thread reused the slabs (64 KiB regions cut into blocks) that the first had filled */
    assert_true(grd_memory_get_stats().cached < 20 << 20);
    grd_memory_trim();
    assert_true(grd_memory_get_stats().cached < 18 * 65536);
}

static void a_forked_child_can_allocate(void **state)
{
    (void)state;
    grd_memory_stats before = grd_memory_get_stats();
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        bool ok = grd_memory_get_stats().blocks == before.blocks;
        for (int i = 0; i < SIZES && ok; i++) {
            void *block = grd_alloc(sizes[i]);
            ok = block != NULL;
            grd_free(block, sizes[i]);
        }
        grd_memory_trim();
        end_child(ok ? 0 : 1);
    }
    assert_int_equal(status_of(child), 0);
}

#define BALANCED(test) cmocka_unit_test_setup_teardown(test, balanced_before, balanced_after)

int main(void)
{
    const struct CMUnitTest tests[] = {
        BALANCED(blocks_are_aligned_and_do_not_overlap),
        BALANCED(zeroed_blocks_are_zero),
        BALANCED(realloc_keeps_the_contents),
        BALANCED(statistics_count_allocations_and_frees),
        BALANCED(the_recorded_peak_of_small_blocks_is_exact),
        BALANCED(allocations_beyond_the_memory_limit_fail),
        BALANCED(the_memory_limit_counts_frees_by_other_threads),
        BALANCED(grd_memory_fail_at_makes_allocations_fail),
        BALANCED(trimming_releases_free_memory),
        BALANCED(threads_free_each_others_blocks),
        BALANCED(free_blocks_of_an_ended_thread_are_reused),
        BALANCED(a_forked_child_can_allocate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
