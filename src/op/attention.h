/* What the plans of attention hand to their runs. */
#ifndef GRD_OP_ATTENTION_H
#define GRD_OP_ATTENTION_H

#include "op/plan.h"

/* Attention of `heads` matrices each: queries x width, keys x width, keys x value_width. */
struct grd_attention {
    grd_dtype dtype; /* the dtype that is computed in */
    int64_t itemsize;
    int64_t heads, queries, keys, width, value_width;
    bool causal;
    double scale, keep_scale;
};

static inline struct grd_attention *grd_attention_of(const struct grd_plan *p)
{
    return (struct grd_attention *)(uintptr_t)p->state;
}

/* What is read, in this order; the forward pass reads the first six. */
enum {
    GRD_ATTENTION_QUERY,
    GRD_ATTENTION_KEY,
    GRD_ATTENTION_VALUE,
    GRD_ATTENTION_BIAS,
    GRD_ATTENTION_MASK,
    GRD_ATTENTION_KEEP,
    GRD_ATTENTION_GRAD,
    GRD_ATTENTION_LESS, /* reads the gradient of logsumexp */
    GRD_ATTENTION_OUTPUT,
    GRD_ATTENTION_LOGSUMEXP
};

/* Bytes of scratch that the runs need. */
size_t grd_attention_scratch(const struct grd_attention *x, bool backward);

#endif
