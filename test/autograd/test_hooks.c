/* Tests hooks, namely their order, replaced gradients, removal and lifetime, and retained gradients. */
#include "support.h"

static char trace[256];

static grd_tensor *note_tensor(grd_tensor *grad, void *context)
{
    strcat(trace, context);
    return grad;
}

static void note_node(grd_node *node, grd_tensors grad_outputs, grd_tensor **grads, int n, void *context)
{
    (void)node;
    (void)grad_outputs;
    (void)grads;
    assert_true(n > 0);
    strcat(trace, context);
}

static void note_leaf(grd_tensor *leaf, void *context)
{
    assert_non_null(grd_grad_of(leaf));
    strcat(trace, context);
}

static grd_tensor *doubled(grd_tensor *grad, void *context)
{
    (void)context;
    return grd_mul_scalar(grad, grd_int(2));
}

static int released;
static void count_release(void *context)
{
    (void)context;
    released++;
}

static void test_tensor_node_and_leaf_hooks_run_in_order(void **state)
{
    (void)state;
    trace[0] = 0;
    grd_tensor *x = leaf3(), *y = grd_clone(x);
    grd_node *node = grd_grad_fn(y);
    assert_true(grd_hook_tensor(y, note_tensor, "y1 ", NULL) != 0);
    grd_hook_node(node, true, note_node, "pre ", NULL);
    grd_hook_node(node, false, note_node, "post ", NULL);
    grd_hook_tensor(x, note_tensor, "x ", NULL);
    grd_hook_accumulated(x, note_leaf, "acc ", NULL);
    grd_hook_tensor(y, note_tensor, "y2 ", NULL);
    grd_backward(grd_sum(y));
    expect_ok();
    assert_string_equal(trace, "y1 y2 pre post x acc ");
}

static void test_a_tensor_hook_may_replace_the_gradient(void **state)
{
    (void)state;
    grd_tensor *x = leaf3(), *y = grd_mul(x, x);
    grd_retain_grad(y);
    grd_hook_tensor(y, doubled, NULL, NULL);
    grd_hook_tensor(x, doubled, NULL, NULL);
    grd_backward(grd_sum(y));
    EXPECT_VALUES(grd_grad_of(y), 2, 2, 2);
    EXPECT_VALUES(grd_grad_of(x), 8, 16, 24);
}

static void replace_first(grd_node *node, grd_tensors grad_outputs, grd_tensor **grads, int n, void *context)
{
    (void)node;
    (void)grad_outputs;
    (void)n;
    (void)context;
    grads[0] = grd_mul_scalar(grads[0], grd_int(10));
}

static void test_node_hooks_may_replace_gradients(void **state)
{
    (void)state;
    grd_tensor *x = leaf3(), *y = grd_clone(x);
    grd_hook_node(grd_grad_fn(y), true, replace_first, NULL, NULL);
    grd_hook_node(grd_grad_fn(y), false, replace_first, NULL, NULL);
    grd_backward(grd_sum(y));
    EXPECT_VALUES(grd_grad_of(x), 100, 100, 100);
}

static void see_both(grd_node *node, grd_tensors grad_outputs, grd_tensor **grads, int n, void *context)
{
    (void)node;
    (void)context;
    assert_int_equal(n, 2);
    assert_int_equal(grad_outputs.n, 1);
    EXPECT_VALUES(grad_outputs.data[0], 1, 1, 1);
    EXPECT_VALUES(grads[0], 1, 2, 3);
    assert_null(grads[1]);
}

static void see_leaf(grd_node *node, grd_tensors grad_outputs, grd_tensor **grads, int n, void *context)
{
    (void)grads;
    assert_non_null(grd_grad_of(grd_node_variable(node)));
    assert_int_equal(n, 0);
    EXPECT_VALUES(grad_outputs.data[0], 1, 2, 3);
    strcat(trace, context);
}

/* A post-hook of a node gets the gradients of the node's outputs and of its inputs. A post-hook of a leaf's AccumulateGrad node runs after the
 * gradient was accumulated. */
static void test_a_post_hook_sees_output_and_input_gradients(void **state)
{
    (void)state;
    trace[0] = 0;
    grd_tensor *x = leaf3(), *y = grd_mul(x, VECTOR(1, 2, 3));
    grd_hook_node(grd_grad_fn(y), false, see_both, NULL, NULL);
    grd_hook_node(grd_gradient_edge(x, NULL), false, see_leaf, "leaf ", NULL);
    grd_backward(grd_sum(y));
    expect_ok();
    assert_string_equal(trace, "leaf ");
}

static void test_retains_grad_is_true_only_for_non_leaves(void **state)
{
    (void)state;
    grd_tensor *x = leaf3(), *y = grd_clone(x);
    assert_false(grd_retains_grad(y));
    grd_retain_grad(y);
    grd_retain_grad(x);
    assert_true(grd_retains_grad(y));
    assert_false(grd_retains_grad(x));
}

static void test_removed_hooks_do_not_run(void **state)
{
    (void)state;
    released = 0;
    grd_tensor *x = leaf3();
    uint64_t a = grd_hook_tensor(x, doubled, NULL, count_release), b = grd_hook_tensor(x, doubled, NULL, count_release);
    assert_true(a != b);
    grd_hook_remove(a);
    assert_int_equal(released, 1);
    grd_hook_remove(a);
    grd_hook_remove(12345);
    assert_int_equal(released, 1);
    grd_backward(grd_sum(x));
    EXPECT_VALUES(grd_grad_of(x), 2, 2, 2);
    grd_hook_remove(b);
    grd_backward(grd_sum(x));
    EXPECT_VALUES(grd_grad_of(x), 3, 3, 3);
}

static void test_hooks_are_released_with_their_tensor(void **state)
{
    (void)state;
    released = 0;
    grd_scope scope = grd_scope_open();
    grd_tensor *x = leaf3(), *y = grd_exp(x);
    grd_hook_tensor(x, doubled, NULL, count_release);
    grd_hook_tensor(y, doubled, NULL, count_release);
    grd_scope_close(scope);
    assert_int_equal(released, 2);
}

static uint64_t own_handle;
static grd_tensor *remove_itself(grd_tensor *grad, void *context)
{
    (void)context;
    strcat(trace, "once ");
    grd_hook_remove(own_handle);
    return grad;
}

static void test_a_hook_may_remove_itself(void **state)
{
    (void)state;
    trace[0] = 0;
    grd_tensor *x = leaf3();
    own_handle = grd_hook_tensor(x, remove_itself, NULL, NULL);
    grd_hook_tensor(x, note_tensor, "other ", NULL);
    grd_backward(grd_sum(x));
    grd_backward(grd_sum(x));
    assert_string_equal(trace, "once other other ");
}

static grd_tensor *wrong_size(grd_tensor *grad, void *context)
{
    (void)grad;
    (void)context;
    return VECTOR(1, 2);
}

static grd_tensor *raising(grd_tensor *grad, void *context)
{
    (void)context;
    grd_error_set(GRD_ERROR_VALUE, "from a hook");
    return grad;
}

static void test_hooks_refuse_invalid_tensors_and_gradients(void **state)
{
    (void)state;
    grd_tensor *x = leaf3();
    uint64_t handle = grd_hook_tensor(x, wrong_size, NULL, NULL);
    grd_backward(grd_sum(x));
    expect_error("hook has changed the size of value");
    grd_hook_remove(handle);
    grd_hook_tensor(x, raising, NULL, NULL);
    grd_backward(grd_sum(x));
    expect_error("from a hook");
    assert_null(grd_grad_of(x));
    assert_int_equal(grd_hook_tensor(VECTOR(1), doubled, NULL, NULL), 0);
    expect_error("cannot register a hook on a tensor that doesn't require gradient");
    assert_int_equal(grd_hook_accumulated(grd_mul(x, x), note_leaf, NULL, NULL), 0);
    expect_error("post accumulate grad hooks cannot be registered on non-leaf tensors");
    grd_retain_grad(VECTOR(1));
    expect_error("can't retain_grad on Tensor that has requires_grad=False");
}

static void test_retained_gradients_accumulate(void **state)
{
    (void)state;
    grd_tensor *x = leaf3(), *y = grd_mul(x, x);
    assert_null(grd_grad_of(y));
    grd_retain_grad(y);
    grd_retain_grad(y);
    grd_retain_grad(x);
    grd_tensor *loss = grd_sum(grd_mul(y, y));
    grd_backward_all(grd_tensors(loss), &(grd_backward_options){.retain_graph = true});
    EXPECT_VALUES(grd_grad_of(y), 2, 8, 18);
    grd_backward(loss);
    EXPECT_VALUES(grd_grad_of(y), 4, 16, 36);
}

static void test_retain_grad_follows_in_place_writes(void **state)
{
    (void)state;
    grd_tensor *x = leaf3(), *y = grd_clone(x);
    grd_retain_grad(y);
    grd_mul_(y, VECTOR(2, 2, 2));
    grd_backward(grd_sum(y));
    EXPECT_VALUES(grd_grad_of(y), 1, 1, 1);
    EXPECT_VALUES(grd_grad_of(x), 2, 2, 2);
}

static void step(grd_tensor *leaf, void *context)
{
    (void)context;
    bool enabled = grd_set_grad_enabled(false);
    grd_sub_(leaf, grd_grad_of(leaf));
    grd_set_grad_enabled(enabled);
    grd_set_grad(leaf, NULL);
}

/* The hook updates the leaf and removes its gradient during the backward pass. */
static void test_a_hook_may_take_an_optimizer_step(void **state)
{
    (void)state;
    grd_tensor *x = leaf3();
    grd_hook_accumulated(x, step, NULL, NULL);
    grd_backward(grd_sum(x));
    EXPECT_VALUES(x, 0, 1, 2);
    assert_null(grd_grad_of(x));
}

static grd_tensor *backward_again(grd_tensor *grad, void *context)
{
    grd_tensor *x = context;
    bool enabled = grd_set_grad_enabled(true);
    grd_backward(grd_sum(grd_mul(x, x)));
    grd_set_grad_enabled(enabled);
    return grad;
}

static void test_a_hook_may_run_another_backward(void **state)
{
    (void)state;
    grd_tensor *x = leaf3(), *z = leaf3(), *y = grd_clone(x);
    grd_hook_tensor(y, backward_again, z, NULL);
    grd_backward(grd_sum(y));
    EXPECT_VALUES(grd_grad_of(z), 2, 4, 6);
    EXPECT_VALUES(grd_grad_of(x), 1, 1, 1);
}

static grd_tensor *in_float64(grd_tensor *grad, void *context)
{
    (void)context;
    return grd_to(grad, .dtype = GRD_FLOAT64);
}

static grd_tensor *on_meta(grd_tensor *grad, void *context)
{
    (void)context;
    return grd_to(grad, .device = GRD_META);
}

static void test_hooks_may_not_change_dtype_or_device(void **state)
{
    (void)state;
    grd_tensor *x = leaf3();
    const uint64_t first = grd_hook_tensor(x, in_float64, NULL, NULL);
    grd_backward(grd_sum(x));
    expect_whole_error("hook has changed the type of value (was float32 got float64)");
    grd_hook_remove(first);
    grd_hook_tensor(x, on_meta, NULL, NULL);
    grd_backward(grd_sum(x));
    expect_whole_error("hook has changed the device of value (was cpu got meta)");
    assert_null(grd_grad_of(x));
    assert_int_equal(grd_hook_accumulated(VECTOR(1), note_leaf, "acc ", NULL), 0);
    expect_whole_error("cannot register a hook on a tensor that doesn't require gradient");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_tensor_node_and_leaf_hooks_run_in_order),    TEST(test_a_tensor_hook_may_replace_the_gradient),
        TEST(test_node_hooks_may_replace_gradients),           TEST(test_a_post_hook_sees_output_and_input_gradients),
        TEST(test_retains_grad_is_true_only_for_non_leaves),   TEST(test_removed_hooks_do_not_run),
        TEST(test_hooks_are_released_with_their_tensor),       TEST(test_a_hook_may_remove_itself),
        TEST(test_hooks_refuse_invalid_tensors_and_gradients), TEST(test_retained_gradients_accumulate),
        TEST(test_retain_grad_follows_in_place_writes),        TEST(test_a_hook_may_take_an_optimizer_step),
        TEST(test_hooks_may_not_change_dtype_or_device),       TEST(test_a_hook_may_run_another_backward),
    };
    return cmocka_run_group_tests(tests, warm_up, NULL);
}
