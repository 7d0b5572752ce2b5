/* Prepares and runs direct convolutions (see convolution_direct.h): computes at which offsets the image elements are read, makes a padded copy of the
 * image if necessary, and calls the loops of convolution_channel_lanes.c or convolution_place_lanes.c.
 *
 * Invariant: the blocks of the result depend on shapes alone, and the sums of a block are computed in a fixed order. So results do not depend on the
 * number of threads, bit for bit. */
#include "op/convolution_direct.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/parallel.h"
#include "core/tensor.h"
#include "op/product.h"
#include "op/sizes.h"

enum {
    /* If output rows are long and a result element is a sum of at most this many products, a SIMD vector holds output positions instead of
     * channels. */
    LINES_DEPTH = 64,
    /* For the gradient of a weight: if output rows are long and an output channel has at most this many kernel elements, counted over all input
     * channels of its group, a SIMD vector holds output positions instead of channels. */
    LINES_TAPS = 32
};
enum { WAVE_BYTES = 3 << 18 /* limit on the bytes of the padded copies that are made at a time, unless one sample needs more */ };

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

/* ---- Which taps see what ---------------------------------------------------------------------------------------------------------- */

static void find_axis_of_places(const struct grd_conv *c, int dim, struct grd_conv_axis *ret_axis)
{
    ret_axis->count = c->places[dim];
    ret_axis->first = 0;
    ret_axis->step = 1;
    ret_axis->source_step = c->stride[dim];
    ret_axis->origin = -c->padding[dim];
    ret_axis->tap_stride = c->dilation[dim];
    ret_axis->tap = 0;
    ret_axis->tap_step = 1;
    ret_axis->ntaps = c->kernel[dim];
}

/* Returns the description of the image elements i with (i + padding) % stride == remainder along dimension `dim`. Each image element is a sum
 * over the kernel elements t with (remainder - t * dilation) % stride == 0. */
static struct grd_conv_axis axis_of_image(const struct grd_conv *c, int dim, int64_t remainder)
{
    const int64_t stride = c->stride[dim], padding = c->padding[dim], dilation = c->dilation[dim];
    const int64_t first = (remainder - padding % stride + stride) % stride;
    struct grd_conv_axis axis = {.count = c->image[dim] > first ? grd_conv_pieces(c->image[dim] - first, stride) : 0,
                                 .first = first,
                                 .step = stride,
                                 .source_step = 1};
    int64_t last = -1;
    axis.tap = -1;
    axis.tap_step = 1;
    for (int64_t t = 0; t < c->kernel[dim] && t <= 2 * stride && last < 0; t++)
        if ((remainder - t % stride * (dilation % stride) % stride + stride) % stride == 0) {
            if (axis.tap >= 0)
                last = t;
            else
                axis.tap = t;
        }
    if (axis.tap < 0)
        return axis;
    axis.tap_step = last < 0 ? 1 : last - axis.tap;
    axis.ntaps = last < 0 ? 1 : (c->kernel[dim] - 1 - axis.tap) / axis.tap_step + 1;
    axis.origin = (first + padding - remainder) / stride + floor_div(remainder - axis.tap * dilation, stride);
    axis.tap_stride = -(axis.tap_step * dilation / stride);
    return axis;
}

/* Extends the range [*low, *high] of source indices along a dimension by the indices that `axis` reads. */
static void reach(const struct grd_conv_axis *axis, int64_t *low, int64_t *high)
{
    if (axis->count == 0 || axis->ntaps == 0)
        return;
    const int64_t first = axis->origin + grd_least(0, (axis->ntaps - 1) * axis->tap_stride);
    const int64_t last = axis->origin + (axis->count - 1) * axis->source_step + grd_greatest(0, (axis->ntaps - 1) * axis->tap_stride);
    *low = grd_least(*low, first);
    *high = grd_greatest(*high, last);
}

/* Determines the phases of the result (sets of result elements that use the same kernel elements) and the range of source indices that they read.
 * Also determines where the offsets and weights of each phase begin in the arrays r->offsets and r->packed. */
static void find_phases(struct grd_conv_run *r)
{
    const struct grd_conv *c = r->c;
    const bool image = c->kind == GRD_CONV_IMAGE;
    int64_t low[GRD_CONV_DIMS] = {0}, high[GRD_CONV_DIMS];
    for (int d = 0; d < GRD_CONV_DIMS; d++)
        high[d] = r->size_seen[d] - 1;
    r->nphases = image ? (int)grd_conv_product(c->stride) : 1;
    for (int i = 0; i < r->nphases; i++) {
        struct grd_conv_phase *phase = &r->phases[i];
        int64_t rest = i;
        phase->places = phase->taps = 1;
        for (int d = GRD_CONV_DIMS - 1; d >= 0; d--) {
            if (image)
                phase->axes[d] = axis_of_image(c, d, rest % c->stride[d]);
            else
                find_axis_of_places(c, d, &phase->axes[d]);
            rest /= c->stride[d];
            phase->places *= phase->axes[d].count;
            phase->taps *= phase->axes[d].ntaps;
        }
        for (int d = 0; d < GRD_CONV_DIMS && phase->places > 0 && phase->taps > 0; d++)
            reach(&phase->axes[d], low + d, high + d);
        phase->offsets = r->noffsets;
        phase->weights = r->weights;
        phase->nchains = 0;
        r->noffsets += r->channels * phase->taps;
        r->weights += r->channels * phase->taps * r->width;
        r->places += phase->places;
    }
    for (int d = 0; d < GRD_CONV_DIMS; d++) {
        r->before[d] = -low[d];
        r->extent[d] = high[d] - low[d] + 1;
    }
}

/* ---- Whether, and with how much memory ------------------------------------------------------------------------------------------------- */

/* Determines the strides of a padded copy of the source, and the number of items that are copied at a time. An item is one group of channels of one
 * sample. */
static void find_copy(struct grd_conv_run *r)
{
    const struct grd_conv *c = r->c;
    int64_t size = 1;
    for (int d = GRD_CONV_DIMS - 1; d >= 0; d--) {
        r->source[d] = size;
        size *= grd_conv_pieces(r->extent[d], r->split[d]);
    }
    for (int d = GRD_CONV_DIMS - 1; d >= 0; d--) {
        r->part[d] = size;
        size *= r->split[d];
    }
    r->source_channel = size;
    r->source_sample = c->groups * r->channels * size;
    const int64_t least = c->kind == GRD_CONV_WEIGHT ? c->batch : 1;
    r->is_local = r->is_lines && r->channels * size * r->size <= GRD_CONV_LOCAL_BYTES && (c->kind != GRD_CONV_WEIGHT || r->channels == 1);
    const int64_t all = c->batch * c->groups, most = grd_greatest(1, WAVE_BYTES / (least * r->channels * size * r->size));
    r->wave = r->is_local ? all : least * grd_conv_pieces(all / least, grd_conv_pieces(all / least, most));
}

/* True if a vector should hold several output positions instead of several channels. This is so if the result has few channels, or if rows are
 * long and there are few products per position. */
static bool are_lines(const struct grd_conv_run *r)
{
    const int lanes = r->kernel->lanes;
    const bool is_shallow = r->c->kind == GRD_CONV_PLACES ? !r->c->is_channels_last && r->channels * r->taps <= LINES_DEPTH
                                                          : r->c->kind == GRD_CONV_WEIGHT && r->channels * r->taps <= LINES_TAPS;
    return r->rows < lanes / 2 || (is_shallow && r->c->places[GRD_CONV_DIMS - 1] >= 3 * lanes);
}

/* Fills the members of *r that follow from sizes and dtype. Sets the strides of the source to those of a padded copy; settle() later decides
 * whether a copy is made. */
static void describe(const struct grd_conv *c, struct grd_conv_run *r)
{
    const grd_dtype computed = grd_product_dtype(c->dtype);
    const bool image = c->kind == GRD_CONV_IMAGE;
    memset(r, 0, offsetof(struct grd_conv_run, phases));
    r->c = c;
    r->kernel = grd_kernels->conv[computed];
    r->product = grd_kernels->gemm[computed];
    r->itemsize = grd_dtype_size(c->dtype);
    r->size = grd_dtype_size(computed);
    if (computed != c->dtype) {
        r->widen = grd_cast_kernel(c->dtype, computed);
        r->narrow = grd_cast_kernel(computed, c->dtype);
    }
    r->channels = image ? c->outer : c->inner;
    r->rows = image ? c->inner : c->outer;
    r->taps = grd_conv_product(c->kernel);
    r->is_lines = are_lines(r);
    r->width = r->is_lines ? r->rows : grd_conv_pieces(r->rows, r->kernel->lanes) * r->kernel->lanes;
    for (int d = 0; d < GRD_CONV_DIMS; d++)
        r->split[d] = r->is_lines && !image ? c->stride[d] : 1;
    r->size_seen = image ? c->places : c->image;
    find_phases(r);
    find_copy(r);
}

/* Fills *r and returns true if the loops for direct convolutions support the dtype and sizes in `c`. Otherwise returns false, and *r must not be
 * used. */
static bool is_direct(const struct grd_conv *c, struct grd_conv_run *r)
{
    const grd_dtype computed = grd_product_dtype(c->dtype);
    if (grd_kernels->conv[computed] == NULL)
        return false;
    const int64_t most = INT32_MAX / 4;
    double phases = 1, elements = (double)c->groups * (double)(c->kind == GRD_CONV_IMAGE ? c->outer : c->inner);
    for (int d = 0; d < GRD_CONV_DIMS; d++) {
        if (c->padding[d] > most || c->dilation[d] > most || c->stride[d] > most || c->kernel[d] > most || c->image[d] > most ||
            c->places[d] > most || c->places[d] * c->stride[d] + c->kernel[d] * c->dilation[d] > most || c->places[d] == 0)
            return false;
        phases *= c->kind == GRD_CONV_IMAGE ? (double)c->stride[d] : 1;
        elements *= c->kind == GRD_CONV_IMAGE ? (double)c->places[d] : (double)c->image[d];
    }
    if (phases > GRD_CONV_MOST_PHASES || c->batch * c->groups == 0 || elements == 0)
        return false;
    describe(c, r);
    const double copied = (double)r->source_sample;
    return copied < (double)most && copied <= 4 * elements + GRD_CONV_LEAST_COPIED;
}

void grd_conv_choose(struct grd_plan *p)
{
    struct grd_conv *const c = grd_conv_of(p);
    c->way = is_direct(c, grd_conv_run_of(p)) ? GRD_CONV_DIRECT : GRD_CONV_PRODUCT;
    c->is_lines = c->way == GRD_CONV_DIRECT && grd_conv_run_of(p)->is_lines;
}

/* True if the kernel can read the source in place, without padding, reordering or conversion. If a vector holds several positions, the rows of
 * each channel must also be contiguous. */
static bool lies_well(const struct grd_conv_run *r, const grd_tensor *seen)
{
    double reach = 0;
    for (int d = 0; d < GRD_CONV_DIMS; d++)
        if (r->extent[d] != r->size_seen[d] || r->split[d] != 1)
            return false;
    for (int d = 0; d < seen->ndim; d++)
        reach += (double)(seen->sizes[d] - 1) * (double)llabs(seen->strides[d]);
    for (int d = seen->ndim - 1, last = GRD_CONV_DIMS - 1; r->is_lines && last >= 0 && r->size_seen[last] != 1; d--, last--)
        if (seen->strides[d] != r->source[last])
            return false;
    return r->widen == NULL && reach < INT32_MAX;
}

static size_t rounded(int64_t bytes)
{
    return (size_t)((bytes + 63) / 64 * 64);
}

/* True if the result must have its channels innermost, but is computed with channels first and then transposed. */
static bool is_turned(const struct grd_conv_run *r)
{
    return r->is_lines && r->c->is_channels_last && r->widen == NULL && !r->c->is_split;
}

/* The offsets, in bytes, of the arrays of struct grd_conv_run in scratch memory. `all` is the size of the scratch memory. */
struct parts {
    size_t offsets, chains, packed, copy, left, turned, split, all;
};

static struct parts parts_of(const struct grd_conv_run *r)
{
    const struct grd_conv *c = r->c;
    const bool weight = c->kind == GRD_CONV_WEIGHT;
    const int64_t multiplied = weight ? c->batch * c->groups * r->rows * r->places : c->groups * c->outer * c->inner * r->taps;
    struct parts parts;
    parts.offsets = 64;
    parts.chains = parts.offsets + rounded(r->noffsets * (int64_t)sizeof(int32_t));
    parts.packed = parts.chains + (r->is_lines && !weight ? rounded(r->noffsets * (int64_t)sizeof(struct grd_conv_chain)) : 0);
    parts.copy = parts.packed + rounded(r->is_lines ? grd_conv_lines_bytes(r) : grd_conv_panels_bytes(r));
    parts.left = parts.copy + (r->is_copied && !r->is_local ? rounded(r->wave * r->channels * r->source_channel * r->size) : 0);
    parts.turned = parts.left + (r->widen != NULL ? rounded(multiplied * r->size) : 0);
    const int64_t sums = weight ? c->groups * r->rows * r->channels * r->taps : c->batch * c->groups * r->rows * r->places;
    parts.split = parts.turned + (is_turned(r) ? rounded(sums * r->size) : 0);
    parts.all = parts.split + (c->is_split ? rounded(sums * r->size) : 0);
    return parts;
}

/* Sets the operands in *r, and decides whether the source (the operand that is read through windows) is copied. */
static void settle(struct grd_conv_run *r, const struct grd_plan *p)
{
    r->seen = p->in[0];
    r->bias = p->nreads > 2 && p->in[2] != NULL && !r->c->is_split ? p->in[2]->data : NULL;
    r->is_copied = !lies_well(r, r->seen);
    r->is_local = r->is_local && r->is_copied;
    r->wave = r->is_copied ? r->wave : r->c->batch * r->c->groups;
}

bool grd_conv_prepare_direct(struct grd_plan *p)
{
    struct grd_conv_run *const r = grd_conv_run_of(p);
    settle(r, p);
    p->scratch_bytes = parts_of(r).all;
    return true;
}

/* ---- Before the tasks ---------------------------------------------------------------------------------------------------------------- */

/* Returns how many elements index i along dimension `dim` of the padded copy lies behind index 0. */
static int64_t place_in_copy(const struct grd_conv_run *r, int dim, int64_t i)
{
    return i % r->split[dim] * r->part[dim] + i / r->split[dim] * r->source[dim];
}

/* Copies `row`, a row of the source whose elements are `step` elements apart, to the row `to` of the padded copy. */
static void copy_row(const struct grd_conv_run *r, const char *row, int64_t step, char *to)
{
    const int64_t n = r->size_seen[2], before = r->before[2], split = r->split[2];
    for (int64_t i = 0; i < split && i < n; i++)
        r->cast((n - i - 1) / split + 1,
                (char *const[]){to + place_in_copy(r, 2, i + before) * r->size, (char *)(uintptr_t)row + i * step * r->itemsize},
                (const int64_t[]){r->size, split * step * r->itemsize}, NULL);
}

/* Copies rows [first, first + n) of a channel to the padded copy of this channel at `to`. `from` is the address of the first of these rows. The
 * elements of a row are contiguous, and rows begin `row` elements apart. */
static void place_rows(const struct grd_conv_run *r, int64_t first, int64_t n, const char *from, int64_t row, char *to)
{
    r->kernel->copy(&(struct grd_conv_copy){
        .rows = {.n = n, .before = r->before[1] + first, .split = r->split[1], .part = r->part[1]},
        .columns = {.n = r->size_seen[2], .before = r->before[2], .split = r->split[2], .part = r->part[2]},
        .from = from,
        .to = to,
        .from_row = row,
        .to_row = r->source[1],
    });
}

/* True if the padded copy of the source has the layout of a contiguous tensor. This is so if no dimension is padded, and if
 * in no dimension the elements are regrouped by their index modulo the stride. */
static bool copies_as_is(const struct grd_conv_run *r)
{
    for (int d = 0; d < GRD_CONV_DIMS; d++)
        if (r->extent[d] != r->size_seen[d] || r->split[d] != 1)
            return false;
    return true;
}

/* Copies all rows of a channel to the padded copy. In the channel, rows begin `row` elements apart and the elements of a row are `step` apart.
 * Rows that must be converted or are not contiguous are first written to a buffer on the stack. */
static void copy_rows(const struct grd_conv_run *r, const char *from, int64_t row, int64_t step, char *to)
{
    enum { ROOM = 2048 };
    _Alignas(64) char room[ROOM * 8];
    const int64_t n = r->size_seen[2], all = r->size_seen[1], most = ROOM / n;
    if (r->widen == NULL && step == 1) {
        place_rows(r, 0, all, from, row, to);
        return;
    }
    if (step == 1 && row == n && copies_as_is(r)) {
        r->cast(all * n, (char *const[]){to, (char *)(uintptr_t)from}, (const int64_t[]){r->size, r->itemsize}, NULL);
        return;
    }
    for (int64_t first = 0; first < all && most == 0; first++)
        copy_row(r, from + first * row * r->itemsize, step, to + place_in_copy(r, 1, r->before[1] + first) * r->size);
    for (int64_t first = 0; first < all && most > 0; first += most) {
        const int64_t rows = grd_least(most, all - first), at_once = step == 1 && row == n ? rows : 1;
        for (int64_t i = 0; i < rows; i += at_once)
            r->cast(at_once * n, (char *const[]){room + i * n * r->size, (char *)(uintptr_t)from + (first + i) * row * r->itemsize},
                    (const int64_t[]){r->size, step * r->itemsize}, NULL);
        place_rows(r, first, rows, room, n, to);
    }
}

/* Copies one channel of an item (a group of a sample) to the interior of its padded copy at `to`. */
static void copy_plane(const struct grd_conv_run *r, int64_t item, int64_t channel, char *to)
{
    const grd_tensor *t = r->seen;
    const int64_t n = t->ndim, dims = r->seen_dims;
    int64_t strides[GRD_CONV_DIMS] = {0};
    for (int64_t d = 0; d < dims; d++)
        strides[GRD_CONV_DIMS - dims + d] = t->strides[n - dims + d];
    const int64_t sample = n == dims + 2 ? grd_conv_sample(r, item) * t->strides[0] : 0;
    const char *from = t->data + (sample + (grd_conv_group(r, item) * r->channels + channel) * t->strides[n - dims - 1]) * r->itemsize;
    for (int64_t i = 0; i < r->size_seen[0]; i++)
        copy_rows(r, from + i * strides[0] * r->itemsize, strides[1], strides[2], to + place_in_copy(r, 0, r->before[0] + i) * r->size);
}

const char *grd_conv_copy_item(const struct grd_conv_run *r, int64_t item, char *to)
{
    for (int64_t channel = 0; channel < r->channels; channel++)
        copy_plane(r, item, channel, to + channel * r->source_channel * r->size);
    return to;
}

/* Copies channels [begin, end) of the current items to the interior of their padded copies. An item is one group of channels of one sample. Sets the
 * padding to zero only for the first items, because later items use the same memory and leave the padding as it is. */
static void copy_planes(int64_t begin, int64_t end, void *context)
{
    const struct grd_conv_run *r = context;
    for (int64_t plane = begin; plane < end; plane++) {
        char *const to = r->copy + plane * r->source_channel * r->size;
        if (r->first_item == 0 && !copies_as_is(r))
            memset(to, 0, (size_t)(r->source_channel * r->size));
        copy_plane(r, r->first_item + plane / r->channels, plane % r->channels, to);
    }
}

int64_t grd_conv_tap_offset(const struct grd_conv_run *r, const struct grd_conv_phase *phase, int dim, int64_t tap)
{
    const int64_t i = phase->axes[dim].origin + r->before[dim] + tap * phase->axes[dim].tap_stride;
    return r->is_copied ? place_in_copy(r, dim, i) : i * r->source[dim];
}

/* Fills r->offsets. For each phase (a set of result elements that use the same kernel elements), it lists one offset for each source channel and
 * kernel element: the distance, in elements of the source, from the beginning of a window to the element that the kernel element multiplies. */
static void fill_offsets(struct grd_conv_run *r)
{
    for (int i = 0; i < r->nphases; i++) {
        const struct grd_conv_phase *phase = &r->phases[i];
        const struct grd_conv_axis *a = phase->axes;
        int32_t *to = r->offsets + phase->offsets;
        for (int64_t channel = 0; channel < r->channels; channel++)
            for (int64_t j = 0; j < a[0].ntaps; j++)
                for (int64_t k = 0; k < a[1].ntaps; k++)
                    for (int64_t l = 0; l < a[2].ntaps && phase->taps > 0; l++)
                        *to++ = (int32_t)(channel * r->source_channel + grd_conv_tap_offset(r, phase, 0, j) +
                                          grd_conv_tap_offset(r, phase, 1, k) + grd_conv_tap_offset(r, phase, 2, l));
    }
}

void grd_conv_fill_places(const struct grd_conv_run *r, const struct grd_conv_phase *phase, int64_t start, int64_t first, int64_t n,
                          int32_t *to)
{
    const struct grd_conv_axis *a = phase->axes;
    const int64_t counts[GRD_CONV_DIMS] = {a[0].count, a[1].count, a[2].count};
    const int64_t steps[GRD_CONV_DIMS] = {a[0].source_step / r->split[0] * r->source[0], a[1].source_step / r->split[1] * r->source[1],
                                          a[2].source_step / r->split[2] * r->source[2]};
    grd_windows_offsets(counts, steps, start, first, n, to);
}

int64_t grd_conv_place_at(const struct grd_conv_run *r, const struct grd_conv_phase *phase, int64_t place)
{
    const struct grd_conv_axis *a = phase->axes;
    const int64_t *sizes = r->c->kind == GRD_CONV_IMAGE ? r->c->image : r->c->places;
    const int64_t l = place % a[2].count, k = place / a[2].count % a[1].count, j = place / a[2].count / a[1].count;
    return ((a[0].first + j * a[0].step) * sizes[1] + a[1].first + k * a[1].step) * sizes[2] + a[2].first + l * a[2].step;
}

/* True if each result element of a phase (the result elements that use the same kernel elements) uses all kernel elements, in their order in
 * memory. */
static bool has_all_taps(const struct grd_conv_run *r, const struct grd_conv_phase *phase)
{
    for (int d = 0; d < GRD_CONV_DIMS; d++)
        if (phase->axes[d].ntaps != r->c->kernel[d] || (phase->axes[d].ntaps > 1 && phase->axes[d].tap_step != 1))
            return false;
    return true;
}

void grd_conv_pack_channels(const struct grd_conv_run *r, int64_t group, const struct grd_conv_phase *phase, int64_t first, int64_t width,
                            int64_t begin, int64_t end, char *to)
{
    const bool image = r->c->kind == GRD_CONV_IMAGE;
    const int64_t of_channel = image ? r->c->inner * r->taps : r->taps, of_row = image ? r->taps : r->c->inner * r->taps;
    const int64_t columns = grd_least(width, r->rows - first);
    const struct grd_conv_axis *a = phase->axes;
    const char *from = r->left + (group * r->c->outer * r->c->inner * r->taps + first * of_row) * r->size;
    if (!image) { /* The weights of one output channel are contiguous, so one call packs them for all source channels. */
        r->product->pack((end - begin) * r->taps, columns, width, from + begin * of_channel * r->size, 1, of_row, to);
        return;
    }
    const bool has_all = has_all_taps(r, phase);
    for (int64_t channel = begin; channel < end && phase->taps > 0; channel++) {
        if (has_all) {
            r->product->pack(r->taps, columns, width, from + channel * of_channel * r->size, 1, of_row, to);
            to += r->taps * width * r->size;
            continue;
        }
        for (int64_t j = 0; j < a[0].ntaps; j++)
            for (int64_t k = 0; k < a[1].ntaps; k++) {
                const int64_t tap =
                    ((a[0].tap + j * a[0].tap_step) * r->c->kernel[1] + a[1].tap + k * a[1].tap_step) * r->c->kernel[2] + a[2].tap;
                r->product->pack(a[2].ntaps, columns, width, from + (channel * of_channel + tap) * r->size, a[2].tap_step, of_row, to);
                to += a[2].ntaps * width * r->size;
            }
    }
}

void grd_conv_pack_weights(const struct grd_conv_run *r, int64_t group, const struct grd_conv_phase *phase, int64_t first, int64_t width,
                           char *packed)
{
    grd_conv_pack_channels(r, group, phase, first, width, 0, r->channels,
                           packed + (group * r->weights + phase->weights + r->channels * phase->taps * first) * r->size);
}

/* ---- The run --------------------------------------------------------------------------------------------------------------------------------- */

/* Returns the address of the elements of `t` in the dtype of the computation. They are converted into `room` if t's dtype is a different one. */
static const char *in_computed(const struct grd_conv_run *r, const grd_tensor *t, char *room)
{
    if (r->widen == NULL)
        return t->data;
    r->widen(t->numel, (char *const[]){room, t->data}, (const int64_t[]){r->size, r->itemsize}, NULL);
    return room;
}

/* Sets r->from, the address of the source (the operand that is read through windows). If the source is copied with padding, this is the address of
 * the copy, whose strides describe() has stored in *r. Otherwise it is the address of the tensor r->seen, whose strides are then stored in *r. */
static void read_source(struct grd_conv_run *r)
{
    const grd_tensor *t = r->seen;
    const int64_t dims = r->seen_dims;
    if (r->is_copied) {
        r->from = r->copy;
        return;
    }
    r->from = t->data;
    r->source_sample = t->ndim == dims + 2 ? t->strides[0] : 0;
    r->source_channel = t->strides[t->ndim - dims - 1];
    for (int64_t d = 0; d < dims; d++)
        r->source[GRD_CONV_DIMS - dims + d] = t->strides[t->ndim - dims + d];
}

/* Transposes samples [begin, end) of the result from channels first to channels last. */
static void turn_samples(int64_t begin, int64_t end, void *context)
{
    const struct grd_conv_run *r = context;
    const int64_t channels = r->c->groups * r->rows;
    for (int64_t sample = begin; sample < end; sample++)
        r->kernel->turn(channels, r->to_row, r->to_row, r->to + sample * r->to_sample * r->size,
                        r->turned + sample * r->to_sample * r->size, channels);
}

void grd_conv_run_direct(const struct grd_plan *p)
{
    const struct grd_conv *c = grd_conv_of(p);
    const grd_tensor *result = p->results[0];
    const bool channels_last = !c->is_split && !grd_has(result, GRD_FLAG_CONTIGUOUS), weight = c->kind == GRD_CONV_WEIGHT;
    struct grd_conv_run *const r = grd_conv_run_of(p);
    r->seen_dims = weight ? result->ndim - 2 : p->in[1]->ndim - 2;
    r->cast = r->widen != NULL ? r->widen : grd_cast_kernel(c->dtype, c->dtype);
    const struct parts parts = parts_of(r);
    char *const scratch = (char *)((uintptr_t)p->scratch & ~(uintptr_t)63);
    r->offsets = (int32_t *)(void *)(scratch + parts.offsets);
    r->chains = (struct grd_conv_chain *)(void *)(scratch + parts.chains);
    r->packed = scratch + parts.packed;
    r->copy = scratch + parts.copy;
    r->left = in_computed(r, p->in[1], scratch + parts.left);
    r->to = c->is_split ? scratch + parts.split : result->data;
    const int64_t positions = grd_conv_product(c->kind == GRD_CONV_IMAGE ? c->image : c->places);
    r->to_sample = c->groups * r->rows * positions;
    const bool across = channels_last && !is_turned(r);
    r->to_row = across ? 1 : positions;
    r->to_column = across ? c->groups * r->rows : 1;
    if (channels_last && !across) {
        r->turned = r->to;
        r->to = scratch + parts.turned;
    }
    read_source(r);
    fill_offsets(r);
    if (r->is_lines)
        grd_conv_lines_begin(r);
    else
        grd_conv_panels_begin(r);
    for (r->first_item = 0; r->first_item < c->batch * c->groups; r->first_item += r->wave) {
        const int64_t items = grd_least(r->wave, c->batch * c->groups - r->first_item);
        if (r->is_copied && !r->is_local)
            grd_parallel_for(0, items * r->channels, grd_greatest(1, (1 << 14) / r->source_channel), copy_planes, r);
        if (r->is_lines)
            grd_conv_lines_run(r, items);
        else
            grd_conv_panels_run(r, items);
    }
    if (r->turned != NULL)
        grd_parallel_for(0, c->batch, 1, turn_samples, r);
    if (c->is_split)
        grd_conv_join(p, r->to);
}
