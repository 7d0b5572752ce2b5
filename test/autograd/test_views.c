/* Tests views and in-place writes. After a write to a base or to one of its views, backward through the base and through every view must include
 * the write. */
#include "support.h"

static void test_backward_through_a_view_of_a_view(void **state)
{
    (void)state;
    grd_tensor *x = leaf3(), *v = grd_select(grd_unsqueeze(x, 0), 1, 2);
    grd_backward(grd_sum(grd_mul(v, v)));
    EXPECT_VALUES(grd_grad_of(x), 0, 0, 6);
}

static void test_an_in_place_write_through_a_view_is_recorded(void **state)
{
    (void)state;
    grd_tensor *x = leaf3(), *y = grd_clone(x), *v = grd_slice(y, .start = grd_int(0), .end = grd_int(2));
    grd_exp_(v);
    expect_ok();
    assert_string_equal(grd_node_name(grd_grad_fn(y)), "CopySlices");
    assert_string_equal(grd_node_name(grd_grad_fn(v)), "AsStridedBackward0");
    EXPECT_VALUES(y, exp(1), exp(2), 3);
    grd_backward(grd_sum(grd_mul(y, VECTOR(1, 10, 100))));
    EXPECT_VALUES(grd_grad_of(x), exp(1), 10 * exp(2), 100);
}

static void test_a_view_follows_an_in_place_write_to_its_base(void **state)
{
    (void)state;
    grd_tensor *x = leaf3(), *y = grd_clone(x), *v = grd_select(y, 0, 1);
    grd_mul_(y, VECTOR(2, 3, 4));
    assert_string_equal(grd_node_name(grd_grad_fn(v)), "AsStridedBackward0");
    grd_backward(grd_mul(v, v));
    EXPECT_VALUES(grd_grad_of(x), 0, 36, 0);
}

static void test_a_view_follows_a_write_through_another_view(void **state)
{
    (void)state;
    grd_tensor *x = leaf3(), *y = grd_clone(x), *all = grd_view(y, grd_dims(3, 1)), *part = grd_select(y, 0, 2);
    grd_copy_(part, grd_ones(GRD_NO_DIMS));
    grd_backward(grd_sum(grd_mul(all, all)));
    EXPECT_VALUES(grd_grad_of(x), 2, 4, 0);
}

static void test_a_base_gets_history_from_a_write_through_a_view(void **state)
{
    (void)state;
    grd_tensor *w = leaf3(), *base = grd_zeros(grd_dims(2, 3)), *row = grd_select(base, 0, 1), *before = grd_select(base, 0, 1);
    grd_add_(row, w);
    expect_ok();
    assert_true(grd_requires_grad(base));
    assert_true(grd_requires_grad(before));
    assert_string_equal(grd_node_name(grd_grad_fn(before)), "AsStridedBackward0");
    grd_backward(grd_sum(grd_mul(base, base)));
    EXPECT_VALUES(grd_grad_of(w), 2, 4, 6);
}

/* The view `early` was made before its base had a grad_fn. A later write to the base must also give the view a grad_fn. */
static void test_a_view_made_before_its_base_had_history_follows_it(void **state)
{
    (void)state;
    grd_tensor *w = leaf3(), *base = grd_ones(grd_dims(3)), *early = grd_select(base, 0, 2);
    grd_mul_(base, w);
    grd_tensor *y = grd_mul(early, early);
    assert_true(grd_requires_grad(y));
    grd_backward(y);
    EXPECT_VALUES(grd_grad_of(w), 0, 0, 6);
}

static void test_rows_can_be_filled_one_by_one(void **state)
{
    (void)state;
    grd_tensor *x = leaf3(), *out = grd_zeros(grd_dims(4, 3));
    for (int i = 0; i < 4; i++)
        grd_copy_(grd_select(out, 0, i), grd_mul_scalar(x, grd_int(i)));
    grd_backward(grd_sum(grd_mul(out, out)));
    EXPECT_VALUES(grd_grad_of(x), 28, 56, 84);
}

static void test_double_backward_through_a_written_view(void **state)
{
    (void)state;
    grd_tensor *x = leaf3(), *y = grd_clone(x), *g, *gg;
    grd_exp_(grd_select(y, 0, 0));
    assert_true(grd_grad(grd_tensors(grd_sum(grd_mul(y, y))), grd_tensors(x), &(grd_backward_options){.create_graph = true}, &g));
    EXPECT_VALUES(g, 2 * exp(2), 4, 6);
    assert_true(grd_grad(grd_tensors(grd_sum(g)), grd_tensors(x), NULL, &gg));
    EXPECT_VALUES(gg, 4 * exp(2), 2, 2);
}

static void test_a_view_with_negative_stride_can_be_written(void **state)
{
    (void)state;
    grd_tensor *x = leaf3(), *y = grd_clone(x), *back = grd_slice(y, .step = -1);
    expect_ok();
    grd_mul_(back, VECTOR(1, 10, 100));
    EXPECT_VALUES(y, 100, 20, 3);
    grd_backward(grd_sum(y));
    EXPECT_VALUES(grd_grad_of(x), 100, 10, 1);
}

static void test_a_view_made_without_grad_cannot_be_written(void **state)
{
    (void)state;
    grd_tensor *x = leaf3(), *y = grd_clone(x);
    grd_set_grad_enabled(false);
    grd_tensor *v = grd_select(y, 0, 0);
    grd_set_grad_enabled(true);
    assert_true(grd_requires_grad(v));
    assert_true(grd_is_leaf(v));
    grd_mul_(v, grd_ones(GRD_NO_DIMS));
    expect_error(
        "A view was created in no_grad mode and is being modified inplace with grad mode enabled. Given that this use case is ambiguous "
        "and error-prone, it is forbidden.");
    EXPECT_VALUES(y, 1, 2, 3);
}

static void test_writes_to_views_of_split_and_of_no_grad_views_are_refused(void **state)
{
    (void)state;
    grd_tensor *x = leaf3(), *y = grd_clone(x);
    grd_set_grad_enabled(false);
    grd_tensor *part = grd_slice(y, .end = grd_int(2));
    grd_set_grad_enabled(true);
    grd_zero_(grd_select(part, 0, 0));
    expect_error("Output 0 of Select is a view of a view which was created in no_grad mode and is being modified inplace with grad "
                 "mode enabled.");
    grd_zero_(grd_split(y, 1).data[2]);
    expect_error("Output 2 of Split is a view and is being modified inplace. This view is the output of a function that returns "
                 "multiple views.");
    grd_tensor *half = grd_split(y, 2).data[0];
    grd_mul_(y, VECTOR(2, 2, 2));
    assert_null(grd_grad_fn(half));
    expect_error("Output 0 of Split is a view and its base or another view of its base has been modified inplace.");
    grd_tensor *z = grd_complex(y, y);
    grd_zero_(grd_imag(z));
    assert_true(grd_requires_grad(z));
    grd_tensor *g = NULL;
    assert_true(grd_grad(grd_tensors(grd_sum(grd_add(grd_real(z), grd_imag(z)))), grd_tensors(y), NULL, &g));
    EXPECT_VALUES(g, 1, 1, 1);
    EXPECT_VALUES(y, 2, 4, 6);
}

static void test_a_write_to_a_detached_alias_keeps_history(void **state)
{
    (void)state;
    grd_tensor *x = leaf3(), *y = grd_clone(x), *d = grd_detach(y);
    grd_add_(d, VECTOR(1, 1, 1));
    expect_ok();
    assert_string_equal(grd_node_name(grd_grad_fn(y)), "CloneBackward0");
    assert_int_equal(grd_tensor_version(y), 1);
    grd_backward(grd_sum(y));
    EXPECT_VALUES(grd_grad_of(x), 1, 1, 1);
}

static void test_a_leaf_with_views_can_be_updated_without_grad(void **state)
{
    (void)state;
    grd_tensor *w = leaf3(), *v = grd_unsqueeze(w, 0);
    grd_set_grad_enabled(false);
    grd_sub_(w, VECTOR(1, 1, 1));
    grd_set_grad_enabled(true);
    grd_backward(grd_sum(grd_mul(v, v)));
    EXPECT_VALUES(grd_grad_of(w), 0, 2, 4);
}

static void test_many_writes_through_views_in_a_row(void **state)
{
    (void)state;
    grd_tensor *x = leaf3(), *y = grd_clone(x);
    for (int i = 0; i < 1000; i++) {
        grd_scope scope = grd_scope_open();
        grd_add_(grd_select(y, 0, i % 3), grd_ones(GRD_NO_DIMS));
        grd_scope_close(scope);
    }
    grd_backward(grd_sum(y));
    EXPECT_VALUES(grd_grad_of(x), 1, 1, 1);
}

/* The elements that an in-place operator without derivative writes become constants, also if they are written through a view. */
static void test_a_write_without_derivative_makes_elements_constant(void **state)
{
    (void)state;
    grd_tensor *x = leaf3(), *y = grd_mul_scalar(x, grd_int(2));
    grd_gt_(grd_slice(y, .start = grd_int(1)), grd_number(grd_int(4)));
    EXPECT_VALUES(y, 2, 0, 1);
    grd_backward(grd_sum(y));
    EXPECT_VALUES(grd_grad_of(x), 2, 0, 0);
    grd_tensor *z = grd_mul_scalar(x, grd_int(2));
    grd_gt_(z, grd_number(grd_int(4)));
    grd_backward(grd_sum(z));
    EXPECT_VALUES(grd_grad_of(x), 2, 0, 0);
}

/* ---- A saved tensor is overwritten; the teardown of TEST checks that no reference cycle is leaked ---------------------------------------- */
static void expect_overwritten(grd_tensor *t)
{
    grd_backward(grd_sum(t));
    expect_error("has been modified by an inplace operation");
}

static void test_an_overwritten_saved_tensor_leaks_no_cycle(void **state)
{
    (void)state;
    grd_tensor *w = leaf3(), *plain = VECTOR(1, 2, 3), *recorded = grd_clone(w);
    grd_add_(plain, grd_mul(w, plain));
    expect_overwritten(plain);
    grd_add_(recorded, grd_mul(recorded, recorded));
    expect_overwritten(recorded);
}

static void test_an_overwritten_base_of_a_saved_view_leaks_no_cycle(void **state)
{
    (void)state;
    grd_tensor *w = leaf3(), *base = grd_zeros(grd_dims(2, 3)), *row = grd_select(base, 0, 0);
    grd_add_(base, grd_mul(w, row));
    expect_overwritten(base);
    grd_tensor *other = grd_select(base, 0, 1);
    grd_add_(other, grd_mul(grd_exp(other), other));
    expect_overwritten(base);
}

/* The node of sin saves `base`, of which `row` is a view. Overwriting `row` with the result of sin must not make a reference cycle through the
 * saved base. */
static void test_an_overwritten_view_of_a_saved_base_leaks_no_cycle(void **state)
{
    (void)state;
    const grd_scope scope = grd_scope_open();
    grd_tensor *base = grd_clone(leaf3()), *row = grd_keep(grd_view(base, grd_dims(3))), *wave = grd_keep(grd_sin(base));
    grd_scope_close(scope);
    grd_add_(row, wave);
    expect_overwritten(row);
    grd_drop(row);
    grd_drop(wave);
}

/* The node of sin saves x. Then grd_set_data gives x other memory, and grd_add_ makes the node a part of the graph that x owns. A reference from the
 * node to x would then make a reference cycle. */
static void test_an_overwritten_tensor_with_new_data_leaks_no_cycle(void **state)
{
    (void)state;
    grd_tensor *x = grd_clone(leaf3()), *wave = grd_sin(x);
    grd_set_data(x, VECTOR(4, 5, 6));
    grd_add_(x, wave);
    expect_overwritten(x);
}

/* A result computed from t is added to u in place, and a result computed from u is added to t in place. So the graph of u has saved t, and the graph
 * of t has saved u. This must not make a reference cycle. */
static void test_two_tensors_overwritten_from_each_other_leak_no_cycle(void **state)
{
    (void)state;
    grd_tensor *w = leaf3(), *t = VECTOR(1, 2, 3), *u = VECTOR(4, 5, 6);
    grd_tensor *of_u = grd_mul(w, u), *of_t = grd_mul(w, t);
    grd_add_(u, of_t);
    grd_add_(t, of_u);
    expect_overwritten(t);
    expect_overwritten(u);
}

/* An in-place call that fails leaves the grad_fn of the tensor unchanged, so first and second derivatives still work. */
static void test_a_failed_in_place_call_keeps_history(void **state)
{
    (void)state;
    grd_tensor *w = leaf3(), *x = grd_mul(w, w), *cube = grd_mul(x, w), *first, *second;
    grd_backward_options again = {.create_graph = true};
    grd_add_(x, grd_stack(grd_tensors(cube, cube)));
    expect_error("");
    assert_true(grd_grad(grd_tensors(grd_sum(cube)), grd_tensors(w), &again, &first));
    EXPECT_VALUES(first, 3, 12, 27);
    assert_true(grd_grad(grd_tensors(grd_sum(first)), grd_tensors(w), NULL, &second));
    EXPECT_VALUES(second, 6, 12, 18);
}

/* No node has saved the overwritten tensor x, so backward through x still works. */
static void test_overwriting_an_unsaved_tensor_keeps_gradients(void **state)
{
    (void)state;
    grd_tensor *w = leaf3(), *x = VECTOR(1, 2, 3), *alias = x;
    grd_tensor *scaled = grd_mul(w, VECTOR(4, 5, 6));
    grd_keep(alias);
    grd_add_(x, scaled);
    grd_backward(grd_sum(x));
    grd_drop(alias);
    EXPECT_VALUES(grd_grad_of(w), 4, 5, 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_backward_through_a_view_of_a_view),
        TEST(test_an_in_place_write_through_a_view_is_recorded),
        TEST(test_a_view_follows_an_in_place_write_to_its_base),
        TEST(test_a_view_follows_a_write_through_another_view),
        TEST(test_a_base_gets_history_from_a_write_through_a_view),
        TEST(test_a_view_made_before_its_base_had_history_follows_it),
        TEST(test_rows_can_be_filled_one_by_one),
        TEST(test_double_backward_through_a_written_view),
        TEST(test_a_view_with_negative_stride_can_be_written),
        TEST(test_a_view_made_without_grad_cannot_be_written),
        TEST(test_writes_to_views_of_split_and_of_no_grad_views_are_refused),
        TEST(test_a_write_to_a_detached_alias_keeps_history),
        TEST(test_a_leaf_with_views_can_be_updated_without_grad),
        TEST(test_many_writes_through_views_in_a_row),
        TEST(test_a_write_without_derivative_makes_elements_constant),
        TEST(test_an_overwritten_saved_tensor_leaks_no_cycle),
        TEST(test_an_overwritten_base_of_a_saved_view_leaks_no_cycle),
        TEST(test_an_overwritten_view_of_a_saved_base_leaks_no_cycle),
        TEST(test_an_overwritten_tensor_with_new_data_leaks_no_cycle),
        TEST(test_two_tensors_overwritten_from_each_other_leak_no_cycle),
        TEST(test_a_failed_in_place_call_keeps_history),
        TEST(test_overwriting_an_unsaved_tensor_keeps_gradients),
    };
    return cmocka_run_group_tests(tests, warm_up, NULL);
}
