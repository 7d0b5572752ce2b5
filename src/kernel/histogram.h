/* Counts of points in the cells of a grid. */
#ifndef GRD_KERNEL_HISTOGRAM_H
#define GRD_KERNEL_HISTOGRAM_H

#include <stdint.h>

/* How the bin of a number is found. A bin holds its lower edge, the last one its upper edge, too. */
enum grd_histogram_search {
    GRD_HISTOGRAM_LINEAR, /* by its distance from the first edge: edges are evenly spaced */
    GRD_HISTOGRAM_LOCAL,  /* the same, and then by the edges beside that bin: a number equal to an edge is in the bin above it */
    GRD_HISTOGRAM_BINARY  /* by binary search */
};

struct grd_histogram {
    int64_t dims;
    const int64_t *bins; /* of each dimension */
    const void *edges;   /* bins[0] + 1 of dimension 0, then those of dimension 1, … */
    const void *points;  /* rows of `dims` numbers */
    const void *weights; /* of each point; NULL: 1 */
    enum grd_histogram_search search;
};

struct grd_histogram_row {
    /* Adds the weights of points [begin, end) to their cells; points outside of the grid, NaN among them, count nowhere. */
    void (*add)(const struct grd_histogram *h, int64_t begin, int64_t end, double *cells);
    /* The sums of n cells over `parts` grids, one behind the other. */
    void (*merge)(int64_t parts, int64_t n, const double *cells, void *ret_sums);
};

#endif
