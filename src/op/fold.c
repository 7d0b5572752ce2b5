/* Implements im2col, col2im, pixel_shuffle, pixel_unshuffle and channel_shuffle by views and copies. The autograd graph records each call of these
 * operators as one node. Schema: schema/fold.toml. */
#include <string.h>

#include "gen/uses/op/fold.h"
#include "base/integer.h"
#include "core/shape.h"
#include "core/tensor.h"
#include "gradus/library.h"
#include "op/formula.h"

enum { AXES = 2 };

/* Describes the sliding windows over an image. There are count[i] windows along axis i (0 for rows, 1 for columns). */
struct windows {
    int64_t size[AXES], kernel[AXES], dilation[AXES], padding[AXES], stride[AXES], count[AXES];
};

/* ---- Arguments ------------------------------------------------------------------------------------------------------------------------- */

static bool take_pair(const char *name, grd_dims given, int64_t *to)
{
    if (given.n != 1 && given.n != AXES)
        return grd_raise(GRD_ERROR_RUNTIME, "It is expected %s equals to 2, but got size %lld", name, (long long)given.n);
    for (int i = 0; i < AXES; i++) {
        to[i] = given.data[given.n == 1 ? 0 : i];
        if (to[i] != (int32_t)to[i])
            return grd_raise(GRD_ERROR_RUNTIME, "%s does not fit into 32 bits: %lld", name, (long long)to[i]);
    }
    return true;
}

static bool check_least(const int64_t *pair, int64_t least, const char *text, const char *name)
{
    return (pair[0] >= least && pair[1] >= least) || grd_raise(GRD_ERROR_RUNTIME, "%s, but got %s_height: %lld %s_width: %lld", text, name,
                                                               (long long)pair[0], name, (long long)pair[1]);
}

/* Reads the arguments into *w, checks them, and computes the number of windows. w->size is already set. */
static bool take_windows(struct windows *w, grd_dims kernel_size, grd_dims dilation, grd_dims padding, grd_dims stride)
{
    if (!take_pair("kernel_size", kernel_size, w->kernel) || !take_pair("dilation", dilation, w->dilation) ||
        !take_pair("padding", padding, w->padding) || !take_pair("stride", stride, w->stride) ||
        !check_least(w->kernel, 1, "kernel size should be greater than zero", "kernel") ||
        !check_least(w->dilation, 1, "dilation should be greater than zero", "dilation") ||
        !check_least(w->padding, 0, "padding should be non-negative", "pad") ||
        !check_least(w->stride, 1, "stride should be greater than zero", "stride"))
        return false;
    for (int i = 0; i < AXES; i++) {
        const int64_t room = w->size[i] + 2 * w->padding[i] - w->dilation[i] * (w->kernel[i] - 1) - 1;
        w->count[i] = (room < 0 ? -grd_ceil_div(-room, w->stride[i]) : room / w->stride[i]) + 1;
    }
    return true;
}

/* The format of a pair of numbers in PyTorch's errors, such as "(5, 5)". */
#define PAIR "(%lld, %lld)"

static bool check_count(const struct windows *w)
{
    return (w->count[0] > 0 && w->count[1] > 0) ||
           grd_raise(GRD_ERROR_RUNTIME,
                     "Given input with spatial size " PAIR ", kernel_size=" PAIR ", dilation=" PAIR ", padding=" PAIR
                     ", calculated shape of the array of sliding blocks as " PAIR ", but its components must be at least one.",
                     (long long)w->size[0], (long long)w->size[1], (long long)w->kernel[0], (long long)w->kernel[1],
                     (long long)w->dilation[0], (long long)w->dilation[1], (long long)w->padding[0], (long long)w->padding[1],
                     (long long)w->count[0], (long long)w->count[1]);
}

/* Raises RuntimeError if the number of dimensions of `self` is neither `unbatched` nor `unbatched` + 1, where the additional first dimension is the
 * batch. Also raises RuntimeError if a dimension other than the batch dimension is empty. */
static bool check_sizes(const grd_tensor *self, int unbatched)
{
    bool valid = self->ndim == unbatched || self->ndim == unbatched + 1;
    for (int i = self->ndim - unbatched; valid && i < self->ndim; i++)
        valid = self->sizes[i] > 0;
    if (unbatched == 3)
        return valid ||
               grd_raise(
                   GRD_ERROR_RUNTIME,
                   "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, but got: %s",
                   grd_list_text(grd_sizes(self)));
    return valid ||
           grd_raise(
               GRD_ERROR_RUNTIME,
               "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero dimensions for input, but got: %s",
               grd_list_text(grd_sizes(self)));
}

/* ---- Windows --------------------------------------------------------------------------------------------------------------------------- */

/* Returns a view of the elements that kernel element (row, column) reads in all windows over padded images (..., H, W). */
static grd_tensor *at_place(grd_tensor *padded, const struct windows *w, int64_t row, int64_t column)
{
    const int64_t begin[AXES] = {row * w->dilation[0], column * w->dilation[1]};
    for (int i = 0; i < AXES; i++)
        padded = grd_slice(padded, .dim = i - AXES, .start = grd_int(begin[i]),
                           .end = grd_int(begin[i] + (w->count[i] - 1) * w->stride[i] + 1), .step = w->stride[i]);
    return padded;
}

grd_tensor *op_im2col(grd_tensor *self, grd_dims kernel_size, grd_dims dilation, grd_dims padding, grd_dims stride)
{
    struct windows w;
    if (!check_sizes(self, 3))
        return grd_failed;
    memcpy(w.size, self->sizes + self->ndim - AXES, sizeof w.size);
    if (!take_windows(&w, kernel_size, dilation, padding, stride) || !check_count(&w))
        return grd_failed;
    grd_tensor *padded = grd_constant_pad_nd(self, grd_dims(w.padding[1], w.padding[1], w.padding[0], w.padding[0]));
    if (grd_pending())
        return grd_failed;
    /* A view of the padded image: (..., C, kernel height, kernel width, rows of windows, columns of windows). */
    int64_t sizes[GRD_MAX_DIMS], strides[GRD_MAX_DIMS];
    const int lead = self->ndim - AXES;
    const int64_t down = padded->strides[lead], right = padded->strides[lead + 1];
    memcpy(sizes, padded->sizes, (size_t)lead * sizeof *sizes);
    memcpy(strides, padded->strides, (size_t)lead * sizeof *strides);
    memcpy(sizes + lead, (const int64_t[]){w.kernel[0], w.kernel[1], w.count[0], w.count[1]}, 4 * sizeof *sizes);
    memcpy(strides + lead, (const int64_t[]){down * w.dilation[0], right * w.dilation[1], down * w.stride[0], right * w.stride[1]},
           4 * sizeof *strides);
    grd_tensor *windows = grd_as_strided(padded, grd_dims_from(sizes, lead + 4), grd_dims_from(strides, lead + 4));
    sizes[lead - 1] *= w.kernel[0] * w.kernel[1];
    sizes[lead] = w.count[0] * w.count[1];
    return grd_reshape(grd_clone(windows, .memory_format = "contiguous"), grd_dims_from(sizes, lead + 1));
}

static bool check_columns(const struct windows *w, const grd_tensor *self)
{
    const int64_t rows = self->sizes[self->ndim - 2], columns = self->sizes[self->ndim - 1],
                  blocks = grd_wrapping_product(w->count[0], w->count[1]);
    if (rows % (w->kernel[0] * w->kernel[1]) != 0)
        return grd_raise(
            GRD_ERROR_RUNTIME,
            "Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got input.size(1)=%lld and "
            "kernel_size=" PAIR ".",
            (long long)rows, (long long)w->kernel[0], (long long)w->kernel[1]);
    return (w->count[0] > 0 && w->count[1] > 0 && columns == blocks) ||
           grd_raise(GRD_ERROR_RUNTIME,
                     "Given output_size=" PAIR ", kernel_size=" PAIR ", dilation=" PAIR ", padding=" PAIR ", stride=" PAIR
                     ", expected size of input's dimension 2 to match the calculated number of sliding blocks %lld * %lld = %lld, but got "
                     "input.size(2)=%lld.",
                     (long long)w->size[0], (long long)w->size[1], (long long)w->kernel[0], (long long)w->kernel[1],
                     (long long)w->dilation[0], (long long)w->dilation[1], (long long)w->padding[0], (long long)w->padding[1],
                     (long long)w->stride[0], (long long)w->stride[1], (long long)w->count[0], (long long)w->count[1], (long long)blocks,
                     (long long)columns);
}

/* Adds the columns to the image one kernel element at a time. Different windows read different image elements through the same kernel element, so no
 * image element is written twice in one step. */
grd_tensor *op_col2im(grd_tensor *self, grd_dims output_size, grd_dims kernel_size, grd_dims dilation, grd_dims padding, grd_dims stride)
{
    struct windows w;
    if (!check_sizes(self, 2) || !take_pair("output_size", output_size, w.size) ||
        !take_windows(&w, kernel_size, dilation, padding, stride) || !check_columns(&w, self))
        return grd_failed;
    const int lead = self->ndim - AXES;
    const int64_t places = w.kernel[0] * w.kernel[1], channels = self->sizes[lead] / places, batch = lead > 0 ? self->sizes[0] : 1;
    grd_tensor *columns = grd_reshape(self, grd_dims(batch, channels, places, w.count[0], w.count[1]));
    grd_tensor *padded = grd_zeros(grd_dims(batch, channels, w.size[0] + 2 * w.padding[0], w.size[1] + 2 * w.padding[1]),
                                   .dtype = (grd_dtype)self->dtype, .device = grd_device_of(self));
    for (int64_t place = 0; place < places && !grd_pending(); place++) {
        const int64_t mark = grd_pool_mark();
        grd_add_(at_place(padded, &w, place / w.kernel[1], place % w.kernel[1]), grd_select(columns, 2, place));
        grd_pool_release(mark);
    }
    grd_tensor *images = grd_narrow(grd_narrow(padded, 2, w.padding[0], w.size[0]), 3, w.padding[1], w.size[1]);
    grd_tensor *result = grd_contiguous(lead > 0 ? images : grd_squeeze(images, .dim = grd_dims(0)));
    return grd_pending() || result->base == NULL ? result : grd_clone(result);
}

/* ---- Channels and pixels --------------------------------------------------------------------------------------------------------------- */

static bool check_factor(const char *name, const char *argument, const grd_tensor *self, int64_t factor)
{
    if (self->ndim < 3)
        return grd_raise(GRD_ERROR_RUNTIME, "%s expects input to have at least 3 dimensions, but got input with %d dimension(s)", name,
                         (int)self->ndim);
    return factor > 0 || grd_raise(GRD_ERROR_RUNTIME, "%s expects a positive %s, but got %lld", name, argument, (long long)factor);
}

/* Splits the last three dimensions of self into n dimensions of sizes `parts`, permutes these by `order`, and reshapes them to three dimensions of
 * sizes `last`. */
static grd_tensor *arranged(grd_tensor *self, const int64_t *parts, const int *order, int n, const int64_t *last)
{
    int64_t sizes[GRD_MAX_DIMS], dims[GRD_MAX_DIMS];
    const int lead = self->ndim - 3;
    if (!grd_check_ndim(lead + n))
        return grd_failed;
    memcpy(sizes, self->sizes, (size_t)lead * sizeof *sizes);
    memcpy(sizes + lead, parts, (size_t)n * sizeof *sizes);
    for (int i = 0; i < lead + n; i++)
        dims[i] = i < lead ? i : lead + order[i - lead];
    grd_tensor *moved = grd_permute(grd_reshape(self, grd_dims_from(sizes, lead + n)), grd_dims_from(dims, lead + n));
    memcpy(sizes + lead, last, 3 * sizeof *sizes);
    grd_tensor *result =
        grd_composite_suggested(grd_reshape(grd_clone(moved, .memory_format = "contiguous"), grd_dims_from(sizes, lead + 3)), self);
    return grd_pending() ? grd_failed : result;
}

grd_tensor *op_pixel_shuffle(grd_tensor *self, int64_t upscale_factor)
{
    const int64_t r = upscale_factor;
    if (!check_factor("pixel_shuffle", "upscale_factor", self, r))
        return grd_failed;
    if (r != (int32_t)r)
        return grd_fail(GRD_ERROR_VALUE, "upscale factor is too large, (upscale_factor)^2 overflowed: upscale_factor=%lld", (long long)r);
    const int64_t *const image = self->sizes + self->ndim - 3;
    if (image[0] % (r * r) != 0)
        return grd_fail(GRD_ERROR_RUNTIME,
                        "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, but "
                        "input.size(-3)=%lld is not divisible by %lld",
                        (long long)image[0], (long long)(r * r));
    const int64_t channels = image[0] / (r * r);
    return arranged(self, (const int64_t[]){channels, r, r, image[1], image[2]}, (const int[]){0, 3, 1, 4, 2}, 5,
                    (const int64_t[]){channels, grd_wrapping_product(image[1], r), grd_wrapping_product(image[2], r)});
}

grd_tensor *op_pixel_unshuffle(grd_tensor *self, int64_t downscale_factor)
{
    const int64_t r = downscale_factor;
    if (!check_factor("pixel_unshuffle", "downscale_factor", self, r))
        return grd_failed;
    const int64_t *const image = self->sizes + self->ndim - 3;
    for (int i = 1; i < 3; i++)
        if (image[i] % r != 0)
            return grd_fail(
                GRD_ERROR_RUNTIME,
                "pixel_unshuffle expects %s to be divisible by downscale_factor, but input.size(%d)=%lld is not divisible by %lld",
                i == 1 ? "height" : "width", i - 3, (long long)image[i], (long long)r);
    return arranged(self, (const int64_t[]){image[0], image[1] / r, r, image[2] / r, r}, (const int[]){0, 2, 4, 1, 3}, 5,
                    (const int64_t[]){grd_wrapping_product(grd_wrapping_product(image[0], r), r), image[1] / r, image[2] / r});
}

grd_tensor *op_channel_shuffle(grd_tensor *self, int64_t groups)
{
    if (self->ndim < 3)
        return grd_fail(GRD_ERROR_RUNTIME, "channel_shuffle expects input with > 2 dims, but got input with sizes %s",
                        grd_list_text(grd_sizes(self)));
    if (groups <= 0)
        return grd_fail(GRD_ERROR_RUNTIME, "Number of groups to divide channels in must be positive. Value of groups:%lld",
                        (long long)groups);
    const int64_t channels = self->sizes[1];
    if (channels % groups != 0)
        return grd_fail(GRD_ERROR_RUNTIME, "Number of channels must be divisible by groups. Got %lld channels and %lld groups.",
                        (long long)channels, (long long)groups);
    grd_tensor *parts = grd_unflatten(self, 1, grd_dims(groups, channels / groups));
    grd_tensor *shuffled = grd_flatten(grd_clone(grd_transpose(parts, 1, 2), .memory_format = "contiguous"), .start_dim = 1, .end_dim = 2);
    return grd_pending() ? grd_failed : grd_composite_suggested(shuffled, self);
}

int64_t grd_groups_back(grd_dims sizes, int64_t groups)
{
    return sizes.n > 1 && sizes.data[1] > 0 ? sizes.data[1] / groups : 1;
}
