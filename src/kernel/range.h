/* Declares kernels that make evenly spaced numbers and their powers (arange, linspace, logspace), and that copy triangles of matrices (tril,
 * triu). */
#ifndef GRD_KERNEL_RANGE_H
#define GRD_KERNEL_RANGE_H

#include <stdbool.h>
#include <stdint.h>

#include "gradus/types.h"

/* The kernels of one dtype that write evenly spaced numbers or powers. */
struct grd_range_row {
    /* Writes the n numbers start + i * step for i = first to first + n - 1. Neighbouring numbers are `stride` elements apart in ret_values.
     * Integer dtypes wrap around on overflow. */
    void (*line)(int64_t n, int64_t first, grd_scalar start, grd_scalar step, void *ret_values, int64_t stride);
    /* The two functions below overwrite their array and exist for float64 only. `powers` replaces each of n numbers x by base^x. `complex_powers`
     * replaces each of n pairs (x, y) by the real and imaginary parts of base^(x + iy). */
    void (*powers)(int64_t n, double base, double *values);
    void (*complex_powers)(int64_t n, double base, double *pairs);
};

/* The arguments of tril, or of triu if `upper`. The matrices have rows x columns elements, are contiguous and follow each other in memory. */
struct grd_triangle_copy {
    int64_t rows, columns, itemsize;
    int64_t diagonal; /* diagonal at which the triangle ends, from -rows to columns: 0 is the main one, d > 0 the d-th above it */
    bool upper;
    const char *from;
    char *to; /* may be equal to `from` */
};

/* Writes rows [begin, end) of `to`; rows are counted through all matrices. Elements inside the triangle, including its diagonal, are copied from
 * `from`; all others become zero. */
void grd_triangle_rows(const struct grd_triangle_copy *t, int64_t begin, int64_t end);

#endif
