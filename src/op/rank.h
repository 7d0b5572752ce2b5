/* The places of the largest scores, with equal ones in the order PyTorch gives them. */
#ifndef GRD_OP_RANK_H
#define GRD_OP_RANK_H

#include <stdint.h>

struct grd_ranked {
    double score;
    int64_t index;
};

/* Moves the k largest of n scores to the front, descending, NaN first; 1 <= k <= n. */
void grd_rank_largest(struct grd_ranked *items, int64_t n, int64_t k);

#endif
