/* Tests forward-mode differentiation: dual levels, dual tensors, tangents of in-place operators and views, forward over reverse, and custom
 * functions. The operator matrix checks the tangents of every operator. */
#include "support.h"

static grd_tensor *dual3(void)
{
    return grd_make_dual(VECTOR(1, 2, 3), VECTOR(10, 20, 30));
}

static int begin(void **state)
{
    setup(state);
    return grd_enter_dual_level() ? 0 : 1;
}

static int end(void **state)
{
    grd_error_clear();
    grd_exit_dual_level();
    grd_error_clear();
    return teardown(state);
}

#define FORWARD_TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

/* ---- Levels ---------------------------------------------------------------------------------------------------------------------- */
static void test_forward_mode_levels_do_not_nest(void **state)
{
    (void)state;
    assert_false(grd_enter_dual_level());
    expect_whole_error("Nested forward mode AD is not supported at the moment");
    assert_true(grd_exit_dual_level());
    assert_false(grd_exit_dual_level());
    expect_whole_error("Trying to exit a forward AD level but no level is currently active");
    assert_ptr_equal(dual3(), grd_make_dual(VECTOR(1), VECTOR(1)));
    expect_whole_error("Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first.");
}

static void test_tangents_end_with_their_level(void **state)
{
    (void)state;
    grd_tensor *x = dual3(), *y = grd_mul(x, x);
    EXPECT_VALUES(grd_tangent(y), 20, 80, 180);
    grd_exit_dual_level();
    assert_null(grd_tangent(x));
    assert_null(grd_tangent(grd_mul(x, y)));
    EXPECT_VALUES(y, 1, 4, 9);
    grd_enter_dual_level();
    grd_mul_(y, dual3());
    EXPECT_VALUES(grd_tangent(y), 10, 80, 270);
}

static void test_make_dual_refuses_invalid_tensors(void **state)
{
    (void)state;
    assert_null(grd_tangent(VECTOR(1)));
    grd_make_dual(VECTOR(1, 2), VECTOR(1));
    expect_whole_error("Trying to set a forward gradient that has a different size than that of the original Tensor, this is not "
                       "supported. Tensor is of size [2] while the given forward gradient is "
                       "of size [1].");
    grd_make_dual(VECTOR(1), grd_ones(grd_dims(1), .dtype = GRD_FLOAT64));
    expect_whole_error("Trying to set a forward gradient that has a different dtype than that of the original Tensor, this is not "
                       "supported. Tensor is of dtype float32 while the given forward "
                       "gradient is of dtype float64.");
    grd_make_dual(grd_arange(grd_int(3)), grd_arange(grd_int(3)));
    expect_whole_error("Expected primal to be floating point or complex, but got: torch.int64");
    grd_make_dual(NULL, VECTOR(1));
    expect_whole_error("grd_make_dual: argument 'primal' must be a tensor, not NULL");
}

static void test_the_primal_of_a_dual_tensor_has_no_tangent(void **state)
{
    (void)state;
    grd_tensor *x = dual3(), *value = grd_primal(x);
    EXPECT_VALUES(value, 1, 2, 3);
    assert_null(grd_tangent(value));
    assert_null(grd_tangent(grd_gt(x, VECTOR(0))));
    assert_null(grd_tangent(grd_detach(x)));
}

static void test_a_dual_tensor_is_printed_with_its_tangent(void **state)
{
    (void)state;
    char *text = grd_to_string(dual3());
    assert_string_equal(text, "tensor([1., 2., 3.], tangent=tensor([10., 20., 30.]))");
    free(text);
}

/* ---- In place -------------------------------------------------------------------------------------------------------------------- */
static void test_in_place_operators_update_the_tangent(void **state)
{
    (void)state;
    grd_tensor *x = dual3();
    grd_mul_(x, x);
    EXPECT_VALUES(x, 1, 4, 9);
    EXPECT_VALUES(grd_tangent(x), 20, 80, 180);
    grd_add_(x, VECTOR(1, 1, 1));
    EXPECT_VALUES(grd_tangent(x), 20, 80, 180);
    grd_sqrt_(x);
    EXPECT_VALUES(grd_tangent(x), 20 / (2 * sqrt(2)), 80 / (2 * sqrt(5)), 180 / (2 * sqrt(10)));
    grd_fill_(x, grd_int(7));
    EXPECT_VALUES(grd_tangent(x), 0, 0, 0);
}

static void test_writing_a_dual_tensor_into_another_makes_it_dual(void **state)
{
    (void)state;
    grd_tensor *y = VECTOR(5, 5, 5);
    grd_mul_(y, dual3());
    EXPECT_VALUES(grd_tangent(y), 50, 100, 150);
    grd_copy_(y, VECTOR(1, 1, 1));
    EXPECT_VALUES(grd_tangent(y), 0, 0, 0);
}

static void test_views_share_the_tangent_of_their_base(void **state)
{
    (void)state;
    grd_tensor *x = dual3(), *part = grd_slice(x, .start = grd_int(1));
    EXPECT_VALUES(grd_tangent(part), 20, 30);
    grd_mul_scalar_(part, grd_int(2));
    EXPECT_VALUES(grd_tangent(x), 10, 40, 60);
    grd_tensor *base = grd_zeros(grd_dims(2, 3)), *before = grd_select(base, 0, 1), *row = grd_select(base, 0, 1);
    grd_copy_(row, x);
    EXPECT_VALUES(grd_tangent(base), 0, 0, 0, 10, 40, 60);
    EXPECT_VALUES(grd_tangent(before), 10, 40, 60);
    EXPECT_VALUES(grd_tangent(grd_sum(grd_mul(base, base))), 2 * (1 * 10 + 4 * 40 + 6 * 60));
}

static void test_out_with_a_dual_input_is_refused(void **state)
{
    (void)state;
    grd_exp_out(VECTOR(0, 0, 0), dual3());
    expect_error("functions with out=... arguments don't support automatic differentiation");
}

/* ---- Forward mode together with reverse mode ------------------------------------------------------------------------------------- */
/* For f = sum(exp(x) * x) the gradient is exp(x) (1 + x), and its tangent in the direction v is exp(x) (2 + x) v. */
static void test_a_gradient_of_a_dual_tensor_has_a_tangent(void **state)
{
    (void)state;
    grd_tensor *x = leaf3(), *v = VECTOR(10, 20, 30), *dual = grd_make_dual(x, v), *grad;
    for (int create = 0; create < 2; create++) {
        grd_tensor *y = grd_sum(grd_mul(grd_exp(dual), dual));
        assert_true(grd_grad((grd_tensors){1, &y}, (grd_tensors){1, &dual}, &(grd_backward_options){.create_graph = create}, &grad));
        EXPECT_VALUES(grad, exp(1) * 2, exp(2) * 3, exp(3) * 4);
        EXPECT_VALUES(grd_tangent(grad), exp(1) * 3 * 10, exp(2) * 4 * 20, exp(3) * 5 * 30);
    }
}

static void test_forward_over_reverse_through_in_place_operators(void **state)
{
    (void)state;
    grd_tensor *x = leaf3(), *dual = grd_make_dual(x, VECTOR(10, 20, 30)), *grad;
    grd_tensor *base = grd_clone(dual), *part = grd_slice(base, .start = grd_int(1));
    grd_exp_(part);
    grd_tensor *y = grd_sum(grd_mul(base, base));
    assert_true(grd_grad((grd_tensors){1, &y}, (grd_tensors){1, &dual}, NULL, &grad));
    EXPECT_VALUES(grad, 2, 2 * exp(4), 2 * exp(6));
    EXPECT_VALUES(grd_tangent(grad), 20, 4 * exp(4) * 20, 4 * exp(6) * 30);
}

/* The computation of the tangent 2 x v of x^2 is recorded, so the tangent can be differentiated with respect to x and v. */
static void test_a_tangent_can_be_differentiated(void **state)
{
    (void)state;
    grd_tensor *x = leaf3(), *v = grd_set_requires_grad(VECTOR(10, 20, 30), true), *dual = grd_make_dual(x, v);
    grd_backward(grd_sum(grd_tangent(grd_mul(dual, dual))));
    EXPECT_VALUES(grd_grad_of(x), 20, 40, 60);
    EXPECT_VALUES(grd_grad_of(v), 2, 4, 6);
}

/* tanh saves its result, whose tangent has a graph that leads back to the node of tanh. Exiting the dual level must break this cycle of
 * references, or the teardown finds a leak. */
static void test_exiting_a_level_breaks_reference_cycles_of_tangents(void **state)
{
    (void)state;
    grd_tensor *dual = grd_make_dual(leaf3(), VECTOR(1, 1, 1));
    for (int i = 0; i < 5; i++)
        dual = grd_tanh(dual);
    assert_true(grd_requires_grad(grd_tangent(dual)));
    grd_make_dual(dual, grd_tangent(dual));
}

/* ---- Custom functions ------------------------------------------------------------------------------------------------------------------ */
static void cube(grd_custom_call *call, grd_tensor *const *inputs, grd_tensor **ret_outputs)
{
    grd_custom_save(call, inputs[0]);
    assert_null(grd_tangent(grd_mul(inputs[0], inputs[0])));
    ret_outputs[0] = grd_pow_scalar(inputs[0], grd_int(3));
}

static void cube_jvp(grd_custom_call *call, grd_tensor *const *tangents, grd_tensor **ret_tangents)
{
    grd_tensor *x = grd_custom_saved(call, 0);
    ret_tangents[0] = grd_mul_scalar(grd_mul(tangents[0], grd_mul(x, x)), grd_int(*(int *)grd_custom_context(call)));
}

static void test_custom_functions_compute_tangents_with_jvp(void **state)
{
    (void)state;
    int factor = 3;
    grd_custom_function function = {.name = "Cube", .forward = cube, .jvp = cube_jvp, .inputs = 1, .outputs = 1, .context = &factor};
    grd_tensor *x = dual3(), *y;
    assert_true(grd_custom_apply(&function, &x, &y));
    EXPECT_VALUES(y, 1, 8, 27);
    EXPECT_VALUES(grd_tangent(y), 30, 240, 810);
    function.jvp = NULL;
    assert_false(grd_custom_apply(&function, &x, &y));
    expect_error("You must implement the jvp function for custom autograd.Function to use it with forward mode AD.");
    EXPECT_VALUES(grd_tangent(grd_mul(x, x)), 20, 80, 180);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FORWARD_TEST(test_forward_mode_levels_do_not_nest),
        FORWARD_TEST(test_tangents_end_with_their_level),
        FORWARD_TEST(test_make_dual_refuses_invalid_tensors),
        FORWARD_TEST(test_the_primal_of_a_dual_tensor_has_no_tangent),
        FORWARD_TEST(test_a_dual_tensor_is_printed_with_its_tangent),
        FORWARD_TEST(test_in_place_operators_update_the_tangent),
        FORWARD_TEST(test_writing_a_dual_tensor_into_another_makes_it_dual),
        FORWARD_TEST(test_views_share_the_tangent_of_their_base),
        FORWARD_TEST(test_out_with_a_dual_input_is_refused),
        FORWARD_TEST(test_a_gradient_of_a_dual_tensor_has_a_tangent),
        FORWARD_TEST(test_forward_over_reverse_through_in_place_operators),
        FORWARD_TEST(test_a_tangent_can_be_differentiated),
        FORWARD_TEST(test_exiting_a_level_breaks_reference_cycles_of_tangents),
        FORWARD_TEST(test_custom_functions_compute_tangents_with_jvp),
    };
    return cmocka_run_group_tests(tests, warm_up, NULL);
}
