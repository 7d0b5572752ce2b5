/* The law "lines": an operator along one dimension, whose result has the sizes of its tensors. Softmax and running sums follow it.
 *
 * Its kernel (kernel/lines.h) gets a few lines at a time. Those that do not lie in memory as it reads them, for their strides or their dtype, are brought
 * into a block of scratch, and what it writes is brought from there to the result: piece by piece, so that no operand is copied whole. A line is
 * always done by one thread. */
#ifndef GRD_OP_LINES_H
#define GRD_OP_LINES_H

#include "kernel/lines.h"
#include "op/plan.h"

/* IndexError: dim is out of range. RuntimeError: the tensors differ in sizes or dtype. NotImplementedError: no kernel for the dtype. The result has dtype
 * `dtype`, or, where that is NONE, that of the tensors; `sums`: integers and bool then become int64. Elements are converted before. */
bool plan_lines(struct grd_plan *p, enum grd_lines_kernel_index kernel, grd_tensors tensors, int64_t dim, grd_dtype dtype, bool sums);
void run_lines(const struct grd_plan *p);

#endif
