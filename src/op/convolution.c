/* The plan functions of convolutions: they check the arguments, compute the shape of the result and choose the implementation. The implementations
 * are in convolution_run.c, convolution_direct.c and convolution_small.c. Schema: schema/convolution.toml. */
#include "op/convolution.h"

#include <stdio.h>
#include <string.h>

#include "gen/uses/op/convolution.h"
#include "core/dtype.h"
#include "core/shape.h"
#include "core/tensor.h"
#include "gradus/library.h"
#include "op/formula.h"
#include "op/product.h"

/* ---- Checks ------------------------------------------------------------------------------------------------------------------------ */

/* Reads `list`, an argument such as `stride`, into the last n elements of ret_values. `list` holds either one number for all n spatial dimensions, or
 * one number for each of them. Raises RuntimeError if it holds any other number of elements. */
static bool take_list(grd_dims list, int64_t n, const char *name, int64_t *ret_values)
{
    if (list.n != 1 && list.n != n)
        return grd_raise(
            GRD_ERROR_RUNTIME,
            "expected %s to be a single integer value or a list of %lld values to match the convolution dimensions, but got %s=%s", name,
            (long long)n, name, grd_list_text(list));
    for (int64_t i = 0; i < n; i++)
        ret_values[GRD_CONV_DIMS - n + i] = list.data[list.n == 1 ? 0 : i];
    return true;
}

static bool all_from(const int64_t *values, int64_t least)
{
    return values[0] >= least && values[1] >= least && values[2] >= least;
}

/* Sets the stride, padding, dilation and number of groups of *c. Raises RuntimeError if one of them is invalid. `n` is the number of spatial
 * dimensions. */
static bool take_settings(struct grd_conv *c, int64_t n, grd_dims stride, grd_dims padding, grd_dims dilation, int64_t groups)
{
    for (int i = 0; i < GRD_CONV_DIMS; i++) {
        c->image[i] = c->kernel[i] = c->places[i] = c->stride[i] = c->dilation[i] = 1;
        c->padding[i] = 0;
    }
    c->groups = groups;
    c->is_channels_last = c->is_lines = c->is_split = false;
    if (!take_list(stride, n, "stride", c->stride) || !take_list(padding, n, "padding", c->padding) ||
        !take_list(dilation, n, "dilation", c->dilation))
        return false;
    if (!all_from(c->padding, 0))
        return grd_raise(GRD_ERROR_RUNTIME, "negative padding is not supported");
    if (!all_from(c->stride, 1))
        return grd_raise(GRD_ERROR_RUNTIME, "non-positive stride is not supported");
    if (groups < 1)
        return grd_raise(GRD_ERROR_RUNTIME, "non-positive groups is not supported");
    return all_from(c->dilation, 1) ||
           grd_raise(GRD_ERROR_RUNTIME, "dilation should be greater than zero, but got %s", grd_list_text(dilation));
}

/* Reads the sizes of a weight (output channels, input channels of a group, kernel sizes ...) into the members of *c. Raises RuntimeError if the
 * number of output channels is no multiple of the number of groups. */
static bool take_weight(struct grd_conv *c, grd_dims weight)
{
    const int64_t n = weight.n - 2;
    if (n < 1 || n > GRD_CONV_DIMS)
        return grd_raise(GRD_ERROR_RUNTIME, "weight should have 3, 4 or 5 dimensions, but got weight of size %s", grd_list_text(weight));
    if (weight.data[0] < c->groups)
        return grd_raise(GRD_ERROR_RUNTIME,
                         "Given groups=%lld, expected weight to be at least %lld at dimension 0, but got weight of size %s instead",
                         (long long)c->groups, (long long)c->groups, grd_list_text(weight));
    if (weight.data[0] % c->groups != 0)
        return grd_raise(GRD_ERROR_RUNTIME,
                         "Given groups=%lld, expected weight to be divisible by %lld at dimension 0, but got weight of size %s instead",
                         (long long)c->groups, (long long)c->groups, grd_list_text(weight));
    int64_t channels;
    if (__builtin_mul_overflow(c->groups, weight.data[1], &channels))
        return grd_raise(GRD_ERROR_RUNTIME, "Given groups=%lld, weight of size %s has more channels than an int64 can count",
                         (long long)c->groups, grd_list_text(weight));
    c->outer = weight.data[0] / c->groups;
    c->inner = weight.data[1];
    memcpy(c->kernel + GRD_CONV_DIMS - n, weight.data + 2, (size_t)n * sizeof *weight.data);
    return all_from(c->kernel, 1) || grd_raise(GRD_ERROR_RUNTIME, "kernel size should be greater than zero, but got %s",
                                               grd_list_text(grd_dims_from(weight.data + 2, n)));
}

/* Reads `sizes`, the sizes of an input with n spatial dimensions, with or without a batch dimension. Sets c->batch and *ret_channels, and writes
 * the spatial sizes to the last n elements of ret_sizes. Raises RuntimeError if there are not n + 1 or n + 2 sizes. */
static bool take_input(struct grd_conv *c, grd_dims sizes, int64_t n, int64_t *ret_channels, int64_t *ret_sizes)
{
    if (sizes.n != n + 1 && sizes.n != n + 2)
        return grd_raise(GRD_ERROR_RUNTIME, "Expected %lldD (unbatched) or %lldD (batched) input to conv%lldd, but got input of size: %s",
                         (long long)n + 1, (long long)n + 2, (long long)n, grd_list_text(sizes));
    c->batch = sizes.n == n + 2 ? sizes.data[0] : 1;
    *ret_channels = sizes.data[sizes.n - n - 1];
    memcpy(ret_sizes + GRD_CONV_DIMS - n, sizes.data + sizes.n - n, (size_t)n * sizeof *ret_sizes);
    return true;
}

static bool check_channels(const struct grd_conv *c, bool transposed, grd_dims weight, grd_dims input, int64_t channels)
{
    const int64_t wanted = c->groups * (transposed ? c->outer : c->inner);
    return channels == wanted ||
           grd_raise(GRD_ERROR_RUNTIME,
                     "Given %s=%lld, weight of size %s, expected input%s to have %lld channels, but got %lld channels instead",
                     transposed ? "transposed" : "groups", transposed ? 1LL : (long long)c->groups, grd_list_text(weight),
                     grd_list_text(input), (long long)wanted, (long long)channels);
}

static bool check_bias(const grd_tensor *bias, grd_dims weight, bool transposed, int64_t channels)
{
    return bias == NULL || (bias->ndim == 1 && bias->sizes[0] == channels) ||
           grd_raise(GRD_ERROR_RUNTIME,
                     "Given %sweight of size %s, expected bias to be 1-dimensional with %lld elements, but got bias of size %s instead",
                     transposed ? "transposed=1, " : "", grd_list_text(weight), (long long)channels, grd_list_text(grd_sizes(bias)));
}

/* Returns the last n of GRD_CONV_DIMS sizes as text, e.g. "3 x 4", in memory that the current pool owns. */
static const char *sizes_text(const int64_t *sizes, int64_t n)
{
    enum { MOST = 96 };
    char *const text = grd_pool_array(MOST, 1);
    for (int64_t i = GRD_CONV_DIMS - n, used = 0; i < GRD_CONV_DIMS && text != NULL; i++)
        used += snprintf(text + used, (size_t)(MOST - used), "%s%lld", used > 0 ? " x " : "", (long long)sizes[i]);
    return text != NULL ? text : "?";
}

/* Writes the extent of the dilated kernel along dimension i, (kernel - 1) * dilation + 1, to *ret_reach. Returns false if it overflows int64. */
static bool reach(const struct grd_conv *c, int i, int64_t *ret_reach)
{
    return !__builtin_mul_overflow(c->kernel[i] - 1, c->dilation[i], ret_reach) && !__builtin_add_overflow(*ret_reach, 1, ret_reach);
}

/* Sets c->places, the spatial sizes of the output, from the sizes of the image. Raises RuntimeError if the kernel is larger than the padded image.
 * `n` is the number of spatial dimensions. */
static bool find_places(struct grd_conv *c, int64_t n)
{
    int64_t padded[GRD_CONV_DIMS], spanned[GRD_CONV_DIMS];
    bool fits = true;
    for (int i = 0; i < GRD_CONV_DIMS; i++) {
        if (__builtin_mul_overflow(c->padding[i], 2, padded + i) || __builtin_add_overflow(padded[i], c->image[i], padded + i))
            return grd_raise(GRD_ERROR_RUNTIME, "Given padding=%lld, expected padding to be at most %lld", (long long)c->padding[i],
                             (long long)(INT64_MAX / 2));
        const bool known = reach(c, i, spanned + i);
        spanned[i] = known ? spanned[i] : INT64_MAX;
        fits = known && spanned[i] <= padded[i] && fits;
        c->places[i] = fits ? (padded[i] - spanned[i]) / c->stride[i] + 1 : 0;
    }
    return fits ||
           grd_raise(
               GRD_ERROR_RUNTIME,
               "Calculated padded input size per channel: (%s). Kernel size: (%s). Kernel size can't be greater than actual input size",
               sizes_text(padded, n), sizes_text(spanned, n));
}

/* Sets c->image, the spatial sizes of the image that a transposed convolution produces. `n` is the number of spatial dimensions; the last n elements
 * of output_padding are used. Raises RuntimeError if there are no output channels, or if a size overflows, is negative, or is 0 in a batch that is
 * not empty. */
static bool find_image(struct grd_conv *c, int64_t n, const int64_t *output_padding)
{
    bool fits = true;
    if (c->inner == 0)
        return grd_raise(GRD_ERROR_RUNTIME, "non-empty weight tensor expected, but got a weight for 0 output channels");
    for (int i = GRD_CONV_DIMS - (int)n; i < GRD_CONV_DIMS; i++) {
        int64_t spanned, covered, cut;
        if (!reach(c, i, &spanned) || __builtin_mul_overflow(c->padding[i], 2, &cut) ||
            __builtin_mul_overflow(c->places[i] - 1, c->stride[i], &covered) || __builtin_add_overflow(covered, spanned, &covered) ||
            __builtin_sub_overflow(covered, cut, &covered) || __builtin_add_overflow(covered, output_padding[i], &covered))
            return grd_raise(GRD_ERROR_RUNTIME, "the output size of a transposed convolution overflows for an input of size %lld",
                             (long long)c->places[i]);
        c->image[i] = covered;
        fits = fits && covered >= (c->batch > 0 ? 1 : 0);
    }
    return fits || grd_raise(GRD_ERROR_RUNTIME,
                             "Given input size per channel: (%s). Calculated output size per channel: (%s). Output size is too small",
                             sizes_text(c->places, n), sizes_text(c->image, n));
}

static bool check_output_padding(const struct grd_conv *c, bool transposed, int64_t n, grd_dims list, int64_t *ret_padding)
{
    memset(ret_padding, 0, GRD_CONV_DIMS * sizeof *ret_padding);
    if (!take_list(list, n, "output_padding", ret_padding))
        return false;
    if (!all_from(ret_padding, 0))
        return grd_raise(GRD_ERROR_RUNTIME, "negative output_padding is not supported");
    for (int i = 0; i < GRD_CONV_DIMS && transposed; i++)
        if (ret_padding[i] >= c->stride[i] && ret_padding[i] >= c->dilation[i])
            return grd_raise(
                GRD_ERROR_RUNTIME,
                "output padding must be smaller than either stride or dilation, but got output_padding: %s stride: %s dilation: %s",
                sizes_text(ret_padding, n), sizes_text(c->stride, n), sizes_text(c->dilation, n));
    return true;
}

static bool check_dtypes(const grd_tensor *input, const grd_tensor *weight, const grd_tensor *bias)
{
    const grd_dtype dtype = (grd_dtype)input->dtype;
    if (bias != NULL && bias->dtype != dtype)
        return grd_raise(GRD_ERROR_RUNTIME, "Input type (%s) and bias type (%s) should be the same", grd_dtype_c_name(dtype),
                         grd_dtype_c_name((grd_dtype)bias->dtype));
    if (weight->dtype != dtype)
        return grd_raise(GRD_ERROR_RUNTIME, "Input type (%s) and weight type (%s) should be the same", grd_dtype_c_name(dtype),
                         grd_dtype_c_name((grd_dtype)weight->dtype));
    return grd_product_exists(dtype) || grd_raise_no_kernel("convolution", dtype);
}

/* ---- Results -------------------------------------------------------------------------------------------------------------------------- */

/* True if the channels of `t` are its innermost dimension in memory. A 3-d tensor (1-d convolution) counts as an image of one row. */
static bool is_channels_last(const grd_tensor *t)
{
    if (t->ndim == 4)
        return grd_shape_suggests_channels_last(grd_sizes(t), t->strides);
    const int64_t sizes[4] = {t->sizes[0], t->sizes[1], 1, t->sizes[2]};
    const int64_t strides[4] = {t->strides[0], t->strides[1], t->sizes[2] * t->strides[2], t->strides[2]};
    return grd_shape_suggests_channels_last(grd_dims_from(sizes, 4), strides);
}

/* True if the result should have its channels innermost in memory. As in PyTorch, this is so if the weight has its channels innermost. In
 * two-dimensional convolutions it is also so if `seen`, the operand that the sliding window reads, has its channels innermost. */
static bool makes_channels_last(const struct grd_conv *c, const grd_tensor *seen, const grd_tensor *weight)
{
    const int64_t n = weight->ndim - 2;
    return c->kind != GRD_CONV_WEIGHT && n <= 2 && (is_channels_last(weight) || (n == 2 && seen->ndim == 4 && is_channels_last(seen)));
}

/* Plans a result with sizes (batch, channels, spatial sizes), where the spatial sizes are the last n elements of `last`. There is no batch
 * dimension unless `batched`. */
static bool plan_image(struct grd_plan *p, int64_t n, bool batched, int64_t channels, const int64_t *last)
{
    const struct grd_conv *c = grd_conv_of(p);
    int64_t sizes[2 + GRD_CONV_DIMS] = {c->batch, channels}, strides[2 + GRD_CONV_DIMS];
    memcpy(sizes + 2, last + GRD_CONV_DIMS - n, (size_t)n * sizeof *last);
    const grd_dims all = grd_dims_from(sizes, n + 2), own = batched ? all : grd_dims_from(sizes + 1, n + 1);
    if (!c->is_channels_last)
        return grd_plan_result(p, own, grd_conv_result_dtype(c));
    int64_t stride = grd_greatest(channels, 1);
    strides[1] = 1;
    for (int64_t i = n + 1; i > 1; stride *= grd_greatest(sizes[i--], 1))
        strides[i] = stride;
    strides[0] = stride;
    return grd_plan_strided(p, own, batched ? strides : strides + 1, grd_conv_result_dtype(c));
}

/* Plans to read the operands of a complex convolution that is computed as a real one. Each operand is replaced by its real parts, its imaginary parts
 * and the sums of both, concatenated along the channels. The channels are dimension 0 of a weight; in images and outputs they follow the batch
 * dimension, if there is one. */
static bool plan_split_reads(struct grd_plan *p, grd_tensor *seen, grd_tensor *multiplied, grd_tensor *bias, int64_t n)
{
    const struct grd_conv *c = grd_conv_of(p);
    const int64_t channels = seen->ndim - n - 1;
    p->prepare = grd_conv_prepare_direct;
    return grd_plan_reads(p, grd_conv_thirds(seen, channels)) &&
           grd_plan_reads_as(p, grd_conv_thirds(multiplied, c->kind == GRD_CONV_WEIGHT ? channels : 0), c->dtype) &&
           grd_plan_reads_as(p, bias, grd_conv_result_dtype(c)) && !grd_pending();
}

/* Chooses the implementation and plans to read the operands. `seen` is the operand that the sliding window reads. Plans contiguous copies of operands
 * that are not contiguous. An exception is that convolution_direct.c reads `seen` by its strides. With several output positions in a vector
 * (c->is_lines), this needs a last stride of 1. */
static bool plan_reads(struct grd_plan *p, grd_tensor *seen, grd_tensor *multiplied, grd_tensor *bias, int64_t n)
{
    struct grd_conv *c = grd_conv_of(p);
    c->is_channels_last = makes_channels_last(c, seen, multiplied);
    if (grd_conv_split(p))
        return plan_split_reads(p, seen, multiplied, bias, n);
    if (grd_conv_is_small(c)) {
        c->way = GRD_CONV_SMALL;
    } else {
        grd_conv_choose(p);
        p->prepare = c->way == GRD_CONV_DIRECT ? grd_conv_prepare_direct : grd_conv_prepare;
    }
    const bool by_strides = c->way == GRD_CONV_DIRECT && !(c->is_lines && seen->strides[seen->ndim - 1] != 1);
    return (by_strides ? grd_plan_reads(p, seen) : grd_plan_reads_as(p, seen, c->dtype)) && grd_plan_reads_as(p, multiplied, c->dtype) &&
           grd_plan_reads_as(p, bias, c->dtype);
}

void run_conv(const struct grd_plan *p)
{
    static void (*const ways[])(const struct grd_plan *p) = {
        [GRD_CONV_SMALL] = grd_conv_run_small, [GRD_CONV_DIRECT] = grd_conv_run_direct, [GRD_CONV_PRODUCT] = grd_conv_run};
    ways[grd_conv_of(p)->way](p);
}

bool plan_convolution(struct grd_plan *p, grd_tensor *input, grd_tensor *weight, grd_tensor *bias, grd_dims stride, grd_dims padding,
                      grd_dims dilation, bool transposed, grd_dims output_padding, int64_t groups)
{
    struct grd_conv *c = grd_conv_of(p);
    const grd_dims sizes = grd_sizes(weight);
    const int64_t n = sizes.n - 2;
    int64_t channels, added[GRD_CONV_DIMS];
    c->kind = transposed ? GRD_CONV_IMAGE : GRD_CONV_PLACES;
    c->dtype = (grd_dtype)input->dtype;
    if (!take_settings(c, n < 1 || n > GRD_CONV_DIMS ? 1 : n, stride, padding, dilation, groups) || !take_weight(c, sizes) ||
        !take_input(c, grd_sizes(input), n, &channels, transposed ? c->places : c->image) ||
        !check_channels(c, transposed, sizes, grd_sizes(input), channels) || !check_output_padding(c, transposed, n, output_padding, added))
        return false;
    const int64_t made = groups * (transposed ? c->inner : c->outer);
    return check_bias(bias, sizes, transposed, made) && (transposed ? find_image(c, n, added) : find_places(c, n)) &&
           check_dtypes(input, weight, bias) && plan_reads(p, input, weight, bias, n) &&
           plan_image(p, n, input->ndim == n + 2, made, transposed ? c->image : c->places);
}

/* Reads `grad`, the sizes of the gradient of the output, into *c. Raises RuntimeError if they are larger than the output sizes of the
 * convolution, or if the numbers of samples or channels differ. Smaller spatial sizes occur in a transposed convolution with output_padding. */
static bool take_gradient(struct grd_conv *c, int64_t n, grd_dims grad, bool batched, int64_t batch)
{
    int64_t channels, places[GRD_CONV_DIMS] = {1, 1, 1};
    if (!find_places(c, n) || !take_input(c, grad, n, &channels, places))
        return false;
    bool fits = channels == c->groups * c->outer && c->batch == batch && (grad.n == n + 2) == batched;
    for (int i = 0; i < GRD_CONV_DIMS; i++) {
        fits = fits && places[i] <= c->places[i];
        c->places[i] = places[i];
    }
    return fits || grd_raise(GRD_ERROR_RUNTIME,
                             "expected a gradient of %lld samples with %lld channels, as the convolution gives them, but got sizes %s",
                             (long long)batch, (long long)(c->groups * c->outer), grd_list_text(grad));
}

bool plan_convolution_input(struct grd_plan *p, grd_dims input_size, grd_tensor *weight, grd_tensor *grad_output, grd_dims stride,
                            grd_dims padding, grd_dims dilation, int64_t groups)
{
    struct grd_conv *c = grd_conv_of(p);
    const grd_dims sizes = grd_sizes(weight);
    const int64_t n = sizes.n - 2;
    int64_t channels;
    c->kind = GRD_CONV_IMAGE;
    c->dtype = (grd_dtype)grad_output->dtype;
    if (!take_settings(c, n < 1 || n > GRD_CONV_DIMS ? 1 : n, stride, padding, dilation, groups) || !take_weight(c, sizes) ||
        !take_input(c, input_size, n, &channels, c->image) || !check_channels(c, false, sizes, input_size, channels))
        return false;
    const bool batched = input_size.n == n + 2;
    return take_gradient(c, n, grd_sizes(grad_output), batched, c->batch) && check_dtypes(grad_output, weight, NULL) &&
           plan_reads(p, grad_output, weight, NULL, n) && plan_image(p, n, batched, channels, c->image);
}

bool plan_convolution_weight(struct grd_plan *p, grd_tensor *input, grd_dims weight_size, grd_tensor *grad_output, grd_dims stride,
                             grd_dims padding, grd_dims dilation, int64_t groups)
{
    struct grd_conv *c = grd_conv_of(p);
    const int64_t n = weight_size.n - 2;
    int64_t channels;
    c->kind = GRD_CONV_WEIGHT;
    c->dtype = (grd_dtype)input->dtype;
    return take_settings(c, n < 1 || n > GRD_CONV_DIMS ? 1 : n, stride, padding, dilation, groups) && take_weight(c, weight_size) &&
           take_input(c, grd_sizes(input), n, &channels, c->image) && check_channels(c, false, weight_size, grd_sizes(input), channels) &&
           take_gradient(c, n, grd_sizes(grad_output), input->ndim == n + 2, c->batch) && check_dtypes(input, grad_output, NULL) &&
           plan_reads(p, input, grad_output, NULL, n) && grd_plan_result(p, weight_size, grd_conv_result_dtype(c));
}

/* ---- For formulas ------------------------------------------------------------------------------------------------------------------------ */

bool grd_check_conv(const grd_tensor *input, const grd_tensor *weight, int64_t n, const char *name)
{
    if (input->ndim != n + 1 && input->ndim != n + 2)
        return grd_raise(GRD_ERROR_RUNTIME, "Expected %lldD (unbatched) or %lldD (batched) input to %s, but got input of size: %s",
                         (long long)n + 1, (long long)n + 2, name, grd_list_text(grd_sizes(input)));
    if (input->numel == 0 && grd_sizes_product(input->sizes, input->ndim - n) > 0)
        return grd_raise(GRD_ERROR_RUNTIME, "Only zero batch or zero channel inputs are supported, but got input shape: %s",
                         grd_list_text(grd_sizes(input)));
    return weight->ndim == n + 2 || grd_raise(GRD_ERROR_RUNTIME, "expected weight to have %lld dimensions, but got weight of size %s",
                                              (long long)n + 2, grd_list_text(grd_sizes(weight)));
}

grd_tensor *grd_conv_padded(grd_tensor *input, grd_dims weight, const char *padding, grd_dims dilation)
{
    const int64_t n = weight.n - 2;
    int64_t pad[2 * GRD_CONV_DIMS] = {0};
    bool uneven = false;
    for (int64_t i = 0; i < n && strcmp(padding, "same") == 0; i++) {
        const int64_t d = dilation.data[dilation.n == 1 ? 0 : i], odd = d * (weight.data[2 + i] - 1) % 2;
        pad[2 * (n - 1 - i) + 1] = odd;
        uneven = uneven || odd;
    }
    return uneven ? grd_constant_pad_nd(input, grd_dims_from(pad, 2 * n)) : input;
}

bool grd_check_conv_padding(const char *padding, grd_dims weight, grd_dims stride, grd_dims dilation)
{
    const bool same = strcmp(padding, "same") == 0;
    if (!same && strcmp(padding, "valid") != 0)
        return grd_raise(GRD_ERROR_RUNTIME, "Invalid padding string: '%s', it must be " GRD_WORDS_CONV2D_PADDED_PADDING, padding);
    for (int64_t i = 0; i < stride.n && same; i++)
        if (stride.data[i] != 1)
            return grd_raise(GRD_ERROR_RUNTIME, "padding='same' is not supported for strided convolutions");
    for (int64_t i = 0, total; i < weight.n - 2 && same; i++)
        if (dilation.n != 1 && dilation.n != weight.n - 2)
            return grd_raise(GRD_ERROR_RUNTIME,
                             "expected dilation to be a single integer value or a list of %lld values to match the convolution dimensions, "
                             "but got dilation=%s",
                             (long long)weight.n - 2, grd_list_text(dilation));
        else if (dilation.data[dilation.n == 1 ? 0 : i] < 1 ||
                 __builtin_mul_overflow(dilation.data[dilation.n == 1 ? 0 : i], weight.data[2 + i], &total))
            return grd_raise(GRD_ERROR_RUNTIME, "dilation should be greater than zero, but got %s", grd_list_text(dilation));
    return true;
}

grd_dims grd_conv_padding(const char *padding, grd_dims weight, grd_dims dilation)
{
    const int64_t n = grd_greatest(1, weight.n - 2);
    int64_t *const values = grd_pool_array(n, sizeof *values);
    for (int64_t i = 0; i < n && values != NULL; i++)
        values[i] =
            strcmp(padding, "same") == 0 && weight.n > 2 ? dilation.data[dilation.n == 1 ? 0 : i] * (weight.data[2 + i] - 1) / 2 : 0;
    return values != NULL ? grd_dims_from(values, n) : (grd_dims){0};
}

int64_t grd_conv_channel(grd_dims image, grd_dims weight)
{
    return image.n - weight.n + 1;
}
