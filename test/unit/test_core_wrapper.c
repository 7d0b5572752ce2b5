/* Tests wrappers, i.e. tensors that hold an object of the user. The kernel of the wrapper's type receives every call on wrappers. */
#include "support.h"

#include <stdlib.h>
#include <string.h>

static int released, served;
static const char *last;

static void release_content(void *content)
{
    released++;
    free(content);
}

static grd_boxed_kernel serve;
static const grd_wrapper_type boxed = {.name = "boxed", .kernel = serve, .release = release_content};
static const grd_wrapper_type plain = {.name = "plain", .kernel = serve};

static grd_tensor *wrap(int number)
{
    int *content = malloc(sizeof *content);
    *content = number;
    return grd_wrap(&boxed, grd_dims(2, 3), GRD_INT64, content);
}

/* Kernel of both wrapper types. For `add` it returns a wrapper of the sum of the two contents. It refuses every other operator. */
static void serve(const grd_op *op, grd_keyset keys, grd_tensor *out, const grd_value *args, grd_value *ret_results, void *context)
{
    (void)out, (void)context;
    served++;
    last = grd_op_name(op);
    assert_true(keys >> GRD_KEY_WRAPPER & 1);
    if (strcmp(last, "add") != 0) {
        grd_wrapper_refuse(&boxed, op);
        return;
    }
    const int *a = grd_wrapper_content(args[0].v.tensor, &boxed), *b = grd_wrapper_content(args[1].v.tensor, &boxed);
    ret_results[0].v.tensor = wrap((a != NULL ? *a : 0) + (b != NULL ? *b : 0));
}

static int reset(void **state)
{
    released = served = 0;
    return open_scope(state);
}

static void the_kernel_of_a_wrapper_type_receives_every_call(void **state)
{
    (void)state;
    grd_tensor *a = wrap(2), *b = wrap(3), *sum = grd_add(a, b);
    assert_true(grd_ok());
    assert_int_equal(*(int *)grd_wrapper_content(sum, &boxed), 5);
    assert_int_equal(*(int *)grd_wrapper_content(grd_add(grd_ones(grd_dims(2)), a), &boxed), 2);
    assert_int_equal(served, 2);
    grd_mm(a, b);
    expect_error(GRD_ERROR_NOT_IMPLEMENTED, "mm: Could not run 'mm' with arguments from the 'boxed' wrapper.");
    assert_string_equal(last, "mm");
    grd_neg_(a);
    assert_int_equal(grd_error_get(), GRD_ERROR_NOT_IMPLEMENTED);
    grd_error_clear();
    grd_cat(grd_tensors(grd_ones(grd_dims(2)), b));
    expect_error(GRD_ERROR_NOT_IMPLEMENTED, "cat: Could not run 'cat' with arguments from the 'boxed' wrapper.");
    grd_select(a, 0, 1);
    expect_error(GRD_ERROR_NOT_IMPLEMENTED, "select: Could not run 'select' with arguments from the 'boxed' wrapper.");
}

static void functions_that_read_elements_refuse_wrappers(void **state)
{
    (void)state;
    grd_tensor *a = wrap(2);
    int64_t values[6];
    assert_int_equal(grd_numel(a), 6);
    assert_null(grd_data(a));
    char *text = grd_to_string(a);
    assert_string_equal(text, "tensor(..., wrapper='boxed', size=(2, 3), dtype=torch.int64)");
    free(text);
    assert_null(grd_draw_strides(a));
    expect_error(GRD_ERROR_NOT_IMPLEMENTED, "grd_draw_strides: argument 't' is a wrapper, 'boxed', whose storage has no cells");
    grd_to_memory(a, values, GRD_INT64);
    expect_error(GRD_ERROR_NOT_IMPLEMENTED, "Cannot copy out of meta tensor; no data!");
    const grd_key_guard guard = grd_key_guard_set(0, 1u << GRD_KEY_WRAPPER);
    /* Without the wrapper's kernel a wrapper acts as a meta tensor, which has sizes and a dtype only. */
    assert_int_equal(grd_neg(a)->device, GRD_DEVICE_META);
    grd_key_guard_restore(guard);
    assert_true(grd_ok());
    grd_tensor *plain_tensor = grd_ones(grd_dims(2));
    const grd_key_guard with = grd_key_guard_set(1u << GRD_KEY_WRAPPER, 0);
    grd_neg(plain_tensor);
    grd_key_guard_restore(with);
    expect_error(GRD_ERROR_NOT_IMPLEMENTED,
                 "neg: no kernel for dispatch key WRAPPER; there are kernels for CPU, META, CONJUGATE, AUTOGRAD, FORWARD, AUTOCAST, BATCH");
}

static void the_content_of_a_wrapper_is_released_once(void **state)
{
    (void)state;
    grd_scope scope = grd_scope_open();
    grd_tensor *kept = grd_keep(wrap(1));
    grd_wrap(&plain, grd_dims(1), GRD_FLOAT32, NULL);
    wrap(2);
    grd_scope_close(scope);
    assert_int_equal(released, 1);
    grd_drop(kept);
    assert_int_equal(released, 2);
}

static void the_content_is_returned_only_for_its_wrapper_type(void **state)
{
    (void)state;
    grd_tensor *a = wrap(1);
    assert_non_null(grd_wrapper_content(a, &boxed));
    assert_null(grd_wrapper_content(a, &plain));
    assert_null(grd_wrapper_content(grd_ones(grd_dims(1)), &boxed));
    assert_null(grd_wrapper_content(NULL, &boxed));
    grd_wrap(NULL, grd_dims(1), GRD_FLOAT32, NULL);
    expect_error(GRD_ERROR_TYPE, "grd_wrap: argument 'type' must have a name and a kernel");
    grd_wrap(&plain, grd_dims(-1), GRD_FLOAT32, NULL);
    assert_int_equal(grd_error_get(), GRD_ERROR_RUNTIME);
    grd_error_clear();
    const int64_t before = grd_memory_get_stats().blocks;
    for (int n = 1; n <= 2; n++) {
        grd_memory_fail_at(n, false);
        assert_ptr_equal(grd_wrap(&plain, grd_dims(1), GRD_FLOAT32, NULL), grd_failed);
        grd_memory_fail_at(0, false);
        assert_int_equal(grd_error_get(), GRD_ERROR_MEMORY);
        grd_error_clear();
        assert_int_equal(grd_memory_get_stats().blocks, before);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_kernel_of_a_wrapper_type_receives_every_call, reset, close_scope),
        cmocka_unit_test_setup_teardown(functions_that_read_elements_refuse_wrappers, reset, close_scope),
        cmocka_unit_test_setup_teardown(the_content_of_a_wrapper_is_released_once, reset, close_scope),
        cmocka_unit_test_setup_teardown(the_content_is_returned_only_for_its_wrapper_type, reset, close_scope),
    };
    return cmocka_run_group_tests_name("wrappers", tests, NULL, NULL);
}
