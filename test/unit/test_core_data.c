/* Tests the functions that separate a tensor's memory from its autograd history: grd_alias, grd_set_data and grd_detach_. */
#include "support.h"

#include <stdlib.h>

enum { LARGE = 4096 }; /* a tensor of so many elements has its data in a memory block of its own */

/* Returns a tensor with the elements 0, 1, 2, ... that shares its memory with no other tensor. */
static grd_tensor *counting(grd_dims sizes)
{
    return grd_clone(iota(sizes));
}

static void assert_elements(const grd_tensor *t, double first, double last)
{
    assert_true(grd_ok());
    assert_float_equal(element_at(t, 0), first, 0);
    assert_float_equal(element_at(t, t->numel - 1), last, 0);
}

static void an_alias_shares_only_memory_not_history(void **state)
{
    (void)state;
    grd_tensor *x = grd_set_requires_grad(counting(grd_dims(2, 3)), true), *alias = grd_alias(grd_transpose(x, 0, 1));
    assert_false(grd_requires_grad(alias));
    assert_null(grd_view_base(alias));
    assert_ptr_equal(grd_data(alias), grd_data(x));
    assert_int_equal(grd_stride(alias, 0), 1);
    grd_add_(alias, grd_number(grd_float(1)));
    assert_int_equal(grd_tensor_version(alias), 1);
    assert_int_equal(grd_tensor_version(x), 0);
    assert_elements(x, 1, 6);
}

static void an_alias_keeps_the_memory_alive(void **state)
{
    (void)state;
    for (int64_t n = 4; n <= LARGE; n *= LARGE / 4) {
        grd_scope scope = grd_scope_open();
        grd_tensor *alias = grd_keep(grd_alias(grd_alias(counting(grd_dims(n)))));
        grd_scope_close(scope);
        assert_elements(alias, 0, (double)n - 1);
        grd_drop(alias);
    }
}

static void set_data_replaces_memory_dtype_and_shape(void **state)
{
    (void)state;
    grd_tensor *x = grd_set_requires_grad(counting(grd_dims(4)), true),
               *source = grd_ones(grd_dims(2, 3, 1, 1, 1, 1), .dtype = GRD_FLOAT32);
    grd_set_data(x, source);
    assert_true(grd_requires_grad(x));
    assert_int_equal(grd_tensor_dtype(x), GRD_FLOAT32);
    assert_int_equal(grd_ndim(x), 6);
    assert_ptr_equal(grd_data(x), grd_data(source));
    assert_elements(x, 1, 1);
    grd_set_data(x, counting(grd_dims(3)));
    assert_int_equal(grd_ndim(x), 1);
    assert_elements(x, 0, 2);
    assert_elements(source, 1, 1);
    grd_sum(grd_mul(x, x));
    assert_true(grd_ok());
}

static void set_data_accepts_views_of_the_tensor_itself(void **state)
{
    (void)state;
    for (int64_t n = 4; n <= LARGE; n *= LARGE / 4) {
        grd_tensor *x = counting(grd_dims(n));
        for (int i = 0; i < 4; i++)
            grd_set_data(x, grd_view(grd_alias(x), grd_dims(2, -1)));
        assert_int_equal(grd_ndim(x), 2);
        assert_elements(x, 0, (double)n - 1);
        grd_set_data(x, grd_view(x, grd_dims(-1)));
        assert_elements(x, 0, (double)n - 1);
    }
}

static void views_keep_the_replaced_memory(void **state)
{
    (void)state;
    grd_tensor *x = counting(grd_dims(LARGE)), *views[3];
    for (int i = 0; i < 3; i++) {
        views[i] = grd_slice(x, .start = grd_int(1));
        grd_scope scope = grd_scope_open();
        grd_set_data(x, grd_add(x, grd_number(grd_float(10))));
        grd_scope_close(scope);
    }
    for (int i = 0; i < 3; i++)
        assert_elements(views[i], 1 + 10 * i, LARGE - 1 + 10 * i);
    assert_elements(x, 30, LARGE - 1 + 30);
}

static void set_data_separates_a_view_from_its_base(void **state)
{
    (void)state;
    grd_tensor *x = counting(grd_dims(4)), *view = grd_select(x, 0, 1);
    grd_set_data(view, grd_ones(grd_dims(2)));
    assert_null(grd_view_base(view));
    assert_elements(view, 1, 1);
    assert_elements(x, 0, 3);
    grd_tensor *detached = grd_detach(x);
    grd_set_data(detached, grd_ones(grd_dims(2)));
    assert_elements(detached, 1, 1);
    assert_elements(x, 0, 3);
}

static void set_data_leaks_no_memory(void **state)
{
    (void)state;
    const int64_t before = grd_memory_get_stats().blocks;
    for (int64_t n = 4; n <= LARGE; n *= LARGE / 4) {
        grd_scope scope = grd_scope_open();
        grd_tensor *x = counting(grd_dims(n)), *view = grd_slice(x, .end = grd_int(2));
        for (int i = 0; i < 3; i++) {
            grd_set_data(x, counting(grd_dims(n, 1, 1, 1, 1, 1, 1)));
            grd_set_data(view, x);
            grd_set_data(x, grd_alias(view));
        }
        grd_scope_close(scope);
    }
    assert_int_equal(grd_memory_get_stats().blocks, before);
}

static void set_data_refuses_other_devices_and_integer_dtypes(void **state)
{
    (void)state;
    grd_tensor *x = grd_set_requires_grad(counting(grd_dims(4)), true);
    grd_set_data(x, grd_ones(grd_dims(4), .device = GRD_META));
    expect_error(GRD_ERROR_RUNTIME,
                 "Attempted to call `variable.set_data(tensor)`, but `variable` and `tensor` have incompatible tensor type.");
    grd_set_data(x, grd_ones(grd_dims(4), .dtype = GRD_INT64));
    expect_error(GRD_ERROR_RUNTIME, "data set to a tensor that requires gradients must be floating point or complex dtype");
    grd_set_data(x, NULL);
    expect_error(GRD_ERROR_TYPE, "grd_set_data: argument 'source' must be a tensor, not NULL");
    grd_alias(NULL);
    expect_error(GRD_ERROR_TYPE, "grd_alias: argument 't' must be a tensor, not NULL");
    assert_elements(x, 0, 3);
}

static void detach_in_place_removes_history(void **state)
{
    (void)state;
    grd_tensor *x = grd_set_requires_grad(counting(grd_dims(4)), true), *y = grd_mul(x, x), *kept = grd_mul(x, x);
    grd_retain_grad(kept);
    grd_backward(grd_sum(kept));
    grd_detach_(y);
    grd_detach_(kept);
    grd_detach_(x);
    grd_tensor *const all[] = {x, y, kept};
    for (int i = 0; i < 3; i++) {
        assert_false(grd_requires_grad(all[i]));
        assert_null(grd_grad_fn(all[i]));
        assert_true(grd_is_leaf(all[i]));
    }
    assert_false(grd_retains_grad(kept));
    assert_elements(grd_grad_of(kept), 1, 1);
    grd_detach_(grd_select(x, 0, 0));
    expect_error(GRD_ERROR_RUNTIME, "Can't detach views in-place. Use detach() instead.");
    grd_detach_(NULL);
    expect_error(GRD_ERROR_TYPE, "grd_detach_: argument 't' must be a tensor, not NULL");
}

static void to_string_as_prints_the_given_class_name(void **state)
{
    (void)state;
    char *text = grd_to_string_as(counting(grd_dims(2)), "Weights");
    assert_string_equal(text, "Weights([0., 1.], dtype=torch.float64)");
    free(text);
    assert_null(grd_to_string_as(iota(grd_dims(2)), NULL));
    expect_error(GRD_ERROR_TYPE, "grd_to_string: argument 'name' must not be NULL");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_SCOPE(an_alias_shares_only_memory_not_history),
        IN_SCOPE(an_alias_keeps_the_memory_alive),
        IN_SCOPE(set_data_replaces_memory_dtype_and_shape),
        IN_SCOPE(set_data_accepts_views_of_the_tensor_itself),
        IN_SCOPE(views_keep_the_replaced_memory),
        IN_SCOPE(set_data_separates_a_view_from_its_base),
        IN_SCOPE(set_data_leaks_no_memory),
        IN_SCOPE(set_data_refuses_other_devices_and_integer_dtypes),
        IN_SCOPE(detach_in_place_removes_history),
        IN_SCOPE(to_string_as_prints_the_given_class_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
