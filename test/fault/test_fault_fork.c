/* Tests forks while the thread pool's workers run and while other threads are inside operators, the allocator, backward and registration, so that
 * each lock is sometimes held by another thread at the fork. Parent and child both go on computing. The child checks its own results and exits with
 * 0, and an alarm kills a child that hangs. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../unit/support.h"
#include "base/parallel.h"
#include "base/transaction.h"
#include "dispatch/define.h"

/* Some tests are skipped under sanitizers. ThreadSanitizer does not allow threads in the child of a program with threads. GCC 12's AddressSanitizer
 * does not lock its allocator during a fork, so a child may wait forever for a lock that a thread of the parent held. */
#if defined(__SANITIZE_THREAD__)
enum { UNDER_TSAN = 1, UNDER_ASAN = 0 };
#elif defined(__SANITIZE_ADDRESS__)
enum { UNDER_TSAN = 0, UNDER_ASAN = 1 };
#else
enum { UNDER_TSAN = 0, UNDER_ASAN = 0 };
#endif

enum { THREADS = 4, FORKS = 40, LARGE = 100000, SECONDS = 60 };

static atomic_bool stop;
static atomic_int busy_threads, wrong;

/* ---- Work whose result is known ----------------------------------------------------------------------------------------------------- */

/* Computes with small and large tensors, so that the allocator's free lists, its large blocks and the thread pool are used. Returns true if the
 * results are right. */
static bool compute(void)
{
    const grd_scope scope = grd_scope_open();
    grd_tensor *large = grd_add_scalar(grd_mul_scalar(grd_ones(grd_dims(LARGE)), grd_float(2)), grd_float(1));
    grd_tensor *small = grd_matmul(grd_ones(grd_dims(3, 4)), grd_ones(grd_dims(4, 5)));
    const bool right = grd_item_double(grd_sum(large)) == 3.0 * LARGE && grd_item_double(grd_sum(small)) == 60 && grd_ok();
    grd_scope_close(scope);
    return right;
}

static bool differentiate(void)
{
    const grd_scope scope = grd_scope_open();
    grd_tensor *x = grd_ones(grd_dims(50, 40), .requires_grad = true);
    grd_backward(grd_sum(grd_mul(grd_mul(x, x), grd_exp(grd_mul_scalar(x, grd_float(0))))));
    const bool right = grd_ok() && grd_item_double(grd_sum(grd_grad_of(x))) == 2 * 50 * 40;
    grd_scope_close(scope);
    return right;
}

static bool draw(void)
{
    const grd_scope scope = grd_scope_open();
    grd_generator *generator = grd_generator_new(9);
    const double a = grd_item_double(grd_sum(grd_randn(grd_dims(100), .generator = generator)));
    grd_generator_seed(generator, 9);
    const double b = grd_item_double(grd_sum(grd_randn(grd_dims(100), .generator = generator)));
    grd_generator_drop(generator);
    grd_rand(grd_dims(10)); /* hangs if fork copied the lock of the default generator while it was held */
    const bool right = a == b && grd_ok();
    grd_scope_close(scope);
    return right;
}

static void nothing(const grd_op *op, grd_keyset keys, grd_tensor *out, const grd_value *args, grd_value *ret_results, void *context)
{
    (void)context;
    grd_redispatch(op, keys & ~(1u << GRD_KEY_WRAPPER), out, args, ret_results);
}

static void register_kernel(grd_key key)
{
    grd_register_kernel("sin", key, nothing, NULL);
    grd_unregister_kernel("sin", key);
}

static bool fail_once(void)
{
    const grd_scope scope = grd_scope_open();
    grd_add(grd_ones(grd_dims(2)), grd_ones(grd_dims(3)));
    const bool refused = !grd_ok();
    grd_error_clear();
    grd_scope_close(scope);
    return refused;
}

static bool define_fails(struct grd_transaction *transaction, const char *schema)
{
    grd_transaction_begin(transaction);
    const bool defined = grd_define_operator(&(grd_definition){.schema = schema, .gradients = {{"self", "grad"}}}) != NULL;
    grd_transaction_end(transaction, false);
    return defined;
}

/* Defines operator number i permanently, if i < FORKS. Then defines another operator in a transaction that fails. The failure undoes this
 * second definition. Only one thread may call this function, because the names of operators are unique. Returns true on success. */
static bool define(int i)
{
    char schema[64];
    struct grd_transaction transaction;
    snprintf(schema, sizeof schema, "fork::op_%d(Tensor self) -> Tensor", i);
    return (i >= FORKS || grd_define_operator(&(grd_definition){.schema = schema}) != NULL) &&
           define_fails(&transaction, "fork::taken_back(Tensor self) -> Tensor");
}

/* ---- Threads that are always busy -------------------------------------------------------------------------------------------------------- */

static void *keep_busy(void *number)
{
    atomic_fetch_add(&busy_threads, 1);
    for (int i = 0; !atomic_load(&stop); i++) {
        const bool right = compute() && differentiate() && draw() && fail_once();
        if ((intptr_t)number == 0)
            register_kernel(GRD_KEY_BATCH);
        if ((intptr_t)number == 1) {
            grd_memory_trim();
            grd_set_num_threads(1 + i % 4);
        }
        if (!right || ((intptr_t)number == 2 && !define(i)))
            atomic_fetch_add(&wrong, 1);
    }
    return NULL;
}

/* Calls fork. Under AddressSanitizer it first waits until the pool's workers are idle. Workers allocate when they start, and a fork during an
 * allocation could leave the allocator locked in the child. */
static pid_t fork_when_idle(void)
{
    if (UNDER_ASAN)
        usleep(300 * 1000);
    return fork();
}

static void *short_life(void *ret_right)
{
    *(bool *)ret_right = compute() && differentiate();
    return NULL;
}

/* Runs in the child. Uses every part of the library, starts a thread, and in generation 0 forks a child of its own. Returns the exit status, 0 on
 * success. */
static int live_as_child(int generation)
{
    alarm(SECONDS);
    grd_set_num_threads(3);
    for (int i = 0; i < 3; i++)
        if (!compute() || !differentiate() || !draw() || !fail_once())
            return 1;
    /* The key is not GRD_KEY_BATCH, because at the fork a thread of the parent may have had a kernel registered for GRD_KEY_BATCH. */
    register_kernel(GRD_KEY_WRAPPER);
    if (!grd_ok())
        return 2;
    struct grd_transaction transaction;
    /* Defines an operator in the child. This must work even if at the fork a thread of the parent was defining one with this name. */
    if (!define_fails(&transaction, "fork::taken_back(Tensor self) -> Tensor"))
        return 6;
    pthread_t thread;
    bool right = false;
    if (pthread_create(&thread, NULL, short_life, &right) != 0 || pthread_join(thread, NULL) != 0 || !right)
        return 3;
    grd_memory_trim();
    if (generation < 1) {
        const pid_t child = fork_when_idle();
        if (child == 0)
            end_child(live_as_child(generation + 1));
        int status;
        if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
            return 4;
    }
    const grd_memory_stats stats = grd_memory_get_stats();
    return stats.blocks < 0 || stats.allocated < 0 ? 5 : 0;
}

static void fork_often(void)
{
    for (int i = 0; i < FORKS; i++) {
        const pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0)
            end_child(live_as_child(0));
        assert_true(compute() && differentiate() && draw());
        assert_int_equal(status_of(child), 0);
    }
}

static void test_children_forked_while_threads_work_are_usable(void **state)
{
    (void)state;
    if (UNDER_TSAN || UNDER_ASAN)
        skip_because("sanitizers do not allow threads in the child of a program with threads");
    pthread_t threads[THREADS];
    grd_set_num_threads(3);
    assert_true(compute());
    for (intptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, keep_busy, (void *)i), 0);
    while (atomic_load(&busy_threads) < THREADS)
        usleep(100);
    fork_often();
    atomic_store(&stop, true);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&wrong), 0);
}

/* The forking thread has open scopes, a pending error and a recorded graph. The child must find the same error and must be able to run backward. */
static void test_a_forked_child_keeps_error_scope_and_graph(void **state)
{
    (void)state;
    if (UNDER_TSAN)
        skip_because("ThreadSanitizer does not allow threads in the child of a program with threads");
    grd_tensor *x = grd_ones(grd_dims(LARGE), .requires_grad = true), *y = grd_sum(grd_mul(x, x));
    grd_error_set(GRD_ERROR_VALUE, "pending");
    const pid_t child = fork_when_idle();
    if (child == 0) {
        alarm(SECONDS);
        const bool kept = strcmp(grd_error_message(), "pending") == 0;
        grd_error_clear();
        grd_backward(y);
        end_child(kept && grd_ok() && grd_item_double(grd_sum(grd_grad_of(x))) == 2.0 * LARGE ? live_as_child(0) : 9);
    }
    assert_string_equal(grd_error_message(), "pending");
    grd_error_clear();
    grd_backward(y);
    assert_true(grd_item_double(grd_sum(grd_grad_of(x))) == 2.0 * LARGE);
    assert_int_equal(status_of(child), 0);
}

/* Thread function: begins a transaction, as the loading of a plug-in does, and waits twice at the barrier `point`. Between the two waits the main
 * thread forks while it also has an open transaction. In the child the transaction of the main thread continues, and the transaction of this thread
 * is rolled back. */
static void *hold_open(void *point)
{
    struct grd_transaction transaction;
    grd_transaction_begin(&transaction);
    grd_define_operator(&(grd_definition){.schema = "other::op(Tensor self) -> Tensor", .gradients = {{"self", "grad"}}});
    grd_register_kernel("tan", GRD_KEY_WRAPPER, nothing, NULL);
    pthread_barrier_wait(point);
    pthread_barrier_wait(point);
    grd_transaction_end(&transaction, true);
    return NULL;
}

static bool other_is_free(void)
{
    grd_register_kernel("tan", GRD_KEY_WRAPPER, nothing, NULL);
    return grd_ok() && grd_op_find("other::op") == NULL &&
           grd_define_operator(&(grd_definition){.schema = "other::op(Tensor self) -> Tensor"}) != NULL;
}

static void test_a_forked_child_rolls_back_other_threads_transactions(void **state)
{
    (void)state;
    pthread_t thread;
    pthread_barrier_t point;
    struct grd_transaction transaction;
    pthread_barrier_init(&point, NULL, 2);
    grd_transaction_begin(&transaction);
    assert_non_null(grd_define_operator(&(grd_definition){.schema = "own::op(Tensor self) -> Tensor"}));
    assert_int_equal(pthread_create(&thread, NULL, hold_open, &point), 0);
    pthread_barrier_wait(&point);
    const pid_t child = fork_when_idle();
    if (child == 0) {
        alarm(SECONDS);
        const bool kept = grd_op_find("own::op") != NULL && grd_defined_count() == 0 && other_is_free();
        grd_transaction_end(&transaction, true);
        end_child(kept && grd_defined_count() == 2 && grd_op_find("own::op") != NULL ? 0 : 1);
    }
    assert_int_equal(status_of(child), 0);
    grd_transaction_end(&transaction, true);
    pthread_barrier_wait(&point);
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&point);
    assert_true(grd_op_find("own::op") != NULL && grd_op_find("other::op") != NULL);
    grd_unregister_kernel("tan", GRD_KEY_WRAPPER);
}

static atomic_int forked;

static void fork_in_a_piece(int64_t begin, int64_t end, void *context)
{
    (void)context;
    (void)end;
    if (begin != 0)
        return;
    const pid_t child = fork();
    if (child == 0)
        end_child(live_as_child(0));
    int status;
    atomic_store(&forked, child > 0 && waitpid(child, &status, 0) == child && status == 0);
}

/* An iteration of a parallel loop forks. The child has no worker threads and does not finish the loop. */
static void test_a_child_forked_in_a_parallel_loop_works(void **state)
{
    (void)state;
    if (UNDER_TSAN || UNDER_ASAN)
        skip_because("sanitizers do not allow threads in the child of a program with threads");
    grd_set_num_threads(3);
    for (int i = 0; i < 5; i++) {
        atomic_store(&forked, 0);
        grd_parallel_for(0, 64, 1, fork_in_a_piece, NULL);
        assert_int_equal(atomic_load(&forked), 1);
        assert_true(compute());
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_SCOPE(test_a_forked_child_keeps_error_scope_and_graph),
        IN_SCOPE(test_a_forked_child_rolls_back_other_threads_transactions),
        IN_SCOPE(test_a_child_forked_in_a_parallel_loop_works),
        IN_SCOPE(test_children_forked_while_threads_work_are_usable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
