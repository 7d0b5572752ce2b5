/* Declares the kernels of operators that work along one dimension, such as softmax or cumsum.
 *
 * A line is the elements along this dimension. A kernel processes a block of a few lines of n elements each, all of one dtype. All operands of a
 * block have the same layout, which is one of these two:
 *   lines     the elements of a line are contiguous; `step` is the distance between two lines
 *   columns   neighbouring lines, at most GRD_LINES_COLUMNS, are one element apart; `step` is the distance between two elements of a line
 * Only a few dtypes have kernels; operands of other dtypes are converted block by block (src/op/lines.c).
 * Invariant: the results of a line depend on that line alone. A result may overwrite an operand. */
#ifndef GRD_KERNEL_LINES_H
#define GRD_KERNEL_LINES_H

#include <stdbool.h>
#include <stdint.h>

#include "gen/lines_kernels.h"

enum { GRD_LINES_COLUMNS = 256, GRD_LINES_OPERANDS = 6, GRD_LINES_NUMBERS = 2 };

struct grd_lines_block {
    int64_t lines, n;
    /* true: the elements of a line (the elements along the dimension) are `step` apart, and neighbouring lines are one element apart */
    bool columns;
    /* pointers to the results of the block, followed by its inputs in the order of the operator's signature */
    char *data[GRD_LINES_OPERANDS];
    /* step[i]: a distance in data[i], in elements. If data[i] has one value per line, step[i] is 1. If all lines share one line of data[i], step[i]
     * is 0. Otherwise step[i] is the distance between two lines or, if `columns`, between two elements of a line. A line is the elements along the
     * dimension. */
    int64_t step[GRD_LINES_OPERANDS];
    const double *numbers; /* the operator's numeric arguments */
};
typedef void grd_lines_kernel(const struct grd_lines_block *block);

#endif
