/* Declares kernels for reductions such as sums, extremes and norms. In comments, E is the type of an element and G the type in which values are
 * accumulated.
 *
 * Only a few dtypes have kernels; for a dtype whose grd_kernels->reduce[dtype] is NULL, the caller converts block by block to a dtype with kernels.
 * bfloat16 has only SUM and SQUARE without center; uint8 has no PROD; int8, int16, int32 and uint64 have only MAX, MIN and FIND.
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
    GRD_REDUCE_SQUARE,     /* the sum of |x - center|^2, or of |x|^2 if there is no center */
    GRD_REDUCE_EXP,        /* the sum of exp(x - center) */
    GRD_REDUCE_NONZERO,    /* the number of nonzero x */
    GRD_REDUCE_MAX,        /* the largest x, or NaN if an x is NaN */
    GRD_REDUCE_MIN,        /* the smallest x, or NaN if an x is NaN */
    GRD_REDUCE_FIND,       /* the first index where x == center (or both are NaN) */
    GRD_REDUCE_COUNT
};

/* The operation that turns an accumulated value into the result. `a` is a number given by the caller. */
enum grd_reduce_finish {
    GRD_FINISH_NONE,
    GRD_FINISH_DIVIDE,      /* the value divided by a */
    GRD_FINISH_MEAN,        /* the value divided by a, plus the center */
    GRD_FINISH_ROOT,        /* the square root of the value */
    GRD_FINISH_DIVIDE_ROOT, /* the square root of (value / a) */
    GRD_FINISH_FINITE,      /* the value, or 0 if it is infinite; used with MAX */
    GRD_FINISH_LOG,         /* log(value) + center; used with EXP */
    GRD_FINISH_ANY,         /* the operator any: value != 0 as a byte; the bytes are written from the start of the array of values on */
    GRD_FINISH_ALL,         /* the operator all: value == a, where a is the number of elements, as a byte; stored as with ANY */
    GRD_FINISH_TRUTH,       /* value != 0; used for any and all of uint8, which are computed as MAX and MIN */
    GRD_FINISH_COUNT
};

/* Returns the dtype in which a reduction of `kind` over elements of `dtype` (one with kernels) accumulates. The array `center` has this dtype as
 * well, except for EXP and FIND, where it has the dtype of the elements. ABS, SQUARE and NONZERO of complex elements are stored in the real part of
 * the accumulated value. */
static inline grd_dtype grd_reduce_gathers(enum grd_reduce_kind kind, grd_dtype dtype)
{
    if (kind == GRD_REDUCE_FIND)
        return GRD_INT64;
    if (kind == GRD_REDUCE_MAX || kind == GRD_REDUCE_MIN)
        return dtype;
    return dtype == GRD_FLOAT32 || dtype == GRD_BFLOAT16 ? GRD_FLOAT64 : dtype == GRD_UINT8 || dtype == GRD_UINT64 ? GRD_INT64 : dtype;
}

/* Returns the dtype of the values after `finish`, if they were accumulated in the dtype `gathers`. */
static inline grd_dtype grd_reduce_finished(enum grd_reduce_finish finish, grd_dtype gathers)
{
    return finish >= GRD_FINISH_ANY ? GRD_BOOL : gathers;
}

/* The arguments of a reduction: n elements for each of `outputs` outputs. The `lines` kernels take blocks in which the n elements of an output are
 * contiguous, the `columns` kernels blocks in which the elements of different outputs are contiguous. The elements of each output are combined into
 * gathered[output]. */
struct grd_reduce_block {
    int64_t outputs, n;
    int64_t stride; /* `lines` kernels: bytes between two outputs; `columns` kernels: bytes between two elements of an output */
    const char *in;
    void *gathered;     /* accumulated values, one per output; their dtype is grd_reduce_gathers(kind, dtype) */
    const void *center; /* one per output, for DIFFERENCE, EXP, FIND and SQUARE; NULL for SQUARE without center */
    int64_t first;      /* for FIND: the index of the first of the n elements */
};
typedef void grd_reduce_kernel(const struct grd_reduce_block *block);

/* `begin` initialises n accumulated values. `end` turns n accumulated values into results, in place, with one element of `center` per value; `number`
 * is the `a` of enum grd_reduce_finish. */
typedef void grd_reduce_begin(int64_t n, void *gathered);
typedef void grd_reduce_end(int64_t n, void *gathered, const void *center, double number);

/* The reduction kernels of one dtype. */
struct grd_reduce_row {
    struct {
        grd_reduce_kernel *lines, *columns; /* NULL if the dtype has no such kernel */
        grd_reduce_begin *begin;            /* writes neutral values, which change nothing when they are combined with others */
    } kinds[GRD_REDUCE_COUNT];
    grd_reduce_end *end[GRD_FINISH_COUNT]; /* indexed by enum grd_reduce_finish; NULL if there is nothing to do or the dtype lacks it */
};

#endif
