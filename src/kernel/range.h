/* Declares kernels that make evenly spaced numbers and their powers (arange, linspace, logspace), and that copy triangles of matrices (tril,
 * triu). */
#ifndef GRD_KERNEL_RANGE_H
#define GRD_KERNEL_RANGE_H

#include <stdbool.h>
#include <stdint.h>

#include "gradus/types.h"

/* The kernels for ranges of numbers of one dtype. `stride` is the distance between two values in elements. */
struct grd_range_row {
    /* Writes start + i * step for n integers i from `first` on. Integer dtypes wrap around on overflow. */
    void (*line)(int64_t n, int64_t first, grd_scalar start, grd_scalar step, void *ret_values, int64_t stride);
    /* The two functions below exist for float64 only and work in place. They write base^x for n numbers x, and base^(x + iy) = base^x (cos(y
     * log(base)) + i sin(y log(base))) for n pairs (x, y). */
    void (*powers)(int64_t n, double base, double *values);
    void (*complex_powers)(int64_t n, double base, double *pairs);
};

/* The arguments of tril or triu (`upper`) on contiguous matrices of rows x columns elements, one after the other in memory. */
struct grd_triangle_copy {
    int64_t rows, columns, itemsize;
    int64_t diagonal; /* number of the diagonal where the triangle ends, from -rows to columns; 0 is the main diagonal */
    bool upper;
    const char *from;
    char *to; /* may be equal to `from` */
};

/* Writes rows [begin, end) of the result, counted through all matrices. Elements on the diagonal and on the triangle's side of it are copied from
 * `from`; the others become zero. */
void grd_triangle_rows(const struct grd_triangle_copy *t, int64_t begin, int64_t end);

#endif
