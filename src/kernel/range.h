/* Evenly spaced numbers and their powers, and the triangles of matrices. */
#ifndef GRD_KERNEL_RANGE_H
#define GRD_KERNEL_RANGE_H

#include <stdbool.h>
#include <stdint.h>

#include "gradus/types.h"

/* Numbers of one dtype, `stride` of them from one to the next. */
struct grd_range_row {
    /* start + i * step for i from `first` on; integers wrap around. */
    void (*line)(int64_t n, int64_t first, grd_scalar start, grd_scalar step, void *ret_values, int64_t stride);
    /* float64 only, in place: base^x, and base^(x + iy) = base^x (cos(y log(base)) + i sin(y log(base))) for n pairs. */
    void (*powers)(int64_t n, double base, double *values);
    void (*complex_powers)(int64_t n, double base, double *pairs);
};

/* Contiguous matrices of rows x columns, one below the other. */
struct grd_triangle {
    int64_t rows, columns, itemsize;
    int64_t diagonal; /* from -rows to columns */
    bool upper;
    const char *from;
    char *to; /* may be `from` */
};

/* Writes rows [begin, end): the elements on one side of the diagonal and on it, and zeros on the other side. */
void grd_triangle_rows(const struct grd_triangle *t, int64_t begin, int64_t end);

#endif
