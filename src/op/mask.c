/* Masks: filling where one is set, selection in two passes (count, then move), and the coordinates of what is not zero.
 *
 * Invariant: a mask is cut at fixed points, so that each piece knows its place in the result whatever the number of threads. */
#include <string.h>

#include "base/parallel.h"
#include "core/iter.h"
#include "gen/impl/index.h"
#include "gen/impl/view.h"
#include "gradus/library.h"
#include "kernel/table.h"
#include "op/common.h"
#include "op/copy.h"
#include "op/indexed.h"

enum { MASK_BLOCK = 16 * 1024 }; /* elements that one thread counts and moves */

/* ---- Filling ------------------------------------------------------------------------------------------------------------- */

static bool check_mask(const grd_tensor *mask)
{
    return mask->dtype == GRD_BOOL ||
           grd_raise(GRD_ERROR_RUNTIME, "only boolean masks are supported, but got mask with dtype %s", grd_dtype_name(mask->dtype));
}

grd_tensor *op_masked_fill(grd_tensor *out, grd_tensor *self, grd_tensor *mask, grd_scalar value)
{
    _Alignas(16) char element[16];
    if (!check_mask(mask) || !grd_check_same_device(grd_tensors(self, mask)) || !grd_scalar_write(value, self->dtype, element) ||
        !grd_check_repeated_out(out, "masked_fill_", "tensor[mask] = scalar"))
        return grd_failed;
    struct grd_iter it;
    grd_tensor *result = grd_iter_elementwise(&it, &(struct grd_iter_spec){.out = out,
                                                                           .inputs = {self, mask},
                                                                           .ninputs = 2,
                                                                           .rule = GRD_TYPE_KEEP,
                                                                           .dtype = self->dtype,
                                                                           .name = "masked_fill",
                                                                           .row_major = true,
                                                                           .repeats = true});
    if (!grd_pending())
        (out != NULL && !grd_has(out, GRD_FLAG_CONTIGUOUS) ? grd_iter_run_serial : grd_iter_run)(
            &it, grd_kernel_of_size(grd_kernels->index->masked_fill, self), element);
    return result;
}

grd_tensor *op_masked_fill_tensor(grd_tensor *out, grd_tensor *self, grd_tensor *mask, grd_tensor *value)
{
    if (value->ndim > 0)
        return grd_fail(GRD_ERROR_RUNTIME, "only a 0-dimensional value tensor is supported, but got tensor with %d dimension(s).",
                        value->ndim);
    grd_scalar number = grd_is_meta(value) ? grd_int(0) : grd_scalar_read(value->data, value->dtype);
    return op_masked_fill(out, self, mask, number);
}

/* ---- Counting and moving ------------------------------------------------------------------------------------------------- */

/* A mask and the number of its set elements before each block of MASK_BLOCK. */
struct counted_mask {
    const uint8_t *data;
    int64_t n, total;
    int64_t *before;
    /* What move_blocks does with it: */
    grd_mask_move *move;
    char *to;
    const char *from;
    int64_t itemsize;
    bool expands; /* the dense list is `from` */
};

static void count_blocks(int64_t begin, int64_t end, void *context)
{
    struct counted_mask *mask = context;
    for (int64_t block = begin; block < end; block++) {
        int64_t first = block * MASK_BLOCK, n = mask->n - first < MASK_BLOCK ? mask->n - first : MASK_BLOCK;
        mask->before[block] = grd_kernels->index->count(n, mask->data + first);
    }
}

static int64_t mask_blocks(const struct counted_mask *mask)
{
    return mask->n == 0 ? 0 : (mask->n - 1) / MASK_BLOCK + 1;
}

/* `t` is a contiguous bool tensor. */
static bool count_mask(const grd_tensor *t, struct counted_mask *ret)
{
    *ret = (struct counted_mask){.data = (const uint8_t *)t->data, .n = t->numel};
    int64_t blocks = mask_blocks(ret);
    ret->before = grd_pool_array(blocks + 1, sizeof *ret->before);
    if (ret->before == NULL)
        return false;
    grd_parallel_for(0, blocks, 1, count_blocks, ret);
    for (int64_t i = 0; i < blocks; i++) {
        int64_t here = ret->before[i];
        ret->before[i] = ret->total;
        ret->total += here;
    }
    return true;
}

static void move_blocks(int64_t begin, int64_t end, void *context)
{
    struct counted_mask *mask = context;
    for (int64_t block = begin; block < end; block++) {
        int64_t first = block * MASK_BLOCK, n = mask->n - first < MASK_BLOCK ? mask->n - first : MASK_BLOCK;
        int64_t dense = mask->before[block] * mask->itemsize, sparse = first * mask->itemsize;
        mask->move(n, mask->data + first, mask->to + (mask->expands ? sparse : dense), mask->from + (mask->expands ? dense : sparse));
    }
}

/* ---- Selection ----------------------------------------------------------------------------------------------------------- */

/* The sizes two tensors broadcast to. */
static bool common_sizes(grd_dims a, const grd_tensor *mask, int64_t *ret_sizes, grd_dims *ret)
{
    int64_t n;
    if (!check_mask(mask) || !grd_check_has_data(mask) || !grd_shape_broadcast(grd_sizes(mask), a, ret_sizes, &n))
        return false;
    *ret = grd_dims_from(ret_sizes, n);
    return true;
}

grd_tensor *op_masked_select(grd_tensor *self, grd_tensor *mask)
{
    int64_t storage[GRD_MAX_DIMS];
    grd_dims sizes;
    if (!common_sizes(grd_sizes(self), mask, storage, &sizes) || !grd_check_has_data(self))
        return grd_failed;
    grd_tensor *from = op_expand(self, sizes), *where = op_expand(mask, sizes);
    struct counted_mask counted;
    if (!grd_pending())
        from = grd_contiguous_as(from, GRD_DTYPE_NONE);
    if (!grd_pending())
        where = grd_contiguous_as(where, GRD_DTYPE_NONE);
    if (grd_pending() || !count_mask(where, &counted))
        return grd_failed;
    grd_tensor *result = grd_new(grd_dims(counted.total), self->dtype, grd_device_of(self));
    if (!grd_is_failed(result)) {
        counted.move = grd_kernels->index->compress[grd_index_size(self->itemsize)];
        counted.to = result->data;
        counted.from = from->data;
        counted.itemsize = self->itemsize;
        grd_parallel_for(0, mask_blocks(&counted), 1, move_blocks, &counted);
    }
    return result;
}

grd_tensor *op_hidden_masked_select_backward(grd_tensor *grad, grd_dims sizes, grd_tensor *mask)
{
    int64_t storage[GRD_MAX_DIMS];
    grd_dims common;
    if (!common_sizes(sizes, mask, storage, &common) || !grd_check_has_data(grad))
        return grd_failed;
    grd_tensor *where = op_expand(mask, common), *from = grd_contiguous_as(grad, GRD_DTYPE_NONE);
    struct counted_mask counted;
    if (!grd_pending())
        where = grd_contiguous_as(where, GRD_DTYPE_NONE);
    if (grd_pending() || !count_mask(where, &counted))
        return grd_failed;
    if (counted.total != grad->numel)
        return grd_fail(GRD_ERROR_RUNTIME, "the mask has %lld elements set where the gradient has %lld", (long long)counted.total,
                        (long long)grad->numel);
    grd_tensor *result = grd_new_zeros(common, grad->dtype, grd_device_of(grad));
    if (!grd_is_failed(result)) {
        counted.move = grd_kernels->index->expand[grd_index_size(grad->itemsize)];
        counted.to = result->data;
        counted.from = from->data;
        counted.itemsize = grad->itemsize;
        counted.expands = true;
        grd_parallel_for(0, mask_blocks(&counted), 1, move_blocks, &counted);
    }
    return result;
}

/* ---- nonzero ------------------------------------------------------------------------------------------------------------- */

struct coordinates {
    const struct counted_mask *mask;
    int64_t *to; /* a column after the other, of `total` rows */
    int64_t total;
    grd_dims sizes;
};

/* Rows of coordinates: the position is counted like an odometer, so that nothing is divided per element. */
static void write_coordinates(int64_t begin, int64_t end, void *context)
{
    const struct coordinates *c = context;
    int64_t ndim = c->sizes.n, at[GRD_MAX_DIMS];
    for (int64_t block = begin; block < end; block++) {
        int64_t first = block * MASK_BLOCK, last = first + MASK_BLOCK < c->mask->n ? first + MASK_BLOCK : c->mask->n, rest = first;
        int64_t *row = c->to + c->mask->before[block];
        for (int64_t d = ndim - 1; d >= 0; d--) {
            at[d] = rest % c->sizes.data[d];
            rest /= c->sizes.data[d];
        }
        for (int64_t i = first; i < last; i++) {
            if (c->mask->data[i]) {
                for (int64_t d = 0; d < ndim; d++)
                    row[d * c->total] = at[d];
                row++;
            }
            for (int64_t d = ndim - 1; d >= 0 && ++at[d] == c->sizes.data[d]; d--)
                at[d] = 0;
        }
    }
}

grd_tensor *op_nonzero(grd_tensor *self)
{
    if (!grd_check_has_data(self))
        return grd_failed;
    grd_tensor *set = grd_contiguous_as(self, GRD_BOOL);
    struct counted_mask counted;
    if (grd_pending() || !count_mask(set, &counted))
        return grd_failed;
    grd_tensor *result = grd_new_strided(grd_dims(counted.total, self->ndim), grd_dims(1, counted.total), GRD_INT64, grd_device_of(self));
    if (!grd_is_failed(result) && self->ndim > 0) {
        struct coordinates c = {&counted, (int64_t *)(void *)result->data, counted.total, grd_sizes(self)};
        grd_parallel_for(0, mask_blocks(&counted), 1, write_coordinates, &c);
    }
    return result;
}
