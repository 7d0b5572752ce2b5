/* Rows of a table, reduced bag by bag. */
#ifndef GRD_KERNEL_BAGS_H
#define GRD_KERNEL_BAGS_H

#include <stdint.h>

enum grd_bag_mode { GRD_BAG_SUM, GRD_BAG_MEAN, GRD_BAG_MAX }; /* PyTorch's numbers */

/* Bag b has the indices [offsets[b], offsets[b + 1]), the last one those to the end. */
struct grd_bags {
    enum grd_bag_mode mode;
    int64_t width, bags, n; /* elements of a row, bags, indices */
    int64_t padding;        /* an index that does not count; -1: none */
    const int64_t *indices, *offsets;
    const void *table, *factors; /* of each index, or NULL */
    int64_t *bag_of;             /* written: the bag of each index */
};

struct grd_bags_row {
    /* Writes the rows, the counts of indices, and for the maximum the index of each element, -1 where a bag is empty, of bags [begin, end). */
    void (*reduce)(const struct grd_bags *x, int64_t begin, int64_t end, void *out, int64_t *ret_counts, int64_t *ret_indices);
};

#endif
