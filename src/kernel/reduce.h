/* Kernels that reduce. E is the type of an element, G what values are gathered in.
 *
 * Only a few dtypes have rows: the caller converts the others, block by block, to one that has (grd_kernels->reduce[dtype] != NULL). That of bfloat16
 * has sums and, without center, squares alone; that of uint8 has no products; those of int8, int16, int32 and uint64 have extremes and their places alone.
 * Invariant: the order in which values are combined depends on the block alone, never on the instruction-set level or the thread. */
#ifndef GRD_KERNEL_REDUCE_H
#define GRD_KERNEL_REDUCE_H

#include <stdint.h>

#include "gradus/types.h"

enum grd_reduce_kind {
    GRD_REDUCE_SUM,        /* x */
    GRD_REDUCE_PROD,       /* x, multiplied */
    GRD_REDUCE_DIFFERENCE, /* x - center */
    GRD_REDUCE_ABS,        /* |x| */
    GRD_REDUCE_SQUARE,     /* |x - center|^2; without center: |x|^2 */
    GRD_REDUCE_EXP,        /* exp(x - center) */
    GRD_REDUCE_NONZERO,    /* x != 0 */
    GRD_REDUCE_MAX,        /* NaN wins */
    GRD_REDUCE_MIN,
    GRD_REDUCE_FIND, /* the first index where x == center (or both are NaN) */
    GRD_REDUCE_COUNT
};

/* Returns what becomes of a gathered value v, with a number a and the center c. */
enum grd_reduce_finish {
    GRD_FINISH_NONE,
    GRD_FINISH_DIVIDE,      /* v / a */
    GRD_FINISH_MEAN,        /* v / a + c */
    GRD_FINISH_ROOT,        /* sqrt(v) */
    GRD_FINISH_DIVIDE_ROOT, /* sqrt(v / a) */
    GRD_FINISH_FINITE,      /* 0 where v is infinite: of MAX */
    GRD_FINISH_LOG,         /* log(v) + c: of EXP */
    GRD_FINISH_ANY,         /* v != 0: a byte for each value, the first n */
    GRD_FINISH_ALL,         /* v == a: likewise */
    GRD_FINISH_TRUTH,       /* v != 0: of MAX and MIN of uint8 */
    GRD_FINISH_COUNT
};

/* The dtype values of a kind are gathered in over elements of `dtype` (one that has a row). Centers have this dtype too, but
 * those of EXP and FIND are elements. Magnitudes and counts of complex numbers are gathered in the real part. */
static inline grd_dtype grd_reduce_gathers(enum grd_reduce_kind kind, grd_dtype dtype)
{
    if (kind == GRD_REDUCE_FIND)
        return GRD_INT64;
    if (kind == GRD_REDUCE_MAX || kind == GRD_REDUCE_MIN)
        return dtype;
    return dtype == GRD_FLOAT32 || dtype == GRD_BFLOAT16 ? GRD_FLOAT64 : dtype == GRD_UINT8 || dtype == GRD_UINT64 ? GRD_INT64 : dtype;
}

/* The dtype of what was gathered in `gathers` once it is finished. */
static inline grd_dtype grd_reduce_finished(enum grd_reduce_finish finish, grd_dtype gathers)
{
    return finish >= GRD_FINISH_ANY ? GRD_BOOL : gathers;
}

/* A block of `outputs` x `n` elements. "lines" kernels want the n elements of an output contiguous, "columns" kernels the
 * outputs. Each output's value is combined into gathered[output]. */
struct grd_reduce_block {
    int64_t outputs, n;
    int64_t stride; /* bytes: lines, between outputs; columns, between the n rows */
    const char *in;
    void *gathered;     /* G[outputs] */
    const void *center; /* [outputs]; for DIFFERENCE, SQUARE, EXP, FIND */
    int64_t first;      /* index of the first of the n, for FIND */
};
typedef void grd_reduce_kernel(const struct grd_reduce_block *block);

typedef void grd_reduce_begin(int64_t n, void *gathered);
typedef void grd_reduce_end(int64_t n, void *gathered, const void *center, double number);

struct grd_reduce_row {
    struct {
        grd_reduce_kernel *lines, *columns; /* NULL: not for this dtype */
        grd_reduce_begin *begin;            /* values that change nothing when others are combined into them */
    } kinds[GRD_REDUCE_COUNT];
    grd_reduce_end *end[GRD_FINISH_COUNT]; /* in place; NULL: nothing to do */
};

#endif
