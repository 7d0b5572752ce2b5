/* softmax, log_softmax and their gradients. The loops are in kernel/cpu/softmax.c; a line is always done by one thread. */
#include "base/parallel.h"
#include "gen/impl/reduction.h"
#include "kernel/reduce.h"
#include "kernel/table.h"
#include "op/common.h"

enum { GRAIN = 1 << 13 };

struct softmax {
    grd_softmax_kernel *kernel;
    const char *in, *grad;
    char *out;
    int64_t n, inner, width, strips_per_row, lines, size;
};

/* A strip is up to `width` lines, neighbours in `inner` or, when that is 1, one after the other. */
static void softmax_strips(int64_t begin, int64_t end, void *context)
{
    const struct softmax *s = context;
    for (int64_t strip = begin; strip < end; strip++) {
        int64_t first, at, limit;
        if (s->inner == 1) {
            first = strip * s->width;
            at = first * s->n * s->size;
            limit = s->lines;
        } else {
            first = strip % s->strips_per_row * s->width;
            at = (strip / s->strips_per_row * s->n * s->inner + first) * s->size;
            limit = s->inner;
        }
        s->kernel(&(struct grd_softmax_block){
            .lines = limit - first < s->width ? limit - first : s->width,
            .n = s->n,
            .inner = s->inner,
            .in = s->in + at,
            .grad = s->grad != NULL ? s->grad + at : NULL,
            .out = s->out + at,
        });
    }
}

/* All contiguous and of dtype `as`, float32 or float64; grad may be NULL. */
static void run(enum grd_softmax_kind kind, grd_dtype as, grd_tensor *out, const grd_tensor *in, const grd_tensor *grad, int64_t dim)
{
    const struct grd_softmax_row *row = grd_kernels->reduce->softmax[as];
    int64_t inner = 1, n = out->ndim > 0 ? out->sizes[dim] : 1;
    if (out->numel == 0)
        return;
    for (int d = (int)dim + 1; d < out->ndim; d++)
        inner *= out->sizes[d];
    struct softmax s = {
        .kernel = inner == 1 ? row->lines[kind] : row->columns[kind],
        .in = in->data,
        .grad = grad != NULL ? grad->data : NULL,
        .out = out->data,
        .n = n,
        .inner = inner,
        .width = inner > 1   ? GRD_SOFTMAX_COLUMNS
                 : n < GRAIN ? GRAIN / n
                             : 1,
        .lines = out->numel / n,
        .size = grd_dtype_size(as),
    };
    int64_t cost = n * (inner == 1 ? s.width : inner < s.width ? inner : s.width);
    s.strips_per_row = (inner + s.width - 1) / s.width;
    int64_t strips = inner == 1 ? (s.lines + s.width - 1) / s.width : s.lines / inner * s.strips_per_row;
    grd_parallel_for(0, strips, cost < GRAIN ? GRAIN / cost : 1, softmax_strips, &s);
}

static grd_tensor *softmax(grd_tensor *out, grd_tensor *self, grd_tensor *grad, int64_t dim, grd_dtype dtype, const char *name,
                           enum grd_softmax_kind kind)
{
    int64_t d;
    if (dtype < GRD_FLOAT16 || dtype > GRD_FLOAT64)
        return grd_fail_no_kernel(name, dtype);
    if (!grd_wrap_dim(self, dim, &d))
        return grd_failed;
    if (grad != NULL && !grd_same_sizes(grad, grd_sizes(self)))
        return grd_fail(GRD_ERROR_RUNTIME, "the gradient must have the shape of the result");
    grd_tensor *result = grd_out_prepare(out, grd_sizes(self), dtype, grd_device_of(self));
    if (grd_pending())
        return grd_failed;
    if (!grd_is_meta(result)) {
        grd_dtype as = dtype == GRD_FLOAT64 ? GRD_FLOAT64 : GRD_FLOAT32;
        grd_tensor *in = grd_contiguous_as(self, as), *in_grad = grad != NULL ? grd_contiguous_as(grad, as) : NULL;
        grd_tensor *work = dtype == as ? result : grd_new(grd_sizes(self), as, GRD_CPU);
        if (grd_pending())
            return grd_failed;
        run(kind, as, work, in, in_grad, d);
        if (work != result && !grd_copy_elements(result, work))
            return grd_failed;
    }
    return grd_out_finish(out, result);
}

static grd_dtype result_dtype(const grd_tensor *self, grd_dtype dtype)
{
    return dtype != GRD_DTYPE_NONE ? dtype : (grd_dtype)self->dtype;
}

grd_tensor *op_softmax(grd_tensor *out, grd_tensor *self, int64_t dim, grd_dtype dtype)
{
    return softmax(out, self, NULL, dim, result_dtype(self, dtype), "softmax", GRD_SOFTMAX);
}

grd_tensor *op_log_softmax(grd_tensor *out, grd_tensor *self, int64_t dim, grd_dtype dtype)
{
    return softmax(out, self, NULL, dim, result_dtype(self, dtype), "log_softmax", GRD_LOG_SOFTMAX);
}

grd_tensor *op_hidden_softmax_backward(grd_tensor *grad, grd_tensor *output, int64_t dim)
{
    return softmax(NULL, output, grad, dim, (grd_dtype)output->dtype, "_softmax_backward", GRD_SOFTMAX_BACKWARD);
}

grd_tensor *op_hidden_log_softmax_backward(grd_tensor *grad, grd_tensor *output, int64_t dim)
{
    return softmax(NULL, output, grad, dim, (grd_dtype)output->dtype, "_log_softmax_backward", GRD_LOG_SOFTMAX_BACKWARD);
}
