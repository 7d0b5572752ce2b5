/* Decomposes symmetric and Hermitian matrices, which need not be positive-definite, as L D L^T or L D L^H, and solves equations with the factors.
 * Small matrices use the algorithms of kernel/cpu/ldl.c, large ones LAPACK. Schema: schema/ldl.toml.
 *
 * Invariant: one task decomposes a whole matrix, or solves for a whole block of right-hand sides. So the bits of the results do not depend on the
 * number of threads. */
#include "kernel/ldl.h"

#include <string.h>

#include "base/integer.h"
#include "base/parallel.h"
#include "gen/uses/op/ldl.h"
#include "core/dtype.h"
#include "core/shape.h"
#include "core/tensor.h"
#include "kernel/table.h"
#include "op/formula.h"
#include "op/lapack.h"
#include "op/matrix_batch.h"
#include "op/lapack_reflections.h"

static const struct grd_ldl_row *kernels_of(const grd_tensor *x)
{
    return grd_kernels->ldl[x->dtype];
}

static bool check_kernel(const grd_tensor *x, const char *kernel)
{
    return kernels_of(x) != NULL || grd_raise_no_kernel(kernel, (grd_dtype)x->dtype);
}

/* ---- Decompositions ------------------------------------------------------------------------------------------------------------------------ */

/* Returns the bytes of scratch memory for one matrix. This memory holds LAPACK's 64-bit pivots and LAPACK's workspace. */
static int64_t work_bytes(const grd_tensor *a)
{
    const int64_t n = grd_size_from_end(a, 1);
    return n * (int64_t)sizeof(int64_t) + grd_lapack_block_work(n) * a->itemsize;
}

bool plan_hidden_ldl_factor(struct grd_plan *p, grd_tensor *A, bool hermitian)
{
    (void)hermitian;
    if (!grd_decomposition_check_square(A, "torch.linalg.ldl_factor_ex") ||
        !grd_decomposition_check_inexact(A, "torch.linalg.ldl_factor_ex") || !check_kernel(A, "ldl_factor_kernel"))
        return false;
    const int64_t n = grd_size_from_end(A, 1);
    grd_plan_scratch(p, n > GRD_LAPACK_SIDE ? (double)grd_matrix_count(A) * (double)work_bytes(A) : 0);
    return grd_plan_starts_from(p, A) && grd_plan_columns(p, grd_batch_of(A), n, n, (grd_dtype)A->dtype) &&
           grd_plan_result(p, grd_dims_from(A->sizes, A->ndim - 1), GRD_INT32) && grd_plan_result(p, grd_batch_of(A), GRD_INT32) &&
           grd_plan_lapack(p, n) && !grd_pending();
}

/* Arguments of one call that all its parallel tasks share. */
struct job {
    const struct grd_plan *p;
    int64_t n, k; /* number of rows of a matrix, and number of right-hand sides */
    bool hermitian;
    int64_t pieces; /* number of blocks of at most PIECE right-hand sides per matrix; each block is one task */
};

/* Decomposes matrix i with LAPACK. Returns false if OpenBLAS is not available; the matrix is then unchanged. */
static bool factor_with_lapack(const struct job *job, int64_t i)
{
    const grd_tensor *a = job->p->results[0];
    int64_t *wide = (int64_t *)(job->p->scratch + i * work_bytes(a));
    int32_t *pivots = (int32_t *)job->p->results[1]->data + i * job->n, *info = (int32_t *)job->p->results[2]->data + i;
    if (!grd_lapack_ldl((grd_dtype)a->dtype, job->n, job->hermitian, grd_matrix_at(a, i), wide + job->n, wide, info))
        return false;
    grd_cast_kernel(GRD_INT64, GRD_INT32)(job->n, (char *const[]){(char *)pivots, (char *)wide}, (const int64_t[]){4, 8}, NULL);
    kernels_of(a)->clear_upper(job->n, grd_matrix_at(a, i));
    return true;
}

static void factor_matrices(int64_t begin, int64_t end, void *context)
{
    const struct job *job = context;
    const struct grd_plan *p = job->p;
    for (int64_t i = begin; i < end; i++)
        if (!grd_lapack_is_chosen(p) || job->n <= GRD_LAPACK_SIDE || !factor_with_lapack(job, i))
            kernels_of(p->results[0])
                ->factor(job->n, job->hermitian, grd_matrix_at(p->results[0], i), (int32_t *)p->results[1]->data + i * job->n,
                         (int32_t *)p->results[2]->data + i);
}

void run_hidden_ldl_factor(const struct grd_plan *p, grd_tensor *A, bool hermitian)
{
    const int64_t n = grd_size_from_end(A, 1);
    struct job job = {.p = p, .n = n, .hermitian = hermitian};
    grd_parallel_for(0, grd_matrix_count(A), grd_matrix_grain((double)n * (double)n * (double)n / 3), factor_matrices, &job);
}

/* Raises RuntimeError if `info`, a result of the decomposition, says for some matrix that a diagonal element of D is zero. `function` is the name for
 * the error text. */
bool grd_ldl_check(grd_tensor *info, const char *function)
{
    struct grd_failed_matrix failed;
    if (!grd_find_failed_matrix(info, &failed))
        return !grd_pending();
    return grd_raise(GRD_ERROR_RUNTIME,
                     "torch.linalg.%s: %sD[%lld,%lld] is zero and using it on ldl_solve would result in a division by zero. If you "
                     "still want to perform the factorization, consider calling linalg.ldl_factor_ex(A)",
                     function, failed.place, (long long)failed.info, (long long)failed.info);
}

/* ---- Equations ------------------------------------------------------------------------------------------------------------------------------- */

static bool check_systems(const grd_tensor *LD, const grd_tensor *pivots, const grd_tensor *B)
{
    static const char *const function = "torch.linalg.ldl_solve";
    if (!grd_check_matrices(B, "B", function) || !grd_decomposition_check_square(LD, function) ||
        !grd_decomposition_check_inexact(LD, function) || !check_kernel(LD, "ldl_solve_kernel"))
        return false;
    if (LD->dtype != B->dtype)
        return grd_raise(GRD_ERROR_RUNTIME, "Expected b and A to have the same dtype, but found b of type %s and A of type %s instead.",
                         grd_dtype_type_name((grd_dtype)B->dtype), grd_dtype_type_name((grd_dtype)LD->dtype));
    if (grd_size_from_end(LD, 1) != grd_size_from_end(B, 2))
        return grd_raise(GRD_ERROR_RUNTIME,
                         "Incompatible matrix sizes for %s: each A matrix is %lld by %lld but each b matrix is %lld by %lld", function,
                         (long long)grd_size_from_end(LD, 2), (long long)grd_size_from_end(LD, 1), (long long)grd_size_from_end(B, 2),
                         (long long)grd_size_from_end(B, 1));
    if (!grd_dims_equal(grd_dims_from(LD->sizes, LD->ndim - 1), grd_sizes(pivots)))
        return grd_raise(GRD_ERROR_RUNTIME,
                         "%s: Expected LD.shape[:-1] and pivots.shape to be the same, but got pivots with shape %s instead", function,
                         grd_list_text(grd_sizes(pivots)));
    return pivots->dtype == GRD_INT32 || pivots->dtype == GRD_INT64 ||
           grd_raise(GRD_ERROR_RUNTIME, "%s: Expected pivots to be integers. Got %s", function,
                     grd_dtype_type_name((grd_dtype)pivots->dtype));
}

bool plan_linalg_ldl_solve(struct grd_plan *p, grd_tensor *LD, grd_tensor *pivots, grd_tensor *B, bool hermitian)
{
    int64_t sizes[GRD_MAX_DIMS], ndim;
    (void)hermitian;
    if (!check_systems(LD, pivots, B) || !grd_shape_broadcast(grd_batch_of(LD), grd_batch_of(B), sizes, &ndim))
        return false;
    const int64_t n = grd_size_from_end(LD, 1), k = grd_size_from_end(B, 1);
    memcpy(sizes + ndim, B->sizes + B->ndim - 2, 2 * sizeof *sizes);
    return grd_plan_starts_from(p, grd_expand(B, grd_dims_from(sizes, ndim + 2))) &&
           grd_plan_reads_as(p, grd_transpose(LD, -2, -1), (grd_dtype)LD->dtype) &&
           grd_plan_reads_as(p, grd_unsqueeze(pivots, -1), GRD_INT32) && grd_plan_reads_as(p, grd_unsqueeze(pivots, -1), GRD_INT64) &&
           grd_plan_columns(p, grd_dims_from(sizes, ndim), n, k, (grd_dtype)LD->dtype) && grd_plan_lapack(p, n) && !grd_pending();
}

bool check_linalg_ldl_solve(struct grd_plan *p, grd_tensor *LD, grd_tensor *pivots, grd_tensor *B, bool hermitian)
{
    const int64_t n = grd_size_from_end(LD, 1);
    (void)pivots, (void)B, (void)hermitian;
    for (int64_t i = 0; !p->meta && i < grd_matrix_count(p->in[2]); i++) {
        const enum grd_ldl_pivots found = kernels_of(LD)->check_pivots(n, (const int32_t *)grd_matrix_at(p->in[2], i));
        if (found != GRD_LDL_PIVOTS_FIT)
            return grd_raise(GRD_ERROR_RUNTIME,
                             "Pivots given to ldl_solve must all satisfy |pivot| %s. Did you properly pass the result of ldl_factor?",
                             found == GRD_LDL_PIVOTS_ZERO ? ">= 1" : "<= LD.size(-2)");
    }
    return true;
}

/* Number of right-hand sides of one task, for matrices larger than GRD_LAPACK_SIDE. */
enum { PIECE = 128 };

static void solve_pieces(int64_t begin, int64_t end, void *context)
{
    const struct job *job = context;
    const struct grd_plan *p = job->p;
    const grd_tensor *x = p->results[0];
    for (int64_t i = begin; i < end; i++) {
        const int64_t matrix = i / job->pieces, first = i % job->pieces * PIECE,
                      some = grd_least(job->k - first, job->pieces > 1 ? PIECE : job->k);
        char *piece = grd_matrix_at(x, matrix) + first * job->n * x->itemsize;
        const char *ld = grd_broadcast_matrix_at(p->in[1], x, matrix);
        if (!grd_lapack_is_chosen(p) || !grd_lapack_ldl_solve((grd_dtype)x->dtype, job->n, some, job->hermitian, ld,
                                                              (const int64_t *)grd_broadcast_matrix_at(p->in[3], x, matrix), piece))
            kernels_of(x)->solve(job->n, some, job->hermitian, ld, (const int32_t *)grd_broadcast_matrix_at(p->in[2], x, matrix), piece);
    }
}

void run_linalg_ldl_solve(const struct grd_plan *p, grd_tensor *LD, grd_tensor *pivots, grd_tensor *B, bool hermitian)
{
    const int64_t n = grd_size_from_end(LD, 1), k = grd_size_from_end(B, 1);
    struct job job = {.p = p, .n = n, .k = k, .hermitian = hermitian, .pieces = n > GRD_LAPACK_SIDE ? grd_ceil_div(k, PIECE) : 1};
    (void)pivots;
    grd_parallel_for(0, grd_matrix_count(p->results[0]) * job.pieces, grd_matrix_grain((double)n * (double)n * (double)grd_least(k, PIECE)),
                     solve_pieces, &job);
}
