/* Tests leaves, grad modes, the recording of calls in the graph, and the version checks of saved tensors. */
#include "support.h"

static void test_requires_grad_can_be_changed_only_on_float_leaves(void **state)
{
    (void)state;
    grd_tensor *x = VECTOR(1, 2), *n = grd_ones(grd_dims(2), .dtype = GRD_INT64);
    assert_false(grd_requires_grad(x));
    assert_true(grd_is_leaf(x));
    assert_null(grd_grad_fn(x));
    assert_ptr_equal(grd_set_requires_grad(x, true), x);
    assert_true(grd_requires_grad(x) && grd_is_leaf(x));
    grd_tensor *y = grd_mul(x, x);
    assert_true(grd_requires_grad(y));
    assert_false(grd_is_leaf(y));
    grd_set_requires_grad(y, false);
    expect_error(
        "you can only change requires_grad flags of leaf variables. If you want to use a computed variable in a subgraph that doesn't "
        "require differentiation use var_no_grad = var.detach().");
    grd_set_requires_grad(n, true);
    expect_error("only Tensors of floating point and complex dtype can require gradients");
    grd_set_requires_grad(x, false);
    assert_false(grd_requires_grad(grd_mul(x, x)));
}

static void test_nodes_report_their_names_edges_and_variables(void **state)
{
    (void)state;
    grd_tensor *x = leaf3(), *y = grd_exp(x), *z = grd_mul(y, VECTOR(1, 1, 1));
    grd_node *node = grd_grad_fn(z);
    int output = -1;
    assert_string_equal(grd_node_name(node), "MulBackward0");
    assert_int_equal(grd_node_edge_count(node), 2);
    assert_null(grd_node_edge(node, 1, NULL));
    grd_node *below = grd_node_edge(node, 0, &output);
    assert_string_equal(grd_node_name(below), "ExpBackward0");
    assert_int_equal(output, 0);
    grd_node *leaf = grd_node_edge(below, 0, NULL);
    assert_string_equal(grd_node_name(leaf), "AccumulateGrad");
    assert_ptr_equal(grd_node_variable(leaf), x);
    assert_null(grd_node_variable(below));
    assert_ptr_equal(grd_gradient_edge(x, NULL), leaf);
    assert_ptr_equal(grd_gradient_edge(y, &output), below);
    grd_node_edge(node, 2, NULL);
    expect_error("edge 2 is out of range for MulBackward0 with 2 edges");
}

static void test_set_grad_enabled_switches_recording(void **state)
{
    (void)state;
    grd_tensor *x = leaf3();
    assert_true(grd_grad_enabled());
    assert_true(grd_set_grad_enabled(false));
    assert_false(grd_requires_grad(grd_mul(x, x)));
    assert_false(grd_set_grad_enabled(true));
    assert_true(grd_requires_grad(grd_mul(x, x)));
}

static void test_non_differentiable_results_require_no_gradient(void **state)
{
    (void)state;
    grd_tensor *x = leaf3();
    assert_false(grd_requires_grad(grd_gt(x, VECTOR(2, 2, 2))));
    assert_false(grd_requires_grad(grd_argmax(x)));
    assert_false(grd_requires_grad(grd_detach(x)));
    assert_true(grd_same_storage(grd_detach(x), x));
    grd_max_dim_result m = grd_max_dim(x, 0);
    expect_ok();
    assert_true(grd_requires_grad(m.values));
    assert_false(grd_requires_grad(m.indices));
    grd_backward(m.values);
    EXPECT_VALUES(grd_grad_of(x), 0, 0, 1);
}

static void test_operators_that_return_their_input_record_nothing(void **state)
{
    (void)state;
    grd_tensor *x = leaf3();
    assert_ptr_equal(grd_contiguous(x), x);
    assert_true(grd_is_leaf(x));
    assert_ptr_equal(grd_to(x, .dtype = GRD_FLOAT32), x);
    assert_true(grd_is_leaf(x));
}

static void test_in_place_writes_to_leaves_are_refused(void **state)
{
    (void)state;
    grd_tensor *x = leaf3();
    grd_mul_(x, VECTOR(2, 2, 2));
    expect_error("a leaf Variable that requires grad is being used in an in-place operation.");
    grd_mul_(grd_select(x, 0, 1), grd_ones(GRD_NO_DIMS));
    expect_error("a view of a leaf Variable that requires grad is being used in an in-place operation.");
    EXPECT_VALUES(x, 1, 2, 3);
    grd_set_grad_enabled(false);
    grd_mul_(x, VECTOR(2, 2, 2));
    EXPECT_VALUES(x, 2, 4, 6);
}

static void test_out_with_gradients_is_refused(void **state)
{
    (void)state;
    grd_tensor *x = leaf3(), *out = grd_zeros(grd_dims(3));
    grd_mul_out(out, x, x);
    expect_error("functions with out=... arguments don't support automatic differentiation, but one of the arguments requires grad.");
    EXPECT_VALUES(out, 0, 0, 0);
    grd_mul_out(x, out, out);
    expect_error("functions with out=... arguments don't support automatic differentiation, but one of the arguments requires grad.");
    grd_eq_out(x, grd_zeros(grd_dims(2)), grd_zeros(grd_dims(2)));
    expect_error("functions with out=... arguments don't support automatic differentiation, but one of the arguments requires grad.");
    grd_isneginf_out(x, grd_zeros(grd_dims(2)));
    expect_error("isneginf does not support non-boolean outputs.");
    grd_neg_out(grd_ones(grd_dims(3), .dtype = GRD_FLOAT64), x);
    expect_error("functions with out=... arguments don't support automatic differentiation, but one of the arguments requires grad.");
    EXPECT_VALUES(x, 1, 2, 3);
    grd_set_grad_enabled(false);
    grd_mul_out(out, x, x);
    EXPECT_VALUES(out, 1, 4, 9);
    grd_eq_out(x, VECTOR(0, 1), VECTOR(0, 0));
    EXPECT_VALUES(x, 1, 0);
}

/* The gradient of atan2(y, x) with an int8 x is computed in the result's dtype, because 16 * 16 overflows int8. */
static void test_gradients_are_computed_in_the_result_dtype(void **state)
{
    (void)state;
    grd_tensor *y = leaf3(), *x = grd_full(grd_dims(3), grd_int(16), .dtype = GRD_INT8);
    grd_backward(grd_sum(grd_atan2(y, x)));
    EXPECT_VALUES(grd_grad_of(y), 16. / (256 + 1), 16. / (256 + 4), 16. / (256 + 9));
}

static void test_in_place_operators_are_recorded(void **state)
{
    (void)state;
    grd_tensor *x = leaf3(), *y = grd_clone(x);
    assert_ptr_equal(grd_mul_(y, x), y);
    assert_string_equal(grd_node_name(grd_grad_fn(y)), "MulBackward0");
    grd_exp_(y);
    grd_backward(grd_sum(y));
    EXPECT_VALUES(grd_grad_of(x), 2 * exp(1), 4 * exp(4), 6 * exp(9));
}

/* mul_ overwrites the value of y, which the gradient of w needs, so mul_ saves a copy of the value. */
static void test_in_place_operators_save_a_copy_of_the_overwritten_value(void **state)
{
    (void)state;
    grd_tensor *w = leaf3(), *y = VECTOR(4, 5, 6), *g, *gg;
    grd_mul_(y, w);
    assert_true(grd_requires_grad(y));
    assert_true(grd_grad(grd_tensors(grd_sum(grd_mul(y, y))), grd_tensors(w), &(grd_backward_options){.create_graph = true}, &g));
    EXPECT_VALUES(g, 32, 100, 216);
    assert_true(grd_grad(grd_tensors(grd_sum(g)), grd_tensors(w), NULL, &gg));
    EXPECT_VALUES(gg, 32, 50, 72);
}

static void test_an_in_place_operator_may_read_its_own_tensor(void **state)
{
    (void)state;
    grd_tensor *x = leaf3(), *y = grd_clone(x);
    grd_mul_(y, y);
    grd_backward(grd_sum(y));
    EXPECT_VALUES(grd_grad_of(x), 2, 4, 6);
}

static void test_zero_in_place_removes_history(void **state)
{
    (void)state;
    grd_tensor *x = leaf3(), *y = grd_mul(x, x);
    grd_zero_(y);
    grd_backward(grd_sum(grd_add(y, x)));
    EXPECT_VALUES(grd_grad_of(x), 1, 1, 1);
}

static void test_copy_in_place_broadcasts_and_is_recorded(void **state)
{
    (void)state;
    grd_tensor *x = leaf3(), *y = grd_zeros(grd_dims(2, 3));
    grd_copy_(y, x);
    grd_backward(grd_sum(grd_mul(y, y)));
    EXPECT_VALUES(grd_grad_of(x), 4, 8, 12);
}

static void test_backward_refuses_a_modified_saved_result(void **state)
{
    (void)state;
    grd_tensor *x = leaf3(), *y = grd_exp(x);
    grd_add_(y, VECTOR(1, 1, 1));
    grd_backward(grd_sum(y));
    expect_error(
        "ExpBackward0: one of the variables needed for gradient computation has been modified by an inplace operation: [FloatTensor [3]], "
        "which is output 0 of ExpBackward0, is at version 1; expected version 0 instead.");
    assert_null(grd_grad_of(x));
}

static void test_backward_refuses_a_modified_saved_input(void **state)
{
    (void)state;
    grd_tensor *x = leaf3(), *y = grd_mul(x, x);
    grd_set_grad_enabled(false);
    grd_add_(x, VECTOR(1, 1, 1));
    grd_set_grad_enabled(true);
    grd_backward(grd_sum(y));
    expect_error(
        "MulBackward0: one of the variables needed for gradient computation has been modified by an inplace operation: [FloatTensor [3]] "
        "is at version 1; expected version 0 instead.");
    grd_tensor *a = grd_clone(x), *b = grd_sin(a);
    grd_mul_(a, x);
    grd_backward(grd_sum(b));
    expect_error("which is output 0 of MulBackward0, is at version 1; expected version 0 instead.");
}

static void test_backward_refuses_an_input_modified_through_a_view(void **state)
{
    (void)state;
    grd_tensor *x = leaf3(), *a = grd_clone(x), *b = grd_sin(a);
    grd_zero_(grd_select(a, 0, 0));
    grd_backward(grd_sum(b));
    expect_error("is at version 1; expected version 0 instead.");
}

static void test_set_grad_checks_the_gradient(void **state)
{
    (void)state;
    grd_tensor *x = leaf3(), *g = VECTOR(1, 1, 1);
    grd_set_grad(x, g);
    assert_ptr_equal(grd_grad_of(x), g);
    grd_backward(grd_sum(x));
    EXPECT_VALUES(g, 2, 2, 2);
    grd_set_grad(x, VECTOR(1, 2));
    expect_error("attempting to assign a gradient of size '[2]' to a tensor of size '[3]'");
    grd_set_grad(x, grd_ones(grd_dims(3), .dtype = GRD_FLOAT64));
    expect_error("attempting to assign a gradient with dtype 'float64' to a tensor with dtype 'float32'");
    grd_set_grad(x, x);
    expect_error("can't assign Variable as its own grad");
}

static void test_gradients_of_a_list_argument(void **state)
{
    (void)state;
    grd_tensor *x = leaf3(), *y = leaf3(), *z = VECTOR(7, 8), *list[] = {x, z, y};
    const grd_tensors all = {3, list};
    grd_tensor *c = grd_cat(all);
    assert_int_equal(grd_node_edge_count(grd_grad_fn(c)), 3);
    grd_backward(grd_sum(grd_mul(c, grd_arange(grd_int(8), .dtype = GRD_FLOAT32))));
    EXPECT_VALUES(grd_grad_of(x), 0, 1, 2);
    EXPECT_VALUES(grd_grad_of(y), 5, 6, 7);
    assert_null(grd_grad_of(z));
}

static void test_tensors_are_printed_with_requires_grad_or_grad_fn(void **state)
{
    (void)state;
    grd_tensor *x = leaf3();
    char *leaf = grd_to_string(x), *result = grd_to_string(grd_mul(x, x));
    assert_string_equal(leaf, "tensor([1., 2., 3.], requires_grad=True)");
    assert_string_equal(result, "tensor([1., 4., 9.], grad_fn=<MulBackward0>)");
    free(leaf);
    free(result);
}

/* If an argument that requires a gradient has no derivative formula, the call is refused, because its gradient would be missing without notice. */
static void test_an_argument_without_derivative_is_refused(void **state)
{
    (void)state;
    grd_tensor *x = grd_set_requires_grad(grd_randn(grd_dims(2, 3)), true), *weight = grd_set_requires_grad(grd_ones(grd_dims(3)), true);
    const int64_t classes[] = {0, 2};
    grd_tensor *target = grd_from_data(classes, grd_dims(2), GRD_INT64);
    assert_ptr_equal(grd_nll_loss(x, target, .weight = weight), grd_failed);
    assert_int_equal(grd_error_get(), GRD_ERROR_NOT_IMPLEMENTED);
    expect_error("the derivative for 'weight' is not implemented");
    bool enabled = grd_set_grad_enabled(false);
    grd_nll_loss(x, target, .weight = weight);
    expect_ok();
    grd_set_grad_enabled(enabled);
    grd_backward(grd_nll_loss(x, target, .weight = grd_detach(weight)));
    expect_ok();
    assert_false(grd_requires_grad(grd_eq(x, x)));
    grd_tensor *y = grd_clone(x);
    grd_copy_(y, grd_ones(grd_dims(2, 3)));
    expect_ok();
    assert_true(grd_requires_grad(y));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_an_argument_without_derivative_is_refused),
        TEST(test_requires_grad_can_be_changed_only_on_float_leaves),
        TEST(test_nodes_report_their_names_edges_and_variables),
        TEST(test_set_grad_enabled_switches_recording),
        TEST(test_non_differentiable_results_require_no_gradient),
        TEST(test_operators_that_return_their_input_record_nothing),
        TEST(test_in_place_writes_to_leaves_are_refused),
        TEST(test_out_with_gradients_is_refused),
        TEST(test_gradients_are_computed_in_the_result_dtype),
        TEST(test_in_place_operators_are_recorded),
        TEST(test_in_place_operators_save_a_copy_of_the_overwritten_value),
        TEST(test_an_in_place_operator_may_read_its_own_tensor),
        TEST(test_zero_in_place_removes_history),
        TEST(test_copy_in_place_broadcasts_and_is_recorded),
        TEST(test_backward_refuses_a_modified_saved_result),
        TEST(test_backward_refuses_a_modified_saved_input),
        TEST(test_backward_refuses_an_input_modified_through_a_view),
        TEST(test_set_grad_checks_the_gradient),
        TEST(test_gradients_of_a_list_argument),
        TEST(test_tensors_are_printed_with_requires_grad_or_grad_fn),
    };
    return cmocka_run_group_tests(tests, warm_up, NULL);
}
