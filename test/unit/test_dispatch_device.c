/* Tests devices that are registered at run time and whose memory the cpu cannot read directly (see protected.h): registration, fallback to the
 * cpu, views, copies, calls with several devices, and kernels of the device. Backward is tested in autograd/test_devices.c, and the operator
 * matrix runs every operator on such a device. */
#include "support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/transaction.h"
#include "protected.h"

static grd_device near, bare; /* on `near`, operators without a kernel of the device run on the cpu; on `bare` they are refused */
static int kernels_run;

static int register_devices(void **state)
{
    (void)state;
    near = protected_register("near", grd_cpu_fallback);
    bare = protected_register("bare", NULL);
    return grd_ok() ? 0 : -1;
}

static grd_tensor *on(grd_device device, grd_tensor *t)
{
    return grd_to(t, .device = device);
}

static void expect_same(grd_tensor *there, grd_tensor *here)
{
    assert_string_equal(grd_error_message(), "");
    assert_true(there->device >= GRD_DEVICE_FIRST_EXTRA);
    assert_true(grd_tensor_dtype(there) == grd_tensor_dtype(here));
    assert_true(grd_equal(on(GRD_CPU, there), here));
}

/* ---- Registration ------------------------------------------------------------------------------------------------------------ */
static void own_add(const grd_op *op, grd_keyset keys, grd_tensor *out, const grd_value *args, grd_value *ret_results, void *context)
{
    kernels_run++;
    grd_cpu_fallback(op, keys, out, args, ret_results, context);
}

static void invalid_device_descriptions_are_refused(void **state)
{
    (void)state;
    grd_device_type type = {.name = "other", .count = 1, .allocate = protected_allocate, .release = protected_release};
    assert_int_equal(grd_device_register(&type).type, GRD_DEVICE_NONE);
    expect_error(GRD_ERROR_TYPE, "grd_device_register: a device needs a name, allocate, release and copy");
    type.copy = protected_copy;
    const grd_device_type incomplete[] = {
        {.count = 1, .allocate = type.allocate, .release = type.release, .copy = type.copy},
        {.name = "other", .count = 1, .release = type.release, .copy = type.copy},
        {.name = "other", .count = 1, .allocate = type.allocate, .copy = type.copy},
    };
    for (int i = 0; i < 4; i++) {
        assert_int_equal(grd_device_register(i < 3 ? &incomplete[i] : NULL).type, GRD_DEVICE_NONE);
        expect_error(GRD_ERROR_TYPE, "grd_device_register: a device needs a name, allocate, release and copy");
    }
    static const char *const names[] = {
        "a device", "", "1st", "_device", "a_name_of_thirty-two_characters_", "a_name_of_thirty_two_characters_"};
    for (int i = 0; i < 6; i++) {
        char text[200];
        snprintf(text, sizeof text,
                 "grd_device_register: '%s' cannot be a device's name: a letter, then letters, digits and '_', at most 31 in all",
                 names[i]);
        type.name = names[i];
        grd_device_register(&type);
        expect_error(GRD_ERROR_VALUE, text);
    }
    type.name = "other";
    type.count = 129;
    grd_device_register(&type);
    expect_error(GRD_ERROR_VALUE, "grd_device_register: device 'other' must have a count of 1 to 128, not 129");
    type.count = 0;
    grd_device_register(&type);
    expect_error(GRD_ERROR_VALUE, "grd_device_register: device 'other' must have a count of 1 to 128, not 0");
    type.count = 128;
    type.nkernels = -1;
    grd_device_register(&type);
    expect_error(GRD_ERROR_TYPE, "grd_device_register: device 'other' says it has -1 kernels and gives none");
    type.nkernels = 0;
    grd_error_set(GRD_ERROR_VALUE, "first");
    assert_int_equal(grd_device_register(&type).type, GRD_DEVICE_NONE);
    expect_error(GRD_ERROR_VALUE, "first");
    type.name = "cpu";
    grd_device_register(&type);
    expect_error(GRD_ERROR_RUNTIME, "a device named 'cpu' is registered already");
    type.name = "other";
    grd_device_kernel kernels[] = {{"add", own_add}, {"ad", own_add}};
    type.kernels = kernels;
    type.nkernels = 2;
    grd_device_register(&type);
    expect_error(GRD_ERROR_RUNTIME, "device 'other': there is no operator 'ad'");
    kernels[1].op = NULL;
    grd_device_register(&type);
    expect_error(GRD_ERROR_RUNTIME, "device 'other': there is no operator '(NULL)'");
    kernels[1].op = "add";
    grd_device_register(&type);
    expect_error(GRD_ERROR_RUNTIME, "device 'other': two kernels are given for operator 'add'");
    kernels[1].op = "reshape";
    grd_device_register(&type);
    expect_error(GRD_ERROR_RUNTIME, "device 'other': operator 'reshape' is made of other operators, so a kernel for it would never run; "
                                    "register kernels for those operators");
    kernels[1] = (grd_device_kernel){"sub", NULL};
    grd_device_register(&type);
    expect_error(GRD_ERROR_RUNTIME, "device 'other': there is no kernel given for operator 'sub'");
    type.kernels = NULL;
    grd_device_register(&type);
    expect_error(GRD_ERROR_TYPE, "grd_device_register: device 'other' says it has 2 kernels and gives none");
    grd_register_kernel("add", GRD_KEY_DEVICE, own_add, NULL);
    expect_error(GRD_ERROR_RUNTIME, "kernels for a device are part of its description: see grd_device_register");
    grd_register_fallback(GRD_KEY_DEVICE, own_add, NULL);
    expect_error(GRD_ERROR_RUNTIME, "kernels for a device are part of its description: see grd_device_register");
}

static void devices_are_found_by_name(void **state)
{
    (void)state;
    assert_int_equal(grd_device_find("near").type, near.type);
    assert_int_equal(grd_device_find("near").index, 0);
    assert_int_equal(grd_device_find("near:1").index, 1);
    assert_int_equal(grd_device_find("cpu").type, GRD_DEVICE_CPU);
    assert_string_equal(grd_device_name(near), "near");
    grd_device_find("nea");
    expect_error(GRD_ERROR_RUNTIME, "there is no device type 'nea'");
    grd_device_find("near:x");
    expect_error(GRD_ERROR_RUNTIME, "Invalid device string: 'near:x'");
    grd_device_find("near:2");
    expect_error(GRD_ERROR_RUNTIME, "there is no device 'near:2': 'near' has 2");
    grd_device_find(NULL);
    expect_error(GRD_ERROR_TYPE, "grd_device_find: argument 'name' must be a string, not NULL");
    grd_zeros(grd_dims(2), .device = (grd_device){near.type, 2});
    expect_error(GRD_ERROR_RUNTIME, "zeros: there is no device 'near:2': 'near' has 2");
    grd_zeros(grd_dims(2), .device = (grd_device){200, 0});
    expect_error(GRD_ERROR_RUNTIME, "zeros: unknown device type 200");
}

static void at_most_253_device_types_can_be_registered(void **state)
{
    (void)state;
    enum { MOST = GRD_DEVICE_COUNT - GRD_DEVICE_FIRST_EXTRA };
    grd_device many[MOST];
    int n = 0;
    for (char name[16]; n < MOST - 2; n++) {
        snprintf(name, sizeof name, "d%d", n);
        many[n] = protected_register(name, grd_cpu_fallback);
        assert_true(grd_ok());
    }
    assert_int_equal(protected_register("one_more", NULL).type, GRD_DEVICE_NONE);
    expect_error(GRD_ERROR_RUNTIME, "cannot register device 'one_more': the limit of 253 device types is reached");
    grd_scope scope = grd_scope_open();
    grd_tensor *x = grd_arange(grd_int(4));
    for (int i = 0; i < n; i++)
        expect_same(grd_add(on(many[i], x), on(many[i], x)), grd_add(x, x));
    grd_add(on(many[0], x), on(many[n - 1], x));
    expect_error(GRD_ERROR_RUNTIME, "add: Expected all tensors to be on the same device, but found at least two devices, d0:0 and d250:0!");
    assert_false(grd_device_unregister(many[7]));
    const char *in_use = "device 'd7' cannot be unregistered: ";
    assert_memory_equal(grd_error_message(), in_use, strlen(in_use));
    grd_error_clear();
    grd_scope_close(scope);
    for (int i = 0; i < n; i++)
        assert_true(grd_device_unregister(many[i]));
    assert_false(grd_device_unregister(many[0]));
    assert_int_equal(grd_error_get(), GRD_ERROR_RUNTIME);
    grd_error_clear();
    assert_false(grd_device_unregister(GRD_CPU));
    expect_error(GRD_ERROR_RUNTIME, "there is no device type 1 to unregister");
}

/* If a plug-in's load function fails, the device that the function registered is unregistered. */
static void a_failed_load_unregisters_its_device(void **state)
{
    (void)state;
    struct grd_transaction load;
    const int64_t before = grd_memory_get_stats().blocks;
    grd_transaction_begin(&load);
    grd_device gone = protected_register("gone", grd_cpu_fallback);
    assert_int_equal(grd_device_find("gone").type, gone.type);
    grd_transaction_end(&load, false);
    assert_int_equal(grd_memory_get_stats().blocks, before);
    grd_device_find("gone");
    expect_error(GRD_ERROR_RUNTIME, "there is no device type 'gone'");

    /* The load of a plug-in registers a device, makes a tensor on it and fails. The plug-in is unloaded, so the tensor must be freed without the
     * device's functions. */
    grd_transaction_begin(&load);
    gone = protected_register("gone", grd_cpu_fallback);
    const grd_scope scope = grd_scope_open();
    grd_tensor *left = grd_keep(on(gone, iota(grd_dims(3))));
    grd_scope_close(scope);
    grd_transaction_end(&load, false);
    grd_device_find("gone");
    expect_error(GRD_ERROR_RUNTIME, "there is no device type 'gone'");
    grd_neg(left);
    assert_int_equal(grd_error_get(), GRD_ERROR_NOT_IMPLEMENTED);
    grd_error_clear();
    on(GRD_CPU, left);
    expect_error(GRD_ERROR_RUNTIME, "to: to_copy: the plug-in of this tensor's device failed to load");
    const int64_t there = protected_blocks;
    grd_drop(left);
    assert_int_equal(protected_blocks, there);
    protected_blocks--;
    assert_true(grd_device_unregister(gone));
}

/* ---- Reading ----------------------------------------------------------------------------------------------------------------------- */
static void elements_on_a_device_can_be_read(void **state)
{
    (void)state;
    grd_tensor *x = grd_view(grd_arange(grd_int(6), .dtype = GRD_FLOAT32), grd_dims(2, 3)), *there = on(near, x);
    assert_true(grd_item_double(grd_select(grd_select(there, 0, 1), 0, 2)) == 5);
    assert_int_equal(grd_item_int64(grd_select(grd_select(there, 0, 0), 0, 1)), 1);
    double back[6];
    grd_to_memory(grd_t(there), back, GRD_FLOAT64);
    assert_true(back[1] == 3 && back[5] == 5);
    char *text = grd_to_string(grd_t(there));
    assert_string_equal(text, "tensor([[0., 3.],\n        [1., 4.],\n        [2., 5.]], device='near:0')");
    free(text);
    assert_true(grd_equal(there, grd_clone(there)));
    assert_true(grd_allclose(there, on(near, x), 0, 0, false));
    assert_non_null(grd_data(there));
}

static void a_failed_device_copy_raises_an_error(void **state)
{
    (void)state;
    grd_tensor *x = on(near, iota(grd_dims(4))), *before = on(GRD_CPU, x);
    protected_fail_at = 1;
    assert_true(isnan(grd_item_double(grd_select(x, 0, 1))));
    expect_error(GRD_ERROR_RUNTIME, "the copy failed");
    protected_fail_at = 1;
    assert_null(grd_to_string(x));
    expect_error(GRD_ERROR_RUNTIME, "the copy failed");
    for (int n = 1; n <= 2; n++) {
        protected_fail_at = n;
        grd_mul_(x, x);
        expect_error(GRD_ERROR_RUNTIME, "mul: the copy failed");
        expect_same(x, before);
    }
    protected_fail_at = 1;
    grd_neg(x);
    expect_error(GRD_ERROR_RUNTIME, "neg: the copy failed");
    assert_int_equal(protected_fail_at, 0);
}

/* ---- Making and copying --------------------------------------------------------------------------------------------------------------- */
static void factory_functions_create_device_tensors(void **state)
{
    (void)state;
    expect_same(grd_zeros(grd_dims(2, 3), .device = near), grd_zeros(grd_dims(2, 3)));
    expect_same(grd_arange(grd_int(5), .device = near), grd_arange(grd_int(5)));
    expect_same(grd_eye(3, .device = near), grd_eye(3));
    grd_tensor *x = iota(grd_dims(2, 3)), *there = on(near, x);
    expect_same(grd_ones_like(there), grd_ones_like(x));
    expect_same(grd_ones_like(x, .device = near), grd_ones_like(x));
    assert_int_equal(grd_ones_like(there, .device = GRD_CPU)->device, GRD_DEVICE_CPU);
    assert_true(grd_equal(grd_full_like(there, grd_int(3), .device = GRD_CPU), grd_full_like(x, grd_int(3))));
    assert_int_equal(grd_zeros_like(there, .device = GRD_META)->device, GRD_DEVICE_META);
    assert_int_equal(grd_zeros(grd_dims(1), .device = (grd_device){near.type, 1})->device_index, 1);
    assert_int_equal(grd_tensor_device(grd_empty(grd_dims(2), .device = (grd_device){near.type, -1})).index, 0);
    assert_true(grd_requires_grad(grd_randn(grd_dims(2), .device = near, .requires_grad = true)));
    assert_true(grd_requires_grad(grd_empty(grd_dims(2), .device = bare, .requires_grad = true)));
}

static void random_numbers_equal_those_of_the_cpu(void **state)
{
    (void)state;
    grd_manual_seed(7);
    grd_tensor *here[] = {grd_rand(grd_dims(20)), grd_randn(grd_dims(3)), grd_randperm(9), grd_uniform_(grd_empty(grd_dims(4))),
                          grd_bernoulli(grd_full(grd_dims(8), grd_float(0.5)))};
    grd_manual_seed(7);
    grd_tensor *there[] = {grd_rand(grd_dims(20), .device = near), grd_randn(grd_dims(3), .device = near), grd_randperm(9, .device = near),
                           grd_uniform_(grd_empty(grd_dims(4), .device = near)),
                           grd_bernoulli(grd_full(grd_dims(8), grd_float(0.5), .device = near))};
    for (int i = 0; i < 5; i++)
        expect_same(there[i], here[i]);
}

static void tensors_are_copied_between_all_devices(void **state)
{
    (void)state;
    const grd_device second = {near.type, 1};
    grd_tensor *x = grd_view(grd_arange(grd_int(12), .dtype = GRD_FLOAT32), grd_dims(3, 4));
    const grd_device devices[] = {GRD_CPU, near, second, bare};
    for (int from = 0; from < 4; from++)
        for (int to = 0; to < 4; to++) {
            grd_tensor *there = on(devices[from], x), *moved = on(devices[to], there);
            assert_true(grd_ok() && moved->device == devices[to].type);
            assert_true(grd_equal(on(GRD_CPU, moved), x));
            assert_true(grd_equal(on(GRD_CPU, grd_to(there, .device = devices[to], .dtype = GRD_INT64)), grd_to(x, .dtype = GRD_INT64)));
            grd_tensor *wide = grd_empty(grd_dims(4, 6), .device = devices[to]), *part = grd_t(grd_slice(wide, .dim = 1, .step = 2));
            grd_copy_(part, there);
            assert_true(grd_ok() && grd_equal(on(GRD_CPU, part), x));
            grd_copy_(part, grd_select(there, 0, 1));
            assert_true(grd_equal(on(GRD_CPU, grd_select(part, 0, 2)), grd_select(x, 0, 1)));
        }
    grd_tensor *there = on(near, x);
    grd_copy_(grd_slice(there, .start = 1), grd_slice(there, .end = 2));
    expect_error(GRD_ERROR_RUNTIME,
                 "copy: unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory "
                 "location. Please clone() the tensor before performing the operation.");
    grd_copy_(there, on(near, grd_ones(grd_dims(5))));
    expect_error(GRD_ERROR_RUNTIME, "copy: The size of tensor a (4) must match the size of tensor b (5) at non-singleton dimension 1");
    grd_copy_(there, grd_empty(grd_dims(3, 4), .device = GRD_META));
    expect_error(GRD_ERROR_NOT_IMPLEMENTED, "copy: Cannot copy out of meta tensor; no data!");
    assert_true(grd_to(x, .device = GRD_CPU) == x && grd_to(there, .device = near) == there);
    assert_true(grd_to(x, .device = (grd_device){GRD_DEVICE_CPU, 0}) == x && grd_to(there, .device = (grd_device){near.type, -1}) == there);
}

/* ---- Writing --------------------------------------------------------------------------------------------------------------------------- */
static void views_share_device_memory(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) { /* `bare` refuses operators without a kernel, but views need no kernel */
        const grd_device device = i == 0 ? near : bare;
        grd_tensor *x = on(device, iota(grd_dims(4, 6)));
        grd_tensor *views[] = {
            grd_t(x),      grd_select(x, 1, 2),     grd_slice(x, .step = -1),     grd_view(x, grd_dims(2, 12)), grd_diagonal(x),
            grd_detach(x), grd_split(x, 2).data[1], grd_reshape(x, grd_dims(24)), grd_unfold(x, 1, 2, 2)};
        const int64_t before = protected_copies;
        for (int k = 0; k < 9; k++)
            assert_true(grd_ok() && grd_same_storage(views[k], x));
        assert_true(protected_copies == before);
        grd_tensor *z = grd_to(grd_complex(iota(grd_dims(3)), iota(grd_dims(3))), .device = device);
        assert_true(grd_same_storage(grd_real(z), z) && grd_same_storage(grd_imag(z), z) && grd_same_storage(grd_view_as_real(z), z));
    }
}

/* Writes to x, a tensor on `device`, through several views. The test calls it on the cpu and on a device and compares the results. */
static void write_in_place(grd_tensor *x, grd_device device)
{
    grd_tensor *row = grd_select(x, 0, 1), *column = grd_select(x, 1, 2), *backwards = grd_slice(x, .dim = 1, .step = -2);
    grd_add_scalar_(column, grd_float(100));
    grd_mul_(row, row);
    grd_neg_(backwards);
    grd_add_(grd_t(grd_slice(x, .end = grd_int(3), .dim = 1)), grd_ones(grd_dims(4), .device = device, .dtype = GRD_FLOAT64),
             .alpha = grd_int(3));
    grd_zero_(grd_diagonal(x));
    grd_fill_(grd_slice(x, .start = grd_int(3)), grd_float(-1));
    grd_add_(column, grd_select(x, 1, 0));
    grd_uniform_(grd_select(x, 1, 5));
    grd_exp_out(grd_select(x, 1, 4), grd_select(x, 1, 1));
}

static void in_place_writes_through_views_equal_those_on_the_cpu(void **state)
{
    (void)state;
    grd_tensor *x = iota(grd_dims(4, 6)), *there = on(near, x);
    const int64_t version = grd_tensor_version(there), here_before = grd_tensor_version(x);
    grd_manual_seed(3);
    write_in_place(x, GRD_CPU);
    grd_manual_seed(3);
    write_in_place(there, near);
    expect_same(there, x);
    assert_int_equal(grd_tensor_version(there) - version, grd_tensor_version(x) - here_before);
    grd_tensor *z = grd_complex(iota(grd_dims(3)), iota(grd_dims(3))), *far = on(near, z);
    grd_zero_(grd_imag(z));
    grd_zero_(grd_imag(far));
    expect_same(far, z);
}

static void out_tensors_on_a_device_are_written_and_resized(void **state)
{
    (void)state;
    grd_tensor *x = iota(grd_dims(2, 3)), *there = on(near, x), *out = grd_empty(grd_dims(0), .dtype = GRD_FLOAT64, .device = near);
    assert_ptr_equal(grd_exp_out(out, there), out);
    expect_same(out, grd_exp(x));
    expect_same(grd_sum_out(out, there), grd_sum(x));
    expect_same(grd_mul_out(there, there, there), grd_mul(x, x));
    grd_tensor *wide = grd_zeros(grd_dims(2, 6), .dtype = GRD_FLOAT64, .device = near);
    grd_neg_out(grd_slice(wide, .dim = 1, .step = 2), on(near, x));
    expect_same(grd_sum(wide), grd_neg(grd_sum(x)));
    grd_add_out(grd_empty(grd_dims(2, 3), .dtype = GRD_FLOAT64), there, there);
    expect_error(GRD_ERROR_RUNTIME, "add: Expected all tensors to be on the same device, but found at least two devices, cpu and near:0!");
}

static void overlapping_writes_are_refused_as_on_the_cpu(void **state)
{
    (void)state;
    grd_tensor *x = iota(grd_dims(6)), *there = on(near, x);
    char expected[256];
    grd_add_(grd_slice(x, .start = grd_int(1)), grd_slice(x, .end = grd_int(5)));
    snprintf(expected, sizeof expected, "%s", grd_error_message());
    const grd_error_code code = grd_error_get();
    grd_error_clear();
    grd_add_(grd_slice(there, .start = grd_int(1)), grd_slice(there, .end = grd_int(5)));
    expect_error(code, expected);
    grd_add_scalar_(grd_expand(grd_slice(there, .end = grd_int(1)), grd_dims(4)), grd_int(1));
    assert_int_equal(grd_error_get(), GRD_ERROR_RUNTIME);
    grd_error_clear();
    expect_same(there, iota(grd_dims(6)));
}

/* Kernel that returns a list of the two halves of a tensor. */
static void halve(const grd_op *op, grd_keyset keys, grd_tensor *out, const grd_value *args, grd_value *ret_results, void *context)
{
    (void)op, (void)keys, (void)out;
    grd_tensor **list = context, *x = args[0].v.tensor;
    list[0] = grd_clone(grd_slice(x, .end = grd_int(2)));
    list[1] = grd_clone(grd_slice(x, .start = grd_int(2)));
    ret_results[0] = (grd_value){.kind = GRD_KIND_TENSORS, .v.tensors = {2, list}};
}

static void a_kernel_may_return_a_list_through_the_fallback(void **state)
{
    (void)state;
    static grd_tensor *list[2];
    const grd_op *op = grd_define_operator(&(grd_definition){.schema = "device::halve(Tensor self) -> Tensor[]"});
    grd_register_kernel("device::halve", GRD_KEY_CPU, halve, list);
    grd_tensor *x = iota(grd_dims(4)), *there = on(near, x);
    const grd_value arg = {.kind = GRD_KIND_TENSOR, .v.tensor = there};
    grd_value result;
    assert_true(grd_call(op, GRD_FUNCTIONAL, &arg, 1, NULL, &result));
    assert_int_equal(result.v.tensors.n, 2);
    expect_same(result.v.tensors.data[0], grd_slice(x, .end = grd_int(2)));
    expect_same(result.v.tensors.data[1], grd_slice(x, .start = grd_int(2)));
}

static void operators_with_lists_and_several_results_fall_back(void **state)
{
    (void)state;
    grd_tensor *x = iota(grd_dims(3, 4)), *there = on(near, x);
    expect_same(grd_cat(grd_tensors(there, there), .dim = 1), grd_cat(grd_tensors(x, x), .dim = 1));
    expect_same(grd_stack(grd_tensors(there, there)), grd_stack(grd_tensors(x, x)));
    const grd_std_mean_result far = grd_std_mean(there), here = grd_std_mean(x);
    expect_same(far.deviation, here.deviation);
    expect_same(far.average, here.average);
    expect_same(grd_index_select(there, 0, grd_arange(grd_int(2), .device = near)), grd_slice(x, .end = grd_int(2)));
    grd_tensor *empty = grd_empty(grd_dims(0, 4), .dtype = GRD_FLOAT64);
    expect_same(grd_cat(grd_tensors(on(near, empty), there)), x);
    expect_same(grd_exp(on(near, empty)), empty);
}

/* ---- Refusals --------------------------------------------------------------------------------------------------------------------------- */
static void operands_on_different_devices_are_refused(void **state)
{
    (void)state;
    grd_tensor *x = iota(grd_dims(3)), *there = on(near, x), *second = on((grd_device){near.type, 1}, x);
    grd_add(there, x);
    expect_error(GRD_ERROR_RUNTIME, "add: Expected all tensors to be on the same device, but found at least two devices, near:0 and cpu!");
    grd_mul(there, second);
    expect_error(GRD_ERROR_RUNTIME,
                 "mul: Expected all tensors to be on the same device, but found at least two devices, near:0 and near:1!");
    grd_cat(grd_tensors(there, on(bare, x)));
    expect_error(GRD_ERROR_RUNTIME,
                 "cat: Expected all tensors to be on the same device, but found at least two devices, near:0 and bare:0!");
    grd_add_(x, there);
    expect_error(GRD_ERROR_RUNTIME, "add: Expected all tensors to be on the same device, but found at least two devices, cpu and near:0!");
    grd_add(there, grd_empty(grd_dims(3), .device = GRD_META));
    expect_error(GRD_ERROR_RUNTIME, "add: Expected all tensors to be on the same device, but found at least two devices, near:0 and meta!");
    /* Zero-dimensional cpu tensors combine with tensors of any device, as Python numbers do. */
    expect_same(grd_mul(there, grd_scalar_tensor(grd_float(2))), grd_mul_scalar(x, grd_float(2)));
    expect_same(grd_add_scalar(there, grd_float(2)), grd_add_scalar(x, grd_float(2)));
    grd_add_(grd_scalar_tensor(grd_float(2)), there);
    assert_int_equal(grd_error_get(), GRD_ERROR_RUNTIME);
    grd_error_clear();
}

static void operators_without_kernel_or_fallback_are_refused(void **state)
{
    (void)state;
    grd_tensor *x = on(bare, iota(grd_dims(3)));
    assert_true(grd_item_double(grd_select(x, 0, 2)) == 2);
    assert_ptr_equal(grd_add(x, x), grd_failed);
    expect_error(GRD_ERROR_NOT_IMPLEMENTED,
                 "add: Could not run 'add' with arguments from the 'bare' backend. The device has no kernel for this "
                 "operator and has not enabled the fallback to the cpu.");
    grd_zeros(grd_dims(2), .device = bare);
    assert_int_equal(grd_error_get(), GRD_ERROR_NOT_IMPLEMENTED);
    grd_error_clear();
}

static void guards_cannot_include_or_exclude_the_device_key(void **state)
{
    (void)state;
    grd_tensor *x = iota(grd_dims(3)), *there = on(near, x);
    assert_int_equal(grd_tensor_keys(there), 1u << GRD_KEY_DEVICE);
    const grd_key_guard guard = grd_key_guard_set(0, 1u << GRD_KEY_DEVICE);
    expect_same(grd_neg(there), grd_neg(x));
    grd_key_guard_set(1u << GRD_KEY_DEVICE, 0);
    assert_true(grd_equal(grd_neg(x), grd_neg(x)));
    grd_key_guard_restore(guard);
}

static void kernels_of_the_device_precede_the_fallback(void **state)
{
    (void)state;
    const grd_device_kernel kernels[] = {{"add", own_add}, {"copy", own_add}};
    const grd_device_type type = {.name = "own",
                                  .count = 1,
                                  .allocate = protected_allocate,
                                  .release = protected_release,
                                  .copy = protected_copy,
                                  .kernels = kernels,
                                  .nkernels = 2,
                                  .fallback = grd_cpu_fallback};
    const grd_device own = grd_device_register(&type);
    kernels_run = 0;
    grd_tensor *x = iota(grd_dims(3)), *there = on(own, x);
    assert_int_equal(kernels_run, 0); /* a copy from the cpu does not use the device's copy kernel */
    expect_same(grd_add(there, there), grd_add(x, x));
    assert_int_equal(kernels_run, 1);
    expect_same(grd_mul(there, there), grd_mul(x, x));
    assert_int_equal(kernels_run, 1);
    expect_same(grd_copy_(grd_empty_like(there), there), x);
    assert_int_equal(kernels_run, 2);
}

static void three_times(const grd_op *op, grd_keyset keys, grd_tensor *out, const grd_value *args, grd_value *ret_results, void *context)
{
    (void)op, (void)keys, (void)out, (void)context;
    ret_results[0].v.tensor = grd_mul_scalar(args[0].v.tensor, grd_int(3));
}

/* An operator that is defined at run time and has only a cpu kernel also works on a device: the fallback copies the arguments to the cpu and the
 * results back. */
static void operators_defined_at_run_time_fall_back_to_the_cpu(void **state)
{
    (void)state;
    const grd_definition definition = {.schema = "test::thrice(Tensor self) -> Tensor",
                                       .gradients = {{"self", "to(grad * 3, device=device(self), dtype=dtype(grad))"}}};
    const grd_op *op = grd_define_operator(&definition);
    grd_register_kernel("test::thrice", GRD_KEY_CPU, three_times, NULL);
    grd_tensor *x = iota(grd_dims(4)), *there = grd_set_requires_grad(on(near, x), true);
    const grd_value arg = {.kind = GRD_KIND_TENSOR, .v.tensor = there};
    grd_value result;
    assert_true(grd_call(op, GRD_FUNCTIONAL, &arg, 1, NULL, &result));
    expect_same(result.v.tensor, grd_mul_scalar(x, grd_int(3)));
    grd_backward(grd_sum(result.v.tensor));
    expect_same(grd_grad_of(there), grd_full_like(x, grd_int(3)));
}

/* ---- Memory ---------------------------------------------------------------------------------------------------------------------------- */
static void *no_memory(grd_device device, int64_t bytes)
{
    (void)device, (void)bytes;
    return NULL;
}

static void a_failed_device_allocation_raises_memory_error(void **state)
{
    (void)state;
    const grd_device_type type = {.name = "full", .count = 1, .allocate = no_memory, .release = protected_release, .copy = protected_copy};
    const grd_device full = grd_device_register(&type);
    grd_empty(grd_dims(2, 3), .device = full);
    expect_error(GRD_ERROR_MEMORY, "empty: full:0: out of memory: 24 bytes were asked for");
    assert_true(grd_device_unregister(full));
}

static void work_on_device(grd_tensor *x)
{
    grd_tensor *there = on(near, x), *out = grd_empty(grd_dims(0), .dtype = GRD_FLOAT64, .device = near);
    grd_exp_out(out, grd_t(there));
    grd_add_(grd_select(there, 0, 0), grd_select(there, 0, 1));
    grd_cat(grd_tensors(there, there));
    free(grd_to_string(there));
    grd_item_double(grd_sum(there));
}

static void failed_allocations_leak_nothing(void **state)
{
    (void)state;
    grd_tensor *x = iota(grd_dims(40, 30));
    const int64_t before = grd_memory_get_stats().blocks, there_before = protected_blocks;
    bool failed = true;
    for (int64_t n = 1; failed; n++) {
        grd_scope scope = grd_scope_open();
        grd_memory_fail_at(n, n % 2 == 0);
        work_on_device(x);
        grd_memory_fail_at(0, false);
        failed = !grd_ok();
        if (failed)
            assert_int_equal(grd_error_get(), GRD_ERROR_MEMORY);
        grd_error_clear();
        grd_scope_close(scope);
        assert_int_equal(grd_memory_get_stats().blocks, before);
        assert_int_equal(protected_blocks, there_before);
    }
}

/* ---- Threads ---------------------------------------------------------------------------------------------------------------------------- */
enum { THREADS = 4, ROUNDS = 30 };

/* Thread function: computes on two devices, with gradients, while it registers and removes a third device repeatedly. */
static void *use_devices(void *context)
{
    const int number = *(const int *)context;
    const grd_scope scope = grd_scope_open();
    char name[16];
    bool right = true;
    snprintf(name, sizeof name, "thread%d", number);
    for (int i = 0; i < ROUNDS; i++) {
        const grd_scope round = grd_scope_open();
        const grd_device own = protected_register(name, grd_cpu_fallback), devices[] = {near, {near.type, 1}, own};
        grd_tensor *x = grd_set_requires_grad(iota(grd_dims(5)), true), *total = grd_scalar_tensor(grd_int(0), .dtype = GRD_FLOAT64);
        for (int k = 0; k < 3; k++)
            total = grd_add(total, on(GRD_CPU, grd_sum(grd_mul(on(devices[k], x), on(devices[k], x)))));
        grd_backward(total);
        right &= grd_equal(grd_grad_of(x), grd_mul_scalar(iota(grd_dims(5)), grd_int(6)));
        grd_set_grad(x, NULL);
        grd_scope_close(round);
        right &= grd_device_unregister(own) && grd_ok();
    }
    grd_scope_close(scope);
    return right ? context : NULL;
}

static void threads_use_devices_concurrently(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    int numbers[THREADS];
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        assert_int_equal(pthread_create(&threads[i], NULL, use_devices, &numbers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        void *result;
        pthread_join(threads[i], &result);
        assert_ptr_equal(result, &numbers[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_SCOPE(invalid_device_descriptions_are_refused),
        IN_SCOPE(devices_are_found_by_name),
        IN_SCOPE(at_most_253_device_types_can_be_registered),
        IN_SCOPE(a_failed_load_unregisters_its_device),
        IN_SCOPE(elements_on_a_device_can_be_read),
        IN_SCOPE(a_failed_device_copy_raises_an_error),
        IN_SCOPE(factory_functions_create_device_tensors),
        IN_SCOPE(random_numbers_equal_those_of_the_cpu),
        IN_SCOPE(tensors_are_copied_between_all_devices),
        IN_SCOPE(views_share_device_memory),
        IN_SCOPE(in_place_writes_through_views_equal_those_on_the_cpu),
        IN_SCOPE(out_tensors_on_a_device_are_written_and_resized),
        IN_SCOPE(overlapping_writes_are_refused_as_on_the_cpu),
        IN_SCOPE(operators_with_lists_and_several_results_fall_back),
        IN_SCOPE(a_kernel_may_return_a_list_through_the_fallback),
        IN_SCOPE(operands_on_different_devices_are_refused),
        IN_SCOPE(operators_without_kernel_or_fallback_are_refused),
        IN_SCOPE(guards_cannot_include_or_exclude_the_device_key),
        IN_SCOPE(kernels_of_the_device_precede_the_fallback),
        IN_SCOPE(operators_defined_at_run_time_fall_back_to_the_cpu),
        IN_SCOPE(a_failed_device_allocation_raises_memory_error),
        IN_SCOPE(failed_allocations_leak_nothing),
        IN_SCOPE(threads_use_devices_concurrently),
    };
    return cmocka_run_group_tests_name("devices", tests, register_devices, NULL);
}
