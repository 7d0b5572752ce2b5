/* Implements the functions of formula.h, which the formulas for batch tensors call. The functions take physical tensors, in which the batch is
 * dimension 0, and compute with operators, so gradients are recorded.
 *
 * Invariant: these functions run inside the kernel of the BATCH key. Meanwhile this key is excluded from dispatch, so the operators that they call are
 * not batched again. */
#include "transform/formula.h"

#include <string.h>

#include "core/shape.h"
#include "core/tensor.h"
#include "dispatch/op.h"
#include "gen/uses/transform/formula.h"

/* ---- Dimensions -------------------------------------------------------------------------------------------------------------------- */

grd_tensor *grd_batch_aligned(grd_tensor *t, int64_t rank)
{
    int64_t sizes[GRD_MAX_DIMS + 1];
    const int64_t missing = rank + 1 - t->ndim;
    if (missing <= 0 || grd_pending())
        return t;
    sizes[0] = t->sizes[0];
    for (int64_t i = 1; i <= rank; i++)
        sizes[i] = i <= missing ? 1 : t->sizes[i - missing];
    return grd_view(t, grd_dims_from(sizes, rank + 1));
}

grd_tensor *grd_batch_lifted(grd_tensor *t)
{
    return grd_batch_aligned(t, 1);
}

grd_tensor *grd_batch_rows(grd_tensor *t)
{
    return grd_reshape(t, grd_dims(t->sizes[0], grd_sizes_product(t->sizes + 1, t->ndim - 1)));
}

/* Returns memory for `n` int64 numbers. The innermost open scope frees it. Returns NULL, with MemoryError, on failure. */
static int64_t *make_list(int64_t n)
{
    return grd_pool_array(n, sizeof(int64_t));
}

/* Returns a grd_dims that points to the `n` numbers at `list`, which came from make_list. If `list` is NULL, the grd_dims is empty. */
static grd_dims made(const int64_t *list, int64_t n)
{
    return list != NULL ? grd_dims_from(list, n) : (grd_dims){0};
}

/* Returns a new list: the number `first`, followed by the list `rest`. */
static grd_dims after(int64_t first, grd_dims rest)
{
    int64_t *list = make_list(rest.n + 1);
    if (list != NULL) {
        list[0] = first;
        memcpy(list + 1, rest.data, (size_t)rest.n * sizeof *list);
    }
    return made(list, rest.n + 1);
}

grd_dims grd_batch_sizes(grd_dims sizes)
{
    return after(grd_thread.level.size, sizes);
}

grd_dims grd_batch_repeats(grd_dims repeats)
{
    return after(1, repeats);
}

int64_t grd_batch_dim(int64_t dim, int64_t rank)
{
    return grd_shape_wrap_dim(dim, rank, &dim) ? dim + 1 : 0;
}

grd_dims grd_batch_dims(grd_dims dims, int64_t rank)
{
    int64_t *list = make_list(dims.n);
    for (int64_t i = 0; list != NULL && i < dims.n; i++)
        list[i] = grd_batch_dim(dims.data[i], rank);
    return made(list, dims.n);
}

grd_dims grd_batch_all(const grd_tensor *t)
{
    int64_t *list = make_list(t->ndim - 1);
    for (int64_t i = 1; list != NULL && i < t->ndim; i++)
        list[i - 1] = i;
    return made(list, t->ndim - 1);
}

int64_t grd_batch_rank(const grd_tensor *a, const grd_tensor *b)
{
    return (a->ndim > b->ndim ? a->ndim : b->ndim) - 1;
}

grd_tensor *grd_batch_split(grd_tensor *vector)
{
    const int64_t n = grd_thread.level.size;
    return grd_view(vector, grd_dims(n, vector->numel / (n > 0 ? n : 1)));
}

bool grd_batch_is_constant(const grd_tensor *t)
{
    return grd_batch_is_shared(t) && (grd_keys_of(t) >> GRD_KEY_AUTOGRAD & 1) == 0;
}

bool grd_batch_is_shared(const grd_tensor *t)
{
    return t->sizes[0] <= 1 || t->strides[0] == 0;
}

grd_tensor *grd_batch_first(grd_tensor *t)
{
    return grd_select(t, 0, 0);
}

/* Returns a tensor with the indices 0, 1, ... of the elements of the batch, on the device of `like`. It has `rank` dimensions: the first is the
 * batch, and the others have size 1. */
static grd_tensor *numbers(int64_t rank, const grd_tensor *like)
{
    int64_t sizes[GRD_MAX_DIMS + 1] = {grd_thread.level.size};
    for (int64_t i = 1; i < rank; i++)
        sizes[i] = 1;
    return grd_view(grd_arange(grd_int(0), .end = grd_int(sizes[0]), .dtype = GRD_INT64, .device = grd_device_of(like)),
                    grd_dims_from(sizes, rank));
}

/* ---- Indexing ------------------------------------------------------------------------------------------------------------------------- */

grd_tensor *grd_batch_along(grd_tensor *index, const grd_tensor *like, int64_t dim)
{
    int64_t sizes[GRD_MAX_DIMS], view[GRD_MAX_DIMS];
    if (grd_pending())
        return grd_failed;
    for (int i = 0; i < like->ndim; i++) {
        sizes[i] = like->sizes[i];
        view[i] = 1;
    }
    view[0] = index->sizes[0];
    view[dim] = sizes[dim] = index->ndim > 1 ? index->sizes[1] : 1;
    return grd_expand(grd_view(index, grd_dims_from(view, like->ndim)), grd_dims_from(sizes, like->ndim));
}

grd_tensor *grd_batch_index_select(grd_tensor *self, int64_t dim, grd_tensor *index)
{
    if (grd_batch_is_shared(index) && self->ndim > 1 && !grd_pending())
        return grd_index_select(self, dim, grd_batch_first(index));
    grd_tensor *lifted = grd_batch_lifted(self);
    grd_tensor *found = grd_pending() ? grd_failed : grd_gather(lifted, dim, grd_batch_along(index, lifted, dim));
    return self->ndim > 1 || grd_pending() ? found : grd_squeeze(found, .dim = 1);
}

/* The index tensors of an advanced index under vmap. They index the physical tensor (batch in dimension 0) after its indexed dimensions have been
 * moved to positions 1, 2, ... */
struct gathered {
    int64_t n;                  /* number of index tensors, without indices[0] */
    int64_t rank;               /* number of dimensions that the indices of one element of the batch broadcast to */
    int64_t at;                 /* position of the first of these `rank` dimensions in the result for one element of the batch */
    int64_t from[GRD_MAX_DIMS]; /* the indexed dims of the physical tensor, before they are moved */
    int64_t to[GRD_MAX_DIMS];   /* the positions of these dims after the move: 1, 2, ... */
    /* indices[0] holds the indices 0, 1, ... of the elements of the batch. indices[1] to indices[n] are the other index tensors. */
    grd_tensor *indices[GRD_MAX_DIMS + 1];
};

static bool is_mask(const grd_tensor *t)
{
    return t->dtype == GRD_BOOL || t->dtype == GRD_UINT8;
}

/* Adds an index tensor for dim *dim of one element of the batch and increases *dim. A mask, which must be the same for all elements of the batch,
 * is replaced by one index tensor for each of its dimensions. False, with the error raised, on failure. */
static bool add_index(struct gathered *g, grd_tensor *index, int64_t *dim, const grd_tensor *self)
{
    if (!is_mask(index)) {
        g->from[g->n] = (*dim)++ + 1;
        g->indices[++g->n] = index;
        return true;
    }
    if (!grd_batch_is_shared(index))
        return grd_raise(
            GRD_ERROR_RUNTIME,
            "vmap: We do not support batching operators that can support dynamic shape. Attempting to batch over indexing with a "
            "boolean mask.");
    const int64_t ndim = index->ndim - 1;
    for (int64_t i = 0; i < ndim; i++)
        if (*dim + i + 1 >= self->ndim || (index->sizes[i + 1] != self->sizes[*dim + i + 1] && index->sizes[i + 1] != 0))
            return grd_raise(GRD_ERROR_INDEX,
                             "The shape of the mask at index %lld does not match the shape of the indexed tensor at index %lld",
                             (long long)i, (long long)(*dim + i));
    grd_tensor *places = grd_nonzero(grd_batch_first(index));
    for (int64_t i = 0; i < ndim && !grd_pending(); i++) {
        g->from[g->n] = (*dim)++ + 1;
        g->indices[++g->n] = grd_unsqueeze(grd_select(places, 1, i), 0);
    }
    return !grd_pending();
}

/* Fills *g with index tensors for the physical tensor `self`. They are made from `indices`, the index tensors for one element of the batch. `dims`
 * lists the dimensions of an element that are indexed. If `dims` is absent, the first dimensions are indexed. False, with the error raised, on
 * failure. */
static bool gather_indices(struct gathered *g, const grd_tensor *self, grd_tensors indices, grd_dims dims)
{
    int64_t dim = 0;
    g->n = g->rank = 0;
    for (int64_t i = 0; i < indices.n; i++) {
        if (dims.data != NULL && !grd_shape_wrap_dim(dims.data[i], self->ndim - 1, &dim))
            return false;
        if (!add_index(g, indices.data[i], &dim, self))
            return false;
    }
    for (int64_t i = 1; i <= g->n; i++) {
        g->rank = g->indices[i]->ndim - 1 > g->rank ? g->indices[i]->ndim - 1 : g->rank;
        g->to[i - 1] = i;
    }
    g->at = g->n > 0 ? g->from[0] - 1 : 0;
    for (int64_t i = 1; i < g->n; i++)
        if (g->from[i] != g->from[i - 1] + 1)
            g->at = 0;
    g->indices[0] = numbers(g->rank + 1, self);
    for (int64_t i = 1; i <= g->n; i++)
        g->indices[i] = grd_batch_aligned(g->indices[i], g->rank);
    return !grd_pending();
}

/* Moves the dimensions of `t` that come from the index tensors. If `back` is false, moves them from positions 1, 2, ... to their positions in the
 * result of the indexing. If `back` is true, moves them back to positions 1, 2, ... */
static grd_tensor *move_indexed(const struct gathered *g, grd_tensor *t, bool back)
{
    int64_t front[GRD_MAX_DIMS], placed[GRD_MAX_DIMS];
    for (int64_t i = 0; i < g->rank; i++) {
        front[i] = i + 1;
        placed[i] = i + 1 + g->at;
    }
    const grd_dims from = grd_dims_from(back ? placed : front, g->rank), to = grd_dims_from(back ? front : placed, g->rank);
    return g->at == 0 || g->rank == 0 ? t : grd_movedim(t, from, to);
}

grd_tensor *grd_batch_index(grd_tensor *self, grd_tensors indices, grd_dims dims)
{
    struct gathered g;
    if (!gather_indices(&g, self, indices, dims))
        return grd_failed;
    grd_tensor *moved = grd_movedim(self, grd_dims_from(g.from, g.n), grd_dims_from(g.to, g.n));
    return move_indexed(&g, grd_index(moved, grd_tensors_from(g.indices, g.n + 1)), false);
}

/* Returns `values`, the argument of index_put, expanded to the sizes of the result of index() with the same indices. `moved` is the indexed
 * tensor with its indexed dimensions moved to positions 1, 2, ... */
static grd_tensor *expand_values(const struct gathered *g, const grd_tensor *moved, grd_tensor *values)
{
    int64_t sizes[GRD_MAX_DIMS], indexed[GRD_MAX_DIMS], n = 0, ndim = 0;
    for (int64_t i = 1; i <= g->n; i++)
        if (!grd_shape_broadcast(grd_dims_from(indexed, ndim), grd_dims_from(g->indices[i]->sizes + 1, g->rank), indexed, &ndim))
            return grd_failed;
    sizes[n++] = grd_thread.level.size;
    const int64_t rest = moved->ndim - 1 - g->n;
    for (int64_t i = 0; i < rest + g->rank; i++)
        sizes[n++] = i < g->at             ? moved->sizes[1 + g->n + i]
                     : i < g->at + g->rank ? indexed[i - g->at]
                                           : moved->sizes[1 + g->n + i - g->rank];
    return grd_expand(grd_batch_aligned(values, n - 1), grd_dims_from(sizes, n));
}

grd_tensor *grd_batch_index_put(grd_tensor *self, grd_tensors indices, grd_tensor *values, bool accumulate, grd_dims dims)
{
    struct gathered g;
    if (!gather_indices(&g, self, indices, dims))
        return grd_failed;
    const grd_dims from = grd_dims_from(g.from, g.n), to = grd_dims_from(g.to, g.n);
    grd_tensor *moved = grd_movedim(self, from, to);
    if (grd_pending())
        return grd_failed;
    grd_tensor *given = move_indexed(&g, expand_values(&g, moved, values), true);
    return grd_movedim(grd_index_put(moved, grd_tensors_from(g.indices, g.n + 1), given, .accumulate = accumulate), to, from);
}

grd_tensor *grd_batch_embedding(grd_tensor *weight, grd_tensor *indices, int64_t padding_idx)
{
    grd_tensor *rows = grd_index(weight, grd_tensors(numbers(indices->ndim, weight), indices));
    if (padding_idx < 0 || grd_pending())
        return rows;
    return grd_where(grd_unsqueeze(grd_eq(indices, grd_number(grd_int(padding_idx))), -1), grd_detach(rows), rows);
}

grd_tensor *grd_batch_embedding_gradient(grd_tensor *grad, grd_dims sizes, grd_tensor *indices, int64_t padding_idx, bool scale)
{
    const int64_t n = grd_thread.level.size;
    grd_tensor *places = grd_add(indices, grd_mul(numbers(indices->ndim, indices), grd_number(grd_int(sizes.data[0]))));
    if (padding_idx >= 0)
        grad = grd_masked_fill(grad, grd_unsqueeze(grd_eq(indices, grd_number(grd_int(padding_idx))), -1), grd_int(0));
    grd_tensor *flat = grd_hidden_embedding_backward(grad, grd_dims(n * sizes.data[0], sizes.data[1]), places, -1, scale);
    return grd_view(flat, grd_dims(n, sizes.data[0], sizes.data[1]));
}

grd_tensor *grd_batch_cat(grd_tensors tensors, int64_t dim)
{
    grd_tensor **list = grd_pool_array(tensors.n, sizeof *list);
    int64_t rank = 1;
    if (list == NULL)
        return grd_failed;
    for (int64_t i = 0; i < tensors.n; i++)
        rank = tensors.data[i]->ndim - 1 > rank ? tensors.data[i]->ndim - 1 : rank;
    for (int64_t i = 0; i < tensors.n; i++) {
        grd_tensor *t = tensors.data[i];
        /* Among tensors of higher rank, cat() takes only the dtype of an empty vector. A batch of empty vectors is therefore passed as one. */
        list[i] = rank > 1 && t->ndim == 2 && t->sizes[1] == 0 ? grd_flatten(t) : t;
    }
    return grd_cat(grd_tensors_from(list, tensors.n), .dim = grd_batch_dim(dim, rank));
}

/* Returns the number of the channel dimension in an image of `ndim` dimensions, for a convolution whose weight has `rank` dimensions. */
static int64_t channel_dim(int64_t ndim, int64_t rank)
{
    return ndim - (rank - 2) - 1;
}

grd_tensor *grd_batch_into_channels(grd_tensor *t, int64_t rank)
{
    const int64_t channel = channel_dim(t->ndim, rank);
    return grd_flatten(grd_movedim(t, grd_dims(0), grd_dims(channel - 1)), .start_dim = channel - 1, .end_dim = channel);
}

grd_tensor *grd_batch_from_channels(grd_tensor *t, int64_t rank, int64_t count)
{
    const int64_t channel = channel_dim(t->ndim, rank);
    if (grd_is_failed(t))
        return t;
    return grd_movedim(grd_unflatten(t, channel, grd_dims(count, count > 0 ? t->sizes[channel] / count : 0)), grd_dims(channel),
                       grd_dims(0));
}

grd_dims grd_batch_times(grd_dims sizes, int64_t dim, int64_t count)
{
    int64_t *const all = grd_pool_array(sizes.n + 1, sizeof *all);
    if (all == NULL)
        return (grd_dims){0};
    memcpy(all, sizes.data, (size_t)sizes.n * sizeof *all);
    all[dim] *= count;
    return grd_dims_from(all, sizes.n);
}

grd_dims grd_batch_channel_sizes(grd_dims sizes, int64_t rank, int64_t count)
{
    return grd_batch_times(sizes, channel_dim(sizes.n, rank), count);
}

grd_dims grd_batch_each(grd_dims numbers)
{
    const int64_t count = grd_thread.level.size;
    int64_t *const all = make_list(count * numbers.n);
    for (int64_t i = 0; all != NULL && i < count * numbers.n; i++)
        all[i] = numbers.data[i % numbers.n];
    return made(all, count * numbers.n);
}

int64_t grd_conv_rank(grd_dims weight)
{
    return weight.n;
}

grd_tensor *grd_batch_isin(grd_tensor *elements, grd_tensor *test_elements, bool invert)
{
    if (grd_batch_is_shared(test_elements))
        return grd_isin(elements, grd_batch_first(test_elements), .invert = invert);
    grd_tensor *tests = grd_batch_aligned(grd_batch_rows(test_elements), elements->ndim);
    grd_tensor *found = grd_any(grd_eq(grd_unsqueeze(elements, -1), tests), .dim = -1);
    return invert ? grd_logical_not(found) : found;
}

grd_dims grd_batch_product_sizes(const grd_tensor *a, const grd_tensor *b)
{
    int64_t *list = make_list(4);
    if (list != NULL)
        memcpy(list, (const int64_t[]){a->sizes[0], a->sizes[1], a->sizes[2], b->sizes[3]}, 4 * sizeof *list);
    return made(list, 4);
}

/* ---- nll_loss ---------------------------------------------------------------------------------------------------------------------------- */

/* Returns the number of the class dimension in a tensor of `ndim` dimensions of which dimension 0 is the batch. */
static int64_t class_dim(int64_t ndim)
{
    return ndim == 2 ? 1 : 2;
}

/* Returns the targets as an index along the class dimension. A target equal to `ignore_index` becomes class 0. */
static grd_tensor *class_index(grd_tensor *target, int64_t ndim, int64_t ignore_index)
{
    return grd_unsqueeze(grd_masked_fill(target, grd_eq(target, grd_number(grd_int(ignore_index))), grd_int(0)), class_dim(ndim));
}

grd_tensor *grd_batch_class_weights(const grd_tensor *self, grd_tensor *target, grd_tensor *weight, int64_t ignore_index)
{
    int64_t view[GRD_MAX_DIMS];
    const int64_t dim = class_dim(self->ndim);
    grd_tensor *found;
    if (weight == NULL) {
        found = grd_ones(grd_sizes(target), .dtype = (grd_dtype)self->dtype, .device = grd_device_of(self));
    } else {
        for (int64_t i = 0; i < self->ndim; i++)
            view[i] = i == 0 || i == dim ? self->sizes[i] : 1;
        found = grd_expand(grd_reshape(weight, grd_dims_from(view, self->ndim)), grd_sizes(self));
        found = grd_squeeze(grd_gather(found, dim, class_index(target, self->ndim, ignore_index)), .dim = dim);
    }
    return grd_masked_fill(found, grd_eq(target, grd_number(grd_int(ignore_index))), grd_int(0));
}

grd_tensor *grd_batch_class_losses(grd_tensor *self, grd_tensor *target, grd_tensor *weights, int64_t ignore_index)
{
    const int64_t dim = class_dim(self->ndim);
    grd_tensor *picked = grd_squeeze(grd_gather(self, dim, class_index(target, self->ndim, ignore_index)), .dim = dim);
    return grd_masked_fill(grd_neg(grd_mul(picked, weights)), grd_eq(target, grd_number(grd_int(ignore_index))), grd_int(0));
}

grd_tensor *grd_batch_loss(grd_tensor *losses, const char *reduction)
{
    if (strcmp(reduction, "none") == 0 || losses->ndim == 1)
        return losses;
    const grd_dims all = grd_batch_all(losses);
    return strcmp(reduction, "sum") == 0 ? grd_sum(losses, .dim = all) : grd_mean(losses, .dim = all);
}

/* ---- Images ------------------------------------------------------------------------------------------------------------------------- */

grd_tensor *grd_batch_images(grd_tensor *t, int64_t n)
{
    if (t->ndim != n + 2 && t->ndim != n + 3)
        return grd_fail(GRD_ERROR_RUNTIME, "expected images of %lld dimensions, with channels", (long long)n);
    return t->ndim == n + 3 ? grd_flatten(t, .start_dim = 0, .end_dim = 1) : t;
}

grd_tensor *grd_batch_images_back(grd_tensor *result, const grd_tensor *t, int64_t n)
{
    return t->ndim == n + 3 && !grd_pending() ? grd_unflatten(result, 0, grd_dims(t->sizes[0], t->sizes[1])) : result;
}
