/* Eigenvalues and singular values by LAPACK, one matrix at a time, over OpenBLAS. For spectral.c alone. */
#ifndef GRD_OP_SPECTRAL_LAPACK_H
#define GRD_OP_SPECTRAL_LAPACK_H

#include <stdbool.h>
#include <stddef.h>

#include "gradus/types.h"
#include "kernel/spectral.h"

/* The memory of a call: copies of matrices, and as much workspace as LAPACK asks for, in elements of the dtype, real numbers and integers. */
struct grd_lapack_work {
    int64_t copies, elements, reals, integers;
    size_t bytes; /* of all */
};

/* Asks for the workspace of matrices of such sizes; false if there is no such routine. What the pointers of e and s lead to is not read. */
bool grd_lapack_eigh_work(grd_dtype dtype, const struct grd_eigh *e, struct grd_lapack_work *ret_work);
bool grd_lapack_svd_work(grd_dtype dtype, const struct grd_svd *s, struct grd_lapack_work *ret_work);
/* Computes one matrix, all of whose elements are finite. False, with nothing written, where OpenBLAS has no memory for the call. */
bool grd_lapack_eigh(grd_dtype dtype, const struct grd_eigh *e, const struct grd_lapack_work *w, char *work);
bool grd_lapack_svd(grd_dtype dtype, const struct grd_svd *s, const struct grd_lapack_work *w, char *work);

#endif
