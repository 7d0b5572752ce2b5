/* Declares kernels for embedding bags. They compute the sums, means or maxima of rows of a table, for lists of row indices called bags. */
#ifndef GRD_KERNEL_BAGS_H
#define GRD_KERNEL_BAGS_H

#include <stdint.h>

enum grd_bag_mode { GRD_BAG_SUM, GRD_BAG_MEAN, GRD_BAG_MAX }; /* in the order of PyTorch's mode numbers */

/* The arguments of embedding_bag. Bag b consists of the indices at positions offsets[b] to offsets[b + 1] - 1 of the list; the last bag reaches to
 * the end of the list. */
struct grd_bags {
    enum grd_bag_mode mode;
    int64_t width, bags, n; /* width: elements of a row of the table; bags: number of bags; n: number of indices in all bags */
    int64_t padding;        /* indices equal to this number are skipped; -1 if there is none */
    const int64_t *indices, *offsets;
    const void *table, *factors; /* factors: one weight per index, or NULL for weights of 1 */
    int64_t *bag_of;             /* output: bag_of[i] receives the number of the bag that contains indices[i] */
};

/* The embedding-bag kernel of one dtype. */
struct grd_bags_row {
    /* Computes bags [begin, end). Writes the result row of each bag to `out`. Writes to ret_counts how many indices of the bag differ from `padding`.
     * In mode GRD_BAG_MAX, also writes to ret_indices, for each element of `out`, the index of the table row that the element comes from, or -1 if
     * the bag's value in ret_counts is 0. */
    void (*reduce)(const struct grd_bags *x, int64_t begin, int64_t end, void *out, int64_t *ret_counts, int64_t *ret_indices);
};

#endif
