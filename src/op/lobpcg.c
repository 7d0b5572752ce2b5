/* Computes a few eigenvalues of large symmetric matrices (lobpcg) by the locally optimal block preconditioned conjugate gradient method (A. Knyazev,
 * SIAM Journal on Scientific Computing 23, 2001). lobpcg is composed of other operators and processes all matrices of a batch at once. Schema:
 * schema/spectral.toml. */
#include <math.h>

#include "base/object.h"
#include "gen/uses/op/lobpcg.h"
#include "core/dtype.h"
#include "core/shape.h"
#include "core/tensor.h"
#include "op/formula.h"
#include "op/matrix_batch.h"

/* Returns the eigenvalues and eigenvectors of Q^T A Q. The largest eigenvalue comes first if `largest`, otherwise the smallest. Q times such an
 * eigenvector approximates an eigenvector of A. */
static struct grd_linalg_eigh_result ritz(grd_tensor *A, grd_tensor *Q, bool largest)
{
    struct grd_linalg_eigh_result found = grd_linalg_eigh(grd_matmul(grd_transpose(Q, -2, -1), grd_matmul(A, Q)));
    if (largest) {
        found.eigenvalues = grd_flip(found.eigenvalues, grd_dims(-1));
        found.eigenvectors = grd_flip(found.eigenvectors, grd_dims(-1));
    }
    return found;
}

/* Returns the Euclidean norm of each column of the matrices x. */
static grd_tensor *column_norms(grd_tensor *x)
{
    return grd_norm(x, .dim = grd_dims(-2));
}

static grd_tensor *matrix_norm(grd_tensor *x)
{
    return grd_squeeze(grd_norm(x, .dim = grd_dims(-2, -1), .keepdim = true), .dim = grd_dims(-1));
}

/* True if the residuals of the first k eigenvectors are small relative to A, whose norm is about `size`. Also true if the values cannot be read, e.g.
 * on the meta device. */
static bool has_converged(grd_tensor *residual, grd_tensor *E, grd_tensor *size, int64_t k, double tol)
{
    grd_tensor *errors = grd_div(column_norms(residual), grd_add(size, grd_abs(E)));
    double least, largest;
    return !grd_composite_extremes(grd_slice(errors, .dim = -1, .end = grd_int(k)), &least, &largest) || largest < tol;
}

void op_hidden_lobpcg(grd_tensor *A, grd_tensor *X, grd_tensor *iK, int64_t k, int64_t niter, double tol, bool largest, grd_tensor **ret)
{
    const int64_t n = grd_size_from_end(X, 1);
    grd_tensor *size = grd_div(matrix_norm(grd_matmul(A, X)), matrix_norm(X)), *basis = grd_linalg_qr(X).Q, *E = NULL;
    for (int64_t left = niter;; left--) {
        const struct grd_linalg_eigh_result found = ritz(A, basis, largest);
        grd_tensor *chosen = grd_slice(found.eigenvectors, .dim = -1, .end = grd_int(n));
        E = grd_slice(found.eigenvalues, .dim = -1, .end = grd_int(n));
        X = grd_matmul(basis, chosen);
        grd_tensor *residual = grd_sub(grd_matmul(A, X), grd_mul(X, grd_unsqueeze(E, -2)));
        if (grd_pending() || left == 1 || has_converged(residual, E, size, k, tol))
            break;
        if (iK != NULL)
            residual = grd_matmul(iK, residual);
        /* The first n columns of the basis span the previous X. `step` is the part of the new X that comes from the other columns. */
        grd_tensor *step = grd_matmul(grd_slice(basis, .dim = -1, .start = grd_int(n)), grd_slice(chosen, .dim = -2, .start = grd_int(n)));
        grd_tensor *const parts[] = {X, residual, step};
        basis = grd_linalg_qr(grd_cat(grd_tensors_from(parts, 3), .dim = -1)).Q;
    }
    ret[0] = grd_slice(E, .dim = -1, .end = grd_int(k));
    ret[1] = grd_slice(X, .dim = -1, .end = grd_int(k));
}

bool grd_lobpcg_check(const grd_tensor *A, const grd_tensor *B, const grd_tensor *X)
{
    if (!grd_check_matrices(A, "A", "lobpcg"))
        return false;
    if (grd_size_from_end(A, 1) != grd_size_from_end(A, 2))
        return grd_raise(GRD_ERROR_RUNTIME, "A must be square, got shape %s", grd_list_text(grd_sizes(A)));
    if (A->dtype != GRD_FLOAT32 && A->dtype != GRD_FLOAT64)
        return grd_raise(GRD_ERROR_RUNTIME, "lobpcg: expected A of dtype float32 or float64, but got %s",
                         grd_dtype_type_name((grd_dtype)A->dtype));
    if (B != NULL && !grd_dims_equal(grd_sizes(A), grd_sizes(B)))
        return grd_raise(GRD_ERROR_RUNTIME, "A and B must have same shape, got %s vs %s", grd_list_text(grd_sizes(A)),
                         grd_list_text(grd_sizes(B)));
    return X == NULL ||
           (X->ndim == A->ndim && grd_dims_equal(grd_dims_from(X->sizes, X->ndim - 1), grd_dims_from(A->sizes, A->ndim - 1))) ||
           grd_raise(GRD_ERROR_RUNTIME, "X shape mismatch: got %s for A of shape %s", grd_list_text(grd_sizes(X)),
                     grd_list_text(grd_sizes(A)));
}

grd_dims grd_lobpcg_sizes(grd_dims sizes, int64_t n)
{
    int64_t *start = grd_pool_array(sizes.n, sizeof *start);
    for (int64_t i = 0; start != NULL && i < sizes.n; i++)
        start[i] = i < sizes.n - 1 ? sizes.data[i] : n;
    return grd_dims_from(start, start != NULL ? sizes.n : 0);
}

double grd_lobpcg_tolerance(const grd_tensor *A)
{
    return sqrt(grd_dtype_epsilon((grd_dtype)A->dtype));
}
