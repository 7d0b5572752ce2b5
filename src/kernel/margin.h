/* Declares kernels that compute the multilabel margin loss and its derivatives. */
#ifndef GRD_KERNEL_MARGIN_H
#define GRD_KERNEL_MARGIN_H

#include <stdint.h>

/* The multilabel margin kernel of one dtype. */
struct grd_margin_row {
    /* Writes for each row of x its loss, the sum of max(0, 1 - x[t] + x[i]), to ret_sums and the derivative of the loss with respect to each element
     * to ret_slopes. Here t goes over the targets that the row of `target` lists up to the first -1, and i over the classes that are not targets.
     * is_target is scratch memory for one row. */
    void (*rows)(int64_t rows, int64_t classes, const void *x, const int64_t *target, uint8_t *is_target, void *ret_sums, void *ret_slopes);
};

#endif
