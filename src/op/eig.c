/* Computes eigenvalues and eigenvectors of general square matrices with LAPACK's geev or a kernel (kernel/cpu/schur.c, kernel/cpu/eigen.c). Schema:
 * schema/spectral.toml.
 *
 * Invariant: each matrix is computed by one task, so results do not depend on the number of threads, bit for bit. */
#include "base/integer.h"
#include "kernel/eigen.h"

#include <string.h>

#include "base/parallel.h"
#include "gen/uses/op/eig.h"
#include "core/dtype.h"
#include "core/tensor.h"
#include "gradus/runtime.h"
#include "kernel/spectral.h"
#include "kernel/table.h"
#include "op/formula.h"
#include "op/matrix_batch.h"
#include "op/openblas.h"
#include "op/provider.h"

typedef void real_geev_routine(const char *jobvl, const char *jobvr, const int64_t *n, void *a, const int64_t *lda, void *wr, void *wi,
                               void *vl, const int64_t *ldvl, void *vr, const int64_t *ldvr, void *work, const int64_t *lwork,
                               int64_t *ret_info, size_t length1, size_t length2);
typedef void complex_geev_routine(const char *jobvl, const char *jobvr, const int64_t *n, void *a, const int64_t *lda, void *w, void *vl,
                                  const int64_t *ldvl, void *vr, const int64_t *ldvr, void *work, const int64_t *lwork, void *rwork,
                                  int64_t *ret_info, size_t length1, size_t length2);

enum {
    SIDE = 16, /* largest number of rows for which the kernel is faster than LAPACK */
    /* geev gets a workspace of n * COLUMNS elements. COLUMNS is above LAPACK's block size, so that geev can work in blocks. */
    COLUMNS = 64
};

/* Data that plan_hidden_linalg_eig hands to the tasks that compute eigenvalues. There are `count` matrices of n rows and columns. A task computes the
 * eigenvalues of `grain` matrices and uses `bytes` bytes of scratch memory. `vectors` is true if eigenvectors are wanted. */
struct job {
    int64_t n, count, grain, bytes;
    grd_dtype dtype;
    bool vectors;
};

static struct job *job_of(const struct grd_plan *p)
{
    return (struct job *)(uintptr_t)p->state;
}

/* Returns the number of elements of scratch memory for geev. The memory holds a copy of the matrix, real eigenvectors, real and imaginary parts of
 * eigenvalues, and geev's workspace. */
static int64_t elements_of(int64_t n)
{
    return 2 * n * n + (COLUMNS + 8) * n;
}

/* Computes the eigenvalues and, unless ret_v is NULL, eigenvectors of one matrix with LAPACK. False, with nothing written, if LAPACK cannot be
 * used. */
static bool call_geev(const struct job *job, const void *from, void *ret_w, void *ret_v, int32_t *ret_info, char *work)
{
    const int64_t n = job->n, itemsize = grd_dtype_table[job->dtype].size, lwork = COLUMNS * n;
    const char *wanted = ret_v != NULL ? "V" : "N";
    char *a = work, *v = a + n * n * itemsize, *values = v + n * n * itemsize, *more = values + 2 * n * itemsize;
    grd_lapack_routine *const routine = grd_lapack(job->dtype, GRD_LAPACK_GEEV);
    int64_t info = 0;
    if (routine == NULL || !grd_openblas_begin())
        return false;
    memcpy(a, from, (size_t)(n * n * itemsize));
    if (grd_dtype_is_complex(job->dtype))
        ((complex_geev_routine *)routine)("N", wanted, &n, a, &n, ret_w, NULL, &n, ret_v, &n, more, &lwork, values, &info, 1, 1);
    else
        ((real_geev_routine *)routine)("N", wanted, &n, a, &n, values, values + n * itemsize, NULL, &n, v, &n, more, &lwork, &info, 1, 1);
    grd_openblas_end();
    if (!grd_dtype_is_complex(job->dtype))
        grd_kernels->eigen[job->dtype]->join(n, values, values + n * itemsize, v, ret_w, ret_v);
    *ret_info = (int32_t)info;
    return true;
}

static bool lapack_serves(const struct grd_plan *p)
{
    return job_of(p)->n > 0 && grd_lapack(job_of(p)->dtype, GRD_LAPACK_GEEV) != NULL;
}

/* True if LAPACK should compute the eigenvalues. The kernel of this library gets only small real matrices, because for these it returns the
 * eigenvalues in LAPACK's order. PyTorch's order is LAPACK's, and programs may depend on it. */
static bool lapack_wins(const struct grd_plan *p)
{
    return grd_dtype_is_complex(job_of(p)->dtype) || job_of(p)->n > SIDE;
}

static const struct grd_provider providers[] = {{.name = "lapack", .serves = lapack_serves, .wins = lapack_wins}, {.name = "native"}};

static void find_eigenvalues(int64_t begin, int64_t end, void *context)
{
    const struct grd_plan *p = context;
    const struct job *job = job_of(p);
    const int64_t n = job->n, itemsize = grd_dtype_table[job->dtype].size;
    char *work = p->scratch + begin / job->grain * job->bytes;
    for (int64_t i = begin; i < end; i++) {
        const char *from = p->in[0]->data + i * n * n * itemsize;
        char *w = p->results[0]->data + i * n * p->results[0]->itemsize, *v = job->vectors ? grd_matrix_at(p->results[1], i) : NULL;
        int32_t *info = (int32_t *)p->results[2]->data + i;
        if (!grd_kernels->jacobi[job->dtype]->is_finite(n, n, false, from))
            *info = -1;
        else if (p->provider != &providers[0] || !call_geev(job, from, w, v, info, work))
            grd_kernels->eigen[job->dtype]->eig(n, from, w, v, info, work);
    }
}

static bool prepare_eig(struct grd_plan *p)
{
    struct job *job = job_of(p);
    const int64_t pieces = 2 * (int64_t)grd_num_threads();
    const double n = (double)job->n,
                 bytes = ((double)elements_of(job->n) + 8) * (double)grd_dtype_table[grd_dtype_to_complex(job->dtype)].size;
    p->provider = grd_choose_provider(p, providers, 2);
    job->grain = grd_greatest(grd_matrix_grain(25 * n * n * n), grd_ceil_div(job->count, pieces));
    job->bytes = bytes < 0x1p62 ? ((int64_t)bytes + 63) / 64 * 64 : INT64_MAX;
    grd_plan_scratch(p, (double)job->bytes * (double)grd_ceil_div(job->count, job->grain));
    return p->provider != NULL;
}

bool plan_hidden_linalg_eig(struct grd_plan *p, grd_tensor *A, bool compute_v)
{
    const grd_dtype dtype = (grd_dtype)A->dtype;
    int64_t sizes[GRD_MAX_DIMS];
    if (!grd_decomposition_check_square(A, "linalg.eig"))
        return false;
    if (grd_kernels->jacobi[dtype] == NULL)
        return grd_raise_no_kernel("linalg_eig", dtype);
    const int64_t n = grd_size_from_end(A, 1);
    const grd_dtype made = grd_dtype_to_complex(dtype);
    memcpy(sizes, A->sizes, (size_t)(A->ndim - 2) * sizeof *sizes);
    sizes[A->ndim - 2] = n;
    *job_of(p) = (struct job){.n = n, .count = grd_matrix_count(A), .dtype = dtype, .vectors = compute_v};
    p->prepare = prepare_eig;
    return grd_plan_reads_as(p, grd_transpose(A, -2, -1), dtype) && grd_plan_result(p, grd_dims_from(sizes, A->ndim - 1), made) &&
           (compute_v ? grd_plan_columns(p, grd_batch_of(A), n, n, made) : grd_plan_result(p, grd_dims(0), made)) &&
           grd_plan_result(p, grd_batch_of(A), GRD_INT32) && !grd_pending();
}

void run_hidden_linalg_eig(const struct grd_plan *p, grd_tensor *A, bool compute_v)
{
    (void)A, (void)compute_v;
    grd_parallel_for(0, job_of(p)->count, job_of(p)->grain, find_eigenvalues, (void *)(uintptr_t)p);
}

bool grd_eig_check_dtype(const grd_tensor *A)
{
    const grd_dtype dtype = (grd_dtype)A->dtype;
    return grd_dtype_is_inexact(dtype) || grd_raise(GRD_ERROR_RUNTIME, "Unknown Complex ScalarType for %s", grd_dtype_type_name(dtype));
}

bool grd_eig_check(grd_tensor *info)
{
    double least = 0, largest = 0;
    if (grd_composite_extremes(grd_physical(info), &least, &largest) && least < 0)
        return grd_raise(GRD_ERROR_RUNTIME, "torch.linalg.eig: input tensor should not contain infs or NaNs.");
    return grd_spectral_check(info, "linalg.eig", "eigenvalues");
}
