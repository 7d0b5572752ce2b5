/* Declares the data that the functions that plan attention (attention.c) hand to those that compute it (attention_blocks.c). */
#ifndef GRD_OP_ATTENTION_H
#define GRD_OP_ATTENTION_H

#include "op/plan.h"

/* The sizes and parameters of one call. `heads` is the product of the batch sizes (all but the last two). For each head, query is a (queries, width)
 * matrix, key (keys, width) and value (keys, value_width). */
struct grd_attention {
    grd_dtype dtype; /* dtype of the computation; `itemsize` is the size of an element in bytes */
    int64_t itemsize;
    int64_t heads, queries, keys, width, value_width;
    bool causal;
    /* Scores are multiplied by `scale` before softmax. The weights that dropout keeps are multiplied by keep_scale = 1 / (1 - dropout_p). */
    double scale, keep_scale;
};

static inline struct grd_attention *grd_attention_of(const struct grd_plan *p)
{
    return (struct grd_attention *)(uintptr_t)p->state;
}

/* Indices of the tensors in plan->in. The forward pass reads the first six. */
enum {
    GRD_ATTENTION_QUERY,
    GRD_ATTENTION_KEY,
    GRD_ATTENTION_VALUE,
    GRD_ATTENTION_BIAS,
    GRD_ATTENTION_MASK,
    GRD_ATTENTION_KEEP,
    GRD_ATTENTION_GRAD,
    GRD_ATTENTION_LESS, /* the incoming gradient of the result logsumexp */
    GRD_ATTENTION_OUTPUT,
    GRD_ATTENTION_LOGSUMEXP
};

/* Returns the bytes of scratch memory that the forward run or, if `backward`, the backward run needs. */
size_t grd_attention_scratch(const struct grd_attention *x, bool backward);

#endif
