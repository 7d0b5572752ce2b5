/* The binding to OpenBLAS (64-bit integers, the symbol names of the scipy-openblas64 package).
 * Invariant: OpenBLAS never starts work on threads of its own. */
#include "op/blas.h"

#include "gradus/runtime.h"

#if GRD_OPENBLAS

#include <stdio.h>
#include <string.h>

#include "base/cpu.h"
#include "core/tensor.h"

enum { ROW_MAJOR = 101, NO_TRANSPOSE = 111, TRANSPOSE = 112 };

void scipy_openblas_set_num_threads64_(int threads);
char *scipy_openblas_get_config64_(void);
char *scipy_openblas_get_corename64_(void);
void scipy_cblas_sgemm64_(int order, int trans_a, int trans_b, int64_t m, int64_t n, int64_t k, float alpha, const float *a, int64_t lda,
                          const float *b, int64_t ldb, float beta, float *c, int64_t ldc);
void scipy_cblas_dgemm64_(int order, int trans_a, int trans_b, int64_t m, int64_t n, int64_t k, double alpha, const double *a, int64_t lda,
                          const double *b, int64_t ldb, double beta, double *c, int64_t ldc);
void scipy_cblas_cgemm64_(int order, int trans_a, int trans_b, int64_t m, int64_t n, int64_t k, const void *alpha, const void *a,
                          int64_t lda, const void *b, int64_t ldb, const void *beta, void *c, int64_t ldc);
void scipy_cblas_zgemm64_(int order, int trans_a, int trans_b, int64_t m, int64_t n, int64_t k, const void *alpha, const void *a,
                          int64_t lda, const void *b, int64_t ldb, const void *beta, void *c, int64_t ldc);

static char description[96];
static bool wide_vectors; /* OpenBLAS chose kernels of 512 bits */

__attribute__((constructor)) static void blas_init(void)
{
    scipy_openblas_set_num_threads64_(1);
    const char *core = scipy_openblas_get_corename64_();
    char version[32] = "";
    sscanf(scipy_openblas_get_config64_(), "OpenBLAS %31s", version);
    snprintf(description, sizeof description, "openblas %s %s", version, core);
    wide_vectors = strcasecmp(core, "SkylakeX") == 0 || strcasecmp(core, "Cooperlake") == 0 || strcasecmp(core, "SapphireRapids") == 0;
}

const char *grd_blas(void)
{
    return description;
}

/* Measured on one thread of a Cascade Lake against OpenBLAS 0.3.34, at our 512-bit and 256-bit levels: our float32 and float64 kernels are
 * ahead at 128 and 256 cubed; with 512 bits they are even or ahead up to 2,048 cubed; with 256 bits 5 to 10 % behind from 512 cubed on.
 * There OpenBLAS would be called on pieces, and pack its operands once per piece, which costs as much. Our 128-bit kernels are behind from 16 cubed on; complex ones from an estimated 128 cubed, but where OpenBLAS has narrower vectors
 * than we. Thin products never gain. */
bool grd_blas_worth(grd_dtype dtype, int64_t m, int64_t n, int64_t k)
{
    if (m < 16 || n < 16 || k < 16)
        return false;
    const enum grd_isa_level level = grd_cpu_level();
    const bool real = dtype == GRD_FLOAT32 || dtype == GRD_FLOAT64;
    if ((level >= GRD_ISA_V3 && real) || (level == GRD_ISA_V4 && !wide_vectors))
        return false;
    double side = level >= GRD_ISA_V3 ? 128 : 16;
    return (double)m * (double)n * (double)k >= side * side * side;
}

/* Transposition flag and leading dimension of a row-major operand; false where it has no unit stride. */
static bool operand(int64_t rows, int64_t columns, int64_t row, int64_t column, int *ret_flag, int64_t *ret_leading)
{
    if (column == 1 && (rows == 1 || row >= columns)) {
        *ret_flag = NO_TRANSPOSE;
        *ret_leading = row > columns ? row : columns;
        return true;
    }
    if (row == 1 && (columns == 1 || column >= rows)) {
        *ret_flag = TRANSPOSE;
        *ret_leading = column > rows ? column : rows;
        return true;
    }
    return false;
}

static double imaginary_part(grd_scalar s)
{
    return s.kind == GRD_SCALAR_COMPLEX ? s.v.c.im : 0;
}

bool grd_blas_gemm(grd_dtype dtype, const struct grd_gemm *g)
{
    int trans_a, trans_b, trans_c;
    int64_t lda, ldb, ldc;
    if (g->m == 0 || g->n == 0 || g->k == 0 || !operand(g->m, g->k, g->a_row, g->a_col, &trans_a, &lda) ||
        !operand(g->k, g->n, g->b_row, g->b_col, &trans_b, &ldb) || !operand(g->m, g->n, g->c_row, g->c_col, &trans_c, &ldc) ||
        trans_c == TRANSPOSE)
        return false;
    int64_t m = g->m, n = g->n, k = g->k;
    switch (dtype) {
    case GRD_FLOAT32:
        scipy_cblas_sgemm64_(ROW_MAJOR, trans_a, trans_b, m, n, k, (float)grd_scalar_double(g->alpha), (const float *)g->a, lda,
                             (const float *)g->b, ldb, (float)grd_scalar_double(g->beta), (float *)g->c, ldc);
        return true;
    case GRD_FLOAT64:
        scipy_cblas_dgemm64_(ROW_MAJOR, trans_a, trans_b, m, n, k, grd_scalar_double(g->alpha), (const double *)g->a, lda,
                             (const double *)g->b, ldb, grd_scalar_double(g->beta), (double *)g->c, ldc);
        return true;
    case GRD_COMPLEX64: {
        float alpha[2] = {(float)grd_scalar_double(g->alpha), (float)imaginary_part(g->alpha)};
        float beta[2] = {(float)grd_scalar_double(g->beta), (float)imaginary_part(g->beta)};
        scipy_cblas_cgemm64_(ROW_MAJOR, trans_a, trans_b, m, n, k, alpha, g->a, lda, g->b, ldb, beta, g->c, ldc);
        return true;
    }
    case GRD_COMPLEX128: {
        double alpha[2] = {grd_scalar_double(g->alpha), imaginary_part(g->alpha)};
        double beta[2] = {grd_scalar_double(g->beta), imaginary_part(g->beta)};
        scipy_cblas_zgemm64_(ROW_MAJOR, trans_a, trans_b, m, n, k, alpha, g->a, lda, g->b, ldb, beta, g->c, ldc);
        return true;
    }
    default:
        return false;
    }
}

#else

const char *grd_blas(void)
{
    return "built-in";
}

bool grd_blas_worth(grd_dtype dtype, int64_t m, int64_t n, int64_t k)
{
    (void)dtype, (void)m, (void)n, (void)k;
    return false;
}

bool grd_blas_gemm(grd_dtype dtype, const struct grd_gemm *g)
{
    (void)dtype, (void)g;
    return false;
}

#endif
