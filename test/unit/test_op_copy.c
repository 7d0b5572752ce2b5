/* Tests copying, filling and joining for all kinds of strides against simple loops. Also tests overlapping copies and error texts. */
#include <stdlib.h>
#include <string.h>

#include "support.h"

static void expect_same(const grd_tensor *a, const grd_tensor *b)
{
    assert_true(grd_ok());
    assert_int_equal(a->numel, b->numel);
    for (int64_t i = 0; i < a->numel; i++)
        if (element_at(a, i) != element_at(b, i))
            fail_msg("element %lld: %g, not %g", (long long)i, element_at(a, i), element_at(b, i));
}

/* Copies tensors of several sizes and strides, so that each of the three methods of copy is used (one contiguous block, a transposition, general
 * strides). Large copies are split among threads. */
static void test_copies_between_all_layouts_equal_loops(void **state)
{
    (void)state;
    static const int64_t shapes[][3] = {{1, 1, 1}, {2, 3, 4}, {9, 20, 33}, {3, 70, 130}, {2, 300, 257}, {0, 3, 4}};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        grd_scope scope = grd_scope_open();
        grd_tensor *x = iota((grd_dims){3, shapes[s]});
        grd_tensor *views[] = {x, grd_permute(x, grd_dims(0, 2, 1)), grd_permute(x, grd_dims(2, 1, 0)), grd_slice(x, .dim = 2, .step = -1),
                               grd_slice(x, .dim = 1, .step = 2)};
        for (size_t i = 0; i < sizeof views / sizeof *views; i++) {
            expect_same(grd_clone(views[i]), views[i]);
            expect_same(grd_contiguous(views[i]), views[i]);
            for (int order = 0; order < 3; order++) {
                grd_tensor *to = grd_zeros(grd_sizes(views[i]), .dtype = GRD_FLOAT64);
                if (order == 1)
                    to = grd_transpose(grd_zeros(grd_sizes(grd_transpose(to, 1, 2)), .dtype = GRD_FLOAT64), 1, 2);
                if (order == 2)
                    to = grd_flip(to, grd_dims(0));
                expect_same(grd_copy_(to, views[i]), views[i]);
            }
        }
        grd_scope_close(scope);
    }
}

/* Transposes matrices with every element size and compares all bytes. Some matrices are smaller than a tile, some have sizes around multiples of
 * a tile, and some are so large that stores bypass the caches. */
static void test_transposing_moves_elements_of_every_size(void **state)
{
    (void)state;
    static const grd_dtype dtypes[] = {GRD_UINT8, GRD_INT16, GRD_FLOAT32, GRD_INT64, GRD_COMPLEX128};
    static const int64_t sizes[][2] = {{8, 9}, {64, 64}, {65, 130}, {300, 1111}, {1536, 5632}};
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) {
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            const int64_t n = sizes[s][0], m = sizes[s][1], size = grd_dtype_size(dtypes[d]);
            grd_scope scope = grd_scope_open();
            grd_tensor *bytes = grd_randint(0, 256, grd_dims(n, m * size), .dtype = GRD_UINT8);
            grd_tensor *x = grd_empty(grd_dims(n, m), .dtype = dtypes[d]);
            memcpy(grd_data(x), grd_data(bytes), (size_t)(n * m * size));
            const char *from = grd_data(x), *to = grd_data(grd_contiguous(grd_t(x)));
            for (int64_t i = 0; i < n; i++)
                for (int64_t j = 0; j < m; j++)
                    if (memcmp(to + (j * n + i) * size, from + (i * m + j) * size, (size_t)size) != 0)
                        fail_msg("%s of %lld by %lld: element %lld, %lld", grd_dtype_name(dtypes[d]), (long long)n, (long long)m,
                                 (long long)i, (long long)j);
            grd_scope_close(scope);
        }
    }
}

static void test_overlapping_copies_are_refused(void **state)
{
    (void)state;
    grd_tensor *x = iota(grd_dims(6));
    grd_tensor *shifted = grd_slice(x, .start = grd_int(1));
    grd_copy_(shifted, grd_slice(x, .end = -1));
    expect_error(GRD_ERROR_RUNTIME,
                 "copy: unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory "
                 "location. Please clone() the tensor before performing the operation.");
    grd_copy_(x, grd_view(x, grd_dims(6))); /* source and destination are the same elements in the same order, which is allowed */
    for (int i = 0; i < 6; i++)
        assert_true(grd_ok() && element_at(x, i) == i);
    grd_copy_(x, grd_slice(x, .step = -1));
    for (int i = 0; i < 6; i++)
        assert_true(element_at(x, i) == 5 - i);
    grd_copy_(grd_expand(iota(grd_dims(1)), grd_dims(3)), iota(grd_dims(3)));
    assert_int_equal(grd_error_get(), GRD_ERROR_RUNTIME);
    grd_error_clear();
}

static void test_fill_and_zero_write_every_element(void **state)
{
    (void)state;
    enum { N = 70001 };
    grd_tensor *x = grd_zeros(grd_dims(3, N));
    grd_fill_(x, grd_float(1.5));
    assert_true(grd_item_double(grd_sum(grd_to(x, .dtype = GRD_FLOAT64))) == 4.5 * N);
    grd_fill_(grd_slice(x, .dim = 1, .step = 2), grd_int(0));
    assert_true(grd_item_double(grd_sum(grd_to(x, .dtype = GRD_FLOAT64))) == 4.5 * (N / 2));
    grd_zero_(grd_t(x));
    assert_true(grd_item_double(grd_sum(x)) == 0);
    grd_fill_(grd_zeros(grd_dims(2), .dtype = GRD_UINT8), grd_int(300));
    assert_int_equal(grd_error_get(), GRD_ERROR_RUNTIME);
    grd_error_clear();
}

static void test_to_converts_and_copies_only_if_necessary(void **state)
{
    (void)state;
    grd_tensor *x = iota(grd_dims(2, 3));
    assert_true(grd_to(x) == x);
    assert_true(grd_to(x, .dtype = GRD_FLOAT64, .device = GRD_CPU) == x);
    assert_false(grd_same_storage(grd_to(x, .copy = true), x));
    grd_tensor *half = grd_to(grd_t(x), .dtype = GRD_FLOAT16);
    assert_int_equal(grd_tensor_dtype(half), GRD_FLOAT16);
    assert_int_equal(grd_stride(half, 0), 1);
    grd_tensor *meta = grd_to(x, .device = GRD_META);
    assert_int_equal(grd_tensor_device(meta).type, GRD_DEVICE_META);
    grd_to(meta, .device = GRD_CPU);
    expect_error(GRD_ERROR_NOT_IMPLEMENTED, "to: to_copy: Cannot copy out of meta tensor; no data!");
}

static void test_cat_and_stack_join_tensors(void **state)
{
    (void)state;
    grd_tensor *a = iota(grd_dims(2, 3)), *b = grd_t(iota(grd_dims(2, 2))), *none = iota(grd_dims(0));
    grd_tensor *joined = grd_cat(grd_tensors(none, a, b, a), .dim = -1);
    assert_true(grd_ok());
    assert_int_equal(grd_size(joined, 1), 8);
    for (int64_t row = 0; row < 2; row++)
        for (int64_t column = 0; column < 8; column++) {
            double expected = column < 3   ? element_at(a, 3 * row + column)
                              : column < 5 ? element_at(b, 2 * row + column - 3)
                                           : element_at(a, 3 * row + column - 5);
            assert_true(element_at(joined, 8 * row + column) == expected);
        }
    assert_int_equal(grd_tensor_dtype(grd_cat(grd_tensors(grd_arange(grd_int(2)), grd_ones(grd_dims(1))))), GRD_FLOAT32);
    assert_int_equal(grd_numel(grd_cat(grd_tensors(none, none))), 0);
    assert_int_equal(grd_ndim(grd_stack(grd_tensors(a, a), .dim = 2)), 3);
}

static void test_copy_cat_stack_roll_and_repeat_refuse_invalid_arguments(void **state)
{
    (void)state;
    grd_tensor *x = iota(grd_dims(2, 3)), *v = iota(grd_dims(3)), *zero = grd_scalar_tensor(grd_int(1));
    grd_cat((grd_tensors[]){{0}}[0]);
    expect_error(GRD_ERROR_VALUE, "cat: torch.cat(): expected a non-empty list of Tensors");
    grd_cat(grd_tensors(x, v));
    expect_error(GRD_ERROR_RUNTIME, "cat: Tensors must have same number of dimensions: got 2 and 1");
    grd_cat(grd_tensors(x, grd_t(x)));
    expect_error(GRD_ERROR_RUNTIME,
                 "cat: Sizes of tensors must match except in dimension 0. Expected size 3 but got size 2 for tensor number 1 "
                 "in the list.");
    grd_cat(grd_tensors(zero));
    expect_error(GRD_ERROR_RUNTIME, "cat: zero-dimensional tensor (at position 0) cannot be concatenated");
    grd_stack(grd_tensors(x, v));
    expect_error(GRD_ERROR_RUNTIME, "stack: stack expects each tensor to be equal size, but got [2, 3] at entry 0 and [3] at entry 1");
    grd_copy_(v, x);
    expect_error(GRD_ERROR_RUNTIME, "copy: output with shape [3] doesn't match the broadcast shape [2, 3]");
    grd_roll(x, grd_dims(1, 2));
    expect_error(GRD_ERROR_RUNTIME, "roll: shifts and dimensions must align. shifts: 2, dims:0");
    grd_repeat(x, grd_dims(2));
    expect_error(GRD_ERROR_RUNTIME, "repeat: Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor");
    grd_repeat(x, grd_dims(INT64_MAX, INT64_MAX));
    assert_false(grd_ok());
    grd_error_clear();
    grd_clone(x, .memory_format = "channels");
    expect_error(GRD_ERROR_VALUE, "clone: memory_format must be \"preserve\", \"contiguous\", \"channels_last\" (of 4 dimensions) or "
                                  "\"channels_last_3d\" (of 5), not "
                                  "'channels'");
}

static void test_float8_and_quantized_tensors_are_copied_and_converted(void **state)
{
    (void)state;
    grd_scope scope = grd_scope_open();
    const float values[] = {1, -1.5f, 0.0625f, 3};
    grd_tensor *x = grd_from_data(values, grd_dims(2, 2), GRD_FLOAT32);
    const grd_dtype eights[] = {GRD_FLOAT8_E4M3FN, GRD_FLOAT8_E5M2};
    for (int i = 0; i < 2; i++) {
        grd_tensor *small = grd_contiguous(grd_t(grd_to(x, .dtype = eights[i])));
        assert_true(grd_equal(grd_t(grd_to(small, .dtype = GRD_FLOAT32)), x));
    }
    const grd_dtype quantized[] = {GRD_QINT8, GRD_QUINT8, GRD_QINT32}, integers[] = {GRD_INT8, GRD_UINT8, GRD_INT32};
    for (int i = 0; i < 3; i++) {
        grd_tensor *n = grd_to(grd_abs(x), .dtype = integers[i]);
        grd_tensor *q = grd_contiguous(grd_t(grd_clone(grd_to(n, .dtype = quantized[i]))));
        assert_int_equal(grd_tensor_dtype(q), quantized[i]);
        assert_true(grd_equal(grd_t(grd_to(q, .dtype = integers[i])), n));
        grd_to(q, .dtype = GRD_FLOAT32);
        assert_int_equal(grd_error_get(), GRD_ERROR_NOT_IMPLEMENTED);
        grd_error_clear();
    }
    assert_true(grd_ok());
    grd_scope_close(scope);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_float8_and_quantized_tensors_are_copied_and_converted),
        IN_SCOPE(test_copies_between_all_layouts_equal_loops),
        IN_SCOPE(test_transposing_moves_elements_of_every_size),
        IN_SCOPE(test_overlapping_copies_are_refused),
        IN_SCOPE(test_fill_and_zero_write_every_element),
        IN_SCOPE(test_to_converts_and_copies_only_if_necessary),
        IN_SCOPE(test_cat_and_stack_join_tensors),
        IN_SCOPE(test_copy_cat_stack_roll_and_repeat_refuse_invalid_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
