/* Computes the terms of multilabel_margin_loss and checks the arguments of multi_margin_loss. Schema: schema/loss.toml.
 *
 * Invariant: targets are checked before anything is written. */
#include "kernel/margin.h"

#include "gen/uses/op/margin.h"
#include "core/dtype.h"
#include "core/tensor.h"
#include "kernel/index.h"
#include "kernel/table.h"
#include "op/formula.h"
#include "op/lines.h"
#include "op/plan.h"

static bool check_matrix(const grd_tensor *self)
{
    const bool has_classes = self->ndim == 0 || self->sizes[self->ndim - 1] > 0;
    return (self->ndim <= 2 && has_classes) ||
           grd_raise(GRD_ERROR_RUNTIME, "Expected non-empty vector or matrix with optional 0-dim batch size, but got: %s",
                     grd_list_text(grd_sizes(self)));
}

bool grd_multi_margin_check(const grd_tensor *self, const grd_tensor *target, double p, const grd_tensor *weight)
{
    const int64_t samples = self->ndim == 2 ? self->sizes[0] : 1, classes = self->ndim > 0 ? self->sizes[self->ndim - 1] : 1;
    if (p != 1 && p != 2)
        return grd_raise(GRD_ERROR_VALUE, "only p == 1 and p == 2 supported");
    if (weight != NULL && weight->ndim != 1)
        return grd_raise(GRD_ERROR_VALUE, "weight must be one-dimensional");
    if (!check_matrix(self))
        return false;
    if (target->ndim > 1 || target->numel != samples)
        return grd_raise(
            GRD_ERROR_RUNTIME,
            "multi_margin_loss: target tensor should be 1-D with size equal to the number of input samples (batch size). Expected "
            "target size [%lld], but got %s. Input has shape %s.",
            (long long)samples, grd_list_text(grd_sizes(target)), grd_list_text(grd_sizes(self)));
    if (target->dtype != GRD_INT64)
        return grd_raise(GRD_ERROR_RUNTIME, "expected scalar type Long but found %s", grd_dtype_type_name((grd_dtype)target->dtype));
    return weight == NULL || weight->numel == classes ||
           grd_raise(GRD_ERROR_RUNTIME, "inconsistent weight size, expected %lld but got %s", (long long)classes,
                     grd_list_text(grd_sizes(weight)));
}

bool plan_hidden_multilabel_margins(struct grd_plan *p, grd_tensor *self, grd_tensor *target)
{
    const grd_dtype dtype = (grd_dtype)self->dtype, as = grd_lines_dtype(dtype);
    if (grd_kernels->margin[as] == NULL)
        return grd_raise_no_kernel("multilabel_margin_loss_forward_out_frame", dtype);
    if (!check_matrix(self))
        return false;
    if (!grd_same_sizes(target, grd_sizes(self)))
        return grd_raise(GRD_ERROR_RUNTIME, "inconsistent target size: %s for input of size: %s", grd_list_text(grd_sizes(target)),
                         grd_list_text(grd_sizes(self)));
    if (target->dtype != GRD_INT64)
        return grd_raise(GRD_ERROR_RUNTIME, "expected scalar type Long but found %s", grd_dtype_type_name((grd_dtype)target->dtype));
    const grd_dims rows = self->ndim == 2 ? grd_dims(self->sizes[0]) : GRD_NO_DIMS;
    p->scratch_bytes = (size_t)(self->ndim > 0 ? self->sizes[self->ndim - 1] : 1);
    return grd_plan_reads_as(p, self, as) && grd_plan_reads_as(p, target, GRD_INT64) && grd_plan_result(p, rows, dtype) &&
           grd_plan_computed_in(p, as) && grd_plan_result(p, grd_sizes(self), dtype) && grd_plan_computed_in(p, as);
}

bool check_hidden_multilabel_margins(struct grd_plan *p, grd_tensor *self, grd_tensor *target)
{
    const int64_t classes = self->ndim > 0 ? self->sizes[self->ndim - 1] : 1;
    int64_t low = 0, high = 0;
    grd_kernels->index->range(target->numel, (const int64_t *)(const void *)p->in[1]->data, &low, &high);
    return (low >= -1 && high < classes) || grd_raise(GRD_ERROR_RUNTIME, "argument #2 'target' is out of range");
}

void run_hidden_multilabel_margins(const struct grd_plan *p, grd_tensor *self, grd_tensor *target)
{
    (void)target;
    const int64_t classes = self->ndim > 0 ? self->sizes[self->ndim - 1] : 1;
    grd_kernels->margin[p->in[0]->dtype]->rows(p->results[0]->numel, classes, p->in[0]->data, (const int64_t *)(const void *)p->in[1]->data,
                                               (uint8_t *)p->scratch, p->results[0]->data, p->results[1]->data);
}
