/* Leaves, grad modes, what is recorded, and version checks of saved tensors. */
#include "support.h"

static void test_leaves(void **state)
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

static void test_graph_as_seen(void **state)
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

static void test_modes(void **state)
{
    (void)state;
    grd_tensor *x = leaf3();
    assert_true(grd_grad_enabled());
    assert_true(grd_set_grad_enabled(false));
    assert_false(grd_requires_grad(grd_mul(x, x)));
    assert_false(grd_set_grad_enabled(true));
    assert_true(grd_requires_grad(grd_mul(x, x)));
}

static void test_results_without_gradient(void **state)
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

static void test_same_tensor_returned(void **state)
{
    (void)state;
    grd_tensor *x = leaf3();
    assert_ptr_equal(grd_contiguous(x), x);
    assert_true(grd_is_leaf(x));
    assert_ptr_equal(grd_to(x, .dtype = GRD_FLOAT32), x);
    assert_true(grd_is_leaf(x));
}

static void test_inplace_on_leaf(void **state)
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

static void test_out(void **state)
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

/* The gradient of atan2(y, x) with an int8 x is computed in the result's dtype: 16 * 16 would overflow int8. */
static void test_gradient_beside_an_integer(void **state)
{
    (void)state;
    grd_tensor *y = leaf3(), *x = grd_full(grd_dims(3), grd_int(16), .dtype = GRD_INT8);
    grd_backward(grd_sum(grd_atan2(y, x)));
    EXPECT_VALUES(grd_grad_of(y), 16. / (256 + 1), 16. / (256 + 4), 16. / (256 + 9));
}

static void test_inplace(void **state)
{
    (void)state;
    grd_tensor *x = leaf3(), *y = grd_clone(x);
    assert_ptr_equal(grd_mul_(y, x), y);
    assert_string_equal(grd_node_name(grd_grad_fn(y)), "MulBackward0");
    grd_exp_(y);
    grd_backward(grd_sum(y));
    EXPECT_VALUES(grd_grad_of(x), 2 * exp(1), 4 * exp(4), 6 * exp(9));
}

/* The overwritten value of y is needed for the gradient of w, so mul_ saves a copy of it. */
static void test_inplace_keeps_what_it_overwrites(void **state)
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

static void test_inplace_with_itself(void **state)
{
    (void)state;
    grd_tensor *x = leaf3(), *y = grd_clone(x);
    grd_mul_(y, y);
    grd_backward(grd_sum(y));
    EXPECT_VALUES(grd_grad_of(x), 2, 4, 6);
}

static void test_overwritten_with_a_constant(void **state)
{
    (void)state;
    grd_tensor *x = leaf3(), *y = grd_mul(x, x);
    grd_zero_(y);
    grd_backward(grd_sum(grd_add(y, x)));
    EXPECT_VALUES(grd_grad_of(x), 1, 1, 1);
}

static void test_copy_into(void **state)
{
    (void)state;
    grd_tensor *x = leaf3(), *y = grd_zeros(grd_dims(2, 3));
    grd_copy_(y, x);
    grd_backward(grd_sum(grd_mul(y, y)));
    EXPECT_VALUES(grd_grad_of(x), 4, 8, 12);
}

static void test_modified_result(void **state)
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

static void test_modified_input(void **state)
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

static void test_modified_through_a_view(void **state)
{
    (void)state;
    grd_tensor *x = leaf3(), *a = grd_clone(x), *b = grd_sin(a);
    grd_zero_(grd_select(a, 0, 0));
    grd_backward(grd_sum(b));
    expect_error("is at version 1; expected version 0 instead.");
}

static void test_assigning_gradients(void **state)
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

static void test_list_arguments(void **state)
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

static void test_printing(void **state)
{
    (void)state;
    grd_tensor *x = leaf3();
    char *leaf = grd_to_string(x), *result = grd_to_string(grd_mul(x, x));
    assert_string_equal(leaf, "tensor([1., 2., 3.], requires_grad=True)");
    assert_string_equal(result, "tensor([1., 4., 9.], grad_fn=<MulBackward0>)");
    free(leaf);
    free(result);
}

/* If an argument that requires a gradient has no derivative formula, the call is refused; its gradient would otherwise be lost silently. */
static void test_argument_without_formula(void **state)
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
        TEST(test_argument_without_formula),
        TEST(test_leaves),
        TEST(test_graph_as_seen),
        TEST(test_modes),
        TEST(test_results_without_gradient),
        TEST(test_same_tensor_returned),
        TEST(test_inplace_on_leaf),
        TEST(test_out),
        TEST(test_gradient_beside_an_integer),
        TEST(test_inplace),
        TEST(test_inplace_keeps_what_it_overwrites),
        TEST(test_inplace_with_itself),
        TEST(test_overwritten_with_a_constant),
        TEST(test_copy_into),
        TEST(test_modified_result),
        TEST(test_modified_input),
        TEST(test_modified_through_a_view),
        TEST(test_assigning_gradients),
        TEST(test_list_arguments),
        TEST(test_printing),
    };
    return cmocka_run_group_tests(tests, warm_up, NULL);
}
