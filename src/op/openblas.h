/* Gives access to OpenBLAS, an optional shared library that is found and loaded when it is first needed. */
#ifndef GRD_OP_OPENBLAS_H
#define GRD_OP_OPENBLAS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gradus/types.h"

enum { GRD_BLAS_ROW_MAJOR = 101, GRD_BLAS_NO_TRANSPOSE = 111, GRD_BLAS_TRANSPOSE = 112 };

typedef void grd_sgemm(int order, int trans_a, int trans_b, int64_t m, int64_t n, int64_t k, float alpha, const float *a, int64_t lda,
                       const float *b, int64_t ldb, float beta, float *c, int64_t ldc);
typedef void grd_dgemm(int order, int trans_a, int trans_b, int64_t m, int64_t n, int64_t k, double alpha, const double *a, int64_t lda,
                       const double *b, int64_t ldb, double beta, double *c, int64_t ldc);
typedef void grd_complex_gemm(int order, int trans_a, int trans_b, int64_t m, int64_t n, int64_t k, const void *alpha, const void *a,
                              int64_t lda, const void *b, int64_t ldb, const void *beta, void *c, int64_t ldc);

/* Functions of OpenBLAS's C interface, with 64-bit integers. */
struct grd_openblas {
    grd_sgemm *sgemm;
    grd_dgemm *dgemm;
    grd_complex_gemm *cgemm, *zgemm;
    void (*set_num_threads)(int threads);
    char *(*get_config)(void), *(*get_corename)(void);
    bool has_wide_vectors; /* true if OpenBLAS's kernels use 512-bit vectors */
};

/* Returns the functions of OpenBLAS, which the first call loads. Returns NULL if OpenBLAS cannot be used. The answer never changes in a process. */
const struct grd_openblas *grd_openblas(void);
/* LAPACK and BLAS routines that this library calls by their Fortran interface. The names are those of the routines for real dtypes. */
enum grd_lapack_name {
    GRD_LAPACK_POTRF,
    GRD_LAPACK_TRTRI,
    GRD_LAPACK_LAUUM,
    GRD_LAPACK_GETRF,
    GRD_LAPACK_TRSM,
    GRD_LAPACK_TRSV,
    GRD_LAPACK_GEMM,
    GRD_LAPACK_SYRK, /* herk for complex dtypes */
    GRD_LAPACK_LASWP,
    GRD_LAPACK_GEQRF,
    GRD_LAPACK_ORGQR, /* ungqr for complex dtypes; likewise ORMQR is unmqr, and SYEVD is heevd */
    GRD_LAPACK_ORMQR,
    GRD_LAPACK_GEQRT3,
    GRD_LAPACK_LARFT,
    GRD_LAPACK_SYTRF,
    GRD_LAPACK_SYTRS,
    GRD_LAPACK_HETRF,
    GRD_LAPACK_HETRS,
    GRD_LAPACK_SYEVD,
    GRD_LAPACK_GESDD,
    GRD_LAPACK_GEEV,
    GRD_LAPACK_GELSY,
    GRD_LAPACK_COUNT
};

/* Type of any routine; cast it to the routine's own type before the call. Arguments are passed by address, and integers have 64 bits. */
typedef void grd_lapack_routine(void);
/* Returns the routine for float32, float64, complex64 or complex128. Returns NULL for other dtypes, or if OpenBLAS is not used or has no such
 * routine. */
grd_lapack_routine *grd_lapack(grd_dtype dtype, enum grd_lapack_name name);
/* Types of the routines that more than one file calls. The lengths of string arguments follow after the other arguments. */
typedef void grd_potrf_routine(const char *triangle, const int64_t *n, void *a, const int64_t *lda, int64_t *ret_info, size_t length);
typedef void grd_getrf_routine(const int64_t *m, const int64_t *n, void *a, const int64_t *lda, int64_t *ret_pivots, int64_t *ret_info);
typedef void grd_trsm_routine(const char *side, const char *triangle, const char *transposition, const char *diagonal, const int64_t *m,
                              const int64_t *n, const void *alpha, const void *a, const int64_t *lda, void *b, const int64_t *ldb,
                              size_t length1, size_t length2, size_t length3, size_t length4);
typedef void grd_gemm_routine(const char *transposition1, const char *transposition2, const int64_t *m, const int64_t *n, const int64_t *k,
                              const void *alpha, const void *a, const int64_t *lda, const void *b, const int64_t *ldb, const void *beta,
                              void *c, const int64_t *ldc, size_t length1, size_t length2);
/* Waits until OpenBLAS has memory for one more simultaneous call. Call this before each product or routine of OpenBLAS, and grd_openblas_end() after
 * it. Returns false if OpenBLAS will never have the memory. After this function has returned true once, it never returns false in the process. */
bool grd_openblas_begin(void);
/* Ends a call that grd_openblas_begin() has allowed. Wakes a thread that waits in grd_openblas_begin(). */
void grd_openblas_end(void);

#endif
