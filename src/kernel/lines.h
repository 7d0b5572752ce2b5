/* Kernels over lines: what an operator computes along one dimension, such as softmax or cumsum.
 *
 * A block is a few lines of n elements each, of one dtype. They lie in one of two forms, the same for all operands:
 *   lines     the elements of a line are neighbours; `step` is from one line to the next
 *   columns   the lines are neighbours, at most GRD_LINES_COLUMNS of them; `step` is from one element of a line to the next
 * Only a few dtypes have a row: the others are converted, block by block (src/op/lines.c).
 * Invariant: what is written for a line depends on that line alone, and may lie over what is read. */
#ifndef GRD_KERNEL_LINES_H
#define GRD_KERNEL_LINES_H

#include <stdbool.h>
#include <stdint.h>

#include "gen/lines_kernels.h"

enum { GRD_LINES_COLUMNS = 256, GRD_LINES_OPERANDS = 6, GRD_LINES_NUMBERS = 2 };

struct grd_lines_block {
    int64_t lines, n;
    bool columns;
    char *data[GRD_LINES_OPERANDS];   /* the results, then the tensors in the order of the signature */
    int64_t step[GRD_LINES_OPERANDS]; /* elements; 1 for an operand with one value for each line, 0 for one line that is that of all */
    const double *numbers;            /* those of the operator */
};
typedef void grd_lines_kernel(const struct grd_lines_block *block);

#endif
