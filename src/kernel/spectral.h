/* Declares kernels that compute eigenvalues and eigenvectors of Hermitian matrices and singular value decompositions. The matrices of a batch follow
 * each other in memory, column-major or, if `by_rows`, row-major. */
#ifndef GRD_KERNEL_SPECTRAL_H
#define GRD_KERNEL_SPECTRAL_H

#include <stdbool.h>
#include <stdint.h>

/* The limit on the size of a matrix for eigh_lanes and svd_lanes: its larger side times `parts` (real numbers per element). */
enum { GRD_LANES_SIDE = 32 };

/* The arguments of eigh, which solves A V = V diag(w) for Hermitian n x n matrices A. Only the lower triangle of A is read. w is real and
 * ascending. */
struct grd_eigh {
    int64_t n, parts; /* parts: real numbers per element, 1 or 2 (complex) */
    bool by_rows;     /* the matrices in `a` are row-major; only for eigh_lanes */
    const void *a;
    void *ret_w, *ret_v; /* ret_v is NULL if only eigenvalues are wanted */
    int32_t *ret_info;   /* 0, or n - 1 if the matrix has an infinity or NaN; ret_w and ret_v are then NaN */
};

/* The arguments of svd, which decomposes m x n matrices as A = U diag(s) Vh. s is real and descending; U has `columns` orthonormal columns and Vh has
 * `rows` orthonormal rows. */
struct grd_svd {
    /* m, n: rows and columns of A. columns: columns of U. rows: rows of Vh. parts: real numbers per element, 1 or 2 (complex). */
    int64_t m, n, columns, rows, parts;
    bool by_rows; /* the matrices in `a` are row-major; only for svd_lanes */
    const void *a;
    void *ret_s, *ret_u, *ret_vh; /* ret_u is NULL if only singular values are wanted */
    /* 0, or negative if the matrix has an infinity or NaN; ret_s is then NaN, and ret_u and ret_vh are undefined */
    int32_t *ret_info;
};

/* The kernels of one dtype for eigenvalues of Hermitian matrices and for singular values. */
struct grd_spectral_row {
    int lanes; /* the number of matrices that eigh_lanes and svd_lanes compute at once */
    /* The four functions below decompose each of `count` matrices on its own. `work` is scratch memory of grd_eigh_work or grd_svd_work elements;
     * eigh_lanes and svd_lanes need `lanes` times as many. eigh_lanes and svd_lanes take only matrices whose larger side times `parts` is at most
     * GRD_LANES_SIDE. Both are NULL for complex dtypes, because the kernels of the real dtype compute complex matrices too (parts = 2). */
    void (*eigh)(const struct grd_eigh *e, int64_t count, void *work);
    void (*eigh_lanes)(const struct grd_eigh *e, int64_t count, void *work);
    void (*svd)(const struct grd_svd *s, int64_t count, void *work);
    void (*svd_lanes)(const struct grd_svd *s, int64_t count, void *work);
    /* True if all elements of an m x n matrix, or of its lower triangle if `lower`, are finite. */
    bool (*is_finite)(int64_t m, int64_t n, bool lower, const void *a);
};

/* Returns the number of elements of scratch memory that eigh needs for one matrix. */
static inline double grd_eigh_work(int64_t n)
{
    return 2.0 * (double)n * (double)n;
}

/* Returns the number of elements of scratch memory that svd needs for one matrix. */
static inline double grd_svd_work(int64_t m, int64_t n)
{
    const double tall = (double)(m > n ? m : n), k = (double)(m > n ? n : m);
    return 2 * tall * k + 2 * k * k + 2 * tall + tall * tall;
}

#endif
