/* Declares kernels that sort, rank and search elements of one dtype. NaN is above every number, and -0 equals 0. Each dtype with an order has kernels
 * (see kernel/table.h). Scratch memory comes from the caller. Arrays are contiguous unless there is a stride for them. */
#ifndef GRD_KERNEL_ORDER_H
#define GRD_KERNEL_ORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "kernel/rank.h"

/* The result that `rank` computes for n elements along a dimension. SORT, SORT_STABLY: the sorted elements. LARGEST: the `kept` largest elements in
 * order. KTH: the sorted element with number `first`. MEDIAN: the first NaN if there is one; among elements equal to the median it is the one that a
 * stable sort would put there. MODE: the smallest of the most frequent elements, at its last position; every NaN is a value of its own. */
enum grd_rank_kind { GRD_RANK_SORT, GRD_RANK_SORT_STABLY, GRD_RANK_LARGEST, GRD_RANK_KTH, GRD_RANK_MEDIAN, GRD_RANK_MODE };

/* The arguments of `rank`, which sorts n elements along a dimension. It writes elements `first` to first + kept - 1 of the sorted sequence to
 * `values` and their positions in `in` to `indices`. */
struct grd_rank_block {
    enum grd_rank_kind kind; /* SORT_STABLY and MODE order ascending, the other kinds descending */
    bool flipped;            /* reverses the order of the kind */
    int64_t n, first, kept;
    const void *in;
    struct grd_ranked *items; /* scratch memory for grd_rank_scratch(kind, n, kept) items */
    char *values;
    int64_t *indices;
    int64_t step; /* distance between two values, and between two indices, in elements */
};

/* Returns how many items grd_rank_block needs as scratch memory. */
static inline uint64_t grd_rank_scratch(enum grd_rank_kind kind, int64_t n, int64_t kept)
{
    return (uint64_t)(kind == GRD_RANK_LARGEST && grd_rank_by_heap(n, kept) ? kept : n);
}

/* The arguments of `extremes`, which computes running extremes (cummax, cummin) down each of `columns` neighbouring columns of n rows. It writes for
 * each row the largest or smallest element so far and the last row where it occurs. After the first NaN the running extreme stays NaN. */
struct grd_extremes_block {
    bool smallest;
    int64_t n, columns, step; /* step: elements between two rows of `in`, of `values` and of `indices` */
    const void *in;
    void *values;
    int64_t *indices;
};

/* The arguments of searchsorted: for each of `count` wanted numbers, the result is how many of n ascending numbers are below it, or, if `right`, not
 * above it. */
struct grd_search_block {
    int64_t n, count;
    const void *sorted, *wanted;
    const int64_t *order; /* order[i] is the position in `sorted` of its i-th smallest number; NULL if `sorted` is in order */
    bool right, narrow;   /* narrow: results are int32 instead of int64 */
    void *to;
};

/* The ordering kernels of one dtype. */
struct grd_order_row {
    void (*rank)(const struct grd_rank_block *block);
    /* Stably sorts n elements in ascending order. Returns where the result is: `to` or `spare`, or `in` if all elements are equal. */
    const void *(*sort)(int64_t n, const void *in, void *to, void *spare);
    void (*extremes)(const struct grd_extremes_block *block);
    void (*search)(const struct grd_search_block *block);
    /* Writes to[i] = true if wanted[i] is among the n numbers, otherwise false, or the opposite if `opposite`. The numbers must be ascending, unless
     * they are so few that each is compared (grd_is_few(n)). */
    void (*find)(int64_t n, const void *numbers, int64_t count, const void *wanted, bool opposite, bool *to);
    /* Writes to `starts` the position where each run (maximal range of equal elements) of the n sorted elements begins, and then n. `starts` has room
     * for n + 1 numbers. Returns the number of runs. */
    int64_t (*runs)(int64_t n, const void *sorted, int64_t *starts);
};

/* True if n numbers are so few that comparing with each of them is faster than a binary search. */
static inline bool grd_is_few(int64_t n)
{
    return n <= 16;
}

#endif
