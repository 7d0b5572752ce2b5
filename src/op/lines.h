/* The law "lines": an operator along one dimension, whose result has the sizes of its tensors. Softmax and running sums follow it.
 *
 * Its kernel (kernel/lines.h) gets a few lines at a time. Those that do not lie in memory as it reads them, for their strides or their dtype, are
 * brought into a block of scratch, and what it writes is brought from there to the result: piece by piece, so that no operand is copied whole. A
 * line is always done by one thread. */
#ifndef GRD_OP_LINES_H
#define GRD_OP_LINES_H

#include "core/tensor.h"
#include "kernel/lines.h"
#include "op/plan.h"

/* IndexError: dim is out of range. RuntimeError: the tensors differ in sizes or dtype. NotImplementedError: no kernel for the dtype. The result
 * has dtype `dtype`; NONE: that of the tensors or, if `sums`, int64 for integers and bool. Elements are converted before they are computed with. */
bool plan_lines(struct grd_plan *p, enum grd_lines_kernel_index kernel, grd_tensors tensors, int64_t dim, grd_dtype dtype, bool sums);
void run_lines(const struct grd_plan *p);
/* Calls the kernel once, for few lines of contiguous tensors along the last dimension, in a dtype that has kernels. NULL: does not apply. */
grd_tensor *shortcut_lines(enum grd_lines_kernel_index kernel, grd_tensor *out, grd_tensors tensors, int64_t dim, grd_dtype dtype);

/* ---- For an operator of the law with a plan of its own -------------------------------------------------------------------------------- */

enum grd_lines_operand {
    GRD_LINES_LINE,   /* a line for each line, of any strides and dtype: read with grd_lines_reads */
    GRD_LINES_VALUE,  /* a value for each line */
    GRD_LINES_SHARED, /* one line for all, or NULL; like values contiguous and of the dtype computed in */
    GRD_LINES_SUM     /* a result [parts, n]: the kernel adds to a line of its part of the work, from 0; NULL where there are 0 parts */
};

/* Returns the dtype that results of `dtype` are computed in; it has no kernels if `dtype` has no arithmetic. */
grd_dtype grd_lines_dtype(grd_dtype dtype);
/* NotImplementedError: there is no kernel for the dtype. */
bool grd_lines_check(enum grd_lines_kernel_index kernel, const char *name, grd_dtype dtype);
/* Plans to read `t`, whose dims from `first` on are a line. */
bool grd_lines_reads(struct grd_plan *p, grd_tensor *t, int first);
/* Ends such a plan: a line is the dims of the first result from `first` on. `kinds` has an enum grd_lines_operand for each result and each tensor
 * that is read. */
bool grd_lines_plan(struct grd_plan *p, enum grd_lines_kernel_index kernel, grd_dtype as, int first, const enum grd_lines_operand *kinds,
                    const double *numbers);

#endif
