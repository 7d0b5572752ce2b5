/* Tests backward on a device registered at run time, whose memory the cpu cannot read (see protected.h). Nodes of the device run on the device's
 * thread, cpu nodes on the calling thread. Errors are reported to the caller, and gradients are copied between devices. */
#include "support.h"

#include <pthread.h>
#include <stdatomic.h>

#include "autograd/node.h"
#include "protected.h"

/* ---- The device --------------------------------------------------------------------------------------------------------------- */
static grd_device fake;
static atomic_int on_caller, elsewhere; /* number of calls of `noting` on the calling thread, and on other threads */
static pthread_t caller;
static const char *failing; /* the operator whose kernel fails on threads other than the caller's; NULL for none */

/* Kernel of every operator of the device. It counts calls on the calling thread and on other threads, and computes on the cpu. */
static void noting(const grd_op *op, grd_keyset keys, grd_tensor *out, const grd_value *args, grd_value *ret_results, void *context)
{
    const bool there = pthread_equal(pthread_self(), caller) == 0;
    atomic_fetch_add(there ? &elsewhere : &on_caller, 1);
    if (there && failing != NULL && strcmp(failing, grd_op_name(op)) == 0)
        grd_error_set(GRD_ERROR_RUNTIME, "the device has failed");
    else
        grd_cpu_fallback(op, keys, out, args, ret_results, context);
}

static grd_tensor *move(grd_tensor *t)
{
    return grd_to(t, .device = t->device == GRD_DEVICE_CPU ? fake : GRD_CPU);
}

static grd_tensor *as_fake(grd_tensor *t)
{
    return grd_to(t, .device = fake);
}

static int add_device(void **state)
{
    caller = pthread_self();
    fake = protected_register("fake", noting);
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
    assert_int_equal(t->device, fake.type);
    EXPECT_VALUES(move(t), a, b, c);
}

/* ---- Tests ------------------------------------------------------------------------------------------------------------------------ */
static void test_backward_on_a_device_runs_on_the_device_s_thread(void **state)
{
    (void)state;
    start();
    grd_tensor *x = grd_set_requires_grad(as_fake(VECTOR(1, 2, 3)), true);
    grd_tensor *y = grd_sum(grd_mul(x, grd_mul(x, x)));
    expect_ok();
    assert_int_equal(elsewhere, 0);
    grd_backward(y);
    expect_ok();
    expect_values_there(grd_grad_of(x), 3, 12, 27);
    assert_true(elsewhere >= 4);
}

/* Node hook that writes the id of the thread that runs the node to *context. */
static void note_thread(grd_node *node, grd_tensors grad_outputs, grd_tensor **grads, int n, void *context)
{
    (void)node, (void)grad_outputs, (void)grads, (void)n;
    *(pthread_t *)context = pthread_self();
}

static void test_cpu_nodes_run_on_the_calling_thread(void **state)
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

static void test_many_branches_between_cpu_and_device_are_summed(void **state)
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

static void test_grad_returns_gradients_of_device_tensors(void **state)
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

static void test_an_error_on_the_device_s_thread_reaches_the_caller(void **state)
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

static void test_gradients_are_copied_between_devices(void **state)
{
    (void)state;
    start();
    grd_tensor *x = leaf3(), *there = grd_set_requires_grad(as_fake(VECTOR(4, 5, 6)), true);
    grd_backward(grd_sum(grd_mul(as_fake(x), there)));
    EXPECT_VALUES(grd_grad_of(x), 4, 5, 6);
    expect_values_there(grd_grad_of(there), 1, 2, 3);
    grd_set_grad(there, NULL);
    grd_backward(grd_sum(grd_to(grd_mul(there, there), .device = GRD_CPU, .dtype = GRD_FLOAT64)));
    expect_values_there(grd_grad_of(there), 8, 10, 12);
    /* The cpu tensor x is copied into one row of a tensor on the device. */
    grd_set_grad(x, NULL);
    grd_tensor *target = grd_zeros(grd_dims(2, 3), .device = fake);
    grd_copy_(grd_select(target, 0, 1), x);
    grd_backward(grd_sum(grd_mul(target, target)));
    EXPECT_VALUES(grd_grad_of(x), 2, 4, 6);
    /* A zero-dimensional cpu tensor may be combined with tensors of any device. Its gradient is copied back to the cpu. */
    grd_tensor *factor = grd_set_requires_grad(grd_scalar_tensor(grd_float(3)), true);
    grd_backward(grd_sum(grd_mul(there, factor)));
    EXPECT_VALUES(grd_grad_of(factor), 15);
    grd_set_grad(there, VECTOR(1, 1, 1));
    expect_error("attempting to assign a gradient located on device 'cpu' to a tensor located on device 'fake:0'");
    grd_backward_all(grd_tensors(grd_mul(there, there)), &(grd_backward_options){.grad_outputs = grd_tensors(VECTOR(1, 1, 1))});
    expect_error("device");
}

static grd_tensors through_the_device(grd_tensor *const *inputs, int n, void *context)
{
    static grd_tensor *outputs[2];
    (void)n;
    outputs[0] = grd_mul(as_fake(grd_sin(inputs[0])), as_fake(inputs[0]));
    outputs[1] = move(outputs[0]);
    return grd_tensors_from(outputs + (context != NULL), 1);
}

static void test_gradcheck_through_a_device(void **state)
{
    (void)state;
    start();
    grd_tensor *x = grd_set_requires_grad(grd_to(VECTOR(1, 2, 3), .dtype = GRD_FLOAT64), true);
    int to_cpu;
    assert_true(grd_gradcheck(through_the_device, grd_tensors(x), NULL, NULL));
    assert_true(grd_gradcheck(through_the_device, grd_tensors(x), &to_cpu, NULL));
    assert_true(grd_gradgradcheck(through_the_device, grd_tensors(x), &to_cpu, NULL));
    assert_false(grd_gradgradcheck(through_the_device, grd_tensors(x), NULL, NULL));
    expect_error("output 0 is not a cpu tensor");
    assert_false(grd_gradcheck(through_the_device, grd_tensors(grd_set_requires_grad(as_fake(grd_detach(x)), true)), NULL, NULL));
    expect_error("input 0 is not a cpu tensor");
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

static void test_threads_run_backward_on_one_device(void **state)
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
        TEST(test_backward_on_a_device_runs_on_the_device_s_thread),
        TEST(test_cpu_nodes_run_on_the_calling_thread),
        TEST(test_many_branches_between_cpu_and_device_are_summed),
        TEST(test_grad_returns_gradients_of_device_tensors),
        TEST(test_an_error_on_the_device_s_thread_reaches_the_caller),
        TEST(test_threads_run_backward_on_one_device),
        TEST(test_gradients_are_copied_between_devices),
        TEST(test_gradcheck_through_a_device),
    };
    return cmocka_run_group_tests_name("devices", tests, add_device, NULL);
}
