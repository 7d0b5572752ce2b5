/* Computes eigenvalues of Hermitian matrices, and singular values: checks, plans, the choice between kernels and LAPACK, and the loop over the
 * matrices of a batch. The algorithms are in kernel/cpu/jacobi.c and in LAPACK (lapack_eigh_svd.c). Schema: schema/spectral.toml.
 *
 * Invariant: each matrix is computed by itself, so results do not depend on the number of threads, bit for bit. */
#include "base/integer.h"
#include "kernel/spectral.h"

#include <stdio.h>
#include <string.h>

#include "base/parallel.h"
#include "gen/uses/op/eigh_svd.h"
#include "gen/words.h"
#include "core/dtype.h"
#include "core/tensor.h"
#include "gradus/runtime.h"
#include "kernel/table.h"
#include "op/formula.h"
#include "op/matrix_batch.h"
#include "op/provider.h"
#include "op/lapack_eigh_svd.h"
#include "op/lapack_reflections.h"

/* ---- Pieces of a batch ------------------------------------------------------------------------------------------------------------------- */

enum {
    /* Matrices with at most this number of rows (half of it for complex dtypes) are computed fastest by a kernel that computes one matrix in each
     * vector lane. This is true even for a single matrix. */
    SIDE_ALONE = 16,
    SIDE_COMPLEX = 8, /* up to this number of rows, the kernel that computes one matrix at a time is faster than LAPACK */
    FEW = 2           /* from this number of matrices on, a kernel that computes one matrix in each vector lane is faster */
};

/* Data that plan_hidden_linalg_eigh or plan_hidden_linalg_svd hands to the tasks that decompose matrices. A task decomposes `grain` matrices and uses
 * `bytes` bytes of scratch memory. */
struct job {
    int64_t count, least, largest; /* number of matrices; the smaller and the larger of a matrix's two sizes */
    int64_t parts;                 /* real numbers per element: 1 for real, 2 for complex dtypes */
    double work;                   /* estimated multiplications for a matrix */
    int64_t grain;
    size_t bytes;
    grd_dtype dtype;
    struct grd_lapack_work lapack;
    union {
        struct grd_eigh eigh; /* the arguments of the kernels; the addresses of matrices are filled in for each task */
        struct grd_svd svd;
    };
};

static struct job *job_of(const struct grd_plan *p)
{
    _Static_assert(sizeof(struct job) <= GRD_PLAN_STATE, "room in the plan");
    return (struct job *)(uintptr_t)p->state;
}

static const struct grd_spectral_row *kernels_of(const struct job *job)
{
    return grd_kernels->jacobi[job->dtype];
}

/* Returns the kernels that compute several matrices at a time, one in each vector lane. The kernels for a complex dtype are stored in the table's
 * entry of the corresponding real dtype. */
static const struct grd_spectral_row *lanes_of(const struct job *job)
{
    return grd_kernels->jacobi[grd_dtype_to_real(job->dtype)];
}

/* True if a kernel that computes one matrix in each vector lane should be used. This is so if the matrices are very small, or if they are small
 * and there are several. */
static bool is_for_lanes(const struct job *job)
{
    const int64_t side = job->largest * job->parts;
    return side <= GRD_LANES_SIDE && (side <= SIDE_ALONE || job->count >= FEW);
}

/* True if LAPACK can be used. The matrices must not be empty, and the size of LAPACK's workspace must not overflow. It could overflow for the huge
 * sizes that expanded tensors may have. */
static bool is_for_lapack(const struct job *job)
{
    return job->least > 0 && (double)job->least * (double)job->largest < 0x1p58;
}

/* Plans to read the matrices of `A` column-major. If the kernel that computes one matrix in each vector lane is certain to run, row-major matrices
 * are read as they are, and *ret_by_rows is set to true. The kernel is not certain to run if the environment variable GRADUS_PROVIDER is set. */
static bool plan_read(struct grd_plan *p, grd_tensor *A, bool *ret_by_rows)
{
    return is_for_lanes(job_of(p)) && !grd_provider_wishes ? grd_plan_reads_matrices(p, A, ret_by_rows)
                                                           : grd_plan_reads_as(p, grd_transpose(A, -2, -1), (grd_dtype)A->dtype);
}

static bool lapack_wins(const struct grd_plan *p)
{
    return !is_for_lanes(job_of(p)) && job_of(p)->largest > SIDE_COMPLEX;
}

/* Chooses LAPACK or the kernels of this library, and sets the number of matrices that one task computes. A task computes its matrices one after the
 * other in the same scratch memory of `elements` elements. Returns false, with RuntimeError, if the environment variable GRADUS_PROVIDER forbids both
 * implementations. */
static bool choose(struct grd_plan *p, const struct grd_provider *providers, double elements)
{
    struct job *job = job_of(p);
    const bool lanes = is_for_lanes(job);
    const int64_t itemsize = grd_dtype_table[job->dtype].size;
    p->provider = grd_choose_provider(p, providers, 2);
    if (p->provider == NULL)
        return false;
    const double own = elements * (double)itemsize * (lanes ? lanes_of(job)->lanes + 1 : 1);
    const double bytes = own > (double)job->lapack.bytes ? own : (double)job->lapack.bytes;
    const int64_t pieces = 2 * (int64_t)grd_num_threads(), grain = grd_matrix_grain(job->work);
    job->grain = grd_greatest(grd_greatest(grain, lanes ? lanes_of(job)->lanes : 1), grd_ceil_div(job->count, pieces));
    job->bytes = bytes < 0x1p62 ? ((size_t)bytes + 63) / 64 * 64 : SIZE_MAX;
    grd_plan_scratch(p, (double)job->bytes * (double)grd_ceil_div(job->count, job->grain));
    return true;
}

static void run_pieces(const struct grd_plan *p, grd_task *task)
{
    grd_parallel_for(0, job_of(p)->count, job_of(p)->grain, task, (void *)(uintptr_t)p);
}

static char *scratch_at(const struct grd_plan *p, int64_t index)
{
    return p->scratch + (size_t)(index / job_of(p)->grain) * job_of(p)->bytes;
}

static void *moved(const void *pointer, int64_t elements, int64_t itemsize)
{
    return pointer == NULL ? NULL : (char *)(uintptr_t)pointer + elements * itemsize;
}

static void begin_job(struct grd_plan *p, const grd_tensor *A, double work)
{
    const int64_t m = grd_size_from_end(A, 2), n = grd_size_from_end(A, 1);
    *job_of(p) = (struct job){.count = grd_matrix_count(A),
                              .least = grd_least(m, n),
                              .largest = grd_greatest(m, n),
                              .parts = grd_dtype_is_complex((grd_dtype)A->dtype) ? 2 : 1,
                              .work = work * (double)m * (double)n * (double)grd_least(m, n),
                              .dtype = (grd_dtype)A->dtype};
}

/* Plans a result of n real numbers for each matrix. */
static bool plan_values(struct grd_plan *p, const grd_tensor *A, int64_t n, grd_dtype dtype)
{
    int64_t sizes[GRD_MAX_DIMS];
    memcpy(sizes, A->sizes, (size_t)(A->ndim - 2) * sizeof *sizes);
    sizes[A->ndim - 2] = n;
    return grd_plan_result(p, grd_dims_from(sizes, A->ndim - 1), dtype);
}

static bool check_kernel(const grd_tensor *A, const char *kernel)
{
    return grd_kernels->jacobi[A->dtype] != NULL || grd_raise_no_kernel(kernel, (grd_dtype)A->dtype);
}

/* ---- Hermitian matrices ---------------------------------------------------------------------------------------------------------------- */

/* Returns the arguments of the eigenvalue kernels, with the addresses of matrix number `index` and its results. */
static struct grd_eigh eigh_at(const struct grd_plan *p, int64_t index)
{
    const struct job *job = job_of(p);
    const int64_t n = job->eigh.n, itemsize = grd_dtype_table[job->dtype].size;
    struct grd_eigh e = job->eigh;
    e.a = moved(p->in[0]->data, index * n * n, itemsize);
    e.ret_w = moved(p->results[0]->data, index * n, p->results[0]->itemsize);
    e.ret_v = e.ret_v == NULL ? NULL : moved(p->results[1]->data, index * n * n, itemsize);
    e.ret_info = (int32_t *)p->results[2]->data + index;
    return e;
}

static void eigh_by_kernel(int64_t begin, int64_t end, void *context)
{
    const struct grd_plan *p = context;
    const struct job *job = job_of(p);
    const struct grd_eigh e = eigh_at(p, begin);
    (is_for_lanes(job) ? lanes_of(job)->eigh_lanes : kernels_of(job)->eigh)(&e, end - begin, scratch_at(p, begin));
}

static void eigh_by_lapack(int64_t begin, int64_t end, void *context)
{
    const struct grd_plan *p = context;
    const struct job *job = job_of(p);
    for (int64_t i = begin; i < end; i++) {
        const struct grd_eigh e = eigh_at(p, i);
        if (!kernels_of(job)->is_finite(e.n, e.n, true, e.a) || !grd_lapack_eigh(job->dtype, &e, &job->lapack, scratch_at(p, begin)))
            kernels_of(job)->eigh(&e, 1, scratch_at(p, begin));
    }
}

static void run_eigh_lapack(const struct grd_plan *p)
{
    run_pieces(p, eigh_by_lapack);
}

static void run_eigh_native(const struct grd_plan *p)
{
    run_pieces(p, eigh_by_kernel);
}

static bool lapack_serves_eigh(const struct grd_plan *p)
{
    struct job *job = job_of(p);
    return is_for_lapack(job) && grd_lapack_eigh_work(job->dtype, &job->eigh, &job->lapack);
}

static const struct grd_provider eigh_providers[] = {{"lapack", lapack_serves_eigh, lapack_wins, run_eigh_lapack},
                                                     {.name = "native", .run = run_eigh_native}};

static bool prepare_eigh(struct grd_plan *p)
{
    return choose(p, eigh_providers, grd_eigh_work(job_of(p)->eigh.n));
}

bool plan_hidden_linalg_eigh(struct grd_plan *p, grd_tensor *A, const char *UPLO, bool compute_v)
{
    /* The kernels compute eigenvectors if their argument ret_v is not NULL. Until the results are allocated, ret_v is the address of this
     * placeholder. */
    static char wanted[1];
    if (!grd_decomposition_check_square(A, "linalg.eigh"))
        return false;
    const bool upper = strcmp(UPLO, "U") == 0 || strcmp(UPLO, "u") == 0;
    if (!upper && strcmp(UPLO, "L") != 0 && strcmp(UPLO, "l") != 0)
        return grd_raise(GRD_ERROR_RUNTIME, "Expected UPLO argument to be 'L' or 'U', but got %s", UPLO);
    if (!check_kernel(A, "linalg_eigh"))
        return false;
    const int64_t n = grd_size_from_end(A, 1);
    const grd_dtype dtype = (grd_dtype)A->dtype;
    begin_job(p, A, 20);
    job_of(p)->eigh = (struct grd_eigh){.n = n, .parts = job_of(p)->parts, .ret_v = compute_v ? wanted : NULL};
    p->prepare = prepare_eigh;
    return (upper ? grd_plan_reads_as(p, grd_conj_physical(A), dtype) : plan_read(p, A, &job_of(p)->eigh.by_rows)) &&
           plan_values(p, A, n, grd_dtype_to_real(dtype)) &&
           (compute_v ? grd_plan_columns(p, grd_batch_of(A), n, n, dtype) : grd_plan_result(p, grd_dims(0), dtype)) &&
           grd_plan_result(p, grd_batch_of(A), GRD_INT32) && !grd_pending();
}

void run_hidden_linalg_eigh(const struct grd_plan *p, grd_tensor *A, const char *UPLO, bool compute_v)
{
    (void)A, (void)UPLO, (void)compute_v;
    p->provider->run(p);
}

/* ---- Singular values --------------------------------------------------------------------------------------------------------------------- */

static struct grd_svd svd_at(const struct grd_plan *p, int64_t index)
{
    const struct job *job = job_of(p);
    const int64_t itemsize = grd_dtype_table[job->dtype].size;
    struct grd_svd s = job->svd;
    s.a = moved(p->in[0]->data, index * s.m * s.n, itemsize);
    s.ret_s = moved(p->results[1]->data, index * job->least, p->results[1]->itemsize);
    s.ret_info = (int32_t *)p->results[3]->data + index;
    if (s.ret_u != NULL) {
        s.ret_u = moved(p->results[0]->data, index * s.m * s.columns, itemsize);
        s.ret_vh = moved(p->results[2]->data, index * s.rows * s.n, itemsize);
    }
    return s;
}

static void svd_by_kernel(int64_t begin, int64_t end, void *context)
{
    const struct grd_plan *p = context;
    const struct job *job = job_of(p);
    const struct grd_svd s = svd_at(p, begin);
    (is_for_lanes(job) ? lanes_of(job)->svd_lanes : kernels_of(job)->svd)(&s, end - begin, scratch_at(p, begin));
}

static void svd_by_lapack(int64_t begin, int64_t end, void *context)
{
    const struct grd_plan *p = context;
    const struct job *job = job_of(p);
    for (int64_t i = begin; i < end; i++) {
        const struct grd_svd s = svd_at(p, i);
        if (!kernels_of(job)->is_finite(s.m, s.n, false, s.a) || !grd_lapack_svd(job->dtype, &s, &job->lapack, scratch_at(p, begin)))
            kernels_of(job)->svd(&s, 1, scratch_at(p, begin));
    }
}

static void run_svd_lapack(const struct grd_plan *p)
{
    run_pieces(p, svd_by_lapack);
}

static void run_svd_native(const struct grd_plan *p)
{
    run_pieces(p, svd_by_kernel);
}

static bool lapack_serves_svd(const struct grd_plan *p)
{
    struct job *job = job_of(p);
    return is_for_lapack(job) && grd_lapack_svd_work(job->dtype, &job->svd, &job->lapack);
}

static const struct grd_provider svd_providers[] = {{"lapack", lapack_serves_svd, lapack_wins, run_svd_lapack},
                                                    {.name = "native", .run = run_svd_native}};

static bool prepare_svd(struct grd_plan *p)
{
    return choose(p, svd_providers, grd_svd_work(job_of(p)->svd.m, job_of(p)->svd.n));
}

bool plan_hidden_linalg_svd(struct grd_plan *p, grd_tensor *A, bool full_matrices, bool compute_uv)
{
    static char wanted[1];
    if (!grd_check_matrices(A, "A", "linalg.svd") || !grd_decomposition_check_inexact(A, "linalg.svd") || !check_kernel(A, "linalg_svd"))
        return false;
    const int64_t m = grd_size_from_end(A, 2), n = grd_size_from_end(A, 1), k = grd_least(m, n);
    const int64_t columns = full_matrices ? m : k, rows = full_matrices ? n : k;
    const grd_dtype dtype = (grd_dtype)A->dtype;
    begin_job(p, A, 40);
    job_of(p)->svd =
        (struct grd_svd){.m = m, .n = n, .columns = columns, .rows = rows, .parts = job_of(p)->parts, .ret_u = compute_uv ? wanted : NULL};
    /* If A has no elements and the vectors are empty or not wanted, nothing is computed, so m and n are set to 0. With the original m and n, work and
     * memory would be planned for the longer side of A. */
    if (k == 0 && !(compute_uv && full_matrices))
        job_of(p)->svd.m = job_of(p)->svd.n = 0;
    p->prepare = prepare_svd;
    return plan_read(p, A, &job_of(p)->svd.by_rows) &&
           (compute_uv ? grd_plan_columns(p, grd_batch_of(A), m, columns, dtype) : grd_plan_result(p, grd_dims(0), dtype)) &&
           plan_values(p, A, k, grd_dtype_to_real(dtype)) &&
           (compute_uv ? grd_plan_columns(p, grd_batch_of(A), rows, n, dtype) : grd_plan_result(p, grd_dims(0), dtype)) &&
           grd_plan_result(p, grd_batch_of(A), GRD_INT32) && !grd_pending();
}

void run_hidden_linalg_svd(const struct grd_plan *p, grd_tensor *A, bool full_matrices, bool compute_uv)
{
    (void)A, (void)full_matrices, (void)compute_uv;
    p->provider->run(p);
}

/* ---- Checks of results ------------------------------------------------------------------------------------------------------------------- */

bool grd_spectral_check(grd_tensor *info, const char *function, const char *values)
{
    struct grd_failed_matrix failed;
    if (!grd_find_failed_matrix(info, &failed))
        return !grd_pending();
    return failed.info < 0
               ? grd_raise(GRD_ERROR_LINALG, "%s: %sThe algorithm failed to converge because the input matrix contained non-finite values.",
                           function, failed.place)
               : grd_raise(GRD_ERROR_LINALG,
                           "%s: %sThe algorithm failed to converge because the input matrix is ill-conditioned or has too many "
                           "repeated %s (error code: %lld).",
                           function, failed.place, values, (long long)failed.info);
}

bool grd_svd_check_driver(const char *driver)
{
    return driver == NULL || grd_raise(GRD_ERROR_RUNTIME, "torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs "
                                                          "with cuSOLVER backend: " GRD_WORDS_LINALG_SVD_DRIVER);
}

bool grd_is_tall(grd_dims sizes)
{
    return sizes.data[sizes.n - 2] > sizes.data[sizes.n - 1];
}

grd_dims grd_square_sizes(grd_dims sizes, int64_t dim)
{
    int64_t *square = grd_pool_array(sizes.n, sizeof *square);
    for (int64_t i = 0; square != NULL && i < sizes.n; i++)
        square[i] = sizes.data[i < sizes.n - 2 ? i : sizes.n + dim];
    return grd_dims_from(square, square != NULL ? sizes.n : 0);
}

/* Returns `self`, the matrix products of eigenvectors or singular vectors with their gradients. Raises RuntimeError if an element on the
 * diagonal of `self` has an imaginary part. In this case the loss depends on the phase of the vectors, which is arbitrary. */
grd_tensor *op_hidden_phase_checked(grd_tensor *self, const char *function)
{
    double least = 0, largest = 0;
    if (grd_dtype_is_complex((grd_dtype)self->dtype))
        grd_composite_extremes(grd_physical(grd_abs(grd_imag(grd_diagonal(grd_detach(self), .dim1 = -2, .dim2 = -1)))), &least, &largest);
    if (largest > 1e-2)
        grd_raise(GRD_ERROR_RUNTIME,
                  strcmp(function, "svd_backward") == 0
                      ? "%s: The singular vectors in the complex case are specified up to multiplication by e^{i phi}. The specified loss "
                        "function depends on this phase term, making it ill-defined."
                      : "%s: The eigenvectors in the complex case are specified up to multiplication by e^{i phi}. The specified loss "
                        "function depends on this quantity, so it is ill-defined.",
                  function);
    return grd_pending() ? grd_failed : self;
}
