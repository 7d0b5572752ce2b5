/* Declares kernels for indexing and masks, and kernels that search in integers. Most kernels only move bytes and exist once per element size, not per
 * dtype. Arrays of GRD_INDEX_SIZES are indexed by the base-2 logarithm of the element size in bytes.
 *
 * For the grd_loop_kernels of this file, data[0] is the result, data[1] the source and data[2] the int64 indices, which the caller has checked;
 * `params` points to the stride of the indexed dimension in bytes, an int64_t. */
#ifndef GRD_KERNEL_INDEX_H
#define GRD_KERNEL_INDEX_H

#include "kernel/table.h"

enum { GRD_INDEX_SIZES = 5 }; /* number of element sizes with kernels: 1, 2, 4, 8 and 16 bytes */

/* The operations that can combine values which are scattered to the same element. AMAX and AMIN propagate NaN. */
enum grd_fold { GRD_FOLD_PROD, GRD_FOLD_AMAX, GRD_FOLD_AMIN, GRD_FOLDS };

/* size: number of elements of an indexed dimension. stride: factor that turns an index into an offset. Negative indices count from the end of the
 * dimension. */
struct grd_indexed_dim {
    int64_t size, stride;
};
/* The arguments of the kernel `coordinates`, a part of nonzero(). `mask` holds elements first to first + n - 1, in row-major order, of a tensor with
 * these `sizes`. to[d * column + r] receives coordinate d of the r-th nonzero byte of `mask`. */
struct grd_coordinates_block {
    int64_t n, first, ndim;
    const uint8_t *mask;
    const int64_t *sizes;
    int64_t *to, column;
};

/* Describes a part of the result of tril_indices(), or of triu_indices() if `upper`. The part consists of the elements in rows [first, end) whose
 * column is at most row + offset, or at least row + offset if `upper`. */
struct grd_triangle_indices {
    int64_t first, end, columns, offset;
    bool upper;
};

/* Returns the number of nonzero bytes in mask. */
typedef int64_t grd_mask_count(int64_t n, const uint8_t *mask);
/* compress: moves the elements with a nonzero mask byte to a dense list at `to`. expand: moves the elements of a dense list to the places with a
 * nonzero mask byte. Both return the number of elements moved. */
typedef int64_t grd_mask_move(int64_t n, const uint8_t *mask, char *to, const char *from);

struct grd_index_kernels {
    /* Returns the position of the first of n indices that is outside of [low, high), or -1 if there is none. */
    int64_t (*check)(int64_t n, const int64_t *index, int64_t low, int64_t high);
    /* Extends the range [*low, *high] so that it contains all n values. */
    void (*range)(int64_t n, const int64_t *values, int64_t *low, int64_t *high);
    /* offsets[i] += stride * index[i]. If index[i] is negative, `size` is first added to it. data[0]: the int64 offsets. data[1]: the int64 indices.
     * params: a struct grd_indexed_dim, which holds `stride` and `size`. */
    grd_loop_kernel *add_offsets;
    void (*prefetch)(int64_t bytes, const char *data); /* prefetches memory that will be read or written soon */
    /* Computes the inverse indices of unique(). starts[r] is where run r of equal elements begins in sorted order. places[i] is the position that
     * sorted element i had before sorting. Writes inverse[places[i]] = r for all elements i of run r. */
    void (*number_runs)(int64_t runs, const int64_t *starts, const int64_t *places, int64_t *inverse);
    /* For nonzero(): writes the coordinates of the nonzero bytes of block->mask. */
    void (*coordinates)(const struct grd_coordinates_block *block);
    /* For repeat_interleave: returns the sum of n counts, -1 if a count is negative, or -2 if the sum overflows int64. */
    int64_t (*total)(int64_t n, const int64_t *counts);
    void (*repeat)(int64_t n, const int64_t *counts, int64_t *to); /* writes counts[i] copies of i, for each i from 0 to n - 1 */
    /* Writes all combinations of r of the numbers 0 to n - 1, one per row, in lexicographic order; with replacement if `repeated`. r and `rows`, the
     * number of combinations, are positive. */
    void (*combinations)(int64_t n, int64_t r, bool repeated, int64_t rows, int64_t *to);
    /* Writes to `rows` and `columns` the indices of the elements in the upper or lower triangle of a matrix (triu_indices, tril_indices). */
    void (*triangle)(const struct grd_triangle_indices *triangle, int64_t *rows, int64_t *columns);
    /* Sets *params, an atomic_bool, to true if an element is 0. data: integers of at most 8 bytes. */
    grd_loop_kernel *find_zero[GRD_INDEX_SIZES];
    grd_loop_kernel *gather[GRD_INDEX_SIZES];  /* result[i] = source[index[i]] */
    grd_loop_kernel *scatter[GRD_INDEX_SIZES]; /* result[index[i]] = source[i] */
    /* result[index[i]] += source[i], with i ascending. For bool the sum is the logical OR. NULL for 16-bit floats. */
    grd_loop_kernel *add[GRD_DTYPE_COUNT];
    /* result[index[i]] = fold(result[index[i]], source[i]), with i ascending. PROD exists for int64, float64 and complex128, AMAX and AMIN for int64,
     * float32 and float64. */
    grd_loop_kernel *fold[GRD_FOLDS][GRD_DTYPE_COUNT];
    /* masked_fill: copies the source, but writes the element at `params` where the mask is true. data: result, source, bool mask. */
    grd_loop_kernel *masked_fill[GRD_INDEX_SIZES];
    grd_mask_count *count;
    grd_mask_move *compress[GRD_INDEX_SIZES], *expand[GRD_INDEX_SIZES];
};

/* Returns the index of the kernel for elements of `itemsize` bytes in an array of GRD_INDEX_SIZES kernels: the base-2 logarithm of itemsize. */
static inline int grd_index_size(int64_t itemsize)
{
    return __builtin_ctzll((unsigned long long)itemsize);
}

#endif
