/* Checks and plans the operator `attention`, and implements scaled_dot_product_attention, which prepares its arguments for that operator. The
 * computation is in attention_blocks.c. Schema: schema/attention.toml. */
#include "op/attention.h"

#include <math.h>
#include <string.h>

#include "gen/uses/op/attention.h"
#include "core/dtype.h"
#include "core/shape.h"
#include "core/tensor.h"
#include "gradus/library.h"
#include "kernel/table.h"
#include "op/checks.h"
#include "op/dtypes.h"
#include "op/matrix_batch.h"
#include "op/sizes.h"

/* Limit on the total number of elements of the query, key and value matrices of one head. Within it, sizes in bytes cannot overflow int64_t, because
 * 2^56 elements of 8 bytes are 2^59 bytes. Tensors made by expand() can exceed the limit, because several of their elements share memory. */
#define MOST_ELEMENTS 0x1p56

/* ---- Plans --------------------------------------------------------------------------------------------------------------------------- */

/* Writes (batch sizes of `query`, rows, columns) to ret_sizes and returns these sizes. Leaves `columns` out if it is negative. */
static grd_dims sizes_with(const grd_tensor *query, int64_t rows, int64_t columns, int64_t *ret_sizes)
{
    memcpy(ret_sizes, query->sizes, (size_t)(query->ndim - 2) * sizeof *ret_sizes);
    ret_sizes[query->ndim - 2] = rows;
    ret_sizes[query->ndim - 1] = columns;
    return grd_dims_from(ret_sizes, columns < 0 ? query->ndim - 1 : query->ndim);
}

static bool check_matrices(const grd_tensor *query, const grd_tensor *key, const grd_tensor *value)
{
    const int64_t n = query->ndim;
    if (n < 2 || key->ndim != n || value->ndim != n)
        return grd_raise(GRD_ERROR_RUNTIME, "query, key and value must have the same number of dimensions, at least 2");
    if (memcmp(query->sizes, key->sizes, (size_t)(n - 2) * sizeof *query->sizes) != 0 ||
        memcmp(query->sizes, value->sizes, (size_t)(n - 2) * sizeof *query->sizes) != 0 || query->sizes[n - 1] != key->sizes[n - 1] ||
        key->sizes[n - 2] != value->sizes[n - 2])
        return grd_raise(GRD_ERROR_RUNTIME, "query %s, key %s and value %s do not fit", grd_list_text(grd_sizes(query)),
                         grd_list_text(grd_sizes(key)), grd_list_text(grd_sizes(value)));
    if (query->dtype != key->dtype || query->dtype != value->dtype)
        return grd_raise(GRD_ERROR_RUNTIME, "query, key and value must have the same dtype");
    return grd_kernels->attention[grd_computed_dtype((grd_dtype)query->dtype)] != NULL ||
           grd_raise_no_kernel("attention", (grd_dtype)query->dtype);
}

/* True if `mask` is NULL or broadcasts to the sizes of the scores. Raises RuntimeError otherwise. */
static bool check_mask(const grd_tensor *mask, grd_dims scores)
{
    int64_t sizes[GRD_MAX_DIMS], ndim;
    if (mask == NULL)
        return true;
    if (!grd_shape_broadcast(scores, grd_sizes(mask), sizes, &ndim))
        return false;
    const grd_dims both = grd_dims_from(sizes, ndim);
    return grd_dims_equal(both, scores) || grd_raise(GRD_ERROR_RUNTIME, "output with shape %s doesn't match the broadcast shape %s",
                                                     grd_list_text(scores), grd_list_text(both));
}

/* Plans to read `t` without a copy if its dtype is `dtype` and its rows (the last dimension) are contiguous; otherwise plans to read a contiguous
 * copy. */
static bool read_rows(struct grd_plan *p, grd_tensor *t, grd_dtype dtype)
{
    const bool rows = t->dtype == dtype && (t->sizes[t->ndim - 1] <= 1 || t->strides[t->ndim - 1] == 1);
    return rows ? grd_plan_reads(p, t) : grd_plan_reads_as(p, t, dtype);
}

static bool read_mask(struct grd_plan *p, grd_tensor *t, grd_dtype dtype)
{
    return t == NULL || t->dtype == dtype ? grd_plan_reads(p, t) : grd_plan_reads_as(p, t, dtype);
}

/* Checks the operands that forward and backward pass share, fills the plan's struct grd_attention, and plans to read these operands. Returns false
 * if it raised an error. */
static bool plan_operands(struct grd_plan *p, grd_tensor *query, grd_tensor *key, grd_tensor *value, grd_tensor *bias, grd_tensor *mask,
                          grd_tensor *keep, double dropout_p, bool is_causal, double scale)
{
    if (!check_matrices(query, key, value))
        return false;
    struct grd_attention *x = grd_attention_of(p);
    const int n = query->ndim;
    int64_t sizes[GRD_MAX_DIMS];
    *x = (struct grd_attention){.dtype = grd_computed_dtype((grd_dtype)query->dtype),
                                .heads = grd_sizes_product(query->sizes, n - 2),
                                .queries = query->sizes[n - 2],
                                .keys = key->sizes[n - 2],
                                .width = query->sizes[n - 1],
                                .value_width = value->sizes[n - 1],
                                .causal = is_causal,
                                .scale = scale,
                                .keep_scale = 1 / (1 - dropout_p)};
    x->itemsize = grd_dtype_size(x->dtype);
    if (((double)x->queries + (double)x->keys) * ((double)x->width + (double)x->value_width) > MOST_ELEMENTS)
        return grd_raise(GRD_ERROR_RUNTIME, "attention of %lld queries and %lld keys is too large", (long long)x->queries,
                         (long long)x->keys);
    const grd_dims scores = sizes_with(query, x->queries, x->keys, sizes);
    if (!check_mask(bias, scores) || !check_mask(mask, scores))
        return false;
    if (keep != NULL && !grd_same_sizes(keep, scores))
        return grd_raise(GRD_ERROR_RUNTIME, "keep must have the sizes of the scores, %s", grd_list_text(scores));
    return read_rows(p, query, x->dtype) && read_rows(p, key, x->dtype) && read_rows(p, value, x->dtype) && read_mask(p, bias, x->dtype) &&
           read_mask(p, mask, GRD_BOOL) && grd_plan_reads_as(p, keep, GRD_BOOL);
}

/* Plans a result that has the sizes of `t` and, in memory, the same order of dimensions as `t`. Plans a contiguous result instead if the last
 * dimension would not be contiguous in this order. */
static bool plan_rows_like(struct grd_plan *p, const grd_tensor *t, grd_dtype dtype)
{
    int64_t strides[GRD_MAX_DIMS];
    if (grd_has(t, GRD_FLAG_CANONICAL))
        return grd_plan_result(p, grd_sizes(t), dtype);
    grd_shape_dense_strides(grd_sizes(t), t->strides, strides);
    const bool rows = t->sizes[t->ndim - 1] <= 1 || (t->strides[t->ndim - 1] == 1 && strides[t->ndim - 1] == 1);
    return rows ? grd_plan_like(p, t, dtype) : grd_plan_result(p, grd_sizes(t), dtype);
}

bool plan_attention(struct grd_plan *p, grd_tensor *query, grd_tensor *key, grd_tensor *value, grd_tensor *bias, grd_tensor *mask,
                    grd_tensor *keep, double dropout_p, bool is_causal, double scale, bool ordered)
{
    int64_t sizes[GRD_MAX_DIMS];
    if (!plan_operands(p, query, key, value, bias, mask, keep, dropout_p, is_causal, scale))
        return false;
    const struct grd_attention *x = grd_attention_of(p);
    const grd_dtype dtype = (grd_dtype)query->dtype;
    const grd_dims output = sizes_with(query, x->queries, x->value_width, sizes);
    const bool planned = ordered && grd_same_sizes(query, output) ? plan_rows_like(p, query, dtype) : grd_plan_result(p, output, dtype);
    p->scratch_bytes = grd_attention_scratch(x, false);
    return planned && grd_plan_computed_in(p, x->dtype) && grd_plan_result(p, sizes_with(query, x->queries, -1, sizes), x->dtype);
}

static bool plan_gradient(struct grd_plan *p, const grd_tensor *of)
{
    return plan_rows_like(p, of, (grd_dtype)of->dtype) && grd_plan_computed_in(p, grd_attention_of(p)->dtype);
}

bool plan_hidden_attention_backward(struct grd_plan *p, grd_tensor *grad_output, grd_tensor *grad_logsumexp, grd_tensor *query,
                                    grd_tensor *key, grd_tensor *value, grd_tensor *bias, grd_tensor *mask, grd_tensor *keep,
                                    grd_tensor *output, grd_tensor *logsumexp, double dropout_p, bool is_causal, double scale)
{
    int64_t sizes[GRD_MAX_DIMS];
    if (!plan_operands(p, query, key, value, bias, mask, keep, dropout_p, is_causal, scale))
        return false;
    const struct grd_attention *x = grd_attention_of(p);
    const grd_dims outputs = sizes_with(query, x->queries, x->value_width, sizes);
    if (!grd_same_sizes(grad_output, outputs) || !grd_same_sizes(output, outputs))
        return grd_raise(GRD_ERROR_RUNTIME, "the output and its gradient must have sizes %s", grd_list_text(outputs));
    const grd_dims rows = sizes_with(query, x->queries, -1, sizes);
    if (!grd_same_sizes(grad_logsumexp, rows) || !grd_same_sizes(logsumexp, rows))
        return grd_raise(GRD_ERROR_RUNTIME, "logsumexp and its gradient must have sizes %s", grd_list_text(rows));
    p->scratch_bytes = grd_attention_scratch(x, true);
    return read_rows(p, grad_output, x->dtype) && grd_plan_reads_as(p, grad_logsumexp, x->dtype) && read_rows(p, output, x->dtype) &&
           grd_plan_reads_as(p, logsumexp, x->dtype) && plan_gradient(p, query) && plan_gradient(p, key) && plan_gradient(p, value);
}

/* ---- scaled_dot_product_attention ---------------------------------------------------------------------------------------------------- */

static bool check_arguments(const grd_tensor *query, const grd_tensor *key, const grd_tensor *value, const grd_tensor *mask,
                            double dropout_p)
{
    if (query->ndim < 2 || key->ndim < 2 || value->ndim < 2)
        return grd_raise(GRD_ERROR_RUNTIME,
                         "Expected query, key, and value to all be  at least 2 dimensional, but got query.dim: %d key.dim: %d and "
                         "value.dim: %d instead.",
                         (int)query->ndim, (int)key->ndim, (int)value->ndim);
    const grd_dtype dtype = (grd_dtype)query->dtype;
    if (dtype != key->dtype || dtype != value->dtype)
        return grd_raise(GRD_ERROR_RUNTIME,
                         "Expected query, key, and value to have the same dtype, but got query.dtype: %s key.dtype: %s and value.dtype: %s "
                         "instead.",
                         grd_dtype_c_name(dtype), grd_dtype_c_name((grd_dtype)key->dtype), grd_dtype_c_name((grd_dtype)value->dtype));
    if (mask != NULL && mask->dtype != GRD_BOOL && mask->dtype != GRD_FLOAT32 && mask->dtype != dtype)
        return grd_raise(GRD_ERROR_RUNTIME,
                         "Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: %s and  "
                         "query.dtype: %s instead.",
                         grd_dtype_c_name((grd_dtype)mask->dtype), grd_dtype_c_name(dtype));
    if (!grd_dtype_is_integral(dtype) && grd_kernels->attention[grd_computed_dtype(dtype)] == NULL)
        return grd_raise(GRD_ERROR_NOT_IMPLEMENTED, "\"softmax_lastdim_kernel_impl\" not implemented for '%s'", grd_dtype_type_name(dtype));
    return (dropout_p >= 0 && dropout_p <= 1) ||
           grd_raise(GRD_ERROR_RUNTIME, "dropout probability has to be between 0 and 1, but got %g", dropout_p);
}

/* True if PyTorch would use its fused CPU kernel for this call instead of a composition of operators. The caller must know, because the two differ
 * in the strides of the output and in the arguments they accept. */
static bool takes_kernel(const grd_tensor *query, const grd_tensor *key, const grd_tensor *value, const grd_tensor *mask, double dropout_p,
                         bool enable_gqa)
{
    if (query->ndim != 4 || key->ndim != 4 || value->ndim != 4 || dropout_p != 0 || query->numel == 0 || key->numel == 0)
        return false;
    for (int d = 0; d < 4; d++)
        if (d != 2 && (key->sizes[d] != value->sizes[d] || (query->sizes[d] != key->sizes[d] && !(d == 1 && enable_gqa))))
            return false;
    return query->strides[3] == 1 && key->strides[3] == 1 && value->strides[3] == 1 &&
           (mask == NULL || ((mask->ndim == 2 || mask->ndim == 4) && !grd_requires_grad(mask)));
}

/* True if `rows`, the number of rows of the right matrix of a product, is `wanted`. Otherwise raises the RuntimeError of PyTorch's mm or bmm;
 * `columns`, left_rows and `batch` only appear in its text. */
static bool check_product(const grd_dims batch, int64_t left_rows, int64_t wanted, int64_t rows, int64_t columns)
{
    if (rows == wanted)
        return true;
    if (batch.n == 0)
        return grd_raise(GRD_ERROR_RUNTIME, "mat1 and mat2 shapes cannot be multiplied (%lldx%lld and %lldx%lld)", (long long)left_rows,
                         (long long)wanted, (long long)rows, (long long)columns);
    const long long matrices = (long long)grd_sizes_product(batch.data, batch.n);
    return grd_raise(GRD_ERROR_RUNTIME,
                     "Expected size for first two dimensions of batch2 tensor to be: [%lld, %lld] but got: [%lld, %lld].", matrices,
                     (long long)wanted, matrices, (long long)rows);
}

/* The tensor arguments of a call of scaled_dot_product_attention. The functions below replace them step by step by tensors that the operator
 * `attention` can take. */
struct arguments {
    grd_tensor *query, *key, *value, *mask;
};

/* Returns a view of `t` in which dimension -3 (the heads), of size n * m, is split into two dimensions of sizes n and m. If `merged`, dimension -2
 * of `t` must have size 1, and it is replaced by the dimension of size m. */
static grd_tensor *split_heads(grd_tensor *t, int64_t n, int64_t m, bool merged)
{
    int64_t sizes[GRD_MAX_DIMS + 1];
    const int64_t first = t->ndim - 3;
    memcpy(sizes, t->sizes, (size_t)first * sizeof *sizes);
    sizes[first] = n;
    sizes[first + 1] = m;
    sizes[first + 2] = t->sizes[first + 1];
    sizes[first + 3] = t->sizes[first + 2];
    if (merged)
        sizes[first + 2] = sizes[first + 3];
    return grd_view(t, grd_dims_from(sizes, merged ? first + 3 : first + 4));
}

/* Returns `t` with each head (dimension -3) repeated `times` times in succession. */
static grd_tensor *repeat_heads(grd_tensor *t, int64_t times)
{
    int64_t sizes[GRD_MAX_DIMS + 1];
    grd_tensor *lifted = grd_unsqueeze(t, -3);
    if (times == 1 || grd_pending())
        return t;
    memcpy(sizes, lifted->sizes, (size_t)lifted->ndim * sizeof *sizes);
    sizes[lifted->ndim - 3] = times;
    return grd_flatten(grd_expand(lifted, grd_dims_from(sizes, lifted->ndim)), .start_dim = -4, .end_dim = -3);
}

/* Implements enable_gqa (grouped-query attention), in which several heads of the query share one head of key and value. Changes the tensors of *x by
 * the first of these rules that applies:
 *
 *   - Query, key and value have equally many heads: nothing changes.
 *   - Key and value have different numbers of heads, or one head each: their heads are repeated until both have as many heads as the query.
 *   - The query has one row, and attention is not causal: the query heads that share a key head become the rows of one head.
 *   - All other cases: the query's dimension of heads becomes two dimensions. Their sizes are the number of key heads and the number of query heads
 *     that share a key head. Key and value get a dimension of size 1, which broadcasts along the second of these dimensions.
 *
 * Sets *ret_grouped to true in the last two cases, in which the caller must reshape the output. Raises IndexError if an argument has no dimension of
 * heads. Raises RuntimeError if the number of query heads is not a multiple of the numbers of key heads and of value heads. */
static bool group_heads(struct arguments *x, bool is_causal, bool *ret_grouped)
{
    int64_t dim;
    *ret_grouped = false;
    if (!grd_wrap_dim(x->query, -3, &dim) || !grd_wrap_dim(x->key, -3, &dim) || !grd_wrap_dim(x->value, -3, &dim))
        return false;
    const int64_t heads = grd_size_from_end(x->query, 3), key_heads = grd_size_from_end(x->key, 3),
                  value_heads = grd_size_from_end(x->value, 3);
    if (key_heads == heads && value_heads == heads)
        return true;
    if (key_heads == 0 || value_heads == 0 || heads % key_heads != 0 || heads % value_heads != 0)
        return grd_raise(GRD_ERROR_RUNTIME, "Number of heads in key and value must divide the number of heads in ");
    if (key_heads != value_heads || key_heads == 1) {
        x->key = repeat_heads(x->key, heads / key_heads);
        x->value = repeat_heads(x->value, heads / value_heads);
        return true;
    }
    const int64_t group = heads / key_heads;
    const bool merged = grd_size_from_end(x->query, 2) == 1 && !is_causal;
    *ret_grouped = true;
    x->query = split_heads(x->query, key_heads, group, merged);
    if (!merged) {
        x->key = grd_unsqueeze(x->key, -3);
        x->value = grd_unsqueeze(x->value, -3);
    }
    if (x->mask != NULL && x->mask->ndim > 2 && (x->mask->sizes[x->mask->ndim - 3] == heads))
        x->mask = split_heads(x->mask, key_heads, group, merged);
    else if (x->mask != NULL && x->mask->ndim > 2 && !merged)
        x->mask = grd_unsqueeze(x->mask, -3);
    return !grd_pending();
}

/* Returns `t` with its batch dimensions (all but the last two) expanded to `batch`. */
static grd_tensor *with_batch(grd_tensor *t, grd_dims batch)
{
    int64_t sizes[GRD_MAX_DIMS];
    if (t->ndim == batch.n + 2 && memcmp(t->sizes, batch.data, (size_t)batch.n * sizeof *t->sizes) == 0)
        return t;
    memcpy(sizes, batch.data, (size_t)batch.n * sizeof *sizes);
    memcpy(sizes + batch.n, t->sizes + t->ndim - 2, 2 * sizeof *sizes);
    return grd_expand(t, grd_dims_from(sizes, batch.n + 2));
}

/* Expands query, key and value to common batch sizes. Raises RuntimeError if the batch sizes do not broadcast, or if the matrices cannot be
 * multiplied because of their sizes. */
static bool broadcast_batches(struct arguments *x)
{
    int64_t sizes[GRD_MAX_DIMS], n;
    grd_tensor *const t[] = {x->query, x->key, x->value};
    if (!grd_shape_broadcast(grd_dims_from(t[0]->sizes, t[0]->ndim - 2), grd_dims_from(t[1]->sizes, t[1]->ndim - 2), sizes, &n))
        return false;
    const grd_dims batch = grd_dims_from(sizes, n);
    const int64_t queries = grd_size_from_end(t[0], 2), keys = grd_size_from_end(t[1], 2);
    if (!check_product(batch, queries, grd_size_from_end(t[0], 1), grd_size_from_end(t[1], 1), keys) ||
        !grd_shape_broadcast(batch, grd_dims_from(t[2]->sizes, t[2]->ndim - 2), sizes, &n))
        return false;
    const grd_dims all = grd_dims_from(sizes, n);
    if (!check_product(all, queries, keys, grd_size_from_end(t[2], 2), grd_size_from_end(t[2], 1)))
        return false;
    x->query = with_batch(t[0], all);
    x->key = with_batch(t[1], all);
    x->value = with_batch(t[2], all);
    return !grd_pending();
}

/* Returns a random bool mask with the shape of the scores, false where dropout drops a score; NULL if dropout_p is 0. */
static grd_tensor *kept_weights(const struct arguments *x, double dropout_p)
{
    int64_t sizes[GRD_MAX_DIMS];
    const grd_dims scores = sizes_with(x->query, grd_size_from_end(x->query, 2), grd_size_from_end(x->key, 2), sizes);
    return dropout_p > 0 ? grd_hidden_attention_keep(x->query, scores, dropout_p) : NULL;
}

/* Returns the attention for integer or bool arguments: zeros if there are no scores (no queries or no keys), as in PyTorch. Otherwise raises
 * RuntimeError, because softmax does not exist for integers. */
static grd_tensor *attend_integers(const struct arguments *x)
{
    int64_t sizes[GRD_MAX_DIMS];
    const int64_t rows = grd_size_from_end(x->query, 2), keys = grd_size_from_end(x->key, 2);
    const grd_dims scores = sizes_with(x->query, rows, keys, sizes);
    if (grd_sizes_product(scores.data, scores.n) != 0)
        return grd_fail(GRD_ERROR_RUNTIME, "expected scalar type Float but found %s", grd_dtype_type_name((grd_dtype)x->query->dtype));
    const grd_dtype dtype = x->query->dtype == GRD_BOOL ? GRD_INT64 : (grd_dtype)x->query->dtype;
    return grd_zeros(sizes_with(x->query, rows, grd_size_from_end(x->value, 1), sizes), .dtype = dtype, .device = grd_device_of(x->query));
}

grd_tensor *op_scaled_dot_product_attention(grd_tensor *query, grd_tensor *key, grd_tensor *value, grd_tensor *attn_mask, double dropout_p,
                                            bool is_causal, grd_scalar scale, bool enable_gqa)
{
    struct arguments x = {query, key, value, attn_mask};
    int64_t dim, sizes[GRD_MAX_DIMS];
    bool grouped = false;
    if (!check_arguments(query, key, value, attn_mask, dropout_p) ||
        (attn_mask != NULL && query->ndim == 4 && !grd_wrap_dim(attn_mask, -2, &dim)))
        return grd_failed;
    while (x.mask != NULL && x.mask->ndim < 2)
        x.mask = grd_unsqueeze(x.mask, 0);
    const bool ordered = takes_kernel(query, key, value, x.mask, dropout_p, enable_gqa);
    if (is_causal && attn_mask != NULL && !ordered)
        return grd_fail(GRD_ERROR_RUNTIME, "_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True");
    if ((enable_gqa && !group_heads(&x, is_causal, &grouped)) || !broadcast_batches(&x))
        return grd_failed;
    const int64_t width = grd_size_from_end(query, 1);
    const double factor = scale.kind != GRD_SCALAR_NONE ? grd_scalar_double(scale) : width == 0 ? 1 : 1 / sqrt((double)width);
    const bool hides = x.mask != NULL && x.mask->dtype == GRD_BOOL;
    if (!check_mask(x.mask, sizes_with(x.query, grd_size_from_end(x.query, 2), grd_size_from_end(x.key, 2), sizes)))
        return grd_failed;
    if (grd_dtype_is_integral((grd_dtype)query->dtype))
        return attend_integers(&x);
    grd_tensor *output = grd_attention(x.query, x.key, x.value, hides ? NULL : x.mask, hides ? x.mask : NULL, kept_weights(&x, dropout_p),
                                       dropout_p, is_causal, factor, ordered)
                             .output;
    if (!grouped || grd_pending())
        return output;
    memcpy(sizes, query->sizes, (size_t)(query->ndim - 1) * sizeof *sizes);
    sizes[query->ndim - 1] = grd_size_from_end(value, 1);
    return grd_reshape(output, grd_dims_from(sizes, query->ndim));
}
