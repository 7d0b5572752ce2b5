/* Declares kernels that turn the scores of attention into weights, and kernels for the gradients. A kernel works on a block of scores, which belongs
 * to a few queries and a range of keys. op/attention.c chooses the blocks, and kernel/gemm.h has the matrix products.
 *
 *   scores   s = query key^T scale + mask, -inf where a key is hidden
 *   weights  p = exp(s - m), m the largest score of the row so far; sum = sum(p)
 *   output   sum(p value) / sum, over all blocks of keys, rescaled whenever m grows
 *   backward p = exp(s - logsumexp); ds = p (dp - delta) scale, where ds and dp are the gradients of s and p,
 *            and delta = (sum of grad * output over the row) - (gradient of the row's logsumexp) */
#ifndef GRD_KERNEL_ATTENTION_H
#define GRD_KERNEL_ATTENTION_H

#include <stdbool.h>
#include <stdint.h>

/* A row of scores is computed GRD_ATTENTION_LANES elements at a time. So its stride must be a multiple of GRD_ATTENTION_LANES, and the elements after
 * the last key of the row are overwritten. */
enum { GRD_ATTENTION_LANES = 16, GRD_ATTENTION_ROWS = 64 /* the most queries in a block of scores */ };

/* One block of scores. When a kernel is called, `scores` holds the products query key^T of `rows` queries and `keys` keys. */
struct grd_attention_block {
    int64_t rows, keys, stride; /* stride: elements between two rows of `scores` */
    void *scores;
    double scale;
    /* Row r sees key number j of the block if j < visible + r. If the attention is not causal, `visible` is at least `keys`, so every row sees all
     * keys. */
    int64_t visible;
    bool first; /* true for the first block of keys that these queries see; the running maximum and sum then start anew */
    /* `bias` is added to the scores; it has the dtype of the kernel. `mask` is nonzero where a query sees a key. `bias` is NULL if there is no
     * bias, and `mask` is NULL if there is no mask. Strides are in elements and may be 0. */
    const void *bias;
    int64_t bias_row, bias_column;
    const uint8_t *mask;
    int64_t mask_row, mask_column;
    /* Dropout: `keep` is nonzero for the weights that stay. They are multiplied by keep_scale. `keep` is NULL without dropout. keep_row is the number
     * of elements between two rows of `keep`. */
    const uint8_t *keep;
    int64_t keep_row;
    double keep_scale;
};

/* The attention kernels of one dtype. In comments, b is the block of scores and "row" means a row of scores, which belongs to one query. */
struct grd_attention_row {
    /* Replaces the scores by weights. `max` and `sum` hold, for each row, the running maximum and sum over the blocks so far, and are updated.
     * ret_factors[r] receives the factor by which the output that row r accumulated from earlier blocks must be multiplied. Dropout changes the
     * weights but not `sum`. */
    void (*weigh)(const struct grd_attention_block *b, void *max, void *sum, void *ret_factors);
    /* Multiplies row r of x by factors[r], for `rows` rows of n elements. `row` is the distance between two rows of x in elements. */
    void (*rescale)(int64_t rows, int64_t n, const void *factors, void *x, int64_t row);
    /* Ends the computation of the weights. Sets ret_factors[r] to 1 / sum[r], or to 0 if row r saw no key. Sets
     * ret_logsumexp[r] to max[r] + log(sum[r]). */
    void (*finish)(int64_t rows, const void *max, const void *sum, void *ret_factors, void *ret_logsumexp);
    /* Computes a block of the backward pass. Replaces the scores of the block by the weights after dropout. On entry `slopes` holds the gradients of
     * the weights, in the layout of the scores. On return it holds the gradients of the scores before scaling and masking, i.e. of
     * the products of queries and keys. */
    void (*slope)(const struct grd_attention_block *b, const void *logsumexp, const void *delta, void *slopes);
    /* Sets ret_delta[r], for each row r, to the dot product of row r of x and row r of y, minus less[r]. The rows have n elements. x_row and y_row
     * are the distances between two rows in elements. The backward pass subtracts ret_delta[r] from the gradients of the weights of row r. */
    void (*delta)(int64_t rows, int64_t n, const void *x, int64_t x_row, const void *y, int64_t y_row, const void *less, void *ret_delta);
};

#endif
