/* The margins between classes that are targets and those that are not. */
#ifndef GRD_KERNEL_MARGIN_H
#define GRD_KERNEL_MARGIN_H

#include <stdint.h>

struct grd_margin_row {
    /* For rows of x: the sum of max(0, 1 - x[t] + x[i]) over targets t, which a row of `target` lists up to the first -1, and classes i that are no
     * targets; and its slope by each element. is_target: room for one row. */
    void (*rows)(int64_t rows, int64_t classes, const void *x, const int64_t *target, uint8_t *is_target, void *ret_sums, void *ret_slopes);
};

#endif
