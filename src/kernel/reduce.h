/* Declares kernels for reductions such as sums, extremes and norms. In comments, E is the type of an element and G the type in which values are
 * accumulated.
 *
 * Only a few dtypes have kernels. grd_kernels->reduce[dtype] is NULL for all others; the caller converts them block by block to a dtype with kernels.
 * bfloat16 has only SUM, and SQUARE with center = 0. uint8 has no PROD. int8, int16, int32 and uint64 have only MAX, MIN and FIND.
 * Invariant: the order in which values are combined depends on the sizes of the block alone, never on the instruction-set level or the thread. */
#ifndef GRD_KERNEL_REDUCE_H
#define GRD_KERNEL_REDUCE_H

#include <stdint.h>

#include "gradus/types.h"

/* The value that a reduction accumulates over the elements x of one output. `center` is a number that the caller gives for each output. */
enum grd_reduce_kind {
    GRD_REDUCE_SUM,        /* the sum of x */
    GRD_REDUCE_PROD,       /* the product of x */
    GRD_REDUCE_DIFFERENCE, /* the sum of x - center */
    GRD_REDUCE_ABS,        /* the sum of |x| */
    GRD_REDUCE_SQUARE,     /* the sum of |x - center|^2, with center = 0 if the caller gives none */
    GRD_REDUCE_EXP,        /* the sum of exp(x - center) */
    GRD_REDUCE_NONZERO,    /* the number of nonzero x */
    GRD_REDUCE_MAX,        /* the largest x, or NaN if an x is NaN */
    GRD_REDUCE_MIN,        /* the smallest x, or NaN if an x is NaN */
    GRD_REDUCE_FIND,       /* the first index at which x equals `center`, the number given for the output (NaN equals NaN here) */
    GRD_REDUCE_COUNT
};

/* The operation that turns a value accumulated by a reduction into the result. `a` is a number given by the caller, e.g. the number of elements. */
enum grd_reduce_finish {
    GRD_FINISH_NONE,
    GRD_FINISH_DIVIDE,      /* the value divided by a */
    GRD_FINISH_MEAN,        /* value / a + center, or center if a is 1 */
    GRD_FINISH_ROOT,        /* the square root of the value */
    GRD_FINISH_DIVIDE_ROOT, /* the square root of (value / a) */
    GRD_FINISH_FINITE,      /* the value, or 0 if the value is infinite; used with GRD_REDUCE_MAX to find the center for logsumexp */
    GRD_FINISH_LOG,         /* logsumexp: log(value) + center, where value is the result of GRD_REDUCE_EXP */
    GRD_FINISH_ANY,         /* any(): value != 0 as a bool; bool i is written to byte i of the array of values */
    GRD_FINISH_ALL,         /* all(): value == a as a bool, where value counts the nonzero elements and a is the number of elements */
    GRD_FINISH_TRUTH,       /* value != 0 as a bool; used for any() and all() of uint8, which are reduced with MAX and MIN */
    GRD_FINISH_COUNT
};

/* Returns the dtype in which a reduction of `kind` accumulates elements of `dtype`, which must have kernels. The array `center` also has this
 * dtype, except for EXP and FIND, where it has the dtype of the elements. For complex elements ABS, SQUARE and NONZERO accumulate in the real
 * part. */
static inline grd_dtype grd_reduce_gathers(enum grd_reduce_kind kind, grd_dtype dtype)
{
    if (kind == GRD_REDUCE_FIND)
        return GRD_INT64;
    if (kind == GRD_REDUCE_MAX || kind == GRD_REDUCE_MIN)
        return dtype;
    return dtype == GRD_FLOAT32 || dtype == GRD_BFLOAT16 ? GRD_FLOAT64 : dtype == GRD_UINT8 || dtype == GRD_UINT64 ? GRD_INT64 : dtype;
}

/* Returns the dtype of the result of the operation `finish` on values that were accumulated in the dtype `gathers`. */
static inline grd_dtype grd_reduce_finished(enum grd_reduce_finish finish, grd_dtype gathers)
{
    return finish >= GRD_FINISH_ANY ? GRD_BOOL : gathers;
}

/* The arguments of a reduction: n elements for each of `outputs` outputs. A `lines` kernel takes a block in which the n elements of one output are
 * contiguous. A `columns` kernel takes a block in which contiguous elements belong to successive outputs. The elements of each output are combined
 * into gathered[output]. */
struct grd_reduce_block {
    int64_t outputs, n;
    int64_t stride; /* `lines` kernels: bytes between two outputs; `columns` kernels: bytes between two elements of an output */
    const char *in;
    void *gathered;     /* accumulated values, one per output; their dtype is grd_reduce_gathers(kind, dtype) */
    const void *center; /* one number per output; DIFFERENCE, EXP and SQUARE subtract it, FIND searches for it; SQUARE: NULL means 0 */
    int64_t first;      /* only for GRD_REDUCE_FIND: the index, within the reduction, of the first of the n elements */
};
typedef void grd_reduce_kernel(const struct grd_reduce_block *block);

/* A grd_reduce_begin function initialises n accumulated values. A grd_reduce_end function turns n accumulated values into results, in place;
 * `center` has one element per value, and `number` is the `a` in enum grd_reduce_finish. */
typedef void grd_reduce_begin(int64_t n, void *gathered);
typedef void grd_reduce_end(int64_t n, void *gathered, const void *center, double number);

/* The reduction kernels of one dtype. */
struct grd_reduce_row {
    struct {
        grd_reduce_kernel *lines, *columns; /* NULL if the dtype has no such kernel */
        grd_reduce_begin *begin;            /* writes neutral values, which change nothing when they are combined with others */
    } kinds[GRD_REDUCE_COUNT];
    /* end[f] applies operation f of enum grd_reduce_finish; NULL if f does nothing or the dtype lacks it */
    grd_reduce_end *end[GRD_FINISH_COUNT];
};

#endif
