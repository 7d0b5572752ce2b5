/* Adds up rows of a table, or computes their mean or maximum, for embedding_bag; see kernel/bags.h. A bag is a list of indices of rows, for which one
 * row of the result is computed. The build compiles this file once for float32 and once for float64.
 * Invariant: the rows of a bag are added in the order in which its indices are listed. */
#include "kernel/bags.h"

#include <string.h>

#include "kernel/cpu/typed.h"

/* Adds `row`, multiplied by *factor unless `factor` is NULL, to `sum`. Both have n elements. */
static void add_row(int64_t n, const T *row, const T *factor, T *restrict sum)
{
    if (factor == NULL)
        for (int64_t i = 0; i < n; i++)
            sum[i] += row[i];
    else
        for (int64_t i = 0; i < n; i++)
            sum[i] += row[i] * *factor;
}

/* Updates n running maxima with one row of the table. If row[i] is larger than largest[i], or indices[i] is -1 because there is no maximum yet, sets
 * largest[i] to row[i] and indices[i] to `index`, the index of the row. */
static void take_larger(int64_t n, const T *row, int64_t index, T *restrict largest, int64_t *restrict indices)
{
    for (int64_t i = 0; i < n; i++)
        if (indices[i] < 0 || row[i] > largest[i]) {
            largest[i] = row[i];
            indices[i] = index;
        }
}

/* Adds the table rows of one bag to `sum`, each multiplied by its factor in x->factors unless that is NULL. In mode GRD_BAG_MAX, takes the maximum
 * of the rows instead, and writes to `indices` from which row each maximum was taken. Sets x->bag_of to `bag` for each index of the bag. Rows
 * whose index is x->padding are skipped. Returns the number of the other rows. */
static int64_t reduce_bag(const struct grd_bags *x, int64_t bag, T *sum, int64_t *indices)
{
    const int64_t last = bag + 1 < x->bags ? x->offsets[bag + 1] : x->n;
    int64_t count = 0;
    for (int64_t i = x->offsets[bag]; i < last; i++) {
        x->bag_of[i] = bag;
        const int64_t index = x->indices[i];
        if (index == x->padding)
            continue;
        count++;
        const T *row = (const T *)x->table + index * x->width;
        if (x->mode == GRD_BAG_MAX)
            take_larger(x->width, row, index, sum, indices);
        else
            add_row(x->width, row, x->factors == NULL ? NULL : (const T *)x->factors + i, sum);
    }
    return count;
}

static void reduce(const struct grd_bags *x, int64_t begin, int64_t end, void *out, int64_t *ret_counts, int64_t *ret_indices)
{
    for (int64_t bag = begin; bag < end; bag++) {
        T *sum = (T *)out + bag * x->width;
        int64_t *indices = x->mode == GRD_BAG_MAX ? ret_indices + bag * x->width : NULL;
        memset(sum, 0, (size_t)x->width * sizeof *sum);
        for (int64_t i = 0; indices != NULL && i < x->width; i++)
            indices[i] = -1;
        ret_counts[bag] = reduce_bag(x, bag, sum, indices);
        for (int64_t i = 0; x->mode == GRD_BAG_MEAN && ret_counts[bag] > 1 && i < x->width; i++)
            sum[i] /= (T)ret_counts[bag];
    }
}

const struct grd_bags_row GRD_TYPED(grd_bags_row) = {.reduce = reduce};
