/* Tests NULL arguments. NULL for a required argument of a function of gradus/autograd.h raises a TypeError that names the function and the argument,
 * and has no other effect. While an error is pending, calls have no effect either. */
#include "support.h"

/* Checks that a TypeError with exactly this text is pending, and clears it. */
static void refused(const char *text)
{
    if (grd_error_get() != GRD_ERROR_TYPE || strcmp(grd_error_message(), text) != 0)
        fail_msg("error: %s: %s\nexpected: %s", grd_error_class(grd_error_get()), grd_error_message(), text);
    grd_error_clear();
}

static void no_tensor(const char *function, const char *argument)
{
    char text[160];
    snprintf(text, sizeof text, "%s: argument '%s' must be a tensor, not NULL", function, argument);
    refused(text);
}

static void no_pointer(const char *function, const char *argument)
{
    char text[160];
    snprintf(text, sizeof text, "%s: argument '%s' must not be NULL", function, argument);
    refused(text);
}

static void test_functions_of_leaves_refuse_null(void **state)
{
    (void)state;
    assert_false(grd_requires_grad(NULL));
    no_tensor("grd_requires_grad", "t");
    assert_ptr_equal(grd_set_requires_grad(NULL, true), grd_failed);
    no_tensor("grd_set_requires_grad", "t");
    assert_false(grd_is_leaf(NULL));
    no_tensor("grd_is_leaf", "t");
    assert_null(grd_grad_of(NULL));
    no_tensor("grd_grad_of", "t");
    grd_set_grad(NULL, NULL);
    no_tensor("grd_set_grad", "t");
    grd_set_grad(NULL, leaf3());
    no_tensor("grd_set_grad", "t");
    grd_retain_grad(NULL);
    no_tensor("grd_retain_grad", "t");
    grd_detach_(NULL);
    no_tensor("grd_detach_", "t");
}

static void test_backward_and_grad_refuse_null(void **state)
{
    (void)state;
    grd_tensor *x = leaf3(), *y = grd_sum(x), *grads[2];
    grd_backward(NULL);
    refused("output 0 must be a tensor, not NULL");
    grd_backward_all(grd_tensors(y, NULL), NULL);
    refused("output 1 must be a tensor, not NULL");
    grd_backward_all((grd_tensors){1, NULL}, NULL);
    refused("output 0 must be a tensor, not NULL");
    assert_null(grd_grad_of(x));
    assert_false(grd_grad(grd_tensors(NULL), grd_tensors(x), NULL, grads));
    refused("output 0 must be a tensor, not NULL");
    assert_ptr_equal(grads[0], grd_failed);
    assert_false(grd_grad(grd_tensors(y), grd_tensors(x, NULL), NULL, grads));
    refused("input 1 must be a tensor, not NULL");
    assert_ptr_equal(grads[1], grd_failed);
    assert_false(grd_grad(grd_tensors(y), (grd_tensors){1, NULL}, NULL, grads));
    refused("input 0 must be a tensor, not NULL");
    assert_false(grd_grad(grd_tensors(y), grd_tensors(x), NULL, NULL));
    no_pointer("grd_grad", "ret_grads");
    grd_backward(y);
    EXPECT_VALUES(grd_grad_of(x), 1, 1, 1);
}

static void test_functions_of_graph_nodes_refuse_null(void **state)
{
    (void)state;
    assert_null(grd_grad_fn(NULL));
    no_tensor("grd_grad_fn", "t");
    assert_null(grd_gradient_edge(NULL, NULL));
    no_tensor("grd_gradient_edge", "t");
    assert_string_equal(grd_node_name(NULL), "");
    no_pointer("grd_node_name", "node");
    assert_int_equal(grd_node_edge_count(NULL), 0);
    no_pointer("grd_node_edge_count", "node");
    assert_null(grd_node_edge(NULL, 0, NULL));
    no_pointer("grd_node_edge", "node");
    assert_null(grd_node_variable(NULL));
    no_pointer("grd_node_variable", "node");
}

static grd_tensor *same(grd_tensor *grad, void *context)
{
    (void)context;
    return grad;
}

static void look(grd_node *node, grd_tensors grad_outputs, grd_tensor **grads, int n, void *context)
{
    (void)node, (void)grad_outputs, (void)grads, (void)n, (void)context;
}

static void after(grd_tensor *leaf, void *context)
{
    (void)leaf, (void)context;
}

static void test_hook_functions_refuse_null(void **state)
{
    (void)state;
    grd_tensor *x = leaf3(), *y = grd_exp(x);
    assert_int_equal(grd_hook_tensor(NULL, same, NULL, NULL), 0);
    no_tensor("grd_hook_tensor", "t");
    assert_int_equal(grd_hook_tensor(x, NULL, NULL, NULL), 0);
    no_pointer("grd_hook_tensor", "hook");
    assert_int_equal(grd_hook_node(NULL, true, look, NULL, NULL), 0);
    no_pointer("grd_hook_node", "node");
    assert_int_equal(grd_hook_node(grd_grad_fn(y), true, NULL, NULL, NULL), 0);
    no_pointer("grd_hook_node", "hook");
    assert_int_equal(grd_hook_accumulated(NULL, after, NULL, NULL), 0);
    no_tensor("grd_hook_accumulated", "leaf");
    assert_int_equal(grd_hook_accumulated(x, NULL, NULL, NULL), 0);
    no_pointer("grd_hook_accumulated", "hook");
    grd_hook_remove(0);
    expect_ok();
}

static void mark_null(grd_custom_call *call, grd_tensor *const *inputs, grd_tensor **ret_outputs)
{
    grd_custom_mark_dirty(call, NULL);
    no_tensor("grd_custom_mark_dirty", "t");
    grd_custom_mark_non_differentiable(call, NULL);
    no_tensor("grd_custom_mark_non_differentiable", "output");
    grd_custom_save(call, NULL);
    expect_ok();
    ret_outputs[0] = grd_clone(inputs[0]);
}

static void test_custom_functions_refuse_null(void **state)
{
    (void)state;
    const grd_custom_function empty = {.inputs = 1, .outputs = 1}, function = {.forward = mark_null, .inputs = 1, .outputs = 1};
    grd_tensor *x = leaf3(), *out;
    assert_false(grd_custom_apply(NULL, &x, &out));
    no_pointer("grd_custom_apply", "function");
    assert_false(grd_custom_apply(&empty, &x, &out));
    no_pointer("grd_custom_apply", "function->forward");
    assert_ptr_equal(out, grd_failed);
    assert_false(grd_custom_apply(&function, NULL, &out));
    no_pointer("grd_custom_apply", "inputs");
    assert_false(grd_custom_apply(&function, &x, NULL));
    no_pointer("grd_custom_apply", "ret_outputs");
    grd_custom_save(NULL, x);
    no_pointer("grd_custom_save", "call");
    assert_ptr_equal(grd_custom_saved(NULL, 0), grd_failed);
    no_pointer("grd_custom_saved", "call");
    assert_false(grd_custom_needs_grad(NULL, 0));
    no_pointer("grd_custom_needs_grad", "call");
    assert_null(grd_custom_context(NULL));
    no_pointer("grd_custom_context", "call");
    grd_custom_mark_dirty(NULL, x);
    no_pointer("grd_custom_mark_dirty", "call");
    grd_custom_mark_non_differentiable(NULL, x);
    no_pointer("grd_custom_mark_non_differentiable", "call");
    assert_true(grd_custom_apply(&function, &x, &out));
    assert_null(grd_custom_begin(NULL, &x));
    no_pointer("grd_custom_begin", "function");
    assert_null(grd_custom_begin(&function, NULL));
    no_pointer("grd_custom_begin", "inputs");
    assert_false(grd_custom_end(NULL, &out, 1));
    no_pointer("grd_custom_end", "call");
    assert_false(grd_custom_end(grd_custom_begin(&function, &x), NULL, 1));
    expect_whole_error("custom function: grd_custom_end: argument 'outputs' must not be NULL");
    assert_false(grd_custom_end(grd_custom_begin(&function, &x), &out, -1));
    expect_whole_error("custom function: a function cannot have -1 outputs");
    assert_null(grd_custom_node(NULL));
    no_pointer("grd_custom_node", "call");
    grd_custom_materialize_grads(NULL, true);
    no_pointer("grd_custom_materialize_grads", "call");
    assert_null(grd_node_custom_call(NULL, NULL));
    expect_ok();
}

static int never(void *context, void (*release)(void *context), void *arg)
{
    (void)context, (void)release, (void)arg;
    fail();
    return 0;
}

static void test_keep_node_and_visit_contexts_refuse_null(void **state)
{
    (void)state;
    grd_tensor *x = leaf3();
    assert_null(grd_keep_node(NULL));
    no_pointer("grd_keep_node", "node");
    grd_drop_node(NULL);
    assert_false(grd_retains_grad(NULL));
    no_tensor("grd_retains_grad", "t");
    assert_int_equal(grd_visit_contexts(NULL, never, NULL), 0);
    no_tensor("grd_visit_contexts", "t");
    assert_int_equal(grd_visit_contexts(x, NULL, NULL), 0);
    no_pointer("grd_visit_contexts", "visit");
    assert_int_equal(grd_node_visit_contexts(NULL, never, NULL), 0);
    no_pointer("grd_node_visit_contexts", "node");
    assert_int_equal(grd_node_visit_contexts(grd_grad_fn(grd_exp(x)), NULL, NULL), 0);
    no_pointer("grd_node_visit_contexts", "visit");
    grd_backward_all(grd_tensors(grd_sum(x)), &(grd_backward_options){.inputs = grd_tensors(NULL)});
    no_tensor("grd_backward_all", "inputs");
    assert_null(grd_scope_give(NULL));
    expect_ok();
}

static grd_tensors nothing(grd_tensor *const *inputs, int n, void *context)
{
    (void)inputs, (void)n, (void)context;
    return (grd_tensors){0};
}

static int released;

static void count_release(void *context)
{
    (void)context;
    released++;
}

/* Calls that are made while an error is pending keep this error and change nothing. */
static void test_calls_do_nothing_while_an_error_is_pending(void **state)
{
    (void)state;
    static int context;
    const grd_custom_function function = {.forward = mark_null, .inputs = 1, .outputs = 1, .context = &context, .release = count_release};
    grd_tensor *x = leaf3(), *y = grd_exp(x), *out, *grad;
    grd_node *node = grd_grad_fn(y);
    grd_custom_call *call = grd_custom_begin(&function, &x);
    released = 0;
    grd_backward(NULL);
    grd_backward(y);
    assert_false(grd_grad(grd_tensors(y), grd_tensors(x), NULL, &grad));
    grd_set_grad(x, grd_failed);
    grd_retain_grad(y);
    grd_detach_(y);
    grd_set_requires_grad(x, false);
    assert_null(grd_grad_fn(y));
    assert_null(grd_gradient_edge(y, NULL));
    assert_int_equal(grd_hook_tensor(x, same, &context, count_release), 0);
    assert_int_equal(grd_hook_node(node, true, look, &context, count_release), 0);
    assert_int_equal(grd_hook_accumulated(x, after, &context, count_release), 0);
    assert_int_equal(released, 0); /* a call that adds no hook does not take ownership of `context`, so `context` is not released */
    assert_null(grd_custom_begin(&function, &x));
    assert_int_equal(released, 1);
    grd_custom_save(call, x);
    assert_ptr_equal(grd_custom_saved(call, 0), grd_failed);
    grd_custom_mark_dirty(call, x);
    grd_custom_mark_non_differentiable(call, x);
    grd_custom_materialize_grads(call, false);
    assert_false(grd_custom_end(call, &out, 1));
    assert_int_equal(released, 2);
    assert_false(grd_gradcheck(nothing, grd_tensors(x), NULL, NULL));
    assert_string_equal(grd_error_message(), "custom function: output 0 must be a tensor, not NULL");
    grd_error_clear();
    assert_true(grd_requires_grad(x) && grd_grad_of(x) == NULL && grd_grad_fn(y) == node && !grd_retains_grad(y));
}

static void test_gradcheck_refuses_null(void **state)
{
    (void)state;
    grd_tensor *x = leaf3();
    assert_false(grd_gradcheck(NULL, grd_tensors(x), NULL, NULL));
    no_pointer("grd_gradcheck", "function");
    assert_false(grd_gradcheck(nothing, (grd_tensors){1, NULL}, NULL, NULL));
    no_pointer("grd_gradcheck", "inputs");
    assert_false(grd_gradcheck(nothing, grd_tensors(x, NULL), NULL, NULL));
    refused("grd_gradcheck: entry 1 of argument 'inputs' must be a tensor, not NULL");
    assert_false(grd_gradgradcheck(NULL, grd_tensors(x), NULL, NULL));
    no_pointer("grd_gradgradcheck", "function");
    assert_false(grd_gradgradcheck(nothing, grd_tensors(NULL), NULL, NULL));
    refused("grd_gradgradcheck: entry 0 of argument 'inputs' must be a tensor, not NULL");
}

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(test_functions_of_leaves_refuse_null),
                                       TEST(test_backward_and_grad_refuse_null),
                                       TEST(test_functions_of_graph_nodes_refuse_null),
                                       TEST(test_hook_functions_refuse_null),
                                       TEST(test_custom_functions_refuse_null),
                                       TEST(test_keep_node_and_visit_contexts_refuse_null),
                                       TEST(test_calls_do_nothing_while_an_error_is_pending),
                                       TEST(test_gradcheck_refuses_null)};
    return cmocka_run_group_tests_name("null", tests, warm_up, NULL);
}
