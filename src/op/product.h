/* Declares functions that run a matrix product, or a batch of products, on strided memory. They choose the provider (implementation) and the
 * kernel, and divide the work among threads. Shapes, dtypes and results are checked and planned by the operators (matmul.c). For given elements,
 * the bits of a result depend only on shapes and strides, not on the number of threads. */
#ifndef GRD_OP_PRODUCT_H
#define GRD_OP_PRODUCT_H

#include <stdbool.h>

#include "kernel/gemm.h"
#include "kernel/table.h"
#include "op/plan.h"

struct grd_product {
    struct grd_gemm g; /* the product of the first matrices of the batch: their sizes, strides and data */
    /* batch: number of matrices. a_batch, b_batch, c_batch: elements from the start of one matrix of a, b or c to the start of the next one. */
    int64_t batch, a_batch, b_batch, c_batch;
    grd_dtype dtype;
};

/* Returns the dtype in which products of `dtype` are computed. If products of `dtype` exist, the returned dtype has kernels. */
grd_dtype grd_product_dtype(grd_dtype dtype);
/* True if matrices of the dtype can be multiplied. */
bool grd_product_exists(grd_dtype dtype);

/* Returns the kernel for small products of the given sizes and dtype. Returns NULL if the product is too large or the dtype has no such kernel. */
static inline grd_small_gemm_kernel *grd_product_small(grd_dtype dtype, int64_t m, int64_t n, int64_t k)
{
    const struct grd_product_kernels *kernels = grd_kernels->gemm[dtype];
    return kernels != NULL && (uint64_t)(m | n | k) < GRD_SMALL_GEMM_SIDE && m * n * k <= kernels->small_work ? kernels->small : NULL;
}

/* True if the scalar is 0. Called for beta in beta * c + alpha * a @ b: if beta is 0, the previous contents of c are not read, so they may be
 * uninitialised or NaN. */
static inline bool grd_scalar_is_zero(grd_scalar s)
{
    return s.kind == GRD_SCALAR_FLOAT || s.kind == GRD_SCALAR_COMPLEX ? s.v.c.re == 0 && s.v.c.im == 0 : s.v.i == 0;
}

static inline bool grd_scalar_is_one(grd_scalar s)
{
    return s.kind == GRD_SCALAR_INT ? s.v.i == 1 : s.kind == GRD_SCALAR_FLOAT && s.v.c.re == 1;
}

static inline struct grd_product *grd_product_of(const struct grd_plan *p)
{
    _Static_assert(sizeof(struct grd_product) <= GRD_PLAN_STATE, "room in the plan");
    return (struct grd_product *)(uintptr_t)p->state;
}

/* Chooses the provider (implementation) of a planned product, and sets the scratch memory for its run. "blas" (OpenBLAS) is chosen if it can read the
 * operands' strides and is faster than the kernels of the current instruction set level, otherwise "native". */
bool grd_product_choose(struct grd_plan *p);

/* A dot product: the sum of x[i] * y[i]. Strides are in elements. The sum is written as one element of the dtype. */
struct grd_product_dot {
    grd_dtype dtype;
    int64_t n, x_stride, y_stride;
    const char *x, *y;
    char *sum;
};
/* Returns the bytes of scratch memory that grd_product_dot() needs for n elements. */
size_t grd_product_dot_scratch(int64_t n);
/* Computes a dot product and writes it to dot->sum. `scratch` has grd_product_dot_scratch(dot->n) bytes. */
void grd_product_dot(const struct grd_product_dot *dot, char *scratch);

#endif
