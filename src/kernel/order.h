/* Loops over elements that have an order: NaN is above every number, -0 equals 0. A row exists for each dtype that has one (kernel/table.h).
 * Scratch is given by the caller; everything else is contiguous unless it has a stride. */
#ifndef GRD_KERNEL_ORDER_H
#define GRD_KERNEL_ORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "kernel/rank.h"

/* The median is the first NaN, where there is one; of elements equal to it the one that a stable sort would put there. The mode is the smallest of the most
 * frequent elements, at its last place; every NaN is distinct. */
enum grd_rank_kind { GRD_RANK_SORT, GRD_RANK_SORT_STABLY, GRD_RANK_LARGEST, GRD_RANK_KTH, GRD_RANK_MEDIAN, GRD_RANK_MODE };

/* One line: elements `first` to first + kept - 1 of its order, and where they were. */
struct grd_rank_block {
    enum grd_rank_kind kind; /* all but SORT_STABLY and MODE are descending */
    bool flipped;            /* the other way round */
    int64_t n, first, kept;
    const void *in;
    struct grd_ranked *items; /* grd_rank_scratch(kind, n, kept) of them */
    char *values;
    int64_t *indices;
    int64_t step; /* of values and indices, in elements */
};

static inline uint64_t grd_rank_scratch(enum grd_rank_kind kind, int64_t n, int64_t kept)
{
    return (uint64_t)(kind == GRD_RANK_LARGEST && grd_rank_by_heap(n, kept) ? kept : n);
}

/* Running extremes down n rows of neighbouring columns: the largest or smallest element so far and its last place. After the first NaN the running extreme stays NaN. */
struct grd_extremes_block {
    bool smallest;
    int64_t n, columns, step; /* step: elements between the rows of all three */
    const void *in;
    void *values;
    int64_t *indices;
};

/* How many of n ascending numbers are below each of `count` wanted ones, or with `right` not above it. */
struct grd_search_block {
    int64_t n, count;
    const void *sorted, *wanted;
    const int64_t *order; /* where the i-th smallest of `sorted` is; NULL: at i */
    bool right, narrow;   /* narrow: results are int32 */
    void *to;
};

struct grd_order_row {
    void (*rank)(const struct grd_rank_block *block);
    /* The n elements in ascending order, equal ones in the order they come in: in `to` or `spare`, or, where all are equal, in `in`. */
    const void *(*sort)(int64_t n, const void *in, void *to, void *spare);
    void (*extremes)(const struct grd_extremes_block *block);
    void (*search)(const struct grd_search_block *block);
    /* to[i] = wanted[i] is among the n numbers, which are ascending unless they are grd_is_few; or its opposite */
    void (*find)(int64_t n, const void *numbers, int64_t count, const void *wanted, bool opposite, bool *to);
    /* Over sorted elements: where runs of equal ones begin, with n + 1 places. Returns how many runs. */
    int64_t (*runs)(int64_t n, const void *sorted, int64_t *starts);
};

/* So few that comparing with each of them is quicker than search. */
static inline bool grd_is_few(int64_t n)
{
    return n <= 16;
}

#endif
