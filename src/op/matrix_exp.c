/* Computes matrix_exp by scaling and squaring, with calls of other operators. Schema: schema/decomposition.toml. */
#include "gen/uses/op/matrix_exp.h"
#include "core/tensor.h"
#include "kernel/table.h"
#include "op/formula.h"

/* Uses exp(A) = exp(A / 2^s)^(2^s). s is at most MOST_HALVINGS, and is chosen so that the 1-norm of A / 2^s is at most largest_norm(). The Taylor
 * terms after DEGREE are then smaller than the rounding error of the dtype. The Taylor polynomial is evaluated in groups of GROUP terms. */
enum { GROUP = 4, DEGREE = 16, MOST_HALVINGS = 1100 };

/* Returns the largest 1-norm for which a Taylor polynomial of degree DEGREE is accurate. */
static double largest_norm(grd_dtype dtype)
{
    return dtype == GRD_FLOAT64 || dtype == GRD_COMPLEX128 ? 0.75 : 2.5;
}

/* Returns the number s of halvings of each matrix, with sizes (..., 1, 1). s is 0 if the norm of the matrix is not finite. */
static grd_tensor *halvings_of(grd_tensor *matrices)
{
    grd_tensor *norms = grd_amax(grd_sum(grd_abs(matrices), .dim = grd_dims(-2), .keepdim = true), .dim = grd_dims(-1), .keepdim = true);
    norms = grd_masked_fill(norms, grd_logical_not(grd_isfinite(norms)), grd_float(0));
    grd_tensor *halvings = grd_ceil(grd_log2(grd_div_scalar(norms, grd_float(largest_norm((grd_dtype)matrices->dtype)))));
    return grd_clamp(halvings, .min = grd_float(0), .max = grd_float(MOST_HALVINGS));
}

/* Returns the sum over i < GROUP of powers[i] / (first + i)!. `factorial` is first!. */
static grd_tensor *group_of_terms(grd_tensor *const *powers, int first, double factorial)
{
    grd_tensor *sum = grd_mul_scalar(powers[0], grd_float(1 / factorial));
    for (int i = 1; i < GROUP; i++) {
        factorial *= first + i;
        sum = grd_add(sum, powers[i], .alpha = grd_float(1 / factorial));
    }
    return sum;
}

/* Returns the Taylor polynomial of exp(a) of degree DEGREE. To save matrix products, the polynomial is evaluated by Horner's rule in a^GROUP, with
 * the sums of group_of_terms() as coefficients. */
static grd_tensor *polynomial(grd_tensor *a)
{
    const int64_t n = a->sizes[a->ndim - 1];
    grd_tensor *identity = grd_expand(grd_eye(n, .dtype = (grd_dtype)a->dtype, .device = grd_device_of(a)), grd_sizes(a));
    grd_tensor *powers[GROUP + 1] = {identity, a};
    for (int i = 2; i <= GROUP; i++)
        powers[i] = grd_matmul(powers[i - 1], a);
    double factorials[DEGREE + 1] = {1};
    for (int i = 1; i <= DEGREE; i++)
        factorials[i] = factorials[i - 1] * i;
    grd_tensor *sum = grd_mul_scalar(powers[0], grd_float(1 / factorials[DEGREE]));
    for (int first = DEGREE - GROUP; first >= 0; first -= GROUP)
        sum = grd_add(grd_matmul(sum, powers[GROUP]), group_of_terms(powers, first, factorials[first]));
    return sum;
}

int64_t grd_columns_of(grd_dims sizes)
{
    return sizes.data[sizes.n - 1];
}

grd_tensor *op_matrix_exp(grd_tensor *self)
{
    if (!grd_decomposition_check_square(self, "linalg.matrix_exp") || !grd_decomposition_check_inexact(self, "linalg.matrix_exp"))
        return grd_failed;
    if (grd_numel(self) == 0)
        return grd_clone(self, .memory_format = "contiguous");
    double least = 0, most = 0;
    const grd_dtype dtype = (grd_dtype)self->dtype;
    /* Half types are computed in float32, since each squaring doubles the relative rounding error. */
    self = grd_to(self, .dtype = grd_computed_dtype(dtype));
    if (grd_pending())
        return grd_failed;
    grd_tensor *halvings = halvings_of(self), *result = polynomial(grd_mul(self, grd_exp2(grd_neg(halvings))));
    grd_composite_extremes(halvings, &least, &most);
    for (int i = 0; i < most && !grd_pending(); i++) {
        grd_tensor *square = grd_matmul(result, result);
        result = i < least ? square : grd_where(grd_gt_scalar(halvings, grd_int(i)), square, result);
    }
    return grd_composite_contiguous(grd_to(result, .dtype = dtype));
}
