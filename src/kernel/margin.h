/* Declares kernels that compute the multilabel margin loss and its derivatives. */
#ifndef GRD_KERNEL_MARGIN_H
#define GRD_KERNEL_MARGIN_H

#include <stdint.h>

/* The multilabel margin kernel of one dtype. */
struct grd_margin_row {
    /* For each row of x, writes its loss to ret_sums and the derivatives of the loss by the elements of x to ret_slopes. The loss is the sum of
     * max(0, 1 - x[t] + x[i]) over all targets t and all classes i that are not targets. The targets are the elements of a row of `target` before
     * the first -1. is_target is scratch memory for one row. */
    void (*rows)(int64_t rows, int64_t classes, const void *x, const int64_t *target, uint8_t *is_target, void *ret_sums, void *ret_slopes);
};

#endif
