/* What operators on batches of matrices share: the last two dimensions are the matrices, those before them the batch. Results are column-major. */
#ifndef GRD_OP_MATRIX_BATCH_H
#define GRD_OP_MATRIX_BATCH_H

#include "core/shape.h"
#include "core/tensor.h"
#include "op/plan.h"

static inline int64_t grd_size_from_end(const grd_tensor *x, int from_end)
{
    return x->sizes[x->ndim - from_end];
}

/* RuntimeError: fewer than 2 dimensions; or matrices that are not square, with `prefix` before the text. */
bool grd_check_matrices(const grd_tensor *x, const char *argument, const char *function);
bool grd_check_square(const grd_tensor *x, const char *prefix);

/* Returns the sizes of the batch, and the number of its matrices. */
static inline grd_dims grd_batch_of(const grd_tensor *x)
{
    return grd_dims_from(x->sizes, x->ndim - 2);
}

static inline int64_t grd_matrix_count(const grd_tensor *x)
{
    return grd_sizes_product(x->sizes, x->ndim - 2);
}

/* Plans a result of column-major matrices. */
bool grd_plan_columns(struct grd_plan *p, grd_dims batch, int64_t rows, int64_t columns, grd_dtype dtype);

/* Plans to read matrices one after the other, row-major or column-major; those that lie so are not copied. */
bool grd_plan_reads_matrices(struct grd_plan *p, grd_tensor *x, bool *ret_by_rows);

/* Matrix `index` of a tensor whose matrices lie one after the other. */
static inline char *grd_matrix_at(const grd_tensor *x, int64_t index)
{
    return x->data + index * grd_size_from_end(x, 1) * grd_size_from_end(x, 2) * x->itemsize;
}

/* Returns the matrix of an operand that broadcasts to matrix `index` of a result. */
const char *grd_broadcast_matrix_at(const grd_tensor *x, const grd_tensor *result, int64_t index);

/* The first matrix of a batch on which an algorithm failed: its place, as errors name it, and its info, which is not 0. */
struct grd_failed_matrix {
    char place[48];
    int64_t info;
};

/* Finds the first failed matrix; false if there is none, or an error is pending. */
bool grd_find_failed_matrix(grd_tensor *info, struct grd_failed_matrix *ret_failed);

/* Returns how many matrices are one task, if each takes `work` multiplications. */
int64_t grd_matrix_grain(double work);
/* Returns the grain rounded up so that small matrices, which are computed many at once, fill the lanes of a task. */
int64_t grd_lanes_grain(int64_t side, int64_t grain);

#endif
