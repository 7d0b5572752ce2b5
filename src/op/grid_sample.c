/* Implements grid_sample and affine_grid: checks, plans and the division into tasks. The loops are in kernel/cpu/grid.c. Schema: schema/grid.toml. */
#include "base/integer.h"
#include "kernel/grid.h"

#include <string.h>

#include "base/parallel.h"
#include "gen/uses/op/grid_sample.h"
#include "core/dtype.h"
#include "core/shape.h"
#include "core/tensor.h"
#include "gradus/library.h"
#include "kernel/table.h"
#include "op/plan.h"
#include "op/formula.h"

enum { PIECE = 1 << 14 /* approximate number of output elements of a task */ };

/* The data of one call of grid_sampler or of one of its gradients. take_grid() fills it, and the functions that compute the result read it. */
struct grid {
    struct grd_grid kernel;
    const struct grd_grid_row *kernels;
    int64_t samples;
    const char *in, *grid, *grad;
    char *out;
};

static struct grid *grid_of(const struct grd_plan *p)
{
    return (struct grid *)(uintptr_t)p->state;
}

/* ---- Checks ---------------------------------------------------------------------------------------------------------------------------- */

static bool check_sizes(grd_dims input, const grd_tensor *grid, int64_t dims)
{
    if (input.n != dims + 2 || grid->ndim != dims + 2)
        return grd_raise(GRD_ERROR_RUNTIME,
                         "grid_sampler(): expected %lldD input and grid with same number of dimensions, but got input with sizes %s and "
                         "grid with sizes %s",
                         (long long)dims + 2, grd_list_text(input), grd_list_text(grd_sizes(grid)));
    if (input.data[0] != grid->sizes[0])
        return grd_raise(
            GRD_ERROR_RUNTIME,
            "grid_sampler(): expected grid and input to have same batch size, but got input with sizes %s and grid with sizes %s",
            grd_list_text(input), grd_list_text(grd_sizes(grid)));
    if (grid->sizes[grid->ndim - 1] != dims)
        return grd_raise(GRD_ERROR_RUNTIME, "grid_sampler(): expected grid to have size %lld in last dimension, but got grid with sizes %s",
                         (long long)dims, grd_list_text(grd_sizes(grid)));
    for (int64_t i = 2; i < input.n; i++)
        if (input.data[i] <= 0)
            return grd_raise(GRD_ERROR_RUNTIME,
                             "grid_sampler(): expected input to have non-empty spatial dimensions, but input has sizes %s with dimension "
                             "%lld being empty",
                             grd_list_text(input), (long long)i);
    if ((double)grd_sizes_product(input.data + 2, dims) > (double)INT32_MAX)
        return grd_raise(GRD_ERROR_RUNTIME, "grid_sampler(): images have at most 2147483647 elements, but input has sizes %s",
                         grd_list_text(input));
    return true;
}

/* Checks the arguments that grid_sampler and its two gradients (for the images and for the grid) have in common, and fills the plan's struct grid.
 * `input` is the sizes of the images. `values` is the images or, in the gradient for the images, the output's gradient. Raises an error and returns
 * false if the arguments do not fit. */
static bool take_grid(struct grd_plan *p, grd_dims input, const grd_tensor *values, grd_tensor *grid, int64_t mode, int64_t padding,
                      bool align_corners)
{
    struct grid *x = grid_of(p);
    const int64_t dims = input.n - 2;
    const grd_dtype dtype = (grd_dtype)values->dtype;
    if ((dims != 2 && dims != 3) || !check_sizes(input, grid, dims))
        return grd_pending() ? false
                             : grd_raise(GRD_ERROR_RUNTIME, "grid_sampler(): expected 4D or 5D input, but got input with sizes %s",
                                         grd_list_text(input));
    if (dims == 3 && mode == GRD_GRID_BICUBIC)
        return grd_raise(GRD_ERROR_RUNTIME, "grid_sampler(): bicubic interpolation only supports 4D input");
    if (mode < 0 || mode > GRD_GRID_BICUBIC || padding < 0 || padding > GRD_GRID_REFLECTION)
        return grd_raise(GRD_ERROR_RUNTIME, "grid_sampler(): interpolation_mode and padding_mode are 0, 1 or 2, not %lld and %lld",
                         (long long)mode, (long long)padding);
    if (grid->dtype != values->dtype)
        return grd_raise(GRD_ERROR_RUNTIME, "grid_sampler(): expected input and grid to have same dtype, but input has %s and grid has %s",
                         grd_dtype_type_name(dtype), grd_dtype_type_name((grd_dtype)grid->dtype));
    *x = (struct grid){.samples = input.data[0], .kernels = grd_kernels->grid[grd_computed_dtype(dtype)]};
    x->kernel = (struct grd_grid){.channels = input.data[1],
                                  .sizes = {1, 1, 1},
                                  .dims = (int)dims,
                                  .mode = (enum grd_grid_mode)mode,
                                  .padding = (enum grd_grid_padding)padding,
                                  .align_corners = align_corners};
    memcpy(x->kernel.sizes + GRD_GRID_AXES - dims, input.data + 2, (size_t)dims * sizeof *input.data);
    x->kernel.points = grd_sizes_product(grid->sizes + 1, dims);
    return x->kernels != NULL || grd_raise_no_kernel("grid_sampler", dtype);
}

/* Plans a result that is computed in grd_computed_dtype(dtype), i.e. float32 for half types, and then rounded to `dtype`. */
static bool plan_written(struct grd_plan *p, grd_dims sizes, grd_dtype dtype)
{
    return grd_plan_result(p, sizes, dtype) && grd_plan_computed_in(p, grd_computed_dtype(dtype));
}

/* Plans to read `t` converted to the dtype of the computation, which is float32 for half types and otherwise t's dtype. */
static bool read_computed(struct grd_plan *p, grd_tensor *t)
{
    const grd_dtype dtype = (grd_dtype)t->dtype;
    return grd_plan_reads_as(p, t, grd_computed_dtype(dtype));
}

/* ---- Samples --------------------------------------------------------------------------------------------------------------------------- */

bool plan_grid_sampler(struct grd_plan *p, grd_tensor *input, grd_tensor *grid, int64_t interpolation_mode, int64_t padding_mode,
                       bool align_corners)
{
    int64_t sizes[GRD_MAX_DIMS] = {0};
    if (!take_grid(p, grd_sizes(input), input, grid, interpolation_mode, padding_mode, align_corners))
        return false;
    memcpy(sizes, input->sizes, 2 * sizeof *sizes);
    memcpy(sizes + 2, grid->sizes + 1, (size_t)(input->ndim - 2) * sizeof *sizes);
    return read_computed(p, input) && read_computed(p, grid) && plan_written(p, grd_dims_from(sizes, input->ndim), (grd_dtype)input->dtype);
}

bool plan_grid_sampler_image_backward(struct grd_plan *p, grd_tensor *grad, grd_dims size, grd_tensor *grid, int64_t interpolation_mode,
                                      int64_t padding_mode, bool align_corners)
{
    return take_grid(p, size, grad, grid, interpolation_mode, padding_mode, align_corners) && read_computed(p, grad) &&
           read_computed(p, grid) && plan_written(p, size, (grd_dtype)grad->dtype);
}

bool plan_grid_sampler_grid_backward(struct grd_plan *p, grd_tensor *grad, grd_tensor *input, grd_tensor *grid, int64_t interpolation_mode,
                                     int64_t padding_mode, bool align_corners)
{
    return take_grid(p, grd_sizes(input), input, grid, interpolation_mode, padding_mode, align_corners) && read_computed(p, grad) &&
           read_computed(p, grid) && read_computed(p, input) && plan_written(p, grd_sizes(grid), (grd_dtype)grid->dtype);
}

static void forward_piece(int64_t begin, int64_t end, void *context)
{
    const struct grid *x = context;
    x->kernels->forward(&x->kernel, begin, end, x->in, x->grid, x->out);
}

static void image_piece(int64_t begin, int64_t end, void *context)
{
    const struct grid *x = context;
    x->kernels->backward_image(&x->kernel, begin, end, x->grad, x->grid, x->out);
}

static void grid_piece(int64_t begin, int64_t end, void *context)
{
    const struct grid *x = context;
    x->kernels->backward_grid(&x->kernel, begin, end, x->grad, x->in, x->grid, x->out);
}

static void run_blocks(struct grid *x, grd_task *task)
{
    const int64_t blocks = grd_ceil_div(x->kernel.points, GRD_GRID_POINTS);
    grd_parallel_for(0, x->samples * blocks, PIECE / (GRD_GRID_POINTS * (x->kernel.channels + 4)) + 1, task, x);
}

void run_grid_sampler(const struct grd_plan *p)
{
    struct grid *x = grid_of(p);
    x->in = p->in[0]->data;
    x->grid = p->in[1]->data;
    x->out = p->results[0]->data;
    run_blocks(x, forward_piece);
}

void run_grid_sampler_image_backward(const struct grd_plan *p, grd_tensor *grad, grd_dims size, grd_tensor *grid,
                                     int64_t interpolation_mode, int64_t padding_mode, bool align_corners)
{
    (void)grad, (void)size, (void)grid, (void)interpolation_mode, (void)padding_mode, (void)align_corners;
    struct grid *x = grid_of(p);
    x->grad = p->in[0]->data;
    x->grid = p->in[1]->data;
    x->out = p->results[0]->data;
    memset(x->out, 0, (size_t)p->results[0]->numel * (size_t)p->results[0]->itemsize);
    grd_parallel_for(0, x->samples * grd_ceil_div(x->kernel.channels, GRD_GRID_CHANNELS), 1, image_piece, x);
}

void run_grid_sampler_grid_backward(const struct grd_plan *p, grd_tensor *grad, grd_tensor *input, grd_tensor *grid,
                                    int64_t interpolation_mode, int64_t padding_mode, bool align_corners)
{
    (void)grad, (void)input, (void)grid, (void)interpolation_mode, (void)padding_mode, (void)align_corners;
    struct grid *x = grid_of(p);
    x->grad = p->in[0]->data;
    x->grid = p->in[1]->data;
    x->in = p->in[2]->data;
    x->out = p->results[0]->data;
    /* In nearest mode the output does not change with small changes of the grid, so the gradient of the grid is 0. */
    if (x->kernel.mode == GRD_GRID_NEAREST)
        memset(x->out, 0, (size_t)p->results[0]->numel * (size_t)p->results[0]->itemsize);
    else
        run_blocks(x, grid_piece);
}

/* ---- Affine maps ----------------------------------------------------------------------------------------------------------------------- */

/* Returns the n coordinates of an image's elements along one dimension, from -1 to 1. If align_corners, the first is -1 and the last is 1; otherwise
 * they are the centers of n equal intervals. */
static grd_tensor *coordinates(int64_t n, bool align_corners, grd_dtype dtype, grd_device device)
{
    if (n <= 1)
        return grd_zeros(grd_dims(n), .dtype = dtype, .device = device);
    grd_tensor *ends = grd_linspace(grd_int(-1), grd_int(1), n, .dtype = dtype, .device = device);
    return align_corners ? ends : grd_div_scalar(grd_mul_scalar(ends, grd_int(n - 1)), grd_int(n));
}

/* Returns the points of an affine grid as a tensor of sizes (1, points, dims + 1). It holds the coordinates x, y (and z for three dims) of each
 * point, followed by 1. */
grd_tensor *op_affine_points(grd_dims size, bool align_corners, grd_dtype dtype, grd_device device)
{
    const int64_t dims = size.n - 2;
    grd_tensor *columns[GRD_GRID_AXES + 1];
    if (dims != 2 && dims != 3)
        return grd_fail(GRD_ERROR_RUNTIME, "AffineGridGenerator needs 4d (spatial) or 5d (volumetric) inputs.");
    const grd_dims image = grd_dims_from(size.data + 2, dims);
    for (int64_t i = 0; i < dims && !grd_pending(); i++) {
        int64_t sizes[GRD_GRID_AXES] = {1, 1, 1};
        const int64_t axis = dims - 1 - i;
        sizes[axis] = image.data[axis];
        grd_tensor *line = grd_reshape(coordinates(image.data[axis], align_corners, dtype, device), grd_dims_from(sizes, dims));
        columns[i] = grd_expand(line, image);
    }
    columns[dims] = grd_ones(image, .dtype = dtype, .device = device);
    if (grd_pending())
        return grd_failed;
    grd_tensor *points = grd_stack(grd_tensors_from(columns, dims + 1), .dim = dims);
    return grd_pending() ? grd_failed : grd_reshape(points, grd_dims(1, grd_numel_of(image), dims + 1));
}

/* Returns the sizes of the affine grid for images of sizes `size`. If `merged`, all points of an image are one dimension. */
grd_dims grd_affine_sizes(grd_dims size, bool merged)
{
    int64_t *const sizes = grd_pool_array(GRD_GRID_AXES + 2, sizeof *sizes);
    if (sizes == NULL || size.n < 4 || size.n > GRD_GRID_AXES + 2)
        return GRD_NO_DIMS;
    const int64_t dims = size.n - 2;
    sizes[0] = size.data[0];
    if (merged)
        sizes[1] = grd_numel_of(grd_dims_from(size.data + 2, dims));
    else
        memcpy(sizes + 1, size.data + 2, (size_t)dims * sizeof *sizes);
    sizes[merged ? 2 : dims + 1] = dims;
    return grd_dims_from(sizes, merged ? 3 : dims + 2);
}
