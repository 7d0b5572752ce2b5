/* Sorting and selection of keys, with equal ones in the order PyTorch gives them. Compiled once: these loops compare and move, and gain nothing
 * from wider registers. */
#ifndef GRD_KERNEL_RANK_H
#define GRD_KERNEL_RANK_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct grd_ranked {
    uint64_t key; /* of the element's order */
    int64_t index;
};

/* The key of a number: NaN is above everything, -0 is 0. */
static inline uint64_t grd_order_key(double x)
{
    uint64_t bits;
    x = x == 0 ? 0 : x;
    memcpy(&bits, &x, sizeof bits);
    return x != x ? UINT64_MAX : bits >> 63 ? ~bits : bits | (uint64_t)1 << 63;
}

/* Moves the k largest of n keys to the front, descending; k <= n. */
void grd_rank_largest(struct grd_ranked *items, int64_t n, int64_t k);
/* True if grd_rank_largest is the same as three steps: the first k become a heap; each of the others replaces the root if its key is larger; the
 * heap is sorted. So the others need not be in memory. */
static inline bool grd_rank_by_heap(int64_t n, int64_t k)
{
    return k <= n / 64;
}
void grd_rank_make_heap(struct grd_ranked *items, int64_t k);
void grd_rank_replace_root(struct grd_ranked *heap, int64_t k, struct grd_ranked item);
void grd_rank_sort_heap(struct grd_ranked *heap, int64_t k);

/* Descending. Equal keys come in any order, but always the same one. */
void grd_rank_sort(struct grd_ranked *items, int64_t n);
/* Ascending, equal keys in the order they come in. */
void grd_rank_few_stably(struct grd_ranked *items, int64_t n);
/* Sorts words by their bits from `first` to before `end`, equal ones in the order they come in. Returns which of the two arrays they are in. */
uint64_t *grd_rank_words(uint64_t *words, uint64_t *spare, int64_t n, int first, int end);
/* Moves the key that is at `k`, from 0, of the descending order to its place, as PyTorch's kthvalue does, and no smaller ones before it; k < n. */
void grd_rank_kth(struct grd_ranked *items, int64_t n, int64_t k);

#endif
