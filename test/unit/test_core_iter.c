/* Compares the tensor iterator of core/iter with loops over indices: arbitrary strides, promotion, overlap, conversion and strides of results. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/iter.h"
#include "core/new.h"
#include "core/scalar.h"
#include "core/tensor.h"
#include "support.h"

/* ---- Tools ---------------------------------------------------------------------------------------------------------------- */

static int64_t below(int64_t n)
{
    return rand() % n;
}

/* A loop kernel for float64 that computes x + 2 * y + 4 * z from one to three inputs. `params` points to the number of inputs, an int. */
static void combine(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    int inputs = *(const int *)params;
    for (int64_t i = 0; i < n; i++) {
        double sum = 0;
        for (int k = 1; k <= inputs; k++)
            sum += (double)(1 << (k - 1)) * *(const double *)(data[k] + i * strides[k]);
        *(double *)(data[0] + i * strides[0]) = sum;
    }
}

/* Elementwise kernel that computes the same as `combine`. Elementwise kernels are called for contiguous elements only. */
static void combine_block(int64_t n, char *const *data, const void *params)
{
    combine(n, data, (const int64_t[]){8, 8, 8, 8}, params);
}

static void run_combined(const struct grd_iter *it, int ninputs)
{
    const struct grd_map_kernel kernel = {combine_block, GRD_MAP_SIZES(8, 8, ninputs > 1 ? 8 : 0, ninputs > 2 ? 8 : 0), false};
    grd_iter_map(it, &(struct grd_map){.kernel = &kernel, .params = &ninputs});
}

static double *element(const grd_tensor *t, int64_t ndim, const int64_t *index)
{
    char *at = t->data;
    for (int64_t i = 0; i < t->ndim; i++) {
        int64_t dim = i + ndim - t->ndim;
        at += t->sizes[i] == 1 ? 0 : index[dim] * t->strides[i] * (int64_t)t->itemsize;
    }
    return (double *)at;
}

static bool next_index(int64_t *index, grd_dims sizes)
{
    for (int64_t dim = sizes.n - 1; dim >= 0; dim--) {
        if (++index[dim] < sizes.data[dim])
            return true;
        index[dim] = 0;
    }
    return false;
}

/* Returns a view of random elements whose strides are in a random order. Some strides leave gaps, some are negative, and some are 0 if `overlaps`. */
static grd_tensor *random_view(grd_dims sizes, bool overlaps)
{
    int64_t strides[GRD_MAX_DIMS], order[GRD_MAX_DIMS], span = 1, offset = 0;
    for (int64_t i = 0; i < sizes.n; i++)
        order[i] = i;
    for (int64_t i = sizes.n - 1; i > 0; i--) {
        int64_t j = below(i + 1), swap = order[i];
        order[i] = order[j];
        order[j] = swap;
    }
    for (int64_t i = 0; i < sizes.n; i++) {
        int64_t dim = order[i], step = span * (below(3) == 0 ? 2 : 1);
        bool zero = overlaps && below(5) == 0;
        strides[dim] = zero ? 0 : below(4) == 0 ? -step : step;
        if (!zero && sizes.data[dim] > 0)
            span = step * sizes.data[dim];
        if (strides[dim] < 0)
            offset += step * (sizes.data[dim] - 1);
    }
    grd_tensor *base = grd_new(grd_dims(span + 1), GRD_FLOAT64, GRD_CPU);
    for (int64_t i = 0; i <= span; i++)
        ((double *)base->data)[i] = (double)below(1000);
    return grd_new_view(base, sizes, grd_dims_from(strides, sizes.n), offset < 0 ? 0 : offset);
}

static void check_combined(const grd_tensor *result, grd_tensor *const *inputs, int n)
{
    int64_t index[GRD_MAX_DIMS] = {0};
    if (result->numel == 0)
        return;
    do {
        double sum = 0;
        for (int k = 0; k < n; k++)
            sum += (double)(1 << k) * *element(inputs[k], result->ndim, index);
        if (*element(result, result->ndim, index) != sum)
            fail_msg("wrong element");
    } while (next_index(index, grd_sizes(result)));
}

static grd_tensor *zeros(grd_dims sizes, grd_dtype dtype)
{
    grd_tensor *t = grd_new(sizes, dtype, GRD_CPU);
    memset(t->data, 0, (size_t)(t->numel * t->itemsize));
    return t;
}

static grd_tensor *view(grd_tensor *base, grd_dims sizes, grd_dims strides, int64_t offset)
{
    return grd_new_view(base, sizes, strides, offset);
}

/* Prepares the iterator `it` for an elementwise operator of a and b. Returns the result tensor, which is `out` if that is not NULL. */
static grd_tensor *pair(struct grd_iter *it, grd_tensor *out, grd_tensor *a, grd_tensor *b, enum grd_type_rule rule)
{
    return grd_iter_elementwise(it, &(struct grd_iter_spec){.out = out, .inputs = {a, b}, .ninputs = 2, .rule = rule});
}

/* ---- Strides ---------------------------------------------------------------------------------------------------------------- */

static void random_layouts_agree_with_index_loops(void **state)
{
    (void)state;
    srand(1);
    for (int round = 0; round < 3000; round++) {
        grd_scope scope = grd_scope_open();
        int64_t sizes[6], ndim = below(6), most = round % 50 == 0 ? 12 : 5;
        int ninputs = 1 + (int)below(3);
        for (int64_t i = 0; i < ndim; i++)
            sizes[i] = below(20) == 0 ? 0 : 1 + below(most);
        struct grd_iter_spec spec = {.ninputs = ninputs, .rule = GRD_TYPE_PROMOTE};
        for (int k = 0; k < ninputs; k++) {
            int64_t own[6], dropped = k > 0 ? below(ndim + 1) : 0;
            for (int64_t i = dropped; i < ndim; i++)
                own[i] = k > 0 && below(4) == 0 ? 1 : sizes[i];
            spec.inputs[k] = random_view(grd_dims_from(own + dropped, ndim - dropped), true);
        }
        int how = (int)below(3);
        if (how == 1)
            spec.out = random_view(grd_dims_from(sizes, ndim), false);
        struct grd_iter it;
        grd_tensor *result = grd_iter_elementwise(&it, &spec);
        assert_string_equal(grd_error_message(), "");
        assert_true(how != 1 || result == spec.out);
        run_combined(&it, ninputs);
        check_combined(result, spec.inputs, ninputs);
        if (!it.few) {
            memset(result->storage->data, 0, (size_t)(how == 1 ? 0 : result->storage->bytes));
            grd_iter_run_serial(&it, combine, &ninputs);
            check_combined(result, spec.inputs, ninputs);
        }
        grd_scope_close(scope);
    }
}

static void an_input_may_also_be_the_output(void **state)
{
    (void)state;
    srand(2);
    for (int round = 0; round < 300; round++) {
        grd_scope scope = grd_scope_open();
        int64_t sizes[3] = {1 + below(6), 1 + below(6), 1 + below(6)};
        grd_tensor *self = random_view(grd_dims_from(sizes, 3), false), *other = random_view(grd_dims_from(sizes + 1, 2), true);
        double before[216];
        int64_t index[3] = {0}, n = 0;
        do
            before[n++] = *element(self, 3, index) + 2 * *element(other, 3, index);
        while (next_index(index, grd_sizes(self)));
        struct grd_iter it;
        assert_ptr_equal(pair(&it, self, self, other, GRD_TYPE_PROMOTE), self);
        run_combined(&it, 2);
        n = 0;
        do
            assert_true(*element(self, 3, index) == before[n++]);
        while (next_index(index, grd_sizes(self)));
        grd_scope_close(scope);
    }
}

static void count_calls(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    atomic_fetch_add(*(atomic_long *const *)params, 1);
    for (int64_t i = 0; i < n; i++)
        *(double *)(data[0] + i * strides[0]) = 3 * *(const double *)(data[1] + i * strides[1]);
}

static void kernel_calls_do_not_depend_on_the_thread_count(void **state)
{
    (void)state;
    const int threads[] = {1, 2, 3, 7};
    int saved = grd_num_threads();
    grd_tensor *base = grd_new(grd_dims(500, 700), GRD_FLOAT64, GRD_CPU);
    for (int64_t i = 0; i < base->numel; i++)
        ((double *)base->data)[i] = (double)i;
    grd_tensor *inputs[] = {base, view(base, grd_dims(500, 350), grd_dims(700, 2), 1), view(base, grd_dims(100000, 3), grd_dims(3, -1), 2)};
    for (int k = 0; k < 3; k++) {
        long calls = 0;
        for (int i = 0; i < 4; i++) {
            grd_set_num_threads(threads[i]);
            atomic_long counter = 0, *pointer = &counter;
            struct grd_iter it;
            grd_tensor *result = grd_iter_elementwise(&it, &(struct grd_iter_spec){.inputs = {inputs[k]}, .ninputs = 1});
            grd_iter_run(&it, count_calls, &pointer);
            int64_t index[2] = {0, 0};
            do
                if (*element(result, 2, index) != 3 * *element(inputs[k], 2, index))
                    fail_msg("wrong element");
            while (next_index(index, grd_sizes(result)));
            assert_true(i == 0 || counter == calls);
            calls = counter;
        }
    }
    grd_set_num_threads(saved);
}

static void record_order(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    int64_t *next = *(int64_t *const *)params;
    for (int64_t i = 0; i < n; i++)
        *(double *)(data[0] + i * strides[0]) = (double)(*next)++;
}

static void a_serial_run_visits_elements_in_order(void **state)
{
    (void)state;
    grd_tensor *t = grd_new(grd_dims(40, 3), GRD_FLOAT64, GRD_CPU), *skewed = view(t, grd_dims(40, 2), grd_dims(3, 1), 0);
    const int64_t strides[] = {24, 8};
    struct grd_iter it;
    grd_iter_raw(&it, grd_sizes(skewed), 1, (char *const[]){skewed->data}, (const int64_t *const[]){strides});
    int64_t next = 0, *pointer = &next;
    grd_iter_run_serial(&it, record_order, &pointer);
    for (int64_t i = 0; i < 40; i++)
        for (int64_t j = 0; j < 2; j++)
            assert_true(((double *)t->data)[3 * i + j] == (double)(2 * i + j));
}

static void adjacent_dimensions_are_merged(void **state)
{
    (void)state;
    struct grd_iter it;
    grd_tensor *t = zeros(grd_dims(40, 5, 6), GRD_FLOAT32), *column = zeros(grd_dims(40, 1, 1), GRD_FLOAT32);
    grd_tensor *turned = view(t, grd_dims(6, 40, 5), grd_dims(1, 30, 6), 0);
    pair(&it, NULL, t, t, GRD_TYPE_PROMOTE);
    assert_int_equal(it.ndim, 1);
    pair(&it, NULL, turned, turned, GRD_TYPE_PROMOTE);
    assert_int_equal(it.ndim, 1);
    pair(&it, NULL, t, column, GRD_TYPE_PROMOTE);
    assert_int_equal(it.ndim, 2);
    assert_int_equal(it.shape[0], 30);
    grd_tensor *scalar = zeros(GRD_NO_DIMS, GRD_FLOAT32);
    pair(&it, NULL, scalar, scalar, GRD_TYPE_PROMOTE);
    assert_int_equal(it.ndim, 0);
    assert_int_equal(it.numel, 1);
}

/* The strides of the results were recorded from PyTorch. */
static void results_keep_the_layout_of_inputs(void **state)
{
    (void)state;
    struct grd_iter it;
    grd_tensor *base = zeros(grd_dims(120), GRD_FLOAT32);
    grd_tensor *nhwc = view(base, grd_dims(2, 3, 4, 5), grd_dims(60, 1, 15, 3), 0),
               *channel = view(base, grd_dims(1, 3, 1, 1), grd_dims(3, 1, 1, 1), 0);
    grd_tensor *flat = view(base, grd_dims(3, 2), grd_dims(2, 1), 0), *turned = view(base, grd_dims(3, 2), grd_dims(1, 3), 0);
    grd_tensor *deep = view(base, grd_dims(4, 2, 3), grd_dims(1, 12, 4), 0), *row = view(base, grd_dims(3), grd_dims(1), 0);
    grd_tensor *gaps = view(base, grd_dims(6, 2), grd_dims(1, 12), 0), *reversed = view(base, grd_dims(4, 3), grd_dims(-3, -1), 11);
    grd_tensor *grown = view(base, grd_dims(2, 3), grd_dims(0, 1), 0), *image = view(base, grd_dims(2, 1, 4, 4), grd_dims(16, 1, 4, 1), 0);
    const struct {
        grd_tensor *a, *b;
        int64_t strides[4];
    } cases[] = {
        {nhwc, channel, {60, 1, 15, 3}}, {channel, nhwc, {60, 1, 15, 3}}, {nhwc, nhwc, {60, 1, 15, 3}},  {turned, flat, {1, 3}},
        {flat, turned, {2, 1}},          {deep, row, {1, 12, 4}},         {row, deep, {1, 12, 4}},       {gaps, gaps, {1, 6}},
        {reversed, reversed, {3, 1}},    {grown, grown, {3, 1}},          {image, image, {16, 1, 4, 1}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        grd_tensor *result = pair(&it, NULL, cases[i].a, cases[i].b, GRD_TYPE_PROMOTE);
        for (int d = 0; d < result->ndim; d++)
            if (result->sizes[d] != 1)
                assert_int_equal(result->strides[d], cases[i].strides[d]);
    }
}

/* ---- Dtypes ----------------------------------------------------------------------------------------------------------------- */

enum rank { SIZED, ZERO_DIM, NUMBER };

static grd_tensor *of_rank(grd_dtype dtype, enum rank rank)
{
    if (rank == SIZED)
        return zeros(grd_dims(2), dtype);
    grd_tensor *t = zeros(GRD_NO_DIMS, dtype);
    t->flags |= rank == NUMBER ? GRD_FLAG_NUMBER : 0;
    return t;
}

/* The promoted dtypes were recorded from torch.result_type. */
static const struct {
    grd_dtype a;
    enum rank a_rank;
    grd_dtype b;
    enum rank b_rank;
    grd_dtype result;
} promotions[] = {
    {GRD_BOOL, NUMBER, GRD_BOOL, NUMBER, GRD_BOOL},
    {GRD_BOOL, NUMBER, GRD_INT64, NUMBER, GRD_INT64},
    {GRD_BOOL, NUMBER, GRD_FLOAT32, NUMBER, GRD_FLOAT32},
    {GRD_INT64, NUMBER, GRD_FLOAT32, NUMBER, GRD_FLOAT32},
    {GRD_FLOAT32, NUMBER, GRD_COMPLEX64, NUMBER, GRD_COMPLEX64},
    {GRD_COMPLEX64, NUMBER, GRD_FLOAT32, NUMBER, GRD_COMPLEX64},
    {GRD_INT64, NUMBER, GRD_UINT8, SIZED, GRD_UINT8},
    {GRD_INT64, NUMBER, GRD_COMPLEX64, SIZED, GRD_COMPLEX64},
    {GRD_FLOAT32, NUMBER, GRD_INT8, SIZED, GRD_FLOAT32},
    {GRD_BOOL, NUMBER, GRD_BOOL, ZERO_DIM, GRD_BOOL},
    {GRD_BOOL, NUMBER, GRD_INT64, ZERO_DIM, GRD_INT64},
    {GRD_INT64, NUMBER, GRD_INT16, ZERO_DIM, GRD_INT16},
    {GRD_INT64, NUMBER, GRD_BFLOAT16, ZERO_DIM, GRD_BFLOAT16},
    {GRD_FLOAT32, NUMBER, GRD_UINT8, ZERO_DIM, GRD_FLOAT32},
    {GRD_FLOAT32, NUMBER, GRD_INT32, ZERO_DIM, GRD_FLOAT32},
    {GRD_COMPLEX64, NUMBER, GRD_UINT8, ZERO_DIM, GRD_COMPLEX64},
    {GRD_COMPLEX64, NUMBER, GRD_INT8, ZERO_DIM, GRD_COMPLEX64},
    {GRD_COMPLEX64, NUMBER, GRD_INT64, ZERO_DIM, GRD_COMPLEX64},
    {GRD_COMPLEX64, NUMBER, GRD_BFLOAT16, ZERO_DIM, GRD_COMPLEX64},
    {GRD_BOOL, SIZED, GRD_FLOAT32, NUMBER, GRD_FLOAT32},
    {GRD_UINT8, SIZED, GRD_INT64, NUMBER, GRD_UINT8},
    {GRD_UINT8, SIZED, GRD_FLOAT32, NUMBER, GRD_FLOAT32},
    {GRD_INT16, SIZED, GRD_BOOL, NUMBER, GRD_INT16},
    {GRD_INT16, SIZED, GRD_INT64, NUMBER, GRD_INT16},
    {GRD_INT32, SIZED, GRD_BOOL, NUMBER, GRD_INT32},
    {GRD_INT32, SIZED, GRD_COMPLEX64, NUMBER, GRD_COMPLEX64},
    {GRD_INT64, SIZED, GRD_FLOAT32, NUMBER, GRD_FLOAT32},
    {GRD_BOOL, SIZED, GRD_INT8, SIZED, GRD_INT8},
    {GRD_BOOL, SIZED, GRD_INT16, SIZED, GRD_INT16},
    {GRD_BOOL, SIZED, GRD_FLOAT16, SIZED, GRD_FLOAT16},
    {GRD_UINT8, SIZED, GRD_INT8, SIZED, GRD_INT16},
    {GRD_INT8, SIZED, GRD_UINT8, SIZED, GRD_INT16},
    {GRD_INT8, SIZED, GRD_FLOAT16, SIZED, GRD_FLOAT16},
    {GRD_INT16, SIZED, GRD_UINT8, SIZED, GRD_INT16},
    {GRD_INT16, SIZED, GRD_INT16, SIZED, GRD_INT16},
    {GRD_INT16, SIZED, GRD_INT64, SIZED, GRD_INT64},
    {GRD_INT16, SIZED, GRD_BFLOAT16, SIZED, GRD_BFLOAT16},
    {GRD_INT32, SIZED, GRD_BOOL, SIZED, GRD_INT32},
    {GRD_INT32, SIZED, GRD_UINT8, SIZED, GRD_INT32},
    {GRD_INT64, SIZED, GRD_BOOL, SIZED, GRD_INT64},
    {GRD_INT64, SIZED, GRD_INT32, SIZED, GRD_INT64},
    {GRD_BFLOAT16, SIZED, GRD_UINT8, SIZED, GRD_BFLOAT16},
    {GRD_BFLOAT16, SIZED, GRD_INT16, SIZED, GRD_BFLOAT16},
    {GRD_BFLOAT16, SIZED, GRD_INT32, SIZED, GRD_BFLOAT16},
    {GRD_FLOAT32, SIZED, GRD_INT8, SIZED, GRD_FLOAT32},
    {GRD_FLOAT64, SIZED, GRD_FLOAT64, SIZED, GRD_FLOAT64},
    {GRD_COMPLEX64, SIZED, GRD_BOOL, SIZED, GRD_COMPLEX64},
    {GRD_COMPLEX64, SIZED, GRD_INT32, SIZED, GRD_COMPLEX64},
    {GRD_BOOL, SIZED, GRD_INT16, ZERO_DIM, GRD_INT16},
    {GRD_BOOL, SIZED, GRD_BFLOAT16, ZERO_DIM, GRD_BFLOAT16},
    {GRD_INT8, SIZED, GRD_INT32, ZERO_DIM, GRD_INT8},
    {GRD_INT16, SIZED, GRD_FLOAT16, ZERO_DIM, GRD_FLOAT16},
    {GRD_INT16, SIZED, GRD_COMPLEX64, ZERO_DIM, GRD_COMPLEX64},
    {GRD_INT32, SIZED, GRD_BOOL, ZERO_DIM, GRD_INT32},
    {GRD_INT32, SIZED, GRD_INT64, ZERO_DIM, GRD_INT32},
    {GRD_FLOAT64, SIZED, GRD_BOOL, ZERO_DIM, GRD_FLOAT64},
    {GRD_FLOAT64, SIZED, GRD_COMPLEX64, ZERO_DIM, GRD_COMPLEX128},
    {GRD_COMPLEX128, SIZED, GRD_BOOL, ZERO_DIM, GRD_COMPLEX128},
    {GRD_UINT8, ZERO_DIM, GRD_COMPLEX64, NUMBER, GRD_COMPLEX64},
    {GRD_INT16, ZERO_DIM, GRD_FLOAT32, NUMBER, GRD_FLOAT32},
    {GRD_INT32, ZERO_DIM, GRD_COMPLEX64, NUMBER, GRD_COMPLEX64},
    {GRD_INT64, ZERO_DIM, GRD_FLOAT32, NUMBER, GRD_FLOAT32},
    {GRD_FLOAT64, ZERO_DIM, GRD_INT64, NUMBER, GRD_FLOAT64},
    {GRD_COMPLEX64, ZERO_DIM, GRD_BOOL, NUMBER, GRD_COMPLEX64},
    {GRD_COMPLEX64, ZERO_DIM, GRD_FLOAT32, NUMBER, GRD_COMPLEX64},
    {GRD_UINT8, ZERO_DIM, GRD_UINT8, SIZED, GRD_UINT8},
    {GRD_UINT8, ZERO_DIM, GRD_INT8, SIZED, GRD_INT8},
    {GRD_INT8, ZERO_DIM, GRD_FLOAT64, SIZED, GRD_FLOAT64},
    {GRD_INT16, ZERO_DIM, GRD_INT32, SIZED, GRD_INT32},
    {GRD_INT16, ZERO_DIM, GRD_FLOAT32, SIZED, GRD_FLOAT32},
    {GRD_INT32, ZERO_DIM, GRD_INT8, SIZED, GRD_INT8},
    {GRD_INT32, ZERO_DIM, GRD_INT32, SIZED, GRD_INT32},
    {GRD_INT64, ZERO_DIM, GRD_BFLOAT16, SIZED, GRD_BFLOAT16},
    {GRD_FLOAT16, ZERO_DIM, GRD_BFLOAT16, SIZED, GRD_BFLOAT16},
    {GRD_BFLOAT16, ZERO_DIM, GRD_BOOL, SIZED, GRD_BFLOAT16},
    {GRD_FLOAT32, ZERO_DIM, GRD_INT32, SIZED, GRD_FLOAT32},
    {GRD_FLOAT64, ZERO_DIM, GRD_INT64, SIZED, GRD_FLOAT64},
    {GRD_COMPLEX64, ZERO_DIM, GRD_INT16, SIZED, GRD_COMPLEX64},
    {GRD_COMPLEX64, ZERO_DIM, GRD_BFLOAT16, SIZED, GRD_COMPLEX64},
    {GRD_COMPLEX64, ZERO_DIM, GRD_FLOAT64, SIZED, GRD_COMPLEX128},
    {GRD_BOOL, ZERO_DIM, GRD_INT32, ZERO_DIM, GRD_INT32},
    {GRD_BOOL, ZERO_DIM, GRD_INT64, ZERO_DIM, GRD_INT64},
    {GRD_BOOL, ZERO_DIM, GRD_BFLOAT16, ZERO_DIM, GRD_BFLOAT16},
    {GRD_INT8, ZERO_DIM, GRD_INT8, ZERO_DIM, GRD_INT8},
    {GRD_INT8, ZERO_DIM, GRD_COMPLEX64, ZERO_DIM, GRD_COMPLEX64},
    {GRD_INT16, ZERO_DIM, GRD_BOOL, ZERO_DIM, GRD_INT16},
    {GRD_INT32, ZERO_DIM, GRD_BOOL, ZERO_DIM, GRD_INT32},
    {GRD_INT32, ZERO_DIM, GRD_INT64, ZERO_DIM, GRD_INT64},
    {GRD_INT64, ZERO_DIM, GRD_BOOL, ZERO_DIM, GRD_INT64},
    {GRD_INT64, ZERO_DIM, GRD_INT16, ZERO_DIM, GRD_INT64},
    {GRD_BFLOAT16, ZERO_DIM, GRD_INT8, ZERO_DIM, GRD_BFLOAT16},
    {GRD_BFLOAT16, ZERO_DIM, GRD_INT16, ZERO_DIM, GRD_BFLOAT16},
    {GRD_FLOAT32, ZERO_DIM, GRD_INT8, ZERO_DIM, GRD_FLOAT32},
    {GRD_FLOAT32, ZERO_DIM, GRD_FLOAT32, ZERO_DIM, GRD_FLOAT32},
    {GRD_COMPLEX64, ZERO_DIM, GRD_INT32, ZERO_DIM, GRD_COMPLEX64},
    {GRD_COMPLEX64, ZERO_DIM, GRD_BFLOAT16, ZERO_DIM, GRD_COMPLEX64},
};

static void promotion_follows_torch_result_type(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof promotions / sizeof *promotions; i++) {
        grd_tensor *a = of_rank(promotions[i].a, promotions[i].a_rank), *b = of_rank(promotions[i].b, promotions[i].b_rank);
        assert_int_equal(grd_result_type((grd_tensor *const[]){a, b}, 2), promotions[i].result);
        assert_int_equal(grd_result_type((grd_tensor *const[]){b, NULL, a}, 3), promotions[i].result);
        struct grd_iter it;
        assert_int_equal(pair(&it, NULL, a, b, GRD_TYPE_PROMOTE)->dtype, promotions[i].result);
        assert_int_equal(pair(&it, NULL, a, b, GRD_TYPE_COMPARE)->dtype, GRD_BOOL);
        grd_dtype floating = promotions[i].result < GRD_FLOAT16 ? GRD_FLOAT32 : promotions[i].result;
        assert_int_equal(pair(&it, NULL, a, b, GRD_TYPE_FLOAT)->dtype, floating);
        assert_int_equal(it.compute, floating);
    }
}

static void numbers_out_of_range_are_compared_in_a_wider_dtype(void **state)
{
    (void)state;
    const struct {
        grd_dtype dtype;
        int64_t number;
        grd_dtype compute;
    } cases[] = {{GRD_UINT8, 300, GRD_INT64}, {GRD_UINT8, -1, GRD_INT64},    {GRD_UINT8, 255, GRD_UINT8},    {GRD_INT8, -128, GRD_INT8},
                 {GRD_INT8, 128, GRD_INT64},  {GRD_UINT64, -1, GRD_FLOAT64}, {GRD_FLOAT32, 300, GRD_FLOAT32}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        grd_tensor *number = of_rank(GRD_INT64, NUMBER);
        memcpy(number->data, &cases[i].number, sizeof cases[i].number);
        struct grd_iter it;
        pair(&it, NULL, of_rank(cases[i].dtype, SIZED), number, GRD_TYPE_COMPARE);
        assert_int_equal(it.compute, cases[i].compute);
        assert_int_equal(it.wanted[0], GRD_BOOL);
    }
}

static void copy_bytes(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    size_t size = (size_t) * (const int64_t *)params;
    for (int64_t i = 0; i < n; i++)
        memcpy(data[0] + i * strides[0], data[1] + i * strides[1], size);
}

/* Checks that the iterator converts elements of dtype `from` to dtype `to`. If `of_input`, the iterator converts the input before the
 * kernel copies it. Otherwise the kernel copies elements of dtype `from`, and the iterator converts the kernel's output. */
static void check_conversion(grd_dtype from, grd_dtype to, int64_t step, bool of_input)
{
    enum { N = 1500 };
    int64_t size_from = grd_dtype_size(from), size_to = grd_dtype_size(to);
    grd_tensor *x = zeros(grd_dims(N * 2), from), *y = zeros(grd_dims(N * 2), to);
    for (int64_t i = 0; i < 2 * N; i++)
        grd_element_convert(&(double){(double)(i % 11) + (i % 2 ? 0.5 : 0)}, GRD_FLOAT64, x->data + i * size_from, from);
    int64_t in[] = {step * size_from}, out[] = {2 * size_to};
    struct grd_iter it;
    grd_iter_raw(&it, grd_dims(N), 2, (char *const[]){y->data, x->data}, (const int64_t *const[]){out, in});
    it.dtypes[0] = to;
    it.dtypes[1] = from;
    it.wanted[0] = it.wanted[1] = of_input ? to : from;
    it.converts = from != to;
    grd_iter_run(&it, copy_bytes, of_input ? &size_to : &size_from);
    for (int64_t i = 0; i < N; i++) {
        char expected[16];
        grd_element_convert(x->data + i * step * size_from, from, expected, to);
        if (memcmp(expected, y->data + i * 2 * size_to, (size_t)size_to) != 0)
            fail_msg("%s to %s: element %d differs", grd_dtype_name(from), grd_dtype_name(to), (int)i);
    }
}

static void every_pair_of_dtypes_is_converted(void **state)
{
    (void)state;
    for (int from = GRD_BOOL; from < GRD_QINT8; from++)
        for (int to = GRD_BOOL; to < GRD_QINT8; to++)
            for (int64_t step = 0; step < 3; step++) {
                grd_scope scope = grd_scope_open();
                check_conversion((grd_dtype)from, (grd_dtype)to, step, true);
                check_conversion((grd_dtype)from, (grd_dtype)to, step, false);
                grd_scope_close(scope);
            }
}

static void add_floats(int64_t n, char *const *data, const void *params)
{
    (void)params;
    for (int64_t i = 0; i < n; i++)
        ((float *)data[0])[i] = ((const float *)data[1])[i] + ((const float *)data[2])[i];
}

static void in_place_operators_compute_in_the_promoted_dtype(void **state)
{
    (void)state;
    grd_tensor *half = zeros(grd_dims(3, 400), GRD_FLOAT16), *single = zeros(grd_dims(400), GRD_FLOAT32);
    for (int64_t i = 0; i < half->numel; i++)
        grd_element_convert(&(double){(double)i}, GRD_FLOAT64, half->data + 2 * i, GRD_FLOAT16);
    for (int64_t i = 0; i < 400; i++)
        ((float *)single->data)[i] = (float)(2 * i);
    struct grd_iter it;
    assert_ptr_equal(pair(&it, half, half, single, GRD_TYPE_PROMOTE), half);
    assert_int_equal(it.compute, GRD_FLOAT32);
    const struct grd_map_kernel kernel = {add_floats, GRD_MAP_SIZES(4, 4, 4, 0), false};
    grd_iter_map(&it, &(struct grd_map){.kernel = &kernel});
    for (int64_t i = 0; i < half->numel; i++)
        assert_true(grd_scalar_read(half->data + 2 * i, GRD_FLOAT16).v.c.re == (double)(i + 2 * (i % 400)));
}

/* ---- Refusals ---------------------------------------------------------------------------------------------------------------- */

static const char overlap_text[] = "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single "
                                   "memory location. Please clone() the tensor before performing the operation.";
static const char internal_text[] = "unsupported operation: more than one element of the written-to tensor refers to a single memory "
                                    "location. Please clone() the tensor before performing the operation.";

static void mismatched_shapes_and_dtypes_are_refused(void **state)
{
    (void)state;
    struct grd_iter it;
    grd_tensor *f3 = zeros(grd_dims(3), GRD_FLOAT32), *f4 = zeros(grd_dims(4), GRD_FLOAT32), *f1 = zeros(grd_dims(1), GRD_FLOAT32);
    grd_tensor *long3 = zeros(grd_dims(3), GRD_INT64), *out = zeros(grd_dims(2), GRD_INT64), *complex3 = zeros(grd_dims(3), GRD_COMPLEX64);
    assert_ptr_equal(pair(&it, NULL, f3, f4, GRD_TYPE_PROMOTE), grd_failed);
    expect_error(GRD_ERROR_RUNTIME, "The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 0");
    pair(&it, f1, f1, f3, GRD_TYPE_PROMOTE);
    expect_error(GRD_ERROR_RUNTIME, "output with shape [1] doesn't match the broadcast shape [3]");
    pair(&it, long3, long3, f3, GRD_TYPE_PROMOTE);
    expect_error(GRD_ERROR_RUNTIME, "result type Float can't be cast to the desired output type Long");
    pair(&it, out, f3, f3, GRD_TYPE_PROMOTE);
    expect_error(GRD_ERROR_RUNTIME, "result type Float can't be cast to the desired output type Long");
    assert_int_equal(out->numel, 2);
    pair(&it, f3, complex3, f3, GRD_TYPE_PROMOTE);
    expect_error(GRD_ERROR_RUNTIME, "result type ComplexFloat can't be cast to the desired output type Float");
    assert_ptr_equal(pair(&it, out, long3, long3, GRD_TYPE_PROMOTE), out);
    assert_int_equal(out->numel, 3);
}

static void outputs_that_overlap_inputs_are_refused(void **state)
{
    (void)state;
    struct grd_iter it;
    grd_tensor *t = zeros(grd_dims(24), GRD_FLOAT32), *other = zeros(grd_dims(3), GRD_FLOAT32);
    grd_tensor *grown = view(other, grd_dims(4, 3), grd_dims(0, 1), 0);
    pair(&it, grown, grown, other, GRD_TYPE_PROMOTE);
    expect_error(GRD_ERROR_RUNTIME, internal_text);
    grd_tensor *folded = view(t, grd_dims(3, 3), grd_dims(2, 1), 0), *apart = view(t, grd_dims(2, 3), grd_dims(4, 3), 0);
    pair(&it, folded, folded, folded, GRD_TYPE_PROMOTE);
    expect_error(GRD_ERROR_RUNTIME, internal_text);
    pair(&it, apart, apart, apart, GRD_TYPE_PROMOTE);
    assert_true(grd_ok());
    const struct {
        grd_tensor *written, *read;
        bool overlap;
    } cases[] = {
        {view(t, grd_dims(4), grd_dims(1), 1), view(t, grd_dims(4), grd_dims(1), 0), true},
        {view(t, grd_dims(4), grd_dims(1), 4), view(t, grd_dims(4), grd_dims(1), 0), false},
        {view(t, grd_dims(8), grd_dims(2), 0), view(t, grd_dims(8), grd_dims(2), 1), false}, /* even and odd elements */
        {view(t, grd_dims(8), grd_dims(2), 0), view(t, grd_dims(8), grd_dims(2), 2), true},
        {view(t, grd_dims(4, 4), grd_dims(4, 1), 0), view(t, grd_dims(4, 4), grd_dims(1, 4), 0), true},  /* a matrix and its transpose */
        {view(t, grd_dims(4, 2), grd_dims(4, 1), 0), view(t, grd_dims(4, 2), grd_dims(4, 1), 2), false}, /* left and right half */
        {view(t, grd_dims(4, 3), grd_dims(4, 1), 0), view(t, grd_dims(4, 3), grd_dims(4, 1), 1), true},
        {view(t, grd_dims(6), grd_dims(1), 0), view(t, grd_dims(6), grd_dims(-1), 5), true}, /* the same elements in reverse order */
        {view(t, grd_dims(6), grd_dims(-1), 5), view(t, grd_dims(6), grd_dims(-1), 11), false},
        {view(t, grd_dims(6), grd_dims(1), 0), view(t, grd_dims(6), grd_dims(1), 0), false}, /* the same elements */
        {view(t, grd_dims(1, 6), grd_dims(9, 1), 0), view(t, grd_dims(6), grd_dims(1), 0), false},
        {view(t, grd_dims(6), grd_dims(1), 0), view(t, GRD_NO_DIMS, GRD_NO_DIMS, 2), true}, /* x.add_(x[2]) */
        {view(t, grd_dims(6), grd_dims(1), 0), view(t, GRD_NO_DIMS, GRD_NO_DIMS, 7), false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pair(&it, cases[i].written, cases[i].written, cases[i].read, GRD_TYPE_PROMOTE);
        if (cases[i].overlap)
            expect_error(GRD_ERROR_RUNTIME, overlap_text);
        assert_string_equal(grd_error_message(), "");
    }
    grd_tensor *none = view(t, grd_dims(0), grd_dims(1), 0);
    pair(&it, none, t, t, GRD_TYPE_PROMOTE); /* after resizing, the empty output `none` would overlap t */
    expect_error(GRD_ERROR_RUNTIME, overlap_text);
}

/* Tests the overlap checks on random pairs of views. The expected results come from a table that marks the elements of each view. */
static void overlap_checks_are_exact(void **state)
{
    (void)state;
    srand(4);
    for (int round = 0; round < 4000; round++) {
        grd_scope scope = grd_scope_open();
        grd_tensor *t = zeros(grd_dims(100), GRD_FLOAT64), *views[2];
        double *first = (double *)t->data;
        for (int k = 0; k < 2; k++) {
            int64_t sizes[2] = {1 + below(4), 1 + below(4)}, strides[2] = {below(9) - 4, below(9) - 4};
            if (k == 0 && strides[0] == 0)
                strides[0] = 5;
            if (k == 0 && strides[1] == 0)
                strides[1] = 7;
            views[k] = view(t, grd_dims_from(sizes, 2), grd_dims_from(strides, 2), 24 + below(12));
        }
        int marks[100] = {0};
        bool internal = false, shared = false, same = true;
        for (int k = 0; k < 2; k++) {
            int64_t index[2] = {0, 0};
            do {
                int *mark = &marks[element(views[k], 2, index) - first];
                internal |= k == 0 && *mark != 0;
                shared |= k == 1 && *mark == 1;
                *mark = k == 0 ? 1 : *mark;
            } while (next_index(index, grd_sizes(views[k])));
        }
        assert_int_equal(grd_check_no_internal_overlap(views[0]), !internal);
        grd_error_clear();
        same = views[0]->data == views[1]->data && views[0]->sizes[0] == views[1]->sizes[0] && views[0]->sizes[1] == views[1]->sizes[1];
        for (int d = 0; same && d < 2; d++)
            same = views[0]->sizes[d] == 1 || views[0]->strides[d] == views[1]->strides[d];
        if (!same && !(views[1]->numel == 1 && views[0]->numel == 1))
            assert_int_equal(grd_check_no_partial_overlap(views[0], views[1]), !shared);
        grd_error_clear();
        grd_scope_close(scope);
    }
}

static void planning_allocates_and_resizes_nothing(void **state)
{
    (void)state;
    grd_tensor *a = zeros(grd_dims(3), GRD_FLOAT32), *b = zeros(grd_dims(2, 1), GRD_FLOAT64), *out = zeros(grd_dims(2), GRD_FLOAT64);
    const struct grd_iter_spec spec = {.out = out, .inputs = {a, b}, .ninputs = 2};
    struct grd_iter it;
    struct grd_planned planned;
    const int64_t made = grd_memory_get_stats().allocated;
    assert_true(grd_iter_plan(&it, &planned, &spec));
    assert_int_equal(it.compute, GRD_FLOAT64);
    assert_int_equal(planned.dtype, GRD_FLOAT64);
    assert_int_equal(planned.ndim, 2);
    assert_int_equal(planned.sizes[0] * planned.sizes[1], 6);
    assert_int_equal(out->numel, 2);
    assert_int_equal(grd_memory_get_stats().allocated, made);
}

/* ---- Devices ------------------------------------------------------------------------------------------------------------------- */

static void never_called(int64_t n, char *const *data, const void *params)
{
    (void)n, (void)data, (void)params;
    fail_msg("a kernel ran on meta tensors");
}

static void operands_on_different_devices_are_refused(void **state)
{
    (void)state;
    struct grd_iter it;
    grd_tensor *meta = grd_new(grd_dims(4, 3), GRD_FLOAT32, GRD_META), *cpu = zeros(grd_dims(3), GRD_FLOAT32);
    grd_tensor *number = zeros(GRD_NO_DIMS, GRD_FLOAT32), *bare_meta = grd_new(GRD_NO_DIMS, GRD_FLOAT32, GRD_META);
    pair(&it, NULL, cpu, meta, GRD_TYPE_PROMOTE);
    expect_error(GRD_ERROR_RUNTIME, "Expected all tensors to be on the same device, but found at least two devices, cpu and meta!");
    pair(&it, NULL, cpu, bare_meta, GRD_TYPE_PROMOTE);
    expect_error(GRD_ERROR_RUNTIME, "Expected all tensors to be on the same device, but found at least two devices, cpu and meta!");
    pair(&it, cpu, meta, meta, GRD_TYPE_PROMOTE);
    expect_error(GRD_ERROR_RUNTIME, "Expected all tensors to be on the same device, but found at least two devices, meta and cpu!");
    grd_tensor *result = pair(&it, NULL, number, meta, GRD_TYPE_COMPARE);
    assert_int_equal(result->device, GRD_DEVICE_META);
    assert_int_equal(result->dtype, GRD_BOOL);
    assert_int_equal(result->numel, 12);
    const struct grd_map_kernel kernel = {never_called, GRD_MAP_SIZES(1, 4, 4, 0), false};
    grd_iter_map(&it, &(struct grd_map){.kernel = &kernel});
    assert_true(grd_ok());
}

/* An operand of one element, broadcast or zero-dimensional, gives the same results as a tensor of full size filled with its value. The dtypes
 * cover every element size. */
static void broadcast_elements_compute_as_filled_tensors(void **state)
{
    (void)state;
    const grd_dtype dtypes[] = {GRD_INT8, GRD_INT16, GRD_INT32, GRD_FLOAT16, GRD_FLOAT32, GRD_FLOAT64, GRD_COMPLEX64, GRD_COMPLEX128};
    const int64_t lengths[] = {0, 1, 3, 4, 33, 128, 600};
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) {
        for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
            const grd_dims sizes = grd_dims(lengths[l]);
            grd_tensor *many = grd_to(grd_remainder(grd_arange(grd_int(lengths[l])), grd_number(grd_int(23))), .dtype = dtypes[d]);
            grd_tensor *one = grd_to(grd_full(grd_dims(1), grd_int(3)), .dtype = dtypes[d]), *whole = grd_select(one, 0, 0);
            grd_tensor *filled = grd_full(sizes, grd_int(3), .dtype = dtypes[d]), *expected = grd_mul(filled, many);
            assert_true(grd_equal(grd_mul(grd_expand(one, sizes), many), expected));
            assert_true(grd_equal(grd_mul(many, grd_expand(one, sizes)), expected));
            assert_true(grd_equal(grd_mul(many, one), expected));
            assert_true(grd_equal(grd_mul(many, whole), expected));
            assert_true(grd_equal(grd_mul(whole, many), expected));
            assert_true(grd_equal(grd_mul(many, grd_number(grd_int(3))), expected));
            assert_true(grd_equal(grd_eq(many, grd_expand(one, sizes)), grd_eq(many, filled)));
            assert_true(grd_equal(grd_where(grd_eq(many, filled), many, grd_expand(one, sizes)), filled));
            assert_true(grd_ok());
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_SCOPE(random_layouts_agree_with_index_loops),
        IN_SCOPE(an_input_may_also_be_the_output),
        IN_SCOPE(kernel_calls_do_not_depend_on_the_thread_count),
        IN_SCOPE(a_serial_run_visits_elements_in_order),
        IN_SCOPE(adjacent_dimensions_are_merged),
        IN_SCOPE(results_keep_the_layout_of_inputs),
        IN_SCOPE(promotion_follows_torch_result_type),
        IN_SCOPE(numbers_out_of_range_are_compared_in_a_wider_dtype),
        IN_SCOPE(every_pair_of_dtypes_is_converted),
        IN_SCOPE(in_place_operators_compute_in_the_promoted_dtype),
        IN_SCOPE(mismatched_shapes_and_dtypes_are_refused),
        IN_SCOPE(outputs_that_overlap_inputs_are_refused),
        IN_SCOPE(overlap_checks_are_exact),
        IN_SCOPE(planning_allocates_and_resizes_nothing),
        IN_SCOPE(operands_on_different_devices_are_refused),
        IN_SCOPE(broadcast_elements_compute_as_filled_tensors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
