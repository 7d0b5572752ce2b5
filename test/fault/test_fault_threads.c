/* Tests several threads that use the library at the same time: random operators on shared tensors, backward through shared leaves and graphs,
 * registration, hooks, a shared generator, changes of the number of threads, and threads that end with open scopes. The results are checked, and the
 * program also runs under ThreadSanitizer. */
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "../unit/support.h"

enum { THREADS = 8, ROUNDS = 60, SHARED = 6, LARGE = 70000 };

static grd_tensor *shared[SHARED];
static atomic_int wrong;

static void expect(bool holds)
{
    if (!holds)
        atomic_fetch_add(&wrong, 1);
}

static uint32_t next_random(uint32_t *seed)
{
    *seed = *seed * 1664525 + 1013904223;
    return *seed >> 8;
}

/* Runs `work` in all threads with the number of the thread as its argument. Fails the test if a call of `expect` failed in a thread. */
static void run_threads(void *(*work)(void *number))
{
    pthread_t threads[THREADS];
    atomic_store(&wrong, 0);
    for (intptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, (void *)i), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&wrong), 0);
}

/* ---- Random operators on shared tensors -------------------------------------------------------------------------------------------------- */

/* Applies one of 12 operators to x and y and returns the result. `choice` selects the operator. */
static grd_tensor *any_operator(uint32_t choice, grd_tensor *x, grd_tensor *y)
{
    switch (choice % 12) {
    case 0:
        return grd_add(x, y);
    case 1:
        return grd_mul(grd_transpose(x, 0, 1), grd_transpose(y, 0, 1));
    case 2:
        return grd_matmul(x, grd_transpose(y, 0, 1));
    case 3:
        return grd_sum(x, .dim = grd_dims(1));
    case 4:
        return grd_softmax(x, 1);
    case 5:
        return grd_exp(grd_slice(x, .step = -1));
    case 6:
        return grd_cat(grd_tensors(x, y));
    case 7:
        return grd_where(grd_gt(x, y), x, grd_number(grd_float(0)));
    case 8:
        return grd_index_select(x, 0, grd_zeros(grd_dims(3), .dtype = GRD_INT64));
    case 9:
        return grd_to(x, .dtype = GRD_FLOAT16);
    case 10:
        return grd_add_(grd_clone(x), grd_select(y, 0, 0)); /* writes a copy of its own and reads a shared tensor */
    default:
        return grd_cumsum(grd_as_strided(x, grd_dims(4, 4), grd_dims(1, 2)), 0);
    }
}

static double digest(grd_tensor *t)
{
    return grd_item_double(grd_sum(grd_to(t, .dtype = GRD_FLOAT64)));
}

/* alone[op][a][b] is the digest of the result of operator `op` for shared tensors a and b, computed before other threads start. */
static double alone[12][SHARED][SHARED];

static void *random_operators(void *number)
{
    uint32_t seed = (uint32_t)(intptr_t)number * 77 + 1;
    for (int i = 0; i < ROUNDS; i++) {
        const grd_scope scope = grd_scope_open();
        const uint32_t op = next_random(&seed) % 12, a = next_random(&seed) % SHARED, b = next_random(&seed) % SHARED;
        const double value = digest(any_operator(op, shared[a], shared[b]));
        expect(grd_ok() && memcmp(&value, &alone[op][a][b], sizeof value) == 0);
        if (i % 8 == 0) { /* no other thread may see this error, because errors are thread-local */
            grd_add(shared[0], grd_ones(grd_dims(3, 3, 3)));
            expect(!grd_ok());
            grd_error_clear();
        }
        grd_scope_close(scope);
    }
    return NULL;
}

/* Makes the shared tensors. Half of them are views of one storage. */
static void make_shared(void)
{
    grd_tensor *base = grd_sin(grd_arange(grd_int(SHARED * 20), .dtype = GRD_FLOAT32));
    for (int i = 0; i < SHARED; i++)
        shared[i] = i % 2 ? grd_cos(grd_arange(grd_int(20 * i), .end = grd_int(20 * i + 20), .dtype = GRD_FLOAT32))
                          : grd_narrow(base, 0, 20 * i, 20);
    for (int i = 0; i < SHARED; i++)
        shared[i] = grd_view(shared[i], grd_dims(4, 5));
    assert_true(grd_ok());
}

static void test_threads_run_random_operators_on_shared_tensors(void **state)
{
    (void)state;
    make_shared();
    for (uint32_t op = 0; op < 12; op++)
        for (int a = 0; a < SHARED; a++)
            for (int b = 0; b < SHARED; b++)
                alone[op][a][b] = digest(any_operator(op, shared[a], shared[b]));
    run_threads(random_operators);
}

/* Thread function: runs operators that are split among the pool's threads. Thread 0 changes the number of the pool's threads meanwhile. */
static void *large_operators(void *number)
{
    for (int i = 0; i < 12; i++) {
        const grd_scope scope = grd_scope_open();
        if ((intptr_t)number == 0)
            grd_set_num_threads(1 + i % 4);
        grd_tensor *x = grd_add_scalar(shared[0], grd_int(1));
        expect(grd_item_double(grd_sum(x)) == 2.0 * LARGE);
        grd_scope_close(scope);
    }
    return NULL;
}

static void test_the_thread_count_may_change_while_operators_run(void **state)
{
    (void)state;
    shared[0] = grd_ones(grd_dims(LARGE));
    run_threads(large_operators);
    grd_set_num_threads(2);
}

/* ---- Backward ------------------------------------------------------------------------------------------------------------------------------- */

static grd_tensor *leaf, *trunk;

/* Thread function: runs backward through a graph of its own down to a leaf that all threads share. */
static void *backward_to_shared_leaf(void *number)
{
    for (int i = 0; i < ROUNDS; i++) {
        const grd_scope scope = grd_scope_open();
        grd_backward(grd_sum(grd_mul_scalar(grd_mul(leaf, leaf), grd_int((intptr_t)number + 1))));
        expect(grd_ok());
        grd_scope_close(scope);
    }
    return NULL;
}

static void test_threads_run_backward_to_a_shared_leaf(void **state)
{
    (void)state;
    leaf = grd_set_requires_grad(grd_ones(grd_dims(5)), true);
    run_threads(backward_to_shared_leaf);
    /* Each of the 5 elements of the gradient is ROUNDS times the sum of 2 * (number + 1) over all threads. */
    assert_true(grd_item_double(grd_sum(grd_grad_of(leaf))) == 5.0 * ROUNDS * THREADS * (THREADS + 1));
}

/* Thread function: runs backward, with retain_graph, through the graph of `trunk`, which all threads share. */
static void *backward_through_shared_graph(void *number)
{
    const grd_backward_options retain = {.retain_graph = true};
    for (int i = 0; i < ROUNDS; i++) {
        const grd_scope scope = grd_scope_open();
        grd_tensor *mine = grd_sum(grd_mul_scalar(trunk, grd_int((intptr_t)number))), *grad;
        expect(grd_grad(grd_tensors(mine), grd_tensors(leaf), &retain, &grad) &&
               fabs(grd_item_double(grd_sum(grad)) - 5 * exp(1) * (double)(intptr_t)number) < 1e-9);
        grd_scope_close(scope);
    }
    return NULL;
}

static void test_threads_run_backward_through_a_shared_graph(void **state)
{
    (void)state;
    leaf = grd_set_requires_grad(grd_ones(grd_dims(5), .dtype = GRD_FLOAT64), true);
    trunk = grd_exp(grd_mul(leaf, grd_ones(GRD_NO_DIMS, .dtype = GRD_FLOAT64)));
    run_threads(backward_through_shared_graph);
}

/* Outputs of a custom function, one for each round. In a round one thread runs backward, which frees the saved tensor of the function. Meanwhile the
 * other threads read the saved tensor. */
static grd_tensor *curves[ROUNDS];
static pthread_barrier_t round_begins;

static void exp_forward(grd_custom_call *call, grd_tensor *const *inputs, grd_tensor **ret_outputs)
{
    grd_tensor *slope = grd_exp(inputs[0]);
    grd_custom_save(call, slope);
    ret_outputs[0] = grd_clone(slope);
}

static void exp_backward(grd_custom_call *call, grd_tensor *const *grad_outputs, grd_tensor **ret_grads)
{
    ret_grads[0] = grd_mul(grad_outputs[0], grd_custom_saved(call, 0));
}

static void *ask_for_saved(void *number)
{
    for (int i = 0; i < ROUNDS; i++) {
        const grd_scope scope = grd_scope_open();
        pthread_barrier_wait(&round_begins);
        if ((intptr_t)number == i % THREADS) {
            grd_backward(grd_sum(curves[i]));
            expect(grd_ok());
        } else {
            grd_tensor *slope = grd_custom_saved(grd_node_custom_call(grd_grad_fn(curves[i]), NULL), 0);
            const bool found = grd_ok();
            expect(found ? grd_item_double(grd_sum(slope)) == 5 : strstr(grd_error_message(), "already been freed") != NULL);
            grd_error_clear();
        }
        grd_scope_close(scope);
    }
    return NULL;
}

static void test_saved_tensors_may_be_read_while_backward_frees_them(void **state)
{
    (void)state;
    const grd_custom_function function = {"Exp", exp_forward, exp_backward, 1, 1, NULL, NULL, NULL, NULL};
    leaf = grd_set_requires_grad(grd_zeros(grd_dims(5)), true);
    for (int i = 0; i < ROUNDS; i++)
        assert_true(grd_custom_apply(&function, &leaf, &curves[i]));
    pthread_barrier_init(&round_begins, NULL, THREADS);
    run_threads(ask_for_saved);
    pthread_barrier_destroy(&round_begins);
    assert_true(grd_item_double(grd_sum(grd_grad_of(leaf))) == 5 * ROUNDS);
}

/* Thread function: reads the grad_fn of a view, which is computed on demand after a write to the base, while other threads do the same. */
static void *ask_views(void *number)
{
    for (int i = 0; i < ROUNDS; i++) {
        const grd_scope scope = grd_scope_open();
        expect(grd_requires_grad(shared[(intptr_t)number % SHARED]));
        expect(grd_grad_fn(shared[(intptr_t)number % SHARED]) != NULL);
        grd_scope_close(scope);
    }
    return NULL;
}

static void test_threads_compute_the_grad_fn_of_views(void **state)
{
    (void)state;
    grd_tensor *base = grd_mul_scalar(grd_ones(grd_dims(SHARED, 4), .requires_grad = true), grd_int(2));
    for (int i = 0; i < SHARED; i++)
        shared[i] = grd_select(base, 0, i);
    grd_mul_(base, grd_number(grd_int(3)));
    assert_true(grd_ok());
    run_threads(ask_views);
}

/* ---- Hooks, registration, random numbers ------------------------------------------------------------------------------------------------------ */

static atomic_int hooks_called;

static grd_tensor *count_call(grd_tensor *grad, void *context)
{
    (void)context;
    atomic_fetch_add(&hooks_called, 1);
    return grad;
}

static void *change_hooks(void *number)
{
    for (int i = 0; i < ROUNDS; i++) {
        const grd_scope scope = grd_scope_open();
        const uint64_t handle = grd_hook_tensor(leaf, count_call, NULL, NULL);
        expect(handle != 0);
        if ((intptr_t)number % 2 == 0)
            grd_backward(grd_sum(grd_mul(leaf, leaf)));
        grd_hook_remove(handle);
        grd_hook_remove(handle); /* removing a hook twice has no effect */
        expect(grd_ok());
        grd_scope_close(scope);
    }
    return NULL;
}

static void test_threads_add_and_remove_hooks(void **state)
{
    (void)state;
    leaf = grd_set_requires_grad(grd_ones(grd_dims(3)), true);
    run_threads(change_hooks);
    assert_true(atomic_load(&hooks_called) >= ROUNDS * THREADS / 2);
}

static void pass_on(const grd_op *op, grd_keyset keys, grd_tensor *out, const grd_value *args, grd_value *ret_results, void *context)
{
    (void)context;
    grd_redispatch(op, keys & ~(1u << GRD_KEY_BATCH | 1u << GRD_KEY_WRAPPER), out, args, ret_results);
}

/* Thread function: registers and removes kernels, and runs operators. Other threads register the same kernels at the same time, so a registration may
 * fail. */
static void *change_registration(void *number)
{
    static const char *const names[] = {"exp", "sin", "add", "sum"};
    for (int i = 0; i < ROUNDS; i++) {
        const grd_scope scope = grd_scope_open();
        const char *name = names[((intptr_t)number + i) % 4];
        grd_register_kernel(name, GRD_KEY_BATCH, pass_on, NULL);
        const bool got = grd_ok();
        grd_error_clear();
        if (got)
            grd_unregister_kernel(name, GRD_KEY_BATCH);
        grd_register_fallback(GRD_KEY_WRAPPER, pass_on, NULL);
        if (grd_ok())
            grd_unregister_fallback(GRD_KEY_WRAPPER);
        grd_error_clear();
        expect(grd_item_double(grd_sum(grd_exp(grd_zeros(grd_dims(4))))) == 4);
        const grd_op *op = grd_op_find(name);
        expect(op != NULL && strcmp(grd_op_name(op), name) == 0);
        grd_scope_close(scope);
    }
    return NULL;
}

static void test_threads_register_kernels_while_operators_run(void **state)
{
    (void)state;
    run_threads(change_registration);
}

static grd_generator *generator;

static void *draw(void *number)
{
    for (int i = 0; i < ROUNDS; i++) {
        const grd_scope scope = grd_scope_open();
        grd_tensor *x = grd_rand(grd_dims(50), .generator = (intptr_t)number % 2 ? generator : NULL);
        const double sum = grd_item_double(grd_sum(x));
        expect(grd_ok() && sum > 0 && sum < 50);
        if (i % 16 == 0)
            grd_manual_seed((uint64_t)i);
        grd_scope_close(scope);
    }
    return NULL;
}

static void test_threads_draw_from_a_shared_generator(void **state)
{
    (void)state;
    generator = grd_generator_new(3);
    run_threads(draw);
    grd_generator_drop(generator);
}

/* ---- Threads that end with open scopes -------------------------------------------------------------------------------------------------------- */

static grd_tensor *_Atomic handed_over[THREADS];

/* Thread function: hands over a tensor to the main thread, and ends with open scopes and a pending error, which the library must free. */
static void *end_untidily(void *number)
{
    grd_scope_open();
    grd_tensor *x = grd_ones(grd_dims(100), .requires_grad = true);
    grd_scope_open();
    grd_tensor *y = grd_mul(x, x);
    for (int i = 0; i < 50; i++)
        y = grd_add_scalar(y, grd_int(0));
    atomic_store(&handed_over[(intptr_t)number], grd_keep(y));
    grd_add(x, grd_ones(grd_dims(7)));
    return NULL;
}

static void test_threads_may_end_with_open_scopes_and_errors(void **state)
{
    (void)state;
    const int64_t before = grd_memory_get_stats().blocks;
    run_threads(end_untidily);
    for (int i = 0; i < THREADS; i++) {
        const grd_scope scope = grd_scope_open();
        grd_tensor *y = atomic_load(&handed_over[i]);
        grd_backward(grd_sum(y));
        assert_true(grd_ok() && grd_item_double(grd_sum(y)) == 100);
        grd_drop(y);
        grd_scope_close(scope);
    }
    assert_int_equal(grd_memory_get_stats().blocks, before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_SCOPE(test_threads_run_random_operators_on_shared_tensors),
        IN_SCOPE(test_the_thread_count_may_change_while_operators_run),
        IN_SCOPE(test_threads_run_backward_to_a_shared_leaf),
        IN_SCOPE(test_threads_run_backward_through_a_shared_graph),
        IN_SCOPE(test_saved_tensors_may_be_read_while_backward_frees_them),
        IN_SCOPE(test_threads_compute_the_grad_fn_of_views),
        IN_SCOPE(test_threads_add_and_remove_hooks),
        IN_SCOPE(test_threads_register_kernels_while_operators_run),
        IN_SCOPE(test_threads_draw_from_a_shared_generator),
        IN_SCOPE(test_threads_may_end_with_open_scopes_and_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
