/* Implements linalg.lstsq. This file checks the arguments, chooses the algorithm, and solves systems whose matrix does not have full rank by LAPACK's
 * gelsy. Schema: schema/matrix_norm.toml.
 *
 * Invariant: each matrix is computed by one task, so the bits do not depend on the number of threads. */
#include <string.h>

#include "base/parallel.h"
#include "gen/uses/op/least_squares.h"
#include "core/dtype.h"
#include "core/shape.h"
#include "core/tensor.h"
#include "kernel/table.h"
#include "op/formula.h"
#include "op/lapack.h"
#include "op/matrix_batch.h"
#include "op/lapack_eigh_svd.h"
#include "op/lapack_reflections.h"
#include "op/dtypes.h"

/* State that plan_hidden_lstsq_pivoted() passes to run_hidden_lstsq_pivoted(). */
struct job {
    int64_t side; /* min(m, n); must be the first member, because grd_plan_lapack() reads it */
    /* Sizes and rcond, the same for every matrix of the batch. Each task copies this struct and sets the addresses of its matrix in the copy. */
    struct grd_least_squares first;
    struct grd_lapack_work work; /* memory needed for one matrix */
};

static struct job *job_of(const struct grd_plan *p)
{
    return (struct job *)(uintptr_t)p->state;
}

static bool check(const grd_tensor *A, const grd_tensor *B)
{
    const char *const function = "linalg.lstsq";
    if (!grd_check_matrices(A, "input", function) || !grd_check_matrices(B, "other", function))
        return false;
    if (grd_kernels->jacobi[A->dtype] == NULL)
        return grd_raise_no_kernel(function, (grd_dtype)A->dtype);
    const grd_dims batch = grd_batch_of(A);
    const bool fits = B->dtype == A->dtype && B->ndim == A->ndim && grd_dims_equal(batch, grd_batch_of(B)) &&
                      grd_size_from_end(A, 2) == grd_size_from_end(B, 2);
    return fits || grd_raise(GRD_ERROR_RUNTIME, "%s: matrices of %s and right sides of %s do not fit together", function,
                             grd_list_text(grd_sizes(A)), grd_list_text(grd_sizes(B)));
}

bool plan_hidden_lstsq_pivoted(struct grd_plan *p, grd_tensor *A, grd_tensor *B, double rcond)
{
    if (!check(A, B))
        return false;
    const grd_dtype dtype = (grd_dtype)A->dtype;
    const int64_t m = grd_size_from_end(A, 2), n = grd_size_from_end(A, 1), k = grd_size_from_end(B, 1);
    const double room = ((double)grd_greatest(m, n) + 256) * ((double)n + (double)k + 256) * 16;
    struct job *job = job_of(p);
    *job = (struct job){.first = {.m = m, .n = n, .k = k, .rcond = rcond}};
    if (room < 0x1p62)
        job->work = grd_lapack_least_squares_work(dtype, m, n, k);
    grd_plan_scratch(p, (double)grd_matrix_count(A) * (room < 0x1p62 ? (double)job->work.bytes : room));
    return grd_plan_reads_as(p, grd_transpose(A, -2, -1), dtype) && grd_plan_reads_as(p, grd_transpose(B, -2, -1), dtype) &&
           grd_plan_columns(p, grd_batch_of(A), n, k, dtype) && grd_plan_result(p, grd_batch_of(A), GRD_INT64) &&
           grd_plan_result(p, grd_batch_of(A), GRD_INT32) && grd_plan_columns(p, grd_batch_of(A), m, n, dtype) &&
           grd_plan_lapack(p, grd_least(m, n)) && !grd_pending();
}

static void solve_matrices(int64_t begin, int64_t end, void *context)
{
    const struct grd_plan *p = context;
    const struct job *job = job_of(p);
    const grd_dtype dtype = (grd_dtype)p->results[0]->dtype;
    for (int64_t i = begin; i < end; i++) {
        struct grd_least_squares s = job->first;
        s.a = grd_matrix_at(p->in[0], i);
        s.b = grd_matrix_at(p->in[1], i);
        s.ret_x = grd_matrix_at(p->results[0], i);
        s.ret_factors = grd_matrix_at(p->results[3], i);
        s.ret_rank = (int64_t *)p->results[1]->data + i;
        const bool made = grd_lapack_is_chosen(p) && grd_kernels->jacobi[dtype]->is_finite(s.m, s.n, false, s.a) &&
                          grd_lapack_least_squares(dtype, &s, &job->work, p->scratch + (size_t)i * job->work.bytes);
        int32_t *info = (int32_t *)p->results[2]->data + i;
        *info = made ? 0 : -1;
        if (!made) {
            memset(s.ret_x, 0, (size_t)(s.n * s.k * p->results[0]->itemsize));
            *s.ret_rank = 0;
        }
    }
}

void run_hidden_lstsq_pivoted(const struct grd_plan *p, grd_tensor *A, grd_tensor *B, double rcond)
{
    const double m = (double)grd_size_from_end(A, 2), n = (double)grd_size_from_end(A, 1);
    (void)B, (void)rcond;
    grd_parallel_for(0, grd_matrix_count(A), grd_matrix_grain(4 * m * n * n), solve_matrices, (void *)(uintptr_t)p);
}

/* ---- Choice of the algorithm --------------------------------------------------------------------------------------------------------- */

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
    return grd_dtype_is_inexact((grd_dtype)self->dtype) ||
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
    /* grd_split() would make the solution a view, and autograd forbids some in-place operations on views that a split returns. No other tensor refers
     * to the rows that are cut off, so the solution need not be a view. */
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

/* True if all singular values of A = Q R are certainly above rcond times the largest one, for all matrices of a batch. The product of the Frobenius
 * norms of R and R^-1 is an upper bound of the condition number, so it is compared with 1 / rcond. */
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

/* Returns the Euclidean norm of each column of the matrices x, as matrices with one row. */
static grd_tensor *norms_of(grd_tensor *x)
{
    return grd_sqrt(grd_sum(grd_square(grd_abs(x)), .dim = grd_dims(-2), .keepdim = true));
}

/* True if the triangular factor R of a large matrix has full rank, i.e. all singular values are above rcond times the largest. The largest and the
 * least singular value are estimated by power iterations with R^H R and with (R^H R)^-1. After 8 rounds, each estimate is off by a factor of at most
 * about n^(1/32), unless the start vector is nearly orthogonal to the singular vectors. The margin of 1.5 per estimate is larger than this factor for
 * any n that fits in memory. */
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

/* Decomposes a tall matrix as Q R without computing Q. Stores R and the reflections whose product is Q in *ret_a and *ret_tau. Returns true if R has
 * full rank or `unranked` says that the rank is not needed. */
static bool reflect_large(grd_tensor *self, double rcond, bool unranked, grd_tensor **ret_a, grd_tensor **ret_tau)
{
    const grd_geqrf_result made = grd_geqrf(grd_detach(self));
    *ret_a = made.a;
    *ret_tau = made.tau;
    const int64_t k = grd_pending() ? 0 : grd_size_from_end(self, 1);
    return unranked || is_of_full_rank_in_iterations(grd_triu(grd_narrow(made.a, -2, 0, k)), rcond);
}

/* Solves least squares for large matrices without full rank by QR with column pivoting, which takes a quarter of the time of a singular value
 * decomposition. Returns false if singular values are needed because the rank is not certain. */
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

/* Solves least squares by one of three methods. QR without pivoting is used if all matrices certainly have full rank, or if the driver ignores the
 * rank ("gels"). QR with pivoting is used if the driver is "gelsy" and the rank is certain. Singular values are used in all other cases. */
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
