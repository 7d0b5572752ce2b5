/* Tests grd_gradcheck and grd_gradgradcheck, which must accept correct gradients and refuse wrong ones with an error that names the mistake. */
#include "support.h"

static grd_tensor *outputs_slot[2];

static grd_tensors one(grd_tensor *t)
{
    outputs_slot[0] = t;
    return (grd_tensors){1, outputs_slot};
}

static grd_tensors product(grd_tensor *const *inputs, int n, void *context)
{
    (void)n;
    (void)context;
    return one(grd_mul(grd_exp(inputs[0]), inputs[1]));
}

static grd_tensors two_outputs(grd_tensor *const *inputs, int n, void *context)
{
    (void)n;
    (void)context;
    outputs_slot[0] = grd_sin(inputs[0]);
    outputs_slot[1] = grd_sum(grd_mul(inputs[0], inputs[0]));
    return (grd_tensors){2, outputs_slot};
}

static grd_tensors written_in_place(grd_tensor *const *inputs, int n, void *context)
{
    (void)n;
    (void)context;
    grd_tensor *copy = grd_mul(inputs[0], inputs[0]);
    grd_mul_(grd_select(copy, 0, 1), grd_select(inputs[0], 0, 0));
    return one(copy);
}

static void wrong_forward(grd_custom_call *call, grd_tensor *const *inputs, grd_tensor **ret_outputs)
{
    (void)call;
    ret_outputs[0] = grd_mul_scalar(inputs[0], grd_int(3));
}

static void wrong_backward(grd_custom_call *call, grd_tensor *const *grad_outputs, grd_tensor **ret_grads)
{
    (void)call;
    ret_grads[0] = grd_mul_scalar(grad_outputs[0], grd_int(2));
}

static grd_tensors wrong(grd_tensor *const *inputs, int n, void *context)
{
    (void)n;
    (void)context;
    static const grd_custom_function function = {"Wrong", wrong_forward, wrong_backward, 1, 1, NULL, NULL, NULL, NULL};
    grd_tensor *result;
    grd_custom_apply(&function, inputs, &result);
    return one(result);
}

static grd_tensors detached(grd_tensor *const *inputs, int n, void *context)
{
    (void)n;
    (void)context;
    return one(grd_detach(grd_mul(inputs[0], inputs[0])));
}

static grd_tensor *leaf(const double *values, grd_dims sizes, grd_dtype dtype)
{
    return grd_set_requires_grad(grd_from_data(values, sizes, dtype), true);
}

static const double numbers[] = {0.3, -1.2, 0.7, 1.9, -0.4, 0.8, 1.1, -0.9};

static void test_gradcheck_accepts_correct_gradients(void **state)
{
    (void)state;
    grd_tensor *x = leaf(numbers, grd_dims(2, 2), GRD_FLOAT64), *y = leaf(numbers + 2, grd_dims(2), GRD_FLOAT64);
    assert_true(grd_gradcheck(product, grd_tensors(x, y), NULL, NULL));
    assert_true(grd_gradgradcheck(product, grd_tensors(x, y), NULL, NULL));
    assert_true(grd_gradcheck(two_outputs, grd_tensors(x), NULL, NULL));
    assert_true(grd_gradgradcheck(two_outputs, grd_tensors(x), NULL, NULL));
    double after[4];
    grd_to_memory(x, after, GRD_FLOAT64);
    assert_memory_equal(after, numbers, sizeof after);
    assert_null(grd_grad_of(x));
}

static void test_gradcheck_accepts_strided_inputs(void **state)
{
    (void)state;
    grd_tensor *x = grd_set_requires_grad(grd_detach(grd_t(grd_from_data(numbers, grd_dims(4, 2), GRD_FLOAT64))), true);
    grd_tensor *y = leaf(numbers, grd_dims(4), GRD_FLOAT64);
    assert_true(grd_gradcheck(product, grd_tensors(x, y), NULL, NULL));
}

static void test_gradcheck_accepts_complex_inputs(void **state)
{
    (void)state;
    grd_tensor *x = leaf(numbers, grd_dims(2), GRD_COMPLEX128), *y = leaf(numbers + 4, grd_dims(2), GRD_COMPLEX128);
    grd_tensor *real = leaf(numbers + 3, grd_dims(2), GRD_FLOAT64);
    if (!grd_gradcheck(product, grd_tensors(x, y), NULL, NULL) || !grd_gradgradcheck(product, grd_tensors(x, y), NULL, NULL))
        fail_msg("%s", grd_error_message());
    if (!grd_gradcheck(product, grd_tensors(x, real), NULL, NULL) || !grd_gradcheck(product, grd_tensors(real, x), NULL, NULL))
        fail_msg("%s", grd_error_message());
}

static void test_gradcheck_accepts_in_place_operators(void **state)
{
    (void)state;
    grd_tensor *x = leaf(numbers, grd_dims(3), GRD_FLOAT64);
    if (!grd_gradcheck(written_in_place, grd_tensors(x), NULL, NULL) || !grd_gradgradcheck(written_in_place, grd_tensors(x), NULL, NULL))
        fail_msg("%s", grd_error_message());
}

static void test_gradcheck_refuses_wrong_gradients_and_invalid_inputs(void **state)
{
    (void)state;
    grd_tensor *x = leaf(numbers, grd_dims(2), GRD_FLOAT64);
    assert_false(grd_gradcheck(wrong, grd_tensors(x), NULL, NULL));
    expect_error("Jacobian mismatch for output 0 (part 0) with respect to input 0, element 0: numerical 3");
    assert_false(grd_gradcheck(detached, grd_tensors(x), NULL, NULL));
    expect_error("Numerical gradient for function expected to be zero");
    assert_false(grd_gradcheck(product, grd_tensors(leaf3(), leaf3()), NULL, NULL));
    expect_error("input 0 requires gradient and has dtype float32; gradcheck needs float64 or complex128");
    assert_false(grd_gradcheck(product, grd_tensors(VECTOR(1), VECTOR(2)), NULL, NULL));
    expect_error("gradcheck expects at least one input tensor to require gradient, but none of them have requires_grad=True.");
    grd_tensor *overlapping = grd_set_requires_grad(grd_detach(grd_expand(grd_ones(grd_dims(1), .dtype = GRD_FLOAT64), grd_dims(3))), true);
    assert_false(grd_gradcheck(two_outputs, grd_tensors(overlapping), NULL, NULL));
    expect_error("input 0 has elements that share memory");
}

static void test_gradcheck_uses_the_given_tolerances(void **state)
{
    (void)state;
    grd_tensor *x = leaf(numbers, grd_dims(2), GRD_FLOAT64);
    assert_true(grd_gradcheck(wrong, grd_tensors(x), NULL, &(grd_gradcheck_options){.atol = 2}));
    assert_true(grd_gradcheck(wrong, grd_tensors(x), NULL, &(grd_gradcheck_options){.rtol = 0.5}));
}

static grd_tensors in_float32(grd_tensor *const *inputs, int n, void *context)
{
    (void)n;
    (void)context;
    return one(grd_to(inputs[0], .dtype = GRD_FLOAT32));
}

/* Function for gradcheck whose output has one element more at every call. */
static grd_tensors growing(grd_tensor *const *inputs, int n, void *context)
{
    (void)n;
    return one(grd_expand(grd_sum(inputs[0]), grd_dims(++*(int *)context)));
}

static void test_gradcheck_refuses_float32_and_changing_outputs(void **state)
{
    (void)state;
    int size = 0;
    grd_tensor *x = leaf(numbers, grd_dims(2), GRD_FLOAT64);
    assert_false(grd_gradcheck(in_float32, grd_tensors(x), NULL, NULL));
    expect_whole_error("output 0 has dtype float32; gradcheck needs float64 or complex128");
    assert_false(grd_gradgradcheck(in_float32, grd_tensors(x), NULL, NULL));
    expect_whole_error("output 0 has dtype float32; gradgradcheck needs float64 or complex128");
    assert_false(grd_gradcheck(growing, grd_tensors(x), &size, NULL));
    expect_whole_error("the function does not always return outputs of the same sizes");
}

/* Function for gradcheck. Its first output is detached and so requires no gradient. gradcheck must ignore this output, and inputs that require no
 * gradient. */
static grd_tensors with_constant(grd_tensor *const *inputs, int n, void *context)
{
    static grd_tensor *outputs[2];
    (void)n;
    (void)context;
    outputs[0] = grd_sign(grd_detach(inputs[1]));
    outputs[1] = grd_mul(inputs[0], inputs[1]);
    return (grd_tensors){2, outputs};
}

static void test_gradcheck_ignores_constants(void **state)
{
    (void)state;
    grd_tensor *x = leaf(numbers, grd_dims(3), GRD_FLOAT64), *y = grd_from_data(numbers + 3, grd_dims(3), GRD_FLOAT64);
    assert_true(grd_gradcheck(with_constant, grd_tensors(y, x), NULL, NULL));
    assert_true(grd_gradcheck(with_constant, grd_tensors(x, y), NULL, NULL));
    assert_true(grd_gradgradcheck(with_constant, grd_tensors(x, y), NULL, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_gradcheck_accepts_correct_gradients),
        TEST(test_gradcheck_accepts_strided_inputs),
        TEST(test_gradcheck_accepts_complex_inputs),
        TEST(test_gradcheck_accepts_in_place_operators),
        TEST(test_gradcheck_refuses_wrong_gradients_and_invalid_inputs),
        TEST(test_gradcheck_uses_the_given_tolerances),
        TEST(test_gradcheck_refuses_float32_and_changing_outputs),
        TEST(test_gradcheck_ignores_constants),
    };
    return cmocka_run_group_tests(tests, warm_up, NULL);
}
