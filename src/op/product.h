/* Running a matrix product, or a batch of them, over strided memory: which kernel, cut where, on how many threads.
 * Shapes, dtypes and results are the operators' (linalg.c). The bits depend on shapes and strides alone. */
#ifndef GRD_OP_PRODUCT_H
#define GRD_OP_PRODUCT_H

#include <stdbool.h>

#include "kernel/gemm.h"
#include "kernel/table.h"

struct grd_product {
    struct grd_gemm g;                        /* of the first matrices of the batch */
    int64_t batch, a_batch, b_batch, c_batch; /* strides in elements */
    grd_dtype dtype;
};

bool grd_product_exists(grd_dtype dtype);

/* The kernel for products of that size, where they are small and the dtype has one; otherwise NULL. */
static inline grd_small_gemm_kernel *grd_product_small(grd_dtype dtype, int64_t m, int64_t n, int64_t k)
{
    const struct grd_product_kernels *kernels = grd_kernels->gemm->of[dtype];
    return kernels != NULL && (uint64_t)(m | n | k) < GRD_SMALL_GEMM_SIDE && m * n * k <= kernels->small_work ? kernels->small : NULL;
}

/* A beta of zero: what c held is not read. */
static inline bool grd_scalar_is_zero(grd_scalar s)
{
    return s.kind == GRD_SCALAR_FLOAT || s.kind == GRD_SCALAR_COMPLEX ? s.v.c.re == 0 && s.v.c.im == 0 : s.v.i == 0;
}

static inline bool grd_scalar_is_one(grd_scalar s)
{
    return s.kind == GRD_SCALAR_INT ? s.v.i == 1 : s.kind == GRD_SCALAR_FLOAT && s.v.c.re == 1;
}

/* Memory for operands packed and, where the dtype is not computed in itself, for sums. No block: they are read as they lie. */
struct grd_product_memory {
    void *block;
    size_t size;
};

/* Takes the memory that running `p`, whose result is not empty, needs; false when there is none. */
bool grd_product_prepare(const struct grd_product *p, struct grd_product_memory *ret_memory);
/* Runs it and gives the memory back. */
void grd_product_run(const struct grd_product *p, struct grd_product_memory memory);
void grd_product_release(struct grd_product_memory memory);

/* The sum of x[i] * y[i], strides in elements, written as one element of the dtype. False when there is no memory. */
bool grd_product_dot(grd_dtype dtype, int64_t n, const char *x, int64_t x_stride, const char *y, int64_t y_stride, char *ret_sum);

#endif
