/* Computes matrix_power, multi_dot (in the cheapest order), and the iteration that finds a basis for low-rank decompositions. All three compute
 * products of several matrices by calls of other operators. Schema: schema/chains.toml. */
#include <math.h>
#include <string.h>

#include "base/object.h"
#include "gen/uses/op/matrix_chains.h"
#include "core/dtype.h"
#include "core/tensor.h"
#include "op/formula.h"
#include "op/matrix_batch.h"

/* ---- Powers ------------------------------------------------------------------------------------------------------------------------------ */

grd_tensor *op_linalg_matrix_power(grd_tensor *self, int64_t n)
{
    if (!grd_decomposition_check_square(self, "linalg.matrix_power"))
        return grd_failed;
    if (n == 0) {
        grd_tensor *identity = grd_eye(grd_size_from_end(self, 1), .dtype = (grd_dtype)self->dtype, .device = grd_device_of(self));
        /* Copying into a clone of self keeps the dependence on self, so that backward gives zeros instead of an error. */
        return grd_copy_(grd_clone(self, .memory_format = "contiguous"), identity);
    }
    if (n == 1)
        return grd_clone(self, .memory_format = "contiguous");
    grd_tensor *power = n < 0 ? grd_linalg_inv(self) : self, *result = NULL;
    for (uint64_t bits = n < 0 ? -(uint64_t)n : (uint64_t)n;; power = grd_matmul(power, power)) {
        if (bits % 2 == 1)
            result = result == NULL ? power : grd_matmul(result, power);
        bits /= 2;
        if (bits == 0 || grd_pending())
            return grd_pending() ? grd_failed : result;
    }
}

/* ---- Chains ------------------------------------------------------------------------------------------------------------------------------ */

/* Describes the cheapest way to compute the product of a range of adjacent matrices: the product of the matrices up to number `split` is
 * multiplied by the product of the matrices after `split`. */
struct part {
    double cost; /* number of multiplications of elements in the cheapest order */
    int64_t split;
};

/* The n matrices of a product, in order. parts[first * n + last] describes how the product of the matrices `first` to `last` is computed. */
struct chain {
    grd_tensor *const *matrices;
    int64_t n;
    struct part *parts;
};

/* Returns the cheapest way to compute the product of the matrices `first` to `last`. The entries of c->parts for all shorter ranges of matrices must
 * be filled already. */
static struct part divided(const struct chain *c, int64_t first, int64_t last)
{
    const double outer = (double)c->matrices[first]->sizes[0] * (double)c->matrices[last]->sizes[1];
    struct part least = {.cost = INFINITY, .split = first};
    for (int64_t k = first; k < last; k++) {
        const double before = c->parts[first * c->n + k].cost, after = c->parts[(k + 1) * c->n + last].cost;
        const double cost = before + after + outer * (double)c->matrices[k]->sizes[1];
        if (cost < least.cost)
            least = (struct part){cost, k};
    }
    return least;
}

/* Stores in c->parts the cheapest way to compute the product of each range of adjacent matrices, shortest ranges first. Returns false if memory
 * runs out. */
static bool find_order(struct chain *c)
{
    c->parts = grd_pool_array(c->n * c->n, sizeof *c->parts);
    if (c->parts == NULL)
        return false;
    for (int64_t length = 0; length < c->n; length++)
        for (int64_t first = 0; first + length < c->n; first++)
            c->parts[first * c->n + first + length] = length == 0 ? (struct part){0} : divided(c, first, first + length);
    return true;
}

/* Returns the product of the matrices `first` to `last` in the cheapest order. */
static grd_tensor *product_of(const struct chain *c, int64_t first, int64_t last)
{
    if (first == last || grd_pending())
        return c->matrices[first];
    const int64_t k = c->parts[first * c->n + last].split;
    return grd_mm(product_of(c, first, k), product_of(c, k + 1, last));
}

static bool check_matrix(const grd_tensor *t, int64_t i, int64_t n)
{
    if (i > 0 && i < n - 1)
        return t->ndim == 2 || grd_raise(GRD_ERROR_RUNTIME, "multi_dot(): tensor %lld must be 2D but got %dD", (long long)i, (int)t->ndim);
    return t->ndim == 1 || t->ndim == 2 ||
           grd_raise(GRD_ERROR_RUNTIME, "multi_dot(): the %s tensor must be 1D or 2D but got %dD", i == 0 ? "first" : "last", (int)t->ndim);
}

/* Raises RuntimeError if the dtype of matrix i differs from the dtype of matrix 0, or if matrix i does not have as many rows as matrix i - 1 has
 * columns. */
static bool check_pair(grd_tensor *const *matrices, int64_t i)
{
    const grd_tensor *first = matrices[0], *before = matrices[i - 1], *t = matrices[i];
    if (t->dtype != first->dtype)
        return grd_raise(GRD_ERROR_RUNTIME, "multi_dot(): all tensors must have be the same dtype but tensor 0 is %s and tensor %lld %s",
                         grd_dtype_c_name((grd_dtype)first->dtype), (long long)i, grd_dtype_c_name((grd_dtype)t->dtype));
    return before->sizes[1] == t->sizes[0] ||
           grd_raise(GRD_ERROR_RUNTIME, "multi_dot(): tensors %lld and %lld with shapes %s and %s cannot be multiplied", (long long)(i - 1),
                     (long long)i, grd_list_text(grd_sizes(before)), grd_list_text(grd_sizes(t)));
}

grd_tensor *op_linalg_multi_dot(grd_tensors tensors)
{
    const int64_t n = tensors.n;
    if (n < 2)
        return grd_fail(GRD_ERROR_RUNTIME, "multi_dot(): expected at least 2 tensors but got %lld", (long long)n);
    grd_tensor **matrices = grd_pool_array(n, sizeof *matrices);
    for (int64_t i = 0; i < n; i++)
        if (matrices == NULL || !check_matrix(tensors.data[i], i, n))
            return grd_failed;
    memcpy(matrices, tensors.data, (size_t)n * sizeof *matrices);
    const grd_tensor *row = matrices[0], *column = matrices[n - 1];
    int64_t sizes[2], ndim = 0;
    if (row->ndim == 2)
        sizes[ndim++] = row->sizes[0];
    if (column->ndim == 2)
        sizes[ndim++] = column->sizes[1];
    matrices[0] = row->ndim == 1 ? grd_unsqueeze(matrices[0], 0) : matrices[0];
    matrices[n - 1] = column->ndim == 1 ? grd_unsqueeze(matrices[n - 1], 1) : matrices[n - 1];
    for (int64_t i = 1; i < n && !grd_pending(); i++)
        check_pair(matrices, i);
    struct chain c = {.matrices = matrices, .n = n};
    if (grd_pending() || !find_order(&c))
        return grd_failed;
    return grd_view(product_of(&c, 0, n - 1), grd_dims_from(sizes, ndim));
}

grd_tensor *op_chain_matmul(grd_tensors matrices)
{
    for (int64_t i = 0; i < matrices.n; i++)
        if (matrices.data[i]->ndim != 2)
            return grd_fail(GRD_ERROR_RUNTIME, "Tensor dimension is %d, expected 2 instead.", (int)matrices.data[i]->ndim);
    if (matrices.n == 0)
        return grd_fail(GRD_ERROR_RUNTIME, "chain_matmul(): Expected one or more matrices");
    return matrices.n == 1 ? grd_clone(matrices.data[0]) : grd_linalg_multi_dot(matrices);
}

/* ---- Low rank ---------------------------------------------------------------------------------------------------------------------------- */

/* Returns an orthonormal basis of the columns of (A - M) x, or of (A - M)^H x if `adjoint`. M may be NULL and then counts as 0. */
static grd_tensor *basis_of(grd_tensor *A, grd_tensor *M, grd_tensor *x, bool adjoint)
{
    grd_tensor *product = grd_matmul(adjoint ? grd_conj_physical(grd_transpose(A, -2, -1)) : A, x);
    if (M != NULL)
        product = grd_sub(product, grd_matmul(adjoint ? grd_conj_physical(grd_transpose(M, -2, -1)) : M, x));
    return grd_linalg_qr(product).Q;
}

grd_tensor *op_hidden_range_basis(grd_tensor *A, grd_tensor *M, grd_tensor *start, int64_t niter)
{
    grd_tensor *basis = basis_of(A, M, start, false);
    for (int64_t i = 0; i < niter && !grd_pending(); i++)
        basis = basis_of(A, M, basis_of(A, M, basis, true), false);
    return basis;
}
