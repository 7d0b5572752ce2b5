/* Plans layer_norm, rms_norm and their derivatives. Each normalised slice is processed in one pass over memory. The formulas are in
 * schema/normalization.toml, and the loops are in kernel/cpu/lines_layer_norm.h. */
#include <string.h>

#include "gen/uses/op/layer_norm.h"
#include "base/integer.h"
#include "core/dtype.h"
#include "core/shape.h"
#include "core/tensor.h"
#include "op/formula.h"
#include "op/lines.h"

/* The gradients of weight and bias are first summed in partial sums, one per PART_ELEMENTS elements of the input but at most MOST_PARTS. Several
 * threads can compute partial sums at the same time. */
enum { MOST_PARTS = 64, PART_ELEMENTS = 1 << 14 };

/* ---- Checks ------------------------------------------------------------------------------------------------------------------ */

/* Raises RuntimeError if `shape` is empty or is not the end of the input's shape. */
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

/* Raises RuntimeError if the weight or bias `t` does not have the given shape or the input's dtype. float32 is also allowed if the input is float16
 * or bfloat16. `t` may be NULL. */
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
    return grd_lines_check(GRD_LINES_LAYER_NORM, "layer_norm", (grd_dtype)input->dtype);
}

/* ---- Operators --------------------------------------------------------------------------------------------------------------- */

static bool plan_lines_normalized(struct grd_plan *p, enum grd_lines_kernel_index kernel, grd_tensor *input, grd_dims shape,
                                  grd_tensor *weight, grd_tensor *bias, double eps)
{
    static const enum grd_lines_operand operands[] = {GRD_LINES_LINE, GRD_LINES_LINE, GRD_LINES_SHARED, GRD_LINES_SHARED};
    const grd_dtype dtype = grd_lines_dtype((grd_dtype)input->dtype);
    const int first = input->ndim - (int)shape.n;
    return check_shape(input, shape) && check_parameter(input, weight, shape, "weight") && check_parameter(input, bias, shape, "bias") &&
           check_dtype(input) && grd_plan_result(p, grd_sizes(input), (grd_dtype)input->dtype) && grd_lines_reads(p, input, first) &&
           grd_plan_reads_as(p, weight, dtype) && grd_plan_reads_as(p, bias, dtype) &&
           grd_lines_plan(p, kernel, dtype, first, operands, (const double[]){eps, 0});
}

bool plan_layer_norm(struct grd_plan *p, grd_tensor *input, grd_dims shape, grd_tensor *weight, grd_tensor *bias, double eps)
{
    return plan_lines_normalized(p, GRD_LINES_LAYER_NORM, input, shape, weight, bias, eps);
}

bool plan_hidden_rms_norm(struct grd_plan *p, grd_tensor *input, grd_dims shape, grd_tensor *weight, double eps)
{
    return plan_lines_normalized(p, GRD_LINES_HIDDEN_RMS_NORM, input, shape, weight, NULL, eps);
}

bool plan_hidden_layer_norm_backward(struct grd_plan *p, grd_tensor *grad, grd_tensor *input, grd_tensor *weight, grd_dims shape,
                                     double eps, bool centered, bool sums)
{
    static const enum grd_lines_operand operands[] = {GRD_LINES_LINE, GRD_LINES_SUM,  GRD_LINES_SUM,
                                                      GRD_LINES_LINE, GRD_LINES_LINE, GRD_LINES_SHARED};
    const grd_dtype dtype = grd_lines_dtype((grd_dtype)input->dtype);
    const int first = input->ndim - (int)shape.n;
    const grd_dims parts =
        grd_dims(sums ? grd_least(MOST_PARTS, grd_ceil_div(input->numel, PART_ELEMENTS)) : 0, grd_sizes_product(shape.data, shape.n));
    if (!check_shape(input, shape) || !check_parameter(input, weight, shape, "weight") || !check_dtype(input))
        return false;
    if (!grd_same_sizes(grad, grd_sizes(input)))
        return grd_raise(GRD_ERROR_RUNTIME, "the gradient must have the input's size");
    return grd_plan_result(p, grd_sizes(input), (grd_dtype)input->dtype) && grd_plan_result(p, parts, dtype) &&
           grd_plan_result(p, centered ? parts : grd_dims(0, parts.data[1]), dtype) && grd_lines_reads(p, grad, first) &&
           grd_lines_reads(p, input, first) && grd_plan_reads_as(p, weight, dtype) &&
           grd_lines_plan(p, GRD_LINES_HIDDEN_LAYER_NORM_BACKWARD, dtype, first, operands, (const double[]){eps, centered});
}
