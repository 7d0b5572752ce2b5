/* Tests factory functions: dtype inference, elements, the number of elements of ranges, and error texts. */
#include <math.h>

#include "support.h"

static void expect_values(grd_tensor *t, const double *values, int64_t n)
{
    double got[64];
    assert_true(grd_ok());
    assert_int_equal(grd_numel(t), n);
    grd_to_memory(t, got, GRD_FLOAT64);
    for (int64_t i = 0; i < n; i++)
        assert_true(got[i] == values[i]);
}

static void test_factory_functions_infer_the_dtype(void **state)
{
    (void)state;
    assert_int_equal(grd_tensor_dtype(grd_zeros(grd_dims(2))), GRD_FLOAT32);
    assert_int_equal(grd_tensor_dtype(grd_full(grd_dims(2), grd_bool(true))), GRD_BOOL);
    assert_int_equal(grd_tensor_dtype(grd_full(grd_dims(2), grd_int(1))), GRD_INT64);
    assert_int_equal(grd_tensor_dtype(grd_full(grd_dims(2), grd_float(1))), GRD_FLOAT32);
    assert_int_equal(grd_tensor_dtype(grd_full(grd_dims(2), grd_complex_number(1, 2))), GRD_COMPLEX64);
    assert_int_equal(grd_tensor_dtype(grd_arange(grd_int(3))), GRD_INT64);
    assert_int_equal(grd_tensor_dtype(grd_arange(grd_float(3))), GRD_FLOAT32);
    assert_int_equal(grd_tensor_dtype(grd_ones_like(grd_zeros(grd_dims(2), .dtype = GRD_INT16))), GRD_INT16);
    assert_true(grd_requires_grad(grd_ones(grd_dims(2), .requires_grad = true)));
    assert_true(grd_data(grd_zeros(grd_dims(1000, 1000), .device = GRD_META)) == NULL);
}

static void test_factory_functions_compute_the_elements(void **state)
{
    (void)state;
    expect_values(grd_full(GRD_NO_DIMS, grd_int(-1), .dtype = GRD_UINT8), (const double[]){255}, 1);
    expect_values(grd_eye(2, .m = grd_int(3)), (const double[]){1, 0, 0, 0, 1, 0}, 6);
    expect_values(grd_arange(grd_int(5), .end = grd_int(0), .step = grd_int(-2)), (const double[]){5, 3, 1}, 3);
    expect_values(grd_arange(grd_float(0), .end = grd_float(1), .step = grd_float(0.25)), (const double[]){0, 0.25, 0.5, 0.75}, 4);
    expect_values(grd_arange(grd_int(INT64_MAX), .end = grd_int(INT64_MIN), .step = grd_int(INT64_MIN)),
                  (const double[]){9223372036854775807.0, -1.0}, 2);
    expect_values(grd_linspace(grd_int(10), grd_int(0), 4, .dtype = GRD_INT64), (const double[]){10, 6, 3, 0}, 4);
    expect_values(grd_linspace(grd_int(3), grd_int(9), 1), (const double[]){3}, 1);
    expect_values(grd_logspace(grd_int(0), grd_int(2), 3), (const double[]){1, 10, 100}, 3);
    grd_tensor *x = grd_ones(grd_dims(2, 3));
    expect_values(grd_tril(x), (const double[]){1, 0, 0, 1, 1, 0}, 6);
    expect_values(grd_triu(x, .diagonal = 1), (const double[]){0, 1, 1, 0, 0, 1}, 6);
    expect_values(grd_triu_(grd_t(x), .diagonal = INT64_MIN), (const double[]){1, 1, 1, 1, 1, 1}, 6);
    grd_tril_(grd_t(x));
    expect_values(x, (const double[]){1, 1, 1, 0, 1, 1}, 6);
}

/* Tests a range that is long enough to be split among threads. */
static void test_a_long_arange_is_split_among_threads(void **state)
{
    (void)state;
    enum { N = 100003 };
    grd_tensor *x = grd_arange(grd_float(0.5), .end = grd_float(0.5 + N * 0.125), .step = grd_float(0.125), .dtype = GRD_FLOAT64);
    assert_int_equal(grd_numel(x), N);
    const double *values = grd_data(x);
    for (int i = 0; i < N; i++)
        assert_true(values[i] == 0.5 + 0.125 * i);
    grd_tensor *ones = grd_ones(grd_dims(3, N), .dtype = GRD_COMPLEX128);
    assert_true(grd_item_double(grd_to(grd_sum(ones), .dtype = GRD_FLOAT64)) == 3.0 * N);
}

static void test_factory_functions_refuse_invalid_arguments(void **state)
{
    (void)state;
    grd_zeros(grd_dims(2), .dtype = GRD_INT64, .requires_grad = true);
    expect_error(GRD_ERROR_RUNTIME, "zeros: Only Tensors of floating point and complex dtype can require gradients");
    grd_arange(grd_int(1), .end = grd_int(5), .step = grd_int(0));
    expect_error(GRD_ERROR_RUNTIME, "arange: step must be nonzero");
    grd_arange(grd_int(5), .end = grd_int(1));
    expect_error(GRD_ERROR_RUNTIME, "arange: upper bound and lower bound inconsistent with step sign");
    grd_arange(grd_float(INFINITY));
    expect_error(GRD_ERROR_RUNTIME, "arange: unsupported range: 0 -> inf");
    grd_arange(grd_float(1e300));
    expect_error(GRD_ERROR_RUNTIME, "arange: invalid size, possible overflow?");
    grd_linspace(grd_int(0), grd_int(1), -1);
    expect_error(GRD_ERROR_RUNTIME, "linspace: number of steps must be non-negative");
    grd_eye(-1);
    expect_error(GRD_ERROR_RUNTIME, "eye: n must be greater or equal to 0, got -1");
    grd_tril(grd_zeros(grd_dims(3)));
    expect_error(GRD_ERROR_RUNTIME, "tril: input tensor must have at least 2 dimensions");
    grd_empty_strided(grd_dims(2), grd_dims(1, 2));
    expect_error(GRD_ERROR_RUNTIME, "empty_strided: dimensionality of sizes (1) must match dimensionality of strides (2)");
    assert_true(grd_zeros(grd_dims(INT64_MAX, 3)) == grd_failed);
    assert_false(grd_ok());
    grd_error_clear();
    assert_true(grd_full(grd_dims(2), grd_int(300), .dtype = GRD_UINT8) == grd_failed);
    assert_false(grd_ok());
    grd_error_clear();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_SCOPE(test_factory_functions_infer_the_dtype),
        IN_SCOPE(test_factory_functions_compute_the_elements),
        IN_SCOPE(test_a_long_arange_is_split_among_threads),
        IN_SCOPE(test_factory_functions_refuse_invalid_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
