/* Tests the library on a system that restricts resources or whose calls fail. The linker redirects the library's calls of the C library to
 * the wrappers in this file (see CMakeLists.txt), which simulate the system that the running test describes. */
#define _GNU_SOURCE /* for cpu_set_t and fmemopen */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>

#include "base/cpu.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/parallel.h"
#include "base/small_blocks.h"
#include "base/thread.h"
#include "support.h"

/* ---- The simulated system -------------------------------------------------------------------------------------------------------- */

enum { MAX_FILES = 4, MIB = 1 << 20 };

struct machine {
    long processors, megabytes; /* negative if sysconf does not know the number */
    int affinity;               /* number of processors in the affinity mask; negative if sched_getaffinity fails */
    struct {
        const char *path, *text;
    } files[MAX_FILES];
};

static const struct machine *machine; /* the machine that is simulated; NULL for the real one */
static atomic_int refused;            /* how many of the next requests for memory, threads or random bytes fail */

FILE *__real_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode);
long __real_sysconf(int name);
long __wrap_sysconf(int name);
int __real_sched_getaffinity(pid_t pid, size_t size, cpu_set_t *ret_set);
int __wrap_sched_getaffinity(pid_t pid, size_t size, cpu_set_t *ret_set);
void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
int __real_posix_memalign(void **ret_block, size_t align, size_t size);
int __wrap_posix_memalign(void **ret_block, size_t align, size_t size);
void *__real_mmap(void *address, size_t size, int protection, int flags, int file, off_t offset);
void *__wrap_mmap(void *address, size_t size, int protection, int flags, int file, off_t offset);
int __real_pthread_create(pthread_t *ret_thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument);
int __wrap_pthread_create(pthread_t *ret_thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument);
ssize_t __real_getrandom(void *ret_bytes, size_t size, unsigned flags);
ssize_t __wrap_getrandom(void *ret_bytes, size_t size, unsigned flags);

static bool refuse(void)
{
    int left = atomic_load(&refused);
    while (left > 0 && !atomic_compare_exchange_weak(&refused, &left, left - 1))
        continue;
    return left > 0;
}

FILE *__wrap_fopen(const char *path, const char *mode)
{
    if (machine == NULL)
        return __real_fopen(path, mode);
    for (int i = 0; i < MAX_FILES && machine->files[i].path != NULL; i++)
        if (strcmp(path, machine->files[i].path) == 0)
            return fmemopen((void *)(uintptr_t)machine->files[i].text, strlen(machine->files[i].text), "r");
    errno = ENOENT;
    return NULL;
}

long __wrap_sysconf(int name)
{
    if (machine != NULL && name == _SC_NPROCESSORS_ONLN)
        return machine->processors;
    if (machine != NULL && name == _SC_PHYS_PAGES)
        return machine->megabytes < 0 ? -1 : machine->megabytes * MIB / __real_sysconf(_SC_PAGESIZE);
    return __real_sysconf(name);
}

int __wrap_sched_getaffinity(pid_t pid, size_t size, cpu_set_t *ret_set)
{
    if (machine == NULL)
        return __real_sched_getaffinity(pid, size, ret_set);
    if (machine->affinity < 0)
        return -1;
    CPU_ZERO(ret_set);
    for (int i = 0; i < machine->affinity; i++)
        CPU_SET(i, ret_set);
    return 0;
}

void *__wrap_malloc(size_t size)
{
    return refuse() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return refuse() ? NULL : __real_calloc(n, size);
}

int __wrap_posix_memalign(void **ret_block, size_t align, size_t size)
{
    return refuse() ? ENOMEM : __real_posix_memalign(ret_block, align, size);
}

void *__wrap_mmap(void *address, size_t size, int protection, int flags, int file, off_t offset)
{
    return refuse() ? MAP_FAILED : __real_mmap(address, size, protection, flags, file, offset);
}

int __wrap_pthread_create(pthread_t *ret_thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument)
{
    return refuse() ? EAGAIN : __real_pthread_create(ret_thread, attributes, run, argument);
}

ssize_t __wrap_getrandom(void *ret_bytes, size_t size, unsigned flags)
{
    return refuse() ? -1 : __real_getrandom(ret_bytes, size, flags);
}

/* ---- Restricted resources --------------------------------------------------------------------------------------------------------- */

static void cpu_count_respects_affinity_and_cgroup_limits(void **state)
{
    (void)state;
    static const struct {
        int expected;
        struct machine machine;
    } cases[] = {
        {8, {8, 64, 8, {{NULL, NULL}}}},
        {3, {8, 64, 3, {{NULL, NULL}}}},
        {8, {8, 64, -1, {{NULL, NULL}}}},
        {1, {-1, 64, -1, {{NULL, NULL}}}},
        /* cgroup version 2: the smallest limit of the cgroup and its ancestors holds. A limit of 1.5 processors is rounded up to 2 threads. */
        {2,
         {8,
          64,
          8,
          {{"/proc/self/cgroup", "0::/a/b\n"},
           {"/sys/fs/cgroup/a/b/cpu.max", "max 100000\n"},
           {"/sys/fs/cgroup/a/cpu.max", "150000 100000\n"},
           {"/sys/fs/cgroup/cpu.max", "400000 100000\n"}}}},
        {1, {8, 64, 8, {{"/proc/self/cgroup", "0::/\n"}, {"/sys/fs/cgroup/cpu.max", "50000 100000\n"}}}},
        {8, {8, 64, 8, {{"/proc/self/cgroup", "0::/\n"}, {"/sys/fs/cgroup/cpu.max", "1600000 100000\n"}}}},
        {8, {8, 64, 8, {{"/proc/self/cgroup", "0::/a\n"}, {"/sys/fs/cgroup/a/cpu.max", "100000 0\n"}}}},
        {8, {8, 64, 8, {{"/proc/self/cgroup", "0::/a\n"}, {"/sys/fs/cgroup/a/cpu.max", "100000\n"}}}},
        {8, {8, 64, 8, {{"/proc/self/cgroup", "0::/a\n"}}}},
        /* cgroup version 1: the line of the cpu controller is found among those of other controllers. */
        {3,
         {8,
          64,
          8,
          {{"/proc/self/cgroup", "no such line\n5:cpu\n3:cpuset:/x\n4:cpuacct,cpu:/a\n"},
           {"/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "250000\n"},
           {"/sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n"}}}},
        {8,
         {8,
          64,
          8,
          {{"/proc/self/cgroup", "4:cpu,cpuacct:/a\n"},
           {"/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "-1\n"},
           {"/sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n"}}}},
        {8,
         {8,
          64,
          8,
          {{"/proc/self/cgroup", "4:cpu:/a\n"},
           {"/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "100000\n"},
           {"/sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "0\n"}}}},
        {8, {8, 64, 8, {{"/proc/self/cgroup", "4:cpu:/a\n"}, {"/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "100000\n"}}}},
    };
    for (int i = 0; i < GRD_LENGTH(cases); i++) {
        machine = &cases[i].machine;
        const int count = grd_cpu_count();
        machine = NULL;
        if (count != cases[i].expected)
            fail_msg("case %d: %d processors, not %d", i, count, cases[i].expected);
    }
}

/* The library reads the memory size once per process, so each simulated machine is tested in a child process. */
static void memory_size_respects_cgroup_limits(void **state)
{
    (void)state;
    enum { UNIT = 16 * MIB };
    static const struct {
        int expected;
        struct machine machine;
    } cases[] = {
        {4, {8, 64, 8, {{NULL, NULL}}}},
        {64, {8, -1, 8, {{NULL, NULL}}}},
        {2, {8, 64, 8, {{"/proc/self/cgroup", "0::/a/b\n"}, {"/sys/fs/cgroup/a/memory.max", "33554432\n"}}}},
        {4, {8, 64, 8, {{"/proc/self/cgroup", "0::/a\n"}, {"/sys/fs/cgroup/a/memory.max", "max\n"}}}},
        {1, {8, 64, 8, {{"/proc/self/cgroup", "9:memory:/a\n"}, {"/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "16777216\n"}}}},
        {4, {8, 64, 8, {{"/proc/self/cgroup", "9:memory:/a\n"}, {"/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"}}}},
    };
    for (int i = 0; i < GRD_LENGTH(cases); i++) {
        const pid_t child = fork();
        if (child == 0) {
            machine = &cases[i].machine;
            const int64_t memory = grd_system_memory();
            machine = NULL;
            end_child((int)(memory / UNIT));
        }
        assert_int_equal(status_of(child), cases[i].expected);
    }
}

static void the_default_thread_count_is_at_most_1024(void **state)
{
    (void)state;
    const pid_t child = fork();
    if (child == 0) {
        static const struct machine large = {5000, 64, -1, {{NULL, NULL}}};
        unsetenv("GRADUS_NUM_THREADS");
        machine = &large;
        const int threads = grd_num_threads();
        machine = NULL;
        end_child(threads / 16);
    }
    assert_int_equal(status_of(child), 1024 / 16);
}

/* ---- System calls that fail ------------------------------------------------------------------------------------------------------- */

/* Checks that an allocation of `size` bytes fails with MemoryError while the system gives no memory. The error must have a fixed text, because
 * formatting one would need memory, too. */
static void expect_refused(size_t size)
{
    atomic_store(&refused, INT_MAX);
    void *block = grd_alloc(size);
    atomic_store(&refused, 0);
    assert_null(block);
    expect_error(GRD_ERROR_MEMORY, "an allocation failed or exceeds the limit");
}

static void failed_system_allocations_raise_memory_error(void **state)
{
    (void)state;
    const size_t sizes[] = {20, 700, 3000, 100000, 3 * MIB, 40 * MIB};
    grd_memory_trim();
    const grd_memory_stats before = grd_memory_get_stats();
    for (int i = 0; i < GRD_LENGTH(sizes); i++)
        expect_refused(sizes[i]);
    /* With a limit, bytes are counted before they are allocated, and subtracted again if the allocation fails. */
    grd_memory_set_limit(before.allocated + 100 * MIB);
    for (int i = 0; i < GRD_LENGTH(sizes); i++)
        expect_refused(sizes[i]);
    grd_memory_set_limit(0);
    const grd_memory_stats after = grd_memory_get_stats();
    assert_int_equal(after.allocated, before.allocated);
    assert_int_equal(after.blocks, before.blocks);
}

/* If the system refuses memory, the cache is released and the request is made again. */
static void a_failed_system_allocation_is_retried_without_the_cache(void **state)
{
    (void)state;
    grd_free(grd_alloc(3 * MIB), 3 * MIB);
    atomic_store(&refused, 1);
    void *block = grd_alloc(5 * MIB);
    atomic_store(&refused, 0);
    if (GRD_BLOCKS_SANITIZED) { /* in sanitizer builds nothing is cached, so there is no second attempt */
        assert_null(block);
        grd_error_clear();
        return;
    }
    assert_non_null(block);
    assert_true(grd_memory_get_stats().cached < 3 * MIB);
    grd_free(block, 5 * MIB);
}

/* The allocator caches at most half of the memory limit in freed blocks. It returns the rest to the system. */
static void the_cache_holds_at_most_half_the_memory_limit(void **state)
{
    (void)state;
    enum { N = 8 };
    void *blocks[N];
    grd_memory_trim();
    grd_memory_set_limit(grd_memory_get_stats().allocated + 32 * MIB);
    for (int i = 0; i < N; i++)
        blocks[i] = grd_alloc(3 * MIB);
    for (int i = 0; i < N; i++)
        grd_free(blocks[i], 3 * MIB);
    assert_true(grd_memory_get_stats().cached <= grd_memory_get_stats().limit / 2 + MIB);
    grd_memory_set_limit(0);
}

static void *blocks_of_another[3];
static const size_t sizes_of_another[] = {100, 20000, 200000};

/* Thread function. While the system gives no memory for the thread-local state, the thread cannot allocate and reports MemoryError, but it can free
 * blocks. */
static void *without_state(void *unused)
{
    atomic_store(&refused, INT_MAX);
    const bool grown = grd_pool_grow();
    const grd_error_code code = grd_error_get();
    const bool said = strcmp(grd_error_message(), "an allocation failed or exceeds the limit") == 0;
    grd_error_clear();
    void *block = grd_alloc(100);
    grd_error_clear();
    grd_memory_trim();
    for (int i = 0; i < GRD_LENGTH(blocks_of_another); i++)
        grd_free(blocks_of_another[i], sizes_of_another[i]);
    atomic_store(&refused, 0);
    assert_false(grown);
    assert_null(block);
    assert_int_equal(code, GRD_ERROR_MEMORY);
    assert_true(said);
    block = grd_alloc(100);
    assert_non_null(block);
    grd_free(block, 100);
    return unused;
}

static void a_thread_without_thread_local_state_can_free(void **state)
{
    (void)state;
    const int64_t before = grd_memory_get_stats().blocks;
    for (int i = 0; i < GRD_LENGTH(blocks_of_another); i++)
        blocks_of_another[i] = grd_alloc(sizes_of_another[i]);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, without_state, NULL), 0);
    pthread_join(thread, NULL);
    assert_int_equal(grd_memory_get_stats().blocks, before);
}

static void an_error_without_memory_for_its_text_keeps_its_code(void **state)
{
    (void)state;
    atomic_store(&refused, 1);
    grd_raise(GRD_ERROR_INDEX, "index %d", 7);
    assert_int_equal(atomic_load(&refused), 0);
    expect_error(GRD_ERROR_INDEX, "a dimension or an index is out of range");
    grd_raise(GRD_ERROR_INDEX, "index %d", 7);
    atomic_store(&refused, 1);
    grd_error_add_context("select");
    assert_int_equal(atomic_load(&refused), 0);
    expect_error(GRD_ERROR_INDEX, "index 7");
}

static void count_elements(int64_t begin, int64_t end, void *sum)
{
    atomic_fetch_add((_Atomic int64_t *)sum, end - begin);
}

static void loops_finish_without_worker_threads(void **state)
{
    (void)state;
    _Atomic int64_t sum = 0;
    const int before = grd_num_threads();
    for (int allowed = 0; allowed <= 1; allowed++) {
        grd_set_num_threads(4 + allowed);
        atomic_store(&refused, allowed == 0 ? INT_MAX : 0);
        grd_parallel_for(0, 100, 1, count_elements, &sum);
        atomic_store(&refused, 0);
    }
    assert_int_equal(atomic_load(&sum), 200);
    grd_set_num_threads(before);
}

/* Without random bytes from the system, seeds are taken from the clock and still differ. */
static void random_seeds_differ_without_getrandom(void **state)
{
    (void)state;
    grd_generator *generator = grd_generator_new(1);
    atomic_store(&refused, 2);
    const uint64_t first = grd_generator_seed_randomly(generator), second = grd_generator_seed_randomly(generator);
    assert_int_equal(atomic_load(&refused), 0);
    assert_true(first != second && first < UINT64_C(1) << 53 && second < UINT64_C(1) << 53);
    assert_int_equal(grd_generator_initial_seed(generator), second);
    grd_generator_drop(generator);
}

static void creating_a_generator_fails_without_memory(void **state)
{
    (void)state;
    grd_memory_fail_at(1, true);
    grd_generator *generator = grd_generator_new(1);
    grd_memory_fail_at(0, false);
    assert_null(generator);
    assert_int_equal(grd_error_get(), GRD_ERROR_MEMORY);
    grd_error_clear();
    assert_null(grd_generator_keep(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_size_respects_cgroup_limits),
        cmocka_unit_test(the_default_thread_count_is_at_most_1024),
        cmocka_unit_test(cpu_count_respects_affinity_and_cgroup_limits),
        cmocka_unit_test(failed_system_allocations_raise_memory_error),
        cmocka_unit_test(a_failed_system_allocation_is_retried_without_the_cache),
        cmocka_unit_test(the_cache_holds_at_most_half_the_memory_limit),
        cmocka_unit_test(a_thread_without_thread_local_state_can_free),
        cmocka_unit_test(an_error_without_memory_for_its_text_keeps_its_code),
        cmocka_unit_test(loops_finish_without_worker_threads),
        cmocka_unit_test(random_seeds_differ_without_getrandom),
        cmocka_unit_test(creating_a_generator_fails_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
