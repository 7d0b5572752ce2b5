/* Attention, a block of queries by keys at a time: what happens to the scores of a block. Products are those of kernel/gemm.h; which blocks there are is decided in op/attention.c.
 *
 *   scores   s = query key^T scale + mask, -inf where a key is hidden
 *   weights  p = exp(s - m), m the largest score of the row so far; sum = sum(p)
 *   output   sum(p value) / sum, over all blocks of keys, rescaled whenever m grows
 *   backward p = exp(s - logsumexp); ds = p (dp - delta) scale, delta = sum(grad output) - grad logsumexp of the row */
#ifndef GRD_KERNEL_ATTENTION_H
#define GRD_KERNEL_ATTENTION_H

#include <stdbool.h>
#include <stdint.h>

/* Elements in which a row of scores is computed: its stride is a multiple, and the places behind its last key are overwritten. */
enum { GRD_ATTENTION_LANES = 16, GRD_ATTENTION_ROWS = 64 /* at most in a block */ };

/* The scores of `rows` queries and `keys` keys, products of the two when a kernel is called. */
struct grd_attention_block {
    int64_t rows, keys, stride; /* stride: elements from row to row of scores */
    void *scores;
    double scale;
    int64_t visible; /* row r sees keys below visible + r: as many as there are unless the attention is causal */
    bool first;      /* of the blocks of these rows */
    /* NULL, or what is added to the scores, elements of the kernel's dtype; NULL, or which of them are seen. Strides in elements. */
    const void *bias;
    int64_t bias_row, bias_column;
    const uint8_t *mask;
    int64_t mask_row, mask_column;
    /* NULL, or which weights are kept by dropout, and the factor of those. */
    const uint8_t *keep;
    int64_t keep_row;
    double keep_scale;
};

struct grd_attention_row {
    /* Scores become weights. max and sum, an element for each row, go on from the blocks before; ret_factors: by how much what those gave is to be multiplied.
     * Dropout changes the weights, not their sum. */
    void (*weigh)(const struct grd_attention_block *b, void *max, void *sum, void *ret_factors);
    /* Rows of n elements times the factor of each. */
    void (*rescale)(int64_t rows, int64_t n, const void *factors, void *x, int64_t row);
    /* factors = 1 / sum, and 0 where no key was seen; logsumexp = max + log(sum). */
    void (*finish)(int64_t rows, const void *max, const void *sum, void *ret_factors, void *ret_logsumexp);
    /* Scores become weights again, with dropout; `slopes`, the gradients of those weights in the layout of scores, become the gradients of the products. */
    void (*slope)(const struct grd_attention_block *b, const void *logsumexp, const void *delta, void *slopes);
    /* delta = sum over n of x y - less, of each row. */
    void (*delta)(int64_t rows, int64_t n, const void *x, int64_t x_row, const void *y, int64_t y_row, const void *less, void *ret_delta);
};

#endif
