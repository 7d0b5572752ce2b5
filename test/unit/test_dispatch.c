/* Tests dispatch: sets of dispatch keys, missing kernels, kernels and fallbacks registered at run time, and boxed calls. */
#include <string.h>

#include "support.h"

static int calls; /* number of calls of the kernel `counting`, which gets the address of this variable as its context */

/* Kernel that counts its calls and then dispatches without GRD_KEY_WRAPPER, i.e. to the operator's own kernel. */
static void counting(const grd_op *op, grd_keyset keys, grd_tensor *out, const grd_value *args, grd_value *ret_results, void *context)
{
    ++*(int *)context;
    grd_redispatch(op, keys & ~((grd_keyset)1 << GRD_KEY_WRAPPER), out, args, ret_results);
}

/* Kernel that returns -self instead of the operator's result. */
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

static void test_tensors_have_dispatch_keys(void **state)
{
    (void)state;
    grd_tensor *x = two();
    assert_int_equal(grd_tensor_keys(x), 1u << GRD_KEY_CPU);
    assert_int_equal(grd_tensor_keys(grd_empty(grd_dims(2), .device = GRD_META)), 1u << GRD_KEY_META);
    grd_set_requires_grad(x, true);
    assert_int_equal(grd_tensor_keys(x), 1u << GRD_KEY_CPU | 1u << GRD_KEY_AUTOGRAD);
    assert_string_equal(grd_key_name(GRD_KEY_AUTOGRAD), "AUTOGRAD");
}

static void test_a_fallback_kernel_receives_every_operator(void **state)
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

static void test_excluded_keys_are_not_dispatched_to(void **state)
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

/* Device keys tell which device holds the data of a tensor. A guard that includes or excludes them does not change any call. */
static void test_guards_cannot_include_or_exclude_device_keys(void **state)
{
    (void)state;
    const grd_keyset fixed = 1u << GRD_KEY_CPU | 1u << GRD_KEY_META | 1u << GRD_KEY_DEVICE | 1u << GRD_KEY_LIFETIMES;
    const grd_key_guard before = grd_key_guard_set(fixed, fixed);
    const grd_key_guard set = grd_key_guard_set(0, 0);
    grd_tensor *sum = grd_sum(two()), *absent = grd_exp(grd_empty(grd_dims(2), .device = GRD_META));
    grd_key_guard_restore(before);
    assert_true(grd_ok());
    assert_int_equal(set.include, before.include);
    assert_int_equal(set.exclude, before.exclude);
    assert_float_equal(grd_item_double(sum), 3, 0);
    assert_int_equal(grd_tensor_keys(absent), 1u << GRD_KEY_META);
}

static void test_a_kernel_is_registered_for_one_operator(void **state)
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

static void test_the_error_for_a_missing_kernel_names_the_key(void **state)
{
    (void)state;
    const grd_key_guard guard = grd_key_guard_set(1u << GRD_KEY_WRAPPER, 0);
    grd_tensor *y = grd_exp(two());
    grd_key_guard_restore(guard);
    assert_ptr_equal(y, grd_failed);
    expect_error(GRD_ERROR_NOT_IMPLEMENTED,
                 "exp: no kernel for dispatch key WRAPPER; there are kernels for CPU, META, CONJUGATE, AUTOGRAD, FORWARD, AUTOCAST, BATCH");
}

static void test_grd_call_runs_each_form_of_an_operator(void **state)
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

static void test_write_results_writes_to_given_tensors(void **state)
{
    (void)state;
    const grd_op *max = grd_op_find("max_dim");
    grd_tensor *x = grd_view(grd_arange(grd_int(6)), grd_dims(2, 3)), *values = grd_zeros(grd_dims(5), .dtype = GRD_INT64),
               *indices = grd_zeros(grd_dims(2), .dtype = GRD_INT64);
    grd_tensor *floats[] = {values, grd_zeros(grd_dims(2))};
    grd_max_dim_result result = grd_max_dim(x, 1);
    grd_tensor *results[] = {result.values, result.indices}, *outs[] = {values, indices}, *missing[] = {values, NULL};
    assert_false(grd_write_results(NULL, (grd_tensors){0}, grd_tensors_from(outs, 2), grd_tensors_from(results, 2)));
    expect_error(GRD_ERROR_TYPE, "an operator is required, not NULL");
    assert_false(grd_write_results(max, (grd_tensors){0}, grd_tensors_from(outs, 1), grd_tensors_from(results, 2)));
    expect_error(GRD_ERROR_TYPE, "max_dim: 1 tensors were given for 2 results");
    assert_false(grd_write_results(max, (grd_tensors){0}, grd_tensors_from(NULL, 2), grd_tensors_from(results, 2)));
    expect_error(GRD_ERROR_TYPE, "max_dim: outs and results must be lists of tensors, without NULL");
    assert_false(grd_write_results(max, (grd_tensors){0}, grd_tensors_from(missing, 2), grd_tensors_from(results, 2)));
    expect_error(GRD_ERROR_TYPE, "max_dim: outs and results must be lists of tensors, without NULL");
    assert_false(grd_write_results(max, (grd_tensors){0}, grd_tensors_from(floats, 2), grd_tensors_from(results, 2)));
    expect_error(GRD_ERROR_RUNTIME, "max_dim: Expected out tensor to have dtype long int, but got float instead");
    assert_int_equal(grd_numel(values), 5);
    assert_true(grd_write_results(max, (grd_tensors){0}, grd_tensors_from(outs, 2), grd_tensors_from(results, 2)));
    assert_true(grd_equal(indices, grd_full(grd_dims(2), grd_int(2))));
    assert_int_equal(grd_numel(values), 2);
}

static void test_the_first_error_of_a_chain_of_calls_stays(void **state)
{
    (void)state;
    grd_tensor *x = two(), *bad = grd_from_data((const float[]){1, 2, 3}, grd_dims(3), GRD_FLOAT32);
    grd_tensor *y = grd_exp(grd_add(x, bad));
    assert_ptr_equal(y, grd_failed);
    grd_mm(x, bad);
    expect_error(GRD_ERROR_RUNTIME, "add: The size of tensor a (2) must match the size of tensor b (3) at non-singleton dimension 0");
    assert_true(grd_item_double(grd_failed) != grd_item_double(grd_failed));
}

/* ---- Properties of operators, and refused calls ----------------------------------------------------------------------------------- */

static void test_operators_report_their_arguments_and_forms(void **state)
{
    (void)state;
    const grd_op *add = grd_op_find("add"), *first = grd_op_at(0);
    assert_string_equal(grd_op_name(add), "add");
    assert_int_equal(grd_op_arg_count(add), 3);
    assert_int_equal(grd_op_result_count(add), 1);
    assert_string_equal(grd_op_arg_name(add, 1), "other");
    assert_int_equal(grd_op_arg_kind(add, 2), GRD_KIND_SCALAR);
    assert_false(grd_op_arg_optional(add, 1));
    assert_true(grd_op_arg_optional(add, 2));                  /* the argument has a default */
    assert_true(grd_op_arg_optional(grd_op_find("clamp"), 1)); /* the argument may be None */
    assert_int_equal(grd_op_forms(add), 1u << GRD_FUNCTIONAL | 1u << GRD_INPLACE | 1u << GRD_OUT);
    assert_ptr_equal(grd_op_find(grd_op_name(first)), first);
    assert_null(grd_op_at(-1));
    assert_null(grd_op_at(grd_op_count()));
    assert_null(grd_op_find(NULL));
    assert_int_equal(grd_tensor_keys(NULL), 0);
    assert_string_equal(grd_key_name((grd_key)99), "?");
    assert_true(grd_ok());
}

static void no_operator(void)
{
    expect_error(GRD_ERROR_TYPE, "an operator is required, not NULL");
}

static void test_a_null_operator_is_refused(void **state)
{
    (void)state;
    grd_value result;
    assert_string_equal(grd_op_name(NULL), "");
    no_operator();
    assert_string_equal(grd_op_schema(NULL), "");
    no_operator();
    assert_int_equal(grd_op_arg_count(NULL), 0);
    no_operator();
    assert_int_equal(grd_op_result_count(NULL), 0);
    no_operator();
    assert_string_equal(grd_op_arg_name(NULL, 0), "");
    no_operator();
    assert_int_equal(grd_op_arg_kind(NULL, 0), GRD_KIND_NONE);
    no_operator();
    assert_false(grd_op_arg_optional(NULL, 0));
    no_operator();
    assert_int_equal(grd_op_forms(NULL), 0);
    no_operator();
    assert_false(grd_call(NULL, GRD_FUNCTIONAL, NULL, 0, NULL, &result));
    no_operator();
    assert_string_equal(grd_op_arg_name(grd_op_find("add"), 3), "");
    expect_error(GRD_ERROR_INDEX, "add: has 3 arguments, no argument 3");
    assert_int_equal(grd_op_arg_kind(grd_op_find("add"), -1), GRD_KIND_NONE);
    expect_error(GRD_ERROR_INDEX, "add: has 3 arguments, no argument -1");
}

/* Checks that a call is refused with this error and that its result is grd_failed. */
static void refused(const char *op, grd_form form, const grd_value *args, int n, grd_error_code code, const char *text)
{
    grd_value result = {.kind = GRD_KIND_NONE};
    assert_false(grd_call(grd_op_find(op), form, args, n, NULL, &result));
    expect_error(code, text);
    assert_ptr_equal(result.v.tensor, grd_failed);
}

static void test_invalid_calls_are_refused(void **state)
{
    (void)state;
    const grd_value x = {.kind = GRD_KIND_TENSOR, .v.tensor = two()};
    const grd_value four[] = {x, x, {.kind = GRD_KIND_INT, .v.integer = 1}, x};
    refused("add", (grd_form)3, four, 2, GRD_ERROR_VALUE, "add: no form 3");
    refused("add", GRD_FUNCTIONAL, four, 4, GRD_ERROR_TYPE, "add: takes 3 arguments, 4 were given");
    refused("add", GRD_OUT, four, 2, GRD_ERROR_TYPE, "add: the tensor to write must be a tensor, not NULL");
    const grd_value failed[] = {{.kind = GRD_KIND_TENSOR, .v.tensor = grd_failed}, x};
    refused("add", GRD_INPLACE, failed, 2, GRD_ERROR_RUNTIME, "add: the failed tensor cannot be written");
    const grd_value none[] = {{.kind = GRD_KIND_TENSOR}, x};
    refused("add", GRD_FUNCTIONAL, none, 2, GRD_ERROR_TYPE, "add: argument 'self' (position 1) is missing");
    grd_error_set(GRD_ERROR_VALUE, "first");
    refused("add", GRD_FUNCTIONAL, four, 2, GRD_ERROR_VALUE, "first");
}

static void test_arguments_are_converted_only_to_compatible_kinds(void **state)
{
    (void)state;
    const grd_value x = {.kind = GRD_KIND_TENSOR, .v.tensor = iota(grd_dims(2, 3))};
    const grd_value yes = {.kind = GRD_KIND_BOOL, .v.boolean = true}, half = {.kind = GRD_KIND_FLOAT, .v.number = 0.5};
    const grd_value one = {.kind = GRD_KIND_INT, .v.integer = 1}, seven = {.kind = GRD_KIND_SCALAR, .v.scalar = grd_int(7)};
    const grd_value complex = {.kind = GRD_KIND_SCALAR, .v.scalar = grd_complex_number(1, 2)};
    const grd_value truth = {.kind = GRD_KIND_SCALAR, .v.scalar = grd_bool(true)}, none = {.kind = GRD_KIND_NONE};
    grd_value result;

    assert_true(grd_call(grd_op_find("select"), GRD_FUNCTIONAL, (const grd_value[]){x, yes, one}, 3, NULL, &result));
    assert_float_equal(element_at(result.v.tensor, 1), 4, 0);
    refused("select", GRD_FUNCTIONAL, (const grd_value[]){x, half, one}, 3, GRD_ERROR_TYPE,
            "select: argument 'dim' (position 2) must be int, not float");
    refused("select", GRD_FUNCTIONAL, (const grd_value[]){x, complex, one}, 3, GRD_ERROR_TYPE,
            "select: argument 'dim' (position 2) must be int, not Scalar");

    const grd_op *sum = grd_op_find("sum");
    assert_true(grd_call(sum, GRD_FUNCTIONAL, (const grd_value[]){x, none, truth}, 3, NULL, &result));
    assert_int_equal(grd_ndim(result.v.tensor), 2);
    refused("sum", GRD_FUNCTIONAL, (const grd_value[]){x, none, one}, 3, GRD_ERROR_TYPE,
            "sum: argument 'keepdim' (position 3) must be bool, not int");
    refused("sum", GRD_FUNCTIONAL, (const grd_value[]){x, one}, 2, GRD_ERROR_TYPE,
            "sum: argument 'dim' (position 2) must be int[], not int");

    const grd_op *normal = grd_op_find("normal");
    assert_true(grd_call(normal, GRD_INPLACE, (const grd_value[]){x, seven, {.kind = GRD_KIND_INT}}, 3, NULL, &result));
    assert_float_equal(element_at(x.v.tensor, 5), 7, 0);
    refused("normal", GRD_INPLACE, (const grd_value[]){x, complex}, 2, GRD_ERROR_TYPE,
            "normal: argument 'mean' (position 2) must be float, not Scalar");
}

static void test_malformed_list_arguments_are_refused(void **state)
{
    (void)state;
    grd_tensor *with_hole[] = {two(), NULL};
    const grd_value x = {.kind = GRD_KIND_TENSOR, .v.tensor = two()};
    const grd_value no_data = {.kind = GRD_KIND_DIMS, .v.dims = {2, NULL}}, negative = {.kind = GRD_KIND_DIMS, .v.dims = {-1, NULL}};
    const grd_value hole = {.kind = GRD_KIND_TENSORS, .v.tensors = {2, with_hole}},
                    nothing = {.kind = GRD_KIND_TENSORS, .v.tensors = {2, NULL}};
    const char *integers = "sum: argument 'dim' (position 2) must be a list of integers: it has a length but no data, or a negative length";
    const char *tensors = "cat: argument 'tensors' (position 1) must be a list of tensors without NULL";
    refused("sum", GRD_FUNCTIONAL, (const grd_value[]){x, no_data}, 2, GRD_ERROR_TYPE, integers);
    refused("sum", GRD_FUNCTIONAL, (const grd_value[]){x, negative}, 2, GRD_ERROR_TYPE, integers);
    refused("cat", GRD_FUNCTIONAL, &hole, 1, GRD_ERROR_TYPE, tensors);
    refused("cat", GRD_FUNCTIONAL, &nothing, 1, GRD_ERROR_TYPE, tensors);
    const grd_value dtype[] = {x, {.kind = GRD_KIND_NONE}, {.kind = GRD_KIND_NONE}, {.kind = GRD_KIND_DTYPE, .v.dtype = (grd_dtype)99}};
    refused("sum", GRD_FUNCTIONAL, dtype, 4, GRD_ERROR_TYPE, "sum: argument 'dtype' (position 4) is no dtype: 99");
}

static void test_invalid_kernel_registrations_are_refused(void **state)
{
    (void)state;
    const char *device = "kernels for a device are part of its description: see grd_device_register";
    grd_register_kernel("exp", (grd_key)99, replacing, NULL);
    expect_error(GRD_ERROR_VALUE, "no dispatch key 99");
    grd_register_kernel("exp", GRD_KEY_DEVICE, replacing, NULL);
    expect_error(GRD_ERROR_RUNTIME, device);
    grd_register_kernel("exp", GRD_KEY_WRAPPER, NULL, NULL);
    expect_error(GRD_ERROR_TYPE, "a kernel is required, not NULL");
    grd_register_kernel(NULL, GRD_KEY_WRAPPER, replacing, NULL);
    expect_error(GRD_ERROR_RUNTIME, "there is no operator '(NULL)' to register a kernel for");
    grd_register_fallback((grd_key)-1, counting, &calls);
    expect_error(GRD_ERROR_VALUE, "no dispatch key -1");
    grd_register_fallback(GRD_KEY_DEVICE, counting, &calls);
    expect_error(GRD_ERROR_RUNTIME, device);
    grd_register_fallback(GRD_KEY_WRAPPER, NULL, NULL);
    expect_error(GRD_ERROR_TYPE, "a kernel is required, not NULL");
    grd_unregister_kernel("expp", GRD_KEY_WRAPPER);
    expect_error(GRD_ERROR_RUNTIME, "there is no operator 'expp' to register a kernel for");
    grd_unregister_kernel("exp", (grd_key)99);
    expect_error(GRD_ERROR_VALUE, "no dispatch key 99");
    grd_unregister_fallback((grd_key)99);
    expect_error(GRD_ERROR_VALUE, "no dispatch key 99");
    grd_register_fallback(GRD_KEY_WRAPPER, counting, &calls);
    grd_register_fallback(GRD_KEY_WRAPPER, counting, &calls);
    expect_error(GRD_ERROR_RUNTIME, "dispatch key WRAPPER has a fallback already");
    grd_unregister_fallback(GRD_KEY_WRAPPER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tensors_have_dispatch_keys),
        cmocka_unit_test(test_a_fallback_kernel_receives_every_operator),
        cmocka_unit_test(test_excluded_keys_are_not_dispatched_to),
        cmocka_unit_test(test_guards_cannot_include_or_exclude_device_keys),
        cmocka_unit_test(test_a_kernel_is_registered_for_one_operator),
        cmocka_unit_test(test_the_error_for_a_missing_kernel_names_the_key),
        cmocka_unit_test(test_grd_call_runs_each_form_of_an_operator),
        cmocka_unit_test(test_write_results_writes_to_given_tensors),
        cmocka_unit_test(test_the_first_error_of_a_chain_of_calls_stays),
        cmocka_unit_test(test_operators_report_their_arguments_and_forms),
        cmocka_unit_test(test_a_null_operator_is_refused),
        cmocka_unit_test(test_invalid_calls_are_refused),
        cmocka_unit_test(test_arguments_are_converted_only_to_compatible_kinds),
        cmocka_unit_test(test_malformed_list_arguments_are_refused),
        cmocka_unit_test(test_invalid_kernel_registrations_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
