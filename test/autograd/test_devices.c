/* A device that is not the cpu: its nodes run on a thread of their own, cpu nodes on the caller's; errors come back to the caller.
 * The device keeps its data in host memory, and its kernels are those of the cpu on aliases of that data. */
#include "support.h"

#include <pthread.h>
#include <stdatomic.h>

#include "autograd/node.h"

/* ---- The device --------------------------------------------------------------------------------------------------------------- */
static uint8_t fake_type;
static atomic_int on_caller, elsewhere; /* kernels that ran */
static pthread_t caller;
static const char *failing; /* the operator whose kernel fails on another thread */

static void *fake_allocate(int64_t bytes)
{
    return grd_alloc((size_t)bytes);
}

static void fake_release(void *data, int64_t bytes)
{
    grd_free(data, (size_t)bytes);
}

static void fake_copy(void *to, const void *from, int64_t bytes, uint8_t to_device, uint8_t from_device)
{
    (void)to_device, (void)from_device;
    memcpy(to, from, (size_t)bytes);
}

static const struct grd_device_type fake = {
    .name = "fake", .allocate = fake_allocate, .release = fake_release, .copy = fake_copy, .key = GRD_KEY_EXTRA1, .has_data = true};

/* The same data as a cpu tensor. Pooled. */
static grd_tensor *as_cpu(grd_tensor *t)
{
    if (t->device != fake_type)
        return t;
    grd_tensor *alias = grd_from_memory(t->data, grd_sizes(t), grd_strides(t), (grd_dtype)t->dtype, NULL, NULL);
    if (!grd_pending() && grd_has(t, GRD_FLAG_NUMBER))
        grd_mark_number(alias);
    return alias;
}

static grd_tensor *as_fake(const grd_tensor *t)
{
    grd_tensor *copy = grd_new(grd_sizes(t), (grd_dtype)t->dtype, (grd_device){fake_type, 0});
    grd_tensor *whole = grd_pending() ? copy : grd_copy_(as_cpu(copy), (grd_tensor *)(uintptr_t)t);
    return grd_pending() ? whole : copy;
}

/* A view is made again over the memory of its base. */
static grd_tensor *view_of(grd_tensor *base, const grd_tensor *cpu_base, const grd_tensor *cpu_view)
{
    return grd_new_view(base, grd_sizes(cpu_view), grd_strides(cpu_view),
                        base->offset + (cpu_view->data - cpu_base->data) / (int64_t)base->itemsize);
}

/* Every operator: runs it for the cpu and brings the results back. */
static void fake_kernel(const grd_op *op, grd_keyset keys, grd_tensor *out, const grd_value *args, grd_value *ret_results, void *context)
{
    (void)context;
    grd_value values[GRD_MAX_ARGS];
    bool there = pthread_equal(pthread_self(), caller) == 0;
    atomic_fetch_add(there ? &elsewhere : &on_caller, 1);
    if (there && failing != NULL && strcmp(failing, op->name) == 0) {
        grd_raise(GRD_ERROR_RUNTIME, "the device has failed");
        return;
    }
    for (int i = 0; i < op->nargs; i++) {
        values[i] = args[i];
        if (args[i].kind == GRD_KIND_TENSOR && args[i].v.tensor != NULL)
            values[i].v.tensor = as_cpu(args[i].v.tensor);
        if (args[i].kind == GRD_KIND_DEVICE)
            values[i].v.device = GRD_CPU;
    }
    if (grd_pending())
        return;
    grd_tensor *cpu_out = out == NULL ? NULL : out == args[0].v.tensor ? values[0].v.tensor : as_cpu(out);
    grd_redispatch(op, (keys & ~(grd_keyset)(1u << GRD_KEY_EXTRA1)) | 1u << GRD_KEY_CPU, cpu_out, values, ret_results);
    if (grd_pending())
        return;
    grd_tensor *result = ret_results[0].v.tensor;
    if (out != NULL)
        ret_results[0].v.tensor = out;
    else if (op->is_view)
        ret_results[0].v.tensor = view_of(args[0].v.tensor, values[0].v.tensor, result);
    else
        ret_results[0].v.tensor = as_fake(result);
}

/* From one device to the other: a function with a backward, since no operator of the library knows the fake one. */
static void move_forward(grd_custom_call *call, grd_tensor *const *inputs, grd_tensor **ret_outputs)
{
    (void)call;
    ret_outputs[0] = inputs[0]->device == fake_type ? grd_clone(as_cpu(inputs[0])) : as_fake(inputs[0]);
}

static void move_backward(grd_custom_call *call, grd_tensor *const *grads, grd_tensor **ret_grads)
{
    move_forward(call, grads, ret_grads);
}

static grd_tensor *move(grd_tensor *t)
{
    const grd_custom_function function = {.name = "Move", .forward = move_forward, .backward = move_backward, .inputs = 1, .outputs = 1};
    grd_tensor *moved;
    grd_custom_apply(&function, &t, &moved);
    return moved;
}

static int add_device(void **state)
{
    caller = pthread_self();
    grd_device_register(&fake, &fake_type);
    grd_register_fallback(GRD_KEY_EXTRA1, fake_kernel, NULL);
    return warm_up(state);
}

static void start(void)
{
    failing = NULL;
    atomic_store(&on_caller, 0);
    atomic_store(&elsewhere, 0);
}

static void expect_values_there(grd_tensor *t, double a, double b, double c)
{
    assert_int_equal(t->device, fake_type);
    EXPECT_VALUES(as_cpu(t), a, b, c);
}

/* ---- Tests ------------------------------------------------------------------------------------------------------------------------ */
static void test_runs_on_its_own_thread(void **state)
{
    (void)state;
    start();
    grd_tensor *x = grd_set_requires_grad(as_fake(VECTOR(1, 2, 3)), true);
    grd_tensor *y = grd_sum(grd_mul(x, grd_mul(x, x)));
    expect_ok();
    assert_int_equal(elsewhere, 0);
    grd_backward_all(grd_tensors(y), &(grd_backward_options){.grad_outputs = grd_tensors(as_fake(grd_ones(GRD_NO_DIMS)))});
    expect_ok();
    expect_values_there(grd_grad_of(x), 3, 12, 27);
    assert_true(elsewhere >= 4);
}

/* Which thread a node ran on, as its hook sees it. */
static void note_thread(grd_node *node, grd_tensor **grads, int n, void *context)
{
    (void)node, (void)grads, (void)n;
    *(pthread_t *)context = pthread_self();
}

static void test_mixed_with_cpu(void **state)
{
    (void)state;
    start();
    pthread_t cpu_thread, fake_thread;
    grd_tensor *x = leaf3(), *w = grd_set_requires_grad(as_fake(VECTOR(2, 3, 4)), true);
    grd_tensor *square = grd_mul(x, x), *there = grd_mul(move(square), w), *back = move(there);
    grd_hook_node(grd_grad_fn(square), true, note_thread, &cpu_thread, NULL);
    grd_hook_node(grd_grad_fn(there), true, note_thread, &fake_thread, NULL);
    grd_backward(grd_sum(grd_add(back, x)));
    expect_ok();
    EXPECT_VALUES(grd_grad_of(x), 5, 13, 25);
    expect_values_there(grd_grad_of(w), 1, 4, 9);
    assert_true(pthread_equal(cpu_thread, caller));
    assert_false(pthread_equal(fake_thread, caller));
}

static void test_many_branches(void **state)
{
    (void)state;
    start();
    enum { BRANCHES = 60 };
    grd_tensor *x = leaf3(), *total = grd_mul_scalar(x, grd_int(0));
    for (int i = 0; i < BRANCHES; i++)
        total = grd_add(total, move(grd_mul(move(grd_exp(x)), move(x))));
    grd_backward(grd_sum(total));
    expect_ok();
    double expected[3];
    for (int i = 0; i < 3; i++)
        expected[i] = BRANCHES * exp(i + 1) * (i + 2);
    expect_values(grd_grad_of(x), 3, expected);
}

static void test_captures_there(void **state)
{
    (void)state;
    start();
    grd_tensor *x = leaf3(), *there = move(x), *grads[2];
    grd_tensor *y = grd_sum(move(grd_mul(there, there)));
    assert_true(grd_grad(grd_tensors(y), grd_tensors(there, x), NULL, grads));
    expect_values_there(grads[0], 2, 4, 6);
    EXPECT_VALUES(grads[1], 2, 4, 6);
    assert_null(grd_grad_of(x));
}

static void test_error_comes_back(void **state)
{
    (void)state;
    grd_tensor *x = leaf3();
    for (int i = 0; i < 20; i++) {
        start();
        grd_tensor *there = move(x), *y = grd_sum(grd_add(move(grd_mul(there, there)), grd_exp(x)));
        failing = "mul";
        grd_backward(y);
        failing = NULL;
        assert_int_equal(grd_error_get(), GRD_ERROR_RUNTIME);
        expect_error("MulBackward0: mul: the device has failed");
    }
    grd_set_grad(x, NULL);
    grd_backward(grd_sum(move(grd_mul(move(x), move(x)))));
    EXPECT_VALUES(grd_grad_of(x), 2, 4, 6);
}

static void *pass_of_thread(void *context)
{
    grd_scope scope = grd_scope_open();
    grd_tensor *x = context;
    for (int i = 0; i < 20; i++)
        grd_backward(grd_sum(move(grd_mul(move(x), move(x)))));
    bool ok = grd_ok();
    grd_scope_close(scope);
    return ok ? context : NULL;
}

static void test_passes_at_once(void **state)
{
    (void)state;
    start();
    grd_tensor *x = leaf3();
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, pass_of_thread, x), 0);
    for (int i = 0; i < 3; i++) {
        void *result;
        pthread_join(threads[i], &result);
        assert_non_null(result);
    }
    EXPECT_VALUES(grd_grad_of(x), 120, 240, 360);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_runs_on_its_own_thread), TEST(test_mixed_with_cpu),   TEST(test_many_branches),
        TEST(test_captures_there),         TEST(test_error_comes_back), TEST(test_passes_at_once),
    };
    return cmocka_run_group_tests_name("devices", tests, add_device, NULL);
}
