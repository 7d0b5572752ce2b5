/* Pads tensors with constants or with their own elements. Schema: schema/pad.toml. */
#include <string.h>

#include "gen/uses/op/pad.h"
#include "core/geometry.h"
#include "core/scalar.h"
#include "core/shape.h"
#include "core/tensor.h"
#include "gradus/library.h"
#include "op/copy.h"
#include "op/plan.h"
#include "op/formula.h"

/* ---- Padding with a constant ----------------------------------------------------------------------------------------------------- */

/* Returns the number of elements that `pad` adds before dimension `dim`, or after it if `after`. Returns 0 if `pad` has no entry for `dim`. */
static int64_t length_at(grd_dims pad, int64_t ndim, int64_t dim, bool after)
{
    const int64_t at = 2 * (ndim - 1 - dim) + after;
    return at < pad.n ? pad.data[at] : 0;
}

static bool check_pad(const grd_tensor *self, grd_dims pad)
{
    if (pad.n % 2 != 0)
        return grd_raise(GRD_ERROR_RUNTIME, "Length of pad must be even but instead it equals %lld", (long long)pad.n);
    return pad.n / 2 <= self->ndim || grd_raise(GRD_ERROR_RUNTIME,
                                                "Length of pad should be no more than twice the number of dimensions of the input. Pad "
                                                "length is %lld while the input has %d "
                                                "dimensions.",
                                                (long long)pad.n, self->ndim);
}

/* Returns the number of elements that a padding of `length` adds, or 0 if it is negative. If `cut`, returns the number that a negative padding
 * removes, or 0 if it is positive. */
static int64_t positive(int64_t length, bool cut)
{
    if (cut)
        length = length == INT64_MIN ? INT64_MAX : -length;
    return length > 0 ? length : 0;
}

/* Returns t without some of its elements. If `cut`, drops the elements that the negative lengths in `pad` remove. Otherwise t is a padded tensor, and
 * the elements that the positive lengths in `pad` have added are dropped. */
static grd_tensor *kept(grd_tensor *t, grd_dims pad, bool cut)
{
    for (int64_t i = 0; i < t->ndim && !grd_pending(); i++) {
        const int64_t start = positive(length_at(pad, t->ndim, i, false), cut), end = positive(length_at(pad, t->ndim, i, true), cut);
        const int64_t size = t->sizes[i];
        if (start > 0 || end > 0)
            /* A length of -1 makes grd_narrow() raise the error that more elements are removed than there are. */
            t = grd_narrow(t, i, start, start > size || end > size - start ? -1 : size - start - end);
    }
    return t;
}

/* True if `pad` adds elements, so that a fill value is needed. */
static bool has_border(grd_dims pad)
{
    for (int64_t i = 0; i < pad.n; i++)
        if (pad.data[i] > 0)
            return true;
    return false;
}

/* Writes the sizes of the padded tensor to `sizes`. Raises RuntimeError if a size is negative or too large. */
static bool padded_sizes(const grd_tensor *self, grd_dims pad, int64_t *sizes)
{
    for (int64_t i = 0; i < self->ndim; i++) {
        const int64_t before = length_at(pad, self->ndim, i, false), after = length_at(pad, self->ndim, i, true);
        if (before == INT64_MIN || after == INT64_MIN || __builtin_add_overflow(self->sizes[i], before, &sizes[i]) ||
            __builtin_add_overflow(sizes[i], after, &sizes[i]) || sizes[i] < 0)
            return grd_raise(
                GRD_ERROR_RUNTIME,
                "The input size %lld, plus negative padding %lld and %lld, resulted in a negative output size, which is invalid. Check "
                "dimension %lld of your input.",
                (long long)self->sizes[i], (long long)before, (long long)after, (long long)i);
    }
    return true;
}

bool plan_constant_pad_nd(struct grd_plan *p, grd_tensor *self, grd_dims pad, grd_scalar value)
{
    int64_t sizes[GRD_MAX_DIMS];
    const grd_dtype dtype = (grd_dtype)self->dtype;
    if (!check_pad(self, pad) || !padded_sizes(self, pad, sizes))
        return false;
    grd_tensor *original = kept(self, pad, true);
    if (grd_pending() || !grd_plan_reads(p, original))
        return false;
    if (!has_border(pad))
        return grd_plan_like(p, original, dtype);
    return grd_scalar_write(value, dtype, p->state) &&
           grd_plan_in_order(p, grd_dims_from(sizes, self->ndim), grd_shape_suggests_channels_last(grd_sizes(self), self->strides), dtype);
}

void run_constant_pad_nd(const struct grd_plan *p, grd_tensor *self, grd_dims pad, grd_scalar value)
{
    (void)value;
    grd_tensor *result = p->results[0];
    if (has_border(pad))
        grd_fill_elements(result, p->state);
    grd_tensor original = grd_part_of(result, result->data, p->in[0]->sizes, result->strides);
    for (int64_t i = 0; i < self->ndim; i++)
        original.data += positive(length_at(pad, self->ndim, i, false), false) * grd_byte_stride(result, i);
    grd_copy_strided(&original, p->in[0]);
}

grd_dims grd_pad_back(grd_dims pad)
{
    int64_t *const back = grd_pool_array(pad.n + 1, sizeof *back);
    for (int64_t i = 0; back != NULL && i < pad.n; i++)
        /* -INT64_MIN would overflow. INT64_MAX, which is used instead, raises an error later, when the sizes are computed. */
        back[i] = pad.data[i] == INT64_MIN ? INT64_MAX : -pad.data[i];
    return grd_dims_from(back, back != NULL ? pad.n : 0);
}

grd_dims grd_pad_to(grd_dims from, grd_dims to)
{
    int64_t *const pad = grd_pool_array(2 * to.n + 1, sizeof *pad);
    for (int64_t i = 0; !grd_pending() && i < to.n; i++) {
        const int64_t dim = to.n - 1 - i;
        pad[2 * i] = 0;
        pad[2 * i + 1] = to.data[dim] - from.data[dim];
    }
    return grd_dims_from(pad, pad != NULL ? 2 * to.n : 0);
}

/* ---- Padding with elements of the tensor itself ------------------------------------------------------------------------------------ */

/* Type of functions that return a border of n elements for dimension `dim` of t. The border belongs at the end of the dimension if `after`, otherwise
 * at its start. */
typedef grd_tensor *border_function(grd_tensor *t, int64_t dim, int64_t n, bool after);

/* Returns the border of mode "reflect", which is the mirror image of the elements next to the edge, without the edge itself. */
static grd_tensor *mirrored(grd_tensor *t, int64_t dim, int64_t n, bool after)
{
    if (n >= t->sizes[dim])
        return grd_fail(
            GRD_ERROR_RUNTIME,
            "Padding size should be less than the corresponding input dimension, but got: padding %lld at dimension %lld of input of size "
            "%lld",
            (long long)n, (long long)dim, (long long)t->sizes[dim]);
    return grd_flip(grd_narrow(t, dim, after ? t->sizes[dim] - 1 - n : 1, n), grd_dims(dim));
}

/* Returns the border of mode "replicate", which consists of copies of the element at the edge. */
static grd_tensor *repeated(grd_tensor *t, int64_t dim, int64_t n, bool after)
{
    int64_t sizes[GRD_MAX_DIMS];
    if (t->sizes[dim] == 0)
        return grd_fail(GRD_ERROR_RUNTIME, "Expected a tensor with non-empty dimensions to replicate, but dimension %lld has size 0",
                        (long long)dim);
    memcpy(sizes, t->sizes, t->ndim * sizeof *sizes);
    sizes[dim] = n;
    return grd_expand(grd_narrow(t, dim, after ? t->sizes[dim] - 1 : 0, 1), grd_dims_from(sizes, t->ndim));
}

/* Returns the border of mode "circular", which consists of the elements at the opposite edge. */
static grd_tensor *wrapped(grd_tensor *t, int64_t dim, int64_t n, bool after)
{
    if (n > t->sizes[dim])
        return grd_fail(GRD_ERROR_RUNTIME, "Padding value causes wrapping around more than once.");
    return grd_narrow(t, dim, after ? 0 : t->sizes[dim] - n, n);
}

/* Returns t with borders before and after its elements along dimension `dim`. A border whose length `before` or `after` is 0 or less is not added. */
static grd_tensor *bordered(grd_tensor *t, int64_t dim, int64_t before, int64_t after, border_function *border)
{
    grd_tensor *parts[3];
    int64_t n = 0;
    if (before > 0)
        parts[n++] = border(t, dim, before, false);
    parts[n++] = t;
    if (after > 0)
        parts[n++] = border(t, dim, after, true);
    return n == 1 || grd_pending() ? t : grd_cat(grd_tensors_from(parts, n), .dim = dim);
}

/* Returns t with borders along all padded dimensions. Negative lengths are ignored here; kept() applies them. */
static grd_tensor *with_border(grd_tensor *t, grd_dims pad, border_function *border)
{
    const int64_t ndim = t->ndim;
    for (int64_t i = ndim - pad.n / 2; i < ndim && !grd_pending(); i++)
        t = bordered(t, i, length_at(pad, ndim, i, false), length_at(pad, ndim, i, true), border);
    return grd_pending() ? grd_failed : t;
}

static border_function *border_of(const char *mode)
{
    if (strcmp(mode, "reflect") == 0)
        return mirrored;
    if (strcmp(mode, "replicate") == 0)
        return repeated;
    return strcmp(mode, "circular") == 0 ? wrapped : NULL;
}

/* Pads the last n dimensions with elements of the tensor itself. The result is never self or a view of self, since autograd records it as a new
 * tensor. */
grd_tensor *grd_pad_bordered(grd_tensor *self, grd_dims pad, const char *mode, int64_t n)
{
    if (pad.n != 2 * n)
        return grd_fail(GRD_ERROR_RUNTIME, "padding size is expected to be %lld, but got: %lld", (long long)(2 * n), (long long)pad.n);
    if (self->ndim != n + 1 && self->ndim != n + 2)
        return grd_fail(GRD_ERROR_RUNTIME,
                        "Expected %lldD or %lldD (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, "
                        "but got: %s",
                        (long long)(n + 1), (long long)(n + 2), grd_list_text(grd_sizes(self)));
    grd_tensor *t = check_pad(self, pad) ? kept(with_border(self, pad, border_of(mode)), pad, true) : grd_failed;
    if (!grd_pending())
        t = pad.n == 2 ? grd_composite_contiguous(t) : grd_composite_suggested(t, self);
    return grd_pending() || (t->base == NULL && t != self) ? t : grd_clone(t);
}

typedef grd_tensor *pad_function(grd_tensor *self, grd_dims pad);

/* Raises TypeError if the value is complex. Raises RuntimeError if the value is a negative integer that the dtype cannot hold. As in PyTorch, a
 * negative integer does not wrap around in an unsigned dtype. */
static bool check_pad_value(const grd_tensor *self, grd_scalar value)
{
    char element[16];
    if (value.kind == GRD_SCALAR_COMPLEX)
        return grd_raise(GRD_ERROR_TYPE, "argument 'value' (position 4) must be float, not complex");
    const bool is_negative = value.kind == GRD_SCALAR_INT && value.v.i < 0;
    return !is_negative || grd_scalar_write(grd_float((double)value.v.i), (grd_dtype)self->dtype, element);
}

grd_tensor *op_pad(grd_tensor *self, grd_dims pad, const char *mode, grd_scalar value)
{
    int64_t sizes[GRD_MAX_DIMS];
    if (!check_pad(self, pad) || !padded_sizes(self, pad, sizes))
        return grd_failed;
    if (strcmp(mode, "constant") == 0 && has_border(pad) && !check_pad_value(self, value))
        return grd_failed;
    if (strcmp(mode, "constant") == 0)
        return grd_constant_pad_nd(self, pad, .value = value.kind == GRD_SCALAR_NONE ? grd_int(0) : value);
    border_function *border = border_of(mode);
    if (border == NULL)
        return grd_fail(GRD_ERROR_NOT_IMPLEMENTED, "Unrecognised padding mode %s: " GRD_WORDS_PAD_MODE, mode);
    if (value.kind != GRD_SCALAR_NONE && grd_scalar_double(value) != 0)
        return grd_fail(GRD_ERROR_RUNTIME, "Padding mode \"%s\" doesn't take in value argument", mode);
    const int64_t n = pad.n / 2;
    if (n < 1 || n > 3 || (self->ndim != n + 1 && self->ndim != n + 2))
        return grd_fail(GRD_ERROR_NOT_IMPLEMENTED, "Only 2D, 3D, 4D, 5D padding with non-constant padding are supported for now");
    static pad_function *const of_mode[2][3] = {
        {grd_reflection_pad1d, grd_reflection_pad2d, grd_reflection_pad3d},
        {grd_replication_pad1d, grd_replication_pad2d, grd_replication_pad3d},
    };
    if (border == wrapped) /* circular padding must not repeat elements that a negative padding removes, so they are removed first */
        return grd_composite_contiguous(with_border(kept(self, pad, true), pad, wrapped));
    return of_mode[border == repeated][n - 1](self, pad);
}

/* Computes the gradient of padding, dimension by dimension. Padding the indices 0, 1, ... of a dimension gives the source index of each element of
 * the padded tensor. The gradient of each element is added at its source index. */
grd_tensor *op_hidden_border_backward(grd_tensor *grad, grd_dims pad, grd_dims sizes, const char *mode)
{
    border_function *border = border_of(mode);
    if (border == NULL || sizes.n != grad->ndim)
        return grd_fail(GRD_ERROR_RUNTIME, "expected a mode of borders and sizes of %d dimensions, but got %s and %lld sizes", grad->ndim,
                        mode, (long long)sizes.n);
    if (!check_pad(grad, pad))
        return grd_failed;
    for (int64_t i = 0; i < pad.n / 2 && !grd_pending(); i++) {
        const int64_t dim = sizes.n - 1 - i;
        const grd_dims own = grd_dims_from(pad.data + 2 * i, 2);
        grd_tensor *places = grd_arange_end(grd_int(sizes.data[dim]), .device = grd_device_of(grad));
        places = kept(with_border(places, own, border), own, true);
        int64_t before[GRD_MAX_DIMS];
        memcpy(before, grad->sizes, grad->ndim * sizeof *before);
        before[dim] = sizes.data[dim];
        grd_tensor *zeros = grd_zeros(grd_dims_from(before, sizes.n), .dtype = (grd_dtype)grad->dtype, .device = grd_device_of(grad));
        grad = grd_index_add(zeros, dim, places, grad);
    }
    return grd_pending() ? grd_failed : grad;
}
