/* Adds up the weights of points in the cells of a histogram with one or more dimensions; see kernel/histogram.h. The build compiles this file once
 * for float32 and once for float64. */
#include "kernel/histogram.h"

#include <string.h>

#include "kernel/cpu/typed.h"

enum { POINTS = 512 }; /* number of points per block; the histogram cells of all points of a block are found before weights are added */

/* Returns floor(bins * (x - low) / (high - low)), clamped to [0, bins]. For x in [low, high] this is the bin of x or, because of rounding, a bin
 * beside it. */
GRD_INLINE int64_t computed_bin(T x, T low, T high, int64_t bins)
{
    const T at = (x - low) * (T)bins / (high - low);
    return !(at > 0) ? 0 : at < (T)bins ? (int64_t)at : bins;
}

/* Returns the bin of x, computed from the first and the last edge alone. Requires that the edges are evenly spaced. */
GRD_INLINE int64_t linear_bin(T x, const T *edges, int64_t bins)
{
    const int64_t bin = computed_bin(x, edges[0], edges[bins], bins);
    return bin - (bin == bins);
}

/* Returns the bin of x. First computes it from the first and the last edge, which requires evenly spaced edges. Because of rounding this bin may be
 * off by one, so x is then compared with the edges around it. */
GRD_INLINE int64_t local_bin(T x, const T *edges, int64_t bins)
{
    const int64_t computed = computed_bin(x, edges[0], edges[bins], bins), last = computed < bins ? computed + 1 : bins;
    int64_t bin = computed > 0 ? computed - 1 : 0;
    for (int64_t edge = bin + 1; edge <= last; edge++)
        bin += edges[edge] <= x;
    return bin - (bin == bins);
}

/* Returns the bin of x by binary search for the last edge that is not above x. If the edges are not sorted, the result is some bin, but always the
 * same one for the same x. */
GRD_INLINE int64_t binary_bin(T x, const T *edges, int64_t bins)
{
    int64_t bin = -1;
    for (int64_t n = bins + 1; n > 0;) {
        const int64_t half = (n + 1) / 2;
        const bool above = edges[bin + half] <= x;
        bin += above ? half : 0;
        n = above ? n - half : half - 1;
    }
    return bin - (bin == bins);
}

typedef int64_t bin_function(T x, const T *edges, int64_t bins);

/* Adds one dimension to the indices of the cells of n points, where a cell is one bin of each dimension. The new index places[i]
 * is places[i] * bins + the bin of x[i * step]. It is -1 if x[i * step] is outside of the edges or places[i] was -1 before. */
GRD_INLINE void find(int64_t n, const T *x, int64_t step, const T *edges, int64_t bins, int64_t *places, bin_function *bin_of)
{
    const T low = edges[0], high = edges[bins];
    for (int64_t i = 0; i < n; i++) {
        const bool inside = x[i * step] >= low && x[i * step] <= high && places[i] >= 0;
        places[i] = inside ? places[i] * bins + bin_of(x[i * step], edges, bins) : -1;
    }
}

/* Writes to `places` the indices of the cells that contain n points, beginning with point `begin`. A cell is the combination of one bin per
 * dimension. The index is -1 if the point lies outside of the histogram. */
static void find_places(const struct grd_histogram *h, int64_t begin, int64_t n, int64_t *places)
{
    const T *edges = h->edges;
    memset(places, 0, (size_t)n * sizeof *places);
    for (int64_t d = 0; d < h->dims; edges += h->bins[d++] + 1) {
        const T *x = (const T *)h->points + begin * h->dims + d;
        if (h->search == GRD_HISTOGRAM_LINEAR)
            find(n, x, h->dims, edges, h->bins[d], places, linear_bin);
        else if (h->search == GRD_HISTOGRAM_LOCAL)
            find(n, x, h->dims, edges, h->bins[d], places, local_bin);
        else
            find(n, x, h->dims, edges, h->bins[d], places, binary_bin);
    }
}

static void add(const struct grd_histogram *h, int64_t begin, int64_t end, double *cells)
{
    int64_t places[POINTS];
    for (int64_t first = begin; first < end; first += POINTS) {
        const int64_t n = end - first < POINTS ? end - first : POINTS;
        const T *weights = h->weights == NULL ? NULL : (const T *)h->weights + first;
        find_places(h, first, n, places);
        for (int64_t i = 0; i < n; i++)
            if (places[i] >= 0)
                cells[places[i]] += weights == NULL ? 1 : (double)weights[i];
    }
}

static void merge(int64_t parts, int64_t n, const double *cells, void *ret_sums)
{
    for (int64_t i = 0; i < n; i++) {
        double sum = 0;
        for (int64_t part = 0; part < parts; part++)
            sum += cells[part * n + i];
        ((T *)ret_sums)[i] = (T)sum;
    }
}

const struct grd_histogram_row GRD_TYPED(grd_histogram_row) = {.add = add, .merge = merge};
