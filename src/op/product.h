/* Running a matrix product, or a batch of them, over strided memory: which provider and kernel, cut where, on how many threads.
 * Shapes, dtypes and results are the operators' (matmul.c). The bits depend on shapes and strides alone. */
#ifndef GRD_OP_PRODUCT_H
#define GRD_OP_PRODUCT_H

#include <stdbool.h>

#include "kernel/gemm.h"
#include "kernel/table.h"
#include "op/plan.h"

struct grd_product {
    struct grd_gemm g;                        /* the product of the first matrices of the batch */
    int64_t batch, a_batch, b_batch, c_batch; /* strides in elements */
    grd_dtype dtype;
};

/* Returns the dtype in which products of `dtype` are computed; it has kernels if products of `dtype` exist. */
grd_dtype grd_product_dtype(grd_dtype dtype);
bool grd_product_exists(grd_dtype dtype);

/* Returns the kernel for small products of that size and dtype, or NULL. */
static inline grd_small_gemm_kernel *grd_product_small(grd_dtype dtype, int64_t m, int64_t n, int64_t k)
{
    const struct grd_product_kernels *kernels = grd_kernels->gemm[dtype];
    return kernels != NULL && (uint64_t)(m | n | k) < GRD_SMALL_GEMM_SIDE && m * n * k <= kernels->small_work ? kernels->small : NULL;
}

/* True for 0. With a beta of 0 the previous contents of c are not read. */
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

/* Chooses the provider of a planned product, and the memory for its run. "native" computes every product whose dtype has kernels, "blas" where
 * OpenBLAS is there and can read the strides, and is taken where it is faster than the kernels of this level. */
bool grd_product_choose(struct grd_plan *p);

/* The sum of x[i] * y[i], strides in elements, written as one element of the dtype. */
struct grd_product_dot {
    grd_dtype dtype;
    int64_t n, x_stride, y_stride;
    const char *x, *y;
    char *sum;
};
size_t grd_product_dot_scratch(int64_t n);
void grd_product_dot(const struct grd_product_dot *dot, char *scratch);

#endif
