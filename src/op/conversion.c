/* Implements the operators that copy a tensor or convert it to another dtype, device or order in memory: copy_, clone, contiguous, to. The loops that
 * move the elements are in copy.c. */
#include <string.h>

#include "gen/uses/op/conversion.h"
#include "core/device.h"
#include "core/geometry.h"
#include "core/new.h"
#include "core/shape.h"
#include "core/tensor.h"
#include "core/transfer.h"
#include "gradus/library.h"
#include "op/copy.h"
#include "op/plan.h"
#include "op/sizes.h"
#include "core/iter.h"

/* Returns `src` expanded to the sizes of `self`. Raises RuntimeError if `src` does not broadcast to these sizes. */
static grd_tensor *broadcast_source(grd_tensor *self, grd_tensor *src)
{
    int64_t sizes[GRD_MAX_DIMS], n;
    if (grd_same_sizes(src, grd_sizes(self)))
        return src;
    if (!grd_shape_broadcast(grd_sizes(self), grd_sizes(src), sizes, &n))
        return grd_failed;
    if (!grd_same_sizes(self, grd_dims_from(sizes, n)))
        return grd_fail(GRD_ERROR_RUNTIME, "output with shape %s doesn't match the broadcast shape %s", grd_list_text(grd_sizes(self)),
                        grd_list_text(grd_dims_from(sizes, n)));
    return op_expand(src, grd_sizes(self));
}

/* Checks that `src` can be copied to a tensor on `device` with dtype `dtype`. Raises NotImplementedError if only `src` is a meta tensor, or if the
 * dtypes cannot be converted. Also lets the operands of the plan be on different devices, because run_elements() transfers them. */
static bool check_copy(struct grd_plan *p, grd_tensor *src, grd_device device, grd_dtype dtype)
{
    p->device = device;
    p->any_device = true;
    if (src->device == GRD_DEVICE_META && device.type != GRD_DEVICE_META)
        return grd_raise(GRD_ERROR_NOT_IMPLEMENTED, "Cannot copy out of meta tensor; no data!");
    return grd_check_convertible((grd_dtype)src->dtype, dtype);
}

/* Copies `from` to `to`, at least one of which is on a device that a plug-in has registered. Transfers the bytes
 * directly if the tensors have the same dtype and the same dense strides, share no memory, and are not on two different plug-in devices. Otherwise
 * copies and converts the elements on the CPU. */
static void copy_between(grd_tensor *to, grd_tensor *from)
{
    const bool one_way = to->device == from->device || to->device == GRD_DEVICE_CPU || from->device == GRD_DEVICE_CPU;
    const bool same_layout = to->dtype == from->dtype && grd_have_same_strides(to, from) && grd_is_dense(to);
    if (one_way && same_layout && !grd_may_share_bytes(to, from)) {
        grd_transfer(to, from);
        return;
    }
    from = grd_on_cpu(from);
    grd_tensor *staged = to;
    if (to->device != GRD_DEVICE_CPU)
        staged = grd_new_strided(grd_sizes(to), grd_strides(to), to->dtype, GRD_CPU);
    grd_copy_strided(staged, from);
    if (staged != to && !grd_pending())
        grd_transfer(to, staged);
}

/* Runs the planned operator copy_, clone or to: copies the elements of the plan's input to its result. */
void run_elements(const struct grd_plan *p)
{
    if (grd_is_extra(p->device) || grd_is_extra(grd_device_of(p->in[0])))
        copy_between(p->results[0], p->in[0]);
    else
        grd_copy_strided(p->results[0], p->in[0]);
}

bool plan_copy(struct grd_plan *p, grd_tensor *self, grd_tensor *src, bool non_blocking)
{
    (void)non_blocking;
    p->any_strides = p->aligned = p->repeats = true;
    if (!check_copy(p, src, grd_device_of(self), (grd_dtype)self->dtype) || !grd_check_no_internal_overlap(self))
        return false;
    /* As in PyTorch, copy_ refuses partly overlapping tensors only if both tensors are dense. */
    if (grd_is_dense(self) && grd_is_dense(src) && !grd_check_no_partial_overlap(self, src))
        return false;
    grd_tensor *from = broadcast_source(self, src);
    return !grd_pending() && grd_plan_reads(p, from) && grd_plan_result(p, grd_sizes(self), (grd_dtype)self->dtype);
}

/* Fast path of copy_ for contiguous CPU tensors with the same dtype and shape that share no memory: copies `src` to `self` and returns `out`.
 * Returns NULL for all other tensors. */
grd_tensor *shortcut_copy(grd_tensor *out, grd_tensor *self, grd_tensor *src, bool non_blocking)
{
    (void)non_blocking;
    const bool contiguous = (self->flags & src->flags & GRD_FLAG_CONTIGUOUS) != 0,
               same = self->dtype == src->dtype && self->dtype <= GRD_COMPLEX128;
    if (!contiguous || !same || self->device != GRD_DEVICE_CPU || src->device != GRD_DEVICE_CPU || grd_may_share_bytes(self, src) ||
        !grd_same_sizes(src, grd_sizes(self)))
        return NULL;
    grd_copy_block(out->data, src->data, src->numel * src->itemsize);
    return out;
}

/* Fast path for CPU tensors: returns a copy of `self` in dtype `dtype`, with the strides of `self` if these are dense. Returns NULL if `self` is
 * on another device or a dtype is not supported here. */
static grd_tensor *shortcut_like(grd_tensor *self, grd_dtype dtype)
{
    if (self->device != GRD_DEVICE_CPU || self->dtype > GRD_COMPLEX128 || dtype > GRD_COMPLEX128)
        return NULL;
    grd_tensor *result = grd_new_like(self, dtype);
    grd_copy_strided(result, self);
    return result;
}

grd_tensor *shortcut_clone(grd_tensor *self, const char *memory_format)
{
    return memory_format == NULL || strcmp(memory_format, "preserve") == 0 ? shortcut_like(self, (grd_dtype)self->dtype) : NULL;
}

grd_tensor *shortcut_to_copy(grd_tensor *self, grd_dtype dtype, grd_device device)
{
    const bool here = device.type == GRD_DEVICE_NONE || (device.type == self->device && device.index == self->device_index);
    return here && dtype != GRD_DTYPE_NONE ? shortcut_like(self, dtype) : NULL;
}

bool plan_clone(struct grd_plan *p, grd_tensor *self, const char *memory_format)
{
    const grd_dtype dtype = (grd_dtype)self->dtype;
    const enum grd_memory_format format = grd_memory_format_of(memory_format, GRD_FORMAT_PRESERVE, self->ndim);
    return format != GRD_FORMAT_FAILED && grd_check_convertible(dtype, dtype) && grd_plan_reads(p, self) &&
           grd_plan_in_format(p, self, format, dtype);
}

bool plan_hidden_restrided(struct grd_plan *p, grd_tensor *self, grd_dims strides)
{
    if (strides.n != self->ndim)
        return grd_raise(GRD_ERROR_RUNTIME, "dimensionality of sizes (%d) must match dimensionality of strides (%lld)", self->ndim,
                         (long long)strides.n);
    return grd_plan_reads(p, self) && grd_plan_strided(p, grd_sizes(self), strides.data, (grd_dtype)self->dtype);
}

grd_tensor *op_contiguous(grd_tensor *self, const char *memory_format)
{
    const enum grd_memory_format format = grd_memory_format_of(memory_format, GRD_FORMAT_CONTIGUOUS, self->ndim);
    if (format == GRD_FORMAT_FAILED)
        return grd_failed;
    if (grd_is_channels_last_format(format) ? grd_is_channels_last(self) : grd_is_contiguous(self))
        return self;
    if (format == GRD_FORMAT_PRESERVE)
        return grd_fail(GRD_ERROR_RUNTIME, "preserve memory format is unsupported by the contiguous operator");
    return grd_clone(self, .memory_format = memory_format != NULL ? memory_format : "contiguous");
}

grd_tensor *op_to(grd_tensor *self, grd_dtype dtype, grd_device device, bool copy)
{
    bool same_dtype = dtype == GRD_DTYPE_NONE || dtype == self->dtype;
    grd_device target = grd_device_of(self);
    if (device.type != GRD_DEVICE_NONE && !grd_device_resolve(device, &target))
        return grd_failed;
    if (!same_dtype || target.type != self->device || target.index != self->device_index)
        return grd_to_copy(self, .dtype = dtype, .device = device);
    return copy ? grd_clone(self) : self;
}

bool plan_to_copy(struct grd_plan *p, grd_tensor *self, grd_dtype dtype, grd_device device)
{
    grd_device target = grd_device_of(self);
    if (dtype == GRD_DTYPE_NONE)
        dtype = self->dtype;
    if (device.type != GRD_DEVICE_NONE && !grd_device_resolve(device, &target))
        return false;
    return check_copy(p, self, target, dtype) && grd_plan_reads(p, self) && grd_plan_like(p, self, dtype);
}
