/* Implements masked_fill, masked_select, masked_scatter and nonzero. masked_select and nonzero take two passes over the mask. The first pass counts
 * the set elements of the mask, and the second copies the selected elements or writes their coordinates.
 *
 * Invariant: a mask is divided into blocks at fixed positions. The number of set elements before a block says where the block's elements go, so the
 * result does not depend on the number of threads. */
#include <string.h>

#include "base/parallel.h"
#include "core/dtype.h"
#include "core/geometry.h"
#include "core/iter.h"
#include "gen/uses/op/mask.h"
#include "core/scalar.h"
#include "core/shape.h"
#include "core/tensor.h"
#include "gradus/library.h"
#include "kernel/table.h"
#include "op/copy.h"
#include "op/index_loops.h"
#include "op/plan.h"
#include "op/checks.h"
#include "op/composite.h"
#include "op/sizes.h"

enum { MASK_BLOCK = 16 * 1024 }; /* number of mask elements that one task counts and moves */

/* ---- masked_fill --------------------------------------------------------------------------------------------------------- */

static bool check_fill_mask(const grd_tensor *mask)
{
    return mask->dtype == GRD_BOOL || grd_raise(GRD_ERROR_RUNTIME, "masked_fill_ only supports boolean masks, but got mask with dtype %s",
                                                grd_dtype_c_name((grd_dtype)mask->dtype));
}

static grd_tensor *expanded(grd_tensor *t, grd_dims sizes)
{
    return grd_same_sizes(t, sizes) ? t : op_expand(t, sizes);
}

bool plan_masked_fill(struct grd_plan *p, grd_tensor *self, grd_tensor *mask, grd_scalar value)
{
    int64_t storage[GRD_MAX_DIMS], n;
    if (!check_fill_mask(mask) || !grd_scalar_write(value, self->dtype, p->state) ||
        !grd_check_repeated_out(p->out, "masked_fill_", "tensor[mask] = scalar") ||
        !grd_shape_broadcast(grd_sizes(self), grd_sizes(mask), storage, &n))
        return false;
    const grd_dims sizes = grd_dims_from(storage, n);
    p->repeats = p->any_strides = p->aligned = true;
    return (p->out == NULL || grd_check_inplace_shape(p->out, sizes)) && grd_plan_reads(p, expanded(self, sizes)) &&
           grd_plan_reads(p, expanded(mask, sizes)) && grd_plan_result(p, sizes, (grd_dtype)self->dtype);
}

void run_masked_fill(const struct grd_plan *p)
{
    const grd_tensor *const operands[] = {p->results[0], p->in[0], p->in[1]};
    int64_t strides[GRD_LENGTH(operands)][GRD_MAX_DIMS];
    for (int i = 0; i < GRD_LENGTH(operands); i++)
        for (int64_t d = 0; d < operands[i]->ndim; d++)
            strides[i][d] = grd_byte_stride(operands[i], d);
    struct grd_iter it;
    grd_iter_raw(&it, grd_sizes(operands[0]), GRD_LENGTH(operands),
                 (char *const[]){operands[0]->data, operands[1]->data, operands[2]->data},
                 (const int64_t *const[]){strides[0], strides[1], strides[2]});
    (grd_has(operands[0], GRD_FLAG_CONTIGUOUS) ? grd_iter_run : grd_iter_run_serial)(
        &it, grd_kernel_of_size(grd_kernels->index->masked_fill, operands[0]), p->state);
}

bool plan_masked_fill_tensor(struct grd_plan *p, grd_tensor *self, grd_tensor *mask, grd_tensor *value)
{
    if (value->ndim > 0)
        return grd_raise(GRD_ERROR_RUNTIME, "only a 0-dimensional value tensor is supported, but got tensor with %d dimension(s).",
                         value->ndim);
    return plan_masked_fill(p, self, mask, grd_int(0));
}

bool check_masked_fill_tensor(struct grd_plan *p, grd_tensor *self, grd_tensor *mask, grd_tensor *value)
{
    (void)mask;
    return grd_check_has_data(value) && grd_scalar_write(grd_scalar_read(value->data, value->dtype), self->dtype, p->state);
}

/* ---- Counting and moving the selected elements --------------------------------------------------------------------------- */

/* Describes a mask. `total` is the number of its set elements. before[i] is the number of set elements before block i, where a block has MASK_BLOCK
 * elements. */
struct counted_mask {
    const uint8_t *data;
    int64_t n, total;
    int64_t *before;
    const struct grd_plan *plan;
};

static struct counted_mask *mask_of(const struct grd_plan *p)
{
    return (struct counted_mask *)(uintptr_t)p->state;
}

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

/* Counts the set elements of `t`, a contiguous bool tensor, and stores the counts in the plan's state. Returns false if memory runs out. */
static bool count_mask(struct grd_plan *p, const grd_tensor *t)
{
    struct counted_mask *mask = mask_of(p);
    *mask = (struct counted_mask){.data = (const uint8_t *)t->data, .n = t->numel, .plan = p};
    int64_t blocks = mask_blocks(mask);
    mask->before = grd_pool_array(blocks + 1, sizeof *mask->before);
    if (mask->before == NULL)
        return false;
    grd_parallel_for(0, blocks, 1, count_blocks, mask);
    for (int64_t i = 0; i < blocks; i++) {
        int64_t here = mask->before[i];
        mask->before[i] = mask->total;
        mask->total += here;
    }
    return true;
}

/* Moves elements for the blocks [begin, end) of the mask. If the result has the size of the mask, copies adjacent elements of the input to the
 * selected elements of the result. Otherwise copies the selected elements of the input to adjacent elements of the result. */
static void move_blocks(int64_t begin, int64_t end, void *context)
{
    const struct counted_mask *mask = context;
    const grd_tensor *to = mask->plan->results[0], *from = mask->plan->in[0];
    const bool expands = to->numel == mask->n;
    grd_mask_move *const *moves = expands ? grd_kernels->index->expand : grd_kernels->index->compress;
    for (int64_t block = begin; block < end; block++) {
        int64_t first = block * MASK_BLOCK, n = mask->n - first < MASK_BLOCK ? mask->n - first : MASK_BLOCK;
        int64_t dense = mask->before[block] * to->itemsize, sparse = first * to->itemsize;
        moves[grd_index_size(to->itemsize)](n, mask->data + first, to->data + (expands ? sparse : dense),
                                            from->data + (expands ? dense : sparse));
    }
}

/* ---- masked_select ------------------------------------------------------------------------------------------------------- */

/* Computes the broadcast sizes of the mask and a tensor of sizes `a`. Writes them to the array ret_sizes, and sets *ret to this array. Raises
 * RuntimeError if the mask is not bool, or the sizes do not broadcast. */
static bool common_sizes(grd_dims a, const grd_tensor *mask, int64_t *ret_sizes, grd_dims *ret)
{
    int64_t n;
    if (mask->dtype != GRD_BOOL)
        return grd_raise(GRD_ERROR_RUNTIME, "masked_select: expected BoolTensor for mask, but got mask with dtype %s",
                         grd_dtype_c_name((grd_dtype)mask->dtype));
    if (!grd_check_has_data(mask) || !grd_shape_broadcast(grd_sizes(mask), a, ret_sizes, &n))
        return false;
    *ret = grd_dims_from(ret_sizes, n);
    return true;
}

bool plan_masked_select(struct grd_plan *p, grd_tensor *self, grd_tensor *mask)
{
    int64_t storage[GRD_MAX_DIMS];
    grd_dims sizes;
    return common_sizes(grd_sizes(self), mask, storage, &sizes) && grd_check_has_data(self) &&
           grd_plan_reads_as(p, op_expand(self, sizes), (grd_dtype)self->dtype) && grd_plan_reads_as(p, op_expand(mask, sizes), GRD_BOOL) &&
           !grd_pending();
}

bool check_masked_select(struct grd_plan *p)
{
    return count_mask(p, p->in[1]) && grd_plan_result(p, grd_dims(mask_of(p)->total), (grd_dtype)p->in[0]->dtype);
}

void run_masked_select(const struct grd_plan *p)
{
    grd_parallel_for(0, mask_blocks(mask_of(p)), 1, move_blocks, mask_of(p));
}

bool plan_hidden_masked_select_backward(struct grd_plan *p, grd_tensor *grad, grd_dims sizes, grd_tensor *mask)
{
    int64_t storage[GRD_MAX_DIMS];
    grd_dims common;
    return common_sizes(sizes, mask, storage, &common) && grd_check_has_data(grad) && grd_plan_reads_as(p, grad, (grd_dtype)grad->dtype) &&
           grd_plan_reads_as(p, op_expand(mask, common), GRD_BOOL) && grd_plan_result(p, common, (grd_dtype)grad->dtype) && !grd_pending();
}

bool check_masked_expand(struct grd_plan *p)
{
    const int64_t n = p->in[0]->numel;
    return count_mask(p, p->in[1]) &&
           (mask_of(p)->total == n || grd_raise(GRD_ERROR_RUNTIME, "the mask has %lld elements set where the gradient has %lld",
                                                (long long)mask_of(p)->total, (long long)n));
}

void run_masked_expand(const struct grd_plan *p)
{
    grd_zero_elements(p->results[0]);
    run_masked_select(p);
}

/* ---- nonzero ------------------------------------------------------------------------------------------------------------- */

/* Writes the coordinates of the set elements of the blocks [begin, end) of the mask. The result has one column per dimension. */
static void write_coordinates(int64_t begin, int64_t end, void *context)
{
    const struct counted_mask *mask = context;
    const grd_tensor *result = mask->plan->results[0];
    const grd_dims sizes = grd_sizes(mask->plan->in[0]);
    for (int64_t block = begin; block < end; block++) {
        const int64_t first = block * MASK_BLOCK, rest = mask->n - first;
        grd_kernels->index->coordinates(&(struct grd_coordinates_block){.n = rest < MASK_BLOCK ? rest : MASK_BLOCK,
                                                                        .first = first,
                                                                        .ndim = sizes.n,
                                                                        .mask = mask->data + first,
                                                                        .sizes = sizes.data,
                                                                        .to = (int64_t *)(void *)result->data + mask->before[block],
                                                                        .column = mask->total});
    }
}

bool plan_nonzero(struct grd_plan *p, grd_tensor *self)
{
    return grd_check_has_data(self) && grd_plan_reads_as(p, self, GRD_BOOL);
}

bool check_nonzero(struct grd_plan *p)
{
    if (!count_mask(p, p->in[0]))
        return false;
    const int64_t total = mask_of(p)->total, strides[] = {1, total};
    return grd_plan_strided(p, grd_dims(total, p->in[0]->ndim), strides, GRD_INT64);
}

void run_nonzero(const struct grd_plan *p)
{
    grd_parallel_for(0, mask_blocks(mask_of(p)), 1, write_coordinates, mask_of(p));
}

/* ---- masked_scatter ------------------------------------------------------------------------------------------------------------------ */

grd_tensor *op_masked_scatter(grd_tensor *out, grd_tensor *self, grd_tensor *mask, grd_tensor *source)
{
    int64_t sizes[GRD_MAX_DIMS], n;
    if (self->dtype != source->dtype)
        return grd_fail(GRD_ERROR_RUNTIME, "masked_scatter: expected self and source to have same dtypes but got %s and %s",
                        grd_dtype_type_name((grd_dtype)self->dtype), grd_dtype_type_name((grd_dtype)source->dtype));
    if (mask->dtype != GRD_BOOL)
        return grd_fail(GRD_ERROR_RUNTIME, "masked_scatter_ only supports boolean masks, but got mask with dtype %s",
                        grd_dtype_type_name((grd_dtype)mask->dtype));
    if (!grd_check_has_data(mask) || !grd_check_same_device(grd_tensors(self, mask, source)) ||
        !grd_shape_broadcast(grd_sizes(self), grd_sizes(mask), sizes, &n))
        return grd_failed;
    const grd_dims common = grd_dims_from(sizes, n);
    mask = grd_expand(mask, common);
    const int64_t count = (int64_t)grd_item_double(grd_sum(mask));
    if (!grd_pending() && count > source->numel)
        grd_raise(GRD_ERROR_RUNTIME, "Number of elements of source < number of ones in mask");
    if (grd_pending())
        return grd_failed;
    grd_tensor *placed = grd_hidden_masked_select_backward(grd_narrow(grd_reshape(source, grd_dims(-1)), 0, 0, count), common, mask);
    grd_tensor *value = grd_where(mask, placed, self);
    return grd_composite_finish(out, self, out == NULL ? grd_composite_contiguous(value) : value);
}
