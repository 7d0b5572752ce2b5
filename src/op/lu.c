/* Computes LU decompositions and, from them, solutions of equations, inverses and determinants. Small matrices use the algorithms of kernel/cpu/lu.c,
 * large ones LAPACK. Schema: schema/lu.toml.
 *
 * Invariant: the bits do not depend on the number of threads. Each matrix is computed by one task, or, if it is large, in steps that depend only on
 * the sizes of the matrix (op/lapack_panels.c). A small matrix has the same bits whether it is computed alone or together with others in vector
 * lanes. */
#include "kernel/lu.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/integer.h"
#include "base/parallel.h"
#include "gen/uses/op/lu.h"
#include "core/dtype.h"
#include "core/shape.h"
#include "core/tensor.h"
#include "kernel/table.h"
#include "op/formula.h"
#include "op/lapack.h"
#include "op/lapack_panels.h"
#include "op/matrix_batch.h"

static const struct grd_lu_row *kernels_of(const grd_tensor *x)
{
    return grd_kernels->lu[x->dtype];
}

/* ---- Decompositions ------------------------------------------------------------------------------------------------------------------------ */

/* State that the plan functions of the LU operators pass to their run functions. */
struct factors {
    int64_t k; /* min(m, n); must be the first member, because grd_plan_lapack() reads it */
    /* small: many matrices are decomposed at once, one per vector lane; by_rows: the matrices that are read are row-major. */
    bool small, by_rows;
};

static struct factors *factors_of(const struct grd_plan *p)
{
    return (struct factors *)(uintptr_t)p->state;
}

/* True if the matrices are square and small, and kernels for their dtype compute many matrices at once, one matrix per vector lane. */
static bool fits_lanes(const grd_tensor *A)
{
    const int64_t n = grd_size_from_end(A, 1);
    return kernels_of(A) != NULL && kernels_of(A)->factor_many != NULL && grd_size_from_end(A, 2) == n && n <= GRD_SMALL_MATRIX_SIDE;
}

/* True if autograd or forward mode may need a derivative of a result computed from t. */
static bool is_differentiated(const grd_tensor *t)
{
    return grd_composite_is_recorded(t) || (grd_keys_of(grd_physical(t)) >> GRD_KEY_FORWARD & 1) != 0;
}

/* True if A is a batch of small matrices and a kernel decomposes many of them at once. A single matrix is left to the kernel for one matrix, which is
 * faster and gives the same bits. */
static bool is_small(const grd_tensor *A)
{
    return fits_lanes(A) && grd_matrix_count(A) > 1;
}

bool plan_hidden_lu_factor(struct grd_plan *p, grd_tensor *A)
{
    struct factors *f = factors_of(p);
    if (A->ndim < 2)
        return grd_raise(GRD_ERROR_RUNTIME, "torch.lu_factor: Expected tensor with 2 or more dimensions. Got size: %s instead",
                         grd_list_text(grd_sizes(A)));
    if (kernels_of(A) == NULL)
        return grd_raise_no_kernel("lu", (grd_dtype)A->dtype);
    const int64_t m = grd_size_from_end(A, 2), n = grd_size_from_end(A, 1), k = grd_least(m, n);
    int64_t sizes[GRD_MAX_DIMS];
    memcpy(sizes, A->sizes, (size_t)(A->ndim - 2) * sizeof *sizes);
    sizes[A->ndim - 2] = k;
    grd_plan_scratch(p, k > GRD_LAPACK_SIDE ? (double)grd_matrix_count(A) * (double)k * sizeof(int64_t) : 0);
    f->small = is_small(A);
    return (f->small ? grd_plan_reads_matrices(p, A, &f->by_rows) : grd_plan_starts_from(p, A)) &&
           grd_plan_columns(p, grd_batch_of(A), m, n, (grd_dtype)A->dtype) &&
           grd_plan_result(p, grd_dims_from(sizes, A->ndim - 1), GRD_INT32) && grd_plan_result(p, grd_batch_of(A), GRD_INT32) &&
           grd_plan_lapack(p, k) && !grd_pending();
}

/* Decomposes matrix i with LAPACK. Returns false if OpenBLAS is not available; the matrix is then unchanged. */
static bool factor_with_lapack(const struct grd_plan *p, int64_t i)
{
    const grd_tensor *a = p->results[0];
    const int64_t m = grd_size_from_end(a, 2), n = grd_size_from_end(a, 1), k = grd_least(m, n);
    int64_t *wide = (int64_t *)p->scratch + i * k;
    int32_t *pivots = (int32_t *)p->results[1]->data + i * k;
    if (!grd_lapack_lu((grd_dtype)a->dtype, m, n, grd_matrix_at(a, i), wide, (int32_t *)p->results[2]->data + i))
        return false;
    grd_cast_kernel(GRD_INT64, GRD_INT32)(k, (char *const[]){(char *)pivots, (char *)wide}, (const int64_t[]){4, 8}, NULL);
    return true;
}

static void factor_matrices(int64_t begin, int64_t end, void *context)
{
    const struct grd_plan *p = context;
    const grd_tensor *a = p->results[0];
    const struct grd_lu_row *kernels = kernels_of(a);
    const int64_t m = grd_size_from_end(a, 2), n = grd_size_from_end(a, 1), k = grd_least(m, n);
    int32_t *pivots = (int32_t *)p->results[1]->data, *info = (int32_t *)p->results[2]->data;
    if (factors_of(p)->small)
        kernels->factor_many(&(struct grd_small_elimination){.count = end - begin,
                                                             .n = n,
                                                             .by_rows = factors_of(p)->by_rows,
                                                             .a = grd_matrix_at(p->in[0], begin),
                                                             .ret = grd_matrix_at(a, begin),
                                                             .ret_pivots = pivots + begin * n,
                                                             .ret_info = info + begin});
    else
        for (int64_t i = begin; i < end; i++)
            if (k <= GRD_LAPACK_SIDE || !grd_lapack_is_chosen(p) || !factor_with_lapack(p, i))
                kernels->factor(m, n, grd_matrix_at(a, i), pivots + i * k, info + i);
}

void run_hidden_lu_factor(const struct grd_plan *p, grd_tensor *A)
{
    const int64_t m = grd_size_from_end(A, 2), n = grd_size_from_end(A, 1), k = grd_least(m, n);
    grd_for_matrices(p, k, grd_matrix_count(A), grd_lanes_grain(n, grd_matrix_grain((double)m * (double)n * (double)k / 3)),
                     factor_matrices, (void *)p);
}

/* ---- Pivots ----------------------------------------------------------------------------------------------------------------------------------- */

/* True if all pivots are row numbers from 1 to `rows`, or their values cannot be read. *ret_least is the least pivot. */
static bool pivots_are_in(const grd_tensor *pivots, int64_t rows, double *ret_least)
{
    double largest;
    return !grd_composite_extremes((grd_tensor *)pivots, ret_least, &largest) || (*ret_least >= 1 && largest <= (double)rows);
}

/* Raises RuntimeError if `pivots` is zero-dimensional or has more than `most` pivots per matrix. */
static bool check_pivots(const grd_tensor *pivots, int64_t most, const char *function)
{
    return (pivots->ndim > 0 && grd_size_from_end(pivots, 1) <= most) ||
           grd_raise(GRD_ERROR_RUNTIME, "%s: pivots must be rows of at most %lld numbers, but have sizes %s", function, (long long)most,
                     grd_list_text(grd_sizes(pivots)));
}

/* Raises RuntimeError if LU is not square, or the number of pivots differs from the number of rows of LU. */
static bool check_factors(const grd_tensor *LU, const grd_tensor *pivots, const char *function)
{
    if (!grd_decomposition_check_square(LU, function))
        return false;
    const int64_t n = grd_size_from_end(LU, 1);
    return check_pivots(pivots, n, function) &&
           (grd_size_from_end(pivots, 1) == n ||
            grd_raise(GRD_ERROR_RUNTIME, "%s: Number of pivots per batch should be same as the dimension of the matrix", function));
}

/* Raises RuntimeError if a pivot is not a row number of LU. */
static bool pivots_name_rows(const grd_tensor *LU, const grd_tensor *pivots)
{
    double least;
    return pivots_are_in(pivots, grd_size_from_end(LU, 2), &least) ||
           grd_raise(GRD_ERROR_RUNTIME, "Pivots given to lu_solve must all be %s. Did you properly pass the result of lu_factor?",
                     least < 1 ? "greater or equal to 1" : "smaller or equal to LU.size(-2)");
}

/* ---- Inverses ------------------------------------------------------------------------------------------------------------------------------- */

/* Returns the address of a flag in the plan's state. The flag is true if the small matrices that the plan reads are row-major. */
static bool *by_rows_of(struct grd_plan *p)
{
    return (bool *)p->state;
}

/* Returns the kernel's arguments for the matrices [begin, end) of a; the caller sets the results. */
static struct grd_small_elimination small_elimination(const struct grd_plan *p, const grd_tensor *a, int64_t begin, int64_t end)
{
    return (struct grd_small_elimination){
        .count = end - begin, .n = grd_size_from_end(a, 1), .by_rows = *(const bool *)p->state, .a = grd_matrix_at(a, begin)};
}

/* Returns the number of matrices per task if one matrix takes `share` * n^3 multiplications. */
static int64_t small_grain(const grd_tensor *a, double share)
{
    const double n = (double)grd_size_from_end(a, 1);
    return grd_lanes_grain((int64_t)n, grd_matrix_grain(share * n * n * n));
}

/* Plans to read small square matrices for kernels that process many matrices at once, one matrix per vector lane. Raises an error and returns false
 * if the matrices are not small and square, or there is no such kernel for their dtype. `function` is the caller's name in the error's text. */
static bool plan_small(struct grd_plan *p, grd_tensor *A, const char *function)
{
    return grd_decomposition_check_square(A, function) && (fits_lanes(A) || grd_raise_no_kernel(function, (grd_dtype)A->dtype)) &&
           grd_plan_reads_matrices(p, A, by_rows_of(p));
}

bool plan_hidden_inverse_small(struct grd_plan *p, grd_tensor *A)
{
    if (!plan_small(p, A, "linalg.inv"))
        return false;
    const int64_t n = grd_size_from_end(A, 1);
    return grd_plan_columns(p, grd_batch_of(A), n, n, (grd_dtype)A->dtype) && grd_plan_result(p, grd_batch_of(A), GRD_INT32) &&
           !grd_pending();
}

static void invert_matrices(int64_t begin, int64_t end, void *context)
{
    const struct grd_plan *p = context;
    struct grd_small_elimination s = small_elimination(p, p->in[0], begin, end);
    s.ret = grd_matrix_at(p->results[0], begin);
    s.ret_info = (int32_t *)p->results[1]->data + begin;
    kernels_of(p->in[0])->invert_many(&s);
}

void run_hidden_inverse_small(const struct grd_plan *p, grd_tensor *A)
{
    grd_parallel_for(0, grd_matrix_count(A), small_grain(A, 4.0 / 3), invert_matrices, (void *)p);
}

/* Arguments of tasks that invert matrices from their LU factors. With S A = L U, where S is a permutation, the inverse of A is U^-1 L^-1 S. Column i
 * of U^-1 L^-1 is computed in `solved` and copied to column places[i] of the inverse; `places` has n numbers per matrix. L^-1 is lower triangular, so
 * a task for the columns from i on solves only the equations of L from i on. */
struct inverses {
    const struct grd_plan *p;
    int64_t n, pieces; /* n: side of a matrix; pieces: blocks of PIECE columns per matrix, each of which is one task */
    int64_t *places;
    char *solved;
};

/* Number of columns of an inverse, or of right-hand sides of a system, that one task computes. */
enum { PIECE = 128 };

bool plan_hidden_inverse_of_factors(struct grd_plan *p, grd_tensor *LU, grd_tensor *pivots)
{
    if (kernels_of(LU) == NULL)
        return grd_raise_no_kernel("linalg.inv", (grd_dtype)LU->dtype);
    if (!check_factors(LU, pivots, "linalg.inv") || pivots->ndim != LU->ndim - 1 ||
        !grd_dims_equal(grd_sizes(pivots), grd_dims_from(LU->sizes, LU->ndim - 1)))
        return !grd_pending() && grd_raise(GRD_ERROR_RUNTIME, "linalg.inv: pivots must have the sizes of LU without the last");
    const int64_t n = grd_size_from_end(LU, 1);
    const double numbers = (double)grd_matrix_count(LU) * (double)n;
    grd_plan_scratch(p, numbers * (double)n * LU->itemsize + numbers * sizeof(int64_t));
    return grd_plan_reads_as(p, grd_transpose(LU, -2, -1), (grd_dtype)LU->dtype) && grd_plan_reads_as(p, pivots, GRD_INT32) &&
           grd_plan_columns(p, grd_batch_of(LU), n, n, (grd_dtype)LU->dtype) && grd_plan_lapack(p, n) && !grd_pending();
}

bool check_hidden_inverse_of_factors(struct grd_plan *p, grd_tensor *LU, grd_tensor *pivots)
{
    (void)p;
    return pivots_name_rows(LU, pivots);
}

/* Computes the columns [first, first + some) of U^-1 L^-1 for one matrix and copies them to their places in the inverse. */
static void invert_piece(const struct inverses *v, int64_t matrix, int64_t first, int64_t some)
{
    const grd_tensor *x = v->p->results[0];
    const int64_t n = v->n, itemsize = x->itemsize;
    const char *factors = grd_matrix_at(v->p->in[0], matrix);
    char *columns = v->solved + (matrix * n + first) * n * itemsize;
    const struct grd_triangle lower = {
        .n = n - first, .stride = n, .left = true, .unit = true, .a = factors + (first * n + first) * itemsize};
    const struct grd_triangle upper = {.n = n, .stride = n, .left = true, .upper = true, .a = factors};
    memset(columns, 0, (size_t)(some * n * itemsize));
    kernels_of(x)->fill_diagonal(some, n, columns + first * itemsize);
    grd_solve_triangle(v->p, (grd_dtype)x->dtype, &lower, false, some, n, columns + first * itemsize);
    grd_solve_triangle(v->p, (grd_dtype)x->dtype, &upper, false, some, n, columns);
    kernels_of(x)->place_columns(n, some, v->places + matrix * n + first, columns, grd_matrix_at(x, matrix));
}

static void invert_pieces(int64_t begin, int64_t end, void *context)
{
    const struct inverses *v = context;
    for (int64_t i = begin; i < end; i++) {
        const int64_t first = i % v->pieces * PIECE;
        invert_piece(v, i / v->pieces, first, grd_least(v->n - first, PIECE));
    }
}

void run_hidden_inverse_of_factors(const struct grd_plan *p, grd_tensor *LU, grd_tensor *pivots)
{
    const int64_t n = grd_size_from_end(LU, 1), count = grd_matrix_count(LU);
    struct inverses v = {p, n, grd_ceil_div(n, PIECE), (int64_t *)p->scratch, p->scratch + count * n * (int64_t)sizeof(int64_t)};
    (void)pivots;
    for (int64_t i = 0; i < count; i++)
        kernels_of(LU)->find_places(n, (const int32_t *)p->in[1]->data + i * n, v.places + i * n);
    grd_parallel_for(0, count * v.pieces, grd_matrix_grain((double)n * (double)n * (double)grd_least(n, PIECE)), invert_pieces, &v);
}

void op_hidden_inverse(grd_tensor *A, grd_tensor **ret)
{
    if (fits_lanes(A)) {
        const grd_hidden_inverse_small_result made = grd_hidden_inverse_small(A);
        ret[0] = made.inverse, ret[1] = made.info;
    } else {
        const grd_hidden_lu_factor_result made = grd_hidden_lu_factor(A);
        ret[0] = grd_hidden_inverse_of_factors(made.LU, made.pivots), ret[1] = made.info;
    }
}

/* ---- Checks of results ------------------------------------------------------------------------------------------------------------------------ */

bool grd_lu_check(grd_tensor *info, const char *function)
{
    struct grd_failed_matrix failed;
    if (!grd_find_failed_matrix(info, &failed))
        return !grd_pending();
    return grd_raise(
        GRD_ERROR_RUNTIME,
        "torch.linalg.%s: %sU[%lld,%lld] is zero and using it on lu_solve would result in a division by zero. If you still want "
        "to perform the factorization, consider calling linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)",
        function, failed.place, (long long)failed.info, (long long)failed.info);
}

bool grd_solve_check(grd_tensor *info, const char *function)
{
    struct grd_failed_matrix failed;
    if (!grd_find_failed_matrix(info, &failed))
        return !grd_pending();
    return grd_raise(GRD_ERROR_LINALG, "torch.linalg.%s: %sThe solver failed because the input matrix is singular.", function,
                     failed.place);
}

bool grd_inverse_check(grd_tensor *info, const char *function)
{
    struct grd_failed_matrix failed;
    if (!grd_find_failed_matrix(info, &failed))
        return !grd_pending();
    return grd_raise(GRD_ERROR_LINALG,
                     "%s: %sThe diagonal element %lld is zero, the inversion could not be completed because the input matrix is singular.",
                     function, failed.place, (long long)failed.info);
}

bool grd_decomposition_check_width(const grd_tensor *x, const char *function)
{
    const grd_dtype dtype = (grd_dtype)x->dtype;
    return grd_kernels->lu[dtype] != NULL ||
           grd_raise(GRD_ERROR_RUNTIME, "%s: Low precision dtypes not supported. Got %s", function, grd_dtype_type_name(dtype));
}

grd_dims grd_batch_sizes_of(grd_dims sizes)
{
    return grd_dims_from(sizes.data, sizes.n - 2);
}

grd_dims grd_matrix_sizes(grd_dims sizes)
{
    return grd_dims_from(sizes.data + sizes.n - 2, 2);
}

int64_t grd_pivots_rank(const grd_tensor *matrices, const grd_tensor *pivots)
{
    return grd_greatest(matrices->ndim, pivots->ndim + 1) - 1;
}

/* ---- Exchanged rows ------------------------------------------------------------------------------------------------------------------------- */

bool plan_hidden_exchange_rows(struct grd_plan *p, grd_tensor *self, grd_tensor *pivots, bool back)
{
    int64_t sizes[GRD_MAX_DIMS], ndim;
    (void)back;
    if (!grd_check_matrices(self, "self", "lu_unpack") || kernels_of(self) == NULL)
        return !grd_pending() && grd_raise_no_kernel("unpack_pivots", (grd_dtype)self->dtype);
    if (!check_pivots(pivots, grd_size_from_end(self, 2), "lu_unpack"))
        return false;
    if (!grd_shape_broadcast(grd_batch_of(self), grd_dims_from(pivots->sizes, pivots->ndim - 1), sizes, &ndim))
        return false;
    memcpy(sizes + ndim, self->sizes + self->ndim - 2, 2 * sizeof *sizes);
    return grd_plan_starts_from(p, grd_expand(self, grd_dims_from(sizes, ndim + 2))) &&
           grd_plan_reads_as(p, grd_unsqueeze(pivots, -1), GRD_INT32) &&
           grd_plan_columns(p, grd_dims_from(sizes, ndim), grd_size_from_end(self, 2), grd_size_from_end(self, 1),
                            (grd_dtype)self->dtype) &&
           !grd_pending();
}

bool check_hidden_exchange_rows(struct grd_plan *p, grd_tensor *self, grd_tensor *pivots, bool back)
{
    double least;
    (void)p, (void)back;
    return pivots_are_in(pivots, grd_size_from_end(self, 2), &least) ||
           grd_raise(GRD_ERROR_RUNTIME, "pivots passed to lu_unpack must be between 1 and LU.size(-2) inclusive.Did you properly pass the "
                                        "result of lu_factor?");
}

/* Arguments of exchange_matrices(). If `back` is true, the inverse permutation is applied. */
struct exchange {
    const struct grd_plan *p;
    bool back;
};

static void exchange_matrices(int64_t begin, int64_t end, void *context)
{
    const struct exchange *e = context;
    const grd_tensor *x = e->p->results[0], *pivots = e->p->in[1];
    for (int64_t i = begin; i < end; i++)
        kernels_of(x)->exchange_rows(grd_size_from_end(x, 2), grd_size_from_end(x, 1), grd_size_from_end(pivots, 2),
                                     (const int32_t *)grd_broadcast_matrix_at(pivots, x, i), e->back, grd_matrix_at(x, i));
}

void run_hidden_exchange_rows(const struct grd_plan *p, grd_tensor *self, grd_tensor *pivots, bool back)
{
    struct exchange e = {p, back};
    const grd_tensor *x = p->results[0];
    (void)pivots;
    grd_parallel_for(0, grd_matrix_count(x), grd_matrix_grain((double)grd_size_from_end(self, 2) * (double)grd_size_from_end(self, 1)),
                     exchange_matrices, &e);
}

bool grd_lu_unpack_check(const grd_tensor *data, const grd_tensor *pivots, bool unpack_pivots)
{
    if (data->ndim < 2)
        return grd_raise(GRD_ERROR_RUNTIME, "torch.lu_unpack: Expected tensor with 2 or more dimensions. Got size: %s instead",
                         grd_list_text(grd_sizes(data)));
    if (unpack_pivots && (pivots->dtype != GRD_INT32 || pivots->ndim == 0))
        return grd_raise(GRD_ERROR_RUNTIME,
                         "torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype.\n"
                         "Note: this function is intended to be used with the output produced by torch.linalg.lu_factor");
    return true;
}

/* ---- Equations ------------------------------------------------------------------------------------------------------------------------------- */

/* Returns the pivots broadcast to the batch sizes of LU. */
static grd_tensor *pivots_of_each(const grd_tensor *LU, grd_tensor *pivots)
{
    return grd_expand(pivots, grd_dims_from(LU->sizes, LU->ndim - 1));
}

bool plan_hidden_lu_solve(struct grd_plan *p, grd_tensor *LU, grd_tensor *pivots, grd_tensor *B, bool left, bool adjoint)
{
    int64_t sizes[GRD_MAX_DIMS], ndim;
    const grd_dtype dtype = (grd_dtype)LU->dtype;
    const bool transposed = left == adjoint;
    if (kernels_of(LU) == NULL)
        return grd_raise_no_kernel("linalg.lu_solve", dtype);
    if (!check_factors(LU, pivots, "linalg.lu_solve") || !grd_check_matrices(B, "B", "linalg.lu_solve"))
        return false;
    if (grd_size_from_end(B, left ? 2 : 1) != grd_size_from_end(LU, 1) || B->dtype != LU->dtype)
        return grd_raise(GRD_ERROR_RUNTIME, "linalg.lu_solve: B must fit to LU of sizes %s", grd_list_text(grd_sizes(LU)));
    if (!grd_shape_broadcast(grd_batch_of(B), grd_batch_of(LU), sizes, &ndim))
        return false;
    memcpy(sizes + ndim, B->sizes + B->ndim - 2, 2 * sizeof *sizes);
    const grd_dims batch = grd_dims_from(sizes, ndim), all = grd_dims_from(sizes, ndim + 2);
    grd_tensor *factors = adjoint ? grd_conj_physical(LU) : LU;
    bool *const by_rows = &factors_of(p)->by_rows;
    *by_rows = transposed;
    return grd_plan_starts_from(p, grd_expand(B, all)) &&
           (grd_size_from_end(LU, 1) > GRD_LAPACK_SIDE
                ? grd_plan_reads_matrices(p, factors, by_rows)
                : grd_plan_reads_as(p, transposed ? factors : grd_transpose(factors, -2, -1), dtype)) &&
           grd_plan_reads_as(p, grd_unsqueeze(pivots_of_each(LU, pivots), -1), GRD_INT32) &&
           (left ? grd_plan_columns(p, batch, sizes[ndim], sizes[ndim + 1], dtype) : grd_plan_result(p, all, dtype)) &&
           grd_plan_lapack(p, grd_size_from_end(LU, 1)) && !grd_pending();
}

bool check_hidden_lu_solve(struct grd_plan *p, grd_tensor *LU, grd_tensor *pivots, grd_tensor *B, bool left, bool adjoint)
{
    (void)p, (void)B, (void)left, (void)adjoint;
    return pivots_name_rows(LU, pivots);
}

/* Arguments of tasks that solve A X = B for a batch, or A^T X = B if `transposed`. X A = B is solved as A^T X^T = B^T. */
struct systems {
    const struct grd_plan *p;
    int64_t n, k; /* number of equations of a system, and number of its right-hand sides */
    bool transposed;
    int64_t pieces; /* blocks of right-hand sides per matrix, each of which is one task */
};

/* Solves the systems [begin, end). A kernel call solves up to GRD_MATRIX_LANES systems at once, one system per vector lane. */
static void solve_small(const struct systems *s, int64_t begin, int64_t end)
{
    const grd_tensor *x = s->p->results[0];
    struct grd_small_systems systems = {.n = s->n, .k = s->k, .transposed = s->transposed};
    for (; begin < end; begin += systems.count) {
        systems.count = grd_least(end - begin, GRD_MATRIX_LANES);
        systems.x = grd_matrix_at(x, begin);
        for (int64_t i = 0; i < systems.count; i++) {
            systems.matrices[i] = grd_broadcast_matrix_at(s->p->in[1], x, begin + i);
            systems.exchanges[i] = (const int32_t *)grd_broadcast_matrix_at(s->p->in[2], x, begin + i);
        }
        kernels_of(x)->solve_many(&systems);
    }
}

/* Solves one block of right-hand sides of one system. Each system has s->pieces blocks; `i` numbers the blocks of all systems consecutively. */
static void solve_piece(const struct systems *s, int64_t i)
{
    const grd_tensor *x = s->p->results[0];
    const int64_t n = s->n, matrix = i / s->pieces, first = i % s->pieces * PIECE;
    const int64_t some = s->pieces > 1 ? grd_least(s->k - first, PIECE) : s->k;
    char *piece = grd_matrix_at(x, matrix) + first * n * x->itemsize;
    const int32_t *pivots = (const int32_t *)grd_broadcast_matrix_at(s->p->in[2], x, matrix);
    const struct grd_triangle triangle = {.n = n, .stride = n, .left = true, .a = grd_broadcast_matrix_at(s->p->in[1], x, matrix)};
    if (!s->transposed)
        kernels_of(x)->exchange_rows(n, some, n, pivots, false, piece);
    for (int upper = 0; upper < 2; upper++) {
        struct grd_triangle t = triangle;
        t.upper = upper;
        t.unit = t.upper == s->transposed;
        grd_solve_triangle(s->p, (grd_dtype)x->dtype, &t, factors_of(s->p)->by_rows != s->transposed, some, n, piece);
    }
    if (s->transposed)
        kernels_of(x)->exchange_rows(n, some, n, pivots, true, piece);
}

static void solve_systems(int64_t begin, int64_t end, void *context)
{
    const struct systems *s = context;
    const grd_tensor *x = s->p->results[0];
    if (s->n <= GRD_SMALL_MATRIX_SIDE && kernels_of(x)->solve_many != NULL && end - begin > 1)
        solve_small(s, begin, end);
    else
        for (int64_t i = begin; i < end; i++)
            solve_piece(s, i);
}

void run_hidden_lu_solve(const struct grd_plan *p, grd_tensor *LU, grd_tensor *pivots, grd_tensor *B, bool left, bool adjoint)
{
    const int64_t n = grd_size_from_end(LU, 1), k = grd_size_from_end(B, left ? 1 : 2);
    struct systems s = {p, n, k, left == adjoint, n > GRD_LAPACK_SIDE ? grd_ceil_div(k, PIECE) : 1};
    (void)pivots;
    grd_parallel_for(0, grd_matrix_count(p->results[0]) * s.pieces,
                     grd_lanes_grain(n, grd_matrix_grain((double)n * (double)n * (double)grd_least(k, PIECE))), solve_systems, &s);
}

static bool check_shapes(const grd_tensor *a, const grd_tensor *b, bool left, const char *function)
{
    return grd_size_from_end(a, 1) == grd_size_from_end(b, left ? 2 : 1) ||
           grd_raise(GRD_ERROR_RUNTIME, "%s: Incompatible shapes of A and B for the equation %s = B (%lldx%lld and %lldx%lld)", function,
                     left ? "AX" : "XA", (long long)grd_size_from_end(a, 2), (long long)grd_size_from_end(a, 1),
                     (long long)grd_size_from_end(b, 2), (long long)grd_size_from_end(b, 1));
}

bool grd_lu_solve_check(const grd_tensor *lu, const grd_tensor *pivots, const grd_tensor *b, bool left)
{
    static const char *const function = "linalg.lu_solve";
    if (!grd_decomposition_check_inexact(lu, "torch.linalg.lu_solve"))
        return false;
    if (pivots->dtype != GRD_INT32)
        return grd_raise(GRD_ERROR_RUNTIME, "%s: pivots should be a Tensor of scalar type torch.int32", function);
    if (!grd_decomposition_check_square(lu, "torch.linalg.lu_solve") || !grd_check_matrices(b, "B", function))
        return false;
    if (lu->dtype != b->dtype)
        return grd_raise(GRD_ERROR_RUNTIME,
                         "%s: Expected LU and B to have the same dtype, but found LU of type %s and B of type %s instead", function,
                         grd_dtype_type_name((grd_dtype)lu->dtype), grd_dtype_type_name((grd_dtype)b->dtype));
    if (!check_shapes(lu, b, left, function))
        return false;
    if (pivots->ndim == 0 || pivots->sizes[pivots->ndim - 1] != grd_size_from_end(lu, 1))
        return grd_raise(GRD_ERROR_RUNTIME, "%s: Number of pivots per batch should be same as the dimension of the matrix", function);
    return grd_dims_equal(grd_dims_from(lu->sizes, lu->ndim - 1), grd_sizes(pivots)) ||
           grd_raise(GRD_ERROR_RUNTIME, "%s: Expected LU.shape[:-1] and pivots.shape to be the same, but got pivots with shape %s instead",
                     function, grd_list_text(grd_sizes(pivots)));
}

/* True if A X = B can be solved for many small matrices at once, without storing the decomposition. This requires that no derivative is needed,
 * because the backward formula reads the decomposition. */
static bool is_solved_in_lanes(const grd_tensor *A, const grd_tensor *B)
{
    int64_t sizes[GRD_MAX_DIMS], ndim;
    return is_small(A) && !is_differentiated(A) && !is_differentiated(B) && grd_size_from_end(B, 1) <= GRD_SMALL_MATRIX_SIDE &&
           grd_shape_broadcast(grd_batch_of(B), grd_batch_of(A), sizes, &ndim) &&
           grd_dims_equal(grd_batch_of(A), grd_dims_from(sizes, ndim));
}

void op_hidden_linalg_solve(grd_tensor *A, grd_tensor *B, bool left, grd_tensor **ret)
{
    if (left && is_solved_in_lanes(A, B)) {
        const grd_hidden_solve_small_result made = grd_hidden_solve_small(A, B);
        ret[0] = made.result, ret[1] = made.info;
    } else {
        const grd_hidden_lu_factor_result made = grd_hidden_lu_factor(grd_detach(A));
        ret[0] = grd_hidden_linalg_solve_factored(A, B, made.LU, made.pivots, left, false), ret[1] = made.info;
    }
}

bool plan_hidden_solve_small(struct grd_plan *p, grd_tensor *A, grd_tensor *B)
{
    const int64_t n = grd_size_from_end(A, 1), k = grd_size_from_end(B, 1);
    int64_t sizes[GRD_MAX_DIMS];
    if (!grd_check_matrices(B, "B", "linalg.solve") || !check_shapes(A, B, true, "linalg.solve"))
        return false;
    memcpy(sizes, A->sizes, (size_t)A->ndim * sizeof *sizes);
    sizes[A->ndim - 1] = k;
    return grd_plan_starts_from(p, grd_expand(B, grd_dims_from(sizes, A->ndim))) && plan_small(p, A, "linalg.solve") &&
           grd_plan_columns(p, grd_batch_of(A), n, k, (grd_dtype)A->dtype) && grd_plan_result(p, grd_batch_of(A), GRD_INT32) &&
           !grd_pending();
}

static void solve_small_equations(int64_t begin, int64_t end, void *context)
{
    const struct grd_plan *p = context;
    struct grd_small_elimination s = small_elimination(p, p->in[1], begin, end);
    s.k = grd_size_from_end(p->results[0], 1);
    s.ret = grd_matrix_at(p->results[0], begin);
    s.ret_info = (int32_t *)p->results[1]->data + begin;
    kernels_of(p->in[1])->solve_equations_many(&s);
}

void run_hidden_solve_small(const struct grd_plan *p, grd_tensor *A, grd_tensor *B)
{
    (void)B;
    grd_parallel_for(0, grd_matrix_count(A), small_grain(A, 1), solve_small_equations, (void *)p);
}

bool grd_solve_is_vector(grd_dims a, grd_dims b)
{
    return b.n == 1 || (a.n == b.n + 1 && grd_dims_equal(grd_dims_from(a.data, a.n - 1), b));
}

grd_tensor *grd_solve_shaped(grd_tensor *vectors)
{
    return vectors->ndim < 2 ? vectors : grd_composite_columns(vectors);
}

bool grd_solve_check_shapes(const grd_tensor *a, const grd_tensor *b, bool left)
{
    static const char *const function = "linalg.solve";
    if (!grd_decomposition_check_inexact(a, function))
        return false;
    if (a->dtype != b->dtype)
        return grd_raise(GRD_ERROR_RUNTIME, "%s: Expected A and B to have the same dtype, but found A of type %s and B of type %s instead",
                         function, grd_dtype_type_name((grd_dtype)a->dtype), grd_dtype_type_name((grd_dtype)b->dtype));
    return grd_decomposition_check_square(a, function) && grd_check_matrices(b, "B", function) && check_shapes(a, b, left, function);
}

/* ---- Determinants ---------------------------------------------------------------------------------------------------------------------------- */

double grd_small_pivot(grd_dtype dtype)
{
    return sqrt(grd_dtype_epsilon(dtype));
}

grd_tensor *op_hidden_linalg_det(grd_tensor *A)
{
    if (is_small(A) && !is_differentiated(A))
        return grd_hidden_det_small(A);
    const grd_hidden_lu_factor_result made = grd_hidden_lu_factor(grd_detach(A));
    return grd_hidden_linalg_det_factored(A, made.LU, made.pivots);
}

void op_linalg_slogdet(grd_tensor *A, grd_tensor **ret)
{
    static const char *const function = "linalg.slogdet";
    ret[0] = ret[1] = grd_failed;
    if (!grd_decomposition_check_inexact(A, function) || !grd_decomposition_check_width(A, function) ||
        !grd_decomposition_check_square(A, function))
        return;
    if (is_small(A) && !is_differentiated(A)) {
        const grd_hidden_slogdet_small_result made = grd_hidden_slogdet_small(A);
        ret[0] = made.sign, ret[1] = made.logabsdet;
    } else {
        const grd_hidden_lu_factor_result factored = grd_hidden_lu_factor(grd_detach(A));
        const grd_hidden_linalg_slogdet_factored_result made = grd_hidden_linalg_slogdet_factored(A, factored.LU, factored.pivots);
        ret[0] = made.sign, ret[1] = made.logabsdet;
    }
}

bool plan_hidden_det_small(struct grd_plan *p, grd_tensor *A)
{
    return plan_small(p, A, "linalg.det") && grd_plan_result(p, grd_batch_of(A), (grd_dtype)A->dtype) && !grd_pending();
}

bool plan_hidden_slogdet_small(struct grd_plan *p, grd_tensor *A)
{
    return plan_hidden_det_small(p, A) && grd_plan_result(p, grd_batch_of(A), (grd_dtype)A->dtype) && !grd_pending();
}

static void determine_matrices(int64_t begin, int64_t end, void *context)
{
    const struct grd_plan *p = context;
    struct grd_small_elimination s = small_elimination(p, p->in[0], begin, end);
    s.ret = p->results[0]->data + begin * p->results[0]->itemsize;
    s.ret_logarithms = p->nresults > 1 ? p->results[1]->data + begin * p->results[1]->itemsize : NULL;
    kernels_of(p->in[0])->determine_many(&s);
}

void run_hidden_det_small(const struct grd_plan *p, grd_tensor *A)
{
    grd_parallel_for(0, grd_matrix_count(A), small_grain(A, 1.0 / 3), determine_matrices, (void *)p);
}

void run_hidden_slogdet_small(const struct grd_plan *p, grd_tensor *A)
{
    run_hidden_det_small(p, A);
}

/* Checks the arguments of a determinant that is computed from LU and pivots, and plans to read LU and pivots. */
static bool plan_of_factors(struct grd_plan *p, const grd_tensor *A, grd_tensor *LU, grd_tensor *pivots)
{
    if (kernels_of(LU) == NULL)
        return grd_raise_no_kernel("linalg.det", (grd_dtype)LU->dtype);
    if (A->dtype != LU->dtype || !grd_dims_equal(grd_sizes(A), grd_sizes(LU)))
        return grd_raise(GRD_ERROR_RUNTIME, "linalg.det: LU must be a decomposition of A, of sizes %s", grd_list_text(grd_sizes(A)));
    return check_factors(LU, pivots, "linalg.det") && grd_plan_reads_as(p, grd_transpose(LU, -2, -1), (grd_dtype)LU->dtype) &&
           grd_plan_reads_as(p, pivots_of_each(LU, pivots), GRD_INT32);
}

bool plan_hidden_linalg_det_factored(struct grd_plan *p, grd_tensor *A, grd_tensor *LU, grd_tensor *pivots)
{
    return plan_of_factors(p, A, LU, pivots) && grd_plan_result(p, grd_batch_of(LU), (grd_dtype)LU->dtype) && !grd_pending();
}

bool plan_hidden_linalg_slogdet_factored(struct grd_plan *p, grd_tensor *A, grd_tensor *LU, grd_tensor *pivots)
{
    return plan_of_factors(p, A, LU, pivots) && grd_plan_result(p, grd_batch_of(LU), (grd_dtype)LU->dtype) &&
           grd_plan_result(p, grd_batch_of(LU), grd_dtype_to_real((grd_dtype)LU->dtype)) && !grd_pending();
}

static void write_determinants(int64_t begin, int64_t end, void *context)
{
    const struct grd_plan *p = context;
    const grd_tensor *lu = p->in[0], *first = p->results[0], *second = p->nresults > 1 ? p->results[1] : NULL;
    const int64_t n = grd_size_from_end(lu, 1);
    for (int64_t i = begin; i < end; i++) {
        const int32_t *pivots = (const int32_t *)p->in[1]->data + i * n;
        char *result = first->data + i * first->itemsize;
        if (second == NULL)
            kernels_of(lu)->determinant(n, grd_matrix_at(lu, i), pivots, result);
        else
            kernels_of(lu)->log_determinant(n, grd_matrix_at(lu, i), pivots, result, second->data + i * second->itemsize);
    }
}

void run_hidden_linalg_det_factored(const struct grd_plan *p, grd_tensor *A, grd_tensor *LU, grd_tensor *pivots)
{
    (void)A, (void)pivots;
    grd_parallel_for(0, grd_matrix_count(LU), grd_matrix_grain((double)grd_size_from_end(LU, 1)), write_determinants, (void *)p);
}

void run_hidden_linalg_slogdet_factored(const struct grd_plan *p, grd_tensor *A, grd_tensor *LU, grd_tensor *pivots)
{
    (void)A, (void)pivots;
    grd_parallel_for(0, grd_matrix_count(LU), grd_matrix_grain(16.0 * (double)grd_size_from_end(LU, 1)), write_determinants, (void *)p);
}
