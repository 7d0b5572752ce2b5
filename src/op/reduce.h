/* Declares the plan and the run that all reductions share: sums, extremes, moments and norms. An operator uses them if its schema entry contains
 * law = "reduce". The entry also describes the reduction by a rule (struct grd_reduce_rule).
 *
 * A reduction makes one to three passes over its tensor. A pass accumulates a value for each output (kernel/reduce.h), finishes it, and writes it to
 * a result of the operator if the rule says so. The next pass gets the finished value as its center. For example, var() makes three passes. The first
 * reads one element per output, the second computes the mean from the differences to this element, and the third sums the squared differences to the
 * mean.
 *
 * Rules are planned in reduce_plan.c, and passes are run in reduce_run.c. */
#ifndef GRD_OP_REDUCE_H
#define GRD_OP_REDUCE_H

#include "core/dtype.h"
#include "core/tensor.h"
#include "kernel/reduce.h"
#include "kernel/table.h"
#include "op/plan.h"

enum {
    GRD_REDUCE_PASSES = 3,
    GRD_REDUCE_NO_RESULT = -1,
    GRD_REDUCE_STRIP = 512, /* maximum number of outputs that one kernel call computes */
    GRD_REDUCE_LINES = 8,   /* maximum number of outputs for which shortcut_reduce() reduces the last dims */
    GRD_REDUCE_LEAF = 8192, /* maximum number of contiguous elements that one kernel call reduces to one output */
    GRD_REDUCE_ROWS = 64,   /* maximum number of rows per kernel call if each row has one element of every output */
    GRD_REDUCE_WIDEST = 16  /* bytes of the largest accumulated value */
};

/* Rules for the dtype of results. `dtype` is the operator's argument of this name. Counts, absolute values and squares of complex elements have
 * the corresponding real dtype, and indices have int64. */
enum grd_reduce_type {
    GRD_REDUCE_KEEP,  /* dtype of self */
    GRD_REDUCE_SUMS,  /* `dtype` if it is given, otherwise int64 for bool and integers, and the dtype of self for all others */
    GRD_REDUCE_MEANS, /* `dtype` if it is given, otherwise the dtype of self; must be floating point or complex */
    /* `dtype` if it is given, otherwise the default float dtype for bool and integers, and the dtype of self for all others */
    GRD_REDUCE_FLOAT,
    GRD_REDUCE_TRUTH, /* bool, or uint8 if self is uint8 */
    GRD_REDUCE_INT64
};

/* Says what happens if a reduced dimension is empty: a result is computed, or an error is raised. */
enum grd_reduce_empty { GRD_EMPTY_TAKEN, GRD_EMPTY_RUNTIME_ERROR, GRD_EMPTY_INDEX_ERROR };

/* Describes one pass over the tensor. `kind` is a value of enum grd_reduce_kind and says how elements are accumulated. `finish` is a value of enum
 * grd_reduce_finish and says what is done with the accumulated value at the end. */
struct grd_reduce_pass {
    uint8_t kind, finish;
    int8_t result; /* index of the operator's result to which the pass writes its values, or GRD_REDUCE_NO_RESULT */
    bool first;    /* true if the pass reads only the first of the elements that are reduced to an output */
};

struct grd_reduce_rule {
    const char *name; /* name in the error "... not implemented for" */
    /* `type` is a value of enum grd_reduce_type, `empty` a value of enum grd_reduce_empty. `npasses` is the number of elements of `passes`. */
    uint8_t type, empty, npasses;
    bool none; /* true if an empty list of dims reduces no dimension; otherwise an empty list reduces all dimensions */
    /* For each dtype category: NULL if the operator supports the category, "" for NotImplementedError, otherwise the text of a RuntimeError. */
    const char *refuses[GRD_CATEGORY_QUANTIZED + 1];
    struct grd_reduce_pass passes[GRD_REDUCE_PASSES]; /* the passes, in order */
};

/* Plans a reduction of self over `dim`. Means and variances are divided by the number of elements minus `correction`. Raises IndexError if a dim is
 * out of range, and RuntimeError if a dim is given twice or the rule refuses the dtype. If there are no elements to reduce, raises the error that
 * rule->empty stands for. Raises NotImplementedError if there is no kernel for the dtype. */
bool plan_reduce(struct grd_plan *p, const struct grd_reduce_rule *rule, grd_tensor *self, grd_dims dim, bool keepdim, grd_dtype dtype,
                 grd_scalar correction);
/* Runs the passes of a planned reduction. */
void run_reduce(const struct grd_plan *p);
/* Reduces the first or last dims of a small contiguous tensor by one kernel call, and returns the result. It is bitwise equal to the result of
 * plan_reduce() and run_reduce(). Returns NULL if the reduction needs these two functions. */
grd_tensor *shortcut_reduce(const struct grd_reduce_rule *rule, grd_tensor *out, grd_tensor *self, grd_dims dim, bool keepdim,
                            grd_dtype dtype);

/* Returns the argument `dim` as a list of dims. The list is empty if `dim` is None. Otherwise it has one dim, which is stored in *storage. */
static inline grd_dims grd_reduce_dim(grd_scalar dim, int64_t *storage)
{
    *storage = grd_scalar_int64(dim);
    return dim.kind == GRD_SCALAR_NONE ? (grd_dims){0} : grd_dims_from(storage, 1);
}

/* ---- State that the plan passes to the run ------------------------------------------------------------------------------------------- */

/* One dimension of the input of a reduction. It is either reduced or kept. */
struct grd_reduction_dim {
    int64_t size, stride; /* size of the dimension, and stride in bytes in the input */
    int64_t step;         /* for a dimension that is not reduced: its stride in the row-major outputs, in elements */
};

/* One pass over the input. grd_reduction_prepare() computes the members. */
struct grd_reduction_pass {
    /* Copy of this pass's element of rule->passes. The plan may change the members `kind` and `finish` of the copy. */
    struct grd_reduce_pass what;
    /* `kernel` accumulates elements, and `merge` combines accumulated values with other accumulated values. */
    grd_reduce_kernel *kernel, *merge;
    /* Sets accumulated values to the identity of the reduction, e.g. to 0 for a sum, before elements are accumulated. */
    grd_reduce_begin *begin;
    /* Turns accumulated values into finished values, e.g. divides sums by a count; NULL if the two are equal. */
    grd_reduce_end *end;
    grd_loop_kernel *store; /* converts finished values to the result's dtype */
    /* Bytes of one accumulated value (gathered_size), of one value of the previous pass (center_size), of one finished value (finished_size), and of
     * one element of the result (result_size). */
    int64_t gathered_size, center_size, finished_size, result_size;
    int64_t n, piece, pieces; /* n: elements per output; they are accumulated in `pieces` pieces of `piece` elements */
    /* Byte offset of the accumulated values in the scratch memory. They are an array [pieces][outputs], with outputs in strip order (see struct
     * grd_reduction). The offset is -1 if the task that accumulates a strip of outputs also finishes it. */
    int64_t gathered;
    /* Number that `end` uses, e.g. the divisor of a mean. */
    double number;
    /* Data of the operator's result to which the pass writes; NULL if only the next pass uses the values. */
    char *result;
};

/* The data that the plan of a reduction passes to its run. The outputs are computed in strips, i.e. groups of outputs that are adjacent along one
 * dimension. Outputs are in "strip order" if they are numbered with this dimension as the innermost one. */
struct grd_reduction {
    grd_dtype read; /* dtype that the kernels read */
    uint64_t mask;  /* bit d is set if dimension d is reduced */
    int npasses;
    struct grd_reduction_pass passes[GRD_REDUCE_PASSES];
    grd_loop_kernel *convert; /* converts elements to the dtype `read`; NULL if the kernels read the tensor in place */
    const char *in;
    int64_t in_size, read_size; /* in_size: bytes of an element of the input; read_size: bytes of an element of the dtype `read` */
    bool parts;                 /* true if complex numbers are read as real and imaginary parts, which form one more dimension */
    /* True if kernels read the first element for each output of a strip, then the second element for each output, and so on. False if they read all
     * elements for one output, then all elements for the next output. */
    bool columns;
    /* Number of elements of the arrays `reduced` and `kept`. */
    int nreduced, nkept;
    /* The dimension that is divided into strips. It is not reduced. The outputs of a strip are adjacent along this dimension. */
    struct grd_reduction_dim strip;
    /* reduced: the reduced dimensions. kept: all others except `strip`. Both begin with the innermost dimension. */
    struct grd_reduction_dim reduced[GRD_MAX_DIMS], kept[GRD_MAX_DIMS];
    int64_t outputs, n; /* outputs: number of result elements; n: number of elements that are reduced to one output */
    /* width: maximum number of outputs of a strip. strips_per_row: number of strips into which the dimension `strip` is divided. strips: number of
     * all strips. */
    int64_t width, strips_per_row, strips;
};

static inline struct grd_reduction *grd_reduction_of(const struct grd_plan *p)
{
    _Static_assert(sizeof(struct grd_reduction) <= GRD_PLAN_STATE, "room in the plan");
    return (struct grd_reduction *)(uintptr_t)p->state;
}

/* Computes the members of the plan's state that depend on the strides. The caller must have set the members `mask` and `read`, and the members `kind`
 * and `number` of each pass. */
bool grd_reduction_prepare(struct grd_plan *p);

#endif
