/* Computes fractional_max_pool, whose windows are at random positions, and max_unpool. Both call other operators, which autograd does not record.
 * Instead it records one node, whose gradient formula is in schema/pooling.toml. */
#include <string.h>

#include "gen/uses/op/unpool.h"
#include "core/dtype.h"
#include "core/shape.h"
#include "core/tensor.h"
#include "gradus/library.h"
#include "op/formula.h"

/* ---- Fractional max pooling ------------------------------------------------------------------------------------------------------------ */

static bool check_windows(const char *name, const grd_tensor *self, grd_dims kernel, grd_dims output, const grd_tensor *samples, int64_t n)
{
    const int64_t first = self->ndim - n;
    if (kernel.n != n || output.n != n)
        return grd_raise(GRD_ERROR_RUNTIME, "%s: kernel_size and output_size must either be a single int or tuple of Ints", name);
    if (first != 1 && first != 2)
        return grd_raise(GRD_ERROR_RUNTIME, "%s: Expected %lldD or %lldD tensor, but got: %s", name, (long long)n + 1, (long long)n + 2,
                         grd_list_text(grd_sizes(self)));
    for (int64_t i = first - 1; i < self->ndim; i++)
        if (self->sizes[i] == 0)
            return grd_raise(
                GRD_ERROR_RUNTIME,
                "%s: Expected input to have non-zero size for non-batch dimensions, but got %s with dimension %lld being empty.", name,
                grd_list_text(grd_sizes(self)), (long long)i);
    if (!grd_dtype_is_floating((grd_dtype)self->dtype))
        return grd_raise_no_kernel(name, (grd_dtype)self->dtype);
    if (samples->dtype != self->dtype)
        return grd_raise(GRD_ERROR_RUNTIME, "Expect _random_samples to have the same dtype as input");
    const int64_t batch = first == 2 ? self->sizes[0] : 1;
    if (samples->ndim != 3 || samples->sizes[0] < batch || samples->sizes[1] < self->sizes[first - 1] || samples->sizes[2] != n)
        return grd_raise(GRD_ERROR_RUNTIME, "Expect _random_samples of size [%lld, %lld, %lld], but got %s.", (long long)batch,
                         (long long)self->sizes[first - 1], (long long)n, grd_list_text(grd_sizes(samples)));
    for (int64_t i = 0; i < n; i++) {
        const int64_t size = self->sizes[first + i];
        if (kernel.data[i] < 1 || output.data[i] < 1 || kernel.data[i] > size || output.data[i] > size ||
            output.data[i] + kernel.data[i] - 1 > size)
            return grd_raise(GRD_ERROR_RUNTIME,
                             "%s: pool size %lld and output size %lld are too large, or too small, relative to input size %lld", name,
                             (long long)kernel.data[i], (long long)output.data[i], (long long)size);
    }
    return true;
}

/* Returns the start indices of the windows along one axis, with sizes (batch, channels, windows). With alpha = (size - kernel) / (windows - 1) and
 * the random number u, window i starts at floor((i + u) * alpha) - floor(u * alpha). The last window ends at the end of the axis. */
static grd_tensor *window_starts(grd_tensor *u, int64_t size, int64_t kernel, int64_t windows)
{
    const grd_dtype dtype = (grd_dtype)u->dtype;
    grd_tensor *last =
        grd_full(grd_dims(u->sizes[0], u->sizes[1], 1), grd_int(size - kernel), .dtype = GRD_INT64, .device = grd_device_of(u));
    if (windows == 1)
        return last;
    grd_tensor *alpha = grd_full(GRD_NO_DIMS, grd_float((double)(size - kernel)), .dtype = dtype, .device = grd_device_of(u));
    alpha = grd_div_scalar(alpha, grd_float((double)(windows - 1)));
    grd_tensor *places = grd_arange_end(grd_int(windows - 1), .dtype = dtype, .device = grd_device_of(u));
    grd_tensor *samples = grd_unsqueeze(u, -1);
    grd_tensor *moved = grd_to(grd_mul(grd_add(samples, places), alpha), .dtype = GRD_INT64);
    grd_tensor *starts = grd_sub(moved, grd_to(grd_mul(samples, alpha), .dtype = GRD_INT64));
    return grd_cat(grd_tensors(starts, last), .dim = 2);
}

/* Returns the numbers 0 to count - 1 along dimension `dim` of a tensor with n dimensions, whose other sizes are 1. */
static grd_tensor *along(int64_t count, int64_t dim, int64_t n, grd_device device)
{
    int64_t sizes[GRD_MAX_DIMS];
    for (int64_t i = 0; i < n; i++)
        sizes[i] = i == dim ? count : 1;
    return grd_reshape(grd_arange_end(grd_int(count), .device = device), grd_dims_from(sizes, n));
}

/* Returns an index tensor with sizes (batch * channels, outputs, elements of a window). Each entry belongs to one element of a window and is the
 * row-major index of this element in its image. */
static grd_tensor *window_places(const grd_tensor *self, grd_dims kernel, grd_dims output, grd_tensor *samples, int64_t n)
{
    const int64_t first = self->ndim - n, batch = first == 2 ? self->sizes[0] : 1, channels = self->sizes[first - 1], dims = 2 + 2 * n;
    int64_t elements = 1, outputs = 1, sizes[GRD_MAX_DIMS];
    grd_tensor *places = NULL;
    samples = grd_narrow(grd_narrow(samples, 0, 0, batch), 1, 0, channels);
    for (int64_t i = 0; i < n && !grd_pending(); i++) {
        /* The order of PyTorch's samples is width, height in 2-D, but depth, height, width in 3-D. */
        const int64_t sample = n == 2 ? 1 - i : i;
        grd_tensor *starts = window_starts(grd_select(samples, 2, sample), self->sizes[first + i], kernel.data[i], output.data[i]);
        for (int64_t k = 0; k < dims; k++)
            sizes[k] = k == 0 ? batch : k == 1 ? channels : k == 2 + i ? output.data[i] : 1;
        grd_tensor *axis =
            grd_add(grd_reshape(starts, grd_dims_from(sizes, dims)), along(kernel.data[i], 2 + n + i, dims, grd_device_of(self)));
        places = places == NULL ? axis : grd_add(grd_mul_scalar(places, grd_int(self->sizes[first + i])), axis);
        elements *= kernel.data[i];
        outputs *= output.data[i];
    }
    return grd_pending() ? grd_failed : grd_reshape(places, grd_dims(batch * channels, outputs, elements));
}

/* Computes fractional max pooling with n spatial dimensions, and writes the values and indices to `ret`. */
static void pool_at_random(const char *name, grd_tensor *self, grd_dims kernel, grd_dims output, grd_tensor *samples, int64_t n,
                           grd_tensor **ret)
{
    ret[0] = ret[1] = grd_failed;
    if (!check_windows(name, self, kernel, output, samples, n))
        return;
    grd_tensor *places = window_places(self, kernel, output, samples, n);
    if (grd_pending())
        return;
    const int64_t images = places->sizes[0], outputs = places->sizes[1], elements = places->sizes[2];
    const grd_dims lines = grd_dims(images, grd_wrapping_product(outputs, elements));
    grd_tensor *values =
        grd_gather(grd_reshape(self, grd_dims(images, grd_numel_of(grd_image_sizes(grd_sizes(self), n)))), 1, grd_reshape(places, lines));
    const grd_max_dim_result found = grd_max_dim(grd_reshape(values, grd_sizes(places)), 2);
    int64_t sizes[GRD_MAX_DIMS];
    memcpy(sizes, self->sizes, (size_t)(self->ndim - n) * sizeof *sizes);
    memcpy(sizes + self->ndim - n, output.data, (size_t)n * sizeof *sizes);
    const grd_dims wanted = grd_dims_from(sizes, self->ndim);
    if (grd_pending())
        return;
    grd_tensor *indices = grd_reshape(grd_gather(places, 2, grd_unsqueeze(found.indices, 2)), wanted);
    ret[0] = grd_reshape(found.values, wanted);
    ret[1] = indices;
}

void op_fractional_max_pool2d(grd_tensor *self, grd_dims kernel_size, grd_dims output_size, grd_tensor *random_samples, grd_tensor **ret)
{
    pool_at_random("fractional_max_pool2d", self, kernel_size, output_size, random_samples, 2, ret);
}

void op_fractional_max_pool3d(grd_tensor *self, grd_dims kernel_size, grd_dims output_size, grd_tensor *random_samples, grd_tensor **ret)
{
    pool_at_random("fractional_max_pool3d", self, kernel_size, output_size, random_samples, 3, ret);
}

/* ---- max_unpool ------------------------------------------------------------------------------------------------------------------------ */

static bool check_places(const char *name, const grd_tensor *self, grd_tensor *indices, grd_dims output, int64_t n)
{
    if (indices->dtype != GRD_INT64)
        return grd_raise(GRD_ERROR_RUNTIME, "elements in indices should be type int64 but got: %s",
                         grd_dtype_type_name((grd_dtype)indices->dtype));
    if (self->ndim != n + 1 && self->ndim != n + 2)
        return grd_raise(GRD_ERROR_RUNTIME, "Input to %s should be a %lldd or %lldd Tensor, but got a tensor with %d dimensions.", name,
                         (long long)n + 1, (long long)n + 2, (int)self->ndim);
    if (output.n != n)
        return grd_raise(GRD_ERROR_RUNTIME, "There should be exactly %s elements %s in output_size, but got %lld elements.",
                         n == 2 ? "two" : "three", n == 2 ? "(height, width)" : "(depth, height, width)", (long long)output.n);
    if (!grd_same_sizes(self, grd_sizes(indices)))
        return grd_raise(GRD_ERROR_RUNTIME,
                         "Expected shape of indices to be same as that of the input tensor (%s) but got indices tensor with shape: %s",
                         grd_list_text(grd_sizes(self)), grd_list_text(grd_sizes(indices)));
    for (int i = 1; i < self->ndim; i++)
        if (self->sizes[i] == 0)
            return grd_raise(GRD_ERROR_RUNTIME,
                             "%s: Expected input to have non-zero size for non-batch dimensions, but got %s with dimension %d being empty.",
                             name, grd_list_text(grd_sizes(self)), i);
    if (!grd_dtype_is_floating((grd_dtype)self->dtype))
        return grd_raise_no_kernel(name, (grd_dtype)self->dtype);
    for (int64_t i = 0; i < n; i++)
        if (output.data[i] < 0)
            return grd_raise(GRD_ERROR_RUNTIME, "output_size must not be negative, but got %s", grd_list_text(output));
    return true;
}

/* Returns images of zeros to which the elements of self are written. `indices` holds the position of each element in its image. */
static grd_tensor *unpooled(const char *name, grd_tensor *self, grd_tensor *indices, grd_dims output, int64_t n)
{
    int64_t sizes[GRD_MAX_DIMS];
    if (!check_places(name, self, indices, output, n))
        return grd_failed;
    memcpy(sizes, self->sizes, (size_t)(self->ndim - n) * sizeof *sizes);
    memcpy(sizes + self->ndim - n, output.data, (size_t)n * sizeof *sizes);
    const grd_dims wanted = grd_dims_from(sizes, self->ndim), planes = grd_plane_sizes(grd_sizes(self), n);
    grd_tensor *zeros = grd_zeros(wanted, .dtype = (grd_dtype)self->dtype, .device = grd_device_of(self));
    if (grd_pending())
        return grd_failed;
    if (grd_numel_of(output) == 0) /* As in PyTorch, nothing is written and no index is checked. */
        return zeros;
    if (!grd_composite_within(indices, 0, (double)grd_numel_of(output) - 1))
        return grd_fail(GRD_ERROR_RUNTIME, "Found an invalid max index (output volumes are of size %s)", grd_list_text(output));
    grd_tensor *filled =
        grd_scatter(grd_reshape(zeros, grd_plane_sizes(wanted, n)), -1, grd_reshape(indices, planes), grd_reshape(self, planes));
    return n == 2 ? grd_composite_suggested(grd_reshape(filled, wanted), self) : grd_reshape(filled, wanted);
}

grd_tensor *op_max_unpool2d(grd_tensor *self, grd_tensor *indices, grd_dims output_size)
{
    return unpooled("max_unpooling2d", self, indices, output_size, 2);
}

grd_tensor *op_max_unpool3d(grd_tensor *self, grd_tensor *indices, grd_dims output_size, grd_dims stride, grd_dims padding)
{
    if (stride.n != 3 || padding.n != 3)
        return grd_fail(
            GRD_ERROR_RUNTIME,
            "There should be exactly three elements (depth, height, width) in stride and padding, but got: %lld and %lld elements.",
            (long long)stride.n, (long long)padding.n);
    for (int i = 0; i < 3; i++)
        if (stride.data[i] <= 0)
            return grd_fail(GRD_ERROR_RUNTIME, "strides should be greater than zero, but got stride: %s", grd_list_text(stride));
    return unpooled("max_unpooling3d", self, indices, output_size, 3);
}
