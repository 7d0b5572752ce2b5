/* Plans and runs the resampling of images (interpolate, upsample). This file checks arguments, and divides the scratch memory and the work into
 * tasks. Positions and weights are computed in kernel/resample_tables.c, and the loops are in kernel/cpu/resample.c. Schema: schema/resample.toml.
 *
 * Positions in the input are computed in float32 in the modes "nearest" and "nearest-exact". In all other modes they are computed in double for
 * float64 and uint8 images, and in float32 for images of other dtypes. The elements of half types are computed in float32. The elements of uint8
 * images are computed in fixed point, and rounded after resampling along the width and again after resampling along the height. */
#include "kernel/resample.h"

#include <math.h>
#include <string.h>

#include "base/integer.h"
#include "base/parallel.h"
#include "gen/uses/op/resample.h"
#include "core/shape.h"
#include "core/tensor.h"
#include "gradus/library.h"
#include "kernel/table.h"
#include "op/plan.h"
#include "op/formula.h"

enum {
    PIECES = 16,        /* maximum number of tasks; it limits the scratch memory, since each task has its own */
    LEAST_PIECE = 4096, /* minimum number of elements per task */
    MOST_TAPS = 4,      /* maximum number of input elements per output element and axis in all modes without antialias */
    ALIGNMENT = 64
};

/* State of a call of a resampling operator or of its gradient. The function plan_... fills it, and run_resample() reads it. */
struct resample {
    struct grd_resample kernel;
    const struct grd_resample_row *kernels;
    struct grd_resample_source source;
    bool channels_last;
    /* images: number of images. Without channels_last, each channel counts as an image. grain: rows of the result per task. */
    int64_t images, grain;
    /* table_bytes: bytes of scratch memory for the tables of positions and weights. piece_bytes: bytes of scratch memory per task. */
    int64_t table_bytes, piece_bytes;
    const char *in;
    char *out, *pieces;
};

static struct resample *resample_of(const struct grd_plan *p)
{
    return (struct resample *)(uintptr_t)p->state;
}

/* ---- Plans ------------------------------------------------------------------------------------------------------------------------------ */

/* Returns the factor by which output positions are multiplied to get input positions. `in` and `out` are the sizes of the axis. The factor is
 * (in - 1) / (out - 1) with align_corners. Otherwise it is 1 / given if there is a scale `given`, and in / out if there is none. If positions are
 * computed in float32, the factor is rounded to float32. */
static double scale_of(const struct grd_resample_source *x, int64_t in, int64_t out, grd_scalar given)
{
    double scale = (double)in / (double)out;
    if (x->align_corners)
        scale = out > 1 ? (double)(in - 1) / (double)(out - 1) : 0;
    else if (given.kind != GRD_SCALAR_NONE && grd_scalar_double(given) > 0)
        scale = 1 / grd_scalar_double(given);
    return x->single ? (double)(float)scale : scale;
}

/* Sets x->source.mode to the mode named `mode`. Returns false, with RuntimeError, if there is no such mode, or it is not available with
 * this value of x->source.antialias. */
static bool take_mode(struct resample *x, const char *mode)
{
    static const char *const names[] = {"nearest", "nearest-exact", "linear", "cubic", "lanczos"};
    for (int i = 0; i <= GRD_RESAMPLE_LANCZOS; i++)
        if (strcmp(mode, names[i]) == 0) {
            x->source.mode = (enum grd_resample_mode)i;
            return (x->source.antialias ? i >= GRD_RESAMPLE_LINEAR : i < GRD_RESAMPLE_LANCZOS) ||
                   grd_raise(GRD_ERROR_RUNTIME, "mode '%s' is for images %s antialias", mode, x->source.antialias ? "without" : "with");
        }
    return grd_raise(GRD_ERROR_RUNTIME, "the mode is 'nearest', 'nearest-exact', 'linear', 'cubic' or 'lanczos', not '%s'", mode);
}

/* Sets the sizes of the images. `in` and `out` are the sizes before and after the forward operator. Returns false, with RuntimeError, if a size is
 * zero, negative or too large. */
static bool take_sizes(struct resample *x, grd_dims in, grd_dims out)
{
    for (int i = 0; i < GRD_RESAMPLE_AXES; i++)
        x->kernel.axes[i] = (struct grd_resample_axis){.in = 1, .out = 1, .taps = 1};
    for (int64_t i = 0; i < x->source.n; i++) {
        struct grd_resample_axis *a = &x->kernel.axes[GRD_RESAMPLE_AXES - x->source.n + i];
        a->in = in.data[i];
        a->out = out.data[i];
        if (a->in <= 0 || a->out <= 0)
            return grd_raise(GRD_ERROR_RUNTIME, "Input and output sizes should be greater than 0, but got input %s output %s",
                             grd_list_text(in), grd_list_text(out));
        if (a->in > INT32_MAX || a->out > INT32_MAX)
            return grd_raise(GRD_ERROR_RUNTIME, "sizes of images are at most 2147483647, but got input %s output %s", grd_list_text(in),
                             grd_list_text(out));
    }
    return true;
}

/* Sets the scale of each axis, and how many input elements contribute to an output element. */
static void take_scales(struct resample *x, grd_scalar depth, grd_scalar height, grd_scalar width)
{
    const grd_scalar given[GRD_RESAMPLE_AXES] = {depth, height, width};
    static const int64_t taps[] = {1, 1, 2, MOST_TAPS};
    for (int64_t i = GRD_RESAMPLE_AXES - x->source.n; i < GRD_RESAMPLE_AXES; i++) {
        struct grd_resample_axis *a = &x->kernel.axes[i];
        const double scale = scale_of(&x->source, a->in, a->out, given[i]);
        x->source.scales[i] = scale;
        a->taps = x->source.antialias ? grd_resample_filter_taps(&x->source, a->in, scale) : taps[x->source.mode];
    }
}

/* Requests scratch memory for the tables of positions and weights. Returns false, with RuntimeError, if the tables are too large. */
static bool size_tables(struct grd_plan *p, struct resample *x)
{
    x->table_bytes = 0;
    for (int i = 0; i < GRD_RESAMPLE_AXES; i++) {
        const struct grd_resample_axis *a = &x->kernel.axes[i];
        if ((double)a->out * (double)a->taps > 0x1p50)
            return grd_raise(GRD_ERROR_RUNTIME, "the weights of %lld elements from %lld each do not fit into memory", (long long)a->out,
                             (long long)a->taps);
        x->table_bytes += grd_resample_table_bytes(a);
    }
    p->scratch_bytes = (size_t)x->table_bytes;
    return true;
}

/* Checks the arguments that the forward and the backward operator share, and stores them in *x. `self` is the tensor that is read. `in` and `out` are
 * the sizes of the images before and after the forward operator. Returns false, with the error raised, on failure. */
static bool take_arguments(struct resample *x, const grd_tensor *self, grd_dims in, grd_dims out, const char *mode, grd_scalar scales_d,
                           grd_scalar scales_h, grd_scalar scales_w)
{
    const grd_dtype dtype = (grd_dtype)self->dtype, working = grd_computed_dtype(dtype);
    if (!take_mode(x, mode) || !take_sizes(x, in, out))
        return false;
    x->kernels = grd_kernels->resample[working];
    x->source.weight_bytes = working == GRD_UINT8 ? (int64_t)sizeof(int16_t) : grd_dtype_size(working);
    x->source.single = working != GRD_FLOAT64 && !(working == GRD_UINT8 && x->source.mode >= GRD_RESAMPLE_LINEAR);
    if (x->kernels == NULL)
        return grd_raise_no_kernel("upsample", dtype);
    take_scales(x, scales_d, scales_h, scales_w);
    return true;
}

static bool check_ndim(const grd_tensor *self, int64_t n)
{
    if (n < 1 || n > GRD_RESAMPLE_AXES || self->ndim != n + 2)
        return grd_raise(GRD_ERROR_RUNTIME, "It is expected input_size equals to %lld, but got size %d", (long long)n + 2, (int)self->ndim);
    for (int i = 1; i < self->ndim; i++)
        if (self->sizes[i] == 0)
            return grd_raise(GRD_ERROR_RUNTIME, "Non-empty %lldD data tensor expected but got a tensor with sizes %s", (long long)n + 2,
                             grd_list_text(grd_sizes(self)));
    return true;
}

/* Returns the number of input rows that a task keeps in scratch memory after it has resampled them along the width. It keeps them because
 * adjacent output rows need the same input rows. */
static int64_t kept_rows(const struct resample *x)
{
    const struct grd_resample_axis *d = &x->kernel.axes[0], *h = &x->kernel.axes[1];
    return grd_least(d->in * h->in, d->taps > 1 ? d->taps * h->in : 2 * h->taps);
}

/* Requests scratch memory for the input rows that each task keeps after resampling them along the width. */
static void size_pieces(struct grd_plan *p, struct resample *x)
{
    const struct grd_resample_axis *axes = x->kernel.axes;
    if ((double)x->images * (double)axes[0].out * (double)axes[1].out * (double)axes[2].out * (double)x->kernel.channels > 0x1p56) {
        grd_plan_scratch(p, HUGE_VAL);
        return;
    }
    const int64_t rows = x->images * axes[0].out * axes[1].out, width = axes[2].out * x->kernel.channels;
    x->kernel.lines = kept_rows(x);
    x->grain = grd_greatest(grd_ceil_div(rows, PIECES), LEAST_PIECE / width + 1);
    x->piece_bytes =
        ((x->kernel.lines * width * grd_dtype_size(p->reads[0].as) + x->kernel.lines * (int64_t)sizeof(int64_t)) / ALIGNMENT + 2) *
        ALIGNMENT;
    p->scratch_bytes += (size_t)(x->piece_bytes * grd_ceil_div(rows, x->grain));
}

/* Plans to read the operand `self`, and plans a result whose images have the spatial sizes `image`. Both are channels-last if `channels_last`, else
 * contiguous. Returns false, with the error raised, on failure. */
static bool plan_images(struct grd_plan *p, grd_tensor *self, grd_dims image, bool channels_last)
{
    const grd_dtype dtype = (grd_dtype)self->dtype, working = grd_computed_dtype(dtype);
    int64_t sizes[GRD_MAX_DIMS] = {self->sizes[0], self->sizes[1]};
    memcpy(sizes + 2, image.data, (size_t)image.n * sizeof *sizes);
    return grd_plan_reads_as(p, channels_last ? grd_composite_channels_last(self) : self, working) && !grd_pending() &&
           grd_plan_in_order(p, grd_dims_from(sizes, image.n + 2), channels_last, dtype) && grd_plan_computed_in(p, working);
}

/* Sets x->channels_last from the strides of `self`. Also sets the number of images, and the number of channels that are resampled together. If
 * channels-last, all channels are resampled together. Otherwise each channel counts as an image. */
static void take_order(struct resample *x, const grd_tensor *self)
{
    x->channels_last = self->ndim > 3 && grd_shape_suggests_channels_last(grd_sizes(self), self->strides);
    x->kernel.channels = x->channels_last ? self->sizes[1] : 1;
    x->images = x->channels_last ? self->sizes[0] : self->sizes[0] * self->sizes[1];
}

/* Plans a call that resamples `self` to images of the spatial sizes `size`: its operand, its result and its scratch memory. The caller has set the
 * sizes and scales in the plan's state. Returns false, with the error raised, on failure. */
static bool plan_pieces(struct grd_plan *p, grd_tensor *self, grd_dims size)
{
    struct resample *x = resample_of(p);
    take_order(x, self);
    if (!plan_images(p, self, size, x->channels_last) || !size_tables(p, x))
        return false;
    size_pieces(p, x);
    return true;
}

static bool plan_resampled(struct grd_plan *p, grd_tensor *self, grd_dims size, const char *mode, bool align_corners, bool antialias,
                           grd_scalar scales_d, grd_scalar scales_h, grd_scalar scales_w)
{
    struct resample *x = resample_of(p);
    *x = (struct resample){.source = {.n = size.n, .align_corners = align_corners, .antialias = antialias}};
    if (!check_ndim(self, size.n) ||
        !take_arguments(x, self, grd_image_sizes(grd_sizes(self), size.n), size, mode, scales_d, scales_h, scales_w))
        return false;
    return plan_pieces(p, self, size);
}

bool plan_resample(struct grd_plan *p, grd_tensor *self, grd_dims size, const char *mode, bool align_corners, bool antialias,
                   grd_scalar scales_d, grd_scalar scales_h, grd_scalar scales_w)
{
    return plan_resampled(p, self, size, mode, align_corners, antialias, scales_d, scales_h, scales_w);
}

static const grd_scalar unscaled = {.kind = GRD_SCALAR_NONE};

static bool check_output_size(grd_dims size, int64_t n)
{
    return size.n == n ||
           grd_raise(GRD_ERROR_RUNTIME, "It is expected output_size equals to %lld, but got size %lld", (long long)n, (long long)size.n);
}

bool plan_resample_row(struct grd_plan *p, grd_tensor *self, grd_dims output_size, grd_scalar scales, bool align_corners, const char *mode)
{
    return check_output_size(output_size, 1) &&
           plan_resampled(p, self, output_size, mode, align_corners, false, unscaled, unscaled, scales);
}

bool plan_resample_image(struct grd_plan *p, grd_tensor *self, grd_dims output_size, grd_scalar scales_h, grd_scalar scales_w,
                         bool align_corners, const char *mode, bool antialias)
{
    return check_output_size(output_size, 2) &&
           plan_resampled(p, self, output_size, mode, align_corners, antialias, unscaled, scales_h, scales_w);
}

bool plan_resample_volume(struct grd_plan *p, grd_tensor *self, grd_dims output_size, grd_scalar scales_d, grd_scalar scales_h,
                          grd_scalar scales_w, bool align_corners, const char *mode)
{
    return check_output_size(output_size, 3) &&
           plan_resampled(p, self, output_size, mode, align_corners, false, scales_d, scales_h, scales_w);
}

/* Changes x, which describes the forward pass, to describe the backward pass. The backward pass is a resampling, too, because the gradient of an
 * input element is a weighted sum of the gradients of the output elements to which it contributed. */
static void transpose(struct resample *x)
{
    x->source.transposed = true;
    for (int i = 0; i < GRD_RESAMPLE_AXES; i++) {
        struct grd_resample_axis *a = &x->kernel.axes[i];
        *a = (struct grd_resample_axis){.in = a->out, .out = a->in, .taps = grd_resample_most_outputs(&x->source, i, a->in, a->out)};
    }
}

bool plan_resample_backward(struct grd_plan *p, grd_tensor *self, grd_dims size, const char *mode, bool align_corners, bool antialias,
                            grd_scalar scales_d, grd_scalar scales_h, grd_scalar scales_w)
{
    struct resample *x = resample_of(p);
    *x = (struct resample){.source = {.n = size.n, .align_corners = align_corners, .antialias = antialias}};
    if (!check_ndim(self, size.n) ||
        !take_arguments(x, self, size, grd_image_sizes(grd_sizes(self), size.n), mode, scales_d, scales_h, scales_w))
        return false;
    if (!grd_dtype_is_floating((grd_dtype)self->dtype))
        return grd_raise_no_kernel("upsample_backward", (grd_dtype)self->dtype);
    transpose(x);
    return plan_pieces(p, self, size);
}

/* ---- Runs ------------------------------------------------------------------------------------------------------------------------------- */

/* Computes the rows [begin, end) of the result. */
static void resample_piece(int64_t begin, int64_t end, void *context)
{
    const struct resample *x = context;
    int64_t *const keys = (int64_t *)(x->pieces + begin / x->grain * x->piece_bytes);
    x->kernels->forward(&x->kernel, begin, end, x->in, x->out, keys + x->kernel.lines, keys);
}

void run_resample(const struct grd_plan *p)
{
    struct resample *x = resample_of(p);
    x->in = p->in[0]->data;
    x->out = p->results[0]->data;
    grd_resample_make_tables(&x->source, &x->kernel, p->scratch);
    x->pieces = p->scratch + x->table_bytes;
    grd_parallel_for(0, x->images * x->kernel.axes[0].out * x->kernel.axes[1].out, x->grain, resample_piece, x);
}

grd_dims grd_image_sizes_as(grd_dims sizes, grd_dims image)
{
    return grd_image_sizes(sizes, image.n);
}
