/* What formulas of schema/matrix_norm.toml ask of their arguments: checks in PyTorch's words, and tolerances. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "gen/uses/op/norm.h"
#include "gen/words.h"
#include "op/formula.h"
#include "op/lapack.h"
#include "op/matrix_batch.h"

/* ---- Norms ----------------------------------------------------------------------------------------------------------------------------- */

static bool is_inexact(grd_dtype dtype)
{
    return grd_dtype_is_floating(dtype) || grd_dtype_is_complex(dtype);
}

/* RuntimeError: elements of that dtype cannot be converted before a norm. */
static bool check_conversion(grd_dtype from, grd_dtype to, const char *function)
{
    if (!is_inexact(to))
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
    if (!is_inexact((grd_dtype)self->dtype))
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

/* ---- Ranks ------------------------------------------------------------------------------------------------------------------------------ */

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
    return is_inexact((grd_dtype)self->dtype) ||
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

/* ---- Least squares ----------------------------------------------------------------------------------------------------------------------- */

bool grd_lstsq_is_vector(const grd_tensor *self, const grd_tensor *b)
{
    return b->ndim == 1 || (self->ndim - 1 == b->ndim && grd_dims_equal(grd_sizes(b), grd_dims_from(self->sizes, self->ndim - 1)));
}

bool grd_lstsq_check(const grd_tensor *self, const grd_tensor *b, const char *driver)
{
    static const char *const function = "torch.linalg.lstsq";
    if (self->ndim < 2)
        return grd_raise(GRD_ERROR_RUNTIME, "%s: input must have at least 2 dimensions.", function);
    if (b->ndim < 1)
        return grd_raise(GRD_ERROR_RUNTIME, "%s: other must have at least 1 dimension.", function);
    if (self->dtype != b->dtype)
        return grd_raise(GRD_ERROR_RUNTIME,
                         "%s: Expected input and other to have the same dtype, but got input's dtype %s and other's dtype %s", function,
                         grd_dtype_type_name((grd_dtype)self->dtype), grd_dtype_type_name((grd_dtype)b->dtype));
    if (self->ndim < b->ndim || self->ndim - b->ndim > 1)
        return grd_raise(GRD_ERROR_RUNTIME, "%s: input.dim() must be greater or equal to other.dim() and (input.dim() - other.dim()) <= 1",
                         function);
    const bool vector = grd_lstsq_is_vector(self, b);
    if (grd_size_from_end(self, 2) != (vector || b->ndim == 1 ? grd_size_from_end(b, 1) : grd_size_from_end(b, 2)))
        return grd_raise(GRD_ERROR_RUNTIME, "%s: input.size(-2) should match other.size(%d)", function, vector ? -1 : -2);
    if (driver != NULL && strcmp(driver, "gels") != 0 && strcmp(driver, "gelsy") != 0 && strcmp(driver, "gelsd") != 0 &&
        strcmp(driver, "gelss") != 0)
        return grd_raise(GRD_ERROR_RUNTIME, "%s: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)", function);
    return is_inexact((grd_dtype)self->dtype) ||
           grd_raise(GRD_ERROR_RUNTIME, "This function doesn't handle types other than float and double");
}

double grd_lstsq_rcond(const grd_tensor *self, grd_scalar rcond)
{
    return rcond.kind == GRD_SCALAR_NONE ? grd_rank_epsilon(self) : grd_scalar_double(rcond);
}

grd_tensor *grd_lstsq_laid(grd_tensor *solution, grd_dims sizes)
{
    const int64_t m = sizes.data[sizes.n - 2], n = sizes.data[sizes.n - 1];
    if (m <= n)
        return grd_composite_columns(solution);
    /* A tensor of its own: nobody has the rows that follow. */
    const grd_tensors parts =
        grd_unsafe_split_with_sizes(grd_composite_columns(grd_pad(solution, grd_dims(0, 0, 0, m - n))), grd_dims(n, m - n), .dim = -2);
    return grd_pending() ? grd_failed : parts.data[0];
}

bool grd_lstsq_has_residuals(const grd_tensor *self, grd_tensor *rank, const char *driver)
{
    double least = 0, largest = 0;
    if (grd_size_from_end(self, 2) <= grd_size_from_end(self, 1) || driver == NULL || strcmp(driver, "gelsy") == 0)
        return false;
    return strcmp(driver, "gels") == 0 || !grd_composite_extremes(grd_physical(rank), &least, &largest) ||
           (int64_t)least == grd_size_from_end(self, 1);
}

/* True if all singular values of matrices with A = Q R are certainly above rcond times the largest one: the Frobenius norms of R and its inverse
 * are not below the largest singular value and the reciprocal of the least one. */
static bool is_of_full_rank(grd_tensor *r, double rcond)
{
    double least = 0, largest = 0;
    const int64_t k = grd_size_from_end(r, 1);
    grd_tensor *inverse = grd_linalg_solve_triangular(r, grd_eye(k, .dtype = (grd_dtype)r->dtype, .device = grd_tensor_device(r)), true);
    grd_tensor *const factors[] = {r, inverse};
    grd_tensor *squares[2];
    for (int i = 0; i < 2; i++)
        squares[i] = grd_sum(grd_square(grd_abs(factors[i])), .dim = grd_dims(-2, -1));
    return grd_composite_extremes(grd_physical(grd_mul(squares[0], squares[1])), &least, &largest) && rcond >= 0 &&
           largest * rcond * rcond < 1;
}

/* The norms of columns. */
static grd_tensor *norms_of(grd_tensor *x)
{
    return grd_sqrt(grd_sum(grd_square(grd_abs(x)), .dim = grd_dims(-2), .keepdim = true));
}

/* True if R, of a large matrix, has full rank, by power iterations with R^H R and its inverse. After 8 rounds from a vector of n elements that are alike neither singular value is off by
 * more than a factor of n^(1/32), so a margin of 1.5 makes up for both. */
static bool is_of_full_rank_in_iterations(grd_tensor *r, double rcond)
{
    enum { ROUNDS = 8 };
    const double margin = 1.5;
    double least = 0, largest = 0;
    int64_t sizes[GRD_MAX_DIMS];
    grd_tensor *h = grd_conj_physical(grd_transpose(r, -2, -1));
    memcpy(sizes, r->sizes, (size_t)r->ndim * sizeof *sizes);
    sizes[r->ndim - 1] = 1;
    grd_tensor *start =
        grd_cos(grd_arange(grd_int(sizes[r->ndim - 2]), .dtype = grd_dtype_to_real((grd_dtype)r->dtype), .device = grd_tensor_device(r)));
    start = grd_expand(grd_to(grd_unsqueeze(start, -1), .dtype = (grd_dtype)r->dtype), grd_dims_from(sizes, r->ndim));
    grd_tensor *x = grd_div(start, norms_of(start)), *y = x, *growth = NULL, *decay = NULL;
    for (int i = 0; i < ROUNDS && !grd_pending(); i++) {
        x = grd_matmul(h, grd_matmul(r, x));
        y = grd_linalg_solve_triangular(r, grd_linalg_solve_triangular(h, y, false), true);
        growth = norms_of(x);
        decay = norms_of(y);
        x = grd_div(x, growth);
        y = grd_div(y, decay);
    }
    return !grd_pending() && grd_composite_extremes(grd_physical(grd_mul(growth, decay)), &least, &largest) && rcond >= 0 &&
           largest * margin * margin * rcond * rcond < 1;
}

/* Least squares by the reflections of a large decomposition, whose Q is not made. */
static bool reflect_large(grd_tensor *self, double rcond, bool unranked, grd_tensor **ret_a, grd_tensor **ret_tau)
{
    const grd_geqrf_result made = grd_geqrf(grd_detach(self));
    *ret_a = made.a;
    *ret_tau = made.tau;
    const int64_t k = grd_pending() ? 0 : grd_size_from_end(self, 1);
    return unranked || is_of_full_rank_in_iterations(grd_triu(grd_narrow(made.a, -2, 0, k)), rcond);
}

/* Least squares of large matrices of lower rank by QR decompositions with pivoting, which take a quarter of the time of singular values; false where those are needed, since
 * LAPACK estimates which of them count as 0. */
static bool solve_by_pivots(grd_tensor *self, grd_tensor *b, double rcond, grd_hidden_lstsq_pivoted_result *ret_made)
{
    double least = -1, largest = -1;
    if (!grd_dims_equal(grd_batch_of(self), grd_batch_of(b)) || grd_numel(b) == 0 ||
        grd_least(grd_size_from_end(self, 1), grd_size_from_end(self, 2)) <= GRD_LAPACK_SIDE)
        return false;
    *ret_made = grd_hidden_lstsq_pivoted(grd_detach(self), grd_detach(b), rcond);
    if (grd_pending() || !grd_composite_extremes(grd_physical(ret_made->info), &least, &largest) || least != 0 || largest != 0 ||
        !grd_composite_extremes(grd_physical(ret_made->rank), &least, &largest) || least != largest)
        return false;
    const int64_t rank = (int64_t)least;
    return rank == 0 || is_of_full_rank_in_iterations(grd_triu(grd_narrow(grd_narrow(ret_made->factors, -2, 0, rank), -1, 0, rank)), rcond);
}

void op_hidden_lstsq_made(grd_tensor *self, grd_tensor *b, double rcond, const char *driver, grd_tensor **ret)
{
    const bool wide = grd_qr_is_wide(grd_sizes(self)), unranked = strcmp(driver, "gels") == 0;
    const bool by_factors = unranked || (strcmp(driver, "gelsy") == 0 && grd_numel(self) > 0);
    const bool large = by_factors && !wide && grd_size_from_end(self, 1) > GRD_LAPACK_SIDE;
    grd_linalg_qr_result parts = {0};
    grd_hidden_lstsq_pivoted_result pivoted;
    bool full = false;
    if (large)
        full = reflect_large(self, rcond, unranked, &parts.Q, &parts.R);
    else if (by_factors) {
        parts = grd_linalg_qr(grd_detach(wide ? grd_conj_physical(grd_transpose(self, -2, -1)) : self));
        full = unranked || is_of_full_rank(parts.R, rcond);
    }
    if (unranked) {
        const grd_hidden_lstsq_unranked_result made = grd_hidden_lstsq_unranked(self, b, parts.Q, parts.R);
        ret[0] = made.solution, ret[1] = made.residuals, ret[2] = made.rank, ret[3] = made.singular_values;
    } else if (full) {
        const grd_hidden_lstsq_of_full_rank_result made = grd_hidden_lstsq_of_full_rank(self, b, parts.Q, parts.R);
        ret[0] = made.solution, ret[1] = made.residuals, ret[2] = made.rank, ret[3] = made.singular_values;
    } else if (by_factors && solve_by_pivots(self, b, rcond, &pivoted)) {
        ret[0] = grd_hidden_lstsq_known(self, b, pivoted.solution, rcond);
        ret[1] = grd_slice(grd_reshape(grd_abs(ret[0]), grd_dims(-1)), .dim = 0, .start = grd_int(0), .end = grd_int(0));
        ret[2] = pivoted.rank;
        ret[3] = grd_zeros(grd_dims(0), .dtype = grd_dtype_to_real((grd_dtype)self->dtype), .device = grd_device_of(self));
    } else {
        const grd_hidden_lstsq_ranked_result made = grd_hidden_lstsq_ranked(self, b, rcond, driver);
        ret[0] = made.solution, ret[1] = made.residuals, ret[2] = made.rank, ret[3] = made.singular_values;
    }
}
