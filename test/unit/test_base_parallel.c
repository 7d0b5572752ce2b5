/* Tests the thread pool: how a range is split, nested loops, several calling threads, and fork. */
#define _GNU_SOURCE /* for usleep and sched_getaffinity */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/parallel.h"
#include "base/thread.h"
#include "support.h"

enum { MAX_PIECES = 5000 };

struct record {
    int64_t begin, grain, end;
    atomic_int ran[MAX_PIECES];
    atomic_int wrong;
};

static void note(int64_t begin, int64_t end, void *context)
{
    struct record *r = context;
    int64_t piece = (begin - r->begin) / r->grain;
    int64_t expected_end = r->end - begin > r->grain ? begin + r->grain : r->end;
    if ((begin - r->begin) % r->grain != 0 || end != expected_end)
        atomic_fetch_add(&r->wrong, 1);
    atomic_fetch_add(&r->ran[piece], 1);
}

static void check_pieces(int64_t begin, int64_t end, int64_t grain)
{
    static _Thread_local struct record r;
    memset(&r, 0, sizeof r);
    r.begin = begin, r.end = end, r.grain = grain;
    grd_parallel_for(begin, end, grain, note, &r);
    int64_t pieces = end > begin ? (end - begin + grain - 1) / grain : 0;
    assert_int_equal(atomic_load(&r.wrong), 0);
    for (int64_t i = 0; i < MAX_PIECES; i++)
        assert_int_equal(atomic_load(&r.ran[i]), i < pieces);
}

static void splitting_does_not_depend_on_the_thread_count(void **state)
{
    (void)state;
    const int counts[] = {1, 2, 3, 8, 40, 2};
    for (int i = 0; i < GRD_LENGTH(counts); i++) {
        grd_set_num_threads(counts[i]);
        assert_int_equal(grd_num_threads(), counts[i]);
        check_pieces(0, 0, 1);
        check_pieces(5, 3, 1);
        check_pieces(0, 1, 1);
        check_pieces(0, 100, 100);
        check_pieces(0, 101, 100);
        check_pieces(-7, 1000, 13);
        check_pieces(0, MAX_PIECES, 1);
        check_pieces(INT64_MAX - 100, INT64_MAX, 7);
    }
}

/* Body of a loop of 100 iterations. Iteration 0 waits until *context, the number of other iterations that have run, is 99. */
static void wait_for_others(int64_t begin, int64_t end, void *context)
{
    atomic_int *others = context;
    (void)end;
    if (begin > 0)
        atomic_fetch_add(others, 1);
    while (begin == 0 && atomic_load(others) < 99)
        sched_yield();
}

static void idle_threads_take_over_waiting_work(void **state)
{
    (void)state;
    for (int threads = 2; threads < 5; threads++) {
        atomic_int others = 0;
        grd_set_num_threads(threads);
        grd_parallel_for(0, 100, 1, wait_for_others, &others);
        assert_int_equal(atomic_load(&others), 99);
    }
}

static void many_short_loops_in_a_row_complete(void **state)
{
    (void)state;
    grd_set_num_threads(4);
    for (int i = 0; i < 500; i++)
        check_pieces(0, 40 + i % 7, 5);
}

static void grain_size_zero_counts_as_one(void **state)
{
    (void)state;
    static struct record r;
    r = (struct record){.begin = 0, .end = 4, .grain = 1};
    grd_parallel_for(0, 4, 0, note, &r);
    assert_int_equal(atomic_load(&r.wrong), 0);
}

static void add_inner(int64_t begin, int64_t end, void *sum)
{
    atomic_fetch_add((_Atomic int64_t *)sum, grd_thread.in_parallel ? end - begin : -1000000);
}

static void run_inner(int64_t begin, int64_t end, void *sum)
{
    for (int64_t i = begin; i < end; i++) {
        grd_parallel_for(0, 100, 10, add_inner, sum);
        if (!grd_thread.in_parallel) /* the thread must still be marked as inside the outer loop */
            atomic_fetch_add((_Atomic int64_t *)sum, -1000000);
    }
}

static void nested_loops_run_on_the_calling_thread(void **state)
{
    (void)state;
    _Atomic int64_t sum = 0;
    grd_set_num_threads(4);
    assert_false(grd_thread.in_parallel);
    grd_parallel_for(0, 64, 1, run_inner, &sum);
    assert_false(grd_thread.in_parallel);
    assert_int_equal(atomic_load(&sum), 6400);
}

static void *call_often(void *unused)
{
    for (int i = 0; i < 200; i++)
        check_pieces(0, 300, 10);
    return unused;
}

static void several_threads_may_start_loops(void **state)
{
    (void)state;
    enum { CALLERS = 4 };
    pthread_t threads[CALLERS];
    grd_set_num_threads(3);
    for (int i = 0; i < CALLERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, call_often, NULL), 0);
    for (int i = 0; i < CALLERS; i++)
        pthread_join(threads[i], NULL);
}

static void wait_for_another(int64_t begin, int64_t end, void *context)
{
    (void)begin, (void)end;
    atomic_int *arrived = context;
    atomic_fetch_add(arrived, 1);
    for (int i = 0; i < 5000 && atomic_load(arrived) < 2; i++)
        usleep(1000);
}

static void worker_threads_run_part_of_a_loop(void **state)
{
    (void)state;
    atomic_int arrived = 0;
    grd_set_num_threads(2);
    grd_parallel_for(0, 2, 1, wait_for_another, &arrived);
    assert_int_equal(atomic_load(&arrived), 2);
}

static atomic_int confined; /* number of calls of note_processors on threads whose affinity mask differs from the one in `context` */

static void note_processors(int64_t begin, int64_t end, void *context)
{
    (void)begin, (void)end;
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0 || !CPU_EQUAL(&allowed, (cpu_set_t *)context))
        atomic_fetch_add(&confined, 1);
    usleep(100);
}

/* The thread pool may move a worker thread away from the processor of the calling thread. Afterwards the worker must be allowed to use all
 * processors, and must sleep while it has no work. */
static void idle_workers_sleep_and_may_use_every_processor(void **state)
{
    (void)state;
    cpu_set_t allowed;
    assert_int_equal(sched_getaffinity(0, sizeof allowed, &allowed), 0);
    grd_set_num_threads(4);
    for (int i = 0; i < 50; i++) {
        grd_parallel_for(0, 8, 1, note_processors, &allowed);
        usleep(i % 3 == 0 ? 1000 : 0);
    }
    assert_int_equal(atomic_load(&confined), 0);
    usleep(100 * 1000);
    const clock_t before = clock();
    usleep(100 * 1000);
    assert_true(clock() - before < CLOCKS_PER_SEC / 50);
}

static void invalid_thread_counts_are_refused(void **state)
{
    (void)state;
    grd_set_num_threads(3);
    const int bad[] = {0, -1, 1025};
    for (int i = 0; i < GRD_LENGTH(bad); i++) {
        grd_set_num_threads(bad[i]);
        assert_int_equal(grd_error_get(), GRD_ERROR_VALUE);
        grd_error_clear();
    }
    assert_int_equal(grd_num_threads(), 3);
}

static void parent_and_child_run_loops_after_fork(void **state)
{
    (void)state;
#if defined(GRADUS_EMULATED)
    skip_because("QEMU does not allow threads in the child of a program with threads");
#elif defined(__SANITIZE_THREAD__)
    skip_because("ThreadSanitizer does not allow threads in the child of a program with threads");
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
    skip_because("ThreadSanitizer does not allow threads in the child of a program with threads");
#endif
#endif
    grd_set_num_threads(3);
    check_pieces(0, 100, 1);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(20);
        atomic_int arrived = 0;
        grd_parallel_for(0, 2, 1, wait_for_another, &arrived); /* finishes only if a worker thread runs one of the two iterations */
        for (int i = 0; i < 50; i++)
            check_pieces(0, 100, 3);
        end_child(atomic_load(&arrived) == 2 ? 0 : 1);
    }
    for (int i = 0; i < 50; i++)
        check_pieces(0, 100, 3);
    assert_int_equal(status_of(child), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(splitting_does_not_depend_on_the_thread_count),
        cmocka_unit_test(idle_threads_take_over_waiting_work),
        cmocka_unit_test(many_short_loops_in_a_row_complete),
        cmocka_unit_test(grain_size_zero_counts_as_one),
        cmocka_unit_test(nested_loops_run_on_the_calling_thread),
        cmocka_unit_test(several_threads_may_start_loops),
        cmocka_unit_test(worker_threads_run_part_of_a_loop),
        cmocka_unit_test(idle_workers_sleep_and_may_use_every_processor),
        cmocka_unit_test(invalid_thread_counts_are_refused),
        cmocka_unit_test(parent_and_child_run_loops_after_fork),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
