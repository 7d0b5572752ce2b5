/* Declares kernels for indexing and masks, and kernels that search in integers. Most kernels only move bytes and exist once per element size, not per
 * dtype. Arrays of GRD_INDEX_SIZES are indexed by the base-2 logarithm of the element size in bytes.
 *
 * For the grd_loop_kernels of this file, data[0] is the result, data[1] the source and data[2] the int64 indices, which the caller has checked;
 * `params` points to the stride of the indexed dimension in bytes, an int64_t. */
#ifndef GRD_KERNEL_INDEX_H
#define GRD_KERNEL_INDEX_H

#include "kernel/table.h"

enum { GRD_INDEX_SIZES = 5 }; /* 1, 2, 4, 8 and 16 bytes */

/* The operations that can combine values which are scattered to the same element. AMAX and AMIN propagate NaN. */
enum grd_fold { GRD_FOLD_PROD, GRD_FOLD_AMAX, GRD_FOLD_AMIN, GRD_FOLDS };

/* The size of an indexed dimension, and the number by which an index is multiplied to give an offset. Negative indices count from the end of the
 * dimension. */
struct grd_indexed_dim {
    int64_t size, stride;
};
/* The arguments of `coordinates`, a part of nonzero(). The n bytes of `mask` are elements first to first + n - 1, in row-major order, of a tensor
 * with these `sizes`. Coordinate d of the r-th nonzero byte is written to to[d * column + r]. */
struct grd_coordinates_block {
    int64_t n, first, ndim;
    const uint8_t *mask;
    const int64_t *sizes;
    int64_t *to, column;
};

/* Some rows of the matrix of tril_indices() or triu_indices(): the elements of rows `first` to end - 1 whose column is at most row + offset, or at
 * least row + offset if `upper`. */
struct grd_triangle_indices {
    int64_t first, end, columns, offset;
    bool upper;
};

/* Returns the number of nonzero bytes in mask. */
typedef int64_t grd_mask_count(int64_t n, const uint8_t *mask);
/* Moves the elements whose mask byte is nonzero to a dense list (compress), or from a dense list to the elements with a nonzero mask byte
 * (expand). Returns the number of elements moved. */
typedef int64_t grd_mask_move(int64_t n, const uint8_t *mask, char *to, const char *from);

struct grd_index_kernels {
    /* Returns the position of the first of n indices that is outside of [low, high), or -1 if there is none. */
    int64_t (*check)(int64_t n, const int64_t *index, int64_t low, int64_t high);
    /* Lowers *low and raises *high so that [*low, *high] contains all n values. */
    void (*range)(int64_t n, const int64_t *values, int64_t *low, int64_t *high);
    /* Adds stride * index to offsets. data: int64 offsets and int64 indices; params: a struct grd_indexed_dim. */
    grd_loop_kernel *add_offsets;
    void (*prefetch)(int64_t bytes, const char *data); /* prefetches memory that will be read or written soon */
    /* For the inverse of `unique`, where a run is a group of equal elements: writes inverse[places[i]] = r for all i from starts[r] to starts[r + 1]
     * - 1 and all r < runs. */
    void (*number_runs)(int64_t runs, const int64_t *starts, const int64_t *places, int64_t *inverse);
    /* Writes the coordinates of the nonzero bytes of a mask. */
    void (*coordinates)(const struct grd_coordinates_block *block);
    /* Returns the sum of n counts; -1 if one is negative, -2 if the sum overflows int64. */
    int64_t (*total)(int64_t n, const int64_t *counts);
    void (*repeat)(int64_t n, const int64_t *counts, int64_t *to); /* writes counts[i] copies of i, for each i from 0 to n - 1 */
    /* Writes all combinations of r of the numbers 0 to n - 1, one per row, in lexicographic order; with replacement if `repeated`. r and `rows`, the
     * number of combinations, are positive. */
    void (*combinations)(int64_t n, int64_t r, bool repeated, int64_t rows, int64_t *to);
    /* Writes the row and column indices of the elements of the upper or lower triangle of a matrix (triu_indices, tril_indices). */
    void (*triangle)(const struct grd_triangle_indices *triangle, int64_t *rows, int64_t *columns);
    /* Sets a flag if one of the elements is 0. data: integers of at most 8 bytes; params: a pointer to the flag, an atomic_bool. */
    grd_loop_kernel *find_zero[GRD_INDEX_SIZES];
    grd_loop_kernel *gather[GRD_INDEX_SIZES];  /* result[i] = source[index[i]] */
    grd_loop_kernel *scatter[GRD_INDEX_SIZES]; /* result[index[i]] = source[i] */
    grd_loop_kernel *add[GRD_DTYPE_COUNT];     /* result[index[i]] += source[i], with i ascending; bool uses or; NULL for 16-bit floats */
    /* result[index[i]] = fold(result[index[i]], source[i]), with i ascending. PROD exists for int64, float64 and complex128, AMAX and AMIN for int64,
     * float32 and float64. */
    grd_loop_kernel *fold[GRD_FOLDS][GRD_DTYPE_COUNT];
    /* Copies the source and replaces the elements whose mask is set. data: result, source, bool mask; params: the replacing element. */
    grd_loop_kernel *masked_fill[GRD_INDEX_SIZES];
    grd_mask_count *count;
    grd_mask_move *compress[GRD_INDEX_SIZES], *expand[GRD_INDEX_SIZES];
};

/* Returns the index into arrays of GRD_INDEX_SIZES for elements of `itemsize` bytes. */
static inline int grd_index_size(int64_t itemsize)
{
    return __builtin_ctzll((unsigned long long)itemsize);
}

#endif
