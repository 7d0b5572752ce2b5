/* Computes matrix products with OpenBLAS, each on the calling thread only. */
#include "op/blas.h"

#include "base/cpu.h"
#include "core/scalar.h"
#include "core/tensor.h"
#include "op/openblas.h"

/* The limits in this function were measured on one thread of a Cascade Lake against OpenBLAS 0.3.34. At instruction-set levels v4 (512-bit vectors)
 * and v3 (256 bits) our float32 and float64 kernels are faster for matrices of 128 and 256 rows and columns. At v4 they are at least as fast as
 * OpenBLAS up to 2,048. At v3 they are 5 to 10 % slower from 512 on. OpenBLAS would still gain no time there, because it would be called for parts of
 * the product and would pack its operands once per part. Below v3 (128 bits) our kernels are slower from 16 rows and columns on. Our complex kernels
 * are slower from about 128 on (estimated), except where OpenBLAS has narrower vectors than our kernels. Products in which m, n or k is below 16
 * never gain from OpenBLAS. */
bool grd_blas_worth(grd_dtype dtype, int64_t m, int64_t n, int64_t k)
{
    if (m < 16 || n < 16 || k < 16)
        return false;
    const enum grd_isa_level level = grd_cpu_level();
    const bool real = dtype == GRD_FLOAT32 || dtype == GRD_FLOAT64;
    if (level >= GRD_ISA_V3 && real)
        return false;
    double side = level >= GRD_ISA_V3 ? 128 : 16;
    if ((double)m * (double)n * (double)k < side * side * side)
        return false;
    const struct grd_openblas *blas = grd_openblas();
    return blas != NULL && (level < GRD_ISA_V4 || blas->has_wide_vectors);
}

/* The CBLAS arguments for one row-major operand: `trans` (here `transposition`) and `ld` (here `leading`, the leading dimension). */
struct operand {
    int transposition;
    int64_t leading;
};

/* Writes to *ret_operand the CBLAS arguments for a (rows, columns) matrix with strides `row` and `column` in elements. Returns false if CBLAS
 * cannot read the matrix. CBLAS needs a stride of 1 in one dimension. The other stride must be at least the size of this dimension. */
static bool read_operand(int64_t rows, int64_t columns, int64_t row, int64_t column, struct operand *ret_operand)
{
    if (column == 1 && (rows == 1 || row >= columns)) {
        *ret_operand = (struct operand){GRD_BLAS_NO_TRANSPOSE, row > columns ? row : columns};
        return true;
    }
    if (row == 1 && (columns == 1 || column >= rows)) {
        *ret_operand = (struct operand){GRD_BLAS_TRANSPOSE, column > rows ? column : rows};
        return true;
    }
    return false;
}

static void multiply(const struct grd_openblas *blas, grd_dtype dtype, const struct grd_gemm *g, const struct operand *a,
                     const struct operand *b, int64_t ldc)
{
    const int64_t m = g->m, n = g->n, k = g->k;
    switch (dtype) {
    case GRD_FLOAT32:
        blas->sgemm(GRD_BLAS_ROW_MAJOR, a->transposition, b->transposition, m, n, k, (float)grd_scalar_double(g->alpha),
                    (const float *)g->a, a->leading, (const float *)g->b, b->leading, (float)grd_scalar_double(g->beta), (float *)g->c,
                    ldc);
        return;
    case GRD_FLOAT64:
        blas->dgemm(GRD_BLAS_ROW_MAJOR, a->transposition, b->transposition, m, n, k, grd_scalar_double(g->alpha), (const double *)g->a,
                    a->leading, (const double *)g->b, b->leading, grd_scalar_double(g->beta), (double *)g->c, ldc);
        return;
    case GRD_COMPLEX64: {
        float alpha[2] = {(float)grd_scalar_double(g->alpha), (float)grd_scalar_imaginary(g->alpha)};
        float beta[2] = {(float)grd_scalar_double(g->beta), (float)grd_scalar_imaginary(g->beta)};
        blas->cgemm(GRD_BLAS_ROW_MAJOR, a->transposition, b->transposition, m, n, k, alpha, g->a, a->leading, g->b, b->leading, beta, g->c,
                    ldc);
        return;
    }
    default: {
        double alpha[2] = {grd_scalar_double(g->alpha), grd_scalar_imaginary(g->alpha)};
        double beta[2] = {grd_scalar_double(g->beta), grd_scalar_imaginary(g->beta)};
        blas->zgemm(GRD_BLAS_ROW_MAJOR, a->transposition, b->transposition, m, n, k, alpha, g->a, a->leading, g->b, b->leading, beta, g->c,
                    ldc);
        return;
    }
    }
}

static bool read_operands(const struct grd_gemm *g, struct operand *ret_a, struct operand *ret_b, struct operand *ret_c)
{
    return read_operand(g->m, g->k, g->a_row, g->a_col, ret_a) && read_operand(g->k, g->n, g->b_row, g->b_col, ret_b) &&
           read_operand(g->m, g->n, g->c_row, g->c_col, ret_c) && ret_c->transposition == GRD_BLAS_NO_TRANSPOSE;
}

bool grd_blas_serves(grd_dtype dtype, const struct grd_gemm *g)
{
    struct operand a, b, c;
    const bool has_call = dtype == GRD_FLOAT32 || dtype == GRD_FLOAT64 || dtype == GRD_COMPLEX64 || dtype == GRD_COMPLEX128;
    return has_call && g->m > 0 && g->n > 0 && g->k > 0 && read_operands(g, &a, &b, &c) && grd_openblas() != NULL;
}

bool grd_blas_gemm(grd_dtype dtype, const struct grd_gemm *g)
{
    struct operand a, b, c;
    if (!read_operands(g, &a, &b, &c) || !grd_openblas_begin())
        return false;
    multiply(grd_openblas(), dtype, g, &a, &b, c.leading);
    grd_openblas_end();
    return true;
}
