/* Calls LAPACK's syevd, heevd, gesdd and gelsy with the Fortran convention. All arguments are passed by address, and the lengths of string arguments
 * follow at the end. */
#include "op/lapack_eigh_svd.h"

#include <math.h>
#include <string.h>

#include "core/dtype.h"
#include "core/scalar.h"
#include "core/tensor.h"
#include "op/openblas.h"
#include "op/lapack_reflections.h"

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

typedef void real_gelsy_routine(const int64_t *m, const int64_t *n, const int64_t *k, void *a, const int64_t *lda, void *b,
                                const int64_t *ldb, int64_t *pivots, const void *rcond, int64_t *ret_rank, void *work, const int64_t *lwork,
                                int64_t *ret_info);
typedef void complex_gelsy_routine(const int64_t *m, const int64_t *n, const int64_t *k, void *a, const int64_t *lda, void *b,
                                   const int64_t *ldb, int64_t *pivots, const void *rcond, int64_t *ret_rank, void *work,
                                   const int64_t *lwork, void *rwork, int64_t *ret_info);

/* ---- Workspace --------------------------------------------------------------------------------------------------------------------------- */

/* Addresses of the four arrays in the workspace of one LAPACK call. Their lengths are the members of grd_lapack_work with the same names. */
struct parts {
    char *copies, *elements, *reals;
    int64_t *integers;
};

static size_t itemsize(grd_dtype dtype)
{
    return (size_t)grd_dtype_table[dtype].size;
}

/* Rounds a size up to a multiple of 64 bytes, so that each array starts in a cache line of its own. */
static size_t rounded(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

/* Divides the memory `work` into the arrays that `w` describes. */
static struct parts parts_of(grd_dtype dtype, const struct grd_lapack_work *w, char *work)
{
    struct parts x;
    x.copies = work;
    x.elements = x.copies + rounded((size_t)w->copies * itemsize(dtype));
    x.reals = x.elements + rounded((size_t)w->elements * itemsize(dtype));
    x.integers = (int64_t *)(x.reals + rounded((size_t)w->reals * itemsize(grd_dtype_to_real(dtype))));
    return x;
}

/* Returns the workspace size that LAPACK has written to *number as a floating-point number. A float32 may have been rounded down, so the size is
 * increased a little. */
static int64_t size_asked(grd_dtype dtype, const void *number)
{
    const double size = grd_dtype_to_real(dtype) == GRD_FLOAT32 ? 1.000001 * (double)*(const float *)number : *(const double *)number;
    return (int64_t)size + 1;
}

/* Sets w->bytes to the size of the workspace. The workspace has four arrays, whose lengths are w->copies, w->elements, w->reals and w->integers. */
static void count_bytes(grd_dtype dtype, struct grd_lapack_work *w)
{
    w->bytes = rounded((size_t)w->copies * itemsize(dtype)) + rounded((size_t)w->elements * itemsize(dtype)) +
               rounded((size_t)w->reals * itemsize(grd_dtype_to_real(dtype))) + rounded((size_t)w->integers * sizeof(int64_t));
}

/* ---- Eigenvalues ------------------------------------------------------------------------------------------------------------------------- */

/* Calls syevd or heevd on the matrix a and writes the eigenvalues to w. If the members of `sizes` are -1, the routine computes nothing and writes the
 * workspace sizes it needs to the arrays of x. Returns LAPACK's info. */
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

/* Calls gesdd on the matrix a and writes the singular values to `values`. If sizes->elements is -1, the routine computes nothing and writes the
 * workspace size it needs to x.elements. Returns LAPACK's info. */
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

/* ---- Least squares ----------------------------------------------------------------------------------------------------------------------- */

/* Returns the memory for a copy of the right-hand sides and for gelsy's workspace. The copy has max(m, n) rows, because gelsy overwrites the
 * right-hand sides with the solution. */
struct grd_lapack_work grd_lapack_least_squares_work(grd_dtype dtype, int64_t m, int64_t n, int64_t k)
{
    enum { BLOCK = 64 }; /* number of columns in a block of reflections, at least LAPACK's block size */
    const int64_t shorter = m < n ? m : n, longer = m < n ? n : m;
    struct grd_lapack_work w = {.copies = longer * k,
                                .elements = shorter + 2 * n + BLOCK * (n + 1) + BLOCK * (shorter > k ? shorter : k),
                                .reals = grd_dtype_is_complex(dtype) ? 2 * n : 0,
                                .integers = n};
    count_bytes(dtype, &w);
    return w;
}

/* Returns the absolute value of one element. */
static double magnitude_of(const char *element, grd_dtype dtype)
{
    const grd_scalar x = grd_scalar_read(element, dtype);
    return x.kind == GRD_SCALAR_COMPLEX ? hypot(x.v.c.re, x.v.c.im) : fabs(grd_scalar_double(x));
}

/* True if gelsy found a rank r below min(m, n) and the remainder that gelsy dropped is only rounding error. The remainder counts as rounding
 * error if diagonal element r of the triangular factor is at most max(m, n) * epsilon times diagonal element 0. (Diagonal
 * element 0 does not exceed the largest singular value.) If the function returns false, the caller must compute singular values to find the rank. */
static bool drops_rounding(grd_dtype dtype, const struct grd_least_squares *s, const char *factors)
{
    const double epsilon = grd_dtype_to_real(dtype) == GRD_FLOAT32 ? 0x1p-23 : 0x1p-52;
    const int64_t shorter = s->m < s->n ? s->m : s->n, longer = s->m < s->n ? s->n : s->m;
    return *s->ret_rank < shorter && magnitude_of(factors + (size_t)(*s->ret_rank * (s->m + 1)) * itemsize(dtype), dtype) <=
                                         (double)longer * epsilon * magnitude_of(factors, dtype);
}

bool grd_lapack_least_squares(grd_dtype dtype, const struct grd_least_squares *s, const struct grd_lapack_work *w, char *work)
{
    const struct parts x = parts_of(dtype, w, work);
    const size_t size = itemsize(dtype);
    const int64_t longer = s->m < s->n ? s->n : s->m;
    const float rounded_rcond = (float)s->rcond;
    const bool is_single = grd_dtype_to_real(dtype) == GRD_FLOAT32, complex = grd_dtype_is_complex(dtype);
    const void *rcond = is_single ? (const void *)&rounded_rcond : &s->rcond;
    char *const a = s->ret_factors, *const b = x.copies;
    grd_lapack_routine *const routine = grd_lapack(dtype, GRD_LAPACK_GELSY);
    int64_t info = 0;
    if (routine == NULL || !grd_openblas_begin())
        return false;
    memcpy(a, s->a, (size_t)(s->m * s->n) * size);
    for (int64_t i = 0; i < s->k; i++)
        memcpy(b + (size_t)(i * longer) * size, (const char *)s->b + (size_t)(i * s->m) * size, (size_t)s->m * size);
    memset(x.integers, 0, (size_t)s->n * sizeof *x.integers); /* a 0 allows gelsy to move the column in its pivoting */
    if (complex)
        ((complex_gelsy_routine *)routine)(&s->m, &s->n, &s->k, a, &s->m, b, &longer, x.integers, rcond, s->ret_rank, x.elements,
                                           &w->elements, x.reals, &info);
    else
        ((real_gelsy_routine *)routine)(&s->m, &s->n, &s->k, a, &s->m, b, &longer, x.integers, rcond, s->ret_rank, x.elements, &w->elements,
                                        &info);
    grd_openblas_end();
    for (int64_t i = 0; i < s->k; i++)
        memcpy((char *)s->ret_x + (size_t)(i * s->n) * size, b + (size_t)(i * longer) * size, (size_t)s->n * size);
    return info == 0 && drops_rounding(dtype, s, a);
}
