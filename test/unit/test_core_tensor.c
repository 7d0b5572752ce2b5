/* Tests tensors: their memory and its lifetime, views and their bounds, memory given by the caller, errors and failed allocations. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/new.h"
#include "core/resize.h"
#include "core/tensor.h"
#include "support.h"

static int64_t allocated(void)
{
    return grd_memory_get_stats().allocated;
}

static int64_t blocks(void)
{
    return grd_memory_get_stats().blocks;
}

static void expect_failure(grd_tensor *t, grd_error_code code, const char *message)
{
    assert_ptr_equal(t, grd_failed);
    expect_error(code, message);
}

/* Opens a scope and makes a tensor before the tests run. The first scope and the first tensor make the thread allocate memory that it keeps, which
 * the tests would report as a leak. */
static int warm_up(void **state)
{
    (void)state;
    grd_scope scope = grd_scope_open();
    grd_new(grd_dims(1), GRD_FLOAT32, GRD_CPU);
    grd_scope_close(scope);
    return 0;
}

static void a_small_tensor_is_allocated_as_one_block(void **state)
{
    (void)state;
    int64_t before = blocks(), bytes = allocated();
    grd_scope scope = grd_scope_open();
    grd_tensor *t = grd_new(grd_dims(4, 8), GRD_FLOAT64, GRD_CPU);
    assert_int_equal(blocks(), before + 1);
    assert_int_equal((uintptr_t)t->data % GRD_DATA_ALIGNMENT, 0);
    grd_tensor *large = grd_new(grd_dims(4, 4096), GRD_FLOAT32, GRD_CPU);
    assert_int_equal(blocks(), before + 3);
    assert_int_equal((uintptr_t)large->data % GRD_DATA_ALIGNMENT, 0);
    memset(large->data, 1, 4 * 4096 * sizeof(float));
    grd_scope_close(scope);
    assert_int_equal(blocks(), before);
    assert_int_equal(allocated(), bytes);
}

static void a_view_keeps_its_base_alive(void **state)
{
    (void)state;
    int64_t before = blocks();
    for (int64_t n = 4; n <= 4096; n *= 1024) {
        grd_scope scope = grd_scope_open();
        grd_tensor *t = grd_new(grd_dims(n), GRD_INT32, GRD_CPU);
        memset(t->data, 0, (size_t)n * 4);
        ((int32_t *)t->data)[n - 1] = 42;
        grd_tensor *detached = grd_keep(grd_new_detached(t));
        grd_tensor *view = grd_keep(grd_new_view(t, grd_dims(2), grd_dims(1), n - 2));
        grd_tensor *second = grd_keep(grd_new_view(view, grd_dims(1), grd_dims(1), n - 1));
        assert_ptr_equal(grd_view_base(second), t);
        assert_null(grd_view_base(detached));
        assert_true(grd_has(detached, GRD_FLAG_DETACHED) && grd_same_storage(detached, second));
        grd_scope_close(scope);
        assert_int_equal(grd_item_int64(second), 42);
        grd_drop(view);
        grd_drop(second);
        assert_int_equal(((int32_t *)grd_data(detached))[n - 1], 42);
        grd_drop(detached);
        assert_int_equal(blocks(), before);
    }
}

static void sizes_strides_and_offset_are_reported(void **state)
{
    (void)state;
    grd_scope scope = grd_scope_open();
    grd_tensor *t = grd_new(grd_dims(2, 3, 4), GRD_FLOAT16, GRD_CPU);
    assert_int_equal(grd_ndim(t), 3);
    assert_int_equal(grd_numel(t), 24);
    assert_int_equal(grd_size(t, -1), 4);
    assert_int_equal(grd_stride(t, 0), 12);
    assert_int_equal(grd_storage_bytes(t), 48);
    assert_true(grd_is_contiguous(t) && !grd_is_channels_last(t));
    assert_int_equal(grd_tensor_dtype(t), GRD_FLOAT16);
    assert_int_equal(grd_tensor_device(t).type, GRD_DEVICE_CPU);
    assert_int_equal(grd_tensor_layout(t), GRD_STRIDED);
    grd_bump_version(t);
    grd_tensor *view = grd_new_view(t, grd_dims(4, 3), grd_dims(-1, 4), 3);
    assert_int_equal(grd_offset(view), 3);
    assert_int_equal(grd_tensor_version(view), 1);
    assert_ptr_equal(grd_data(view), t->data + 6);
    assert_false(grd_is_contiguous(view));
    assert_int_equal(grd_size(t, 3), 0);
    expect_error(GRD_ERROR_INDEX, "Dimension out of range (expected to be in range of [-3, 2], but got 3)");
    assert_int_equal(grd_stride(grd_new(GRD_NO_DIMS, GRD_BOOL, GRD_CPU), 0), 0);
    expect_error(GRD_ERROR_INDEX, "Dimension specified as 0 but tensor has no dimensions");
    assert_int_equal(grd_numel(NULL), 1);
    expect_error(GRD_ERROR_TYPE, "grd_numel: argument 't' must be a tensor, not NULL");
    grd_tensor *image = grd_new_strided(grd_dims(2, 3, 4, 5), grd_dims(60, 1, 15, 3), GRD_FLOAT32, GRD_CPU);
    assert_true(grd_is_channels_last(image) && grd_is_channels_last(grd_new_like(image, GRD_INT64)));
    grd_tensor *reversed = grd_new_strided(grd_dims(3), grd_dims(-2), GRD_FLOAT32, GRD_CPU);
    assert_int_equal(grd_offset(reversed), 4);
    assert_int_equal(grd_storage_bytes(reversed), 20);
    grd_scope_close(scope);
}

static void a_tensor_has_at_most_64_dimensions(void **state)
{
    (void)state;
    int64_t before = blocks(), sizes[GRD_MAX_DIMS + 1];
    for (int i = 0; i <= GRD_MAX_DIMS; i++)
        sizes[i] = i % 16 == 0 ? 2 : 1;
    grd_scope scope = grd_scope_open();
    grd_tensor *t = grd_new(grd_dims_from(sizes, GRD_MAX_DIMS), GRD_INT8, GRD_CPU);
    assert_int_equal(t->numel, 16);
    assert_int_equal(blocks(), before + 2);
    grd_tensor *view = grd_new_view(t, grd_sizes(t), grd_strides(t), 0);
    assert_true(grd_is_contiguous(view));
    memset(t->data, 3, 16);
    int16_t copy[16];
    grd_to_memory(view, copy, GRD_INT16);
    assert_int_equal(copy[15], 3);
    expect_failure(grd_new(grd_dims_from(sizes, GRD_MAX_DIMS + 1), GRD_INT8, GRD_CPU), GRD_ERROR_RUNTIME,
                   "too many dimensions: 65, the limit is 64");
    grd_scope_close(scope);
    assert_int_equal(blocks(), before);
}

static void invalid_sizes_dtypes_and_devices_are_refused(void **state)
{
    (void)state;
    int64_t huge = (int64_t)1 << 61;
    expect_failure(grd_new(grd_dims(-1), GRD_FLOAT32, GRD_CPU), GRD_ERROR_RUNTIME,
                   "Trying to create tensor with negative dimension -1: [-1]");
    expect_failure(grd_new(grd_dims(huge), GRD_FLOAT32, GRD_META), GRD_ERROR_RUNTIME,
                   "Storage size calculation overflowed with sizes=[2305843009213693952]");
    expect_failure(grd_new_strided(grd_dims(2, 3), grd_dims(huge, huge), GRD_FLOAT32, GRD_META), GRD_ERROR_RUNTIME,
                   "Storage size calculation overflowed with sizes=[2, 3] and strides=[2305843009213693952, 2305843009213693952]");
    expect_failure(grd_new_strided(grd_dims(2, 3), grd_dims(1), GRD_FLOAT32, GRD_CPU), GRD_ERROR_RUNTIME,
                   "dimensionality of sizes (2) must match dimensionality of strides (1)");
    expect_failure(grd_new(grd_dims(2), (grd_dtype)77, GRD_CPU), GRD_ERROR_TYPE, "77 is not a dtype");
    expect_failure(grd_new(grd_dims(2), GRD_INT8, (grd_device){9, -1}), GRD_ERROR_RUNTIME, "unknown device type 9");
    assert_ptr_equal(grd_new(grd_dims(huge), GRD_INT8, GRD_CPU), grd_failed);
    assert_int_equal(grd_error_get(), GRD_ERROR_MEMORY);
    grd_error_clear();
    grd_scope scope = grd_scope_open();
    grd_tensor *meta = grd_new(grd_dims(huge), GRD_INT8, GRD_META);
    assert_null(grd_data(meta));
    assert_int_equal(grd_storage_bytes(meta), huge);
    expect_failure(grd_new_like(meta, GRD_FLOAT64), GRD_ERROR_RUNTIME,
                   "Storage size calculation overflowed with sizes=[2305843009213693952]");
    grd_scope_close(scope);
}

static void views_outside_the_storage_are_refused(void **state)
{
    (void)state;
    grd_scope scope = grd_scope_open();
    int64_t huge = (int64_t)1 << 40;
    grd_tensor *t = grd_new(grd_dims(4), GRD_FLOAT32, GRD_CPU);
    expect_failure(grd_new_view(t, grd_dims(10), grd_dims(1), 0), GRD_ERROR_RUNTIME,
                   "setStorage: sizes [10], strides [1], storage offset 0, and itemsize 4 requiring a storage size of 40 are out of bounds "
                   "for storage of size 16");
    expect_failure(grd_new_view(t, grd_dims(2, 3), grd_dims(4, 1), 1), GRD_ERROR_RUNTIME,
                   "setStorage: sizes [2, 3], strides [4, 1], storage offset 1, and itemsize 4 requiring a storage size of 32 are out of "
                   "bounds for storage of size 16");
    expect_failure(grd_new_view(t, grd_dims(3), grd_dims(-1), 1), GRD_ERROR_RUNTIME,
                   "setStorage: sizes [3], strides [-1], storage offset 1, and itemsize 4 reach 1 elements before the storage");
    expect_failure(grd_new_view(t, grd_dims(1), grd_dims(1), -1), GRD_ERROR_RUNTIME, "Tensor: invalid storage offset -1");
    expect_failure(grd_new_view(t, grd_dims(1), grd_dims(1, 1), 0), GRD_ERROR_RUNTIME, "mismatch in length of strides and shape");
    expect_failure(grd_new_view(t, grd_dims(2), grd_dims(1), INT64_MAX), GRD_ERROR_RUNTIME,
                   "Storage size calculation overflowed with sizes=[2] and strides=[1]");
    assert_ptr_equal(grd_new_view(t, grd_dims(huge, huge), grd_dims(0, 0), 0), grd_failed);
    grd_error_clear();
    grd_tensor *flipped = grd_new_view(t, grd_dims(4), grd_dims(-1), 3);
    assert_ptr_equal(flipped->data, t->data + 12);
    assert_int_equal(grd_new_view(t, grd_dims(0), grd_dims(1), 100)->numel, 0);
    assert_int_equal(grd_new_view(t, grd_dims(huge), grd_dims(0), 3)->numel, huge);
    grd_thread.grad_off = 1u << GRD_KEY_AUTOGRAD;
    grd_tensor *quiet = grd_new_view(t, grd_dims(1), grd_dims(1), 0);
    grd_thread.grad_off = 0;
    assert_true(grd_has(quiet, GRD_FLAG_NO_GRAD_VIEW) && !grd_has(flipped, GRD_FLAG_NO_GRAD_VIEW));
    grd_mark_requires_grad(t, true);
    assert_true(grd_marked_requires_grad(t) && (t->keys >> GRD_KEY_AUTOGRAD & 1));
    grd_tensor *view = grd_new_view(t, grd_dims(1), grd_dims(1), 0);
    assert_true(!grd_marked_requires_grad(view) && view->keys == 1u << GRD_KEY_CPU);
    assert_ptr_equal(grd_new_view(grd_failed, grd_dims(1), grd_dims(1), 0), grd_failed);
    grd_scope_close(scope);
}

static int released;

static void count_release(void *context)
{
    released += *(int *)context;
}

static void from_memory_borrows_and_releases_memory(void **state)
{
    (void)state;
    int one = 1;
    float data[6] = {0, 1, 2, 3, 4, 5};
    released = 0;
    grd_scope scope = grd_scope_open();
    grd_tensor *t = grd_from_memory(data, grd_dims(3, 2), grd_dims(1, 3), 0, GRD_FLOAT32, count_release, &one);
    grd_tensor *view = grd_keep(grd_new_view(t, grd_dims(1), grd_dims(1), 5));
    assert_int_equal(grd_storage_bytes(t), sizeof data);
    double copy[6];
    grd_to_memory(t, copy, GRD_FLOAT64);
    assert_true(copy[1] == 3 && copy[4] == 2);
    assert_false(grd_resize(t, grd_dims(7)));
    expect_error(GRD_ERROR_RUNTIME, "Trying to resize storage that is not resizable");
    grd_scope_close(scope);
    assert_int_equal(released, 0);
    assert_true(grd_item_double(view) == 5);
    grd_drop(view);
    assert_int_equal(released, 1);
    expect_failure(grd_from_memory(data, grd_dims(2), grd_dims(-1), 0, GRD_FLOAT32, count_release, &one), GRD_ERROR_RUNTIME,
                   "grd_from_memory: offset and strides reach 1 elements before the data");
    expect_failure(grd_from_memory(data, grd_dims(3), grd_dims(-1), 1, GRD_FLOAT32, count_release, &one), GRD_ERROR_RUNTIME,
                   "grd_from_memory: offset and strides reach 1 elements before the data");
    expect_failure(grd_from_memory(data, grd_dims(2), (grd_dims){0}, INT64_MIN, GRD_FLOAT32, NULL, NULL), GRD_ERROR_RUNTIME,
                   "grd_from_memory: offset and strides reach 9223372036854775808 elements before the data");
    expect_failure(grd_from_memory(data, grd_dims(2), (grd_dims){0}, INT64_MAX, GRD_FLOAT32, NULL, NULL), GRD_ERROR_RUNTIME,
                   "grd_from_memory: offset 9223372036854775807 is out of range");
    expect_failure(grd_from_memory(NULL, grd_dims(0), (grd_dims){0}, 1, GRD_FLOAT32, NULL, NULL), GRD_ERROR_TYPE,
                   "grd_from_memory: argument 'data' must not be NULL");
    grd_tensor *back = grd_from_memory(data, grd_dims(3), grd_dims(-2), 5, GRD_FLOAT32, NULL, NULL);
    for (int64_t i = 0; i < 3; i++)
        assert_true(grd_item_double(grd_select(back, 0, i)) == (double)data[5 - 2 * i]);
    assert_int_equal(grd_offset(back), 5);
    assert_int_equal(grd_storage_bytes(back), 6 * (int64_t)sizeof(float));
    expect_failure(grd_from_memory(NULL, grd_dims(2), (grd_dims){0, NULL}, 0, GRD_FLOAT32, NULL, NULL), GRD_ERROR_TYPE,
                   "grd_from_memory: argument 'data' must not be NULL");
    assert_int_equal(released, 1);
    scope = grd_scope_open();
    assert_int_equal(grd_from_memory(NULL, grd_dims(0, 2), (grd_dims){0, NULL}, 0, GRD_FLOAT32, NULL, NULL)->numel, 0);
    assert_false(grd_resize(grd_from_memory(data, grd_dims(6), (grd_dims){0, NULL}, 0, GRD_FLOAT32, NULL, NULL), grd_dims(7)));
    grd_error_clear();
    grd_scope_close(scope);
}

static void from_storage_views_any_part_of_a_storage(void **state)
{
    (void)state;
    grd_scope scope = grd_scope_open();
    grd_tensor *x = grd_ones(grd_dims(4), .requires_grad = true);
    grd_tensor *bits = grd_from_storage(grd_slice(x, .start = grd_int(1)), grd_dims(2, 2), grd_dims(-1, 2), 1, GRD_INT32);
    assert_true(grd_same_storage(x, bits) && grd_storage_identity(x) == grd_storage_identity(bits));
    assert_true(grd_storage_identity(x) != grd_storage_identity(grd_ones(grd_dims(4))));
    assert_true(grd_item_int64(grd_select(grd_select(bits, 0, 1), 0, 1)) == 0x3F800000);
    assert_true(grd_view_base(bits) == NULL && !grd_requires_grad(bits) && grd_is_leaf(bits));
    expect_failure(
        grd_from_storage(x, grd_dims(3), grd_dims(1), 0, GRD_FLOAT64), GRD_ERROR_RUNTIME,
        "setStorage: sizes [3], strides [1], storage offset 0, and itemsize 8 requiring a storage size of 24 are out of bounds for "
        "storage of size 16");
    expect_failure(grd_from_storage(x, grd_dims(1), grd_dims(1), -1, GRD_UINT8), GRD_ERROR_RUNTIME, "Tensor: invalid storage offset -1");
    expect_failure(grd_from_storage(NULL, grd_dims(1), grd_dims(1), 0, GRD_UINT8), GRD_ERROR_TYPE,
                   "grd_from_storage: argument 'owner' must be a tensor, not NULL");
    expect_failure(grd_from_storage(x, grd_dims(1), grd_dims(1), 0, GRD_DTYPE_NONE), GRD_ERROR_TYPE, "0 is not a dtype");
    _Alignas(8) char memory[17] = {0};
    grd_tensor *odd = grd_from_memory(memory + 1, grd_dims(16), (grd_dims){0, NULL}, 0, GRD_UINT8, NULL, NULL);
    expect_failure(grd_from_storage(odd, grd_dims(1), grd_dims(1), 0, GRD_FLOAT64), GRD_ERROR_RUNTIME,
                   "the storage is not aligned to elements of float64");
    grd_tensor *meta = grd_empty(grd_dims(2), .device = GRD_META);
    assert_true(grd_is_meta(grd_from_storage(meta, grd_dims(8), grd_dims(1), 0, GRD_UINT8)));
    grd_scope_close(scope);
}

static void item_reads_the_only_element(void **state)
{
    (void)state;
    grd_scope scope = grd_scope_open();
    uint64_t big = UINT64_MAX;
    assert_true(grd_item_double(grd_from_data(&big, GRD_NO_DIMS, GRD_UINT64)) == 0x1p64);
    grd_tensor *number = grd_number(grd_complex_number(1, 2));
    assert_true(grd_has(number, GRD_FLAG_NUMBER) && number->dtype == GRD_COMPLEX128);
    assert_true(grd_item(number).v.c.im == 2);
    assert_int_equal(grd_item_int64(grd_number(grd_float(-2.5))), -2);
    assert_int_equal(grd_item(grd_number(grd_bool(true))).kind, GRD_SCALAR_BOOL);
    expect_failure(grd_number((grd_scalar){0}), GRD_ERROR_TYPE, "grd_number: a number is required");
    assert_true(isnan(grd_item(grd_new(grd_dims(3), GRD_INT8, GRD_CPU)).v.c.re));
    expect_error(GRD_ERROR_RUNTIME, "a Tensor with 3 elements cannot be converted to Scalar");
    assert_true(isnan(grd_item_double(grd_new(GRD_NO_DIMS, GRD_INT8, GRD_META))));
    expect_error(GRD_ERROR_RUNTIME, "Tensor.item() cannot be called on meta tensors");
    grd_item(NULL);
    expect_error(GRD_ERROR_TYPE, "grd_item: argument 't' must be a tensor, not NULL");
    int8_t byte;
    grd_to_memory(grd_new(GRD_NO_DIMS, GRD_INT8, GRD_META), &byte, GRD_INT8);
    expect_error(GRD_ERROR_NOT_IMPLEMENTED, "Cannot copy out of meta tensor; no data!");
    uint8_t bools[2] = {0, 200};
    assert_int_equal(grd_from_data(bools, grd_dims(2), GRD_BOOL)->data[1], 1);
    expect_failure(grd_from_data(NULL, grd_dims(2), GRD_BOOL), GRD_ERROR_TYPE, "grd_from_data: argument 'data' must not be NULL");
    grd_scope_close(scope);
}

static void to_memory_copies_in_row_major_order(void **state)
{
    (void)state;
    grd_scope scope = grd_scope_open();
    int32_t data[24], copy[24];
    for (int i = 0; i < 24; i++)
        data[i] = i;
    grd_tensor *t = grd_from_data(data, grd_dims(24), GRD_INT32);
    grd_to_memory(grd_new_view(t, grd_dims(2, 3, 4), grd_dims(-12, 4, -1), 15), copy, GRD_INT32);
    for (int i = 0; i < 24; i++)
        assert_int_equal(copy[i], 15 - i / 12 * 12 + i / 4 % 3 * 4 - i % 4);
    grd_to_memory(grd_new_view(t, grd_dims(3, 2), grd_dims(0, 5), 1), copy, GRD_INT32);
    assert_memory_equal(copy, ((const int32_t[]){1, 6, 1, 6, 1, 6}), 24);
    grd_scope_close(scope);
}

static void resize_keeps_the_elements(void **state)
{
    (void)state;
    int64_t before = blocks();
    grd_scope scope = grd_scope_open();
    int16_t data[2] = {7, 8};
    grd_tensor *t = grd_from_data(data, grd_dims(2), GRD_INT16);
    assert_true(grd_resize(t, grd_dims(10, 100)));
    assert_int_equal(grd_storage_bytes(t), 2000);
    assert_int_equal(((int16_t *)t->data)[1], 8);
    memset(t->data, 1, 2000);
    assert_true(grd_resize(t, grd_dims(2, 1, 1, 1, 1, 1)));
    assert_int_equal(grd_storage_bytes(t), 2000);
    assert_true(grd_is_contiguous(t) && grd_numel(t) == 2);
    assert_true(grd_resize(t, grd_dims(4000)));
    memset(t->data, 1, 8000);
    grd_tensor *view = grd_new_view(t, grd_dims(1), grd_dims(1), 3999);
    assert_true(grd_resize(view, grd_dims(0, 3)));
    assert_false(grd_resize(view, grd_dims(2)));
    expect_error(GRD_ERROR_RUNTIME, "Trying to resize storage that is not resizable");
    assert_int_equal(grd_ndim(view), 2);
    assert_false(grd_resize(view, grd_dims(-2)));
    grd_error_clear();
    assert_false(grd_resize(t, grd_dims(INT64_MAX)));
    expect_error(GRD_ERROR_RUNTIME, "Storage size calculation overflowed with sizes=[9223372036854775807]");
    grd_tensor *meta = grd_new(grd_dims(2), GRD_FLOAT32, GRD_META);
    assert_true(grd_resize(meta, grd_dims(5)) && grd_storage_bytes(meta) == 20 && meta->data == NULL);
    grd_scope_close(scope);
    assert_int_equal(blocks(), before);
}

/* An empty tensor may grow into memory that directly follows its own block. The new memory must still be freed as a separate block. */
static void memory_next_to_a_resized_tensor_is_freed_separately(void **state)
{
    (void)state;
    enum { EMPTY = 400 };
    grd_memory_trim();
    int64_t before = blocks();
    grd_scope scope = grd_scope_open();
    for (int i = 0; i < EMPTY; i++) {
        grd_tensor *t = grd_new(grd_dims(0), GRD_UINT8, GRD_CPU);
        assert_true(grd_resize(t, grd_dims(200 + i % 64)));
    }
    grd_scope_close(scope);
    assert_int_equal(blocks(), before);
}

static void the_failed_tensor_is_immortal(void **state)
{
    (void)state;
    assert_true(grd_is_failed(grd_failed));
    for (int i = 0; i < 100; i++)
        grd_drop(grd_failed);
    for (int i = 0; i < 100; i++)
        grd_object_drop(grd_failed);
    assert_true(isnan(grd_item_double(grd_failed)));
    assert_int_equal(grd_numel(grd_failed), 1);
    assert_true(isnan(*(float *)grd_data(grd_failed)));
    assert_false(grd_resize(grd_failed, grd_dims(2)));
    grd_drop(NULL);
    assert_null(grd_keep(NULL));
    grd_error_clear();
}

/* Calls functions that make several allocations each. */
static void make_everything(void)
{
    static const int64_t ones[] = {1, 1, 1, 1, 1, 1, 1};
    static float data[1000];
    grd_dims seven = grd_dims_from(ones, 7);
    grd_tensor *t = grd_new(seven, GRD_FLOAT32, GRD_CPU);
    grd_new_view(t, seven, seven, 0);
    grd_new_detached(t);
    grd_new_like(t, GRD_FLOAT64);
    grd_new_strided(grd_dims(1000), grd_dims(3), GRD_FLOAT32, GRD_CPU);
    grd_from_data(data, grd_dims(1000), GRD_FLOAT32);
    grd_from_memory(data, seven, seven, 0, GRD_FLOAT32, NULL, NULL);
    grd_number(grd_int(1));
    grd_tensor *small = grd_new(grd_dims(3), GRD_INT8, GRD_CPU);
    grd_resize(small, grd_dims(1, 1, 1, 1, 1, 5000));
}

static void failed_allocations_leak_nothing(void **state)
{
    (void)state;
    int64_t before = allocated(), blocks_before = blocks();
    bool failed = true;
    for (int64_t n = 1; failed; n++) {
        grd_scope scope = grd_scope_open();
        grd_memory_fail_at(n, n % 2 == 0);
        make_everything();
        grd_memory_fail_at(0, false);
        failed = !grd_ok();
        assert_true(!failed || grd_error_get() == GRD_ERROR_MEMORY);
        grd_error_clear();
        grd_scope_close(scope);
        assert_int_equal(blocks(), blocks_before);
        assert_int_equal(allocated(), before);
        assert_true(n < 1000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_small_tensor_is_allocated_as_one_block),
        cmocka_unit_test(a_view_keeps_its_base_alive),
        cmocka_unit_test(sizes_strides_and_offset_are_reported),
        cmocka_unit_test(a_tensor_has_at_most_64_dimensions),
        cmocka_unit_test(invalid_sizes_dtypes_and_devices_are_refused),
        cmocka_unit_test(views_outside_the_storage_are_refused),
        cmocka_unit_test(from_memory_borrows_and_releases_memory),
        cmocka_unit_test(from_storage_views_any_part_of_a_storage),
        cmocka_unit_test(item_reads_the_only_element),
        cmocka_unit_test(to_memory_copies_in_row_major_order),
        cmocka_unit_test(resize_keeps_the_elements),
        cmocka_unit_test(memory_next_to_a_resized_tensor_is_freed_separately),
        cmocka_unit_test(the_failed_tensor_is_immortal),
        cmocka_unit_test(failed_allocations_leak_nothing),
    };
    return cmocka_run_group_tests(tests, warm_up, NULL);
}
