/* Compares matrix products, computed by the built-in kernels and by OpenBLAS, with three nested loops for all dtypes, many kinds of strides and
 * several numbers of threads. */
#include <complex.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/table.h"
#include "op/blas.h"
#include "support.h"

/* ---- Tools ------------------------------------------------------------------------------------------------------------------- */

/* Number of memory layouts that the function `matrix` can make: 0 contiguous, 1 transposed, 2 every second row and column of a larger matrix,
 * 3 one row repeated with stride 0, 4 both strides negative. */
enum { LAYOUTS = 5 };

/* Returns a matrix of small integers, which are exact in every dtype, with an imaginary part if the dtype is complex. */
static grd_tensor *matrix(int64_t rows, int64_t columns, grd_dtype dtype, int layout)
{
    int64_t stored[2] = {layout == 2 ? 2 * rows : layout == 3 && rows > 0 ? 1 : rows, layout == 2 ? 2 * columns : columns};
    grd_dims sizes = layout == 1 ? grd_dims(columns, rows) : grd_dims(stored[0], stored[1]);
    bool is_unsigned = dtype == GRD_UINT8 || dtype == GRD_UINT16 || dtype == GRD_UINT32 || dtype == GRD_UINT64;
    grd_tensor *t = grd_to(grd_randint(is_unsigned ? 0 : -3, 4, sizes), .dtype = dtype);
    if (grd_dtype_is_complex(dtype))
        t = grd_add(t, grd_mul_scalar(grd_to(grd_randint(-3, 4, sizes), .dtype = dtype), grd_complex_number(0, 1)));
    if (layout == 1)
        return grd_t(t);
    if (layout == 2)
        return grd_slice(grd_slice(t, .dim = 0, .step = 2), .dim = 1, .step = 2);
    if (layout == 4)
        return grd_slice(grd_slice(t, .dim = 0, .step = -1), .dim = 1, .step = -1);
    return layout == 3 ? grd_expand(t, grd_dims(rows, columns)) : t;
}

static double complex *values(grd_tensor *t)
{
    double complex *v = malloc((size_t)(grd_numel(t) + 1) * sizeof *v);
    grd_to_memory(t, v, GRD_COMPLEX128);
    return v;
}

/* Returns x converted to the dtype. In these tests only 8-bit integers overflow, and these wrap around. */
static double complex wrapped(double complex x, grd_dtype dtype)
{
    if (!grd_dtype_is_integer(dtype))
        return x;
    int64_t i = (int64_t)creal(x);
    return dtype == GRD_UINT8 ? (uint8_t)i : dtype == GRD_INT8 ? (int8_t)i : (double)i;
}

/* Checks every element of `result` against alpha * a @ b + beta * self, computed with loops. `self` may be NULL. */
static void expect_product(grd_tensor *result, grd_tensor *a, grd_tensor *b, double alpha, grd_tensor *self, double beta)
{
    assert_string_equal(grd_error_message(), "");
    int64_t m = grd_size(a, 0), k = grd_size(a, 1), n = grd_size(b, 1);
    grd_dtype dtype = grd_tensor_dtype(a);
    assert_int_equal(grd_size(result, 0), m);
    assert_int_equal(grd_size(result, 1), n);
    double complex *x = values(a), *y = values(b), *z = values(result), *s = self == NULL ? NULL : values(self);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            double complex sum = 0;
            for (int64_t p = 0; p < k; p++)
                sum += x[i * k + p] * y[p * n + j];
            sum = alpha * sum + (s == NULL ? 0 : beta * s[i * n + j]);
            double complex want = wrapped(sum, dtype);
            double error = grd_dtype_to_real(dtype) == GRD_FLOAT16 ? 1e-3 : dtype == GRD_BFLOAT16 ? 8e-3 : 0;
            assert_true(cabs(z[i * n + j] - want) <= error * cabs(want));
        }
    free(x), free(y), free(z), free(s);
}

static const grd_dtype dtypes[] = {GRD_UINT8,   GRD_INT8,    GRD_UINT16,    GRD_INT16,     GRD_UINT32,
                                   GRD_INT32,   GRD_UINT64,  GRD_INT64,     GRD_FLOAT16,   GRD_BFLOAT16,
                                   GRD_FLOAT32, GRD_FLOAT64, GRD_COMPLEX32, GRD_COMPLEX64, GRD_COMPLEX128};
static const int64_t shapes[][3] = {{1, 1, 1},     {2, 3, 4},    {0, 3, 2},     {3, 0, 2},   {2, 3, 0},
                                    {5, 49, 7},    {17, 33, 65}, {3, 100, 230}, {1, 70, 90}, {70, 1, 90},
                                    {200, 20, 30}, {4, 40, 37},  {90, 3, 37},   {1, 300, 5}, {64, 64, 64}};

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

/* ---- Tests --------------------------------------------------------------------------------------------------------------------- */

static void test_mm_equals_loops_for_all_dtypes_and_layouts(void **state)
{
    (void)state;
    for (int d = 0; d < COUNT(dtypes); d++)
        for (int s = 0; s < COUNT(shapes); s++)
            for (int layout = 0; layout < LAYOUTS * LAYOUTS; layout++) {
                grd_scope scope = grd_scope_open();
                grd_tensor *a = matrix(shapes[s][0], shapes[s][2], dtypes[d], layout / LAYOUTS);
                grd_tensor *b = matrix(shapes[s][2], shapes[s][1], dtypes[d], layout % LAYOUTS);
                expect_product(grd_mm(a, b), a, b, 1, NULL, 0);
                grd_scope_close(scope);
            }
}

static void test_addmm_scales_and_adds(void **state)
{
    (void)state;
    for (int d = 0; d < COUNT(dtypes); d++) {
        grd_tensor *a = matrix(5, 7, dtypes[d], 0), *b = matrix(7, 20, dtypes[d], 1), *self = matrix(5, 20, dtypes[d], 2);
        expect_product(grd_addmm(self, a, b, .beta = grd_int(2), .alpha = grd_int(3)), a, b, 3, self, 2);
        grd_tensor *before = grd_clone(self);
        grd_addmm_(self, a, b, .beta = grd_int(2), .alpha = grd_int(3));
        expect_product(self, a, b, 3, before, 2);
        grd_tensor *row = matrix(5, 20, dtypes[d], 3);
        expect_product(grd_addmm(row, a, b), a, b, 1, row, 1);
    }
    grd_tensor *nan = grd_full(grd_dims(2, 2), grd_float(NAN)), *a = matrix(2, 2, GRD_FLOAT32, 0);
    expect_product(grd_addmm(nan, a, a, .beta = grd_int(0)), a, a, 1, NULL, 0);
}

/* The kernels compute the result in tiles of several rows and columns. The sizes give every possible number of leftover rows and columns at every
 * instruction-set level. addmm adds a row, a column or a matrix, and results are also written in place and to out=. */
static void test_small_products_for_every_remainder_of_tiles(void **state)
{
    (void)state;
    static const grd_dtype small[] = {GRD_FLOAT32, GRD_FLOAT64};
    static const int64_t widths[] = {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 47, 48, 49, 63, 64, 65, 80, 100, 127};
    for (int d = 0; d < COUNT(small); d++)
        for (int64_t m = 1; m <= 19; m++)
            for (int w = 0; w < COUNT(widths); w++)
                for (int layout = 0; layout < 4; layout++) {
                    grd_scope scope = grd_scope_open();
                    const int64_t n = widths[w], k = 1 + (m + w) % 11;
                    grd_tensor *a = matrix(m, k, small[d], layout / 2), *b = matrix(k, n, small[d], layout % 2);
                    expect_product(grd_mm(a, b), a, b, 1, NULL, 0);
                    grd_tensor *all = matrix(m, n, small[d], 0), *row = grd_select(all, 0, 0),
                               *column = grd_slice(all, .dim = 1, .start = grd_int(0), .end = grd_int(1));
                    expect_product(grd_addmm(all, a, b), a, b, 1, all, 1);
                    expect_product(grd_addmm(row, a, b), a, b, 1, grd_contiguous(grd_expand(row, grd_dims(m, n))), 1);
                    expect_product(grd_addmm(column, a, b), a, b, 1, grd_contiguous(grd_expand(column, grd_dims(m, n))), 1);
                    grd_tensor *before = grd_clone(all), *out = grd_empty(grd_dims(m, n), .dtype = small[d]);
                    grd_tensor *own = grd_clone(all);
                    grd_addmm_(own, a, b);
                    expect_product(own, a, b, 1, before, 1);
                    grd_mm_out(out, a, b);
                    expect_product(out, a, b, 1, NULL, 0);
                    grd_scope_close(scope);
                }
}

static void test_out_may_alias_an_input_of_mm(void **state)
{
    (void)state;
    grd_tensor *a = matrix(6, 6, GRD_FLOAT64, 0), *before = grd_clone(a);
    grd_mm_out(a, a, a);
    expect_product(a, before, before, 1, NULL, 0);
    before = grd_clone(a);
    grd_addmm_(a, a, a);
    expect_product(a, before, before, 1, before, 1);
}

/* A product that OpenBLAS computes must equal one computed with loops. OpenBLAS is used only if both operands are contiguous or transposed. */
static void test_openblas_computes_contiguous_and_transposed_operands(void **state)
{
    (void)state;
    static const grd_dtype served[] = {GRD_FLOAT32, GRD_FLOAT64, GRD_COMPLEX64, GRD_COMPLEX128};
    for (int d = 0; d < COUNT(served); d++)
        for (int layout = 0; layout < 16; layout++) {
            grd_tensor *a = matrix(33, 20, served[d], layout / 4), *b = matrix(20, 41, served[d], layout % 4);
            grd_tensor *c = grd_zeros(grd_dims(33, 41), .dtype = served[d]);
            struct grd_gemm g = {.m = 33,
                                 .n = 41,
                                 .k = 20,
                                 .a = grd_data(a),
                                 .b = grd_data(b),
                                 .c = grd_data(c),
                                 .a_row = grd_stride(a, 0),
                                 .a_col = grd_stride(a, 1),
                                 .b_row = grd_stride(b, 0),
                                 .b_col = grd_stride(b, 1),
                                 .c_row = 41,
                                 .c_col = 1,
                                 .alpha = grd_int(1),
                                 .beta = grd_int(0)};
            bool direct = layout / 4 < 2 && layout % 4 < 2 && strncmp(grd_blas(), "openblas", 8) == 0;
            assert_int_equal(grd_blas_gemm(served[d], &g), direct);
            if (direct)
                expect_product(c, a, b, 1, NULL, 0);
        }
}

/* Checks the product of an m x k and a k x n matrix in every layout. The matrices are so large that the product is computed in blocks along m, n
 * and k. The last block along each of these dimensions is incomplete. */
static void expect_large(int64_t m, int64_t n, int64_t k)
{
    for (int d = 0; d < COUNT(dtypes); d++)
        for (int layout = 0; layout < LAYOUTS; layout++) {
            const grd_scope scope = grd_scope_open();
            grd_tensor *a = matrix(m, k, dtypes[d], layout), *b = matrix(k, n, dtypes[d], (layout + 1) % LAYOUTS);
            grd_tensor *self = matrix(m, n, dtypes[d], layout);
            expect_product(grd_mm(a, b), a, b, 1, NULL, 0);
            expect_product(grd_addmm(self, a, b, .beta = grd_int(2), .alpha = grd_int(3)), a, b, 3, self, 2);
            grd_scope_close(scope);
        }
    grd_tensor *nan = grd_full(grd_dims(m, n), grd_float(NAN)), *a = matrix(m, k, GRD_FLOAT32, 0), *b = matrix(k, n, GRD_FLOAT32, 0);
    expect_product(grd_addmm(nan, a, b, .beta = grd_int(0)), a, b, 1, NULL, 0);
}

/* For the first shape some kernels multiply the operands without packing them. For the second one, whose k is larger, all kernels pack them. */
static void test_large_products_are_computed_in_blocks(void **state)
{
    (void)state;
    expect_large(71, 115, 301);
    expect_large(45, 67, 601);
}

/* A NaN in row i of the first operand must appear only in row i of the product. An infinity in column j of the second operand must appear only in
 * column j. The padding of incomplete tiles must not spread them. */
static void test_nan_and_infinity_stay_in_their_row_or_column(void **state)
{
    (void)state;
    static const int64_t sizes[] = {1, 3, 5, 17, 50, 101};
    for (int s = 0; s < COUNT(sizes); s++) {
        const int64_t n = sizes[s];
        grd_tensor *a = grd_ones(grd_dims(n, n)), *b = grd_ones(grd_dims(n, n));
        grd_fill_(grd_select(grd_select(a, 0, n - 1), 0, n / 2), grd_float(NAN));
        grd_fill_(grd_select(grd_select(b, 0, n / 2), 0, n / 3), grd_float(INFINITY));
        const float *c = grd_data(grd_mm(a, b));
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < n; j++)
                assert_true(i == n - 1 ? isnan(c[i * n + j]) : j == n / 3 ? isinf(c[i * n + j]) : c[i * n + j] == (float)n);
    }
}

static grd_tensor *random_matrix(grd_dims sizes, grd_dtype dtype)
{
    return grd_dtype_is_integer(dtype) ? grd_randint(-99, 99, sizes, .dtype = dtype) : grd_to(grd_randn(sizes), .dtype = dtype);
}

/* Number of results of the function `products`. */
enum { OPERATORS = 11 };

/* Computes the result of every operator that multiplies matrices, for operands of the given shape. */
static void products(int64_t m, int64_t n, int64_t k, grd_dtype dtype, grd_tensor **ret_results)
{
    grd_manual_seed(1);
    grd_tensor *a = random_matrix(grd_dims(m, k), dtype), *b = random_matrix(grd_dims(k, n), dtype),
               *c = random_matrix(grd_dims(m, n), dtype);
    grd_tensor *weight = random_matrix(grd_dims(n, k), dtype), *bias = random_matrix(grd_dims(n), dtype);
    grd_tensor *x = random_matrix(grd_dims(k), dtype), *y = random_matrix(grd_dims(m), dtype);
    grd_tensor *as = grd_stack(grd_tensors(a, a, a)), *bs = grd_stack(grd_tensors(b, grd_neg(b), b));
    grd_tensor *long1 = random_matrix(grd_dims(70001), dtype), *long2 = random_matrix(grd_dims(70001), dtype);
    grd_tensor *const results[OPERATORS] = {grd_mm(a, b),
                                            grd_mm(grd_t(grd_contiguous(grd_t(a))), b),
                                            grd_addmm(c, a, b, .beta = grd_int(2), .alpha = grd_int(3)),
                                            grd_bmm(as, bs),
                                            grd_baddbmm(c, as, bs, .alpha = grd_int(2)),
                                            grd_mv(a, x),
                                            grd_addmv(y, a, x, .beta = grd_int(2)),
                                            grd_linear(a, weight, .bias = bias),
                                            grd_matmul(as, b),
                                            grd_matmul(grd_unsqueeze(a, 0), bs),
                                            grd_dot(long1, long2)};
    memcpy(ret_results, results, sizeof results);
}

static void test_products_have_equal_bits_for_any_number_of_threads(void **state)
{
    (void)state;
    static const int64_t sides[][3] = {{150, 200, 270}, {1000, 3, 257}, {1, 700, 900}, {97, 129, 33}, {16, 499, 64}, {70, 130, 600}};
    static const grd_dtype kinds[] = {GRD_FLOAT32, GRD_FLOAT64, GRD_COMPLEX64, GRD_INT64,
                                      GRD_INT8,    GRD_FLOAT16, GRD_BFLOAT16,  GRD_COMPLEX32};
    static const int counts[] = {2, 3, 8};
    const int threads = grd_num_threads();
    for (int s = 0; s < COUNT(sides); s++)
        for (int d = 0; d < COUNT(kinds); d++) {
            const grd_scope scope = grd_scope_open();
            grd_tensor *once[OPERATORS], *again[OPERATORS];
            grd_set_num_threads(1);
            products(sides[s][0], sides[s][1], sides[s][2], kinds[d], once);
            for (int t = 0; t < COUNT(counts); t++) {
                grd_set_num_threads(counts[t]);
                products(sides[s][0], sides[s][1], sides[s][2], kinds[d], again);
                assert_string_equal(grd_error_message(), "");
                for (int i = 0; i < OPERATORS; i++)
                    assert_memory_equal(grd_data(once[i]), grd_data(again[i]), grd_numel(once[i]) * grd_dtype_size(kinds[d]));
            }
            grd_scope_close(scope);
        }
    grd_set_num_threads(threads);
}

static void test_mv_addmv_and_dot_equal_loops(void **state)
{
    (void)state;
    for (int d = 0; d < COUNT(dtypes); d++) {
        grd_tensor *a = matrix(9, 70, dtypes[d], 1), *v = matrix(70, 1, dtypes[d], 2), *flat = grd_select(v, 1, 0);
        expect_product(grd_unsqueeze(grd_mv(a, flat), 1), a, v, 1, NULL, 0);
        grd_tensor *self = matrix(9, 1, dtypes[d], 0);
        grd_tensor *sum = grd_addmv(grd_select(self, 1, 0), a, flat, .beta = grd_int(3), .alpha = grd_int(2));
        expect_product(grd_unsqueeze(sum, 1), a, v, 2, self, 3);
        grd_tensor *row = grd_select(a, 0, 2), *dot = grd_dot(row, flat);
        expect_product(grd_reshape(dot, grd_dims(1, 1)), grd_unsqueeze(row, 0), v, 1, NULL, 0);
    }
    assert_true(grd_item_double(grd_dot(grd_zeros(grd_dims(0)), grd_zeros(grd_dims(0)))) == 0);
}

static void test_bmm_and_baddbmm_equal_loops(void **state)
{
    (void)state;
    for (int d = 0; d < COUNT(dtypes); d++) {
        grd_tensor *a = grd_stack(grd_tensors(matrix(4, 6, dtypes[d], 0), matrix(4, 6, dtypes[d], 0), matrix(4, 6, dtypes[d], 0)));
        grd_tensor *b = grd_stack(grd_tensors(matrix(5, 6, dtypes[d], 0), matrix(5, 6, dtypes[d], 0), matrix(5, 6, dtypes[d], 0)));
        b = grd_transpose(b, 1, 2);
        grd_tensor *product = grd_bmm(a, b), *self = matrix(4, 5, dtypes[d], 0);
        grd_tensor *sum = grd_baddbmm(self, a, b, .alpha = grd_int(2));
        for (int64_t i = 0; i < 3; i++) {
            expect_product(grd_select(product, 0, i), grd_select(a, 0, i), grd_select(b, 0, i), 1, NULL, 0);
            expect_product(grd_select(sum, 0, i), grd_select(a, 0, i), grd_select(b, 0, i), 2, self, 1);
        }
    }
}

static void expect_matmul(grd_dims a, grd_dims b, grd_dims want)
{
    grd_tensor *product = grd_matmul(grd_ones(a), grd_ones(b));
    assert_string_equal(grd_error_message(), "");
    assert_int_equal(grd_ndim(product), want.n);
    for (int64_t d = 0; d < want.n; d++)
        assert_int_equal(grd_size(product, d), want.data[d]);
    if (grd_numel(product) > 0)
        assert_true(grd_item_double(grd_amax(product)) == (double)a.data[a.n - 1]);
}

static void test_matmul_broadcasts_shapes(void **state)
{
    (void)state;
    expect_matmul(grd_dims(3), grd_dims(3), GRD_NO_DIMS);
    expect_matmul(grd_dims(3), grd_dims(3, 4), grd_dims(4));
    expect_matmul(grd_dims(2, 3), grd_dims(3), grd_dims(2));
    expect_matmul(grd_dims(2, 3), grd_dims(3, 4), grd_dims(2, 4));
    expect_matmul(grd_dims(2, 5, 3), grd_dims(3), grd_dims(2, 5));
    expect_matmul(grd_dims(2, 5, 3), grd_dims(3, 4), grd_dims(2, 5, 4));
    expect_matmul(grd_dims(3), grd_dims(2, 3, 4), grd_dims(2, 4));
    expect_matmul(grd_dims(5, 3), grd_dims(2, 3, 4), grd_dims(2, 5, 4));
    expect_matmul(grd_dims(2, 1, 2, 3), grd_dims(4, 3, 5), grd_dims(2, 4, 2, 5));
    expect_matmul(grd_dims(0, 2, 3), grd_dims(3, 2), grd_dims(0, 2, 2));
}

static void test_products_refuse_mismatched_shapes_and_dtypes(void **state)
{
    (void)state;
    grd_tensor *a = grd_ones(grd_dims(2, 3)), *b = grd_ones(grd_dims(4, 5)), *v = grd_ones(grd_dims(4));
    grd_mm(a, b);
    expect_error(GRD_ERROR_RUNTIME, "mm: mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)");
    grd_mm(a, v);
    expect_error(GRD_ERROR_RUNTIME, "mm: mat2 must be a matrix");
    grd_mm(a, grd_ones(grd_dims(3, 2), .dtype = GRD_FLOAT64));
    expect_error(GRD_ERROR_RUNTIME, "mm: expected m1 and m2 to have the same dtype, but got: float != double");
    grd_mv(a, v);
    expect_error(GRD_ERROR_RUNTIME, "mv: size mismatch, got input (2), mat (2x3), vec (4)");
    grd_dot(v, grd_ones(grd_dims(3)));
    expect_error(
        GRD_ERROR_RUNTIME,
        "dot: inconsistent tensor size, expected tensor [4] and src [3] to have the same number of elements, but got 4 and 3 elements "
        "respectively");
    grd_bmm(grd_ones(grd_dims(2, 3, 4)), grd_ones(grd_dims(3, 4, 5)));
    expect_error(GRD_ERROR_RUNTIME, "bmm: Expected size for first two dimensions of batch2 tensor to be: [2, 4] but got: [3, 4].");
    grd_addmm(grd_ones(grd_dims(3, 3)), a, grd_ones(grd_dims(3, 2)));
    expect_error(
        GRD_ERROR_RUNTIME,
        "addmm: The expanded size of the tensor (2) must match the existing size (3) at non-singleton dimension 1.  Target sizes: [2, 2].  "
        "Tensor sizes: [3, 3]");
    grd_matmul(grd_ones(GRD_NO_DIMS), a);
    expect_error(GRD_ERROR_RUNTIME, "matmul: both arguments to matmul need to be at least 1D, but they are 0D and 2D");
}

static void test_mm_infers_the_shape_on_meta_tensors(void **state)
{
    (void)state;
    grd_tensor *a = grd_empty(grd_dims(5, 3), .device = GRD_META), *b = grd_empty(grd_dims(3, 4), .device = GRD_META);
    grd_tensor *product = grd_mm(a, b);
    assert_int_equal(grd_size(product, 0), 5);
    assert_int_equal(grd_size(product, 1), 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_SCOPE(test_mm_equals_loops_for_all_dtypes_and_layouts),
        IN_SCOPE(test_addmm_scales_and_adds),
        IN_SCOPE(test_small_products_for_every_remainder_of_tiles),
        IN_SCOPE(test_out_may_alias_an_input_of_mm),
        IN_SCOPE(test_openblas_computes_contiguous_and_transposed_operands),
        IN_SCOPE(test_large_products_are_computed_in_blocks),
        IN_SCOPE(test_nan_and_infinity_stay_in_their_row_or_column),
        IN_SCOPE(test_products_have_equal_bits_for_any_number_of_threads),
        IN_SCOPE(test_mv_addmv_and_dot_equal_loops),
        IN_SCOPE(test_bmm_and_baddbmm_equal_loops),
        IN_SCOPE(test_matmul_broadcasts_shapes),
        IN_SCOPE(test_products_refuse_mismatched_shapes_and_dtypes),
        IN_SCOPE(test_mm_infers_the_shape_on_meta_tensors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
