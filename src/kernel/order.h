/* Declares kernels that sort, rank and search elements of one dtype. NaN is above every number, and -0 equals 0. kernel/table.h lists the dtypes that
 * have kernels. Scratch memory comes from the caller. Arrays are contiguous unless a member `step` gives their stride. */
#ifndef GRD_KERNEL_ORDER_H
#define GRD_KERNEL_ORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "kernel/rank.h"

/* What `rank` computes for n elements along a dimension. SORT, SORT_STABLY: the sorted elements. LARGEST: the `kept` largest elements, sorted. KTH:
 * the element at position `first` of the sorted order. MEDIAN: the first NaN if there is one, otherwise the median; its index is the one that a
 * stable sort gives. MODE: the most frequent element (the smallest one if several are equally frequent) and its last position; NaNs count as
 * different elements. */
enum grd_rank_kind { GRD_RANK_SORT, GRD_RANK_SORT_STABLY, GRD_RANK_LARGEST, GRD_RANK_KTH, GRD_RANK_MEDIAN, GRD_RANK_MODE };

/* The arguments of `rank`, which sorts n elements along a dimension. It writes elements `first` to first + kept - 1 of the sorted sequence to
 * `values` and their positions in `in` to `indices`. */
struct grd_rank_block {
    enum grd_rank_kind kind; /* SORT_STABLY and MODE order ascending, the other kinds descending */
    bool flipped;            /* true: sort in the opposite direction, i.e. ascending where `kind` says descending */
    int64_t n, first, kept;
    const void *in;
    struct grd_ranked *items; /* scratch memory for as many items as grd_rank_scratch(kind, n, kept) returns */
    char *values;
    int64_t *indices;
    int64_t step; /* distance between neighbouring results in `values`, and in `indices`, in elements */
};

/* Returns how many items of scratch memory the member `items` of struct grd_rank_block must have. */
static inline uint64_t grd_rank_scratch(enum grd_rank_kind kind, int64_t n, int64_t kept)
{
    return (uint64_t)(kind == GRD_RANK_LARGEST && grd_rank_by_heap(n, kept) ? kept : n);
}

/* The arguments of `extremes`, which computes running extremes (cummax, cummin) down each of `columns` neighbouring columns of n rows. It writes for
 * each row the largest or smallest element so far and the last row where it occurs. After the first NaN the running extreme stays NaN. */
struct grd_extremes_block {
    bool smallest;
    int64_t n, columns, step; /* step: distance between neighbouring rows, in elements, in all three arrays */
    const void *in;
    void *values;
    int64_t *indices;
};

/* The arguments of searchsorted. `sorted` has n elements x, `wanted` has `count` elements w. The result for w is the number of x with x < w, or with
 * x <= w if `right`. */
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
    /* Sorts n elements stably in ascending order, with `to` and `spare` as buffers. Returns the array that holds the result: `to`, `spare`, or
     * `in` if all elements are equal. */
    const void *(*sort)(int64_t n, const void *in, void *to, void *spare);
    void (*extremes)(const struct grd_extremes_block *block);
    void (*search)(const struct grd_search_block *block);
    /* For isin(): sets to[i] to true if wanted[i] is among the n `numbers`, otherwise to false. If `opposite`, sets to[i] to the negated result.
     * `numbers` must be ascending, except if grd_is_few(n), because few numbers are compared one by one. */
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
