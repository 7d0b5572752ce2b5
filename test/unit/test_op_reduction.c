/* Tests reductions, scans and softmax: shapes, values compared with simple loops for several layouts, special values, gradients and error texts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the headers above but does not include them. */
#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gradus/gradus.h"

static void expect_error(grd_error_code code, const char *text)
{
    assert_string_equal(grd_error_message(), text);
    assert_int_equal(grd_error_get(), code);
    grd_error_clear();
}

static int open_scope(void **state)
{
    static grd_scope scope;
    scope = grd_scope_open();
    *state = &scope;
    return 0;
}

static int close_scope(void **state)
{
    grd_scope_close(*(grd_scope *)*state);
    return 0;
}

static void expect_values(grd_tensor *t, const double *values, int64_t n)
{
    double got[64];
    if (!grd_ok())
        fail_msg("%s", grd_error_message());
    assert_int_equal(grd_numel(t), n);
    grd_to_memory(t, got, GRD_FLOAT64);
    for (int64_t i = 0; i < n; i++)
        if (!(fabs(got[i] - values[i]) <= fmin(1e-6 * fmax(1, fabs(values[i])), DBL_MAX) || got[i] == values[i] ||
              (isnan(got[i]) && isnan(values[i]))))
            fail_msg("element %d is %g, not %g", (int)i, got[i], values[i]);
}

#define EXPECT(t, ...) expect_values(t, (const double[]){__VA_ARGS__}, sizeof((const double[]){__VA_ARGS__}) / sizeof(double))

static grd_tensor *floats(grd_dims sizes, const float *values)
{
    return grd_from_data(values, sizes, GRD_FLOAT32);
}

static void test_reductions_and_scans_along_given_dimensions(void **state)
{
    (void)state;
    grd_tensor *x = floats(grd_dims(2, 3), (const float[]){1, 2, 3, 4, 5, 6});
    EXPECT(grd_sum(x), 21);
    EXPECT(grd_sum(x, .dim = grd_dims(0)), 5, 7, 9);
    EXPECT(grd_sum(x, .dim = grd_dims(-1), .keepdim = true), 6, 15);
    assert_int_equal(grd_ndim(grd_sum(x, .dim = grd_dims(-1), .keepdim = true)), 2);
    assert_int_equal(grd_ndim(grd_sum(x)), 0);
    EXPECT(grd_mean(x, .dim = grd_dims(1)), 2, 5);
    EXPECT(grd_prod(x, .dim = grd_int(0)), 4, 10, 18);
    EXPECT(grd_amax(grd_transpose(x, 0, 1), .dim = grd_dims(1)), 4, 5, 6);
    EXPECT(grd_var(x, .dim = grd_dims(1)), 1, 1);
    EXPECT(grd_std(x, .dim = grd_dims(0), .correction = grd_int(0)), 1.5, 1.5, 1.5);
    EXPECT(grd_norm(x, .p = grd_int(1)), 21);
    EXPECT(grd_norm(x, .dim = grd_dims(0)), sqrt(17), sqrt(29), sqrt(45));
    EXPECT(grd_norm(x, .p = grd_float(-INFINITY)), 1);
    EXPECT(grd_norm(x, .p = grd_int(3), .dim = grd_dims(1)), cbrt(36), cbrt(405));
    EXPECT(grd_cumsum(x, 1), 1, 3, 6, 4, 9, 15);
    EXPECT(grd_cumprod(x, 0), 1, 2, 3, 4, 10, 18);
    EXPECT(grd_argmax(x), 5);
    EXPECT(grd_argmin(x, .dim = grd_int(1)), 0, 0);
    EXPECT(grd_any(x, .dim = GRD_NO_DIMS), 1, 1, 1, 1, 1, 1);
}

static void test_reductions_choose_the_result_dtype(void **state)
{
    (void)state;
    grd_tensor *bytes = grd_from_data((const uint8_t[]){200, 100, 0}, grd_dims(3), GRD_UINT8);
    EXPECT(grd_sum(bytes), 300);
    assert_int_equal(grd_tensor_dtype(grd_sum(bytes)), GRD_INT64);
    assert_int_equal(grd_tensor_dtype(grd_any(bytes)), GRD_UINT8);
    assert_int_equal(grd_tensor_dtype(grd_all(grd_from_data((const int[]){1}, grd_dims(1), GRD_INT32))), GRD_BOOL);
    EXPECT(grd_all(bytes), 0);
    EXPECT(grd_count_nonzero(bytes), 2);
    EXPECT(grd_max(grd_from_data((const uint64_t[]){1, 1ull << 63}, grd_dims(2), GRD_UINT64)), 0x1p63);
    EXPECT(grd_min(grd_from_data((const int8_t[]){5, -7}, grd_dims(2), GRD_INT8)), -7);
    grd_tensor *half = grd_to(grd_full(grd_dims(5000), grd_int(1)), .dtype = GRD_FLOAT16);
    EXPECT(grd_sum(half), 5000);
    EXPECT(grd_sum(bytes, .dtype = GRD_FLOAT32), 300);
    grd_tensor *complex = grd_from_data((const float[]){3, 4, 0, 1}, grd_dims(2), GRD_COMPLEX64);
    EXPECT(grd_norm(complex), sqrt(26));
    EXPECT(grd_norm(complex, .p = grd_int(1)), 6);
    EXPECT(grd_var(complex), 9);
}

static void test_reductions_of_nan_infinity_and_empty_tensors(void **state)
{
    (void)state;
    grd_tensor *x = floats(grd_dims(4), (const float[]){1, NAN, 3, NAN}), *empty = grd_zeros(grd_dims(0));
    EXPECT(grd_max(x), NAN);
    EXPECT(grd_argmax(x), 1);
    EXPECT(grd_argmin(x), 1);
    EXPECT(grd_nansum(x), 4);
    grd_max_dim_result max = grd_max_dim(floats(grd_dims(2, 3), (const float[]){1, 3, 3, 2, 2, 0}), 1);
    EXPECT(max.values, 3, 2);
    EXPECT(max.indices, 1, 0);
    EXPECT(grd_sum(empty), 0);
    EXPECT(grd_prod(empty), 1);
    EXPECT(grd_mean(empty), NAN);
    EXPECT(grd_logsumexp(empty), -INFINITY);
    EXPECT(grd_var(floats(grd_dims(1), (const float[]){3})), NAN);
    EXPECT(grd_logsumexp(floats(grd_dims(2), (const float[]){1000, 1000})), 1000 + log(2));
    EXPECT(grd_logsumexp(floats(grd_dims(2), (const float[]){-INFINITY, -INFINITY})), -INFINITY);
    EXPECT(grd_logsumexp(floats(grd_dims(2), (const float[]){INFINITY, 1})), INFINITY);
    EXPECT(grd_softmax(floats(grd_dims(2), (const float[]){1000, 1000}), 0), 0.5, 0.5);
    EXPECT(grd_log_softmax(floats(grd_dims(2), (const float[]){-1000, 0}), 0), -1000, 0);
}

/* The variance of equal elements is exactly 0, even if their sum is rounded. */
static void test_the_variance_of_equal_elements_is_exactly_zero(void **state)
{
    (void)state;
    static const grd_dtype dtypes[] = {GRD_FLOAT16, GRD_FLOAT32, GRD_FLOAT64, GRD_COMPLEX32, GRD_COMPLEX64};
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        for (int64_t n = 2; n < 3000; n += n / 3 + 1) {
            grd_tensor *x = grd_full(grd_dims(n, 3), grd_float(0.1), .dtype = dtypes[i]);
            EXPECT(grd_var(x), 0);
            EXPECT(grd_std(x, .dim = grd_dims(0)), 0, 0, 0);
            EXPECT(grd_std(grd_transpose(x, 0, 1), .dim = grd_dims(1)), 0, 0, 0);
            grd_var_mean_result both = grd_var_mean(x, .dim = grd_dims(0));
            double zero[3];
            grd_to_memory(both.variance, zero, GRD_FLOAT64);
            for (int j = 0; j < 3; j++)
                assert_true(zero[j] == 0);
            assert_true(grd_equal(both.average, grd_select(x, 0, 0)));
        }
    }
    EXPECT(grd_var(floats(grd_dims(3), (const float[]){1, NAN, 1})), NAN);
}

/* Reduces rows of every length up to 140 and of some lengths up to 2100, and compares the results with simple loops. */
static void test_reductions_of_rows_of_many_lengths_equal_loops(void **state)
{
    (void)state;
    enum { MOST = 2100 };
    static float data[3 * MOST];
    static double got[3 * MOST];
    for (int i = 0; i < 3 * MOST; i++)
        data[i] = (float)(i * 7919 % 1013) / 64 - 9;
    for (int64_t n = 1; n < MOST; n += n < 140 ? 1 : 37) {
        grd_scope scope = grd_scope_open();
        grd_tensor *x = grd_from_data(data, grd_dims(3, n), GRD_FLOAT32);
        grd_tensor *sums = grd_sum(x, .dim = grd_dims(1)), *highest = grd_amax(x, .dim = grd_dims(1));
        grd_tensor *running = grd_cumsum(x, 1), *soft = grd_softmax(x, 1), *log_soft = grd_log_softmax(x, 1);
        for (int64_t i = 0; i < 3; i++) {
            const float *line = data + i * n;
            double sum = 0, max = -INFINITY, exps = 0;
            for (int64_t k = 0; k < n; k++)
                max = fmax(max, line[k]);
            for (int64_t k = 0; k < n; k++)
                exps += exp(line[k] - max);
            grd_to_memory(running, got, GRD_FLOAT64);
            for (int64_t k = 0; k < n; k++)
                assert_true(got[i * n + k] == (double)(float)(sum += line[k]));
            grd_to_memory(sums, got, GRD_FLOAT64);
            assert_true(got[i] == (double)(float)sum);
            grd_to_memory(highest, got, GRD_FLOAT64);
            assert_true(got[i] == max);
            grd_to_memory(soft, got, GRD_FLOAT64);
            for (int64_t k = 0; k < n; k++)
                assert_true(fabs(got[i * n + k] - exp(line[k] - max) / exps) <= 5e-7 * got[i * n + k]);
            grd_to_memory(log_soft, got, GRD_FLOAT64);
            for (int64_t k = 0; k < n; k++)
                assert_true(fabs(got[i * n + k] - (line[k] - max - log(exps))) <= 3e-6);
        }
        assert_true(grd_ok());
        grd_scope_close(scope);
    }
}

static void test_logsumexp_of_complex_tensors(void **state)
{
    (void)state;
    const float parts[] = {1000, 1, 1000, 1, -INFINITY, 0};
    grd_tensor *x = grd_from_data(parts, grd_dims(3), GRD_COMPLEX64);
    EXPECT(grd_real(grd_logsumexp(x)), 1000 + log(2));
    EXPECT(grd_imag(grd_logsumexp(x)), 1);
    EXPECT(grd_real(grd_logsumexp(grd_zeros(grd_dims(2, 0), .dtype = GRD_COMPLEX64), .dim = grd_dims(1))), -INFINITY, -INFINITY);
}

/* Compares sums with simple loops for every combination of shape, layout, reduced dimensions and number of threads. */
static void test_sums_over_all_layouts_and_dimensions_equal_loops(void **state)
{
    (void)state;
    static const int64_t shapes[][3] = {{1, 1, 300000}, {100000, 1, 3}, {3, 1, 100000}, {300, 40, 5},
                                        {7, 300, 20},   {1000, 300, 1}, {2, 70, 65}};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        const int64_t *size = shapes[s], n = size[0] * size[1] * size[2];
        float *data = malloc((size_t)n * sizeof *data);
        double *sums = malloc((size_t)n * sizeof *sums), *got = malloc((size_t)n * sizeof *got), *again = malloc((size_t)n * sizeof *again);
        for (int64_t i = 0; i < n; i++)
            data[i] = (float)(i * 7919 % 1013) / 16 - 20;
        for (int mask = 1; mask < 8; mask++) {
            for (int order = 0; order < 2; order++) {
                grd_scope scope = grd_scope_open();
                int64_t dims[3], count = 0, results = 1, stride[3] = {0}, step = 1;
                /* With order 1 the dimensions are stored in reverse order, so the strides increase. */
                const int64_t in[2][3] = {{size[1] * size[2], size[2], 1}, {1, size[0], size[0] * size[1]}};
                for (int d = 2; d >= 0; d--) {
                    if (mask >> d & 1) {
                        dims[count++] = d;
                        continue;
                    }
                    results *= size[d];
                    stride[d] = step;
                    step *= size[d];
                }
                memset(sums, 0, (size_t)n * sizeof *sums);
                for (int64_t i = 0; i < size[0]; i++)
                    for (int64_t j = 0; j < size[1]; j++)
                        for (int64_t k = 0; k < size[2]; k++)
                            sums[i * stride[0] + j * stride[1] + k * stride[2]] +=
                                data[i * in[order][0] + j * in[order][1] + k * in[order][2]];
                grd_tensor *x = grd_from_memory(data, (grd_dims){3, size}, (grd_dims){3, in[order]}, 0, GRD_FLOAT32, NULL, NULL);
                for (int threads = 1; threads <= 3; threads++) {
                    grd_set_num_threads(threads);
                    grd_to_memory(grd_sum(x, .dim = (grd_dims){count, dims}), threads == 1 ? got : again, GRD_FLOAT64);
                    assert_true(grd_ok());
                    if (threads > 1)
                        assert_memory_equal(got, again, (size_t)results * sizeof *got);
                }
                for (int64_t i = 0; i < results; i++)
                    assert_true(fabs(got[i] - sums[i]) <= 1e-7 * fabs(sums[i]) + 1e-9);
                grd_scope_close(scope);
            }
        }
        free(data);
        free(sums);
        free(got);
        free(again);
    }
}

static grd_tensor *gradient(grd_tensor *y, grd_tensor *x)
{
    grd_tensor *result = grd_failed;
    grd_grad(grd_tensors(grd_sum(y)), grd_tensors(x), NULL, &result);
    return result;
}

static void test_gradients_of_reductions_with_zeros_and_ties(void **state)
{
    (void)state;
    grd_tensor *x = grd_set_requires_grad(floats(grd_dims(3), (const float[]){2, 0, 5}), true);
    EXPECT(gradient(grd_prod(x), x), 0, 10, 0);
    EXPECT(gradient(grd_cumprod(x, 0), x), 1, 12, 0);
    EXPECT(gradient(grd_cumsum(x, 0), x), 3, 2, 1);
    grd_tensor *ties = grd_set_requires_grad(floats(grd_dims(3), (const float[]){1, 3, 3}), true);
    EXPECT(gradient(grd_max(ties), ties), 0, 0.5, 0.5);
    EXPECT(gradient(grd_max_dim(ties, 0).values, ties), 0, 1, 0);
    grd_tensor *zero = grd_set_requires_grad(floats(grd_dims(2), (const float[]){0, 0}), true);
    EXPECT(gradient(grd_norm(zero), zero), 0, 0);
    EXPECT(gradient(grd_norm(zero, .p = grd_float(0.5)), zero), 0, 0);
}

static void test_reductions_refuse_invalid_arguments(void **state)
{
    (void)state;
    grd_tensor *x = grd_ones(grd_dims(2, 3)), *none = grd_zeros(grd_dims(2, 0)), *whole = grd_ones(grd_dims(2), .dtype = GRD_INT64);
    grd_mean(whole);
    expect_error(GRD_ERROR_RUNTIME,
                 "mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. Got: Long");
    grd_max(none);
    expect_error(GRD_ERROR_RUNTIME, "max(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with "
                                    "the 'dim' argument.");
    grd_amax(none, .dim = grd_dims(1));
    expect_error(GRD_ERROR_INDEX, "amax(): Expected reduction dim 1 to have non-zero size.");
    grd_argmax(none);
    expect_error(GRD_ERROR_INDEX, "argmax(): Expected reduction dim to be specified for input.numel() == 0.");
    grd_sum(x, .dim = grd_dims(0, 0));
    expect_error(GRD_ERROR_RUNTIME, "sum: dim 0 appears multiple times in the list of dims");
    grd_sum(x, .dim = grd_dims(2));
    expect_error(GRD_ERROR_INDEX, "sum: Dimension out of range (expected to be in range of [-2, 1], but got 2)");
    grd_var(whole);
    expect_error(GRD_ERROR_RUNTIME, "var: std and var only support floating point and complex dtypes");
    grd_argmax(grd_ones(grd_dims(2), .dtype = GRD_BOOL));
    expect_error(GRD_ERROR_RUNTIME, "argmax(): does not support bool input");
    grd_norm(none, .p = grd_float(INFINITY));
    expect_error(GRD_ERROR_RUNTIME,
                 "norm: linalg.vector_norm cannot compute the inf norm on an empty tensor because the operation does not have an identity");
    grd_softmax(x, 2);
    expect_error(GRD_ERROR_INDEX, "softmax: Dimension out of range (expected to be in range of [-2, 1], but got 2)");
}

/* Reducing up to 8 rows takes a shorter code path than reducing many rows. Both paths must give the same bits. */
static void test_reductions_of_few_rows_equal_those_of_many(void **state)
{
    (void)state;
    enum { ROWS = 9, WIDTH = 77 };
    const grd_dtype dtypes[] = {GRD_BOOL,    GRD_UINT8,   GRD_INT64,     GRD_UINT64,    GRD_FLOAT16,
                                GRD_FLOAT32, GRD_FLOAT64, GRD_COMPLEX32, GRD_COMPLEX128};
    grd_manual_seed(7);
    grd_tensor *values =
        grd_sub(grd_mul(grd_rand(grd_dims(ROWS, WIDTH), .dtype = GRD_FLOAT64), grd_number(grd_float(3))), grd_number(grd_float(1)));
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) {
        for (int n = 1; n <= WIDTH; n = n < 9 ? n + 1 : n + 17) {
            grd_tensor *x = grd_contiguous(grd_narrow(grd_to(grd_abs(values), .dtype = dtypes[d]), 1, 0, n));
            for (int rows = 1; rows <= 8; rows += 7) {
                grd_tensor *few = grd_contiguous(grd_narrow(x, 0, 0, rows)), *one = grd_select(few, 0, 0);
                assert_true(grd_equal(grd_sum(few, .dim = grd_dims(1)), grd_narrow(grd_sum(x, .dim = grd_dims(1)), 0, 0, rows)));
                assert_true(grd_equal(grd_prod(few, .dim = grd_int(1)), grd_narrow(grd_prod(x, .dim = grd_int(1)), 0, 0, rows)));
                assert_true(grd_equal(grd_any(few, .dim = grd_dims(1)), grd_narrow(grd_any(x, .dim = grd_dims(1)), 0, 0, rows)));
                assert_true(grd_equal(grd_all(few, .dim = grd_dims(1)), grd_narrow(grd_all(x, .dim = grd_dims(1)), 0, 0, rows)));
                assert_true(grd_equal(grd_sum(one), grd_select(grd_sum(x, .dim = grd_dims(1)), 0, 0)));
                if (grd_dtype_is_complex(dtypes[d]) || dtypes[d] == GRD_BOOL)
                    continue;
                assert_true(grd_equal(grd_amax(few, .dim = grd_dims(1)), grd_narrow(grd_amax(x, .dim = grd_dims(1)), 0, 0, rows)));
                assert_true(grd_equal(grd_amin(few, .dim = grd_dims(1)), grd_narrow(grd_amin(x, .dim = grd_dims(1)), 0, 0, rows)));
                assert_true(grd_equal(grd_min(one), grd_select(grd_amin(x, .dim = grd_dims(1)), 0, 0)));
            }
        }
    }
    EXPECT(grd_sum(grd_zeros(grd_dims(2, 0)), .dim = grd_dims(1)), 0, 0);
    assert_int_equal(grd_numel(grd_sum(grd_zeros(grd_dims(0, 3)), .dim = grd_dims(1))), 0);
    assert_true(grd_ok());
}

/* Reduces rows and columns filled with the smallest value of an integer dtype. In one row or column, element k is the largest value instead.
 * Then does the same with smallest and largest exchanged. */
static void test_reductions_of_extreme_integers(void **state)
{
    (void)state;
    static const struct {
        grd_dtype dtype;
        int64_t low, high;
    } rows[] = {{GRD_UINT8, 0, UINT8_MAX},         {GRD_INT8, INT8_MIN, INT8_MAX},
                {GRD_INT16, INT16_MIN, INT16_MAX}, {GRD_INT32, INT32_MIN, INT32_MAX},
                {GRD_UINT16, 0, UINT16_MAX},       {GRD_UINT32, 0, UINT32_MAX},
                {GRD_UINT64, 0, INT64_MAX - 1023}, {GRD_INT64, INT64_MIN, INT64_MAX - 1023}};
    static const int64_t lengths[] = {1, 9, 17, 300, 9000};
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
            for (int columns = 0; columns < 2; columns++) {
                const int64_t n = lengths[l], k = 2 * n / 3, dim = columns ? 0 : 1;
                const double low = (double)rows[r].low, high = (double)rows[r].high;
                grd_tensor *x = grd_full(columns ? grd_dims(n, 3) : grd_dims(3, n), grd_int(rows[r].low), .dtype = rows[r].dtype);
                EXPECT(grd_amax(x, .dim = grd_dims(dim)), low, low, low);
                EXPECT(grd_any(x), low != 0);
                grd_fill_(grd_select(grd_select(x, 1 - dim, 1), 0, k), grd_int(rows[r].high));
                EXPECT(grd_amax(x, .dim = grd_dims(dim)), low, high, low);
                EXPECT(grd_argmax(grd_select(x, 1 - dim, 1)), (double)k);
                EXPECT(grd_any(x, .dim = grd_dims(dim)), low != 0, 1, low != 0);
                grd_fill_(x, grd_int(rows[r].high));
                EXPECT(grd_amin(x), high);
                EXPECT(grd_all(x), 1);
                grd_fill_(grd_select(grd_select(x, 1 - dim, 2), 0, k), grd_int(rows[r].low));
                EXPECT(grd_amin(x, .dim = grd_dims(dim)), high, high, low);
                EXPECT(grd_argmin(grd_select(x, 1 - dim, 2)), (double)k);
                EXPECT(grd_all(x, .dim = grd_dims(dim)), 1, 1, low != 0);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_reductions_and_scans_along_given_dimensions, open_scope, close_scope),
        cmocka_unit_test_setup_teardown(test_reductions_choose_the_result_dtype, open_scope, close_scope),
        cmocka_unit_test_setup_teardown(test_reductions_of_nan_infinity_and_empty_tensors, open_scope, close_scope),
        cmocka_unit_test_setup_teardown(test_the_variance_of_equal_elements_is_exactly_zero, open_scope, close_scope),
        cmocka_unit_test_setup_teardown(test_reductions_of_rows_of_many_lengths_equal_loops, open_scope, close_scope),
        cmocka_unit_test_setup_teardown(test_logsumexp_of_complex_tensors, open_scope, close_scope),
        cmocka_unit_test_setup_teardown(test_sums_over_all_layouts_and_dimensions_equal_loops, open_scope, close_scope),
        cmocka_unit_test_setup_teardown(test_gradients_of_reductions_with_zeros_and_ties, open_scope, close_scope),
        cmocka_unit_test_setup_teardown(test_reductions_refuse_invalid_arguments, open_scope, close_scope),
        cmocka_unit_test_setup_teardown(test_reductions_of_few_rows_equal_those_of_many, open_scope, close_scope),
        cmocka_unit_test_setup_teardown(test_reductions_of_extreme_integers, open_scope, close_scope),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
