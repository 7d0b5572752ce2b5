/* Declares functions that sort and select so that equal keys come in the same order as in PyTorch. They are compiled only once, and not for each
 * instruction set, because their loops compare and move single elements and gain nothing from wider registers. */
#ifndef GRD_KERNEL_RANK_H
#define GRD_KERNEL_RANK_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* An element to be sorted. `key` is an unsigned integer that orders like the element. `index` is the position of the element. */
struct grd_ranked {
    uint64_t key;
    int64_t index;
};

/* Returns an integer key so that key(x) < key(y) exactly if x < y. NaN is above all numbers, and -0 equals 0. */
static inline uint64_t grd_order_key(double x)
{
    uint64_t bits;
    x = x == 0 ? 0 : x;
    memcpy(&bits, &x, sizeof bits);
    return x != x ? UINT64_MAX : bits >> 63 ? ~bits : bits | (uint64_t)1 << 63;
}

/* Moves the k items with the largest keys to the front, in descending order of keys; k <= n. */
void grd_rank_largest(struct grd_ranked *items, int64_t n, int64_t k);
/* True if grd_rank_largest works with a heap of k items: it makes a heap of the first k items, replaces the root by each later item with a larger
 * key, and sorts the heap. A caller can do the same with the three functions below without storing all items. */
static inline bool grd_rank_by_heap(int64_t n, int64_t k)
{
    return k <= n / 64;
}
void grd_rank_make_heap(struct grd_ranked *items, int64_t k);
void grd_rank_replace_root(struct grd_ranked *heap, int64_t k, struct grd_ranked item);
void grd_rank_sort_heap(struct grd_ranked *heap, int64_t k);

/* Sorts n items in descending order. Equal keys come in the order of the C++ library's std::sort, which PyTorch uses and which is not stable. */
void grd_rank_sort(struct grd_ranked *items, int64_t n);
/* Sorts n items stably in ascending order of keys by insertion, which is fast only for few items. */
void grd_rank_few_stably(struct grd_ranked *items, int64_t n);
/* Sorts n words stably by their bits `first` to end - 1, with `spare` as scratch memory. Returns the array that holds the sorted words: `words` or
 * `spare`. */
uint64_t *grd_rank_words(uint64_t *words, uint64_t *spare, int64_t n, int first, int end);
/* Partially sorts the n items in descending order of keys: items[k] becomes the item that a full sort would put there, and no item before position k
 * has a smaller key. Among items with equal keys, items[k] is the one that PyTorch's kthvalue picks, because the algorithm is the same. k must be
 * less than n. */
void grd_rank_kth(struct grd_ranked *items, int64_t n, int64_t k);

#endif
