/* Tests views: sizes and strides, shared memory, bounds and error texts. Gradients through overlapping and split views are compared with finite
 * differences. */
#include "base/object.h"
#include "support.h"

static void expect_geometry(grd_tensor *t, grd_dims sizes, grd_dims strides, int64_t offset)
{
    assert_true(grd_ok());
    assert_int_equal(grd_ndim(t), sizes.n);
    for (int64_t i = 0; i < sizes.n; i++) {
        assert_int_equal(grd_size(t, i), sizes.data[i]);
        assert_int_equal(grd_stride(t, i), strides.data[i]);
    }
    assert_int_equal(grd_offset(t), offset);
}

static void test_views_share_storage(void **state)
{
    (void)state;
    grd_tensor *x = iota(grd_dims(2, 3, 4));
    grd_tensor *views[] = {
        grd_view(x, grd_dims(6, 4)),
        grd_transpose(x, 0, 2),
        grd_permute(x, grd_dims(2, 0, 1)),
        grd_expand(x, grd_dims(5, 2, 3, 4)),
        grd_squeeze(x),
        grd_unsqueeze(x, -1),
        grd_flatten(x),
        grd_select(x, 1, -1),
        grd_slice(x, .step = -1),
        grd_diagonal(x),
        grd_unfold(x, 2, 2, 1),
        grd_narrow(x, 2, 1, 2),
        grd_detach(x),
        grd_movedim(x, grd_dims(0), grd_dims(-1)),
    };
    for (size_t i = 0; i < sizeof views / sizeof *views; i++)
        assert_true(grd_same_storage(x, views[i]));
    assert_true(grd_view_base(views[12]) == NULL);
    assert_true(grd_ok());
}

static void test_views_have_the_expected_sizes_strides_and_offset(void **state)
{
    (void)state;
    grd_tensor *x = iota(grd_dims(2, 3, 4));
    expect_geometry(grd_view(x, grd_dims(-1, 8)), grd_dims(3, 8), grd_dims(8, 1), 0);
    expect_geometry(grd_transpose(x, 0, -1), grd_dims(4, 3, 2), grd_dims(1, 4, 12), 0);
    expect_geometry(grd_select(x, 1, -1), grd_dims(2, 4), grd_dims(12, 1), 8);
    expect_geometry(grd_slice(x, .dim = 2, .step = -2), grd_dims(2, 3, 2), grd_dims(12, 4, -2), 3);
    expect_geometry(grd_slice(x, .dim = 1, .start = grd_int(9)), grd_dims(2, 0, 4), grd_dims(12, 4, 1), 12);
    expect_geometry(grd_slice(grd_slice(iota(grd_dims(4)), .step = -1), .start = grd_int(4)), grd_dims(0), grd_dims(-1), 3);
    expect_geometry(grd_diagonal(x, .offset = 1, .dim1 = 1, .dim2 = 2), grd_dims(2, 3), grd_dims(12, 5), 1);
    expect_geometry(grd_unfold(x, 2, 3, 1), grd_dims(2, 3, 2, 3), grd_dims(12, 4, 1, 1), 0);
    expect_geometry(grd_expand(grd_select(x, 0, 1), grd_dims(2, -1, 4)), grd_dims(2, 3, 4), grd_dims(0, 4, 1), 12);
    expect_geometry(grd_as_strided(x, grd_dims(3), grd_dims(-2), .storage_offset = grd_int(5)), grd_dims(3), grd_dims(-2), 5);
}

/* Slices a tensor of 4 elements with every start and end from -6 to 6 and every step from -3 to 3. A loop that follows Python's rule for slices
 * gives the expected elements. */
static void test_slice_ranges_follow_pythons_rule(void **state)
{
    (void)state;
    enum { N = 4 };
    grd_tensor *x = iota(grd_dims(N));
    for (int64_t start = -6; start <= 6; start++)
        for (int64_t end = -6; end <= 6; end++)
            for (int64_t step = -3; step <= 3; step++) {
                if (step == 0)
                    continue;
                grd_scope scope = grd_scope_open();
                grd_tensor *part = grd_slice(x, .start = grd_int(start), .end = grd_int(end), .step = step);
                double values[N];
                int64_t n = 0;
                for (int64_t i = step > 0 ? 0 : N - 1; i >= 0 && i<N; i += step> 0 ? 1 : -1) {
                    int64_t first = start < 0 ? start + N : start, last = end < 0 ? end + N : end;
                    if (step > 0 ? first < 0 : first > N - 1)
                        first = step > 0 ? 0 : N - 1;
                    bool inside = step > 0 ? i >= first && i < last : i <= first && i > last;
                    if (inside && (i - first) % step == 0)
                        values[n++] = (double)i;
                }
                double got[N];
                grd_to_memory(part, got, GRD_FLOAT64);
                assert_int_equal(grd_numel(part), n);
                for (int64_t i = 0; i < n; i++)
                    assert_true(got[i] == values[i]);
                grd_scope_close(scope);
            }
}

static void test_split_chunk_and_unbind_return_lists_of_views(void **state)
{
    (void)state;
    grd_tensor *x = iota(grd_dims(5, 2));
    grd_tensors parts = grd_split(x, 2);
    assert_int_equal(parts.n, 3);
    expect_geometry(parts.data[2], grd_dims(1, 2), grd_dims(2, 1), 8);
    parts = grd_chunk(x, 4);
    assert_int_equal(parts.n, 3);
    parts = grd_split_with_sizes(x, grd_dims(0, 5));
    assert_int_equal(grd_numel(parts.data[0]), 0);
    parts = grd_unbind(x, .dim = -1);
    assert_int_equal(parts.n, 2);
    expect_geometry(parts.data[1], grd_dims(5), grd_dims(2), 1);
}

static void test_views_refuse_invalid_arguments(void **state)
{
    (void)state;
    grd_tensor *x = iota(grd_dims(2, 3)), *v = iota(grd_dims(3));
    grd_view(x, grd_dims(2, 4));
    expect_error(GRD_ERROR_RUNTIME, "view: shape '[2, 4]' is invalid for input of size 6");
    grd_view(grd_t(x), grd_dims(6));
    expect_error(GRD_ERROR_RUNTIME, "view: view size is not compatible with input tensor's size and stride (at least one dimension spans "
                                    "across two contiguous subspaces). Use .reshape(...) instead.");
    grd_transpose(x, 0, 2);
    expect_error(GRD_ERROR_INDEX, "transpose: Dimension out of range (expected to be in range of [-2, 1], but got 2)");
    grd_permute(x, grd_dims(0, 0));
    expect_error(GRD_ERROR_RUNTIME, "permute(): duplicate dims are not allowed.");
    grd_select(v, 0, 5);
    expect_error(GRD_ERROR_INDEX, "select(): index 5 out of range for tensor of size [3] at dimension 0");
    grd_slice(v, .step = 0);
    expect_error(GRD_ERROR_RUNTIME, "slice: slice step must not be zero");
    grd_narrow(v, 0, 2, 3);
    expect_error(GRD_ERROR_RUNTIME, "narrow: start (2) + length (3) exceeds dimension size (3).");
    grd_expand(x, grd_dims(4, 2));
    expect_error(GRD_ERROR_RUNTIME,
                 "expand: The expanded size of the tensor (2) must match the existing size (3) at non-singleton dimension 1.  "
                 "Target sizes: [4, 2].  Tensor sizes: [2, 3]");
    grd_split(v, 0);
    expect_error(GRD_ERROR_RUNTIME, "split: split_size can only be 0 if dimension size is 0, but got dimension size of 3");
    grd_split_with_sizes(v, grd_dims(1, 1));
    expect_error(GRD_ERROR_RUNTIME,
                 "split_with_sizes: split_with_sizes expects split_sizes to sum exactly to 3 (input tensor's size at dimension 0), but got "
                 "split_sizes=[1, 1]");
    grd_diagonal(x, .dim1 = 1);
    expect_error(GRD_ERROR_RUNTIME, "diagonal: diagonal dimensions cannot be identical 1, 1");
    grd_mT(v);
    expect_error(GRD_ERROR_RUNTIME, "mT: tensor.mT is only supported on matrices or batches of matrices. Got 1-D tensor.");
    grd_unfold(v, 0, 4, 1);
    expect_error(GRD_ERROR_RUNTIME, "unfold: maximum size for tensor at dimension 0 is 3 but size is 4");
    grd_as_strided(v, grd_dims(2), grd_dims(1, 1));
    expect_error(GRD_ERROR_RUNTIME, "as_strided: mismatch in length of strides and shape");
    assert_true(grd_as_strided(v, grd_dims(2), grd_dims(INT64_MAX)) == grd_failed);
    assert_false(grd_ok());
    grd_error_clear();
    assert_true(grd_as_strided(v, grd_dims(2), grd_dims(-1)) == grd_failed);
    assert_false(grd_ok());
    grd_error_clear();
}

static grd_tensors overlapping_windows(grd_tensor *const *inputs, int n, void *context)
{
    (void)n;
    (void)context;
    grd_tensor *windows = grd_as_strided(inputs[0], grd_dims(4, 3), grd_dims(1, 1), .storage_offset = grd_int(0));
    grd_tensor **list = grd_pool_alloc(sizeof *list);
    list[0] = grd_mul(windows, windows);
    return (grd_tensors){1, list};
}

static grd_tensors split_and_weigh(grd_tensor *const *inputs, int n, void *context)
{
    (void)n;
    (void)context;
    grd_tensors parts = grd_split(inputs[0], 2, .dim = 0);
    grd_tensors rows = grd_unbind(inputs[0]);
    grd_tensor **list = grd_pool_alloc(2 * sizeof *list);
    list[0] = grd_mul(parts.data[0], parts.data[1]);
    list[1] = grd_mul(rows.data[0], rows.data[3]);
    return (grd_tensors){2, list};
}

static void test_gradients_of_overlapping_and_split_views(void **state)
{
    (void)state;
    grd_tensor *x = grd_set_requires_grad(iota(grd_dims(6)), true), *y = grd_set_requires_grad(iota(grd_dims(4, 2)), true);
    assert_true(grd_gradcheck(overlapping_windows, grd_tensors(x), NULL, NULL));
    assert_true(grd_gradgradcheck(overlapping_windows, grd_tensors(x), NULL, NULL));
    assert_true(grd_gradcheck(split_and_weigh, grd_tensors(y), NULL, NULL));
    assert_true(grd_gradgradcheck(split_and_weigh, grd_tensors(y), NULL, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_SCOPE(test_views_share_storage),
        IN_SCOPE(test_views_have_the_expected_sizes_strides_and_offset),
        IN_SCOPE(test_slice_ranges_follow_pythons_rule),
        IN_SCOPE(test_split_chunk_and_unbind_return_lists_of_views),
        IN_SCOPE(test_views_refuse_invalid_arguments),
        IN_SCOPE(test_gradients_of_overlapping_and_split_views),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
