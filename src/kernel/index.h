/* Loops over elements that indices or masks name, searches, and blocked transposition. Most move bytes and so exist per element size, not per
 * dtype: arrays of GRD_INDEX_SIZES are indexed by the base-2 logarithm of an element's bytes.
 *
 * An indexed loop gets (n, data, strides in bytes, params): data[0] the result, data[1] the source, data[2] int64 indices, all in range;
 * params points to the int64 byte stride of the indexed dimension. */
#ifndef GRD_KERNEL_INDEX_H
#define GRD_KERNEL_INDEX_H

#include "kernel/table.h"

enum { GRD_INDEX_SIZES = 5 }; /* 1, 2, 4, 8 and 16 bytes */

/* Returns what becomes of an element that several values go to. NaN is above and below every number. */
enum grd_fold { GRD_FOLD_PROD, GRD_FOLD_AMAX, GRD_FOLD_AMIN, GRD_FOLDS };

/* An indexed dimension: negative indices are counted from its end. */
struct grd_indexed_dim {
    int64_t size, stride;
};
/* The coordinates of the set bytes of a mask of some sizes, of which `first` is the place of mask[0]: column d of row r goes to
 * to[d * column + r]. */
struct grd_coordinates_block {
    int64_t n, first, ndim;
    const uint8_t *mask;
    const int64_t *sizes;
    int64_t *to, column;
};

/* The elements of a triangle: of rows `first` to `end` those in columns up to row + offset, or from there on if `upper`. */
struct grd_triangle {
    int64_t first, end, columns, offset;
    bool upper;
};

/* The number of set bytes among n. */
typedef int64_t grd_mask_count(int64_t n, const uint8_t *mask);
/* Moves elements one after the other to (compress) or from (expand) a dense list, where the mask is set; returns how many. */
typedef int64_t grd_mask_move(int64_t n, const uint8_t *mask, char *to, const char *from);

struct grd_index_kernels {
    /* The position of the first of n indices outside [low, high), or -1. */
    int64_t (*check)(int64_t n, const int64_t *index, int64_t low, int64_t high);
    /* Lowers *low and raises *high to those of n values. */
    void (*range)(int64_t n, const int64_t *values, int64_t *low, int64_t *high);
    /* data: int64 offsets and indices; params: struct grd_indexed_dim. offset += stride * index */
    grd_loop_kernel *add_offsets;
    void (*prefetch)(int64_t bytes, const char *data); /* asks for memory that will be read or written soon */
    /* inverse[places[i]] = r for i from starts[r] to starts[r + 1] */
    void (*number_runs)(int64_t runs, const int64_t *starts, const int64_t *places, int64_t *inverse);
    void (*coordinates)(const struct grd_coordinates_block *block);
    /* The sum of n counts; -1 when one is negative, -2 when they add up to more than int64 holds. */
    int64_t (*total)(int64_t n, const int64_t *counts);
    void (*repeat)(int64_t n, const int64_t *counts, int64_t *to); /* i, counts[i] times, for every i */
    /* All choices of r > 0 of the numbers below n, a row each, in lexicographic order. `repeated`: a number may occur again. rows > 0 */
    void (*combinations)(int64_t n, int64_t r, bool repeated, int64_t rows, int64_t *to);
    void (*triangle)(const struct grd_triangle *triangle, int64_t *rows, int64_t *columns);
    /* data: integers, of 8 bytes or fewer; params: a pointer to the atomic_bool that is set if one is 0 */
    grd_loop_kernel *find_zero[GRD_INDEX_SIZES];
    grd_loop_kernel *gather[GRD_INDEX_SIZES];  /* result[i] = source[index[i]] */
    grd_loop_kernel *scatter[GRD_INDEX_SIZES]; /* result[index[i]] = source[i] */
    grd_loop_kernel *add[GRD_DTYPE_COUNT];     /* result[index[i]] += source[i], i rising; bool: or; no 16-bit floats */
    /* result[index[i]] = fold(result[index[i]], source[i]), i rising; int64 float64 complex128, extremes float32 too */
    grd_loop_kernel *fold[GRD_FOLDS][GRD_DTYPE_COUNT];
    /* data: result, source, bool mask; params: the element to put where the mask is set */
    grd_loop_kernel *masked_fill[GRD_INDEX_SIZES];
    grd_mask_count *count;
    grd_mask_move *compress[GRD_INDEX_SIZES], *expand[GRD_INDEX_SIZES];
};

static inline int grd_index_size(int64_t itemsize)
{
    return __builtin_ctzll((unsigned long long)itemsize);
}

#endif
