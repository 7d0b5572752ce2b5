/* Computes attention and its gradients. The scores (query key^T) are computed block by block, with the matrix products of kernel/gemm.h and the
 * softmax kernels of kernel/attention.h, so that the matrix of all scores is never stored.
 *
 *  for each group of heads (as many heads as the scratch memory has room for):
 *    pack the operands of these heads, on all threads
 *    forward, for each block of queries: for each block of keys that the queries see: compute scores and weights, add weights * value to the output
 *    backward, for each head: for each block of queries: for each block of keys: compute scores and weights, add to the three gradients
 *
 * With few queries or small matrices nothing is packed, and the products read the operands where they are in memory.
 * Invariant: the blocks and tasks depend on the sizes alone, and no two tasks write the same result. So results do not depend on the number of
 * threads, bit for bit. */
#include <string.h>

#include "base/integer.h"
#include "base/parallel.h"
#include "gen/uses/op/attention_blocks.h"
#include "core/tensor.h"
#include "kernel/attention.h"
#include "kernel/gemm.h"
#include "kernel/table.h"
#include "op/attention.h"
#include "op/matrix_batch.h"
#include "op/product.h"
#include "op/sizes.h"

enum {
    SCORE_BYTES = 48 << 10,  /* limit on the bytes of a block of scores, so that it stays in the L1 cache */
    KEY_UNIT = 192,          /* rows of an operand that one step packs; a multiple of every kernel's strip height and panel width */
    PACKED_ROWS = 16,        /* query and key are packed only if there are at least this many queries */
    FORWARD_BYTES = 2 << 20, /* limit on the bytes of packed operands of the heads computed at a time in the forward pass */
    /* The same limit for the backward pass. It is higher than FORWARD_BYTES, because a task of the backward pass is a whole head, so more heads are
     * needed to occupy all threads. */
    BACKWARD_BYTES = 8 << 20,
    TASK_WORK = 1 << 18,      /* a thread takes tasks in portions of at least this many multiplications */
    PACKED_ELEMENTS = 1 << 15 /* a thread packs operands in portions of at least this many elements */
};

/* Describes the packed copy of one operand of a head. A left operand of a product is packed in strips (blocks of a few rows), a right operand in
 * panels (blocks of a few columns). */
struct packed {
    int operand; /* index of the operand in plan->in, e.g. GRD_ATTENTION_QUERY */
    /* true: packed in strips, i.e. blocks of a few rows; false: in panels, i.e. blocks of a few columns */
    bool strips;
    /* rows, width: sizes of the operand's matrix. bytes: size of the packed copy. offset: where the copy begins in the head's scratch memory, in
     * bytes. */
    int64_t rows, width, bytes, offset;
};

/* Indices of the packed operands in run.packed. Query and gradient are packed in strips (blocks of a few rows), key and value in panels (blocks of
 * a few columns). PACKED is the length of the array. */
enum { QUERY_STRIPS, KEY_PANELS, GRAD_STRIPS, VALUE_PANELS, PACKED };

/* The state of one call of attention, or of its gradient, that all tasks share. */
struct run {
    const struct grd_plan *plan;
    const struct grd_attention *x;
    const struct grd_attention_row *rows;
    const struct grd_product_kernels *products;
    /* block_rows, block_keys: the most rows (queries) and columns (keys) of a block of scores. stride: distance between the rows of a block in
     * elements. */
    int64_t block_rows, block_keys, stride;
    bool is_packed;
    int npacked;
    struct packed packed[PACKED];
    int64_t head_bytes, group; /* head_bytes: bytes of packed operands of one head. group: number of heads computed at a time. */
    char *scratch;
    int64_t head; /* index of the first of the heads that are computed now */
};

/* ---- How the work is cut ------------------------------------------------------------------------------------------------------------- */

static void add_packed(struct run *run, int which, struct packed what)
{
    const int64_t unit = what.strips ? run->products->strip : run->products->lanes;
    what.bytes = grd_round_up(grd_round_up(what.rows, unit) * what.width * run->x->itemsize, 64);
    what.offset = run->head_bytes;
    run->packed[which] = what;
    run->head_bytes += what.bytes;
    run->npacked = which + 1;
}

/* True if packing pays: the matrices are so large that the products save more time with packed operands than packing takes. */
static bool packs(const struct grd_attention *x)
{
    return x->queries >= PACKED_ROWS && grd_product_small(x->dtype, x->queries, x->keys, grd_greatest(x->width, x->value_width)) == NULL;
}

static struct run cut(const struct grd_attention *x, bool backward)
{
    struct run run = {.x = x, .rows = grd_kernels->attention[x->dtype], .products = grd_kernels->gemm[x->dtype]};
    const int64_t elements = SCORE_BYTES / x->itemsize, most_rows = elements / KEY_UNIT;
    run.block_rows = grd_least(grd_least(GRD_ATTENTION_ROWS, most_rows), grd_greatest(x->queries, 1));
    run.block_keys = elements / grd_round_up(run.block_rows, run.products->strip) / KEY_UNIT * KEY_UNIT;
    run.stride = grd_round_up(grd_least(run.block_keys, grd_greatest(x->keys, 1)), GRD_ATTENTION_LANES);
    run.is_packed = packs(x);
    run.group = grd_greatest(x->heads, 1);
    if (!run.is_packed)
        return run;
    add_packed(&run, QUERY_STRIPS, (struct packed){.operand = GRD_ATTENTION_QUERY, .strips = true, .rows = x->queries, .width = x->width});
    add_packed(&run, KEY_PANELS, (struct packed){.operand = GRD_ATTENTION_KEY, .rows = x->keys, .width = x->width});
    if (backward) {
        add_packed(&run, GRAD_STRIPS,
                   (struct packed){.operand = GRD_ATTENTION_GRAD, .strips = true, .rows = x->queries, .width = x->value_width});
        add_packed(&run, VALUE_PANELS, (struct packed){.operand = GRD_ATTENTION_VALUE, .rows = x->keys, .width = x->value_width});
    }
    const int64_t most = (backward ? BACKWARD_BYTES : FORWARD_BYTES) / grd_greatest(run.head_bytes, 1);
    run.group = grd_least(run.group, grd_greatest(most, 1));
    return run;
}

size_t grd_attention_scratch(const struct grd_attention *x, bool backward)
{
    if (!packs(x))
        return 0;
    const struct run run = cut(x, backward);
    return (size_t)(run.head_bytes * run.group) + 64;
}

/* Returns the address of the matrix (the last two dimensions) of `t` that belongs to head number `head` of the query. The batch dimensions of `t`
 * broadcast to those of the query. */
static char *matrix_of(const struct run *run, const grd_tensor *t, int64_t head)
{
    return grd_broadcast_matrix_at(t, run->plan->in[GRD_ATTENTION_QUERY], head);
}

/* Returns the stride in elements of dimension -from_end of `t`; 0 if `t` is broadcast along it. */
static int64_t step_of(const grd_tensor *t, int from_end)
{
    return t->ndim < from_end || t->sizes[t->ndim - from_end] == 1 ? 0 : t->strides[t->ndim - from_end];
}

/* ---- Packing ------------------------------------------------------------------------------------------------------------------------- */

static char *packed_of(const struct run *run, int64_t head, int which)
{
    return run->scratch + (head - run->head) * run->head_bytes + run->packed[which].offset;
}

/* Packs rows [first, past) of one operand of head number `head`. `which` is the index of the operand in run->packed. */
static void pack_rows(const struct run *run, int64_t head, int which, int64_t first, int64_t past)
{
    const struct packed *what = &run->packed[which];
    const grd_tensor *t = run->plan->in[what->operand];
    const int64_t unit = what->strips ? run->products->strip : run->products->panel, row = step_of(t, 2), itemsize = run->x->itemsize;
    const char *from = matrix_of(run, t, head);
    for (int64_t i = first; i < past; i += unit) {
        const int64_t n = grd_least(past - i, unit), width = what->strips ? unit : grd_round_up(n, run->products->lanes);
        run->products->pack(what->width, n, width, from + i * row * itemsize, 1, row,
                            packed_of(run, head, which) + i * what->width * itemsize);
    }
}

static int64_t pack_chunks(const struct run *run)
{
    return grd_ceil_div(grd_greatest(run->x->queries, run->x->keys), KEY_UNIT);
}

/* Packs portions [begin, end) of the operands. A portion is up to KEY_UNIT rows of every packed operand of one head, with the same indices. */
static void pack_items(int64_t begin, int64_t end, void *context)
{
    const struct run *run = context;
    const int64_t chunks = pack_chunks(run);
    for (int64_t item = begin; item < end; item++) {
        const int64_t head = run->head + item / chunks, first = item % chunks * KEY_UNIT;
        for (int which = 0; which < run->npacked; which++)
            if (first < run->packed[which].rows)
                pack_rows(run, head, which, first, grd_least(first + KEY_UNIT, run->packed[which].rows));
    }
}

/* ---- Products ------------------------------------------------------------------------------------------------------------------------ */

/* An operand of a matrix product. `row` and `column` are its strides in elements. */
struct matrix {
    char *data;
    int64_t row, column;
};

/* Computes c = a b or, if `adds`, c += a b. The rows of c are contiguous. */
static void multiply(const struct run *run, int64_t m, int64_t n, int64_t k, struct matrix a, struct matrix b, struct matrix c, bool adds)
{
    if (n == 0)
        return;
    grd_small_gemm_kernel *small = grd_product_small(run->x->dtype, m, n, k);
    if (small != NULL)
        small(&(struct grd_small_gemm){.m = m,
                                       .n = n,
                                       .k = k,
                                       .a = a.data,
                                       .b = b.data,
                                       .added = adds ? c.data : NULL,
                                       .c = c.data,
                                       .a_row = a.row,
                                       .a_col = a.column,
                                       .b_row = b.row,
                                       .b_col = b.column,
                                       .added_row = c.row,
                                       .c_row = c.row});
    else
        run->products->direct(&(struct grd_gemm){.m = m,
                                                 .n = n,
                                                 .k = k,
                                                 .a = a.data,
                                                 .b = b.data,
                                                 .c = c.data,
                                                 .a_row = a.row,
                                                 .a_col = a.column,
                                                 .b_row = b.row,
                                                 .b_col = b.column,
                                                 .c_row = c.row,
                                                 .c_col = 1,
                                                 .alpha = grd_int(1),
                                                 .beta = grd_int(adds)});
}

static struct matrix transposed(struct matrix m)
{
    return (struct matrix){m.data, m.column, m.row};
}

static struct matrix rows_from(const struct run *run, struct matrix m, int64_t first)
{
    m.data += first * m.row * run->x->itemsize;
    return m;
}

/* Returns the matrix of head number `head` of `t`. `t` is an operand or a result, and its rows are contiguous. */
static struct matrix matrix(const struct run *run, const grd_tensor *t, int64_t head)
{
    return (struct matrix){matrix_of(run, t, head), step_of(t, 2), 1};
}

/* A block of scores of one head: queries [query, query + rows) by keys [key, key + keys). */
struct block {
    int64_t head, query, rows, key, keys;
};

/* Multiplies the rows of `left` for the queries of block `b` by the transpose of the rows of `right` for the keys of `b`, and writes the product
 * to `to`. `left` is the query or the gradient of the output; `right` is the key or the value. If operands are packed, reads the copies
 * run->packed[strips] and run->packed[panels] instead. */
static void multiply_rows(const struct run *run, const struct block *b, struct matrix left, struct matrix right, int strips, int panels,
                          int64_t width, struct matrix to)
{
    if (!run->is_packed) {
        multiply(run, b->rows, b->keys, width, rows_from(run, left, b->query), transposed(rows_from(run, right, b->key)), to, false);
        return;
    }
    const int64_t bytes = width * run->x->itemsize;
    run->products->packed(&(struct grd_gemm){.m = b->rows,
                                             .n = b->keys,
                                             .k = width,
                                             .a = packed_of(run, b->head, strips) + b->query * bytes,
                                             .b = packed_of(run, b->head, panels) + b->key * bytes,
                                             .c = to.data,
                                             .c_row = to.row,
                                             .c_col = 1,
                                             .alpha = grd_int(1),
                                             .beta = grd_int(0)});
}

/* Returns the number of keys in the block of scores that begins with key number `key`. No query of the block sees keys from number `limit` on. If
 * keys are packed, the result is rounded up to full panels (blocks of columns that a product kernel reads), but not beyond the last key. */
static int64_t block_keys(const struct run *run, int64_t key, int64_t limit)
{
    const int64_t n = grd_least(limit - key, run->block_keys);
    return run->is_packed ? grd_least(grd_round_up(n, run->products->panel), run->x->keys - key) : n;
}

/* Returns the number of keys that the query with index past_row - 1 sees: the first past_row keys in causal attention, otherwise all keys. */
static int64_t keys_seen(const struct grd_attention *x, int64_t past_row)
{
    return x->causal ? grd_least(x->keys, past_row) : x->keys;
}

/* Returns the arguments of the softmax kernels for block `b` of the scores. The pointers into bias, mask and keep already point to this block. */
static struct grd_attention_block block_of(const struct run *run, const struct block *b, void *scores)
{
    const struct grd_attention *x = run->x;
    const grd_tensor *bias = run->plan->in[GRD_ATTENTION_BIAS], *mask = run->plan->in[GRD_ATTENTION_MASK],
                     *keep = run->plan->in[GRD_ATTENTION_KEEP];
    struct grd_attention_block block = {
        .rows = b->rows, .keys = b->keys, .stride = run->stride, .scores = scores, .scale = x->scale, .keep_scale = x->keep_scale};
    block.first = b->key == 0;
    block.visible = x->causal ? b->query + 1 - b->key : b->keys;
    if (bias != NULL) {
        block.bias_row = step_of(bias, 2);
        block.bias_column = step_of(bias, 1);
        block.bias = matrix_of(run, bias, b->head) + (b->query * block.bias_row + b->key * block.bias_column) * x->itemsize;
    }
    if (mask != NULL) {
        block.mask_row = step_of(mask, 2);
        block.mask_column = step_of(mask, 1);
        block.mask = (const uint8_t *)matrix_of(run, mask, b->head) + b->query * block.mask_row + b->key * block.mask_column;
    }
    if (keep != NULL) {
        block.keep_row = x->keys;
        block.keep = (const uint8_t *)matrix_of(run, keep, b->head) + b->query * x->keys + b->key;
    }
    return block;
}

static void clear_rows(const struct run *run, int64_t rows, int64_t width, struct matrix m)
{
    for (int64_t r = 0; r < rows; r++)
        memset(m.data + r * m.row * run->x->itemsize, 0, (size_t)(width * run->x->itemsize));
}

/* ---- Forward ------------------------------------------------------------------------------------------------------------------------- */

/* Computes output and logsumexp of one block of queries, which begins with query number `query` of head number `head`. Uses online softmax: after
 * each block of keys the output so far is rescaled to the new maximum of each row. */
static void attend(const struct run *run, int64_t head, int64_t query)
{
    _Alignas(64) char scores[SCORE_BYTES];
    _Alignas(64) char max[GRD_ATTENTION_ROWS * sizeof(double)], sum[GRD_ATTENTION_ROWS * sizeof(double)],
        factors[GRD_ATTENTION_ROWS * sizeof(double)];
    const struct grd_attention *x = run->x;
    grd_tensor *const *in = run->plan->in;
    struct block b = {.head = head, .query = query, .rows = grd_least(run->block_rows, x->queries - query)};
    const struct matrix q = matrix(run, in[GRD_ATTENTION_QUERY], head), k = matrix(run, in[GRD_ATTENTION_KEY], head);
    const struct matrix v = matrix(run, in[GRD_ATTENTION_VALUE], head), block = {scores, run->stride, 1};
    const struct matrix output = rows_from(run, matrix(run, run->plan->results[0], head), query);
    char *const logsumexp = run->plan->results[1]->data + (head * x->queries + query) * x->itemsize;
    const int64_t limit = keys_seen(x, query + b.rows);
    for (; b.key < limit; b.key += b.keys) {
        b.keys = block_keys(run, b.key, limit);
        multiply_rows(run, &b, q, k, QUERY_STRIPS, KEY_PANELS, x->width, block);
        const struct grd_attention_block given = block_of(run, &b, scores);
        run->rows->weigh(&given, max, sum, factors);
        if (b.key > 0)
            run->rows->rescale(b.rows, x->value_width, factors, output.data, output.row);
        multiply(run, b.rows, x->value_width, b.keys, block, rows_from(run, v, b.key), output, b.key > 0);
    }
    if (limit == 0) { /* this block sees no keys, so the output is zeros */
        const struct grd_attention_block none = {.rows = b.rows, .first = true};
        run->rows->weigh(&none, max, sum, factors);
        clear_rows(run, b.rows, x->value_width, output);
    }
    run->rows->finish(b.rows, max, sum, factors, logsumexp);
    run->rows->rescale(b.rows, x->value_width, factors, output.data, output.row);
}

/* Runs tasks [begin, end) of the forward pass. A task is one block of queries of one head. */
static void attend_blocks(int64_t begin, int64_t end, void *context)
{
    const struct run *run = context;
    const int64_t blocks = grd_ceil_div(run->x->queries, run->block_rows);
    for (int64_t task = begin; task < end; task++)
        attend(run, run->head + task / blocks, task % blocks * run->block_rows);
}

/* ---- Backward ------------------------------------------------------------------------------------------------------------------------ */

/* Computes the gradients of query, key and value of head `head`, and writes them to the plan's three results. */
static void differentiate(const struct run *run, int64_t head)
{
    _Alignas(64) char scores[SCORE_BYTES], slopes[SCORE_BYTES], delta[GRD_ATTENTION_ROWS * sizeof(double)];
    const struct grd_attention *x = run->x;
    grd_tensor *const *in = run->plan->in, *const *results = run->plan->results;
    const struct matrix q = matrix(run, in[GRD_ATTENTION_QUERY], head), k = matrix(run, in[GRD_ATTENTION_KEY], head);
    const struct matrix v = matrix(run, in[GRD_ATTENTION_VALUE], head), grad = matrix(run, in[GRD_ATTENTION_GRAD], head);
    const struct matrix output = matrix(run, in[GRD_ATTENTION_OUTPUT], head);
    const struct matrix grad_q = matrix(run, results[0], head), grad_k = matrix(run, results[1], head),
                        grad_v = matrix(run, results[2], head);
    const struct matrix weights = {scores, run->stride, 1}, grads = {slopes, run->stride, 1};
    clear_rows(run, x->queries, x->width, grad_q);
    clear_rows(run, x->keys, x->width, grad_k);
    clear_rows(run, x->keys, x->value_width, grad_v);
    struct block b = {.head = head};
    for (; b.query < x->queries; b.query += b.rows) {
        b.rows = grd_least(run->block_rows, x->queries - b.query);
        const int64_t at = (head * x->queries + b.query) * x->itemsize, limit = keys_seen(x, b.query + b.rows);
        const struct matrix rows_q = rows_from(run, q, b.query), rows_grad = rows_from(run, grad, b.query);
        run->rows->delta(b.rows, x->value_width, rows_grad.data, grad.row, rows_from(run, output, b.query).data, output.row,
                         in[GRD_ATTENTION_LESS]->data + at, delta);
        for (b.key = 0; b.key < limit; b.key += b.keys) {
            b.keys = block_keys(run, b.key, limit);
            multiply_rows(run, &b, q, k, QUERY_STRIPS, KEY_PANELS, x->width, weights);
            multiply_rows(run, &b, grad, v, GRAD_STRIPS, VALUE_PANELS, x->value_width, grads);
            const struct grd_attention_block given = block_of(run, &b, scores);
            run->rows->slope(&given, in[GRD_ATTENTION_LOGSUMEXP]->data + at, delta, slopes);
            multiply(run, b.keys, x->value_width, b.rows, transposed(weights), rows_grad, rows_from(run, grad_v, b.key), true);
            multiply(run, b.keys, x->width, b.rows, transposed(grads), rows_q, rows_from(run, grad_k, b.key), true);
            multiply(run, b.rows, x->width, b.keys, grads, rows_from(run, k, b.key), rows_from(run, grad_q, b.query), true);
        }
    }
}

/* Runs tasks [begin, end) of the backward pass. A task is one head. */
static void differentiate_heads(int64_t begin, int64_t end, void *context)
{
    const struct run *run = context;
    for (int64_t head = begin; head < end; head++)
        differentiate(run, run->head + head);
}

/* ---- Runs ---------------------------------------------------------------------------------------------------------------------------- */

/* Returns the number of tasks that together have at least `enough` multiplications, if one task has `work`. */
static int64_t grain_of(double work, double enough)
{
    return work >= enough ? 1 : (int64_t)(enough / grd_greatest(1, (int64_t)work)) + 1;
}

/* Runs `task` for all heads. Heads are taken in groups whose packed operands fit into the scratch memory; a group is packed before its tasks run.
 * One task is a head in the backward pass, and a block of queries of a head in the forward pass. */
static void run_groups(const struct grd_plan *plan, bool backward, grd_task *task)
{
    const struct grd_attention *x = grd_attention_of(plan);
    struct run run = cut(x, backward);
    run.plan = plan;
    run.scratch = (char *)(((uintptr_t)plan->scratch + 63) & ~(uintptr_t)63);
    const int64_t per_head = backward ? 1 : grd_ceil_div(x->queries, run.block_rows);
    const double matrix_work = (double)x->queries * (double)x->keys * (double)(x->width + x->value_width),
                 work = matrix_work / (double)grd_greatest(per_head, 1);
    for (; run.head < x->heads; run.head += run.group) {
        const int64_t heads = grd_least(run.group, x->heads - run.head);
        if (run.is_packed)
            grd_parallel_for(0, heads * pack_chunks(&run),
                             grain_of((double)KEY_UNIT * (double)(x->width + x->value_width), PACKED_ELEMENTS), pack_items, &run);
        grd_parallel_for(0, heads * per_head, grain_of(work, TASK_WORK), task, &run);
    }
}

void run_attention(const struct grd_plan *p)
{
    run_groups(p, false, attend_blocks);
}

void run_attention_backward(const struct grd_plan *p)
{
    run_groups(p, true, differentiate_heads);
}
