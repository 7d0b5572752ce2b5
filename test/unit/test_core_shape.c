/* Compares computations on sizes and strides with loops over every index of small random shapes, and tests their errors. */
#include <string.h>

#include "core/shape.h"
#include "support.h"

enum { ROUNDS = 4000, MAX_NDIM = 5, MAX_ELEMENTS = 1024 };

static uint32_t seed = 1;

static int64_t pick(int64_t n)
{
    seed = seed * 1664525 + 1013904223;
    return (int64_t)(seed >> 8) % n;
}

struct shape {
    int64_t ndim, numel;
    int64_t sizes[GRD_MAX_DIMS], strides[GRD_MAX_DIMS];
};

static grd_dims sizes_of(const struct shape *s)
{
    return grd_dims_from(s->sizes, s->ndim);
}

/* Returns a random shape whose dimensions are laid out in random order. Half of the shapes are dense; the others may have gaps and zero or
 * negative strides. */
static struct shape random_shape(void)
{
    struct shape s = {.ndim = pick(MAX_NDIM + 1), .numel = 1};
    int64_t order[MAX_NDIM], stride = 1;
    for (int64_t i = 0; i < s.ndim; i++) {
        s.sizes[i] = pick(20) == 0 ? 0 : 1 + pick(4);
        s.numel *= s.sizes[i];
        int64_t j = pick(i + 1);
        order[i] = order[j];
        order[j] = i;
    }
    bool odd = pick(2) == 0;
    for (int64_t i = 0; i < s.ndim; i++) {
        s.strides[order[i]] = odd && pick(4) == 0 ? pick(9) - 4 : stride;
        stride *= s.sizes[order[i]] > 0 ? s.sizes[order[i]] : 1;
        stride += odd && pick(6) == 0 ? pick(3) : 0;
    }
    return s;
}

/* Writes the offset of each element, counted in elements, to ret_offsets in row-major order. */
static void offsets(grd_dims sizes, const int64_t *strides, int64_t numel, int64_t *ret_offsets)
{
    for (int64_t i = 0; i < numel; i++) {
        int64_t rest = i, offset = 0;
        for (int64_t dim = sizes.n - 1; dim >= 0; dim--) {
            offset += rest % sizes.data[dim] * strides[dim];
            rest /= sizes.data[dim];
        }
        ret_offsets[i] = offset;
    }
}

static void layout_properties_match_brute_force(void **state)
{
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        struct shape s = random_shape();
        int64_t at[MAX_ELEMENTS], numel, lowest, highest, expected_lowest = 0, expected_highest = 0;
        assert_true(grd_shape_numel(sizes_of(&s), &numel));
        assert_int_equal(numel, s.numel);
        offsets(sizes_of(&s), s.strides, numel, at);
        bool contiguous = true, overlap = false;
        for (int64_t i = 0; i < numel; i++) {
            contiguous &= at[i] == i;
            expected_lowest = at[i] < expected_lowest ? at[i] : expected_lowest;
            expected_highest = at[i] > expected_highest ? at[i] : expected_highest;
            for (int64_t j = 0; j < i; j++)
                overlap |= at[i] == at[j];
        }
        assert_true(grd_shape_extent(sizes_of(&s), s.strides, &lowest, &highest));
        assert_int_equal(lowest, expected_lowest);
        assert_int_equal(highest, expected_highest);
        assert_int_equal(grd_shape_is_contiguous(sizes_of(&s), s.strides), contiguous);
        bool dense = !overlap && lowest == 0 && (numel == 0 || highest == numel - 1);
        assert_int_equal(grd_shape_is_dense(sizes_of(&s), s.strides), dense);
        if (overlap)
            assert_true(grd_shape_may_overlap(sizes_of(&s), s.strides));
        if (dense || numel < 2)
            assert_false(grd_shape_may_overlap(sizes_of(&s), s.strides));
        if (numel > 0) {
            int64_t packed[GRD_MAX_DIMS];
            grd_shape_dense_strides(sizes_of(&s), s.strides, packed);
            assert_true(grd_shape_is_dense(sizes_of(&s), packed));
            for (int64_t i = 0; dense && i < s.ndim; i++)
                assert_true(s.sizes[i] == 1 || packed[i] == s.strides[i]);
        }
    }
}

/* Returns sizes whose product is numel, chosen at random, with some sizes of 1. */
static struct shape random_factors(int64_t numel)
{
    struct shape s = {.numel = numel};
    int64_t rest = numel;
    while (s.ndim < 12 && (rest > 1 || pick(3) == 0)) {
        int64_t factor = 1 + pick(rest);
        if (rest % factor == 0) {
            s.sizes[s.ndim++] = factor;
            rest /= factor;
        }
    }
    if (rest > 1)
        s.sizes[s.ndim++] = rest;
    return s;
}

static void view_strides_match_brute_force(void **state)
{
    (void)state;
    int possible = 0;
    for (int round = 0; round < ROUNDS; round++) {
        struct shape s = random_shape();
        if (s.numel == 0)
            continue;
        struct shape view = random_factors(s.numel);
        int64_t from[MAX_ELEMENTS], to[MAX_ELEMENTS];
        offsets(sizes_of(&s), s.strides, s.numel, from);
        if (grd_shape_view_strides(sizes_of(&s), s.strides, sizes_of(&view), view.strides)) {
            offsets(sizes_of(&view), view.strides, s.numel, to);
            assert_memory_equal(from, to, (size_t)s.numel * sizeof *from);
            possible++;
            continue;
        }
        /* Checks that no strides make a view with these sizes. The stride of a dimension can only be the difference between the offsets of the
         * first two elements along that dimension. */
        int64_t step = 1;
        for (int64_t dim = view.ndim - 1; dim >= 0; dim--) {
            view.strides[dim] = view.sizes[dim] > 1 ? from[step] - from[0] : 0;
            step *= view.sizes[dim];
        }
        offsets(sizes_of(&view), view.strides, s.numel, to);
        assert_memory_not_equal(from, to, (size_t)s.numel * sizeof *from);
    }
    assert_true(possible > ROUNDS / 4);
}

static void broadcast_sizes_follow_the_rule(void **state)
{
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        struct shape a = random_shape(), b = random_shape();
        int64_t sizes[GRD_MAX_DIMS], ndim = -1;
        bool fits = true;
        for (int64_t i = 1; i <= a.ndim && i <= b.ndim; i++) {
            int64_t x = a.sizes[a.ndim - i], y = b.sizes[b.ndim - i];
            fits &= x == y || x == 1 || y == 1;
        }
        assert_int_equal(grd_shape_broadcast(sizes_of(&a), sizes_of(&b), sizes, &ndim), fits);
        grd_error_clear();
        for (int64_t i = 1; fits && i <= ndim; i++) {
            int64_t x = i <= a.ndim ? a.sizes[a.ndim - i] : 1, y = i <= b.ndim ? b.sizes[b.ndim - i] : 1;
            assert_int_equal(sizes[ndim - i], x == 1 ? y : x);
        }
    }
    int64_t sizes[GRD_MAX_DIMS], ndim;
    assert_false(grd_shape_broadcast(grd_dims(2, 3), grd_dims(4), sizes, &ndim));
    assert_string_equal(grd_error_message(), "The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 1");
    grd_error_clear();
}

static void expect_numel(grd_dims sizes, int64_t numel, const char *error)
{
    int64_t result = -7;
    bool ok = grd_shape_numel(sizes, &result);
    assert_string_equal(grd_error_message(), error);
    assert_int_equal(ok, *error == 0);
    assert_int_equal(result, ok ? numel : -7);
    grd_error_clear();
}

static void element_counts_are_checked_for_overflow(void **state)
{
    (void)state;
    int64_t huge = (int64_t)1 << 62, ones[GRD_MAX_DIMS + 1];
    expect_numel(GRD_NO_DIMS, 1, "");
    expect_numel((grd_dims){0, NULL}, 1, "");
    expect_numel(grd_dims(INT64_MAX), INT64_MAX, "");
    expect_numel(grd_dims(huge, 4), 0, "Storage size calculation overflowed with sizes=[4611686018427387904, 4]");
    expect_numel(grd_dims(huge, 4, 0), 0, "");
    expect_numel(grd_dims(0, huge, 4), 0, "Stride calculation overflowed with sizes=[0, 4611686018427387904, 4]");
    expect_numel(grd_dims(2, -3), 0, "Trying to create tensor with negative dimension -3: [2, -3]");
    expect_numel(grd_dims(INT64_MIN), 0, "Trying to create tensor with negative dimension -9223372036854775808: [-9223372036854775808]");
    for (int i = 0; i <= GRD_MAX_DIMS; i++)
        ones[i] = 1;
    expect_numel(grd_dims_from(ones, GRD_MAX_DIMS), 1, "");
    expect_numel(grd_dims_from(ones, GRD_MAX_DIMS + 1), 0, "too many dimensions: 65, the limit is 64");
    int64_t lowest, highest;
    assert_false(grd_shape_extent(grd_dims(3, 3), (const int64_t[]){huge, huge}, &lowest, &highest));
    assert_false(grd_shape_extent(grd_dims(3), (const int64_t[]){INT64_MIN}, &lowest, &highest));
    assert_true(grd_shape_extent(grd_dims(0, 3), (const int64_t[]){huge, huge}, &lowest, &highest));
}

static void expect_infer(grd_dims sizes, int64_t numel, int64_t first, const char *error)
{
    int64_t result[GRD_MAX_DIMS] = {-7};
    bool ok = grd_shape_infer(sizes, numel, result);
    assert_string_equal(grd_error_message(), error);
    assert_int_equal(ok, *error == 0);
    assert_int_equal(result[0], ok ? first : -7);
    grd_error_clear();
}

static void a_size_of_minus_one_is_inferred(void **state)
{
    (void)state;
    expect_infer(grd_dims(-1, 2), 6, 3, "");
    expect_infer(grd_dims(6), 6, 6, "");
    expect_infer(grd_dims(-1), 0, 0, "");
    expect_infer(grd_dims(-1, 3), 0, 0, "");
    expect_infer(grd_dims(2, -1), 3, 0, "shape '[2, -1]' is invalid for input of size 3");
    expect_infer(grd_dims(2, 3), 4, 0, "shape '[2, 3]' is invalid for input of size 4");
    expect_infer(grd_dims(INT64_MAX, INT64_MAX), 1, 0, "shape '[9223372036854775807, 9223372036854775807]' is invalid for input of size 1");
    expect_infer(grd_dims(0, -1), 4, 0, "shape '[0, -1]' is invalid for input of size 4");
    expect_infer(grd_dims(-1, -1), 4, 0, "only one dimension can be inferred");
    expect_infer(grd_dims(2, -2), 4, 0, "invalid shape dimension -2 at index 1 of shape [2, -2]");
    expect_infer(grd_dims(0, -1), 0, 0,
                 "cannot reshape tensor of 0 elements into shape [0, -1] because the unspecified dimension size -1 can be any value and is "
                 "ambiguous");
}

static void negative_dimensions_count_from_the_end(void **state)
{
    (void)state;
    int64_t dim;
    uint64_t mask;
    assert_true(grd_shape_wrap_dim(-2, 2, &dim) && dim == 0);
    assert_true(grd_shape_wrap_dim(-1, 0, &dim) && dim == 0);
    assert_false(grd_shape_wrap_dim(2, 2, &dim));
    assert_string_equal(grd_error_message(), "Dimension out of range (expected to be in range of [-2, 1], but got 2)");
    assert_int_equal(grd_error_get(), GRD_ERROR_INDEX);
    grd_error_clear();
    assert_false(grd_shape_wrap_dim(INT64_MIN, 2, &dim));
    grd_error_clear();
    assert_true(grd_shape_dim_mask((grd_dims){0, NULL}, 3, &mask) && mask == 7);
    assert_true(grd_shape_dim_mask(GRD_NO_DIMS, 64, &mask) && mask == UINT64_MAX);
    assert_true(grd_shape_dim_mask(GRD_NO_DIMS, 0, &mask) && mask == 0);
    assert_true(grd_shape_dim_mask(grd_dims(-1, 0), 3, &mask) && mask == 5);
    assert_false(grd_shape_dim_mask(grd_dims(1, -1), 2, &mask));
    assert_string_equal(grd_error_message(), "dim 1 appears multiple times in the list of dims");
    grd_error_clear();
}

static void channels_last_strides_are_recognized(void **state)
{
    (void)state;
    assert_true(grd_shape_is_channels_last(grd_dims(2, 3, 4, 5), (const int64_t[]){60, 1, 15, 3}));
    assert_true(grd_shape_is_channels_last(grd_dims(1, 3, 4, 5), (const int64_t[]){7, 1, 15, 3}));
    assert_true(grd_shape_is_channels_last(grd_dims(2, 3, 2, 4, 5), (const int64_t[]){120, 1, 60, 15, 3}));
    assert_false(grd_shape_is_channels_last(grd_dims(2, 3, 4, 5), (const int64_t[]){60, 20, 5, 1}));
    assert_false(grd_shape_is_channels_last(grd_dims(2, 3, 4), (const int64_t[]){12, 1, 3}));
    int64_t strides[5];
    grd_shape_channels_last_strides(grd_dims(2, 3, 4, 5), strides);
    assert_memory_equal(strides, ((const int64_t[]){60, 1, 15, 3}), 4 * sizeof *strides);
    grd_shape_channels_last_strides(grd_dims(2, 3, 2, 4, 5), strides);
    assert_memory_equal(strides, ((const int64_t[]){120, 1, 60, 15, 3}), sizeof strides);
}

/* The results are those of PyTorch's suggest_memory_format. Gaps do not matter, and a layout that is ambiguous because of sizes of 1 counts as
 * contiguous. */
static void channels_last_is_suggested_as_in_pytorch(void **state)
{
    (void)state;
    assert_true(grd_shape_suggests_channels_last(grd_dims(2, 3, 4, 5), (const int64_t[]){60, 1, 15, 3}));
    assert_true(grd_shape_suggests_channels_last(grd_dims(2, 3, 4, 5), (const int64_t[]){240, 2, 60, 6}));
    assert_true(grd_shape_suggests_channels_last(grd_dims(2, 3, 1, 1), (const int64_t[]){3, 1, 3, 3}));
    assert_true(grd_shape_suggests_channels_last(grd_dims(2, 3, 2, 4, 5), (const int64_t[]){120, 1, 60, 15, 3}));
    assert_false(grd_shape_suggests_channels_last(grd_dims(2, 3, 4, 5), (const int64_t[]){60, 20, 5, 1}));
    assert_false(grd_shape_suggests_channels_last(grd_dims(2, 3, 1, 1), (const int64_t[]){3, 1, 1, 1}));
    assert_false(grd_shape_suggests_channels_last(grd_dims(2, 1, 1, 1), (const int64_t[]){1, 1, 1, 1}));
    assert_false(grd_shape_suggests_channels_last(grd_dims(2, 3, 4, 5), (const int64_t[]){60, 0, 15, 3}));
    assert_false(grd_shape_suggests_channels_last(grd_dims(2, 0, 4, 5), (const int64_t[]){20, 1, 5, 1}));
    assert_false(grd_shape_suggests_channels_last(grd_dims(2, 3, 4), (const int64_t[]){12, 1, 3}));
}

/* The first operand whose strides along two dimensions differ decides the order of these dimensions in the result. If the two strides are equal in
 * every operand, the dimensions stay in row-major order. */
static void the_first_decisive_operand_orders_dimensions(void **state)
{
    (void)state;
    const int64_t told[2][GRD_MAX_DIMS] = {{0, 0, 1}, {1, 2, 6}};
    int64_t strides[3];
    grd_shape_ordered_strides(grd_dims(2, 3, 4), told, 1, strides);
    assert_memory_equal(strides, ((const int64_t[]){12, 4, 1}), sizeof strides);
    grd_shape_ordered_strides(grd_dims(2, 3, 4), told, 2, strides);
    assert_memory_equal(strides, ((const int64_t[]){1, 2, 6}), sizeof strides);
}

static void ambiguous_strides_are_ordered_as_in_pytorch(void **state)
{
    (void)state;
    int64_t strides[3];
    grd_shape_dense_strides(grd_dims(4, 3, 2), (const int64_t[]){1, 0, 4}, strides);
    assert_memory_equal(strides, ((const int64_t[]){1, 4, 12}), sizeof strides);
    grd_shape_dense_strides(grd_dims(4, 3, 2), (const int64_t[]){2, 0, 1}, strides);
    assert_memory_equal(strides, ((const int64_t[]){6, 2, 1}), sizeof strides);
    grd_shape_dense_strides(grd_dims(2, 1, 3), (const int64_t[]){6, 9, 2}, strides);
    assert_memory_equal(strides, ((const int64_t[]){3, 6, 1}), sizeof strides);
    /* Of dimensions with equal strides, those of smaller size become the inner ones. */
    grd_shape_dense_strides(grd_dims(2, 3, 4), (const int64_t[]){2, 2, 2}, strides);
    assert_memory_equal(strides, ((const int64_t[]){1, 2, 6}), sizeof strides);
    grd_shape_dense_strides(grd_dims(4, 3, 2), (const int64_t[]){1, 1, 1}, strides);
    assert_memory_equal(strides, ((const int64_t[]){6, 2, 1}), sizeof strides);
    grd_shape_dense_strides(grd_dims(3, 2, 4), (const int64_t[]){4, 1, 1}, strides);
    assert_memory_equal(strides, ((const int64_t[]){8, 1, 2}), sizeof strides);
    grd_shape_dense_strides(grd_dims(2, 5, 3), (const int64_t[]){3, 1, 3}, strides);
    assert_memory_equal(strides, ((const int64_t[]){5, 1, 10}), sizeof strides);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layout_properties_match_brute_force),
        cmocka_unit_test(view_strides_match_brute_force),
        cmocka_unit_test(broadcast_sizes_follow_the_rule),
        cmocka_unit_test(element_counts_are_checked_for_overflow),
        cmocka_unit_test(a_size_of_minus_one_is_inferred),
        cmocka_unit_test(negative_dimensions_count_from_the_end),
        cmocka_unit_test(channels_last_strides_are_recognized),
        cmocka_unit_test(channels_last_is_suggested_as_in_pytorch),
        cmocka_unit_test(the_first_decisive_operand_orders_dimensions),
        cmocka_unit_test(ambiguous_strides_are_ordered_as_in_pytorch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
