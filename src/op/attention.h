/* Declares what the planning functions of attention (attention.c) hand to the functions that compute it (attention_blocks.c). */
#ifndef GRD_OP_ATTENTION_H
#define GRD_OP_ATTENTION_H

#include "op/plan.h"

/* The sizes and parameters of one call of attention. `heads` is the product of all sizes of the query except the last two. Each head has three
 * matrices: query (queries, width), key (keys, width) and value (keys, value_width). */
struct grd_attention {
    grd_dtype dtype; /* dtype of the computation */
    int64_t itemsize;
    int64_t heads, queries, keys, width, value_width;
    bool causal;
    /* scale: factor of the scores before softmax. keep_scale: 1 / (1 - dropout_p), the factor of the weights that dropout keeps. */
    double scale, keep_scale;
};

static inline struct grd_attention *grd_attention_of(const struct grd_plan *p)
{
    return (struct grd_attention *)(uintptr_t)p->state;
}

/* Indices in plan->in of the tensors that are read. The forward pass reads the first six, the backward pass all. */
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

/* Returns the number of bytes of scratch memory that the forward pass needs or, if `backward`, the backward pass. */
size_t grd_attention_scratch(const struct grd_attention *x, bool backward);

#endif
