/* The places of the largest elements, with equal ones in the order PyTorch gives them. */
#ifndef GRD_OP_RANK_H
#define GRD_OP_RANK_H

#include <stdint.h>

struct grd_ranked {
    uint64_t key; /* order.h */
    int64_t index;
};

/* Moves the k largest of n keys to the front, descending; k <= n. */
void grd_rank_largest(struct grd_ranked *items, int64_t n, int64_t k);

#endif
