/* Tests allocation failures outside operators: in functions that make, print and compare tensors, in the backward engine, hooks and custom
 * functions, and in generators and registration. In each scenario every allocation fails in turn, once alone and once together with all later ones.
 * Each failure must raise one MemoryError and leak nothing, and the scenario must work afterwards. The allocations of operators are tested in
 * operators.c. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../unit/support.h"
#include "core/tensor.h"

/* The value that the running scenario computed. It must be the same in every run that does not fail. */
static double result;

static grd_tensor *leaf(double first)
{
    const double values[] = {first, first + 1, first + 2};
    return grd_set_requires_grad(grd_from_data(values, grd_dims(3), GRD_FLOAT64), true);
}

static double total(grd_tensor *t)
{
    return grd_item_double(grd_sum(t));
}

/* ---- Tensors ----------------------------------------------------------------------------------------------------------------------- */

static void make_from_data(void)
{
    const float values[300] = {1, 2, 3};
    const int64_t sizes[] = {1, 2, 1, 5, 1, 30, 1};
    result = total(grd_from_data(values, grd_dims_from(sizes, 7), GRD_FLOAT32));
    result += total(grd_from_data(values, grd_dims(3), GRD_FLOAT32));
}

static int released;

static void count_release(void *context)
{
    (void)context;
    released++;
}

static void borrow_memory(void)
{
    static float values[6] = {1, 2, 3, 4, 5, 6};
    const int64_t sizes[] = {1, 1, 1, 1, 1, 6};
    released = 0;
    const grd_scope scope = grd_scope_open();
    grd_tensor *t = grd_from_memory(values, grd_dims_from(sizes, 6), (grd_dims){0, NULL}, 0, GRD_FLOAT32, count_release, NULL);
    const bool made = !grd_is_failed(t);
    result = total(t);
    grd_scope_close(scope);
    assert_int_equal(released, made); /* if the call fails, the memory still belongs to the caller */
}

static void use_numbers(void)
{
    grd_tensor *x = grd_ones(grd_dims(3));
    result = total(grd_add_scalar(grd_mul_scalar(x, grd_float(2)), grd_int(1))) + grd_item_double(grd_number(grd_float(0.5)));
}

static void print_one(void)
{
    grd_tensor *x = grd_arange(grd_float(0), .end = grd_float(200), .step = grd_float(1));
    char *text = grd_to_string(grd_view(grd_transpose(grd_view(x, grd_dims(10, 20)), 0, 1), grd_dims(2, 10, 10)));
    assert_true(text != NULL || !grd_ok());
    result = text != NULL ? (double)strlen(text) : 0;
    free(text);
}

static void draw_one(void)
{
    char *text = grd_draw_strides(grd_transpose(grd_view(grd_arange(grd_int(200)), grd_dims(10, 20)), 0, 1));
    assert_true(text != NULL || !grd_ok());
    result = text != NULL ? (double)strlen(text) : 0;
    free(text);
}

static void compare(void)
{
    grd_tensor *a = grd_ones(grd_dims(4, 40)), *b = grd_mul_scalar(a, grd_float(1 + 1e-9));
    result = grd_equal(a, b) + 2 * grd_allclose(a, b, 1e-5, 1e-8, false);
}

static void keep_views(void)
{
    grd_tensor *kept = grd_keep(grd_zeros(grd_dims(2, 3, 4, 5, 6, 2)));
    const grd_scope scope = grd_scope_open();
    grd_tensor *view = grd_keep(grd_select(grd_transpose(kept, 0, 5), 1, 2));
    grd_scope_close(scope);
    result = (double)grd_numel(view);
    grd_drop(kept);
    result += total(view);
    grd_drop(view);
}

/* Thread function: creates 400 tensors in one scope. The thread's list of temporary tensors is shorter at first, so it must grow. */
static void fill_the_pool(void *unused)
{
    (void)unused;
    const grd_scope scope = grd_scope_open();
    grd_tensor *sum = grd_zeros(GRD_NO_DIMS);
    for (int i = 0; i < 400 && grd_ok(); i++)
        sum = grd_add_scalar(sum, grd_int(1));
    result = grd_item_double(sum);
    grd_scope_close(scope);
}

static grd_error_code thread_error;

static void *in_new_thread(void *work)
{
    ((void (*)(void *))work)(NULL);
    thread_error = grd_error_get();
    grd_error_clear();
    return NULL;
}

static void work_in_a_new_thread(void)
{
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, in_new_thread, (void *)fill_the_pool), 0);
    pthread_join(thread, NULL);
    if (thread_error != GRD_ERROR_NONE)
        grd_error_set(thread_error, "cannot allocate, said a thread");
}

static void make_generators(void)
{
    grd_generator *generator = grd_generator_new(5);
    if (generator == NULL)
        return;
    grd_tensor *x = grd_empty(grd_dims(40), .dtype = GRD_FLOAT64);
    result = total(grd_normal_(x, .generator = generator));
    grd_generator_drop(generator);
}

/* ---- Gradients ----------------------------------------------------------------------------------------------------------------------- */

static void backward(void)
{
    grd_tensor *x = leaf(1), *y = leaf(2);
    grd_backward(grd_sum(grd_add(grd_mul(grd_exp(x), y), grd_mul(x, y))));
    if (grd_ok())
        result = total(grd_grad_of(x)) + total(grd_grad_of(y));
}

static void backward_twice(void)
{
    grd_tensor *x = leaf(1), *g, *gg;
    const grd_backward_options create = {.create_graph = true};
    grd_tensor *y = grd_sum(grd_mul(grd_mul(x, x), grd_sin(x)));
    if (grd_grad(grd_tensors(y), grd_tensors(x), &create, &g) && grd_grad(grd_tensors(grd_sum(grd_mul(g, g))), grd_tensors(x), NULL, &gg))
        result = total(gg);
}

/* Runs backward through so many nodes and inputs that the engine's fixed-size arrays do not suffice and it has to allocate. */
static void backward_wide(void)
{
    grd_tensor *parts[40], *x = leaf(1);
    for (int i = 0; i < 40; i++)
        parts[i] = grd_mul_scalar(grd_add(x, grd_square(x)), grd_int(i));
    grd_tensor *all = grd_cat(grd_tensors_from(parts, 40));
    for (int i = 0; i < 40 && grd_ok(); i++)
        all = grd_sin(all);
    grd_backward(grd_sum(all));
    if (grd_ok())
        result = total(grd_grad_of(x));
}

static void backward_to_several(void)
{
    grd_tensor *x = leaf(1), *y = leaf(3);
    const grd_tensors parts = grd_split_with_sizes(grd_mul(x, y), grd_dims(1, 2));
    if (!grd_ok())
        return;
    const grd_backward_options options = {.grad_outputs = grd_tensors(grd_ones_like(parts.data[0]), grd_ones_like(parts.data[1]))};
    grd_backward_all(parts, &options);
    if (grd_ok())
        result = total(grd_grad_of(x)) + total(grd_grad_of(y));
}

/* Checks that the recorded graph is intact after a failed backward pass, and can be used again. */
static void backward_again_after_failure(void)
{
    grd_tensor *x = leaf(1), *y = grd_sum(grd_mul(grd_exp(x), x)), *g;
    const grd_backward_options retain = {.retain_graph = true};
    if (!grd_ok())
        return;
    if (!grd_grad(grd_tensors(y), grd_tensors(x), &retain, &g)) {
        const grd_error_code code = grd_error_get();
        grd_error_clear();
        grd_memory_fail_at(0, false);
        assert_true(grd_grad(grd_tensors(y), grd_tensors(x), &retain, &g));
        const double e = exp(1);
        assert_true(fabs(total(g) - (2 * e + 3 * e * e + 4 * e * e * e)) < 1e-9);
        grd_error_set(code, "cannot allocate, the first time");
        return;
    }
    result = total(g);
}

static void accumulate(void)
{
    grd_tensor *x = leaf(1);
    for (int i = 0; i < 3; i++)
        grd_backward(grd_sum(grd_mul_scalar(x, grd_int(i))));
    grd_set_grad(x, grd_ok() ? grd_add(grd_grad_of(x), grd_ones_like(x)) : NULL);
    if (grd_ok())
        result = total(grd_grad_of(x));
}

static void write_in_place(void)
{
    grd_tensor *x = leaf(1), *y = grd_mul_scalar(x, grd_int(2));
    grd_mul_(grd_select(y, 0, 1), grd_number(grd_int(5)));
    grd_add_(y, x);
    grd_copy_(grd_slice(y, .start = grd_int(1)), grd_exp(grd_slice(x, .end = grd_int(2))));
    grd_backward(grd_sum(y));
    if (grd_ok())
        result = total(grd_grad_of(x)) + total(y);
}

static grd_tensor *twice(grd_tensor *grad, void *context)
{
    (void)context;
    return grd_mul_scalar(grad, grd_int(2));
}

static void see_node(grd_node *node, grd_tensors grad_outputs, grd_tensor **grads, int n, void *context)
{
    (void)node;
    (void)grad_outputs;
    (void)context;
    for (int i = 0; i < n; i++)
        if (grads[i] != NULL)
            grads[i] = grd_add_scalar(grads[i], grd_int(1));
}

static void see_leaf(grd_tensor *t, void *context)
{
    (void)context;
    grd_mul_(grd_grad_of(t), grd_number(grd_int(3)));
}

static int hooks_released;

static void release_hook(void *context)
{
    (void)context;
    hooks_released++;
}

static void call_hooks(void)
{
    hooks_released = 0;
    int hooks = 0;
    const grd_scope scope = grd_scope_open();
    grd_tensor *x = leaf(1), *y = grd_mul_scalar(x, grd_int(2));
    uint64_t handles[5] = {0};
    if (grd_ok()) {
        handles[0] = grd_hook_tensor(y, twice, NULL, release_hook);
        handles[1] = grd_hook_tensor(x, twice, NULL, release_hook);
        handles[2] = grd_hook_node(grd_grad_fn(y), true, see_node, NULL, release_hook);
        handles[3] = grd_hook_node(grd_grad_fn(y), false, see_node, NULL, release_hook);
        handles[4] = grd_hook_accumulated(x, see_leaf, NULL, release_hook);
        grd_retain_grad(y);
    }
    for (int i = 0; i < 5; i++)
        hooks += handles[i] != 0;
    grd_backward(grd_sum(y));
    if (grd_ok())
        result = total(grd_grad_of(x)) + total(grd_grad_of(y));
    grd_hook_remove(handles[0]);
    grd_scope_close(scope);
    assert_true(hooks_released >= hooks); /* more than `hooks` if a hook could not be added and its context was released, too */
}

static void cube_forward(grd_custom_call *call, grd_tensor *const *inputs, grd_tensor **ret_outputs)
{
    grd_custom_save(call, inputs[0]);
    ret_outputs[0] = grd_mul(inputs[0], grd_mul(inputs[0], inputs[0]));
}

static void cube_backward(grd_custom_call *call, grd_tensor *const *grad_outputs, grd_tensor **ret_grads)
{
    grd_tensor *x = grd_custom_saved(call, 0);
    ret_grads[0] = grd_mul_scalar(grd_mul(grad_outputs[0], grd_mul(x, x)), grd_int(3));
}

static void call_custom_function(void)
{
    static const grd_custom_function cube = {"Cube", cube_forward, cube_backward, 1, 1, NULL, NULL, NULL, NULL};
    grd_tensor *x = leaf(1), *y = NULL;
    if (!grd_custom_apply(&cube, &x, &y))
        return;
    grd_backward(grd_sum(y));
    if (grd_ok())
        result = total(grd_grad_of(x));
}

static grd_tensors product(grd_tensor *const *inputs, int n, void *context)
{
    static grd_tensor *output;
    (void)n;
    (void)context;
    output = grd_mul(inputs[0], grd_sin(inputs[0]));
    return (grd_tensors){1, &output};
}

static void check_gradients(void)
{
    grd_tensor *x = leaf(1);
    result = grd_gradcheck(product, grd_tensors(x), NULL, NULL) + 2 * grd_gradgradcheck(product, grd_tensors(x), NULL, NULL);
}

/* ---- Registration --------------------------------------------------------------------------------------------------------------------- */

static void negated(const grd_op *op, grd_keyset keys, grd_tensor *out, const grd_value *args, grd_value *ret_results, void *context)
{
    const grd_key_guard guard = grd_key_guard_set(0, 1u << GRD_KEY_WRAPPER);
    (void)context;
    grd_redispatch(op, keys & ~(1u << GRD_KEY_WRAPPER), out, args, ret_results);
    ret_results[0].v.tensor = grd_neg(ret_results[0].v.tensor);
    grd_key_guard_restore(guard);
}

static void call_a_registered_kernel(void)
{
    grd_register_kernel("exp", GRD_KEY_WRAPPER, negated, NULL);
    grd_register_fallback(GRD_KEY_WRAPPER, negated, NULL);
    grd_tensor *x = grd_zeros(grd_dims(3));
    const grd_key_guard guard = grd_key_guard_set(1u << GRD_KEY_WRAPPER, 0);
    grd_tensor *y = grd_exp(x);
    grd_key_guard_restore(guard);
    result = total(y);
    grd_unregister_kernel("exp", GRD_KEY_WRAPPER);
    grd_unregister_fallback(GRD_KEY_WRAPPER);
}

/* ---- Files ------------------------------------------------------------------------------------------------------------------------------ */

/* Saves tensors to a file and to memory, and loads them again. */
static void save_and_load(void)
{
    static const char path[] = "/var/tmp/gradus-fault-calls.safetensors";
    grd_tensor *x = leaf(1), *y = grd_transpose(grd_ones(grd_dims(20, 30)), 0, 1), *flags = grd_gt(y, grd_number(grd_int(0)));
    const grd_named_tensors model = grd_named_tensors({"x", x}, {"y", y}, {"flags", flags});
    const bool saved = grd_save_with_metadata(path, model, grd_named_texts({"a", "b\n"}, {"c", "d"}));
    assert_true(saved == grd_ok());
    const grd_named_tensors loaded = grd_load(path);
    if (grd_ok())
        result = total(grd_named_tensor_find(loaded, "x")) + total(grd_named_tensor_find(loaded, "flags"));
    const bool filled = grd_load_into(path, model);
    assert_true(filled == grd_ok());
    grd_tensor *bytes = grd_save_to_tensor(model, grd_named_texts({"a", "b"}));
    if (grd_ok()) {
        grd_tensor_file *file = grd_tensor_file_over(grd_data(bytes), (size_t)grd_numel(bytes));
        result += total(grd_tensor_file_read(file, "y"));
        grd_tensor_file_close(file);
    }
    unlink(path);
}

/* ---- Running the scenarios ------------------------------------------------------------------------------------------------------------- */

static const struct scenario {
    const char *name;
    void (*run)(void);
} scenarios[] = {
    {"make_from_data", make_from_data},
    {"borrow_memory", borrow_memory},
    {"use_numbers", use_numbers},
    {"print_one", print_one},
    {"draw_one", draw_one},
    {"compare", compare},
    {"keep_views", keep_views},
    {"work_in_a_new_thread", work_in_a_new_thread},
    {"make_generators", make_generators},
    {"backward", backward},
    {"backward_twice", backward_twice},
    {"backward_wide", backward_wide},
    {"backward_to_several", backward_to_several},
    {"backward_again_after_failure", backward_again_after_failure},
    {"accumulate", accumulate},
    {"write_in_place", write_in_place},
    {"call_hooks", call_hooks},
    {"call_custom_function", call_custom_function},
    {"check_gradients", check_gradients},
    {"call_a_registered_kernel", call_a_registered_kernel},
    {"save_and_load", save_and_load},
};

/* Runs a scenario with its n-th allocation failing, or without failures if n is 0. Returns false if the scenario failed. */
static bool run_once(const struct scenario *scenario, int n, bool forever)
{
    const grd_memory_stats before = grd_memory_get_stats();
    const grd_scope scope = grd_scope_open();
    result = -1;
    grd_memory_fail_at(n, forever);
    scenario->run();
    grd_memory_fail_at(0, false);
    const bool done = grd_ok();
    if (!done && (grd_error_get() != GRD_ERROR_MEMORY || strstr(grd_error_message(), "cannot allocate") == NULL))
        fail_msg("allocation %d failed and gave \"%s\" in %s", n, grd_error_message(), scenario->name);
    grd_error_clear();
    grd_scope_close(scope);
    const grd_memory_stats after = grd_memory_get_stats();
    if (after.blocks != before.blocks || after.allocated != before.allocated)
        fail_msg("allocation %d failed and left %lld blocks, %lld bytes behind in %s", n, (long long)(after.blocks - before.blocks),
                 (long long)(after.allocated - before.allocated), scenario->name);
    return done;
}

static void test_scenario(void **state)
{
    const struct scenario *scenario = *state;
    grd_manual_seed(1);
    const grd_scope scope = grd_scope_open();
    scenario->run(); /* the first run allocates memory that the thread keeps for reuse, which would count as a leak later */
    grd_scope_close(scope);
    assert_string_equal(grd_error_message(), "");
    assert_true(run_once(scenario, 0, false));
    const double wanted = result;
    for (int forever = 0; forever < 2; forever++) {
        int n = 1;
        while (!run_once(scenario, n, forever)) {
            assert_true(run_once(scenario, 0, false));
            assert_true(result == wanted);
            n++;
        }
        assert_true(n > 1);
    }
}

static int begin(void **state)
{
    static grd_scope scope;
    (void)state;
    grd_memory_fail_at(0, false);
    grd_error_clear();
    scope = grd_scope_open();
    for (int i = 0; i < 4096; i++) /* lets this thread's list of temporary tensors grow to its final size before memory is counted */
        grd_zeros(GRD_NO_DIMS);
    grd_scope_close(scope);
    return 0;
}

int main(void)
{
    enum { N = sizeof scenarios / sizeof *scenarios };
    struct CMUnitTest tests[N];
    for (int i = 0; i < N; i++)
        tests[i] = (struct CMUnitTest){scenarios[i].name, test_scenario, begin, NULL, (void *)&scenarios[i]};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
