/* Computes with sizes and strides. No tensor is read or written here.
 *
 * Invariant: products of sizes are checked for overflow. Functions that return void require sizes that grd_shape_numel has accepted. */
#include "core/shape.h"

#include <string.h>

#include "base/integer.h"
#include "base/text.h"

enum { LIST_CHARS = 512 }; /* length of the text of a list in an error message */

static bool has_zero(grd_dims sizes)
{
    for (int64_t i = 0; i < sizes.n; i++)
        if (sizes.data[i] == 0)
            return true;
    return false;
}

/* Multiplies the sizes from sizes[first] to the last one and writes the product to *ret_product. A size of 0 counts as 1. Returns false if the
 * product overflows. */
static bool product_from(grd_dims sizes, int64_t first, int64_t *ret_product)
{
    int64_t product = 1;
    for (int64_t i = first; i < sizes.n; i++)
        if (__builtin_mul_overflow(product, grd_greatest(sizes.data[i], 1), &product))
            return false;
    *ret_product = product;
    return true;
}

/* The slow path of grd_shape_numel, for a negative size, too many sizes, or a product that overflows. Returns false, with the error raised, except
 * in one case: if a size is 0 and the contiguous strides do not overflow, the tensor is valid and empty. In this case writes 0 to *ret_numel and
 * returns true. */
static bool numel_slow(grd_dims sizes, int64_t *ret_numel)
{
    char list[LIST_CHARS];
    if (sizes.n < 0 || sizes.n > GRD_MAX_DIMS)
        return grd_raise(GRD_ERROR_RUNTIME, "too many dimensions: %lld, the limit is %d", (long long)sizes.n, GRD_MAX_DIMS);
    for (int64_t i = 0; i < sizes.n; i++)
        if (sizes.data[i] < 0)
            return grd_raise(GRD_ERROR_RUNTIME, "Trying to create tensor with negative dimension %lld: %s", (long long)sizes.data[i],
                             grd_format_int64s(list, sizeof list, sizes.data, sizes.n));
    int64_t product;
    if (!has_zero(sizes))
        return grd_raise(GRD_ERROR_RUNTIME, "Storage size calculation overflowed with sizes=%s",
                         grd_format_int64s(list, sizeof list, sizes.data, sizes.n));
    if (!product_from(sizes, 1, &product))
        return grd_raise(GRD_ERROR_RUNTIME, "Stride calculation overflowed with sizes=%s",
                         grd_format_int64s(list, sizeof list, sizes.data, sizes.n));
    *ret_numel = 0;
    return true;
}

bool grd_shape_numel(grd_dims sizes, int64_t *ret_numel)
{
    bool odd = (uint64_t)sizes.n > GRD_MAX_DIMS, empty = false;
    int64_t product = 1;
    for (int64_t i = 0; i < sizes.n && !odd; i++) {
        empty |= sizes.data[i] == 0;
        odd = sizes.data[i] < 0 || __builtin_mul_overflow(product, grd_greatest(sizes.data[i], 1), &product);
    }
    if (GRD_UNLIKELY(odd))
        return numel_slow(sizes, ret_numel);
    *ret_numel = empty ? 0 : product;
    return true;
}

void grd_shape_contiguous_strides(grd_dims sizes, int64_t *ret_strides)
{
    int64_t stride = 1;
    for (int64_t i = sizes.n - 1; i >= 0; i--) {
        ret_strides[i] = stride;
        if (i > 0)
            stride = grd_wrapping_product(stride, grd_greatest(sizes.data[i], 1));
    }
}

bool grd_shape_is_contiguous(grd_dims sizes, const int64_t *strides)
{
    int64_t expected = 1;
    bool follows = true;
    for (int64_t i = sizes.n - 1; i >= 0; i--) {
        int64_t size = sizes.data[i];
        if (size == 0)
            return true;
        if (size != 1 && follows) {
            follows = strides[i] == expected;
            expected = grd_wrapping_product(expected, size);
        }
    }
    return follows;
}

/* True if there are no gaps between elements when the dimensions are nested in the order `order`, innermost first. `n` is the length of `order`.
 * Dimensions that are not in `order` must have size 1. */
static bool has_no_gaps(grd_dims sizes, const int64_t *strides, const int *order, int64_t n)
{
    int64_t expected = 1;
    for (int64_t i = 0; i < n; i++) {
        const int64_t size = sizes.data[order[i]];
        if (size != 1 && strides[order[i]] != expected)
            return false;
        expected = grd_wrapping_product(expected, size);
    }
    return true;
}

/* Writes the strides of a dense tensor whose dimensions are nested in the order `order`, innermost first. */
static void strides_in_order(grd_dims sizes, const int *order, int64_t *ret_strides)
{
    int64_t stride = 1;
    for (int64_t i = 0; i < sizes.n; i++) {
        ret_strides[order[i]] = stride;
        stride = grd_wrapping_product(stride, grd_greatest(sizes.data[order[i]], 1));
    }
}

/* The numbers of the dimensions in channels-last order, innermost first: for 4 and for 5 dimensions. */
static const int channels_last_order[2][5] = {{1, 3, 2, 0}, {1, 4, 3, 2, 0}};

bool grd_shape_is_channels_last(grd_dims sizes, const int64_t *strides)
{
    return (sizes.n == 4 || sizes.n == 5) && has_no_gaps(sizes, strides, channels_last_order[sizes.n - 4], sizes.n);
}

void grd_shape_channels_last_strides(grd_dims sizes, int64_t *ret_strides)
{
    strides_in_order(sizes, channels_last_order[sizes.n - 4], ret_strides);
}

bool grd_shape_suggests_channels_last(grd_dims sizes, const int64_t *strides)
{
    if ((sizes.n != 4 && sizes.n != 5) || has_zero(sizes) || strides[1] == 0)
        return false;
    int64_t least = 0; /* smallest stride, in elements, that the next dimension outwards may have */
    for (int64_t i = 0; i < sizes.n; i++) {
        const int64_t dim = channels_last_order[sizes.n - 4][i];
        if (strides[dim] < least || (dim == 0 && least == strides[1]))
            return false;
        least = grd_wrapping_product(strides[dim], sizes.data[dim]);
    }
    return true;
}

/* Returns the absolute value of a stride; INT64_MAX for INT64_MIN. */
static int64_t magnitude(int64_t stride)
{
    return stride == INT64_MIN ? INT64_MAX : stride < 0 ? -stride : stride;
}

/* Writes the numbers of the dimensions of size 2 or more, sorted by the absolute value of their strides, smallest first. Returns how many there
 * are. */
static int64_t sort_by_stride(grd_dims sizes, const int64_t *strides, int *ret_order)
{
    int64_t n = 0;
    for (int dim = (int)sizes.n - 1; dim >= 0; dim--) {
        if (sizes.data[dim] <= 1)
            continue;
        int64_t place = n++;
        for (; place > 0 && magnitude(strides[ret_order[place - 1]]) > magnitude(strides[dim]); place--)
            ret_order[place] = ret_order[place - 1];
        ret_order[place] = dim;
    }
    return n;
}

bool grd_shape_is_dense(grd_dims sizes, const int64_t *strides)
{
    int order[GRD_MAX_DIMS];
    return has_zero(sizes) || has_no_gaps(sizes, strides, order, sort_by_stride(sizes, strides, order));
}

bool grd_shape_may_overlap(grd_dims sizes, const int64_t *strides)
{
    if (has_zero(sizes))
        return false;
    int order[GRD_MAX_DIMS];
    int64_t reach = 0; /* largest offset from the first element, in elements, that the dimensions seen so far reach */
    int64_t n = sort_by_stride(sizes, strides, order);
    for (int64_t i = 0; i < n; i++) {
        int64_t stride = magnitude(strides[order[i]]), span;
        if (stride <= reach)
            return true;
        if (__builtin_mul_overflow(stride, sizes.data[order[i]] - 1, &span) || __builtin_add_overflow(reach, span, &reach))
            return i + 1 < n;
    }
    return false;
}

bool grd_shape_extent(grd_dims sizes, const int64_t *strides, int64_t *ret_lowest, int64_t *ret_highest)
{
    int64_t lowest = 0, highest = 0;
    const bool empty = has_zero(sizes);
    for (int64_t i = 0; i < sizes.n && !empty; i++) {
        int64_t span;
        if (__builtin_mul_overflow(sizes.data[i] - 1, strides[i], &span) ||
            __builtin_add_overflow(span < 0 ? lowest : highest, span, span < 0 ? &lowest : &highest))
            return false;
    }
    *ret_lowest = lowest;
    *ret_highest = highest;
    return true;
}

/* Compares dimensions `a` and `b` for grd_shape_order. Returns a negative number if `a` belongs further inside than `b`, a positive number if `a`
 * belongs further outside, and 0 if no operand decides the order. If several of the `n` operands decide it, the first of them counts. */
static int compare_dims(grd_dims sizes, const int64_t (*strides)[GRD_MAX_DIMS], int n, int a, int b)
{
    for (int i = 0; i < n; i++) {
        const int64_t stride_a = magnitude(strides[i][a]), stride_b = magnitude(strides[i][b]);
        if (stride_a == 0 || stride_b == 0)
            continue;
        if (stride_a != stride_b)
            return stride_a < stride_b ? -1 : 1;
        if (sizes.data[a] > sizes.data[b])
            return 1;
    }
    return 0;
}

/* Note [Ambiguous strides]
 * An operand that is broadcast along a dimension does not decide where this dimension belongs. "Not decided" is not a transitive relation, so
 * different sorting algorithms can give different results. This insertion sort gives PyTorch's order: a dimension moves inwards past each dimension
 * that belongs outside it, and skips each dimension for which nothing is decided. */
void grd_shape_order(grd_dims sizes, const int64_t (*strides)[GRD_MAX_DIMS], int n, int *ret_order)
{
    const int ndim = (int)sizes.n;
    for (int i = 0; i < ndim; i++)
        ret_order[i] = ndim - 1 - i;
    for (int i = 1; i < ndim; i++) {
        int moving = i;
        for (int j = i - 1; j >= 0; j--) {
            const int comparison = compare_dims(sizes, strides, n, ret_order[j], ret_order[moving]);
            if (comparison < 0)
                break;
            if (comparison > 0) {
                const int outer = ret_order[j];
                ret_order[j] = ret_order[moving];
                ret_order[moving] = outer;
                moving = j;
            }
        }
    }
}

void grd_shape_ordered_strides(grd_dims sizes, const int64_t (*strides)[GRD_MAX_DIMS], int n, int64_t *ret_strides)
{
    int order[GRD_MAX_DIMS];
    grd_shape_order(sizes, strides, n, order);
    strides_in_order(sizes, order, ret_strides);
}

void grd_shape_dense_strides(grd_dims sizes, const int64_t *strides, int64_t *ret_strides)
{
    int64_t own[1][GRD_MAX_DIMS];
    memcpy(own[0], strides, (size_t)sizes.n * sizeof *strides);
    grd_shape_ordered_strides(sizes, (const int64_t(*)[GRD_MAX_DIMS])own, 1, ret_strides);
}

void grd_shape_refuse_dim(int64_t dim, int64_t ndim)
{
    int64_t n = grd_greatest(ndim, 1);
    grd_raise(GRD_ERROR_INDEX, "Dimension out of range (expected to be in range of [%lld, %lld], but got %lld)", (long long)-n,
              (long long)(n - 1), (long long)dim);
}

bool grd_shape_dim_mask(grd_dims dims, int64_t ndim, uint64_t *ret_mask)
{
    uint64_t mask = 0;
    if (dims.data == NULL || dims.n == 0)
        mask = ndim == 0 ? 0 : UINT64_MAX >> (64 - ndim);
    for (int64_t i = 0; dims.data != NULL && i < dims.n; i++) {
        int64_t dim = 0;
        if (!grd_shape_wrap_dim(dims.data[i], ndim, &dim))
            return false;
        if (mask >> dim & 1)
            return grd_raise(GRD_ERROR_RUNTIME, "dim %lld appears multiple times in the list of dims", (long long)dim);
        mask |= (uint64_t)1 << dim;
    }
    *ret_mask = mask;
    return true;
}

bool grd_shape_broadcast(grd_dims a, grd_dims b, int64_t *ret_sizes, int64_t *ret_ndim)
{
    int64_t ndim = a.n > b.n ? a.n : b.n;
    for (int64_t i = ndim - 1; i >= 0; i--) {
        int64_t in_a = i - (ndim - a.n), in_b = i - (ndim - b.n);
        int64_t size_a = in_a >= 0 ? a.data[in_a] : 1, size_b = in_b >= 0 ? b.data[in_b] : 1;
        if (size_a != size_b && size_a != 1 && size_b != 1)
            return grd_raise(GRD_ERROR_RUNTIME,
                             "The size of tensor a (%lld) must match the size of tensor b (%lld) at non-singleton dimension %lld",
                             (long long)size_a, (long long)size_b, (long long)i);
        ret_sizes[i] = size_a == 1 ? size_b : size_a;
    }
    *ret_ndim = ndim;
    return true;
}

static bool check_shape(grd_dims sizes, const char *name)
{
    if (sizes.n < 0 || sizes.n > GRD_MAX_DIMS || (sizes.n > 0 && sizes.data == NULL))
        return grd_raise(GRD_ERROR_VALUE, "broadcast_shapes: %s is not a list of at most %d sizes", name, GRD_MAX_DIMS);
    return true;
}

bool grd_broadcast_shapes(grd_dims_view a, grd_dims_view b, int64_t *ret_sizes, int64_t *ret_ndim)
{
    if (ret_sizes == NULL || ret_ndim == NULL)
        return grd_raise(GRD_ERROR_VALUE, "broadcast_shapes: ret_sizes and ret_ndim must not be NULL");
    return check_shape(a, "a") && check_shape(b, "b") && grd_shape_broadcast(a, b, ret_sizes, ret_ndim);
}

/* A chunk is a group of adjacent old dimensions that could be merged into one dimension with one stride. The loop over i finds the chunks from the
 * innermost dimension outwards. `chunk` is the number of elements in the current chunk. The view exists only if each chunk has a group of adjacent new
 * dimensions with as many elements. */
bool grd_shape_view_strides(grd_dims sizes, const int64_t *strides, grd_dims new_sizes, int64_t *ret_strides)
{
    if (has_zero(sizes)) {
        if (grd_dims_equal(sizes, new_sizes))
            memcpy(ret_strides, strides, (size_t)sizes.n * sizeof *strides);
        else
            grd_shape_contiguous_strides(new_sizes, ret_strides);
        return true;
    }
    int64_t next = new_sizes.n - 1; /* index of the next new dimension to get a stride, from the innermost outwards */
    int64_t chunk_stride = sizes.n > 0 ? strides[sizes.n - 1] : 1, chunk = 1;
    for (int64_t i = sizes.n - 1; i >= 0; i--) {
        chunk *= sizes.data[i];
        bool ends = i == 0 || (sizes.data[i - 1] != 1 && strides[i - 1] != grd_wrapping_product(chunk, chunk_stride));
        if (!ends)
            continue;
        int64_t placed = 1;
        while (next >= 0 && (placed < chunk || new_sizes.data[next] == 1)) {
            ret_strides[next] = grd_wrapping_product(placed, chunk_stride);
            placed *= new_sizes.data[next--];
        }
        if (placed != chunk)
            return false;
        if (i > 0) {
            chunk_stride = strides[i - 1];
            chunk = 1;
        }
    }
    for (; next >= 0 && sizes.n == 0; next--)
        ret_strides[next] = 1;
    return next < 0;
}

bool grd_shape_infer(grd_dims sizes, int64_t numel, int64_t *ret_sizes)
{
    char list[LIST_CHARS];
    int64_t inferred = -1, product = 1;
    bool empty = has_zero(sizes), overflow = false;
    if (sizes.n > GRD_MAX_DIMS)
        return grd_raise(GRD_ERROR_RUNTIME, "too many dimensions: %lld, the limit is %d", (long long)sizes.n, GRD_MAX_DIMS);
    for (int64_t i = 0; i < sizes.n; i++) {
        int64_t size = sizes.data[i];
        if (size == -1 && inferred >= 0)
            return grd_raise(GRD_ERROR_RUNTIME, "only one dimension can be inferred");
        if (size < -1)
            return grd_raise(GRD_ERROR_RUNTIME, "invalid shape dimension %lld at index %lld of shape %s", (long long)size, (long long)i,
                             grd_format_int64s(list, sizeof list, sizes.data, sizes.n));
        if (size == -1)
            inferred = i;
        else if (!empty)
            overflow |= __builtin_mul_overflow(product, size, &product);
    }
    if (empty)
        product = 0;
    if (inferred >= 0 && product == 0 && numel == 0)
        return grd_raise(GRD_ERROR_RUNTIME,
                         "cannot reshape tensor of 0 elements into shape %s because the unspecified dimension size -1 can be any value and "
                         "is ambiguous",
                         grd_format_int64s(list, sizeof list, sizes.data, sizes.n));
    bool fits = inferred >= 0 ? product != 0 && numel % product == 0 : product == numel;
    if (overflow || !fits)
        return grd_raise(GRD_ERROR_RUNTIME, "shape '%s' is invalid for input of size %lld",
                         grd_format_int64s(list, sizeof list, sizes.data, sizes.n), (long long)numel);
    for (int64_t i = 0; i < sizes.n; i++)
        ret_sizes[i] = i == inferred ? numel / product : sizes.data[i];
    return true;
}
