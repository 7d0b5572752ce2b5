/* Compares indexing with loops over elements. Also tests duplicate indices, several threads and error texts. A call with an index out of range must
 * not change anything. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

static grd_tensor *random_index(grd_dims sizes, int64_t high)
{
    grd_tensor *t = grd_zeros(sizes, .dtype = GRD_INT64);
    int64_t *data = grd_data(t);
    for (int64_t i = 0; i < grd_numel(t); i++)
        data[i] = rand() % high;
    return t;
}

static void test_gather_and_scatter_equal_loops(void **state)
{
    (void)state;
    enum { A = 5, B = 7, C = 6 };
    grd_tensor *x = iota(grd_dims(A, B, C)), *index = random_index(grd_dims(A, 9, C), B);
    grd_tensor *picked = grd_gather(x, 1, index);
    grd_tensor *sum = grd_scatter_add(x, 1, index, picked), *last = grd_scatter(x, 1, index, grd_neg(picked));
    const double *from = grd_data(x), *got = grd_data(picked), *added = grd_data(sum), *placed = grd_data(last);
    const int64_t *at = grd_data(index);
    double expected_sum[A * B * C], expected_last[A * B * C];
    memcpy(expected_sum, from, sizeof expected_sum);
    memcpy(expected_last, from, sizeof expected_last);
    for (int i = 0; i < A; i++)
        for (int j = 0; j < 9; j++)
            for (int k = 0; k < C; k++) {
                int64_t to = (i * B + at[(i * 9 + j) * C + k]) * C + k;
                assert_true(got[(i * 9 + j) * C + k] == from[to]);
                expected_sum[to] += from[to];
                expected_last[to] = -from[to];
            }
    assert_memory_equal(added, expected_sum, sizeof expected_sum);
    for (int i = 0; i < A * B * C; i++)
        assert_true(placed[i] == expected_last[i]);
    assert_true(grd_ok());
}

/* The tensors are large enough to be split among threads, and many rows are added to each row of the result. The order of the additions must not
 * depend on the number of threads. */
static void test_index_add_adds_in_order_for_any_number_of_threads(void **state)
{
    (void)state;
    enum { ROWS = 20000, PLACES = 7, WIDTH = 37 };
    grd_tensor *index = random_index(grd_dims(ROWS), PLACES);
    grd_tensor *source = grd_sin(grd_to(iota(grd_dims(ROWS, WIDTH)), .dtype = GRD_FLOAT32));
    const float *rows = grd_data(source);
    const int64_t *at = grd_data(index);
    static float expected[PLACES * WIDTH];
    memset(expected, 0, sizeof expected);
    for (int i = 0; i < ROWS; i++)
        for (int k = 0; k < WIDTH; k++)
            expected[at[i] * WIDTH + k] += rows[i * WIDTH + k];
    int threads = grd_num_threads();
    for (int n = 1; n <= 3; n++) {
        grd_set_num_threads(n);
        grd_tensor *sum = grd_index_add(grd_zeros(grd_dims(PLACES, WIDTH)), 0, index, source);
        assert_memory_equal(grd_data(sum), expected, sizeof expected);
        grd_tensor *other = grd_index_add(grd_zeros(grd_dims(WIDTH, PLACES)), 1, index, grd_t(source));
        assert_true(grd_equal(grd_t(other), sum));
    }
    grd_set_num_threads(threads);
    assert_true(grd_ok());
}

static void test_masked_select_masked_fill_and_nonzero(void **state)
{
    (void)state;
    enum { N = 50001 };
    grd_tensor *x = iota(grd_dims(N)), *odd = grd_eq(grd_remainder(x, grd_number(grd_int(3))), grd_number(grd_int(1)));
    grd_tensor *some = grd_masked_select(x, odd), *places = grd_nonzero(odd);
    assert_true(grd_ok());
    assert_int_equal(grd_numel(some), N / 3);
    const double *values = grd_data(some);
    const int64_t *positions = grd_data(places);
    for (int64_t i = 0; i < N / 3; i++) {
        assert_true(values[i] == (double)(3 * i + 1));
        assert_int_equal(positions[i], 3 * i + 1);
    }
    grd_tensor *filled = grd_masked_fill(x, odd, grd_int(-1));
    assert_true(grd_item_double(grd_sum(grd_masked_select(filled, odd))) == -(N / 3));
    grd_tensor *pairs = grd_nonzero(grd_eye(3));
    assert_int_equal(grd_size(pairs, 0), 3);
    assert_int_equal(((const int64_t *)grd_data(pairs))[5], 2);
    assert_int_equal(grd_size(grd_nonzero(grd_ones(GRD_NO_DIMS)), 0), 1);
}

/* Checks operators that read and write the elements of x selected by `index` or `mask`. The elements of x are small integers, which are exact in
 * every dtype. */
static void check_elements(grd_tensor *x, grd_tensor *index, grd_tensor *mask)
{
    int64_t n = grd_numel(x), kept = 0;
    const int64_t *at = grd_data(index);
    const uint8_t *set = grd_data(mask);
    double sums[64];
    grd_tensor *picked = grd_index_select(x, 0, index), *placed = grd_index_copy(x, 0, index, x), *sum = grd_index_add(x, 0, index, x);
    grd_tensor *some = grd_masked_select(x, mask), *filled = grd_masked_fill(x, mask, grd_int(1)), *inplace = grd_clone(x);
    grd_tensor *pairs = grd_stack(grd_tensors(x, x), .dim = 1), *column = grd_select(pairs, 1, 1);
    grd_masked_fill_(inplace, mask, grd_int(1));
    grd_masked_fill_(column, mask, grd_int(1));
    assert_string_equal(grd_error_message(), "");
    for (int64_t i = 0; i < n; i++)
        sums[i] = element_at(x, i);
    for (int64_t i = 0; i < n; i++)
        sums[at[i]] += element_at(x, i);
    for (int64_t i = 0; i < n; i++) {
        double own = element_at(x, i), wanted = set[i] ? 1 : own;
        assert_true(element_at(picked, i) == element_at(x, at[i]));
        assert_true(element_at(sum, i) == (grd_tensor_dtype(x) == GRD_BOOL ? sums[i] != 0 : sums[i]));
        assert_true(element_at(filled, i) == wanted && element_at(inplace, i) == wanted && element_at(column, i) == wanted);
        assert_true(element_at(pairs, 2 * i) == own);
        if (set[i])
            assert_true(element_at(some, kept++) == own);
    }
    for (int64_t i = 0; i < n; i++) {
        int64_t last = n - 1;
        while (last >= 0 && at[last] != i)
            last--;
        assert_true(element_at(placed, i) == element_at(x, last < 0 ? i : last));
    }
    assert_int_equal(grd_numel(some), kept);
}

static void test_indexing_works_for_every_dtype(void **state)
{
    (void)state;
    grd_tensor *numbers = grd_remainder(iota(grd_dims(61)), grd_number(grd_int(5)));
    for (grd_dtype dtype = GRD_BOOL; dtype <= GRD_COMPLEX128; dtype++) {
        grd_scope scope = grd_scope_open();
        check_elements(grd_to(numbers, .dtype = dtype), random_index(grd_dims(61), 61),
                       grd_to(grd_eq(random_index(grd_dims(61), 3), grd_number(grd_int(0))), .dtype = GRD_BOOL));
        grd_scope_close(scope);
    }
}

static void test_an_index_out_of_range_changes_nothing(void **state)
{
    (void)state;
    static const int64_t bad[] = {0, 1, 3};
    grd_tensor *x = iota(grd_dims(3)), *index = grd_from_data(bad, grd_dims(3), GRD_INT64),
               *ones = grd_ones(grd_dims(3), .dtype = GRD_FLOAT64);
    grd_tensor *kept = grd_clone(x);
    grd_scatter_add_(x, 0, index, ones);
    expect_error(GRD_ERROR_RUNTIME, "scatter_add: index 3 is out of bounds for dimension 0 with size 3");
    grd_index_add_(x, 0, index, ones);
    expect_error(GRD_ERROR_RUNTIME, "index_add: index 3 is out of bounds for dimension 0 with size 3");
    grd_index_copy_(x, 0, index, ones);
    expect_error(GRD_ERROR_INDEX, "index_copy: index 3 is out of bounds for dimension 0 with size 3");
    grd_index_fill_(x, 0, index, grd_int(7));
    expect_error(GRD_ERROR_INDEX, "index_fill: index 3 is out of bounds for dimension 0 with size 3");
    assert_true(grd_equal(x, kept));
}

static void test_indexing_refuses_invalid_indices_and_masks(void **state)
{
    (void)state;
    grd_tensor *x = iota(grd_dims(3, 4)), *five = grd_full(grd_dims(1), grd_int(5)), *real = grd_ones(grd_dims(1));
    grd_index_select(x, 0, five);
    expect_error(GRD_ERROR_INDEX, "index_select: index out of range in self");
    grd_embedding(x, five);
    expect_error(GRD_ERROR_INDEX, "embedding: index out of range in self");
    grd_index_select(x, 0, real);
    expect_error(GRD_ERROR_RUNTIME, "index_select(): Expected dtype int32 or int64 for index, but got float32");
    grd_gather(x, 0, five);
    expect_error(GRD_ERROR_RUNTIME, "gather: Index tensor must have the same number of dimensions as input tensor");
    grd_gather(x, 0, grd_view(five, grd_dims(1, 1)));
    expect_error(GRD_ERROR_RUNTIME, "gather: index 5 is out of bounds for dimension 0 with size 3");
    grd_gather(x, 0, grd_zeros(grd_dims(1, 5), .dtype = GRD_INT64));
    expect_error(GRD_ERROR_RUNTIME,
                 "gather: Size does not match at dimension 1 expected index [1, 5] to be no larger than self [3, 4] apart from "
                 "dimension 0");
    grd_masked_fill(x, real, grd_int(1));
    expect_error(GRD_ERROR_RUNTIME, "masked_fill: masked_fill_ only supports boolean masks, but got mask with dtype float");
    grd_nonzero(grd_zeros(grd_dims(2), .device = GRD_META));
    expect_error(GRD_ERROR_NOT_IMPLEMENTED, "nonzero: not available on the meta device");
    grd_one_hot(five, .num_classes = 5);
    expect_error(GRD_ERROR_RUNTIME, "one_hot: Class values must be smaller than num_classes.");
}

/* Selects row 0 once, row 1 twice and row 2 three times. With a gradient of ones, each row's gradient is the number of its uses. */
static void test_the_gradient_of_embedding_counts_uses_of_rows(void **state)
{
    (void)state;
    static const int32_t rows[] = {2, 1, 2, 0, 1, 2};
    static const double expected[4][4] = {{1, 2, 3, 0}, {1, 0, 3, 0}, {1, 1, 1, 0}, {1, 0, 1, 0}};
    grd_tensor *index = grd_from_data(rows, grd_dims(6), GRD_INT32);
    for (int way = 0; way < 4; way++) {
        grd_tensor *weight = grd_set_requires_grad(iota(grd_dims(4, 3)), true);
        grd_tensor *picked = grd_embedding(weight, index, .padding_idx = way & 1 ? 1 : -1, .scale_grad_by_freq = way >= 2);
        grd_backward(grd_sum(picked));
        assert_true(grd_ok());
        const double *grad = grd_data(grd_grad_of(weight));
        for (int i = 0; i < 12; i++)
            assert_true(grad[i] == expected[way][i / 3]);
    }
}

static void test_equal_and_allclose_compare_tensors(void **state)
{
    (void)state;
    grd_tensor *x = iota(grd_dims(2, 3)), *nan = grd_full(grd_dims(1), grd_float(NAN)), *inf = grd_full(grd_dims(1), grd_float(INFINITY));
    assert_true(grd_equal(x, grd_clone(x)));
    assert_false(grd_equal(x, grd_view(x, grd_dims(3, 2))));
    assert_false(grd_equal(nan, nan));
    assert_true(grd_allclose(x, grd_mul(x, grd_number(grd_float(1 + 1e-9))), 1e-5, 1e-8, false));
    assert_false(grd_allclose(nan, nan, 1e-5, 1e-8, false));
    assert_true(grd_allclose(nan, nan, 1e-5, 1e-8, true));
    assert_true(grd_allclose(inf, inf, 1e-5, 1e-8, false));
    assert_false(grd_allclose(grd_ones(grd_dims(1)), inf, 1e-5, 1e-8, false));
    assert_true(grd_ok());
    assert_false(grd_allclose(x, nan, -1, 0, false));
    assert_false(grd_ok());
    grd_error_clear();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_SCOPE(test_gather_and_scatter_equal_loops),
        IN_SCOPE(test_index_add_adds_in_order_for_any_number_of_threads),
        IN_SCOPE(test_masked_select_masked_fill_and_nonzero),
        IN_SCOPE(test_indexing_works_for_every_dtype),
        IN_SCOPE(test_an_index_out_of_range_changes_nothing),
        IN_SCOPE(test_indexing_refuses_invalid_indices_and_masks),
        IN_SCOPE(test_the_gradient_of_embedding_counts_uses_of_rows),
        IN_SCOPE(test_equal_and_allclose_compare_tensors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
