/* Cholesky and QR decompositions and triangular solutions: checks, results, and the loop over the matrices of a batch. Algorithms are in
 * kernel/cpu/decomposition.c. Schema: schema/decomposition.toml.
 *
 * Invariant: each matrix is computed by one task, so the bits do not depend on the number of threads. */
#include "kernel/decomposition.h"

#include <stdio.h>
#include <string.h>

#include "base/parallel.h"
#include "gen/uses/op/decomposition.h"
#include "kernel/table.h"
#include "op/formula.h"
#include "op/plan.h"

enum { GRAIN = 1 << 15 }; /* multiplications worth a task */

/* ---- Checks ---------------------------------------------------------------------------------------------------------------------------- */

static int64_t size_from_end(const grd_tensor *x, int from_end)
{
    return x->sizes[x->ndim - from_end];
}

static bool check_matrices(const grd_tensor *x, const char *argument, const char *function)
{
    return x->ndim >= 2 || grd_raise(GRD_ERROR_RUNTIME, "%s: The input tensor %s must have at least 2 dimensions.", function, argument);
}

static bool check_square(const grd_tensor *x, const char *prefix)
{
    return size_from_end(x, 1) == size_from_end(x, 2) ||
           grd_raise(GRD_ERROR_RUNTIME, "%sA must be batches of square matrices, but they are %lld by %lld matrices", prefix,
                     (long long)size_from_end(x, 2), (long long)size_from_end(x, 1));
}

bool grd_decomposition_check_square(const grd_tensor *x, const char *function)
{
    char prefix[64];
    snprintf(prefix, sizeof prefix, "%s: ", function);
    return check_matrices(x, "A", function) && check_square(x, prefix);
}

static bool check_dtype(const grd_tensor *x, const char *function, const char *kernel)
{
    const grd_dtype dtype = (grd_dtype)x->dtype;
    if (function != NULL && !grd_dtype_is_floating(dtype) && !grd_dtype_is_complex(dtype))
        return grd_raise(GRD_ERROR_RUNTIME, "%s: Expected a floating point or complex tensor as input. Got %s", function,
                         grd_dtype_type_name(dtype));
    return grd_kernels->decomposition[dtype] != NULL || grd_raise_no_kernel(kernel, dtype);
}

/* ---- Matrices of a batch ----------------------------------------------------------------------------------------------------------------- */

/* Plans a result of matrices that lie column by column, with the batch of `like`. */
static bool plan_columns(struct grd_plan *p, grd_dims batch, int64_t rows, int64_t columns, grd_dtype dtype)
{
    int64_t sizes[GRD_MAX_DIMS], strides[GRD_MAX_DIMS], step;
    const int64_t n = batch.n;
    bool is_too_large = __builtin_mul_overflow(grd_greatest(rows, 1), grd_greatest(columns, 1), &step);
    memcpy(sizes, batch.data, (size_t)n * sizeof *sizes);
    sizes[n] = rows;
    sizes[n + 1] = columns;
    strides[n] = 1;
    strides[n + 1] = grd_greatest(rows, 1);
    for (int64_t d = n - 1; d >= 0; d--) {
        strides[d] = step;
        is_too_large = __builtin_mul_overflow(step, grd_greatest(sizes[d], 1), &step) || is_too_large;
    }
    if (is_too_large)
        return grd_raise(GRD_ERROR_MEMORY, "the sizes %s are too large", grd_list_text(grd_dims_from(sizes, n + 2)));
    return grd_plan_strided(p, grd_dims_from(sizes, n + 2), strides, dtype);
}

static grd_dims batch_of(const grd_tensor *x)
{
    return grd_dims_from(x->sizes, x->ndim - 2);
}

static int64_t count_of(const grd_tensor *x)
{
    return grd_sizes_product(x->sizes, x->ndim - 2);
}

/* Matrix `index` of a tensor whose matrices lie one after the other. */
static char *matrix_at(const grd_tensor *x, int64_t index)
{
    return x->data + index * size_from_end(x, 1) * size_from_end(x, 2) * x->itemsize;
}

/* Matrix of an operand that belongs to matrix `index` of a result with whose batch it broadcasts. */
static const char *broadcast_matrix_at(const grd_tensor *x, const grd_tensor *result, int64_t index)
{
    int64_t offset = 0;
    for (int d = x->ndim - 3, of = result->ndim - 3; d >= 0; d--, of--) {
        offset += x->sizes[d] == 1 ? 0 : index % result->sizes[of] * x->strides[d];
        index /= result->sizes[of];
    }
    return x->data + offset * x->itemsize;
}

/* Matrices that are one task. */
static int64_t grain_of(double work)
{
    return work >= GRAIN ? 1 : (int64_t)(GRAIN / (work > 1 ? work : 1));
}

static const struct grd_decomposition_row *kernels_of(const grd_tensor *x)
{
    return grd_kernels->decomposition[x->dtype];
}

/* ---- Cholesky ---------------------------------------------------------------------------------------------------------------------------- */

bool plan_hidden_cholesky_factor(struct grd_plan *p, grd_tensor *self, bool upper)
{
    (void)upper;
    if (!grd_decomposition_check_square(self, "linalg.cholesky") || !check_dtype(self, "linalg.cholesky", "cholesky"))
        return false;
    const int64_t n = size_from_end(self, 1);
    return grd_plan_starts_from(p, upper ? grd_conj(grd_transpose(self, -2, -1)) : self) &&
           plan_columns(p, batch_of(self), n, n, (grd_dtype)self->dtype) && grd_plan_result(p, batch_of(self), GRD_INT32) && !grd_pending();
}

struct factors {
    grd_tensor *matrices, *info;
    bool upper;
};

static void factor_matrices(int64_t begin, int64_t end, void *context)
{
    const struct factors *f = context;
    const struct grd_decomposition_row *kernels = kernels_of(f->matrices);
    const int64_t n = size_from_end(f->matrices, 1);
    int32_t *info = (int32_t *)f->info->data;
    if (n <= GRD_SMALL_MATRIX_SIDE && kernels->cholesky_many != NULL && end - begin > 1)
        kernels->cholesky_many(end - begin, n, f->upper, matrix_at(f->matrices, begin), info + begin);
    else
        for (int64_t i = begin; i < end; i++)
            kernels->cholesky(n, f->upper, matrix_at(f->matrices, i), info + i);
}

void run_hidden_cholesky_factor(const struct grd_plan *p, grd_tensor *self, bool upper)
{
    const int64_t n = size_from_end(self, 1), grain = grain_of((double)n * (double)n * (double)n / 3);
    struct factors f = {p->results[0], p->results[1], upper};
    grd_parallel_for(0, count_of(self), grd_greatest(grain, n <= GRD_SMALL_MATRIX_SIDE ? GRD_MATRIX_LANES : 1), factor_matrices, &f);
}

bool grd_cholesky_check(grd_tensor *info, const char *function)
{
    double least, largest;
    info = grd_physical(info);
    if (!grd_composite_extremes(info, &least, &largest) || largest == 0)
        return !grd_pending();
    grd_tensor *orders = grd_reshape(info, grd_dims(-1));
    const int64_t first = grd_item_int64(grd_argmax(grd_to(grd_ne_scalar(orders, grd_int(0)), .dtype = GRD_INT64)));
    char element[48] = "";
    if (info->ndim > 0)
        snprintf(element, sizeof element, "(Batch element %lld): ", (long long)first);
    return grd_raise(
        GRD_ERROR_LINALG,
        "%s: %sThe factorization could not be completed because the input is not positive-definite (the leading minor of order "
        "%lld is not positive-definite).",
        function, element, (long long)grd_item_int64(grd_select(orders, 0, first)));
}

bool grd_cholesky_solve_check(const grd_tensor *b, const grd_tensor *u)
{
    const grd_tensor *const both[] = {b, u};
    for (int i = 0; i < 2; i++)
        if (both[i]->ndim < 2)
            return grd_raise(GRD_ERROR_RUNTIME, "%s should have at least 2 dimensions, but has %d dimensions instead", i == 0 ? "b" : "u",
                             (int)both[i]->ndim);
    if (b->dtype != u->dtype)
        return grd_raise(GRD_ERROR_RUNTIME, "Expected b and A to have the same dtype, but found b of type %s and A of type %s instead.",
                         grd_dtype_type_name((grd_dtype)b->dtype), grd_dtype_type_name((grd_dtype)u->dtype));
    if (!check_square(u, ""))
        return false;
    return size_from_end(b, 2) == size_from_end(u, 1) ||
           grd_raise(GRD_ERROR_RUNTIME,
                     "Incompatible matrix sizes for cholesky_solve: each A matrix is %lld by %lld but each b matrix is %lld by %lld",
                     (long long)size_from_end(u, 2), (long long)size_from_end(u, 1), (long long)size_from_end(b, 2),
                     (long long)size_from_end(b, 1));
}

/* ---- QR ------------------------------------------------------------------------------------------------------------------------------------ */

/* What is computed of each m x n matrix: Q has `columns`, R has `rows`. */
struct factorization {
    const struct grd_plan *p;
    int64_t m, n, k, columns, rows;
};

bool plan_linalg_qr(struct grd_plan *p, grd_tensor *A, const char *mode)
{
    const bool complete = strcmp(mode, "complete") == 0, without_q = strcmp(mode, "r") == 0;
    if (!check_matrices(A, "A", "linalg.qr") || !check_dtype(A, "linalg.qr", "geqrf"))
        return false;
    if (!complete && !without_q && strcmp(mode, "reduced") != 0)
        return grd_raise(GRD_ERROR_RUNTIME,
                         "qr received unrecognized mode '%s' but expected one of 'reduced' (default), 'r', or 'complete'", mode);
    struct factorization *f = (struct factorization *)p->state;
    f->m = size_from_end(A, 2);
    f->n = size_from_end(A, 1);
    f->k = grd_least(f->m, f->n);
    f->columns = without_q ? 0 : complete ? f->m : f->k;
    f->rows = complete ? f->m : f->k;
    grd_plan_scratch(p, A->numel == 0 ? 0 : (double)count_of(A) * ((double)f->m * (double)f->n + (double)f->k) * A->itemsize);
    const grd_dtype dtype = (grd_dtype)A->dtype;
    return grd_plan_reads_as(p, grd_transpose(A, -2, -1), dtype) &&
           (without_q ? grd_plan_result(p, grd_dims(0), dtype) : plan_columns(p, batch_of(A), f->m, f->columns, dtype)) &&
           plan_columns(p, batch_of(A), f->rows, f->n, dtype) && !grd_pending();
}

static void decompose_matrices(int64_t begin, int64_t end, void *context)
{
    const struct factorization *f = context;
    const grd_tensor *q = f->p->results[0], *r = f->p->results[1];
    const struct grd_decomposition_row *kernels = kernels_of(r);
    const int64_t itemsize = r->itemsize, bytes = f->m * f->n * itemsize;
    for (int64_t i = begin; i < end; i++) {
        char *a = f->p->scratch + i * (bytes + f->k * itemsize), *tau = a + bytes;
        if (bytes > 0)
            memcpy(a, f->p->in[0]->data + i * bytes, (size_t)bytes);
        kernels->reflect(f->m, f->n, a, tau);
        kernels->take_upper(f->m, f->n, f->rows, a, matrix_at(r, i));
        if (f->columns > 0)
            kernels->orthogonal(f->m, f->columns, f->k, a, tau, matrix_at(q, i));
    }
}

void run_linalg_qr(const struct grd_plan *p, grd_tensor *A, const char *mode)
{
    (void)mode;
    struct factorization f = *(const struct factorization *)p->state;
    f.p = p;
    grd_parallel_for(0, count_of(A), grain_of(4.0 * (double)f.m * (double)f.n * (double)f.k), decompose_matrices, &f);
}

static void reflect_matrices(int64_t begin, int64_t end, void *context)
{
    const struct grd_plan *p = context;
    const grd_tensor *a = p->results[0], *tau = p->results[1];
    const int64_t m = size_from_end(a, 2), n = size_from_end(a, 1), k = grd_least(m, n);
    for (int64_t i = begin; i < end; i++)
        kernels_of(a)->reflect(m, n, matrix_at(a, i), tau->data + i * k * tau->itemsize);
}

bool plan_geqrf(struct grd_plan *p, grd_tensor *self)
{
    if (self->ndim < 2)
        return grd_raise(GRD_ERROR_RUNTIME, "torch.geqrf: input must have at least 2 dimensions.");
    if (!check_dtype(self, NULL, "geqrf_cpu"))
        return false;
    const int64_t m = size_from_end(self, 2), n = size_from_end(self, 1);
    int64_t sizes[GRD_MAX_DIMS];
    memcpy(sizes, self->sizes, (size_t)(self->ndim - 2) * sizeof *sizes);
    sizes[self->ndim - 2] = grd_least(m, n);
    return grd_plan_starts_from(p, self) && plan_columns(p, batch_of(self), m, n, (grd_dtype)self->dtype) &&
           grd_plan_result(p, grd_dims_from(sizes, self->ndim - 1), (grd_dtype)self->dtype) && !grd_pending();
}

void run_geqrf(const struct grd_plan *p, grd_tensor *self)
{
    const double m = (double)size_from_end(self, 2), n = (double)size_from_end(self, 1);
    grd_parallel_for(0, count_of(self), grain_of(2 * m * n * (m < n ? m : n)), reflect_matrices, (void *)p);
}

bool grd_householder_check(const grd_tensor *input, const grd_tensor *tau)
{
    static const char *const function = "torch.linalg.householder_product";
    if (input->ndim < 2)
        return grd_raise(GRD_ERROR_RUNTIME, "%s: input must have at least 2 dimensions.", function);
    if (size_from_end(input, 2) < size_from_end(input, 1))
        return grd_raise(GRD_ERROR_RUNTIME, "%s: input.shape[-2] must be greater than or equal to input.shape[-1]", function);
    if (tau->ndim > 0 && size_from_end(input, 1) < size_from_end(tau, 1))
        return grd_raise(GRD_ERROR_RUNTIME, "%s: input.shape[-1] must be greater than or equal to tau.shape[-1]", function);
    if (input->ndim != tau->ndim + 1)
        return grd_raise(
            GRD_ERROR_RUNTIME,
            "%s: Expected tau to have one dimension less than input, but got tau.ndim equal to %d and input.ndim is equal to %d", function,
            (int)tau->ndim, (int)input->ndim);
    if (!grd_dims_equal(batch_of(input), grd_dims_from(tau->sizes, tau->ndim - 1)))
        return grd_raise(GRD_ERROR_RUNTIME, "%s: Expected batch dimensions of tau to be equal to input.shape[:-2], but got %s", function,
                         grd_list_text(grd_dims_from(tau->sizes, tau->ndim - 1)));
    if (input->dtype != tau->dtype)
        return grd_raise(GRD_ERROR_RUNTIME, "%s: tau dtype %s does not match input dtype %s", function,
                         grd_dtype_type_name((grd_dtype)tau->dtype), grd_dtype_type_name((grd_dtype)input->dtype));
    return check_dtype(input, NULL, "orgqr_cpu");
}

grd_tensor *grd_composite_columns(grd_tensor *matrices)
{
    return grd_transpose(grd_composite_contiguous(grd_transpose(matrices, -2, -1)), -2, -1);
}

bool grd_qr_is_wide(grd_dims sizes)
{
    return sizes.data[sizes.n - 2] < sizes.data[sizes.n - 1];
}

int64_t grd_qr_side(grd_dims sizes, const char *mode)
{
    const int64_t m = sizes.data[sizes.n - 2], n = sizes.data[sizes.n - 1];
    if (strcmp(mode, "r") == 0)
        grd_raise(GRD_ERROR_RUNTIME,
                  "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please use linalg.qr(A, "
                  "mode='reduced') if you are going to differentiate through linalg.qr.");
    else if (strcmp(mode, "complete") == 0 && m > n)
        grd_raise(GRD_ERROR_RUNTIME, "The QR decomposition is not differentiable when mode='complete' and nrows > ncols.");
    return grd_least(m, n);
}

/* ---- Triangles --------------------------------------------------------------------------------------------------------------------------- */

bool plan_linalg_solve_triangular(struct grd_plan *p, grd_tensor *self, grd_tensor *B, bool upper, bool left, bool unitriangular)
{
    static const char *const function = "linalg.solve_triangular";
    int64_t sizes[GRD_MAX_DIMS], ndim;
    (void)upper, (void)unitriangular;
    if (!grd_decomposition_check_square(self, function) || !check_matrices(B, "B", function) ||
        !check_dtype(self, NULL, "triangular_solve"))
        return false;
    if (self->dtype != B->dtype)
        return grd_raise(GRD_ERROR_RUNTIME, "%s: Expected A and B to have the same dtype, but found A of type %s and B of type %s instead",
                         function, grd_dtype_type_name((grd_dtype)self->dtype), grd_dtype_type_name((grd_dtype)B->dtype));
    if (size_from_end(self, 1) != size_from_end(B, left ? 2 : 1))
        return grd_raise(GRD_ERROR_RUNTIME, "%s: Incompatible shapes of A and B for the equation %s = B (%lldx%lld and %lldx%lld)",
                         function, left ? "AX" : "XA", (long long)size_from_end(self, 2), (long long)size_from_end(self, 1),
                         (long long)size_from_end(B, 2), (long long)size_from_end(B, 1));
    if (!grd_shape_broadcast(batch_of(self), batch_of(B), sizes, &ndim))
        return false;
    memcpy(sizes + ndim, B->sizes + B->ndim - 2, 2 * sizeof *sizes);
    return grd_plan_starts_from(p, grd_expand(B, grd_dims_from(sizes, ndim + 2))) &&
           grd_plan_reads_as(p, grd_transpose(self, -2, -1), (grd_dtype)self->dtype) &&
           plan_columns(p, grd_dims_from(sizes, ndim), size_from_end(B, 2), size_from_end(B, 1), (grd_dtype)self->dtype) && !grd_pending();
}

struct solutions {
    const struct grd_plan *p;
    struct grd_triangle triangle;
};

static void solve_matrices(int64_t begin, int64_t end, void *context)
{
    const struct solutions *s = context;
    const grd_tensor *x = s->p->results[0];
    struct grd_triangle t = s->triangle;
    for (int64_t i = begin; i < end; i++) {
        t.a = broadcast_matrix_at(s->p->in[1], x, i);
        kernels_of(x)->solve(&t, size_from_end(x, t.left ? 1 : 2), matrix_at(x, i));
    }
}

void run_linalg_solve_triangular(const struct grd_plan *p, grd_tensor *self, grd_tensor *B, bool upper, bool left, bool unitriangular)
{
    const int64_t n = size_from_end(self, 1), k = size_from_end(B, left ? 1 : 2);
    struct solutions s = {p, {.n = n, .upper = upper, .unit = unitriangular, .left = left}};
    grd_parallel_for(0, count_of(p->results[0]), grain_of((double)n * (double)n * (double)k), solve_matrices, &s);
}

bool grd_triangular_solve_check(const grd_tensor *b, const grd_tensor *a)
{
    const grd_tensor *const both[] = {b, a};
    for (int i = 0; i < 2; i++)
        if (both[i]->ndim < 2)
            return grd_raise(GRD_ERROR_RUNTIME,
                             "torch.triangular_solve: Expected %s to have at least 2 dimensions, but it has %d dimensions instead",
                             i == 0 ? "b" : "A", (int)both[i]->ndim);
    if (!check_square(a, ""))
        return false;
    return size_from_end(b, 2) == size_from_end(a, 1) ||
           grd_raise(GRD_ERROR_RUNTIME,
                     "Incompatible matrix sizes for triangular_solve: each A matrix is %lld by %lld but each b matrix is %lld by %lld",
                     (long long)size_from_end(a, 2), (long long)size_from_end(a, 1), (long long)size_from_end(b, 2),
                     (long long)size_from_end(b, 1));
}
