/* Implements Cholesky and QR decompositions and triangular solves: checks, plans, and the loop over the matrices of a batch. The algorithms are in
 * kernel/cpu/decomposition.c. Schema: schema/decomposition.toml.
 *
 * Invariant: each matrix is computed by one task, or in steps that depend on its sizes alone (op/lapack_panels.c). So results do not depend on the
 * number of threads, bit for bit. */
#include "kernel/decomposition.h"

#include <stdio.h>
#include <string.h>

#include "base/integer.h"
#include "base/parallel.h"
#include "gen/uses/op/decomposition.h"
#include "core/dtype.h"
#include "core/shape.h"
#include "core/tensor.h"
#include "kernel/table.h"
#include "op/formula.h"
#include "op/lapack.h"
#include "op/lapack_panels.h"
#include "op/matrix_batch.h"
#include "op/lapack_reflections.h"

/* ---- Checks ---------------------------------------------------------------------------------------------------------------------------- */

static bool check_dtype(const grd_tensor *x, const char *function, const char *kernel)
{
    return (function == NULL || grd_decomposition_check_inexact(x, function)) &&
           (grd_kernels->decomposition[x->dtype] != NULL || grd_raise_no_kernel(kernel, (grd_dtype)x->dtype));
}

static const struct grd_decomposition_row *kernels_of(const grd_tensor *x)
{
    return grd_kernels->decomposition[x->dtype];
}

/* ---- Cholesky ---------------------------------------------------------------------------------------------------------------------------- */

/* Data that plan_hidden_cholesky_factor hands to run_hidden_cholesky_factor. */
struct factors {
    int64_t n; /* rows of a matrix; must be the first member, because grd_plan_lapack writes n to the beginning of p->state */
    /* `small`: many matrices are computed together, one in each vector lane. `by_rows`: the input is row-major. `lapack`: LAPACK was chosen. */
    bool small, by_rows, upper, lapack;
    const grd_tensor *from, *matrices, *info;
};

static struct factors *factors_of(const struct grd_plan *p)
{
    return (struct factors *)(uintptr_t)p->state;
}

/* True if `x` holds several small matrices and has_kernel is true. has_kernel: there is a kernel that computes one matrix in each vector lane. */
static bool is_for_lanes(const grd_tensor *x, bool has_kernel)
{
    return has_kernel && grd_size_from_end(x, 1) <= GRD_SMALL_MATRIX_SIDE && grd_matrix_count(x) > 1;
}

bool plan_hidden_cholesky_factor(struct grd_plan *p, grd_tensor *self, bool upper)
{
    struct factors *f = factors_of(p);
    if (!grd_decomposition_check_square(self, "linalg.cholesky") || !check_dtype(self, "linalg.cholesky", "cholesky"))
        return false;
    const int64_t n = grd_size_from_end(self, 1);
    *f = (struct factors){.small = is_for_lanes(self, kernels_of(self)->cholesky_many != NULL), .upper = upper};
    return (f->small ? grd_plan_reads_matrices(p, self, &f->by_rows)
                     : grd_plan_starts_from(p, upper ? grd_conj_physical(grd_transpose(self, -2, -1)) : self)) &&
           grd_plan_columns(p, grd_batch_of(self), n, n, (grd_dtype)self->dtype) && grd_plan_result(p, grd_batch_of(self), GRD_INT32) &&
           grd_plan_lapack(p, n) && !grd_pending();
}

static bool factor_with_lapack(const struct factors *f, int64_t i)
{
    char *a = grd_matrix_at(f->matrices, i);
    if (!grd_lapack_cholesky((grd_dtype)f->matrices->dtype, f->n, a, (int32_t *)f->info->data + i))
        return false;
    kernels_of(f->matrices)->finish_factor(f->n, f->upper, a);
    return true;
}

static void factor_matrices(int64_t begin, int64_t end, void *context)
{
    const struct factors *f = context;
    const struct grd_decomposition_row *kernels = kernels_of(f->matrices);
    int32_t *info = (int32_t *)f->info->data;
    if (f->small)
        kernels->cholesky_many(end - begin, f->n, f->by_rows, f->upper, grd_matrix_at(f->from, begin), grd_matrix_at(f->matrices, begin),
                               info + begin);
    else
        for (int64_t i = begin; i < end; i++)
            if (!f->lapack || !factor_with_lapack(f, i))
                kernels->cholesky(f->n, f->upper, grd_matrix_at(f->matrices, i), info + i);
}

void run_hidden_cholesky_factor(const struct grd_plan *p, grd_tensor *self, bool upper)
{
    const int64_t n = grd_size_from_end(self, 1), grain = grd_matrix_grain((double)n * (double)n * (double)n / 3);
    struct factors f = *factors_of(p);
    f.from = p->in[0];
    f.matrices = p->results[0];
    f.info = p->results[1];
    f.lapack = grd_lapack_is_chosen(p);
    (void)upper;
    grd_for_matrices(p, n, grd_matrix_count(self), grd_lanes_grain(n, grain), factor_matrices, &f);
}

bool grd_cholesky_check(grd_tensor *info, const char *function)
{
    struct grd_failed_matrix failed;
    return grd_find_failed_matrix(info, &failed)
               ? grd_raise(
                     GRD_ERROR_LINALG,
                     "%s: %sThe factorization could not be completed because the input is not positive-definite (the leading minor of "
                     "order %lld is not positive-definite).",
                     function, failed.place, (long long)failed.info)
               : !grd_pending();
}

bool grd_cholesky_check_dtype(const grd_tensor *x, const char *kernel)
{
    return check_dtype(x, NULL, kernel);
}

bool grd_cholesky_inverse_check(grd_tensor *triangles)
{
    double least = 0, largest = 0;
    struct grd_failed_matrix failed;
    grd_tensor *zeros = grd_eq_scalar(grd_diagonal(grd_detach(triangles), .dim1 = -2, .dim2 = -1), grd_int(0));
    if (!grd_composite_extremes(grd_physical(zeros), &least, &largest) || largest == 0)
        return !grd_pending();
    /* For each matrix: the index, counted from 1, of the first zero on its diagonal; 0 if there is no zero. */
    grd_tensor *first =
        grd_mul(grd_add_scalar(grd_argmax(grd_to(zeros, .dtype = GRD_INT64), .dim = -1), grd_int(1)), grd_any(zeros, .dim = grd_dims(-1)));
    return !grd_find_failed_matrix(first, &failed)
               ? !grd_pending()
               : grd_raise(GRD_ERROR_LINALG,
                           "cholesky_inverse: %sThe diagonal element %lld is zero, the inversion could not be completed because the input "
                           "matrix is singular.",
                           failed.place, (long long)failed.info);
}

grd_tensor *op_hidden_cholesky_inverse(grd_tensor *self, bool upper)
{
    const int64_t n = grd_size_from_end(self, 1);
    if (n <= GRD_LAPACK_SIDE)
        return grd_cholesky_solve(grd_eye(n, .dtype = (grd_dtype)self->dtype, .device = grd_tensor_device(self)), self, .upper = upper);
    /* `rows` is row-major, and its upper triangle is the transpose of the lower triangle of the inverse. The last line transposes the completed
     * matrix, so the inverse is column-major. */
    grd_tensor *rows = grd_transpose(grd_hidden_cholesky_inverse_lower(self, upper), -2, -1);
    grd_tensor *below = grd_conj_physical(grd_transpose(grd_triu(rows, .diagonal = 1), -2, -1));
    return grd_transpose(grd_add(grd_triu(rows), below), -2, -1);
}

bool plan_hidden_cholesky_inverse_lower(struct grd_plan *p, grd_tensor *self, bool upper)
{
    if (!grd_decomposition_check_square(self, "cholesky_inverse") || !check_dtype(self, NULL, "cholesky_inverse_out"))
        return false;
    const int64_t n = grd_size_from_end(self, 1);
    grd_plan_scratch(p, (double)grd_matrix_count(self) * (double)n * (double)n * self->itemsize);
    return grd_plan_starts_from(p, upper ? grd_conj_physical(grd_transpose(self, -2, -1)) : self) &&
           grd_plan_columns(p, grd_batch_of(self), n, n, (grd_dtype)self->dtype) && grd_plan_lapack(p, n) && !grd_pending();
}

/* Inverts matrices [begin, end). Each of them is the product L L^H, and only its Cholesky factor L is given. First computes Y = L^-1. Then solves
 * X L = Y^H, because the inverse X is Y^H L^-1. */
static void invert_factors(int64_t begin, int64_t end, void *context)
{
    const struct grd_plan *p = context;
    const grd_tensor *x = p->results[0];
    const struct grd_decomposition_row *kernels = kernels_of(x);
    const int64_t n = grd_size_from_end(x, 1), bytes = n * n * x->itemsize;
    for (int64_t i = begin; i < end; i++) {
        char *l = p->scratch + i * bytes, *inverse = grd_matrix_at(x, i);
        if (grd_lapack_is_chosen(p) && grd_lapack_cholesky_inverse((grd_dtype)x->dtype, n, inverse))
            continue;
        memcpy(l, inverse, (size_t)bytes);
        kernels->orthogonal(n, n, 0, l, l, inverse);
        kernels->solve(&(struct grd_triangle){.n = n, .left = true, .a = l}, n, n, inverse);
        kernels->finish_factor(n, true, inverse);
        kernels->solve(&(struct grd_triangle){.n = n, .a = l}, n, n, inverse);
    }
}

void run_hidden_cholesky_inverse_lower(const struct grd_plan *p, grd_tensor *self, bool upper)
{
    const double n = (double)grd_size_from_end(self, 1);
    (void)upper;
    grd_parallel_for(0, grd_matrix_count(self), grd_matrix_grain(n * n * n), invert_factors, (void *)p);
}

/* Raises RuntimeError if the matrices of `a` are not square, or if the matrices of `b` have a different number of rows. The text of the second error
 * names `function`. */
static bool check_equation(const grd_tensor *a, const grd_tensor *b, const char *function)
{
    const int64_t rows = grd_size_from_end(b, 2), columns = grd_size_from_end(b, 1);
    if (!grd_check_square(a, ""))
        return false;
    return rows == grd_size_from_end(a, 1) ||
           grd_raise(GRD_ERROR_RUNTIME, "Incompatible matrix sizes for %s: each A matrix is %lld by %lld but each b matrix is %lld by %lld",
                     function, (long long)grd_size_from_end(a, 2), (long long)grd_size_from_end(a, 1), (long long)rows, (long long)columns);
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
    return check_equation(u, b, "cholesky_solve");
}

/* ---- QR ------------------------------------------------------------------------------------------------------------------------------------ */

/* Data that plan_linalg_qr hands to run_linalg_qr for a QR decomposition of m x n matrices. Q has `columns` columns (0 if it is not computed) and R
 * has `rows` rows. */
struct factorization {
    /* k = min(m, n); must be the first member, because grd_plan_lapack writes k to the beginning of p->state */
    int64_t k, m, n, columns, rows;
    const struct grd_plan *p;
    int64_t bytes; /* scratch memory of a matrix: a copy of it, tau, and workspace for LAPACK */
    /* `small`: many matrices are computed together, one in each vector lane. `by_rows`: the input is row-major. */
    bool small, by_rows;
};

/* True if many matrices are decomposed together, one in each vector lane. */
static bool is_small(const struct factorization *f, const grd_tensor *A)
{
    enum { FEW = 4 /* with at least this number of matrices, computing one matrix in each vector lane is faster */ };
    return kernels_of(A)->qr_many != NULL && grd_matrix_count(A) >= FEW && f->k <= GRD_SMALL_MATRIX_SIDE &&
           grd_greatest(f->m, f->n) <= GRD_SMALL_QR_SIZE && f->m * f->n <= GRD_SMALL_QR_SIZE && f->m * f->columns <= GRD_SMALL_QR_SIZE &&
           f->rows * f->n <= GRD_SMALL_QR_SIZE;
}

bool plan_linalg_qr(struct grd_plan *p, grd_tensor *A, const char *mode)
{
    const bool complete = strcmp(mode, "complete") == 0, without_q = strcmp(mode, "r") == 0;
    if (!grd_check_matrices(A, "A", "linalg.qr") || !check_dtype(A, "linalg.qr", "geqrf"))
        return false;
    if (!complete && !without_q && strcmp(mode, "reduced") != 0)
        return grd_raise(GRD_ERROR_RUNTIME,
                         "qr received unrecognized mode '%s' but expected one of 'reduced' (default), 'r', or 'complete'", mode);
    struct factorization *f = (struct factorization *)p->state;
    f->m = grd_size_from_end(A, 2);
    f->n = grd_size_from_end(A, 1);
    f->k = grd_least(f->m, f->n);
    f->columns = without_q ? 0 : complete ? f->m : f->k;
    f->rows = complete ? f->m : f->k;
    const double work = f->k > GRD_LAPACK_SIDE
                            ? (double)grd_greatest(grd_lapack_reflect_work(f->m, f->n), grd_lapack_orthogonal_work(f->columns, f->k))
                            : 0;
    const double bytes = A->numel == 0 ? 0 : ((double)f->m * (double)f->n + (double)f->k + work) * A->itemsize;
    f->bytes = bytes < 0x1p62 ? (int64_t)bytes : 0; /* on overflow, allocating the scratch memory below raises the error */
    f->small = is_small(f, A);
    grd_plan_scratch(p, f->small ? 0 : (double)grd_matrix_count(A) * bytes);
    const grd_dtype dtype = (grd_dtype)A->dtype;
    return (f->small ? grd_plan_reads_matrices(p, A, &f->by_rows) : grd_plan_reads_as(p, grd_transpose(A, -2, -1), dtype)) &&
           (without_q ? grd_plan_result(p, grd_dims(0), dtype) : grd_plan_columns(p, grd_batch_of(A), f->m, f->columns, dtype)) &&
           grd_plan_columns(p, grd_batch_of(A), f->rows, f->n, dtype) && grd_plan_lapack(p, f->k) && !grd_pending();
}

static void decompose_matrices(int64_t begin, int64_t end, void *context)
{
    const struct factorization *f = context;
    const grd_tensor *q = f->p->results[0], *r = f->p->results[1];
    const struct grd_decomposition_row *kernels = kernels_of(r);
    const int64_t itemsize = r->itemsize, bytes = f->m * f->n * itemsize;
    if (f->small) {
        kernels->qr_many(&(struct grd_small_qr){.count = end - begin,
                                                .m = f->m,
                                                .n = f->n,
                                                .columns = f->columns,
                                                .rows = f->rows,
                                                .by_rows = f->by_rows,
                                                .a = f->p->in[0]->data + begin * bytes,
                                                .ret_q = f->columns > 0 ? grd_matrix_at(q, begin) : NULL,
                                                .ret_r = grd_matrix_at(r, begin)});
        return;
    }
    const bool lapack = f->k > GRD_LAPACK_SIDE && grd_lapack_is_chosen(f->p);
    for (int64_t i = begin; i < end; i++) {
        char *a = f->p->scratch + i * f->bytes, *tau = a + bytes, *work = tau + f->k * itemsize;
        if (bytes > 0)
            memcpy(a, f->p->in[0]->data + i * bytes, (size_t)bytes);
        if (!lapack || !grd_lapack_reflect((grd_dtype)r->dtype, f->m, f->n, a, tau, work))
            kernels->reflect(f->m, f->n, a, tau);
        kernels->take_upper(f->m, f->n, f->rows, a, grd_matrix_at(r, i));
        const struct grd_reflections reflections = {.m = f->m, .k = f->k, .a = a, .tau = tau};
        if (f->columns > 0 &&
            (!lapack || !grd_lapack_orthogonal((grd_dtype)r->dtype, &reflections, true, f->columns, grd_matrix_at(q, i), work)))
            kernels->orthogonal(f->m, f->columns, f->k, a, tau, grd_matrix_at(q, i));
    }
}

void run_linalg_qr(const struct grd_plan *p, grd_tensor *A, const char *mode)
{
    (void)mode;
    struct factorization f = *(const struct factorization *)p->state;
    f.p = p;
    const int64_t grain = grd_matrix_grain(4.0 * (double)f.m * (double)f.n * (double)f.k);
    grd_parallel_for(0, grd_matrix_count(A), f.small ? grd_lanes_grain(f.k, grain) : grain, decompose_matrices, &f);
}

static void reflect_matrices(int64_t begin, int64_t end, void *context)
{
    const struct grd_plan *p = context;
    const grd_tensor *a = p->results[0], *tau = p->results[1];
    const int64_t m = grd_size_from_end(a, 2), n = grd_size_from_end(a, 1), k = grd_least(m, n);
    for (int64_t i = begin; i < end; i++) {
        char *factors = tau->data + i * k * tau->itemsize, *work = p->scratch + i * grd_lapack_reflect_work(m, n) * a->itemsize;
        if (k <= GRD_LAPACK_SIDE || !grd_lapack_is_chosen(p) ||
            !grd_lapack_reflect((grd_dtype)a->dtype, m, n, grd_matrix_at(a, i), factors, work))
            kernels_of(a)->reflect(m, n, grd_matrix_at(a, i), factors);
    }
}

bool plan_geqrf(struct grd_plan *p, grd_tensor *self)
{
    if (self->ndim < 2)
        return grd_raise(GRD_ERROR_RUNTIME, "torch.geqrf: input must have at least 2 dimensions.");
    if (!check_dtype(self, NULL, "geqrf"))
        return false;
    const int64_t m = grd_size_from_end(self, 2), n = grd_size_from_end(self, 1);
    int64_t sizes[GRD_MAX_DIMS];
    memcpy(sizes, self->sizes, (size_t)(self->ndim - 2) * sizeof *sizes);
    const int64_t k = grd_least(m, n);
    sizes[self->ndim - 2] = k;
    grd_plan_scratch(p, k > GRD_LAPACK_SIDE ? (double)grd_matrix_count(self) * (double)grd_lapack_reflect_work(m, n) * self->itemsize : 0);
    return grd_plan_starts_from(p, self) && grd_plan_columns(p, grd_batch_of(self), m, n, (grd_dtype)self->dtype) &&
           grd_plan_result(p, grd_dims_from(sizes, self->ndim - 1), (grd_dtype)self->dtype) && grd_plan_lapack(p, k) && !grd_pending();
}

void run_geqrf(const struct grd_plan *p, grd_tensor *self)
{
    const double m = (double)grd_size_from_end(self, 2), n = (double)grd_size_from_end(self, 1);
    grd_parallel_for(0, grd_matrix_count(self), grd_matrix_grain(2 * m * n * (m < n ? m : n)), reflect_matrices, (void *)p);
}

bool plan_hidden_apply_reflections(struct grd_plan *p, grd_tensor *a, grd_tensor *tau, grd_tensor *x, bool adjoint)
{
    (void)adjoint;
    if (!grd_check_matrices(a, "a", "geqrf") || !grd_check_matrices(x, "x", "geqrf") || !check_dtype(a, NULL, "ormqr"))
        return false;
    const int64_t m = grd_size_from_end(a, 2), columns = grd_size_from_end(x, 1);
    const grd_dtype dtype = (grd_dtype)a->dtype;
    if (grd_size_from_end(x, 2) != m || x->dtype != dtype || tau->dtype != dtype || tau->ndim != a->ndim - 1 || x->ndim != a->ndim ||
        !grd_dims_equal(grd_batch_of(a), grd_batch_of(x)))
        return grd_raise(GRD_ERROR_RUNTIME, "ormqr: x must fit to reflections of sizes %s", grd_list_text(grd_sizes(a)));
    grd_plan_scratch(p,
                     (double)grd_matrix_count(x) * (double)grd_lapack_reflections_work(grd_size_from_end(tau, 1), columns) * x->itemsize);
    return grd_plan_starts_from(p, x) && grd_plan_reads_as(p, grd_transpose(a, -2, -1), dtype) && grd_plan_reads_as(p, tau, dtype) &&
           grd_plan_columns(p, grd_batch_of(x), m, columns, dtype) && grd_plan_lapack(p, grd_size_from_end(tau, 1)) && !grd_pending();
}

/* The context that grd_parallel_for passes to apply_to_matrices. */
struct application {
    const struct grd_plan *p;
    bool adjoint;
};

static void apply_to_matrices(int64_t begin, int64_t end, void *context)
{
    const struct application *job = context;
    const struct grd_plan *p = job->p;
    const grd_tensor *x = p->results[0], *tau = p->in[2];
    const int64_t columns = grd_size_from_end(x, 1), k = grd_size_from_end(tau, 1), itemsize = x->itemsize;
    const int64_t size = grd_size_from_end(x, 2) * grd_size_from_end(p->in[1], 2);
    for (int64_t i = begin; i < end; i++) {
        const struct grd_reflections r = {grd_size_from_end(x, 2), k, job->adjoint, p->in[1]->data + i * size * itemsize,
                                          tau->data + i * k * itemsize};
        char *work = p->scratch + i * grd_lapack_reflections_work(k, columns) * itemsize;
        if (!grd_lapack_is_chosen(p) || !grd_lapack_apply_reflections((grd_dtype)x->dtype, &r, columns, grd_matrix_at(x, i), work))
            kernels_of(x)->apply_reflections(r.m, k, columns, r.adjoint, r.a, r.tau, grd_matrix_at(x, i));
    }
}

void run_hidden_apply_reflections(const struct grd_plan *p, grd_tensor *a, grd_tensor *tau, grd_tensor *x, bool adjoint)
{
    struct application job = {p, adjoint};
    (void)a;
    grd_parallel_for(
        0, grd_matrix_count(x),
        grd_matrix_grain(2.0 * (double)grd_size_from_end(x, 2) * (double)grd_size_from_end(x, 1) * (double)grd_size_from_end(tau, 1)),
        apply_to_matrices, &job);
}

bool grd_householder_check(const grd_tensor *input, const grd_tensor *tau)
{
    static const char *const function = "torch.linalg.householder_product";
    if (input->ndim < 2)
        return grd_raise(GRD_ERROR_RUNTIME, "%s: input must have at least 2 dimensions.", function);
    if (grd_size_from_end(input, 2) < grd_size_from_end(input, 1))
        return grd_raise(GRD_ERROR_RUNTIME, "%s: input.shape[-2] must be greater than or equal to input.shape[-1]", function);
    if (tau->ndim > 0 && grd_size_from_end(input, 1) < grd_size_from_end(tau, 1))
        return grd_raise(GRD_ERROR_RUNTIME, "%s: input.shape[-1] must be greater than or equal to tau.shape[-1]", function);
    if (input->ndim != tau->ndim + 1)
        return grd_raise(
            GRD_ERROR_RUNTIME,
            "%s: Expected tau to have one dimension less than input, but got tau.ndim equal to %d and input.ndim is equal to %d", function,
            (int)tau->ndim, (int)input->ndim);
    if (!grd_dims_equal(grd_batch_of(input), grd_dims_from(tau->sizes, tau->ndim - 1)))
        return grd_raise(GRD_ERROR_RUNTIME, "%s: Expected batch dimensions of tau to be equal to input.shape[:-2], but got %s", function,
                         grd_list_text(grd_dims_from(tau->sizes, tau->ndim - 1)));
    if (input->dtype != tau->dtype)
        return grd_raise(GRD_ERROR_RUNTIME, "%s: tau dtype %s does not match input dtype %s", function,
                         grd_dtype_type_name((grd_dtype)tau->dtype), grd_dtype_type_name((grd_dtype)input->dtype));
    return check_dtype(input, NULL, "orgqr");
}

/* True if a result computed from `t` may be differentiated, by backward or forward mode. Such calls use a composite of differentiable operators,
 * because the kernels of this file have no derivative. */
static bool is_differentiated(const grd_tensor *t)
{
    return grd_composite_is_recorded(t) || (grd_keys_of(grd_physical(t)) >> GRD_KEY_FORWARD & 1) != 0;
}

grd_tensor *op_hidden_householder(grd_tensor *input, grd_tensor *tau)
{
    return is_differentiated(input) || is_differentiated(tau) ? grd_hidden_householder_by_products(input, tau)
                                                              : grd_hidden_orthogonal(input, tau);
}

bool plan_hidden_orthogonal(struct grd_plan *p, grd_tensor *input, grd_tensor *tau)
{
    if (!grd_householder_check(input, tau))
        return false;
    const int64_t m = grd_size_from_end(input, 2), n = grd_size_from_end(input, 1);
    const grd_dtype dtype = (grd_dtype)input->dtype;
    grd_plan_scratch(p,
                     (double)grd_matrix_count(input) * (double)grd_lapack_orthogonal_work(n, grd_size_from_end(tau, 1)) * input->itemsize);
    return grd_plan_reads_as(p, tau, dtype) && grd_plan_reads_as(p, grd_transpose(input, -2, -1), dtype) &&
           grd_plan_columns(p, grd_batch_of(input), m, n, dtype) && grd_plan_lapack(p, grd_size_from_end(tau, 1)) && !grd_pending();
}

static void multiply_reflections(int64_t begin, int64_t end, void *context)
{
    const struct grd_plan *p = context;
    const grd_tensor *q = p->results[0], *tau = p->in[0];
    const int64_t m = grd_size_from_end(q, 2), n = grd_size_from_end(q, 1), k = grd_size_from_end(tau, 1), itemsize = q->itemsize;
    for (int64_t i = begin; i < end; i++) {
        const struct grd_reflections r = {.m = m, .k = k, .a = p->in[1]->data + i * m * n * itemsize, .tau = tau->data + i * k * itemsize};
        char *work = p->scratch + i * grd_lapack_orthogonal_work(n, k) * itemsize;
        if (k <= GRD_LAPACK_SIDE || !grd_lapack_is_chosen(p) ||
            !grd_lapack_orthogonal((grd_dtype)q->dtype, &r, false, n, grd_matrix_at(q, i), work))
            kernels_of(q)->orthogonal(m, n, k, r.a, r.tau, grd_matrix_at(q, i));
    }
}

void run_hidden_orthogonal(const struct grd_plan *p, grd_tensor *input, grd_tensor *tau)
{
    const double m = (double)grd_size_from_end(input, 2), n = (double)grd_size_from_end(input, 1), k = (double)grd_size_from_end(tau, 1);
    grd_parallel_for(0, grd_matrix_count(input), grd_matrix_grain(4 * m * n * k), multiply_reflections, (void *)p);
}

/* Raises RuntimeError if the number of dimensions of `t` is not input->ndim minus `less`, or if the batch sizes of `t` and `input` differ. `what` is
 * the name of `t` in the text of the error. */
static bool check_beside(const grd_tensor *input, const grd_tensor *t, int less, const char *what)
{
    if (input->ndim != t->ndim + less)
        return grd_raise(GRD_ERROR_RUNTIME,
                         "torch.ormqr: Expected %s to have %s input, but got %s.ndim equal to %d and input.ndim is equal to %d", what,
                         less ? "one dimension less than" : "the same number of dimensions as", what, (int)t->ndim, (int)input->ndim);
    const grd_dims batch = grd_dims_from(t->sizes, input->ndim - 2);
    return grd_dims_equal(grd_batch_of(input), batch) ||
           grd_raise(GRD_ERROR_RUNTIME, "torch.ormqr: Expected batch dimensions of %s to be equal to input.shape[:-2], but got %s", what,
                     grd_list_text(batch));
}

bool grd_ormqr_check(const grd_tensor *input, const grd_tensor *tau, const grd_tensor *other, bool left)
{
    const grd_tensor *const matrices[] = {input, other};
    for (int i = 0; i < 2; i++)
        if (matrices[i]->ndim < 2)
            return grd_raise(GRD_ERROR_RUNTIME, "torch.ormqr: %s must have at least 2 dimensions.", i == 0 ? "input" : "other");
    const int from_end = left ? 2 : 1;
    const int64_t side = grd_size_from_end(other, from_end);
    if (tau->ndim == 0 || grd_size_from_end(tau, 1) > side)
        return grd_raise(GRD_ERROR_RUNTIME, "torch.ormqr: other.shape[-%d] must be greater than or equal to tau.shape[-1]", from_end);
    if (side != grd_size_from_end(input, 2))
        return grd_raise(GRD_ERROR_RUNTIME, "torch.ormqr: other.shape[-%d] must be equal to input.shape[-2]", from_end);
    if (grd_size_from_end(tau, 1) != grd_least(side, grd_size_from_end(input, 1)))
        return grd_raise(GRD_ERROR_RUNTIME, "torch.ormqr: tau.shape[-1] must be equal to min(other.shape[-%d], input.shape[-1])", from_end);
    if (!check_beside(input, tau, 1, "tau") || !check_beside(input, other, 0, "other"))
        return false;
    const grd_tensor *const operands[] = {tau, other};
    for (int i = 0; i < 2; i++)
        if (operands[i]->dtype != input->dtype)
            return grd_raise(GRD_ERROR_RUNTIME,
                             "torch.ormqr: Expected input and %s to have the same dtype, but input has dtype%s and %s has dtype %s",
                             i == 0 ? "tau" : "other", grd_dtype_type_name((grd_dtype)input->dtype), i == 0 ? "tau" : "other",
                             grd_dtype_type_name((grd_dtype)operands[i]->dtype));
    return check_dtype(input, NULL, "ormqr");
}

grd_tensor *op_hidden_ormqr(grd_tensor *self, grd_tensor *input2, grd_tensor *input3, bool left, bool transpose)
{
    if (is_differentiated(self) || is_differentiated(input2) || is_differentiated(input3))
        return grd_hidden_ormqr_by_products(self, input2, input3, left, transpose);
    if (left)
        return grd_hidden_apply_reflections(self, input2, input3, transpose);
    /* apply_reflections multiplies by Q from the left only, so X Q is computed as the adjoint of Q^H X^H. */
    grd_tensor *adjoint = grd_conj_physical(grd_transpose(input3, -2, -1));
    return grd_composite_columns(grd_conj_physical(grd_transpose(grd_hidden_apply_reflections(self, input2, adjoint, !transpose), -2, -1)));
}

grd_dtype grd_lowrank_dtype(const grd_tensor *A)
{
    const grd_dtype dtype = (grd_dtype)A->dtype;
    return dtype == GRD_FLOAT16 || dtype == GRD_FLOAT64 || grd_dtype_is_complex(dtype) ? dtype : GRD_FLOAT32;
}

/* Returns `matrices` if they are column-major, otherwise a column-major copy. */
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

/* Data that plan_linalg_solve_triangular hands to run_linalg_solve_triangular. */
struct triangles {
    int64_t n;   /* rows of a triangular matrix; must be first, because grd_plan_lapack writes n to the beginning of p->state */
    bool turned; /* true if the triangular matrices are row-major, false if column-major */
};

/* True if the `count` systems are solved several at a time, one in each vector lane. */
static bool are_in_lanes(const grd_tensor *triangles, bool left, int64_t count)
{
    return left && count > 1 && grd_size_from_end(triangles, 1) <= GRD_SMALL_MATRIX_SIDE && kernels_of(triangles)->solve_many != NULL;
}

bool plan_linalg_solve_triangular(struct grd_plan *p, grd_tensor *self, grd_tensor *B, bool upper, bool left, bool unitriangular)
{
    static const char *const function = "linalg.solve_triangular";
    int64_t sizes[GRD_MAX_DIMS], ndim;
    (void)upper, (void)unitriangular;
    if (!grd_decomposition_check_square(self, function) || !grd_check_matrices(B, "B", function) ||
        !check_dtype(self, NULL, "triangular_solve"))
        return false;
    if (self->dtype != B->dtype)
        return grd_raise(GRD_ERROR_RUNTIME, "%s: Expected A and B to have the same dtype, but found A of type %s and B of type %s instead",
                         function, grd_dtype_type_name((grd_dtype)self->dtype), grd_dtype_type_name((grd_dtype)B->dtype));
    if (grd_size_from_end(self, 1) != grd_size_from_end(B, left ? 2 : 1))
        return grd_raise(GRD_ERROR_RUNTIME, "%s: Incompatible shapes of A and B for the equation %s = B (%lldx%lld and %lldx%lld)",
                         function, left ? "AX" : "XA", (long long)grd_size_from_end(self, 2), (long long)grd_size_from_end(self, 1),
                         (long long)grd_size_from_end(B, 2), (long long)grd_size_from_end(B, 1));
    if (!grd_shape_broadcast(grd_batch_of(self), grd_batch_of(B), sizes, &ndim))
        return false;
    memcpy(sizes + ndim, B->sizes + B->ndim - 2, 2 * sizeof *sizes);
    const int64_t n = grd_size_from_end(self, 1), count = grd_sizes_product(sizes, ndim);
    bool *const turned = &((struct triangles *)p->state)->turned;
    *turned = false;
    return grd_plan_starts_from(p, grd_expand(B, grd_dims_from(sizes, ndim + 2))) &&
           ((left && n > GRD_LAPACK_SIDE) || are_in_lanes(self, left, count)
                ? grd_plan_reads_matrices(p, self, turned)
                : grd_plan_reads_as(p, grd_transpose(self, -2, -1), (grd_dtype)self->dtype)) &&
           grd_plan_columns(p, grd_dims_from(sizes, ndim), grd_size_from_end(B, 2), grd_size_from_end(B, 1), (grd_dtype)self->dtype) &&
           grd_plan_lapack(p, n) && !grd_pending();
}

/* The context of the parallel tasks of a triangular solve. The right-hand sides of a large matrix are divided into pieces of PIECE columns, so that
 * several threads solve one system. If the equation is X A = B, a right-hand side is a row of B, and a
 * piece is PIECE rows. */
struct solutions {
    const struct grd_plan *p;
    struct grd_triangle triangle;
    bool turned;
    int64_t pieces; /* the right-hand sides of one matrix are divided into this number of pieces, each a task */
};

/* The right-hand sides of a large matrix are divided into pieces of this many columns, so that several threads can solve one system. */
enum { PIECE = 128 };

/* Solves the systems of small triangular matrices [begin, end), GRD_MATRIX_LANES systems at a time, one in each vector lane. */
static void solve_small_matrices(int64_t begin, int64_t end, void *context)
{
    const struct solutions *s = context;
    const grd_tensor *x = s->p->results[0];
    const void *matrices[GRD_MATRIX_LANES];
    for (; begin < end; begin += GRD_MATRIX_LANES) {
        const int64_t count = grd_least(end - begin, GRD_MATRIX_LANES);
        for (int64_t i = 0; i < count; i++)
            matrices[i] = grd_broadcast_matrix_at(s->p->in[1], x, begin + i);
        kernels_of(x)->solve_many(&s->triangle, s->turned, count, grd_size_from_end(x, 1), matrices, grd_matrix_at(x, begin));
    }
}

static void solve_matrices(int64_t begin, int64_t end, void *context)
{
    const struct solutions *s = context;
    const grd_tensor *x = s->p->results[0];
    struct grd_triangle t = s->triangle;
    const int64_t k = grd_size_from_end(x, t.left ? 1 : 2), leading = grd_size_from_end(x, 2);
    for (int64_t i = begin; i < end; i++) {
        const int64_t first = i % s->pieces * PIECE, some = s->pieces > 1 ? grd_least(k - first, PIECE) : k;
        char *piece = grd_matrix_at(x, i / s->pieces) + first * (t.left ? leading : 1) * x->itemsize;
        t.a = grd_broadcast_matrix_at(s->p->in[1], x, i / s->pieces);
        grd_solve_triangle(s->p, (grd_dtype)x->dtype, &t, s->turned, some, leading, piece);
    }
}

void run_linalg_solve_triangular(const struct grd_plan *p, grd_tensor *self, grd_tensor *B, bool upper, bool left, bool unitriangular)
{
    const int64_t n = grd_size_from_end(self, 1), k = grd_size_from_end(B, left ? 1 : 2), count = grd_matrix_count(p->results[0]);
    const double work = (double)n * (double)n * (double)grd_least(k, PIECE);
    const bool turned = ((const struct triangles *)p->state)->turned;
    struct solutions s = {p, {.n = n, .stride = n, .upper = upper, .unit = unitriangular, .left = left}, turned, 1};
    if (are_in_lanes(self, left, count)) {
        grd_parallel_for(0, count, grd_lanes_grain(n, grd_matrix_grain(work)), solve_small_matrices, &s);
        return;
    }
    s.pieces = n > GRD_LAPACK_SIDE ? grd_ceil_div(k, PIECE) : 1;
    grd_parallel_for(0, count * s.pieces, grd_matrix_grain(work), solve_matrices, &s);
}

bool grd_triangular_solve_check(const grd_tensor *b, const grd_tensor *a)
{
    const grd_tensor *const both[] = {b, a};
    for (int i = 0; i < 2; i++)
        if (both[i]->ndim < 2)
            return grd_raise(GRD_ERROR_RUNTIME,
                             "torch.triangular_solve: Expected %s to have at least 2 dimensions, but it has %d dimensions instead",
                             i == 0 ? "b" : "A", (int)both[i]->ndim);
    return check_equation(a, b, "triangular_solve");
}
