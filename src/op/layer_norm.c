/* layer_norm and rms_norm: rows normalised in one pass over memory, and their derivatives; formulas are in schema/normalization.toml.
 *
 * Invariant: rows are divided at fixed places and partial sums added in order, so that the bits do not depend on the number of threads. */
#include "kernel/layer_norm.h"

#include <float.h>
#include <string.h>

#include "base/parallel.h"
#include "base/text.h"
#include "gradus/ops/add.h"
#include "gradus/ops/mean.h"
#include "gradus/ops/mul.h"
#include "gradus/ops/neg.h"
#include "gradus/ops/rsqrt.h"
#include "gradus/ops/square.h"
#include "gradus/ops/sum.h"
#include "gradus/ops/var.h"
#include "gradus/ops/view.h"
#include "gen/impl/normalization.h"
#include "gen/ops/_layer_norm.h"
#include "gen/ops/_layer_norm_input_backward.h"
#include "gen/ops/_normalized.h"
#include "kernel/table.h"
#include "op/common.h"
#include "op/composite.h"
#include "op/copy.h"

enum { LIST_CHARS = 512, GRAIN = 16 * 1024, MOST_PARTS = 64, LEAST_ROWS = 64 };

/* ---- Checks ------------------------------------------------------------------------------------------------------------------ */

static grd_dtype computed_in(grd_dtype dtype)
{
    return dtype == GRD_FLOAT16 || dtype == GRD_BFLOAT16 ? GRD_FLOAT32 : dtype;
}

static bool check_shape(const grd_tensor *input, grd_dims shape)
{
    char want[LIST_CHARS], have[LIST_CHARS];
    if (shape.n == 0)
        return grd_raise(GRD_ERROR_RUNTIME,
                         "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, "
                         "but got normalized_shape = []");
    if (shape.n <= input->ndim && memcmp(input->sizes + input->ndim - shape.n, shape.data, (size_t)shape.n * sizeof *shape.data) == 0)
        return true;
    grd_format_int64s(want, sizeof want, shape.data, shape.n);
    return grd_raise(GRD_ERROR_RUNTIME, "Given normalized_shape=%s, expected input with shape [*, %s, but got input of size %s", want,
                     want + 1, grd_format_int64s(have, sizeof have, input->sizes, input->ndim));
}

/* A weight or bias may be float32 where the input is of a half type. */
static bool check_parameter(const grd_tensor *input, const grd_tensor *t, grd_dims shape, const char *name)
{
    char want[LIST_CHARS], have[LIST_CHARS];
    if (t == NULL)
        return true;
    if (!grd_same_sizes(t, shape))
        return grd_raise(
            GRD_ERROR_RUNTIME, "Expected %s to be of same shape as normalized_shape, but got %s of shape %s and normalized_shape = %s",
            name, name, grd_format_int64s(have, sizeof have, t->sizes, t->ndim), grd_format_int64s(want, sizeof want, shape.data, shape.n));
    if (t->dtype != input->dtype && (grd_dtype)t->dtype != computed_in((grd_dtype)input->dtype))
        return grd_raise(GRD_ERROR_RUNTIME, "expected scalar type %s but found %s", grd_dtype_type_name((grd_dtype)input->dtype),
                         grd_dtype_type_name((grd_dtype)t->dtype));
    return grd_check_same_device(grd_tensors((grd_tensor *)(uintptr_t)input, (grd_tensor *)(uintptr_t)t));
}

static bool check_dtype(const grd_tensor *input)
{
    return grd_kernels->layer_norm[computed_in((grd_dtype)input->dtype)] != NULL ||
           grd_raise_no_kernel("layer_norm", (grd_dtype)input->dtype);
}

/* ---- Rows in pieces ---------------------------------------------------------------------------------------------------------- */

struct rows {
    struct grd_layer_norm_block block; /* of all rows */
    void (*kernel)(const struct grd_layer_norm_block *block);
    int64_t itemsize;
    int64_t out_step; /* between what two rows write */
};

/* `t` contiguous and of the dtype that is computed in; NULL stays. */
static const void *plain(grd_tensor *t, grd_dtype dtype)
{
    if (t == NULL || grd_pending())
        return NULL;
    t = grd_contiguous_as(t, dtype);
    return t->data;
}

static struct rows rows_of(const grd_tensor *input, grd_dims shape, double eps, bool centered)
{
    const int64_t outer = input->ndim - shape.n;
    struct rows r = {.block = {.rows = grd_sizes_product(input->sizes, outer),
                               .n = grd_sizes_product(input->sizes + outer, shape.n),
                               .centered = centered,
                               .eps = eps}};
    r.itemsize = grd_dtype_size(computed_in((grd_dtype)input->dtype));
    r.out_step = r.block.n;
    return r;
}

static const char *advanced(const void *data, int64_t bytes)
{
    return data != NULL ? (const char *)data + bytes : NULL;
}

static void run_rows(int64_t begin, int64_t end, void *context)
{
    const struct rows *r = context;
    struct grd_layer_norm_block b = r->block;
    const int64_t row = r->itemsize, elements = begin * b.n * r->itemsize;
    b.rows = end - begin;
    b.in = advanced(b.in, elements);
    b.grad = advanced(b.grad, elements);
    b.mean = (char *)b.mean + begin * row;
    b.rstd = (char *)b.rstd + begin * row;
    b.out = (char *)b.out + begin * r->out_step * row;
    r->kernel(&b);
}

static void run(struct rows *r)
{
    const int64_t n = r->block.n > 0 ? r->block.n : 1;
    grd_parallel_for(0, r->block.rows, n < GRAIN ? GRAIN / n : 1, run_rows, r);
}

/* A result of the loops as the operator returns it. */
static grd_tensor *rounded(grd_tensor *t, grd_dtype dtype)
{
    return grd_pending() ? grd_failed : grd_contiguous_as(t, dtype);
}

/* ---- Operators --------------------------------------------------------------------------------------------------------------- */

void op_hidden_layer_norm(grd_tensor *input, grd_dims shape, grd_tensor *weight, grd_tensor *bias, double eps, bool centered,
                          grd_tensor **ret)
{
    const grd_dtype dtype = computed_in((grd_dtype)input->dtype);
    const grd_device device = grd_device_of(input);
    ret[0] = ret[1] = ret[2] = grd_failed;
    if (!check_shape(input, shape) || !check_parameter(input, weight, shape, "weight") || !check_parameter(input, bias, shape, "bias") ||
        !check_dtype(input))
        return;
    int64_t sizes[GRD_MAX_DIMS];
    for (int64_t i = 0; i < input->ndim; i++)
        sizes[i] = i < input->ndim - shape.n ? input->sizes[i] : 1;
    grd_tensor *output = grd_new(grd_sizes(input), dtype, device);
    grd_tensor *mean = grd_new_zeros(grd_dims_from(sizes, input->ndim), dtype, device);
    grd_tensor *rstd = grd_new_zeros(grd_dims_from(sizes, input->ndim), dtype, device);
    if (grd_pending())
        return;
    if (!grd_is_meta(input)) {
        struct rows r = rows_of(input, shape, eps, centered);
        r.kernel = grd_kernels->layer_norm[dtype]->forward;
        r.block.in = plain(input, dtype);
        r.block.weight = plain(weight, dtype);
        r.block.bias = plain(bias, dtype);
        r.block.mean = mean->data;
        r.block.rstd = rstd->data;
        r.block.out = output->data;
        if (grd_pending())
            return;
        run(&r);
    }
    ret[0] = rounded(output, (grd_dtype)input->dtype);
    ret[1] = mean;
    ret[2] = rstd;
}

/* What both derivatives read, checked; false with the error raised. */
static bool read_backward(struct rows *r, grd_tensor *grad_output, grd_tensor *input, grd_tensor *mean, grd_tensor *rstd, grd_dims shape)
{
    const grd_dtype dtype = computed_in((grd_dtype)input->dtype);
    if (!check_shape(input, shape) || !check_dtype(input) || !grd_check_same_device(grd_tensors(grad_output, input, mean, rstd)))
        return false;
    if (!grd_same_sizes(grad_output, grd_sizes(input)) || mean->numel != r->block.rows || rstd->numel != r->block.rows)
        return grd_raise(GRD_ERROR_RUNTIME, "gradient, mean and rstd must be those of the input's rows");
    if (grd_is_meta(input))
        return true;
    r->block.grad = plain(grad_output, dtype);
    r->block.in = plain(input, dtype);
    r->block.mean = (void *)(uintptr_t)plain(mean, dtype);
    r->block.rstd = (void *)(uintptr_t)plain(rstd, dtype);
    return !grd_pending();
}

grd_tensor *op_hidden_layer_norm_input_backward(grd_tensor *grad_output, grd_tensor *input, grd_tensor *mean, grd_tensor *rstd,
                                                grd_tensor *weight, grd_dims shape, double eps, bool centered)
{
    const grd_dtype dtype = computed_in((grd_dtype)input->dtype);
    struct rows r = rows_of(input, shape, eps, centered);
    if (!read_backward(&r, grad_output, input, mean, rstd, shape) || !check_parameter(input, weight, shape, "weight"))
        return grd_failed;
    grd_tensor *result = grd_new(grd_sizes(input), dtype, grd_device_of(input));
    if (grd_pending())
        return grd_failed;
    if (!grd_is_meta(input)) {
        r.kernel = grd_kernels->layer_norm[dtype]->input_backward;
        r.block.weight = plain(weight, dtype);
        r.block.out = result->data;
        if (grd_pending())
            return grd_failed;
        run(&r);
    }
    return rounded(result, (grd_dtype)input->dtype);
}

/* Rows that are summed together, each part into a row of its own. */
struct parts {
    struct rows rows;
    int64_t length;
};

static void sum_parts(int64_t begin, int64_t end, void *context)
{
    const struct parts *parts = context;
    for (int64_t part = begin; part < end; part++) {
        const int64_t first = part * parts->length, left = parts->rows.block.rows - first;
        struct rows r = parts->rows;
        r.block.out = (char *)r.block.out + part * r.block.n * r.itemsize;
        r.out_step = 0;
        run_rows(first, first + (left < parts->length ? left : parts->length), &r);
    }
}

grd_tensor *op_hidden_layer_norm_weight_backward(grd_tensor *grad_output, grd_tensor *input, grd_tensor *mean, grd_tensor *rstd,
                                                 grd_dims shape, double eps, bool centered)
{
    const grd_dtype dtype = computed_in((grd_dtype)input->dtype);
    struct parts parts = {.rows = rows_of(input, shape, eps, centered)};
    const int64_t rows = parts.rows.block.rows;
    if (!read_backward(&parts.rows, grad_output, input, mean, rstd, shape))
        return grd_failed;
    parts.length = (rows - 1) / MOST_PARTS + 1 > LEAST_ROWS ? (rows - 1) / MOST_PARTS + 1 : LEAST_ROWS;
    const int64_t count = rows == 0 ? 0 : (rows - 1) / parts.length + 1;
    grd_tensor *sums = grd_new(grd_dims(count, parts.rows.block.n), dtype, grd_device_of(input));
    if (!grd_pending() && !grd_is_meta(input)) {
        parts.rows.kernel = grd_kernels->layer_norm[dtype]->weight_backward;
        parts.rows.block.out = sums->data;
        grd_parallel_for(0, count, 1, sum_parts, &parts);
    }
    grd_tensor *sum = grd_view(grd_sum(sums, .dim = grd_dims(0)), shape);
    return rounded(sum, (grd_dtype)input->dtype);
}

/* ---- Composites ---------------------------------------------------------------------------------------------------------------- */

grd_tensor *op_layer_norm(grd_tensor *input, grd_dims shape, grd_tensor *weight, grd_tensor *bias, double eps)
{
    return grd_hidden_layer_norm(input, shape, weight, bias, eps, true).output;
}

static double distance_from_one(grd_dtype dtype)
{
    const grd_dtype real = grd_dtype_to_real(dtype);
    return real == GRD_FLOAT64 ? DBL_EPSILON : real == GRD_FLOAT16 ? 0x1p-10 : real == GRD_BFLOAT16 ? 0x1p-7 : FLT_EPSILON;
}

/* The last dimensions of a tensor. */
static grd_dims last_dims(int64_t n, int64_t *ret_dims)
{
    for (int64_t i = 0; i < n; i++)
        ret_dims[i] = i - n;
    return grd_dims_from(ret_dims, n);
}

grd_tensor *op_rms_norm(grd_tensor *input, grd_dims shape, grd_tensor *weight, grd_scalar eps)
{
    int64_t dims[GRD_MAX_DIMS];
    const double distance = eps.kind != GRD_SCALAR_NONE ? grd_scalar_double(eps) : distance_from_one((grd_dtype)input->dtype);
    if (!grd_dtype_is_complex((grd_dtype)input->dtype))
        return grd_composite_suggested(grd_hidden_layer_norm(input, shape, weight, NULL, distance, false).output, input);
    if (!check_shape(input, shape) || !check_parameter(input, weight, shape, "weight"))
        return grd_failed;
    grd_tensor *squares = grd_mean(grd_square(input), .dim = last_dims(shape.n, dims), .keepdim = true);
    grd_tensor *result = grd_mul(input, grd_rsqrt(grd_add_scalar(squares, grd_float(distance))));
    return grd_composite_suggested(weight != NULL ? grd_mul(result, weight) : result, input);
}

grd_tensor *op_hidden_normalized(grd_tensor *input, grd_dims shape, double eps, bool centered)
{
    return grd_hidden_layer_norm(input, shape, NULL, NULL, eps, centered).output;
}

grd_tensor *op_hidden_layer_norm_grad_backward(grd_tensor *grad, grd_tensor *input, grd_tensor *mean, grd_tensor *rstd, grd_tensor *weight,
                                               grd_dims shape, double eps, bool centered)
{
    grd_tensor *result = grd_hidden_layer_norm_input_backward(grad, input, mean, rstd, NULL, shape, eps, centered);
    return weight != NULL ? grd_mul(result, weight) : result;
}

/* Here h and rstd are functions of the input, so that the next derivative is right, too. */
grd_tensor *op_hidden_layer_norm_curvature(grd_tensor *grad, grd_tensor *grad_output, grd_tensor *input, grd_tensor *mean, grd_tensor *rstd,
                                           grd_tensor *weight, grd_dims shape, double eps, bool centered)
{
    int64_t storage[GRD_MAX_DIMS];
    if (!check_shape(input, shape))
        return grd_failed;
    const grd_dims dims = last_dims(shape.n, storage);
    const grd_scalar none = grd_int(0);
    grd_tensor *u = weight != NULL ? grd_mul(grad_output, weight) : grad_output, *h = grd_hidden_normalized(input, shape, eps, centered);
    grd_tensor *spread = centered ? grd_var(input, .dim = dims, .correction = none, .keepdim = true)
                                  : grd_mean(grd_square(input), .dim = dims, .keepdim = true);
    grd_tensor *r = grd_rsqrt(grd_add_scalar(spread, grd_float(eps)));
    grd_tensor *ju = grd_hidden_layer_norm_input_backward(u, input, mean, rstd, NULL, shape, eps, centered);
    grd_tensor *grad_ju = grd_mean(grd_mul(grad, ju), .dim = dims, .keepdim = true);
    grd_tensor *uh = grd_mean(grd_mul(u, h), .dim = dims, .keepdim = true), *gh = grd_mean(grd_mul(grad, h), .dim = dims, .keepdim = true);
    grd_tensor *turned = grd_add(grd_mul(grad, uh), grd_mul(u, gh));
    grd_tensor *both =
        grd_add(grd_mul(h, grad_ju), grd_hidden_layer_norm_input_backward(turned, input, mean, rstd, NULL, shape, eps, centered));
    return grd_neg(grd_mul(r, both));
}
