/* Least squares of matrices that do not have full rank, by LAPACK's gelsy. Checks, and the choice among the ways to least squares, are in norm.c. Schema:
 * schema/matrix_norm.toml.
 *
 * Invariant: each matrix is computed by itself, so the bits do not depend on the number of threads. */
#include <string.h>

#include "base/parallel.h"
#include "gen/uses/op/least_squares.h"
#include "kernel/table.h"
#include "op/formula.h"
#include "op/lapack.h"
#include "op/matrix_batch.h"
#include "op/lapack_eigh_svd.h"

/* What a plan hands to its run. */
struct job {
    int64_t side; /* where a plan has the side by which it chooses a provider */
    struct grd_least_squares first;
    struct grd_lapack_work work; /* of each matrix */
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
