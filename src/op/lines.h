/* Declares a plan and a run function that operators such as softmax and cumulative sums share. These operators compute along one dimension, and
 * the result has the same sizes as the inputs. A line is the elements along that dimension.
 *
 * The kernel (kernel/lines.h) is called with a few lines at a time. If the strides or the dtype of a tensor are not those the kernel needs, the
 * lines are copied into a small block of scratch memory, and results are copied back from such a block. No tensor is copied as a whole. A line is
 * always computed by one thread. */
#ifndef GRD_OP_LINES_H
#define GRD_OP_LINES_H

#include "core/tensor.h"
#include "kernel/lines.h"
#include "op/plan.h"

/* Plans an operator along `dim`. Elements are converted to `dtype` before the computation, and the result has `dtype`. If `dtype` is NONE, the
 * dtype of the tensors is used instead or, if `sums` is true, the dtype of their sum (e.g. int64 for bool). Raises IndexError if dim is out of range,
 * RuntimeError if the tensors differ in sizes or dtype, and NotImplementedError if there is no kernel for the dtype. */
bool plan_lines(struct grd_plan *p, enum grd_lines_kernel_index kernel, grd_tensors tensors, int64_t dim, grd_dtype dtype, bool sums);
void run_lines(const struct grd_plan *p);
/* Computes and returns the result by one call of the kernel, without a plan, which saves time for small tensors. Returns NULL, with nothing done,
 * if a tensor is large or not contiguous, if `dim` is not the last dimension, or if the dtype has no kernel of its own. */
grd_tensor *shortcut_lines(enum grd_lines_kernel_index kernel, grd_tensor *out, grd_tensors tensors, int64_t dim, grd_dtype dtype);

/* ---- Functions for operators that have a plan of their own but use run_lines() -------------------------------------------------------- */

/* Says how a kernel uses an operand. A line is the elements along the operator's dimension. */
enum grd_lines_operand {
    GRD_LINES_LINE,   /* the operand has one line per line of the result, with any strides and dtype; an input must be planned
                       * with grd_lines_reads() */
    GRD_LINES_VALUE,  /* one value per line of the result, e.g. its mean; contiguous and of the kernel's dtype */
    GRD_LINES_SHARED, /* one line for all lines of the result, e.g. a weight; contiguous and of the kernel's dtype; may be NULL */
    GRD_LINES_SUM     /* a result of sizes [number of tasks, elements of a line], filled with zeros first; each task adds to its own row;
                       * may be empty */
};

/* Returns the dtype in which results of `dtype` are computed: complex128 for complex dtypes, int64 for integers and bool, float64 for float64, and
 * float32 for float32, float16 and bfloat16. Returns a float8 dtype unchanged; there are no kernels for it. */
grd_dtype grd_lines_dtype(grd_dtype dtype);
/* Raises NotImplementedError if there is no kernel for the dtype. `name` is the operator's name in the error text. */
bool grd_lines_check(enum grd_lines_kernel_index kernel, const char *name, grd_dtype dtype);
/* Plans to read `t` as lines. A line spans dimension `first` and all later dimensions of `t`. If one stride cannot describe these dimensions, a
 * contiguous copy of `t` is read. */
bool grd_lines_reads(struct grd_plan *p, grd_tensor *t, int first);
/* Finishes the plan of an operator that uses run_lines(). A line spans dimension `first` and all later dimensions of the first result. `as` is the
 * dtype in which the kernel computes. `kinds` has one element for each result, then one for each tensor that is read. `numbers` are
 * GRD_LINES_NUMBERS arguments for the kernel. */
bool grd_lines_plan(struct grd_plan *p, enum grd_lines_kernel_index kernel, grd_dtype as, int first, const enum grd_lines_operand *kinds,
                    const double *numbers);

#endif
