/* Selection and sorting with equal elements in the order PyTorch gives them. */
#ifndef GRD_OP_RANK_H
#define GRD_OP_RANK_H

#include <stdint.h>

struct grd_ranked {
    uint64_t key; /* order.h */
    int64_t index;
};

/* Moves the k largest of n keys to the front, descending; k <= n. */
void grd_rank_largest(struct grd_ranked *items, int64_t n, int64_t k);
/* Descending. Equal keys come in any order, but always the same one. */
void grd_rank_sort(struct grd_ranked *items, int64_t n);
/* Moves the k-th smallest, from 0, to its place; k < n. */
void grd_rank_kth(struct grd_ranked *items, int64_t n, int64_t k);

#endif
