/* Tests what several threads may do to one tensor at the same time, in random order: read, set, clear and accumulate gradients, set requires_grad,
 * add hooks, read grad_fn, write in place, use tangents, drop references, record and run graphs. Nothing may crash and no reference may be lost,
 * but elements may get mixtures of the values that several threads write. GRADUS_TEST_SECONDS sets the duration of the random actions in seconds.
 *
 * Also tests that long chains of tensors, each of which owns the one before, are freed with a small stack. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../unit/support.h"

/* Tells ThreadSanitizer to ignore races inside kernels, because in this test several threads may write the same elements. */
__attribute__((visibility("default"))) const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void)
{
    return "race:src/kernel/\n"
           "race:_rows.h\n"
           "race:src/op/copy.c\n"
           "race:fill_bytes\n";
}

enum { THREADS = 8, LEAVES = 3, CELLS = 3, VIEWS = 3, N = 6 };

static grd_tensor *leaves[LEAVES], *plain;
static atomic_int unexpected;

/* A cell is a shared variable with a lock. Threads exchange tensors through cells. A thread that takes a tensor gets a reference of its own, and
 * the cell keeps its reference. */
static struct cell {
    pthread_mutex_t lock;
    grd_tensor *t;
} cells[CELLS], views[VIEWS];

static grd_tensor *take(struct cell *cell)
{
    pthread_mutex_lock(&cell->lock);
    grd_tensor *t = grd_keep(cell->t);
    pthread_mutex_unlock(&cell->lock);
    return grd_scope_give(t);
}

static void put(struct cell *cell, grd_tensor *t)
{
    pthread_mutex_lock(&cell->lock);
    grd_tensor *old = cell->t;
    cell->t = grd_keep(t);
    pthread_mutex_unlock(&cell->lock);
    grd_drop(old);
}

static uint32_t next_random(uint32_t *seed)
{
    *seed = *seed * 1664525 + 1013904223;
    return *seed >> 8;
}

static double test_seconds(void)
{
    const char *text = getenv("GRADUS_TEST_SECONDS");
    return text != NULL ? atof(text) : 0.5;
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* ---- Random actions --------------------------------------------------------------------------------------------------------------- */

/* Returns exp(leaf * plain), whose graph the threads share and extend. */
static grd_tensor *new_trunk(grd_tensor *leaf)
{
    return grd_exp(grd_mul(leaf, plain));
}

static grd_tensor *pass_on(grd_tensor *grad, void *context)
{
    (void)context;
    return grad;
}

static void see(grd_node *node, grd_tensors outputs, grd_tensor **grads, int n, void *context)
{
    (void)node, (void)outputs, (void)grads, (void)n, (void)context;
}

static void see_leaf(grd_tensor *leaf, void *context)
{
    (void)context;
    grd_grad_of(leaf);
}

static void act_on_gradient(uint32_t choice, grd_tensor *leaf)
{
    grd_tensor *grad = grd_grad_of(leaf);
    switch (choice % 5) {
    case 0:
        grd_set_grad(leaf, NULL);
        break;
    case 1:
        grd_set_grad(leaf, grd_ones(grd_dims(N)));
        break;
    case 2:
        if (grad != NULL)
            grd_zero_(grad);
        break;
    case 3:
        if (grad != NULL)
            grd_item_double(grd_sum(grad));
        break;
    default:
        grd_backward_all(grd_tensors(grd_sum(grd_mul(leaf, leaf))), &(grd_backward_options){.create_graph = choice % 3 == 0});
    }
}

static void act_on_hooks(uint32_t choice, grd_tensor *leaf, grd_tensor *trunk)
{
    uint64_t handle;
    grd_node *node = grd_grad_fn(trunk);
    switch (choice % 5) {
    case 0:
        handle = grd_hook_tensor(leaf, pass_on, NULL, NULL);
        break;
    case 1:
        handle = grd_hook_tensor(trunk, pass_on, NULL, NULL);
        break;
    case 2:
        handle = node != NULL ? grd_hook_node(node, choice % 2, see, NULL, NULL) : 0;
        break;
    case 3:
        handle = grd_hook_accumulated(leaf, see_leaf, NULL, NULL);
        break;
    default:
        handle = 0;
        grd_retain_grad(trunk);
        grd_set_grad(trunk, choice % 2 ? NULL : grd_ones(grd_dims(N)));
        grd_grad_of(trunk);
    }
    grd_backward_all(grd_tensors(grd_sum(trunk)), &(grd_backward_options){.retain_graph = choice % 4 != 0});
    grd_hook_remove(handle);
}

static void act_on_history(uint32_t choice, grd_tensor *leaf, struct cell *cell, grd_tensor *trunk)
{
    switch (choice % 8) {
    case 0:
        put(cell, new_trunk(leaf));
        break;
    case 1:
        grd_add_(trunk, leaf);
        break;
    case 2:
        grd_copy_(trunk, leaf);
        break;
    case 3:
        grd_zero_(trunk);
        break;
    case 4:
        grd_mul_(grd_narrow(trunk, 0, 1, 3), grd_narrow(leaf, 0, 0, 3));
        break;
    case 5:
        grd_node_name(grd_grad_fn(trunk));
        grd_is_leaf(trunk);
        grd_error_clear();
        break;
    default: {
        grd_tensor *grad;
        grd_grad(grd_tensors(grd_sum(grd_mul(trunk, leaf))), grd_tensors(leaf),
                 &(grd_backward_options){.retain_graph = true, .allow_unused = true}, &grad);
    }
    }
}

static void act_on_views(uint32_t choice, struct cell *cell, grd_tensor *trunk)
{
    grd_tensor *view = take(cell);
    switch (choice % 4) {
    case 0:
        put(cell, grd_narrow(trunk, 0, 2, 2));
        break;
    case 1:
        grd_add_(view, grd_ones(grd_dims(2)));
        break;
    case 2:
        grd_backward_all(grd_tensors(grd_sum(view)), &(grd_backward_options){.retain_graph = true});
        break;
    default:
        grd_grad_fn(view);
        grd_requires_grad(view);
    }
}

static void act_on_flags(uint32_t choice, grd_tensor *leaf)
{
    switch (choice % 4) {
    case 0:
        grd_set_requires_grad(plain, choice % 3 == 0);
        break;
    case 1:
        grd_mul(plain, leaf);
        break;
    case 2: {
        const bool enabled = grd_set_grad_enabled(false);
        grd_add_(leaf, plain);
        grd_fill_(leaf, grd_float(0.5));
        grd_set_grad_enabled(enabled);
        break;
    }
    default:
        grd_backward(grd_sum(grd_sin(grd_mul(leaf, plain))));
    }
}

/* Computes with dual tensors inside a dual level of the calling thread. Other threads may use these tensors, too. The tangents are removed when
 * this level is exited. */
static void act_on_tangents(uint32_t choice, grd_tensor *leaf, struct cell *cell, grd_tensor *trunk)
{
    grd_enter_dual_level();
    grd_tensor *dual = grd_make_dual(choice % 2 ? leaf : trunk, grd_ones(grd_dims(N))), *y = grd_mul(grd_exp(dual), trunk), *grad;
    switch (choice / 2 % 4) {
    case 0:
        put(cell, y);
        break;
    case 1:
        grd_add_(trunk, y);
        grd_tangent(trunk);
        break;
    case 2:
        grd_mul_(grd_narrow(trunk, 0, 1, 3), grd_narrow(y, 0, 0, 3));
        break;
    default:
        grd_grad(grd_tensors(grd_sum(y)), grd_tensors(dual),
                 &(grd_backward_options){.retain_graph = true, .create_graph = choice % 3 == 0, .allow_unused = true}, &grad);
        if (grd_ok() && grad != NULL)
            grd_tangent(grad);
    }
    grd_exit_dual_level();
}

/* Clears the pending error. The errors in `known` may occur if one thread writes tensors that another thread's graph needs. Any other error is
 * counted in `unexpected`, which makes the test fail. */
static void expect_known_error(void)
{
    static const char *const known[] = {"has been modified by an inplace operation",
                                        "through the graph a second time",
                                        "does not require grad",
                                        "a leaf Variable that requires grad",
                                        "that doesn't require gradient",
                                        "that has requires_grad=False",
                                        "you can only change requires_grad flags of leaf variables"};
    bool found = grd_ok();
    for (int i = 0; i < GRD_LENGTH(known); i++)
        found |= strstr(grd_error_message(), known[i]) != NULL;
    if (!found && atomic_fetch_add(&unexpected, 1) == 0)
        fprintf(stderr, "unexpected: %s\n", grd_error_message());
    grd_error_clear();
}

static void *act(void *number)
{
    const double end = seconds() + test_seconds();
    uint32_t seed = (uint32_t)(intptr_t)number * 77 + 1;
    do {
        const grd_scope scope = grd_scope_open();
        const uint32_t what = next_random(&seed) % 6, choice = next_random(&seed);
        grd_tensor *leaf = leaves[next_random(&seed) % LEAVES];
        struct cell *cell = &cells[next_random(&seed) % CELLS];
        grd_tensor *trunk = take(cell);
        if (what == 0)
            act_on_gradient(choice, leaf);
        else if (what == 1)
            act_on_hooks(choice, leaf, trunk);
        else if (what == 2)
            act_on_history(choice, leaf, cell, trunk);
        else if (what == 3)
            act_on_views(choice, &views[choice / 4 % VIEWS], trunk);
        else if (what == 4)
            act_on_tangents(choice, leaf, cell, trunk);
        else
            act_on_flags(choice, leaf);
        expect_known_error();
        grd_scope_close(scope);
    } while (seconds() < end);
    return NULL;
}

static void test_threads_do_random_actions_on_shared_tensors(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    grd_zeros(grd_dims(1)); /* the first tensor makes this thread allocate memory that it keeps; it must not count as a leak */
    const int64_t before = grd_memory_get_stats().blocks;
    const grd_scope scope = grd_scope_open();
    plain = grd_keep(grd_mul_scalar(grd_ones(grd_dims(N)), grd_float(0.25)));
    for (int i = 0; i < LEAVES; i++)
        leaves[i] = grd_keep(grd_set_requires_grad(grd_ones(grd_dims(N)), true));
    for (int i = 0; i < CELLS; i++) {
        pthread_mutex_init(&cells[i].lock, NULL);
        put(&cells[i], new_trunk(leaves[i % LEAVES]));
        pthread_mutex_init(&views[i].lock, NULL);
        put(&views[i], grd_narrow(cells[i].t, 0, 0, 2));
    }
    grd_scope_close(scope);
    for (intptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, act, (void *)i), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < LEAVES; i++)
        /* A gradient made with create_graph is part of a reference cycle with its leaf. Removing the gradient breaks the cycle. */
        grd_set_grad(leaves[i], NULL);
    for (int i = 0; i < CELLS; i++) {
        put(&cells[i], NULL);
        put(&views[i], NULL);
    }
    for (int i = 0; i < LEAVES; i++)
        grd_drop(leaves[i]);
    grd_drop(plain);
    assert_int_equal(atomic_load(&unexpected), 0);
    assert_int_equal(grd_memory_get_stats().blocks, before);
}

/* ---- No accumulated gradient is lost ------------------------------------------------------------------------------------------------- */

enum { ROUNDS = 400 };
static grd_tensor *counter;
static atomic_int taken_out;

/* Thread function: adds 1 to the gradient of `counter` ROUNDS times, alternately in place and by making a new gradient (create_graph). */
static void *accumulate_ones(void *number)
{
    for (int i = 0; i < ROUNDS; i++) {
        const grd_scope scope = grd_scope_open();
        const bool copies = ((intptr_t)number + i) % 2 == 0;
        grd_backward_all(grd_tensors(grd_sum(counter)), &(grd_backward_options){.create_graph = copies});
        grd_scope_close(scope);
    }
    return NULL;
}

static void test_concurrent_accumulations_are_not_lost(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    counter = grd_set_requires_grad(grd_zeros(grd_dims(1)), true);
    atomic_store(&taken_out, 0);
    for (intptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, accumulate_ones, (void *)i), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_true(grd_item_double(grd_grad_of(counter)) == (double)THREADS * ROUNDS);
}

/* ---- No reference cycles -------------------------------------------------------------------------------------------------------------- */
/* One thread multiplies pair[0] in place by pair[1]. At the same time another thread multiplies pair[1] in place by pair[0]. The node of each product
 * saves the tensor that the other thread writes, which must not make a reference cycle. */
static grd_tensor *pair[2];
static pthread_barrier_t start;

static void *multiply_by_other(void *number)
{
    const intptr_t own = (intptr_t)number;
    for (int i = 0; i < ROUNDS; i++) {
        pthread_barrier_wait(&start);
        const grd_scope scope = grd_scope_open();
        grd_mul_(pair[own], pair[1 - own]);
        assert_true(grd_ok());
        grd_scope_close(scope);
        pthread_barrier_wait(&start);
    }
    return NULL;
}

static void test_concurrent_in_place_products_make_no_reference_cycle(void **state)
{
    (void)state;
    pthread_t threads[2];
    grd_zeros(grd_dims(1));
    const int64_t before = grd_memory_get_stats().blocks;
    pthread_barrier_init(&start, NULL, 3);
    for (intptr_t i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, multiply_by_other, (void *)i), 0);
    for (int i = 0; i < ROUNDS; i++) {
        const grd_scope scope = grd_scope_open();
        for (int k = 0; k < 2; k++)
            pair[k] = grd_keep(grd_mul_scalar(grd_ones(grd_dims(N), .requires_grad = true), grd_int(2)));
        pthread_barrier_wait(&start);
        pthread_barrier_wait(&start);
        for (int k = 0; k < 2; k++)
            grd_drop(pair[k]);
        grd_scope_close(scope);
    }
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&start);
    assert_int_equal(grd_memory_get_stats().blocks, before);
}

static void *stay(void *unused)
{
    grd_zeros(grd_dims(1));
    pthread_barrier_wait(&start);
    pthread_barrier_wait(&start);
    return unused;
}

/* While a second thread exists, a tensor whose grad_fn changes also keeps its first grad_fn alive. Here mul_ gives `a` a new grad_fn that saves
 * `b`, and the first grad_fn of `b` has saved `a`. This must not make a reference cycle. */
static void test_an_overwritten_first_history_makes_no_reference_cycle(void **state)
{
    (void)state;
    pthread_t thread;
    grd_zeros(grd_dims(1));
    const int64_t before = grd_memory_get_stats().blocks;
    pthread_barrier_init(&start, NULL, 2);
    assert_int_equal(pthread_create(&thread, NULL, stay, NULL), 0);
    pthread_barrier_wait(&start);
    const grd_scope scope = grd_scope_open();
    grd_tensor *leaf = grd_ones(grd_dims(N), .requires_grad = true), *a = grd_exp(leaf), *b = grd_mul(a, a);
    grd_logical_not_(b);
    grd_mul_(a, b);
    assert_true(grd_ok());
    grd_scope_close(scope);
    pthread_barrier_wait(&start);
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&start);
    assert_int_equal(grd_memory_get_stats().blocks, before);
}

/* ---- Chains of tensors that own each other --------------------------------------------------------------------------------------------- */

enum { LINKS = 300000, SMALL_STACK = 512 << 10 };

/* Each function chain_of_... returns the last tensor of a chain of n tensors in which each tensor owns the one before it. The caller owns the
 * result. */
static grd_tensor *chain_of_gradients(int n)
{
    grd_tensor *last = grd_keep(grd_zeros(grd_dims(1)));
    for (int i = 0; i < n; i++) {
        const grd_scope scope = grd_scope_open();
        grd_tensor *t = grd_keep(grd_zeros(grd_dims(1)));
        grd_set_grad(t, last);
        grd_drop(last);
        last = t;
        grd_scope_close(scope);
    }
    return last;
}

static grd_tensor *chain_of_kept_gradients(int n)
{
    grd_tensor *last = grd_keep(grd_zeros(grd_dims(1))), *leaf = grd_set_requires_grad(grd_zeros(grd_dims(1)), true);
    for (int i = 0; i < n; i++) {
        const grd_scope scope = grd_scope_open();
        grd_tensor *t = grd_keep(grd_neg(leaf));
        grd_retain_grad(t);
        grd_set_grad(t, last);
        grd_drop(last);
        last = t;
        grd_scope_close(scope);
    }
    return last;
}

static grd_tensor *chain_of_nodes(int n)
{
    grd_tensor *last = grd_keep(grd_ones(grd_dims(1), .requires_grad = true));
    for (int i = 0; i < n; i++) {
        const grd_scope scope = grd_scope_open();
        grd_tensor *t = grd_keep(grd_sin(last)); /* the node of sin saves `last` */
        grd_drop(last);
        last = t;
        grd_scope_close(scope);
    }
    return last;
}

static grd_tensor *chain_of_views(int n)
{
    grd_tensor *last = grd_keep(grd_mul_scalar(grd_ones(grd_dims(2), .requires_grad = true), grd_int(2)));
    for (int i = 0; i < n; i++) {
        const grd_scope scope = grd_scope_open();
        grd_tensor *t = grd_keep(grd_narrow(last, 0, 0, 2));
        if (i % 1000 == 0)
            grd_add_(t, grd_ones(grd_dims(2)));
        grd_drop(last);
        last = t;
        grd_scope_close(scope);
    }
    return last;
}

static void drop_tensor(void *context)
{
    grd_drop(context);
}

static grd_tensor *chain_of_hooks(int n)
{
    grd_tensor *last = grd_keep(grd_zeros(grd_dims(1)));
    for (int i = 0; i < n; i++) {
        const grd_scope scope = grd_scope_open();
        grd_tensor *t = grd_keep(grd_zeros(grd_dims(1), .requires_grad = true));
        grd_hook_tensor(t, pass_on, last, drop_tensor);
        last = t;
        grd_scope_close(scope);
    }
    return last;
}

static grd_tensor *chain_of_functions(int n)
{
    grd_tensor *last = grd_keep(grd_ones(grd_dims(1), .requires_grad = true));
    for (int i = 0; i < n; i++) {
        const grd_scope scope = grd_scope_open();
        const grd_custom_function function = {.name = "Link", .inputs = 1, .context = grd_keep(last), .release = drop_tensor};
        grd_custom_call *call = grd_custom_begin(&function, &last);
        grd_tensor *output = grd_zeros(grd_dims(1));
        grd_custom_save(call, last);
        assert_true(grd_custom_end(call, &output, 1));
        grd_keep(output);
        grd_drop(last);
        last = output;
        grd_scope_close(scope);
    }
    return last;
}

static grd_tensor *chain_of_memory(int n)
{
    static float element;
    grd_tensor *last = grd_keep(grd_zeros(grd_dims(1)));
    for (int i = 0; i < n; i++) {
        const grd_scope scope = grd_scope_open();
        last = grd_keep(grd_from_memory(&element, grd_dims(1), (grd_dims){0}, 0, GRD_FLOAT32, drop_tensor, last));
        grd_scope_close(scope);
    }
    return last;
}

static grd_tensor *chain_of_data(int n)
{
    grd_tensor *base = grd_keep(grd_zeros(grd_dims(2000))), *first = grd_keep(grd_narrow(base, 0, 0, 2));
    for (int i = 0; i < n; i++) {
        const grd_scope scope = grd_scope_open();
        grd_set_data(base, grd_zeros(grd_dims(2)));
        grd_drop(first);
        first = grd_keep(grd_narrow(base, 0, 0, 1));
        grd_scope_close(scope);
    }
    grd_drop(base);
    return first;
}

static void *make_and_drop(void *make)
{
    grd_tensor *last = (*(grd_tensor * (**)(int)) make)(LINKS);
    const bool ok = grd_ok() && !grd_is_failed(last);
    grd_drop(last);
    return ok ? make : NULL;
}

static void test_long_chains_of_tensors_are_freed_on_a_small_stack(void **state)
{
    (void)state;
#if defined(__SANITIZE_THREAD__)
    skip_because("ThreadSanitizer does not stand threads with a small stack");
#endif
    static grd_tensor *(*const makers[])(int) = {chain_of_gradients, chain_of_kept_gradients, chain_of_nodes,  chain_of_views,
                                                 chain_of_hooks,     chain_of_functions,      chain_of_memory, chain_of_data};
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, SMALL_STACK);
    const int64_t before = grd_memory_get_stats().blocks;
    for (int i = 0; i < GRD_LENGTH(makers); i++) {
        pthread_t thread;
        void *result;
        assert_int_equal(pthread_create(&thread, &attributes, make_and_drop, (void *)(uintptr_t)&makers[i]), 0);
        pthread_join(thread, &result);
        assert_non_null(result);
        assert_int_equal(grd_memory_get_stats().blocks, before);
    }
    pthread_attr_destroy(&attributes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_SCOPE(test_threads_do_random_actions_on_shared_tensors),
        IN_SCOPE(test_concurrent_accumulations_are_not_lost),
        IN_SCOPE(test_concurrent_in_place_products_make_no_reference_cycle),
        IN_SCOPE(test_an_overwritten_first_history_makes_no_reference_cycle),
        IN_SCOPE(test_long_chains_of_tensors_are_freed_on_a_small_stack),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
