/* layer_norm and rms_norm: lines normalised in one pass over memory, and their derivatives; formulas are in schema/normalization.toml, loops in
 * kernel/cpu/lines_layer_norm.h. */
#include <string.h>

#include "base/parallel.h"
#include "gen/uses/op/layer_norm.h"
#include "kernel/table.h"
#include "op/formula.h"
#include "op/lines.h"

enum { MOST_PARTS = 64, LEAST_ROWS = 64 };

/* ---- Checks ------------------------------------------------------------------------------------------------------------------ */

static bool check_shape(const grd_tensor *input, grd_dims shape)
{
    if (shape.n == 0)
        return grd_raise(GRD_ERROR_RUNTIME,
                         "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, "
                         "but got normalized_shape = []");
    if (shape.n <= input->ndim && memcmp(input->sizes + input->ndim - shape.n, shape.data, (size_t)shape.n * sizeof *shape.data) == 0)
        return true;
    const char *const want = grd_list_text(shape);
    return grd_raise(GRD_ERROR_RUNTIME, "Given normalized_shape=%s, expected input with shape [*, %s, but got input of size %s", want,
                     want + 1, grd_list_text(grd_sizes(input)));
}

/* A weight or bias may be float32 where the input is of a half type. */
static bool check_parameter(const grd_tensor *input, const grd_tensor *t, grd_dims shape, const char *name)
{
    if (t == NULL)
        return true;
    if (!grd_same_sizes(t, shape))
        return grd_raise(GRD_ERROR_RUNTIME,
                         "Expected %s to be of same shape as normalized_shape, but got %s of shape %s and normalized_shape = %s", name,
                         name, grd_list_text(grd_sizes(t)), grd_list_text(shape));
    const bool half = input->dtype == GRD_FLOAT16 || input->dtype == GRD_BFLOAT16;
    return t->dtype == input->dtype || (half && t->dtype == GRD_FLOAT32) ||
           grd_raise(GRD_ERROR_RUNTIME, "expected scalar type %s but found %s", grd_dtype_type_name((grd_dtype)input->dtype),
                     grd_dtype_type_name((grd_dtype)t->dtype));
}

bool grd_layer_norm_check(const grd_tensor *input, grd_dims shape, const grd_tensor *weight)
{
    return check_shape(input, shape) && check_parameter(input, weight, shape, "weight");
}

static bool check_dtype(const grd_tensor *input)
{
    return grd_lines_check(GRD_LINES_HIDDEN_LAYER_NORM, "layer_norm", (grd_dtype)input->dtype);
}

static int64_t rows_of(const grd_tensor *input, grd_dims shape)
{
    return grd_sizes_product(input->sizes, input->ndim - shape.n);
}

/* The derivatives read these. */
static bool check_backward(const grd_tensor *grad_output, const grd_tensor *input, const grd_tensor *mean, const grd_tensor *rstd,
                           grd_dims shape)
{
    if (!check_shape(input, shape) || !check_dtype(input))
        return false;
    const int64_t rows = rows_of(input, shape);
    return (grd_same_sizes(grad_output, grd_sizes(input)) && mean->numel == rows && rstd->numel == rows) ||
           grd_raise(GRD_ERROR_RUNTIME, "gradient, mean and rstd must be those of the input's rows");
}

/* ---- Operators --------------------------------------------------------------------------------------------------------------- */

bool plan_hidden_layer_norm(struct grd_plan *p, grd_tensor *input, grd_dims shape, grd_tensor *weight, grd_tensor *bias, double eps,
                            bool centered)
{
    static const enum grd_lines_operand operands[] = {GRD_LINES_LINE, GRD_LINES_VALUE,  GRD_LINES_VALUE,
                                                      GRD_LINES_LINE, GRD_LINES_SHARED, GRD_LINES_SHARED};
    const grd_dtype dtype = grd_lines_dtype((grd_dtype)input->dtype);
    const int first = input->ndim - (int)shape.n;
    int64_t sizes[GRD_MAX_DIMS];
    if (!check_shape(input, shape) || !check_parameter(input, weight, shape, "weight") || !check_parameter(input, bias, shape, "bias") ||
        !check_dtype(input))
        return false;
    for (int d = 0; d < input->ndim; d++)
        sizes[d] = d < first ? input->sizes[d] : 1;
    const grd_dims ones = grd_dims_from(sizes, input->ndim);
    return grd_plan_result(p, grd_sizes(input), (grd_dtype)input->dtype) && grd_plan_result(p, ones, dtype) &&
           grd_plan_result(p, ones, dtype) && grd_lines_reads(p, input, first) && grd_plan_reads_as(p, weight, dtype) &&
           grd_plan_reads_as(p, bias, dtype) &&
           grd_lines_plan(p, GRD_LINES_HIDDEN_LAYER_NORM, dtype, first, operands, (const double[]){eps, centered});
}

bool plan_hidden_layer_norm_input_backward(struct grd_plan *p, grd_tensor *grad_output, grd_tensor *input, grd_tensor *mean,
                                           grd_tensor *rstd, grd_tensor *weight, grd_dims shape, double eps, bool centered)
{
    static const enum grd_lines_operand operands[] = {GRD_LINES_LINE,  GRD_LINES_LINE,  GRD_LINES_LINE,
                                                      GRD_LINES_VALUE, GRD_LINES_VALUE, GRD_LINES_SHARED};
    const grd_dtype dtype = grd_lines_dtype((grd_dtype)input->dtype);
    const int first = input->ndim - (int)shape.n;
    return check_backward(grad_output, input, mean, rstd, shape) && check_parameter(input, weight, shape, "weight") &&
           grd_plan_result(p, grd_sizes(input), (grd_dtype)input->dtype) && grd_lines_reads(p, grad_output, first) &&
           grd_lines_reads(p, input, first) && grd_plan_reads_as(p, mean, dtype) && grd_plan_reads_as(p, rstd, dtype) &&
           grd_plan_reads_as(p, weight, dtype) &&
           grd_lines_plan(p, GRD_LINES_HIDDEN_LAYER_NORM_INPUT_BACKWARD, dtype, first, operands, (const double[]){eps, centered});
}

/* How many rows are summed together: they are divided at fixed places, so that the bits do not depend on the number of threads. */
static int64_t part_rows(int64_t rows)
{
    return grd_greatest(LEAST_ROWS, (rows - 1) / MOST_PARTS + 1);
}

bool plan_hidden_layer_norm_weight_sums(struct grd_plan *p, grd_tensor *grad_output, grd_tensor *input, grd_tensor *mean, grd_tensor *rstd,
                                        grd_dims shape)
{
    const grd_dtype dtype = grd_lines_dtype((grd_dtype)input->dtype);
    if (!check_backward(grad_output, input, mean, rstd, shape))
        return false;
    const int64_t rows = rows_of(input, shape), parts = rows == 0 ? 0 : (rows - 1) / part_rows(rows) + 1;
    return grd_plan_result(p, grd_dims(parts, grd_sizes_product(shape.data, shape.n)), dtype) && grd_plan_reads_as(p, grad_output, dtype) &&
           grd_plan_reads_as(p, input, dtype) && grd_plan_reads_as(p, mean, dtype) && grd_plan_reads_as(p, rstd, dtype);
}

static void sum_parts(int64_t begin, int64_t end, void *context)
{
    const struct grd_plan *p = context;
    const grd_tensor *sums = p->results[0];
    const int64_t rows = p->in[2]->numel, length = part_rows(rows), n = sums->sizes[1], size = sums->itemsize;
    for (int64_t part = begin; part < end; part++) {
        const int64_t first = part * length, left = rows - first, row = first * n * size;
        grd_kernels->lines[sums->dtype][GRD_LINES_HIDDEN_LAYER_NORM_WEIGHT_SUMS](
            &(struct grd_lines_block){.lines = left < length ? left : length,
                                      .n = n,
                                      .data = {sums->data + part * n * size, p->in[0]->data + row, p->in[1]->data + row,
                                               p->in[2]->data + first * size, p->in[3]->data + first * size},
                                      .step = {0, n, n, 1, 1}});
    }
}

void run_layer_norm_weight_sums(const struct grd_plan *p)
{
    grd_parallel_for(0, p->results[0]->sizes[0], 1, sum_parts, (void *)(uintptr_t)p);
}
