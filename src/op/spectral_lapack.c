/* LAPACK's syevd, heevd and gesdd, as Fortran calls them: all arguments by address, after them the lengths of those that are text. */
#include "op/spectral_lapack.h"

#include <string.h>

#include "core/tensor.h"
#include "op/openblas.h"

typedef void syevd_routine(const char *jobz, const char *uplo, const int64_t *n, void *a, const int64_t *lda, void *w, void *work,
                           const int64_t *lwork, int64_t *iwork, const int64_t *liwork, int64_t *ret_info, size_t length1, size_t length2);
typedef void heevd_routine(const char *jobz, const char *uplo, const int64_t *n, void *a, const int64_t *lda, void *w, void *work,
                           const int64_t *lwork, void *rwork, const int64_t *lrwork, int64_t *iwork, const int64_t *liwork,
                           int64_t *ret_info, size_t length1, size_t length2);
typedef void real_gesdd_routine(const char *jobz, const int64_t *m, const int64_t *n, void *a, const int64_t *lda, void *s, void *u,
                                const int64_t *ldu, void *vt, const int64_t *ldvt, void *work, const int64_t *lwork, int64_t *iwork,
                                int64_t *ret_info, size_t length);
typedef void complex_gesdd_routine(const char *jobz, const int64_t *m, const int64_t *n, void *a, const int64_t *lda, void *s, void *u,
                                   const int64_t *ldu, void *vt, const int64_t *ldvt, void *work, const int64_t *lwork, void *rwork,
                                   int64_t *iwork, int64_t *ret_info, size_t length);

/* ---- Workspace --------------------------------------------------------------------------------------------------------------------------- */

/* The parts of the memory of a call. */
struct parts {
    char *copies, *elements, *reals;
    int64_t *integers;
};

static size_t itemsize(grd_dtype dtype)
{
    return (size_t)grd_dtype_table[dtype].size;
}

static size_t rounded(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

static struct parts parts_of(grd_dtype dtype, const struct grd_lapack_work *w, char *work)
{
    struct parts x;
    x.copies = work;
    x.elements = x.copies + rounded((size_t)w->copies * itemsize(dtype));
    x.reals = x.elements + rounded((size_t)w->elements * itemsize(dtype));
    x.integers = (int64_t *)(x.reals + rounded((size_t)w->reals * itemsize(grd_dtype_to_real(dtype))));
    return x;
}

/* A size that a routine wrote as a number, which float32 may have rounded down. */
static int64_t size_asked(grd_dtype dtype, const void *number)
{
    const double size = grd_dtype_to_real(dtype) == GRD_FLOAT32 ? 1.000001 * (double)*(const float *)number : *(const double *)number;
    return (int64_t)size + 1;
}

static void count_bytes(grd_dtype dtype, struct grd_lapack_work *w)
{
    w->bytes = rounded((size_t)w->copies * itemsize(dtype)) + rounded((size_t)w->elements * itemsize(dtype)) +
               rounded((size_t)w->reals * itemsize(grd_dtype_to_real(dtype))) + rounded((size_t)w->integers * sizeof(int64_t));
}

/* ---- Eigenvalues ------------------------------------------------------------------------------------------------------------------------- */

/* Calls the routine on a matrix, or for sizes of -1 asks for its workspace. */
static int64_t call_eigh(grd_dtype dtype, const struct grd_eigh *e, void *a, void *w, const struct grd_lapack_work *sizes, struct parts x)
{
    const bool complex = grd_dtype_is_complex(dtype);
    grd_lapack_routine *const routine = grd_lapack(dtype, GRD_LAPACK_SYEVD);
    const char *job = e->ret_v != NULL ? "V" : "N";
    const int64_t lda = e->n > 1 ? e->n : 1;
    int64_t info = 0;
    if (complex)
        ((heevd_routine *)routine)(job, "L", &e->n, a, &lda, w, x.elements, &sizes->elements, x.reals, &sizes->reals, x.integers,
                                   &sizes->integers, &info, 1, 1);
    else
        ((syevd_routine *)routine)(job, "L", &e->n, a, &lda, w, x.elements, &sizes->elements, x.integers, &sizes->integers, &info, 1, 1);
    return info;
}

bool grd_lapack_eigh_work(grd_dtype dtype, const struct grd_eigh *e, struct grd_lapack_work *ret_work)
{
    double element[2] = {0}, real = 0;
    int64_t integer = 0;
    const struct parts x = {NULL, (char *)element, (char *)&real, &integer};
    if (grd_lapack(dtype, GRD_LAPACK_SYEVD) == NULL)
        return false;
    call_eigh(dtype, e, element, &real, &(struct grd_lapack_work){.elements = -1, .reals = -1, .integers = -1}, x);
    *ret_work = (struct grd_lapack_work){.copies = e->ret_v != NULL ? 0 : e->n * e->n,
                                         .elements = size_asked(dtype, element),
                                         .reals = grd_dtype_is_complex(dtype) ? size_asked(dtype, &real) : 0,
                                         .integers = integer};
    count_bytes(dtype, ret_work);
    return true;
}

bool grd_lapack_eigh(grd_dtype dtype, const struct grd_eigh *e, const struct grd_lapack_work *w, char *work)
{
    const struct parts x = parts_of(dtype, w, work);
    void *a = e->ret_v != NULL ? e->ret_v : x.copies;
    if (!grd_openblas_begin())
        return false;
    memcpy(a, e->a, (size_t)(e->n * e->n) * itemsize(dtype));
    *e->ret_info = (int32_t)call_eigh(dtype, e, a, e->ret_w, w, x);
    grd_openblas_end();
    return true;
}

/* ---- Singular values --------------------------------------------------------------------------------------------------------------------- */

static int64_t call_svd(grd_dtype dtype, const struct grd_svd *s, void *a, void *values, void *u, void *vh,
                        const struct grd_lapack_work *sizes, struct parts x)
{
    const int64_t k = s->m < s->n ? s->m : s->n, ldvt = s->rows > 1 ? s->rows : 1;
    const char *job = s->ret_u == NULL ? "N" : s->columns > k || s->rows > k ? "A" : "S";
    grd_lapack_routine *const routine = grd_lapack(dtype, GRD_LAPACK_GESDD);
    int64_t info = 0;
    if (grd_dtype_is_complex(dtype))
        ((complex_gesdd_routine *)routine)(job, &s->m, &s->n, a, &s->m, values, u, &s->m, vh, &ldvt, x.elements, &sizes->elements, x.reals,
                                           x.integers, &info, 1);
    else
        ((real_gesdd_routine *)routine)(job, &s->m, &s->n, a, &s->m, values, u, &s->m, vh, &ldvt, x.elements, &sizes->elements, x.integers,
                                        &info, 1);
    return info;
}

bool grd_lapack_svd_work(grd_dtype dtype, const struct grd_svd *s, struct grd_lapack_work *ret_work)
{
    const int64_t k = s->m < s->n ? s->m : s->n, longer = s->m < s->n ? s->n : s->m;
    double element[2] = {0}, real = 0;
    int64_t integer = 0;
    if (grd_lapack(dtype, GRD_LAPACK_GESDD) == NULL)
        return false;
    call_svd(dtype, s, element, &real, element, element, &(struct grd_lapack_work){.elements = -1},
             (struct parts){NULL, (char *)element, (char *)&real, &integer});
    *ret_work = (struct grd_lapack_work){.copies = s->m * s->n,
                                         .elements = size_asked(dtype, element),
                                         .reals = !grd_dtype_is_complex(dtype) ? 0
                                                  : s->ret_u == NULL           ? 7 * k
                                                                               : 5 * k * k + 5 * k + 2 * longer * k + 2 * k * k,
                                         .integers = 8 * k};
    count_bytes(dtype, ret_work);
    return true;
}

bool grd_lapack_svd(grd_dtype dtype, const struct grd_svd *s, const struct grd_lapack_work *w, char *work)
{
    const struct parts x = parts_of(dtype, w, work);
    if (!grd_openblas_begin())
        return false;
    memcpy(x.copies, s->a, (size_t)(s->m * s->n) * itemsize(dtype));
    *s->ret_info = (int32_t)call_svd(dtype, s, x.copies, s->ret_s, s->ret_u, s->ret_vh, w, x);
    grd_openblas_end();
    return true;
}
