/* Implements what happens between an operator's plan, which checks the arguments, and its run, which computes the results. For example, inputs are
 * converted and results are allocated. See plan.h. */
#include "op/plan.h"

#include <string.h>

#include "base/memory.h"
#include "gen/uses/op/plan.h"
#include "core/device.h"
#include "core/dtype.h"
#include "core/new.h"
#include "core/shape.h"
#include "core/tensor.h"
#include "op/copy.h"
#include "op/out.h"
#include "op/sizes.h"
#include "core/iter.h"
#include "op/checks.h"

/* ---- Functions that plans call -------------------------------------------------------------------------------------------------- */

/* Adds a planned result and returns its description. Returns NULL and raises RuntimeError if there are too many dimensions. */
static struct grd_planned *next_result(struct grd_plan *p, grd_dims sizes, grd_dtype dtype)
{
    int64_t numel;
    if (GRD_UNLIKELY((uint64_t)sizes.n > GRD_MAX_DIMS)) {
        grd_shape_numel(sizes, &numel); /* called only to raise its error for too many dimensions */
        return NULL;
    }
    struct grd_planned *planned = &p->planned[p->nresults++];
    planned->dtype = planned->as = dtype;
    planned->ndim = (uint8_t)sizes.n;
    planned->strided = false;
    for (int64_t i = 0; i < sizes.n; i++) /* not memcpy(), since data may be NULL if there are no sizes */
        planned->sizes[i] = sizes.data[i];
    return planned;
}

bool grd_plan_result(struct grd_plan *p, grd_dims sizes, grd_dtype dtype)
{
    return next_result(p, sizes, dtype) != NULL;
}

bool grd_plan_strided(struct grd_plan *p, grd_dims sizes, const int64_t *strides, grd_dtype dtype)
{
    struct grd_planned *planned = next_result(p, sizes, dtype);
    if (planned == NULL)
        return false;
    planned->strided = true;
    memcpy(planned->strides, strides, (size_t)sizes.n * sizeof *strides);
    return true;
}

bool grd_plan_in_order(struct grd_plan *p, grd_dims sizes, bool channels_last, grd_dtype dtype)
{
    int64_t strides[5];
    if (!channels_last)
        return grd_plan_result(p, sizes, dtype);
    grd_shape_channels_last_strides(sizes, strides);
    return grd_plan_strided(p, sizes, strides, dtype);
}

bool grd_plan_like(struct grd_plan *p, const grd_tensor *t, grd_dtype dtype)
{
    int64_t dense[GRD_MAX_DIMS];
    const grd_dims sizes = grd_sizes(t);
    if (grd_has(t, GRD_FLAG_CANONICAL))
        return grd_plan_result(p, sizes, dtype);
    if (grd_has(t, GRD_FLAG_CONTIGUOUS) || grd_shape_is_dense(sizes, t->strides))
        return grd_plan_strided(p, sizes, t->strides, dtype);
    grd_shape_dense_strides(sizes, t->strides, dense);
    return grd_plan_strided(p, sizes, dense, dtype);
}

enum grd_memory_format grd_memory_format_of(const char *name, enum grd_memory_format absent, int64_t ndim)
{
    static const char *const names[] = {"preserve", "contiguous", "channels_last", "channels_last_3d"};
    enum grd_memory_format format = absent;
    if (name != NULL)
        for (format = GRD_FORMAT_PRESERVE; format < GRD_FORMAT_FAILED && strcmp(name, names[format]) != 0;)
            format++;
    const int64_t wanted = format == GRD_FORMAT_CHANNELS_LAST ? 4 : format == GRD_FORMAT_CHANNELS_LAST_3D ? 5 : ndim;
    if (format == GRD_FORMAT_FAILED)
        grd_raise(GRD_ERROR_VALUE, "memory_format must be " GRD_WORDS_MEMORY_FORMAT ", not '%s'", name);
    else if (ndim != wanted)
        grd_raise(GRD_ERROR_RUNTIME, "required rank %lld tensor to use %s format", (long long)wanted, names[format]);
    return ndim == wanted ? format : GRD_FORMAT_FAILED;
}

bool grd_plan_in_format(struct grd_plan *p, const grd_tensor *t, enum grd_memory_format format, grd_dtype dtype)
{
    return format == GRD_FORMAT_PRESERVE ? grd_plan_like(p, t, dtype)
                                         : grd_plan_in_order(p, grd_sizes(t), grd_is_channels_last_format(format), dtype);
}

bool grd_plan_factory(struct grd_plan *p, grd_dtype dtype, grd_device device, bool requires_grad)
{
    if (requires_grad && !grd_dtype_is_inexact(dtype))
        return grd_raise(GRD_ERROR_RUNTIME, "Only Tensors of floating point and complex dtype can require gradients");
    p->requires_grad = requires_grad;
    return grd_device_resolve(device, &p->device);
}

bool grd_plan_new(struct grd_plan *p, grd_dims sizes, grd_dtype dtype, grd_device device, bool requires_grad)
{
    return grd_plan_factory(p, dtype, device, requires_grad) && grd_plan_result(p, sizes, dtype);
}

bool grd_plan_reads_as(struct grd_plan *p, grd_tensor *t, grd_dtype dtype)
{
    p->reads[p->nreads++] = (struct grd_read){t, dtype};
    if (p->device.type == GRD_DEVICE_NONE && t != NULL)
        p->device = grd_device_of(t);
    return true;
}

bool grd_plan_reads(struct grd_plan *p, grd_tensor *t)
{
    return grd_plan_reads_as(p, t, GRD_DTYPE_NONE);
}

bool grd_plan_starts_from(struct grd_plan *p, grd_tensor *t)
{
    p->start = t;
    return grd_plan_reads(p, t);
}

/* ---- Checks before anything is written ----------------------------------------------------------------------------------------------- */

static grd_dims planned_sizes(const struct grd_planned *planned)
{
    return grd_dims_from(planned->sizes, planned->ndim);
}

/* True if `t`, a tensor that is read, must be copied before `out` is written. This is so if an in-place call writes only some elements of `out`, such
 * as x[:, [0]] = x[:, 2:3], and `t` shares memory with `out`. */
static bool is_copied_first(const struct grd_plan *p, const grd_tensor *t)
{
    return p->out != NULL && p->out == p->start && t != p->out && p->overlap == GRD_OVERLAP_NONE && grd_overlaps(p->out, t);
}

/* Checks that `out` and the tensor reads[read] overlap only as the operator allows. Exception: if the results start as copies of reads[0], `out` may
 * be the same tensor, because it then already has the elements that would be copied to it. */
static bool check_overlap(const struct grd_plan *p, int read)
{
    const grd_tensor *t = p->reads[read].t;
    if (t == NULL || p->overlap == GRD_OVERLAP_ANY)
        return true;
    if (p->overlap == GRD_OVERLAP_ELEMENT)
        return grd_check_no_partial_overlap(p->out, t);
    return (read == 0 && t == p->out && t == p->start) || grd_check_no_overlap(p->out, t);
}

/* Checks the device, dtype and overlaps of `out` and, for an in-place call, its sizes. */
static bool check_out(const struct grd_plan *p)
{
    const grd_dims sizes = planned_sizes(&p->planned[0]);
    /* Only an in-place call checks the sizes of `out` here. An out= call resizes `out` later, so the sizes may differ, even if `out` is also read. */
    const bool inplace = (p->op->forms & 1 << GRD_INPLACE) != 0;
    if (!grd_check_devices(p->device, grd_device_of(p->out)) || !grd_check_castable(p->planned[0].dtype, (grd_dtype)p->out->dtype) ||
        (!p->repeats && !grd_check_no_internal_overlap(p->out)))
        return false;
    for (int i = 0; i < p->nreads; i++)
        if (!check_overlap(p, i) || (inplace && p->reads[i].t == p->out && !grd_check_inplace_shape(p->out, sizes)))
            return false;
    return true;
}

bool grd_plan_admit(struct grd_plan *p)
{
    for (int i = 0; i < p->nreads; i++)
        if (p->reads[i].t != NULL && !p->any_device && !grd_check_devices(p->device, grd_device_of(p->reads[i].t)))
            return false;
    if (p->out != NULL && !check_out(p))
        return false;
    p->meta = p->device.type == GRD_DEVICE_META;
    for (int i = 0; i < p->nreads; i++) {
        const struct grd_read *read = &p->reads[i];
        const bool as_it_lies = read->t == NULL || read->as == GRD_DTYPE_NONE || p->meta;
        grd_tensor *const t = read->t != NULL && !p->meta && is_copied_first(p, read->t) ? grd_clone(read->t) : read->t;
        p->in[i] = as_it_lies ? t : grd_contiguous_as(t, read->as);
    }
    return !grd_pending(); /* an error may be pending from views that the plan has made */
}

/* ---- Allocation ---------------------------------------------------------------------------------------------------------------------- */

/* True if `out` has the strides of the planned result. Dimensions of size 1 do not count. */
static bool lies_as_planned(const grd_tensor *out, const struct grd_planned *planned)
{
    if (!planned->strided)
        return grd_has(out, GRD_FLAG_CONTIGUOUS);
    for (int d = 0; d < planned->ndim; d++)
        if (planned->sizes[d] > 1 && out->strides[d] != planned->strides[d])
            return false;
    return true;
}

/* True if the run may write to `out` directly, because `out` has the planned dtype, sizes and strides and shares no memory with tensors that are
 * read. On a plug-in's device, `out` may share memory, because all tensors are copied to the CPU before anything is written. */
static bool takes_run(const struct grd_plan *p)
{
    const struct grd_planned *planned = &p->planned[0];
    const grd_tensor *out = p->out;
    if (out->dtype != planned->as || !grd_same_sizes(out, planned_sizes(planned)) || (!p->any_strides && !lies_as_planned(out, planned)))
        return false;
    if (p->start != NULL && p->start != out && grd_may_share_bytes(out, p->start))
        return false;
    for (int i = p->start != NULL; i < p->nreads && !grd_is_extra(p->device); i++)
        if (p->in[i] != NULL && !(p->aligned && grd_is_same_view(out, p->in[i])) && grd_may_share_bytes(out, p->in[i]))
            return false;
    return true;
}

bool grd_plan_allocate(struct grd_plan *p)
{
    bool empty = true;
    const bool direct = p->out != NULL && takes_run(p);
    for (int i = 0; i < p->nresults; i++) {
        p->results[i] = i == 0 && direct ? p->out : grd_new_planned(&p->planned[i], p->planned[i].as, p->device);
        if (grd_is_failed(p->results[i]))
            return false;
    }
    if (p->prepare != NULL && !p->meta && !p->prepare(p))
        return false;
    if (p->scratch_bytes > 0 && !p->meta && (p->scratch = grd_alloc(p->scratch_bytes)) == NULL)
        return false;
    for (int i = 0; i < p->nresults; i++)
        empty &= p->results[i]->numel == 0;
    if (p->start != NULL && p->start != p->results[0] && !grd_copy_elements(p->results[0], p->start))
        return false;
    return !p->meta && !empty;
}

/* ---- End of the call ----------------------------------------------------------------------------------------------------------------- */

/* Returns result i in the planned dtype, converted if the run has written another dtype. */
static grd_tensor *finished(const struct grd_plan *p, int i)
{
    const struct grd_planned *planned = &p->planned[i];
    if (grd_pending() || planned->as == planned->dtype)
        return p->results[i];
    grd_tensor *result = grd_new_planned(planned, planned->dtype, p->device);
    return !grd_is_failed(result) && grd_copy_elements(result, p->results[i]) ? result : grd_failed;
}

static void release_scratch(struct grd_plan *p)
{
    if (p->scratch != NULL)
        grd_free(p->scratch, p->scratch_bytes);
}

grd_tensor *grd_plan_close(struct grd_plan *p)
{
    release_scratch(p);
    if (grd_pending())
        return grd_failed;
    if (p->out != NULL)
        return grd_out_finish(p->out, p->results[0]);
    grd_tensor *result = finished(p, 0);
    if (p->requires_grad && !grd_pending())
        grd_mark_requires_grad(result, true);
    return result;
}

void grd_plan_close_many(struct grd_plan *p, grd_tensor **ret_results)
{
    release_scratch(p);
    for (int i = 0; i < p->op->nresults; i++)
        ret_results[i] = grd_pending() ? grd_failed : finished(p, i);
}
