/* Computes histograms (the edges of bins and the counts) and bincount. The loop is in kernel/cpu/histogram.c.
 *
 * Invariant: points are counted in pieces whose boundaries depend on the sizes alone. Each piece has its own counts of all bins, and these counts
 * are added up in order, so results do not depend on the number of threads. */
#include <math.h>
#include <string.h>

#include "base/integer.h"
#include "base/parallel.h"
#include "gen/uses/op/histogram.h"
#include "core/dtype.h"
#include "core/scalar.h"
#include "core/tensor.h"
#include "gradus/library.h"
#include "kernel/histogram.h"
#include "kernel/table.h"
#include "op/formula.h"
#include "op/lines.h"
#include "op/plan.h"
#include "op/copy.h"
#include "kernel/index.h"

enum {
    GRAIN = 16384, /* minimum number of points in a piece */
    /* Maximum number of pieces. It is small because each piece has its own counts of all cells. It does not depend on the number of threads, so
     * results do not depend on that number. */
    PARTS = 16
};

/* ---- Edges -------------------------------------------------------------------------------------------------------------------------- */

grd_tensor *grd_histogram_edges(grd_tensor *self, int64_t bins, grd_scalar low, grd_scalar high, int64_t dimension)
{
    const bool is_histc = dimension < 0, given = low.kind != GRD_SCALAR_NONE;
    double ends[2] = {0, 1};
    if (bins <= 0)
        return grd_fail(GRD_ERROR_RUNTIME, "torch.histogram(): bins must be > 0, but got %lld for dimension %lld", (long long)bins,
                        (long long)(is_histc ? 0 : dimension));
    double bounds[2] = {0, 0};
    if (given && (!grd_scalar_write(low, GRD_FLOAT64, &bounds[0]) || !grd_scalar_write(high, GRD_FLOAT64, &bounds[1])))
        return grd_failed;
    if (given && !(is_histc && bounds[0] == bounds[1])) {
        ends[0] = bounds[0];
        ends[1] = bounds[1];
    } else if (!grd_pending() && self->numel > 0) {
        if (!is_histc && grd_kernels->histogram[self->dtype] == NULL)
            return grd_fail(GRD_ERROR_NOT_IMPLEMENTED, "\"histogramdd\" not implemented for '%s'",
                            grd_dtype_type_name((grd_dtype)self->dtype));
        grd_composite_extremes(self, &ends[0], &ends[1]);
    }
    if ((!isfinite(ends[0]) || !isfinite(ends[1])) && is_histc)
        return grd_fail(GRD_ERROR_RUNTIME, "torch.histc: range of [%g, %g] is not finite", ends[0], ends[1]);
    if (!isfinite(ends[0]) || !isfinite(ends[1]))
        return grd_fail(GRD_ERROR_RUNTIME, "torch.histogramdd: dimension %lld's range [%g, %g] is not finite", (long long)dimension,
                        ends[0], ends[1]);
    if (ends[0] > ends[1])
        return grd_fail(GRD_ERROR_RUNTIME, "torch.histogramdd: min should not exceed max, but got min %g max %g for dimension %lld",
                        ends[0], ends[1], (long long)dimension);
    if (bins == INT64_MAX)
        return grd_fail(GRD_ERROR_RUNTIME, "torch.histogramdd: dimension %lld has too many bins: %lld", (long long)dimension,
                        (long long)bins);
    const double room = ends[0] == ends[1] ? 0.5 : 0;
    return grd_linspace(grd_float(ends[0] - room), grd_float(ends[1] + room), bins + 1, .dtype = (grd_dtype)self->dtype,
                        .device = grd_device_of(self));
}

static bool check_points(const grd_tensor *self, int64_t dims)
{
    if (self->ndim < 2)
        return grd_raise(GRD_ERROR_RUNTIME, "torch.histogramdd: input tensor should have at least 2 dimensions");
    return self->sizes[self->ndim - 1] == dims ||
           grd_raise(GRD_ERROR_RUNTIME, "histogramdd: The size of bins must be equal to the innermost dimension of the input.");
}

static bool check_range(const grd_tensor *range, int64_t dims)
{
    return range == NULL || range->numel == 2 * dims ||
           grd_raise(GRD_ERROR_RUNTIME, "torch.histogramdd: for a %lld-dimensional histogram range should have %lld elements, but got %lld",
                     (long long)dims, (long long)(2 * dims), (long long)range->numel);
}

/* Returns element i of `t`; an absent scalar if `t` is NULL. */
static grd_scalar element(grd_tensor *t, int64_t i)
{
    return t == NULL ? (grd_scalar){0} : grd_item(grd_select(grd_reshape(t, grd_dims(-1)), 0, i));
}

grd_tensors op_hidden_histogramdd_bin_edges(grd_tensor *self, grd_dims bins, grd_tensor *range, grd_tensor *weight, bool density)
{
    grd_tensor **edges = grd_pool_array(bins.n, sizeof *edges);
    (void)weight, (void)density; /* PyTorch's signature has these arguments, but they do not change the edges */
    const bool fits = edges != NULL && check_points(self, bins.n) && check_range(range, bins.n);
    for (int64_t d = 0; fits && d < bins.n; d++)
        edges[d] = grd_histogram_edges(grd_select(self, -1, d), bins.data[d], element(range, 2 * d), element(range, 2 * d + 1), d);
    return grd_pending() ? grd_tensors_from(NULL, 0) : grd_tensors_from(edges, bins.n);
}

/* ---- Counts ------------------------------------------------------------------------------------------------------------------------- */

static bool check_edges(const grd_tensor *self, grd_tensors edges)
{
    if (self->ndim < 2)
        return check_points(self, 0);
    const int64_t dims = self->sizes[self->ndim - 1];
    if (edges.n != dims)
        return grd_raise(GRD_ERROR_RUNTIME,
                         "torch.histogramdd: expected %lld sequences of bin edges for a %lld-dimensional histogram but got %lld",
                         (long long)dims, (long long)dims, (long long)edges.n);
    for (int64_t d = 0; d < dims; d++) {
        const grd_tensor *of = edges.data[d];
        if (of->dtype != self->dtype)
            return grd_raise(
                GRD_ERROR_RUNTIME,
                "torch.histogramdd: input tensor and bins tensors should have the same dtype, but got input with dtype %s and bins "
                "for dimension %lld with dtype %s",
                grd_dtype_c_name((grd_dtype)self->dtype), (long long)d, grd_dtype_c_name((grd_dtype)of->dtype));
        if (of->ndim != 1)
            return grd_raise(
                GRD_ERROR_RUNTIME,
                "torch.histogramdd: bins tensor should have one dimension, but got %d dimensions in the bins tensor for dimension %lld",
                of->ndim, (long long)d);
        if (of->numel == 0)
            return grd_raise(
                GRD_ERROR_RUNTIME,
                "torch.histogramdd: bins tensor should have at least 1 element, but got 0 elements in the bins tensor for dimension %lld",
                (long long)d);
        if (of->numel == 1)
            return grd_raise(GRD_ERROR_RUNTIME, "torch.histogram(): bins must be > 0, but got 0 for dimension %lld", (long long)d);
    }
    return true;
}

static bool check_weight(const grd_tensor *self, const grd_tensor *weight)
{
    if (weight == NULL)
        return true;
    if (weight->dtype != self->dtype)
        return grd_raise(
            GRD_ERROR_RUNTIME,
            "torch.histogramdd: if weight tensor is provided, input tensor and weight tensor should have the same dtype, but got "
            "input(%s), and weight(%s)",
            grd_dtype_c_name((grd_dtype)self->dtype), grd_dtype_c_name((grd_dtype)weight->dtype));
    return grd_same_sizes(weight, grd_dims_from(self->sizes, self->ndim - 1)) ||
           grd_raise(
               GRD_ERROR_RUNTIME,
               "torch.histogramdd: if weight tensor is provided it should have the same shape as the input tensor excluding its innermost "
               "dimension, but got input with shape %s and weight with shape %s",
               grd_list_text(grd_sizes(self)), grd_list_text(grd_sizes(weight)));
}

/* Returns the density of a histogram, which is the counts divided by their sum and by the width of the bins along each dimension. */
static grd_tensor *as_density(grd_tensor *counts, grd_tensors edges)
{
    counts = grd_div(counts, grd_sum(counts));
    for (int64_t d = 0; d < edges.n; d++)
        counts = grd_div(counts, grd_composite_along(grd_diff(edges.data[d]), edges.n, d));
    return counts;
}

grd_tensor *grd_histogram_counts(grd_tensor *self, grd_tensors edges, grd_tensor *weight, bool density, int64_t search)
{
    if (grd_pending() || !check_edges(self, edges) || !check_weight(self, weight))
        return grd_failed;
    int64_t bins[GRD_MAX_DIMS];
    if (edges.n > GRD_MAX_DIMS)
        return grd_fail(GRD_ERROR_RUNTIME, "torch.histogramdd: a tensor has at most %d dimensions, and not %lld", GRD_MAX_DIMS,
                        (long long)edges.n);
    for (int64_t d = 0; d < edges.n; d++)
        bins[d] = edges.data[d]->numel - 1;
    grd_tensor *counts = grd_hidden_histogram(grd_reshape(self, grd_dims(-1, edges.n)), edges.n == 1 ? edges.data[0] : grd_cat(edges),
                                              grd_dims_from(bins, edges.n), weight, search);
    return density ? as_density(counts, edges) : counts;
}

grd_tensor *op_hidden_histogramdd_from_bin_cts(grd_tensor *self, grd_dims bins, grd_tensor *range, grd_tensor *weight, bool density)
{
    const grd_tensors edges = op_hidden_histogramdd_bin_edges(self, bins, range, weight, density);
    return grd_histogram_counts(self, edges, weight, density, GRD_HISTOGRAM_LOCAL);
}

grd_tensor *op_hidden_histogramdd_from_bin_tensors(grd_tensor *self, grd_tensors bins, grd_tensor *weight, bool density)
{
    return grd_histogram_counts(self, bins, weight, density, GRD_HISTOGRAM_BINARY);
}

/* ---- The loop ------------------------------------------------------------------------------------------------------------------------ */

/* Data that plan_hidden_histogram hands to run_histogram. There are `points` points, which are counted in pieces of `piece` points. */
struct counting {
    const struct grd_histogram_row *kernels;
    struct grd_histogram grid;
    int64_t bins[GRD_MAX_DIMS];
    int64_t points, piece;
};

/* Raises RuntimeError if the sizes of the points (`self`), of `edges` or of the weights do not fit together. `edges` must be a vector that holds the
 * edges of dimension 0, then those of dimension 1, and so on, with bins[d] + 1 edges for dimension d. */
static bool check_grid(const grd_tensor *self, const grd_tensor *edges, grd_dims bins, const grd_tensor *weight)
{
    bool fits = self->ndim == 2 && self->sizes[1] == bins.n && edges->ndim == 1 && (weight == NULL || weight->numel == self->sizes[0]);
    int64_t rest = edges->numel;
    for (int64_t d = 0; fits && d < bins.n; d++) {
        fits = bins.data[d] > 0 && bins.data[d] < rest;
        rest -= fits ? bins.data[d] + 1 : 0;
    }
    return (fits && rest == 0) || grd_raise(GRD_ERROR_RUNTIME, "points %s, edges %s and weights do not fit bins %s",
                                            grd_list_text(grd_sizes(self)), grd_list_text(grd_sizes(edges)), grd_list_text(bins));
}

/* Plans the counting of points in cells; a cell is one bin in each dimension. Each piece of the points has its own counts of all cells. A piece has
 * at least as many points as there are cells, so that all counts together take no more memory than the points. */
bool plan_hidden_histogram(struct grd_plan *p, grd_tensor *self, grd_tensor *edges, grd_dims bins, grd_tensor *weight, int64_t search)
{
    const grd_dtype dtype = (grd_dtype)self->dtype, as = grd_lines_dtype(dtype);
    if (grd_kernels->histogram[as] == NULL)
        return grd_raise_no_kernel("histogram", dtype);
    if (search < 0 || search > GRD_HISTOGRAM_BINARY)
        return grd_raise(GRD_ERROR_RUNTIME, "search must be 0, 1 or 2, not %lld", (long long)search);
    if (!check_grid(self, edges, bins, weight) || !grd_plan_result(p, bins, dtype) || !grd_plan_computed_in(p, as))
        return false;
    struct counting *c = (struct counting *)(void *)p->state;
    *c = (struct counting){.kernels = grd_kernels->histogram[as], .points = self->sizes[0], .piece = self->sizes[0] / PARTS + 1};
    c->grid = (struct grd_histogram){.dims = bins.n, .search = (enum grd_histogram_search)search};
    int64_t cells = 1;
    for (int64_t d = 0; d < bins.n; d++)
        cells *= c->bins[d] = bins.data[d];
    c->piece = c->piece > GRAIN ? c->piece : GRAIN;
    c->piece = c->piece > cells ? c->piece : cells;
    grd_plan_scratch(p, (double)(c->points / c->piece + 1) * (double)cells * sizeof(double));
    return grd_plan_reads_as(p, self, as) && grd_plan_reads_as(p, edges, as) && grd_plan_reads_as(p, weight, as);
}

static void count_piece(int64_t begin, int64_t end, void *context)
{
    const struct grd_plan *p = context;
    const struct counting *c = (const struct counting *)(const void *)p->state;
    const int64_t cells = p->results[0]->numel;
    double *grid = (double *)(void *)p->scratch + begin / c->piece * cells;
    memset(grid, 0, (size_t)cells * sizeof *grid);
    c->kernels->add(&c->grid, begin, end, grid);
}

void run_histogram(const struct grd_plan *p)
{
    struct counting *c = (struct counting *)(void *)(uintptr_t)p->state;
    c->grid.bins = c->bins;
    c->grid.points = p->in[0]->data;
    c->grid.edges = p->in[1]->data;
    c->grid.weights = p->in[2] == NULL ? NULL : p->in[2]->data;
    grd_parallel_for(0, c->points, c->piece, count_piece, (void *)(uintptr_t)p);
    c->kernels->merge(grd_ceil_div(c->points, c->piece), p->results[0]->numel, (const double *)(const void *)p->scratch,
                      p->results[0]->data);
}

/* ---- bincount ------------------------------------------------------------------------------------------------------------------------ */

bool plan_bincount(struct grd_plan *p, grd_tensor *self, grd_tensor *weights, int64_t minlength)
{
    if (grd_category_of((grd_dtype)self->dtype) != GRD_CATEGORY_INTEGER)
        return grd_raise_no_kernel("bincount", (grd_dtype)self->dtype);
    if (self->ndim != 1)
        return grd_raise(GRD_ERROR_RUNTIME, "bincount only supports 1-d non-negative integral inputs.");
    if (minlength < 0)
        return grd_raise(GRD_ERROR_RUNTIME, "minlength should be >= 0");
    if (weights != NULL && !grd_same_sizes(weights, grd_sizes(self)))
        return grd_raise(GRD_ERROR_RUNTIME, "weights should be 1-d and have the same length as input");
    return grd_check_has_data(self) && grd_plan_reads_as(p, self, GRD_INT64) &&
           grd_plan_reads_as(p, weights, weights != NULL && weights->dtype == GRD_FLOAT32 ? GRD_FLOAT32 : GRD_FLOAT64);
}

bool check_bincount(struct grd_plan *p, grd_tensor *self, grd_tensor *weights, int64_t minlength)
{
    int64_t low = 0, high = -1;
    grd_kernels->index->range(self->numel, (const int64_t *)(const void *)p->in[0]->data, &low, &high);
    if (low < 0 || high == INT64_MAX)
        return grd_raise(GRD_ERROR_RUNTIME, "bincount only supports 1-d non-negative integral inputs.");
    return grd_plan_result(p, grd_dims(high >= minlength ? high + 1 : minlength),
                           weights == NULL || self->numel == 0 ? GRD_INT64 : p->reads[1].as);
}

void run_bincount(const struct grd_plan *p)
{
    int64_t one = 1;
    grd_tensor *result = p->results[0], *value = p->in[0], *weight = p->in[1];
    const int64_t itemsize = result->itemsize;
    grd_zero_elements(result);
    grd_kernels->index->add[result->dtype](value->numel,
                                           (char *const[]){result->data, weight != NULL ? weight->data : (char *)&one, value->data},
                                           (const int64_t[]){0, weight != NULL ? itemsize : 0, value->itemsize}, &itemsize);
}
