/* Eigenvalues and singular values of the matrices of a batch, per dtype. Matrices lie one after the other, column by column, or row by row if `by_rows`. */
#ifndef GRD_KERNEL_SPECTRAL_H
#define GRD_KERNEL_SPECTRAL_H

#include <stdbool.h>
#include <stdint.h>

/* Largest side, in parts of elements, of the matrices that the kernels in lanes take. */
enum { GRD_LANES_SIDE = 32 };

/* A V = V diag(w), with real w in ascending order, of Hermitian n x n matrices, whose lower triangle is read. */
struct grd_eigh {
    int64_t n, parts; /* of an element: 1, or 2 if it is complex */
    bool by_rows;     /* the matrices that are read lie so: for kernels in lanes alone */
    const void *a;
    void *ret_w, *ret_v; /* ret_v NULL: the values alone */
    int32_t *ret_info;   /* 0, or positive: w and V are NaN, since an element is not finite */
};

/* A = U diag(s) Vh, with real s in descending order, of m x n matrices: U has `columns` columns, Vh has `rows` rows, all of them orthonormal. */
struct grd_svd {
    int64_t m, n, columns, rows, parts;
    bool by_rows; /* both as above */
    const void *a;
    void *ret_s, *ret_u, *ret_vh; /* ret_u NULL: the values alone */
    int32_t *ret_info;            /* 0, or negative: s is NaN, and U and Vh are not defined, since an element is not finite */
};

/* The elements of a matrix of m rows and n columns that differ from others by the loops that read them. */
struct grd_spectral_row {
    int lanes; /* matrices that the kernels in lanes compute at once */
    /* Computes `count` matrices. `work` has grd_eigh_work or grd_svd_work elements for one matrix, and in lanes so many for each of them. Kernels in
     * lanes are NULL for complex dtypes, which those of their parts' dtype serve; a side times `parts` is at most GRD_LANES_SIDE. A matrix gives the
     * same bits whatever the others are. */
    void (*eigh)(const struct grd_eigh *e, int64_t count, void *work);
    void (*eigh_lanes)(const struct grd_eigh *e, int64_t count, void *work);
    void (*svd)(const struct grd_svd *s, int64_t count, void *work);
    void (*svd_lanes)(const struct grd_svd *s, int64_t count, void *work);
    /* True if all elements of a matrix are finite, of its lower triangle if `lower`. */
    bool (*is_finite)(int64_t m, int64_t n, bool lower, const void *a);
};

static inline double grd_eigh_work(int64_t n)
{
    return 2.0 * (double)n * (double)n;
}

static inline double grd_svd_work(int64_t m, int64_t n)
{
    const double tall = (double)(m > n ? m : n), k = (double)(m > n ? n : m);
    return 2 * tall * k + 2 * k * k + 2 * tall + tall * tall;
}

#endif
