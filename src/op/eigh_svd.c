/* Eigenvalues and singular values: checks, results, the choice between kernels and LAPACK, and the loop over the matrices of a batch. Algorithms
 * are in kernel/cpu/jacobi.c and in LAPACK (lapack_eigh_svd.c). Schema: schema/spectral.toml.
 *
 * Invariant: each matrix is computed by itself, so the bits do not depend on the number of threads. */
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
    SIDE_ALONE = 16,  /* largest side, times the parts of an element, for which a kernel in lanes is faster even for one matrix */
    SIDE_COMPLEX = 8, /* largest side for which a kernel without lanes is faster than LAPACK */
    FEW = 2           /* matrices from which on a kernel in lanes is faster */
};

/* What a plan hands to its run, which works on `grain` matrices at a time, in `bytes` of scratch memory. */
struct job {
    int64_t count, least, largest; /* sides of a matrix */
    int64_t parts;                 /* 1, or 2 for complex elements */
    double work;                   /* multiplications for a matrix */
    int64_t grain;
    size_t bytes;
    grd_dtype dtype;
    struct grd_lapack_work lapack;
    union {
        struct grd_eigh eigh; /* of the first matrix */
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

/* Returns the kernels in lanes, which are those of the dtype of an element's parts. */
static const struct grd_spectral_row *lanes_of(const struct job *job)
{
    return grd_kernels->jacobi[grd_dtype_to_real(job->dtype)];
}

static bool is_for_lanes(const struct job *job)
{
    const int64_t side = job->largest * job->parts;
    return side <= GRD_LANES_SIDE && (side <= SIDE_ALONE || job->count >= FEW);
}

/* True unless there is nothing to compute, or the matrices have so many elements (as expanded tensors may) that the size of LAPACK's workspace
 * overflows. */
static bool is_for_lapack(const struct job *job)
{
    return job->least > 0 && (double)job->least * (double)job->largest < 0x1p58;
}

/* Plans to read matrices as they lie, by rows or by columns, where only kernels in lanes can be chosen to read them; otherwise by columns. */
static bool plan_read(struct grd_plan *p, grd_tensor *A, bool *ret_by_rows)
{
    return is_for_lanes(job_of(p)) && !grd_provider_wishes ? grd_plan_reads_matrices(p, A, ret_by_rows)
                                                           : grd_plan_reads_as(p, grd_transpose(A, -2, -1), (grd_dtype)A->dtype);
}

static bool lapack_wins(const struct grd_plan *p)
{
    return !is_for_lanes(job_of(p)) && job_of(p)->largest > SIDE_COMPLEX;
}

/* Chooses a provider, and divides the batch among threads: the scratch memory of a piece serves its matrices one after the other. */
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
    job->grain = grd_greatest(grd_greatest(grain, lanes ? lanes_of(job)->lanes : 1), (job->count + pieces - 1) / pieces);
    job->bytes = bytes < 0x1p62 ? ((size_t)bytes + 63) / 64 * 64 : SIZE_MAX;
    grd_plan_scratch(p, (double)job->bytes * (double)((job->count + job->grain - 1) / job->grain));
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

/* Plans a result of n numbers for each matrix. */
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

/* Returns the work on the matrices from `index` on. */
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
    static char wanted[1]; /* an address that stands for results until they are there */
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
    if (k == 0 && !(compute_uv && full_matrices)) /* nothing is read or written, however long the other side is */
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

/* RuntimeError: the gradient depends on the phase of the eigenvectors or singular vectors, which is arbitrary. Then the diagonal of the products
 * of vectors and their gradients is not 0. */
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
