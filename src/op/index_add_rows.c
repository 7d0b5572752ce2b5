/* Runs index_add by a fast path for contiguous rows. The rows of the source are sorted by the row of the result to which they are added. So each row
 * of the result is read and written once, and threads can share the result. The source rows that are added to one row of the result are
 * added in their order in the source. Half types are added in float32 and rounded once. */
#include "op/index_add_rows.h"

#include <string.h>

#include "base/parallel.h"
#include "gen/binary_kernels.h"
#include "core/shape.h"
#include "core/tensor.h"
#include "kernel/index.h"
#include "op/index_loops.h"
#include "op/sizes.h"

enum {
    LEAST_ROW = 256, /* least number of bytes of a row; for shorter rows the calls of kernels would take most of the time */
    LEAST_PART = 8,  /* the index must have at least rows / LEAST_PART elements; otherwise visiting all rows is too slow */
    PIECE = 1024,    /* elements of a row that are summed at a time, so that their sums stay in the L1 cache */
    GRAIN = 16 * 1024
};

static bool is_in_order(const grd_tensor *t)
{
    return grd_has(t, GRD_FLAG_CONTIGUOUS);
}

/* Returns the number of elements of a row of `t`, which is the product of the sizes after `dim`. */
static int64_t row_elements(const grd_tensor *t, int64_t dim)
{
    return t->ndim > 0 ? grd_sizes_product(t->sizes + dim + 1, t->ndim - dim - 1) : 1;
}

bool grd_adds_rows(const struct grd_plan *p, const grd_tensor *self, int64_t dim, const grd_tensor *index, const grd_tensor *source)
{
    const grd_tensor *out = p->out;
    const bool fits = out == NULL || out == self || (is_in_order(out) && out->dtype == self->dtype && grd_same_sizes(out, grd_sizes(self)));
    return fits && is_in_order(self) && is_in_order(source) && source->dtype == self->dtype && self->dtype != GRD_COMPLEX32 &&
           index->numel > 0 && row_elements(self, dim) * self->itemsize >= LEAST_ROW && index->numel >= self->sizes[dim] / LEAST_PART;
}

double grd_added_rows_scratch(const grd_tensor *self, int64_t dim, const grd_tensor *index)
{
    return ((double)self->sizes[dim] + (double)index->numel) * sizeof(int64_t);
}

/* The context that grd_parallel_for passes to add_to_rows. */
struct added_rows {
    /* Entries ends[r - 1] to ends[r] - 1 of `sources` are the numbers of the source rows that are added to row r of the result; ends[-1] counts
     * as 0. */
    const int64_t *ends, *sources;
    char *to;
    const char *from;
    /* For each index of the dimensions before dim, the result has `rows` rows and the source has `added` rows. A row has `elements` elements. */
    int64_t rows, added, elements, itemsize;
    grd_loop_kernel *add;
    grd_loop_kernel *widen, *narrow; /* conversions from and to half types; NULL for other dtypes */
    /* adds one row of a half type in one call, without a float32 copy; NULL if there is no such kernel */
    grd_block_kernel *add_halves;
};

/* Writes the numbers of the `added` source rows to ret_sources, sorted by the result row to which each is added. The sort is a counting sort, so it
 * is stable. Entries ret_ends[r - 1] to ret_ends[r] - 1 of ret_sources belong to row r of the result, where ret_ends[-1] counts as 0. */
static void sort_rows(int64_t rows, int64_t added, const struct grd_indices *indices, int64_t *ret_ends, int64_t *ret_sources)
{
    const int64_t step = indices->stored == 1 ? 0 : 1;
    memset(ret_ends, 0, (size_t)rows * sizeof *ret_ends);
    for (int64_t i = 0; i < added; i++)
        ret_ends[indices->data[i * step]]++;
    for (int64_t r = 0, before = 0; r < rows; r++) {
        const int64_t count = ret_ends[r];
        ret_ends[r] = before;
        before += count;
    }
    for (int64_t i = 0; i < added; i++)
        ret_sources[ret_ends[indices->data[i * step]]++] = i;
}

/* Adds n elements of `count` rows of the source to n elements of one row of the result. `sources` holds the numbers of these source rows. `to` is the
 * address of the first of the n elements in the result. `from` is the address of the corresponding element in row 0 of the source. */
static void add_to_piece(const struct added_rows *a, int64_t n, char *to, const char *from, const int64_t *sources, int64_t count)
{
    static const int64_t here = 0;
    const int64_t row = a->elements * a->itemsize;
    float sum[PIECE], part[PIECE];
    if (count == 1 && a->add_halves != NULL) {
        a->add_halves(n, (char *const[]){to, to, (char *)(uintptr_t)from + sources[0] * row}, NULL);
        return;
    }
    const bool wide = a->widen != NULL;
    const int64_t size = wide ? (int64_t)sizeof *sum : a->itemsize;
    char *const target = wide ? (char *)sum : to;
    if (wide)
        a->widen(n, (char *const[]){target, to}, (const int64_t[]){size, a->itemsize}, NULL);
    for (int64_t k = 0; k < count; k++) {
        char *source = (char *)(uintptr_t)from + sources[k] * row;
        if (wide)
            a->widen(n, (char *const[]){(char *)part, source}, (const int64_t[]){size, a->itemsize}, NULL);
        a->add(n, (char *const[]){target, wide ? (char *)part : source, (char *)(uintptr_t)&here}, (const int64_t[]){size, size, 0}, &here);
    }
    if (wide)
        a->narrow(n, (char *const[]){to, target}, (const int64_t[]){a->itemsize, size}, NULL);
}

static void add_to_rows(int64_t begin, int64_t end, void *context)
{
    const struct added_rows *a = context;
    for (int64_t unit = begin; unit < end; unit++) {
        const int64_t r = unit % a->rows, first = r > 0 ? a->ends[r - 1] : 0, count = a->ends[r] - first;
        const char *from = a->from + unit / a->rows * a->added * a->elements * a->itemsize;
        for (int64_t at = 0; count > 0 && at < a->elements; at += PIECE) {
            const int64_t n = a->elements - at < PIECE ? a->elements - at : PIECE;
            add_to_piece(a, n, a->to + (unit * a->elements + at) * a->itemsize, from + at * a->itemsize, a->sources + first, count);
        }
    }
}

void grd_add_rows(const struct grd_plan *p)
{
    const struct grd_indexed_plan *indexed = (const struct grd_indexed_plan *)(const void *)p->state;
    const grd_tensor *result = p->results[0], *source = p->in[2];
    const grd_dtype dtype = (grd_dtype)result->dtype, computed = grd_computed_dtype(dtype);
    const bool half = computed != dtype;
    const struct grd_map_kernel *const row = grd_kernels->binary[dtype];
    struct added_rows a = {.to = result->data,
                           .from = source->data,
                           .rows = result->sizes[indexed->dim],
                           .added = p->in[1]->numel,
                           .elements = row_elements(result, indexed->dim),
                           .itemsize = result->itemsize,
                           .add = indexed->kernel,
                           .widen = half ? grd_kernels->cast[dtype][computed] : NULL,
                           .narrow = half ? grd_kernels->cast[computed][dtype] : NULL,
                           .add_halves = half && row != NULL ? row[GRD_BINARY_HIDDEN_ADD].block : NULL};
    int64_t *const ends = (int64_t *)(void *)p->scratch, *const sources = ends + a.rows;
    sort_rows(a.rows, a.added, &indexed->indices, ends, sources);
    a.ends = ends;
    a.sources = sources;
    grd_parallel_for(0, result->numel / a.elements, a.elements < GRAIN ? GRAIN / a.elements : 1, add_to_rows, &a);
}
