/* Plans and runs max pooling and average pooling, with windows of fixed size and with adaptive windows. This file checks arguments, chooses memory
 * formats and divides the work into tasks. The loops are in kernel/cpu/pool.c. fractional_max_pool and max_unpool are in unpool.c. Schema:
 * schema/pooling.toml.
 *
 * The kernels treat every image as three-dimensional. Images with fewer spatial dimensions get size 1 along the missing ones. Half types are
 * computed in float32, integers in int64. If the input is channels_last, the kernels read and write channels as the innermost dimension.
 *
 * Invariant: kernel sizes, strides, paddings and dilations fit in int32, as PyTorch demands, so that no product of two of them overflows int64. */
#include "kernel/pool.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/integer.h"
#include "base/memory.h"
#include "base/parallel.h"
#include "gen/uses/op/pool.h"
#include "core/shape.h"
#include "core/tensor.h"
#include "gradus/library.h"
#include "kernel/table.h"
#include "op/plan.h"
#include "op/formula.h"

enum {
    PIECE = 1 << 15,       /* approximate number of window elements per task */
    PIECES = 64,           /* maximum number of tasks; it limits the scratch memory, since each task has its own */
    LINES_BYTES = 1 << 13, /* approximate bytes of rows that are processed together, a fraction of the first-level cache */
    TEXT_CHARS = 128
};

/* Maximum bytes of one row of an image in scratch memory. Larger rows are refused, so that products of sizes do not overflow. */
static const double MOST_LINE_BYTES = 0x1p50;

/* The data that the plan of a pooling operator or its gradient passes to its run. */
struct pool {
    struct grd_pool windows;
    const struct grd_pool_row *kernels;
    const char *name; /* name of the operator in error texts */
    int64_t n;        /* number of spatial dimensions of an image, 1 to 3; they are the last of the GRD_POOL_AXES axes */
    bool channels_last;
    /* Number of images; channels count as separate images unless channels_last. */
    int64_t images;
    int64_t rows, grain; /* rows: number of rows in all images of the result; grain: rows per task */
    /* piece_bytes: bytes of scratch memory of one task. pieces: the scratch memory of all tasks. */
    int64_t piece_bytes;
    char *pieces;
    const char *in; /* data of the input or, in a gradient operator, of the gradient of the output */
    /* For the gradient of max pooling: the index of each maximum, which the forward pass has stored. */
    const int64_t *indices;
    char *out; /* data of the output or, in a gradient operator, of the gradient of the input */
    /* Indices that max pooling writes; NULL if they are not wanted. */
    int64_t *found;
};

static struct pool *pool_of(const struct grd_plan *p)
{
    return (struct pool *)(uintptr_t)p->state;
}

/* Initialises and returns the state of a plan. `name` is the operator's name for error texts, and n the number of spatial dimensions of an image.
 * Axes that the images do not have get size 1. */
static struct pool *open_pool(struct grd_plan *p, const char *name, int64_t n)
{
    struct pool *x = pool_of(p);
    *x = (struct pool){.name = name, .n = n};
    struct grd_pool *w = &x->windows;
    for (int i = 0; i < GRD_POOL_AXES; i++)
        w->in[i] = w->out[i] = w->kernel[i] = w->stride[i] = w->dilation[i] = 1;
    return x;
}

/* Returns the first axis that the images use. The compute kernels always have GRD_POOL_AXES spatial axes, and images with fewer spatial dimensions
 * use the last ones. */
static int64_t first_axis(const struct pool *x)
{
    return GRD_POOL_AXES - x->n;
}

/* ---- Texts for errors -------------------------------------------------------------------------------------------------------------- */

/* Returns the numbers, one per spatial dimension, as text, e.g. "kT: 2 kH: 3 kW: 3" for the letter "k". */
static const char *axes_text(const struct pool *x, const char *letter, const int64_t *numbers)
{
    static const char *const names[GRD_POOL_AXES] = {"T", "H", "W"};
    char *const text = grd_pool_alloc(TEXT_CHARS);
    for (int64_t i = first_axis(x), used = 0; text != NULL && i < GRD_POOL_AXES; i++)
        used += snprintf(text + used, (size_t)(TEXT_CHARS - used), "%s%s%s: %lld", used > 0 ? " " : "", letter, names[i],
                         (long long)numbers[i]);
    return text != NULL ? text : "";
}

/* Returns the number of channels and the sizes of an image as text, e.g. "2x5x5". */
static const char *image_text(const struct pool *x, int64_t channels, const int64_t *sizes)
{
    char *const text = grd_pool_alloc(TEXT_CHARS);
    int64_t used = text != NULL ? snprintf(text, TEXT_CHARS, "%lld", (long long)channels) : 0;
    for (int64_t i = first_axis(x); text != NULL && i < GRD_POOL_AXES; i++)
        used += snprintf(text + used, (size_t)(TEXT_CHARS - used), "x%lld", (long long)sizes[i]);
    return text != NULL ? text : "";
}

/* ---- Arguments ------------------------------------------------------------------------------------------------------------------------ */

/* Reads an argument with one number per spatial dimension, or one number for all, and writes the numbers to `to`. Raises RuntimeError if the
 * count of numbers is wrong, or a number does not fit in int32. */
static bool take_numbers(const struct pool *x, const char *argument, grd_dims given, int64_t *to)
{
    if (given.n != 1 && given.n != x->n)
        return grd_raise(GRD_ERROR_RUNTIME, "%s: %s must either be a single int, or a tuple of %s ints", x->name, argument,
                         x->n == 2 ? "two" : "three");
    for (int64_t i = 0; i < x->n; i++) {
        const int64_t number = given.data[given.n == 1 ? 0 : i];
        if (number != (int32_t)number)
            return grd_raise(GRD_ERROR_RUNTIME, "value cannot be converted to type int without overflow");
        to[first_axis(x) + i] = number;
    }
    return true;
}

static bool take_windows(struct pool *x, grd_dims kernel_size, grd_dims stride, grd_dims padding, grd_dims dilation)
{
    struct grd_pool *w = &x->windows;
    return take_numbers(x, "kernel_size", kernel_size, w->kernel) &&
           take_numbers(x, "stride", stride.n > 0 ? stride : kernel_size, w->stride) && take_numbers(x, "padding", padding, w->padding) &&
           take_numbers(x, "dilation", dilation, w->dilation);
}

/* Reads the number and sizes of the images in `self`. If `keeps_order`, channels_last input gives a channels_last result. Raises RuntimeError if the
 * number of dimensions is wrong. */
static bool take_images(struct pool *x, const grd_tensor *self, bool keeps_order)
{
    const int64_t first = self->ndim - x->n;
    if (first != 1 && first != 2)
        return grd_raise(GRD_ERROR_RUNTIME, "%s(): Expected %lldD or %lldD tensor, but got: %s", x->name, (long long)x->n + 1,
                         (long long)x->n + 2, grd_list_text(grd_sizes(self)));
    memcpy(x->windows.in + first_axis(x), self->sizes + first, (size_t)x->n * sizeof *self->sizes);
    x->channels_last = first == 2 && keeps_order && grd_shape_suggests_channels_last(grd_sizes(self), self->strides);
    x->windows.channels = x->channels_last ? self->sizes[1] : 1;
    x->images = grd_sizes_product(self->sizes, x->channels_last ? 1 : first);
    return true;
}

/* Returns the dtype of the computation. The kernels store positions of elements within an image as integers of the same size as this dtype, so images
 * of more than INT32_MAX elements are computed in float64. */
static grd_dtype working_dtype(const struct pool *x, grd_dtype dtype)
{
    if (grd_dtype_is_integral(dtype))
        return GRD_INT64;
    if (grd_sizes_product(x->windows.in, GRD_POOL_AXES) > INT32_MAX)
        return GRD_FLOAT64;
    return grd_computed_dtype(dtype);
}

/* Looks up the kernels for the dtype. Raises NotImplementedError if there are none. `integers` is true if the operator supports integers. */
static bool take_kernels(struct pool *x, grd_dtype dtype, bool integers)
{
    const bool served = grd_dtype_is_floating(dtype) || (integers && grd_dtype_is_integral(dtype) && dtype != GRD_BOOL);
    x->kernels = served ? grd_kernels->pool[working_dtype(x, dtype)] : NULL;
    return x->kernels != NULL || grd_raise_no_kernel(x->name, dtype);
}

/* Returns a / b rounded towards minus infinity. */
static int64_t floor_quotient(int64_t a, int64_t b)
{
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

/* Sets w->out[axis] to the number of windows along an axis. Raises RuntimeError if the stride is 0 or the padding is negative or too large. With
 * `ceil_mode`, the last window must begin in the input or in the padding before the input. */
static bool count_windows(struct grd_pool *w, int64_t axis, bool ceil_mode)
{
    const int64_t kernel = w->kernel[axis], stride = w->stride[axis], padding = w->padding[axis], dilation = w->dilation[axis],
                  in = w->in[axis];
    const int64_t extent = (kernel - 1) * dilation + 1;
    if (stride == 0)
        return grd_raise(GRD_ERROR_RUNTIME, "stride should not be zero");
    if (padding < 0)
        return grd_raise(GRD_ERROR_RUNTIME, "pad must be non-negative, but got pad: %lld", (long long)padding);
    if (padding > extent / 2)
        return grd_raise(GRD_ERROR_RUNTIME,
                         "pad should be at most half of effective kernel size, but got pad=%lld, kernel_size=%lld and dilation=%lld",
                         (long long)padding, (long long)kernel, (long long)dilation);
    w->out[axis] = floor_quotient(in + 2 * padding - extent + (ceil_mode ? stride - 1 : 0), stride) + 1;
    if (ceil_mode && (w->out[axis] - 1) * stride >= in + padding)
        w->out[axis]--;
    return true;
}

static bool check_positive(const struct pool *x, const char *what, const char *letter, const int64_t *numbers)
{
    for (int64_t i = first_axis(x); i < GRD_POOL_AXES; i++)
        if (numbers[i] <= 0)
            return grd_raise(GRD_ERROR_RUNTIME, "%s should be greater than zero, but got %s", what, axes_text(x, letter, numbers));
    return true;
}

/* Returns the dimension of the channels of `self`. */
static int64_t channel_dim(const struct pool *x, const grd_tensor *self)
{
    return self->ndim - x->n - 1;
}

static bool check_windows(struct pool *x, const grd_tensor *self, bool ceil_mode)
{
    struct grd_pool *w = &x->windows;
    if (!check_positive(x, "dilation", "dilation", w->dilation))
        return false;
    for (int64_t i = first_axis(x); i < GRD_POOL_AXES; i++)
        if (!count_windows(w, i, ceil_mode))
            return false;
    if (!check_positive(x, "kernel size", "k", w->kernel) || !check_positive(x, "stride", "d", w->stride))
        return false;
    const int64_t channels = self->sizes[channel_dim(x, self)];
    for (int64_t i = first_axis(x); i < GRD_POOL_AXES; i++) {
        if (2 * w->padding[i] > w->kernel[i])
            return grd_raise(GRD_ERROR_RUNTIME, "pad should be smaller than or equal to half of kernel size, but got %s %s",
                             axes_text(x, "pad", w->padding), axes_text(x, "k", w->kernel));
        if (w->out[i] < 1)
            return grd_raise(GRD_ERROR_RUNTIME, "Given input size: (%s). Calculated output size: (%s). Output size is too small",
                             image_text(x, channels, w->in), image_text(x, channels, w->out));
    }
    return true;
}

/* Reads the output size of adaptive pooling. If the output size divides the input size, all windows have the same size. Otherwise kernel and stride
 * are set to 0, which tells the kernels that the windows differ in size. */
static bool take_adaptive(struct pool *x, grd_dims output_size)
{
    struct grd_pool *w = &x->windows;
    if (output_size.n != 1 && output_size.n != x->n)
        return grd_raise(GRD_ERROR_RUNTIME, "%s: output_size must be %lld", x->name, (long long)x->n);
    for (int64_t k = 0; k < x->n; k++) {
        const int64_t i = first_axis(x) + k, out = output_size.data[output_size.n == 1 ? 0 : k];
        if (out < 0)
            return grd_raise(GRD_ERROR_RUNTIME, "%s: elements of output_size must be greater than or equal to 0 but received %s", x->name,
                             grd_list_text(output_size));
        w->out[i] = out;
        w->kernel[i] = w->stride[i] = out > 0 && w->in[i] % out == 0 ? w->in[i] / out : 0;
    }
    return true;
}

/* Sets the sizes of the input images to `size`, an argument of the gradient operator. Raises RuntimeError if a size is negative. */
static bool take_size(struct pool *x, grd_dims size)
{
    for (int64_t i = 0; i < x->n; i++) {
        if (size.data[i] < 0)
            return grd_raise(GRD_ERROR_RUNTIME, "the size of an image is negative: %s", grd_list_text(size));
        x->windows.in[first_axis(x) + i] = size.data[i];
    }
    return true;
}

/* ---- Division into tasks -------------------------------------------------------------------------------------------------------------- */

/* Returns n / size rounded up. */
static int64_t parts_of(int64_t n, int64_t size)
{
    return n / size + (n % size > 0);
}

/* Returns the number of rows of the result whose windows together have about PIECE elements. The number is at least 1. */
static int64_t row_grain(const struct pool *x)
{
    const struct grd_pool *w = &x->windows;
    double elements = (double)w->out[2] * (double)w->channels;
    for (int i = 0; i < GRD_POOL_AXES; i++)
        elements *= (double)(w->kernel[i] > 0 ? grd_least(w->kernel[i], w->in[i]) : w->in[i] / grd_greatest(w->out[i], 1) + 1);
    return elements < PIECE ? (int64_t)(PIECE / (elements + 1)) + 1 : 1;
}

/* Sets x->rows, the number of rows of all images of the result, and x->grain, the number of rows per task. `sizes` are the sizes of an image of the
 * result. Also plans the tasks' scratch memory, whose rows have `width` elements per channel. If a size overflows, so much scratch memory is planned
 * that its allocation raises an error. */
static void plan_rows(struct grd_plan *p, const int64_t *sizes, int64_t width, grd_dtype working)
{
    struct pool *x = pool_of(p);
    const bool is_empty = x->images == 0 || x->windows.channels == 0 || sizes[0] == 0 || sizes[1] == 0 || sizes[2] == 0;
    const double line = (double)width * (double)x->windows.channels * (double)grd_dtype_size(working) + GRD_POOL_SLACK;
    x->rows = 0;
    x->grain = 1;
    if (is_empty)
        return;
    if (line > MOST_LINE_BYTES || __builtin_mul_overflow(x->images, sizes[0], &x->rows) ||
        __builtin_mul_overflow(x->rows, sizes[1], &x->rows)) {
        grd_plan_scratch(p, HUGE_VAL);
        return;
    }
    x->windows.lines = (int)grd_greatest(grd_least(LINES_BYTES / (int64_t)line, GRD_POOL_LINES), 1);
    x->grain = grd_greatest(parts_of(x->rows, PIECES), row_grain(x));
    x->piece_bytes = (2 * x->windows.lines * (int64_t)line / GRD_POOL_SLACK + 1) * GRD_POOL_SLACK;
    p->scratch_bytes = (size_t)(x->piece_bytes * parts_of(x->rows, x->grain));
}

/* ---- Planned tensors ------------------------------------------------------------------------------------------------------------------ */

static bool read_images(struct grd_plan *p, grd_tensor *t, grd_dtype dtype)
{
    return grd_plan_reads_as(p, pool_of(p)->channels_last ? grd_composite_channels_last(t) : t, dtype) && !grd_pending();
}

/* Plans a result with the batch and channels of `like` and images of the sizes `image`. The run writes the result in the dtype `written`, and it is
 * then converted to `dtype`. */
static bool plan_images(struct grd_plan *p, const grd_tensor *like, const int64_t *image, grd_dtype dtype, grd_dtype written)
{
    struct pool *x = pool_of(p);
    int64_t sizes[GRD_MAX_DIMS];
    memcpy(sizes, like->sizes, (size_t)like->ndim * sizeof *sizes);
    memcpy(sizes + like->ndim - x->n, image + first_axis(x), (size_t)x->n * sizeof *sizes);
    return grd_plan_in_order(p, grd_dims_from(sizes, like->ndim), x->channels_last, dtype) && grd_plan_computed_in(p, written);
}

static bool plan_output(struct grd_plan *p, grd_tensor *self)
{
    struct pool *x = pool_of(p);
    const grd_dtype dtype = (grd_dtype)self->dtype, working = working_dtype(x, dtype);
    if (!read_images(p, self, working) || !plan_images(p, self, x->windows.out, dtype, working))
        return false;
    plan_rows(p, x->windows.out, x->windows.in[2], working);
    return true;
}

static bool plan_indices(struct grd_plan *p, const grd_tensor *self)
{
    return plan_images(p, self, pool_of(p)->windows.out, GRD_INT64, GRD_INT64);
}

/* ---- Tasks ----------------------------------------------------------------------------------------------------------------------------- */

/* Returns the scratch memory of the task that begins at row `begin`. */
static char *memory_of(const struct pool *x, int64_t begin)
{
    return x->pieces + begin / x->grain * x->piece_bytes;
}

static void largest_piece(int64_t begin, int64_t end, void *context)
{
    const struct pool *x = context;
    x->kernels->largest(&x->windows, begin, end, x->in, x->out, x->found, memory_of(x, begin));
}

static void largest_backward_piece(int64_t begin, int64_t end, void *context)
{
    const struct pool *x = context;
    x->kernels->largest_backward(&x->windows, begin, end, x->in, x->indices, x->out);
}

static void average_piece(int64_t begin, int64_t end, void *context)
{
    const struct pool *x = context;
    x->kernels->average(&x->windows, begin, end, x->in, x->out, memory_of(x, begin));
}

static void average_backward_piece(int64_t begin, int64_t end, void *context)
{
    const struct pool *x = context;
    x->kernels->average_backward(&x->windows, begin, end, x->in, x->out, memory_of(x, begin));
}

/* Runs a task over the rows of the result, in parallel. */
static void run_rows(const struct grd_plan *p, grd_task *task)
{
    struct pool *x = pool_of(p);
    x->in = p->in[0]->data;
    x->out = p->results[0]->data;
    x->pieces = p->scratch;
    grd_parallel_for(0, x->rows, x->grain, task, x);
}

/* ---- Max pooling ----------------------------------------------------------------------------------------------------------------------- */

bool plan_max_pool(struct grd_plan *p, grd_tensor *self, grd_dims kernel_size, grd_dims stride, grd_dims padding, grd_dims dilation,
                   bool ceil_mode, int64_t n, bool indices)
{
    struct pool *x = open_pool(p, n == 2 ? "max_pool2d" : "max_pool3d", n);
    return take_windows(x, kernel_size, stride, padding, dilation) && take_images(x, self, true) &&
           grd_check_pooled(x->name, self, channel_dim(x, self)) && check_windows(x, self, ceil_mode) &&
           take_kernels(x, (grd_dtype)self->dtype, true) && plan_output(p, self) && (!indices || plan_indices(p, self));
}

/* As in PyTorch, dimension 0 may be empty, even if it has the channels. */
bool plan_adaptive_max_pool(struct grd_plan *p, grd_tensor *self, grd_dims output_size, int64_t n)
{
    struct pool *x = open_pool(p, n == 2 ? "adaptive_max_pool2d" : "adaptive_max_pool3d", n);
    return take_images(x, self, n == 2) && grd_check_pooled(x->name, self, 1) && take_adaptive(x, output_size) &&
           take_kernels(x, (grd_dtype)self->dtype, false) && plan_output(p, self) && plan_indices(p, self);
}

void run_max_pool(const struct grd_plan *p)
{
    pool_of(p)->found = p->nresults > 1 ? (int64_t *)p->results[1]->data : NULL;
    run_rows(p, largest_piece);
}

/* Plans the gradient of max pooling. `self` is the gradient of the output. Each element of `self` is added to an image of sizes `size`, at the
 * position that `indices` gives for the element. The result has the memory format of `indices`. */
bool plan_window_scatter(struct grd_plan *p, grd_tensor *self, grd_dims size, grd_tensor *indices)
{
    struct pool *x = open_pool(p, "window_scatter", size.n);
    if (size.n < 1 || size.n > GRD_POOL_AXES || !grd_same_sizes(self, grd_sizes(indices)) || indices->dtype != GRD_INT64)
        return grd_raise(GRD_ERROR_RUNTIME, "expected the sizes of an image, and as many indices, int64, as gradients");
    if (!take_images(x, indices, true) || !take_kernels(x, (grd_dtype)self->dtype, false))
        return false;
    memcpy(x->windows.out, x->windows.in, sizeof x->windows.in);
    if (!take_size(x, size))
        return false;
    const grd_dtype dtype = (grd_dtype)self->dtype, working = working_dtype(x, dtype);
    return read_images(p, self, working) && read_images(p, indices, GRD_INT64) &&
           plan_images(p, self, pool_of(p)->windows.in, dtype, working);
}

/* Computes the gradient of the input. Starts with zeros, and adds each element of `self`, the gradient of the output, at its index. Each block of
 * channels of an image is written by one thread, in the order of the output. So the bits do not depend on the number of threads. */
void run_window_scatter(const struct grd_plan *p, grd_tensor *self, grd_dims size, grd_tensor *indices)
{
    (void)self, (void)size, (void)indices;
    struct pool *x = pool_of(p);
    const int64_t channels = grd_least(x->windows.channels, GRD_POOL_CHANNELS), outputs = grd_sizes_product(x->windows.out, GRD_POOL_AXES);
    x->in = p->in[0]->data;
    x->indices = (const int64_t *)p->in[1]->data;
    x->out = p->results[0]->data;
    memset(x->out, 0, (size_t)p->results[0]->numel * (size_t)p->results[0]->itemsize);
    grd_parallel_for(0, x->images * grd_ceil_div(x->windows.channels, GRD_POOL_CHANNELS), PIECE / (outputs * channels + 1) + 1,
                     largest_backward_piece, x);
}

/* ---- Average pooling ------------------------------------------------------------------------------------------------------------------- */

/* Raises RuntimeError if, in 3-D pooling, the kernel is larger than the unpadded image in some dimension. */
static bool check_reach(struct pool *x)
{
    const struct grd_pool *w = &x->windows;
    for (int i = 0; i < GRD_POOL_AXES; i++)
        if (x->n == 3 && w->in[i] < w->kernel[i])
            return grd_raise(GRD_ERROR_RUNTIME, "input image (%s) smaller than kernel size (%s)", axes_text(x, "", w->in),
                             axes_text(x, "k", w->kernel));
    return true;
}

static bool take_average(struct pool *x, grd_tensor *like, grd_dims kernel_size, grd_dims stride, grd_dims padding, bool count_include_pad,
                         grd_scalar divisor)
{
    x->windows.include_pad = count_include_pad;
    x->windows.divisor = divisor.kind == GRD_SCALAR_NONE ? 0 : grd_scalar_int64(divisor);
    if (divisor.kind != GRD_SCALAR_NONE && x->windows.divisor == 0)
        return grd_raise(GRD_ERROR_RUNTIME, "divisor must be not zero");
    return take_windows(x, kernel_size, stride, padding, grd_dims(1)) && take_images(x, like, x->n == 2);
}

bool plan_avg_pool(struct grd_plan *p, grd_tensor *self, grd_dims kernel_size, grd_dims stride, grd_dims padding, bool ceil_mode,
                   bool count_include_pad, grd_scalar divisor_override, int64_t n)
{
    struct pool *x = open_pool(p, n == 2 ? "avg_pool2d" : "avg_pool3d", n);
    const grd_dtype dtype = (grd_dtype)self->dtype;
    return take_average(x, self, kernel_size, stride, padding, count_include_pad, divisor_override) &&
           grd_check_pooled(x->name, self, channel_dim(x, self)) && check_reach(x) && check_windows(x, self, ceil_mode) &&
           take_kernels(x, dtype, dtype == GRD_INT64) && plan_output(p, self);
}

/* As in PyTorch, dimension 0 may be empty, and so may the channels of two-dimensional images. */
bool plan_adaptive_avg_pool(struct grd_plan *p, grd_tensor *self, grd_dims output_size, int64_t n)
{
    struct pool *x = open_pool(p, n == 2 ? "adaptive_avg_pool2d" : "adaptive_avg_pool3d", n);
    return take_images(x, self, n == 2) && grd_check_pooled(x->name, self, n == 2 ? self->ndim - 2 : 1) && take_adaptive(x, output_size) &&
           take_kernels(x, (grd_dtype)self->dtype, false) && plan_output(p, self);
}

void run_average(const struct grd_plan *p)
{
    run_rows(p, average_piece);
}

/* Plans the backward operator of average pooling. Its result is the gradient of the input, with images of the sizes windows.in. `grad` is the
 * gradient of the output. */
static bool plan_average_gradient(struct grd_plan *p, grd_tensor *grad)
{
    struct pool *x = pool_of(p);
    const grd_dtype dtype = (grd_dtype)grad->dtype, working = working_dtype(x, dtype);
    for (int64_t i = 0; i < x->n; i++)
        if (x->windows.out[first_axis(x) + i] != grad->sizes[grad->ndim - x->n + i])
            return grd_raise(GRD_ERROR_RUNTIME, "the gradient does not have the sizes of the output: %s", grd_list_text(grd_sizes(grad)));
    if (!take_kernels(x, dtype, false) || !read_images(p, grad, working) || !plan_images(p, grad, x->windows.in, dtype, working))
        return false;
    plan_rows(p, x->windows.in, x->windows.out[2], working);
    return true;
}

bool plan_avg_pool_backward(struct grd_plan *p, grd_tensor *self, grd_dims size, grd_dims kernel_size, grd_dims stride, grd_dims padding,
                            bool ceil_mode, bool count_include_pad, grd_scalar divisor_override)
{
    struct pool *x = open_pool(p, "avg_pool_backward", size.n);
    if (size.n != 2 && size.n != 3)
        return grd_raise(GRD_ERROR_RUNTIME, "expected the sizes of an image of two or three dimensions, not %s", grd_list_text(size));
    return take_average(x, self, kernel_size, stride, padding, count_include_pad, divisor_override) && take_size(x, size) &&
           check_windows(x, self, ceil_mode) && plan_average_gradient(p, self);
}

bool plan_adaptive_avg_pool_backward(struct grd_plan *p, grd_tensor *self, grd_dims size, grd_dims output_size)
{
    struct pool *x = open_pool(p, "adaptive_avg_pool_backward", size.n);
    if (size.n != 2 && size.n != 3)
        return grd_raise(GRD_ERROR_RUNTIME, "expected the sizes of an image of two or three dimensions, not %s", grd_list_text(size));
    return take_images(x, self, size.n == 2) && take_size(x, size) && take_adaptive(x, output_size) && plan_average_gradient(p, self);
}

void run_average_backward(const struct grd_plan *p)
{
    run_rows(p, average_backward_piece);
}

/* ---- Functions that formulas in the schema call -------------------------------------------------------------------------------------- */

grd_dims grd_plane_sizes(grd_dims sizes, int64_t n)
{
    int64_t *const merged = grd_pool_array(sizes.n + 1, sizeof *merged);
    if (merged == NULL || n > sizes.n)
        return GRD_NO_DIMS;
    memcpy(merged, sizes.data, (size_t)(sizes.n - n) * sizeof *merged);
    merged[sizes.n - n] = grd_sizes_product(sizes.data + sizes.n - n, n);
    return grd_dims_from(merged, sizes.n - n + 1);
}

grd_dims grd_image_sizes(grd_dims sizes, int64_t n)
{
    return n > sizes.n ? GRD_NO_DIMS : grd_dims_from(sizes.data + sizes.n - n, n);
}

bool grd_is_pair(grd_dims size)
{
    return size.n == 2;
}

grd_dims grd_window_of_row(grd_dims numbers, int64_t above)
{
    int64_t *const pair = grd_pool_array(2, sizeof *pair);
    if (pair == NULL || numbers.n != 1)
        return GRD_NO_DIMS;
    pair[0] = above;
    pair[1] = numbers.data[0];
    return grd_dims_from(pair, 2);
}

static bool check_row(const char *name, const grd_tensor *self)
{
    return self->ndim == 2 || self->ndim == 3 ||
           grd_raise(GRD_ERROR_RUNTIME,
                     "Expected 2 to 3 dimensions, but got %d-dimensional tensor for argument #1 'self' (while checking arguments for %s)",
                     (int)self->ndim, name);
}

static bool check_one(const char *name, const char *argument, grd_dims numbers)
{
    return numbers.n == 1 ||
           grd_raise(GRD_ERROR_RUNTIME, "%s() argument '%s' should contain one int (got %lld)", name, argument, (long long)numbers.n);
}

grd_tensor *grd_row_images(const char *name, grd_tensor *self, grd_dims kernel_size, grd_dims stride, grd_dims padding, grd_dims dilation)
{
    const bool valid = check_row(name, self) && check_one(name, "kernel_size", kernel_size) &&
                       (stride.n == 0 || check_one(name, "stride", stride)) && check_one(name, "padding", padding) &&
                       check_one(name, "dilation", dilation);
    return valid ? grd_unsqueeze(self, -2) : grd_failed;
}

grd_tensor *grd_adaptive_row_images(const char *name, grd_tensor *self, grd_dims output_size)
{
    return check_row(name, self) && check_one(name, "output_size", output_size) ? grd_unsqueeze(self, -2) : grd_failed;
}

bool grd_check_pooled(const char *name, const grd_tensor *self, int64_t first)
{
    for (int64_t i = first; i < self->ndim; i++)
        if (self->sizes[i] == 0)
            return grd_raise(GRD_ERROR_RUNTIME,
                             "%s(): Expected input to have non-zero size for non-batch dimensions, but input has sizes %s with dimension "
                             "%lld being empty",
                             name, grd_list_text(grd_sizes(self)), (long long)i);
    return true;
}

bool grd_is_average(const grd_tensor *self, grd_dims output_size, int64_t n)
{
    if ((output_size.n != 1 && output_size.n != n) || (self->ndim != n + 1 && self->ndim != n + 2))
        return false;
    for (int64_t i = 0; i < n; i++)
        if (output_size.data[output_size.n == 1 ? 0 : i] != 1)
            return false;
    return true;
}

double grd_window_elements(grd_dims kernel_size, int64_t n)
{
    double elements = 1;
    for (int64_t i = 0; i < n && kernel_size.n > 0; i++)
        elements *= (double)kernel_size.data[i < kernel_size.n ? i : 0];
    return elements;
}
