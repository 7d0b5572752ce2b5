/* Declares helpers for operators on batches of matrices. The last two dimensions of a tensor are the rows and columns of a matrix, and the dimensions
 * before are the batch. Results are column-major. */
#ifndef GRD_OP_MATRIX_BATCH_H
#define GRD_OP_MATRIX_BATCH_H

#include "core/shape.h"
#include "core/tensor.h"
#include "op/plan.h"

/* Returns the size of dimension ndim - from_end, e.g. of the last dimension if from_end is 1. */
static inline int64_t grd_size_from_end(const grd_tensor *x, int from_end)
{
    return x->sizes[x->ndim - from_end];
}

/* Raises RuntimeError if `x` has fewer than 2 dimensions. `argument` and `function` are names for the error text. */
bool grd_check_matrices(const grd_tensor *x, const char *argument, const char *function);
/* Raises RuntimeError if the matrices of `x` are not square. `prefix` is put before the error text. */
bool grd_check_square(const grd_tensor *x, const char *prefix);

/* Returns the sizes of the batch dimensions. */
static inline grd_dims grd_batch_of(const grd_tensor *x)
{
    return grd_dims_from(x->sizes, x->ndim - 2);
}

/* Returns the number of matrices of the batch. */
static inline int64_t grd_matrix_count(const grd_tensor *x)
{
    return grd_sizes_product(x->sizes, x->ndim - 2);
}

/* Plans a result whose sizes are `batch`, then rows x columns, and whose matrices are column-major and contiguous. */
bool grd_plan_columns(struct grd_plan *p, grd_dims batch, int64_t rows, int64_t columns, grd_dtype dtype);

/* Plans to read `x` as contiguous matrices and sets *ret_by_rows: true if they are row-major, false if they are column-major. A tensor that has
 * one of these two layouts is not copied. */
bool grd_plan_reads_matrices(struct grd_plan *p, grd_tensor *x, bool *ret_by_rows);

/* Returns the address of matrix `index` of a tensor whose matrices are contiguous. */
static inline char *grd_matrix_at(const grd_tensor *x, int64_t index)
{
    return x->data + index * grd_size_from_end(x, 1) * grd_size_from_end(x, 2) * x->itemsize;
}

/* Returns the address of the matrix of `x` that broadcasts to matrix `index` of `result`. */
char *grd_broadcast_matrix_at(const grd_tensor *x, const grd_tensor *result, int64_t index);

/* Describes the first matrix of a batch for which an algorithm failed. `place` is its position as text for an error message, "" if there is no batch.
 * `info` is the algorithm's error code and not 0. */
struct grd_failed_matrix {
    char place[48];
    int64_t info;
};

/* Finds the first matrix whose element of `info` is not 0, and describes it in *ret_failed. Returns false if there is no such matrix or an error is
 * pending. */
bool grd_find_failed_matrix(grd_tensor *info, struct grd_failed_matrix *ret_failed);

/* Returns the number of matrices per task if one matrix takes `work` multiplications. */
int64_t grd_matrix_grain(double work);
/* Returns `grain`, a number of matrices per task. If kernels compute several matrices of this side at once, one per vector lane, the result is
 * rounded up to a multiple of GRD_MATRIX_LANES, so that only the last task has empty lanes. */
int64_t grd_lanes_grain(int64_t side, int64_t grain);

#endif
