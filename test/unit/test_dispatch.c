/* Dispatch: key sets, missing kernels, kernels and fallbacks registered at run time, generic calls. */
#include <string.h>

#include "support.h"

static int calls; /* counted through the context */

/* Counts, then runs the cpu kernel. */
static void counting(const grd_op *op, grd_keyset keys, grd_tensor *out, const grd_value *args, grd_value *ret_results, void *context)
{
    ++*(int *)context;
    grd_redispatch(op, keys & ~((grd_keyset)1 << GRD_KEY_WRAPPER), out, args, ret_results);
}

/* Negates whatever exp would give: a kernel that replaces. */
static void replacing(const grd_op *op, grd_keyset keys, grd_tensor *out, const grd_value *args, grd_value *ret_results, void *context)
{
    (void)context;
    (void)keys;
    (void)op;
    (void)out;
    ret_results[0] = (grd_value){.kind = GRD_KIND_TENSOR, .v.tensor = grd_neg(args[0].v.tensor)};
}

static grd_tensor *two(void)
{
    return grd_from_data((const float[]){1, 2}, grd_dims(2), GRD_FLOAT32);
}

static void test_keys_of_tensors(void **state)
{
    (void)state;
    grd_tensor *x = two();
    assert_int_equal(grd_tensor_keys(x), 1u << GRD_KEY_CPU);
    assert_int_equal(grd_tensor_keys(grd_empty(grd_dims(2), .device = GRD_META)), 1u << GRD_KEY_META);
    grd_set_requires_grad(x, true);
    assert_int_equal(grd_tensor_keys(x), 1u << GRD_KEY_CPU | 1u << GRD_KEY_AUTOGRAD);
    assert_string_equal(grd_key_name(GRD_KEY_AUTOGRAD), "AUTOGRAD");
}

static void test_a_fallback_serves_every_operator(void **state)
{
    (void)state;
    calls = 0;
    grd_register_fallback(GRD_KEY_WRAPPER, counting, &calls);
    const grd_key_guard guard = grd_key_guard_set(1u << GRD_KEY_WRAPPER, 0);
    grd_tensor *sum = grd_sum(grd_exp(two()));
    grd_key_guard_restore(guard);
    grd_unregister_fallback(GRD_KEY_WRAPPER);
    assert_true(grd_ok());
    assert_true(calls >= 2);
    assert_float_equal(grd_item_double(sum), 10.107338, 1e-5);
    const int before = calls;
    grd_exp(two());
    assert_int_equal(calls, before);
}

static void test_exclusion(void **state)
{
    (void)state;
    calls = 0;
    grd_register_fallback(GRD_KEY_WRAPPER, counting, &calls);
    const grd_key_guard outer = grd_key_guard_set(1u << GRD_KEY_WRAPPER, 0);
    const grd_key_guard inner = grd_key_guard_set(0, 1u << GRD_KEY_WRAPPER);
    grd_exp(two());
    assert_int_equal(calls, 0);
    grd_key_guard_restore(inner);
    grd_exp(two());
    assert_int_equal(calls, 1);
    grd_key_guard_restore(outer);
    grd_unregister_fallback(GRD_KEY_WRAPPER);
}

static void test_a_kernel_for_one_operator(void **state)
{
    (void)state;
    grd_register_kernel("exp", GRD_KEY_WRAPPER, replacing, NULL);
    const grd_key_guard guard = grd_key_guard_set(1u << GRD_KEY_WRAPPER, 0);
    const grd_op *exp = grd_op_find("exp");
    grd_value result, args[] = {{.kind = GRD_KIND_TENSOR, .v.tensor = two()}};
    grd_key_guard_restore(guard);
    grd_redispatch(exp, 1u << GRD_KEY_WRAPPER | 1u << GRD_KEY_CPU, NULL, args, &result);
    assert_true(grd_ok());
    assert_float_equal(grd_item_double(grd_select(result.v.tensor, 0, 1)), -2, 0);
    grd_register_kernel("exp", GRD_KEY_WRAPPER, replacing, NULL);
    expect_error(GRD_ERROR_RUNTIME, "operator 'exp' has a kernel for dispatch key WRAPPER already");
    grd_unregister_kernel("exp", GRD_KEY_WRAPPER);
    grd_register_kernel("exp", GRD_KEY_CPU, replacing, NULL);
    expect_error(GRD_ERROR_RUNTIME, "operator 'exp' has a kernel for dispatch key CPU already");
    grd_register_kernel("expp", GRD_KEY_WRAPPER, replacing, NULL);
    expect_error(GRD_ERROR_RUNTIME, "there is no operator 'expp' to register a kernel for");
}

static void test_a_missing_kernel_names_operator_key_and_keys(void **state)
{
    (void)state;
    const grd_key_guard guard = grd_key_guard_set(1u << GRD_KEY_WRAPPER, 0);
    grd_tensor *y = grd_exp(two());
    grd_key_guard_restore(guard);
    assert_ptr_equal(y, grd_failed);
    expect_error(GRD_ERROR_NOT_IMPLEMENTED, "exp: no kernel for dispatch key WRAPPER; there are kernels for CPU, META, AUTOGRAD");
}

static void test_generic_calls(void **state)
{
    (void)state;
    const grd_op *add = grd_op_find("add");
    assert_string_equal(grd_op_schema(add), "add(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor");
    grd_value result, args[] = {{.kind = GRD_KIND_TENSOR, .v.tensor = two()}, {.kind = GRD_KIND_INT, .v.integer = 3}};
    assert_true(grd_call(add, GRD_FUNCTIONAL, args, 2, NULL, &result));
    assert_float_equal(grd_item_double(grd_select(result.v.tensor, 0, 1)), 5, 0);
    assert_true(grd_call(add, GRD_INPLACE, args, 2, NULL, &result));
    assert_ptr_equal(result.v.tensor, args[0].v.tensor);
    assert_int_equal(grd_tensor_version(result.v.tensor), 1);

    assert_false(grd_call(add, GRD_FUNCTIONAL, args, 1, NULL, &result));
    assert_ptr_equal(result.v.tensor, grd_failed);
    expect_error(GRD_ERROR_TYPE, "add: argument 'other' (position 2) is missing");
    args[1] = (grd_value){.kind = GRD_KIND_STRING, .v.string = "x"};
    assert_false(grd_call(add, GRD_FUNCTIONAL, args, 2, NULL, &result));
    expect_error(GRD_ERROR_TYPE, "add: argument 'other' (position 2) must be Tensor, not str");
    assert_false(grd_call(grd_op_find("select"), GRD_INPLACE, args, 1, NULL, &result));
    expect_error(GRD_ERROR_NOT_IMPLEMENTED, "select: has no in-place form");
    assert_null(grd_op_find("no_such_operator"));
}

static void test_errors_stick_and_the_first_wins(void **state)
{
    (void)state;
    grd_tensor *x = two(), *bad = grd_from_data((const float[]){1, 2, 3}, grd_dims(3), GRD_FLOAT32);
    grd_tensor *y = grd_exp(grd_add(x, bad));
    assert_ptr_equal(y, grd_failed);
    grd_mm(x, bad);
    expect_error(GRD_ERROR_RUNTIME, "add: The size of tensor a (2) must match the size of tensor b (3) at non-singleton dimension 0");
    assert_true(grd_item_double(grd_failed) != grd_item_double(grd_failed));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keys_of_tensors),
        cmocka_unit_test(test_a_fallback_serves_every_operator),
        cmocka_unit_test(test_exclusion),
        cmocka_unit_test(test_a_kernel_for_one_operator),
        cmocka_unit_test(test_a_missing_kernel_names_operator_key_and_keys),
        cmocka_unit_test(test_generic_calls),
        cmocka_unit_test(test_errors_stick_and_the_first_wins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
