/* Checks the arguments of norms, ranks and pseudo-inverses, and computes their default tolerances. The formulas of these operators are in
 * schema/matrix_norm.toml and schema/reduction.toml. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "gen/uses/op/norm.h"
#include "gen/words.h"
#include "core/dtype.h"
#include "core/shape.h"
#include "core/tensor.h"
#include "op/formula.h"
#include "op/lapack.h"
#include "op/matrix_batch.h"

/* ---- Norms ----------------------------------------------------------------------------------------------------------------------------- */

/* Raises RuntimeError if `to`, the dtype argument of a norm, is neither floating-point nor complex, or if `from` cannot be converted to `to` without
 * loss. */
static bool check_conversion(grd_dtype from, grd_dtype to, const char *function)
{
    if (!grd_dtype_is_inexact(to))
        return grd_raise(GRD_ERROR_RUNTIME, "%s: dtype should be floating point or complex, but got %s", function, grd_dtype_type_name(to));
    if (grd_dtype_is_complex(from) != grd_dtype_is_complex(to))
        return grd_raise(GRD_ERROR_RUNTIME, "%s: dtype should be %s for %s inputs, but got %s", function,
                         grd_dtype_is_complex(from) ? "complex" : "real", grd_dtype_is_complex(from) ? "complex" : "real",
                         grd_dtype_type_name(to));
    return grd_promote(from, to) == to ||
           grd_raise(GRD_ERROR_RUNTIME,
                     "%s: the dtype of the input (%s) should be convertible without narrowing to the specified dtype (%s)", function,
                     grd_dtype_type_name(from), grd_dtype_type_name(to));
}

bool grd_vector_norm_check(const grd_tensor *self, grd_scalar ord, grd_dtype as)
{
    static const char *const function = "linalg.vector_norm";
    if (ord.kind == GRD_SCALAR_COMPLEX)
        return grd_raise(GRD_ERROR_RUNTIME, "%s: Expected a non-complex scalar as the order of norm.", function);
    return grd_decomposition_check_inexact(self, function) && check_conversion((grd_dtype)self->dtype, as, function);
}

bool grd_matrix_norm_check(const grd_tensor *self, grd_dims dim, grd_dtype as)
{
    static const char *const function = "linalg.matrix_norm";
    int64_t dims[2];
    if (!grd_check_matrices(self, "A", function))
        return false;
    if (dim.n != 2) {
        char text[64] = "";
        size_t length = 0;
        for (int64_t i = 0; i < dim.n && length < sizeof text - 8; i++)
            length += (size_t)snprintf(text + length, sizeof text - length, "%s%lld", i > 0 ? " " : "", (long long)dim.data[i]);
        return grd_raise(GRD_ERROR_RUNTIME, "%s: dim must be a 2-tuple. Got %s", function, text);
    }
    if (!grd_wrap_dim(self, dim.data[0], &dims[0]) || !grd_wrap_dim(self, dim.data[1], &dims[1]))
        return false;
    if (dims[0] == dims[1])
        return grd_raise(GRD_ERROR_RUNTIME, "%s: dims must be different. Got (%lld, %lld)", function, (long long)dims[0],
                         (long long)dims[1]);
    return grd_decomposition_check_inexact(self, function) && check_conversion((grd_dtype)self->dtype, as, function);
}

bool grd_linalg_norm_check(const grd_tensor *self, bool has_ord, grd_dims dim)
{
    if (dim.data != NULL)
        return dim.n == 1 || dim.n == 2 ||
               grd_raise(GRD_ERROR_RUNTIME, "linalg.norm: If dim is specified, it must be of length 1 or 2. Got %s", grd_list_text(dim));
    return !has_ord || self->ndim == 1 || self->ndim == 2 ||
           grd_raise(GRD_ERROR_RUNTIME, "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got %dD.",
                     (int)self->ndim);
}

bool grd_frobenius_check(const grd_tensor *self, grd_dims dim)
{
    if (!grd_dtype_is_inexact((grd_dtype)self->dtype))
        return grd_raise(GRD_ERROR_RUNTIME, "norm(): input dtype should be either floating point or complex. Got %s instead.",
                         grd_dtype_type_name((grd_dtype)self->dtype));
    return dim.n <= 2 || grd_raise(GRD_ERROR_RUNTIME, "Expected at most 2 dimensions, but got %lld dimensions instead.", (long long)dim.n);
}

bool grd_cond_check(const grd_tensor *self, grd_scalar p)
{
    char function[64];
    const double size = p.kind == GRD_SCALAR_NONE ? 2 : fabs(grd_scalar_double(p));
    if (self->ndim < 2)
        return grd_raise(GRD_ERROR_RUNTIME, "linalg.cond: The input tensor must have at least 2 dimensions.");
    if (size != 1 && size != 2 && !isinf(size))
        return grd_raise(GRD_ERROR_RUNTIME, "linalg.cond got an invalid norm type: %g", grd_scalar_double(p));
    snprintf(function, sizeof function, p.kind == GRD_SCALAR_INT ? "linalg.cond(ord=%.0f)" : "linalg.cond(ord=%f)", grd_scalar_double(p));
    return size == 2 || self->numel == 0 || grd_decomposition_check_square(self, function);
}

bool grd_cond_check_name(const grd_tensor *self, const char *p)
{
    char function[64];
    snprintf(function, sizeof function, "linalg.cond(ord=%.32s)", p);
    return grd_decomposition_check_square(self, function) &&
           (strcmp(p, "fro") == 0 || strcmp(p, "nuc") == 0 ||
            grd_raise(GRD_ERROR_RUNTIME, "linalg.cond got an invalid norm type: %s: " GRD_WORDS_LINALG_COND_NAME_P, p));
}

bool grd_norm_is_of_matrices(const grd_tensor *self, grd_dims dim)
{
    return dim.data != NULL ? dim.n == 2 : self->ndim == 2;
}

grd_dims grd_norm_dims(grd_dims dim)
{
    static const int64_t both[] = {0, 1};
    return dim.data != NULL ? dim : grd_dims_from(both, 2);
}

grd_dims grd_nuclear_dims(const grd_tensor *self, grd_dims dim)
{
    int64_t *all = dim.data != NULL ? NULL : grd_pool_array(self->ndim, sizeof *all);
    for (int64_t i = 0; all != NULL && i < self->ndim; i++)
        all[i] = i;
    return dim.data != NULL ? dim : grd_dims_from(all, all != NULL ? self->ndim : 0);
}

/* ---- Norms of empty tensors --------------------------------------------------------------------------------------------------------- */
/* Raises RuntimeError if a dimension that is reduced is empty and p is negative or infinite. For such a p the norm of no elements is undefined. Bit d
 * of `mask` is set if dimension d is reduced. */
static bool check_norm_not_empty(const grd_tensor *self, bool dim_given, uint64_t mask, double p)
{
    if (self->numel != 0 || (p >= 0 && !isinf(p)))
        return true;
    char name[32];
    snprintf(name, sizeof name, isinf(p) ? "%sinf" : "%s%g", isinf(p) && p < 0 ? "-" : "", p);
    if (!dim_given)
        return grd_raise(GRD_ERROR_RUNTIME,
                         "linalg.vector_norm cannot compute the %s norm on an empty tensor because the operation does not have an identity",
                         name);
    for (int d = 0; d < self->ndim; d++)
        if (mask >> d & 1 && self->sizes[d] == 0)
            return grd_raise(
                GRD_ERROR_RUNTIME,
                "linalg.vector_norm cannot compute the %s norm on the dimension %d because this dimension is empty and the operation does "
                "not have an identity",
                name, d);
    return true;
}

bool grd_norm_check(const grd_tensor *self, double p, grd_dims dim, grd_dtype as)
{
    uint64_t mask;
    const grd_dtype from = (grd_dtype)self->dtype;
    if (from > GRD_COMPLEX128 || as > GRD_COMPLEX128)
        return grd_raise_no_kernel("norm", from > GRD_COMPLEX128 ? from : as);
    return grd_shape_dim_mask(dim, self->ndim, &mask) && check_norm_not_empty(self, dim.n > 0, mask, p);
}

grd_tensor *grd_quotient_or_zero(grd_tensor *a, grd_tensor *b)
{
    return grd_masked_fill(grd_div(a, b), grd_eq_scalar(b, grd_int(0)), grd_int(0));
}

/* ---- Ranks ------------------------------------------------------------------------------------------------------------------------------ */

/* Raises RuntimeError if the tolerance is a complex tensor. `name` is the argument's name. */
static bool check_tolerance(const grd_tensor *tolerance, const char *function, const char *name)
{
    return tolerance == NULL || !grd_dtype_is_complex((grd_dtype)tolerance->dtype) ||
           grd_raise(GRD_ERROR_RUNTIME, "%s: %s tensor of complex type is not supported. Got %s", function, name,
                     grd_dtype_type_name((grd_dtype)tolerance->dtype));
}

bool grd_rank_check(const grd_tensor *self, const grd_tensor *atol, const grd_tensor *rtol, const char *function)
{
    if (!grd_check_matrices(self, "input", function) || !check_tolerance(atol, function, "atol") ||
        !check_tolerance(rtol, function, "rtol"))
        return false;
    return grd_dtype_is_inexact((grd_dtype)self->dtype) ||
           grd_raise(GRD_ERROR_RUNTIME, "This function doesn't handle types other than float and double");
}

bool grd_pinv_check(const grd_tensor *self, const grd_tensor *atol, const grd_tensor *rtol)
{
    const grd_dtype dtype = (grd_dtype)self->dtype;
    const bool serves = dtype == GRD_FLOAT32 || dtype == GRD_FLOAT64 || dtype == GRD_COMPLEX64 || dtype == GRD_COMPLEX128;
    if (self->ndim < 2 || !serves)
        return grd_raise(GRD_ERROR_RUNTIME,
                         "linalg.pinv(%s{%s}): expected a tensor with 2 or more dimensions of float, double, cfloat or cdouble types",
                         grd_dtype_type_name(dtype), grd_list_text(grd_sizes(self)));
    return check_tolerance(atol, "torch.linalg.pinv", "atol") && check_tolerance(rtol, "torch.linalg.pinv", "rtol");
}

double grd_rank_epsilon(const grd_tensor *self)
{
    return grd_dtype_epsilon((grd_dtype)self->dtype) * (double)grd_greatest(grd_size_from_end(self, 1), grd_size_from_end(self, 2));
}

grd_tensor *grd_tolerance_tensor(grd_tensor *self, grd_scalar tolerance)
{
    if (tolerance.kind == GRD_SCALAR_NONE)
        return NULL;
    return grd_full(GRD_NO_DIMS, tolerance, .dtype = grd_dtype_to_real((grd_dtype)self->dtype), .device = grd_tensor_device(self));
}
