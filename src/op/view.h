/* A view as planned: all that its operator says. The views themselves are made in view.c, with code that is generated (gen/view_calls.h). */
#ifndef GRD_OP_VIEW_H
#define GRD_OP_VIEW_H

#include "core/tensor.h"

struct grd_view {
    int64_t n, offset;
    const int64_t *sizes, *strides; /* of n dimensions: the arrays below, or those of another tensor */
    int64_t *size,
        *stride;     /* arrays of GRD_MAX_DIMS outside of this struct, so that the compiler can keep the struct itself in registers */
    grd_dtype dtype; /* dtype in whose elements strides and offset are counted; NONE: the tensor's */
    bool checked;    /* checked against the storage; otherwise it is known to lie within its tensor, and to have no more elements */
    bool detached;   /* has no history and no base, and states its dtype */
    bool itself;     /* the tensor itself is returned */
    bool turns;      /* is read as conjugated exactly if the tensor is not */
};

/* Begins a view of `t` whose n dimensions are still to be written. */
static inline void grd_view_start(struct grd_view *v, const grd_tensor *t, int64_t n)
{
    v->n = n;
    v->offset = t->offset;
    v->sizes = v->size;
    v->strides = v->stride;
}

static inline void grd_view_append(struct grd_view *v, int64_t size, int64_t stride)
{
    v->size[v->n] = size;
    v->stride[v->n++] = stride;
}

/* ---- Views of memory as elements of another dtype: complex.c, view_dtype.c ------------------------------------------------------------- */

bool plan_hidden_conj(struct grd_view *v, grd_tensor *self);
bool plan_hidden_neg_view(struct grd_view *v, grd_tensor *self);
bool plan_real(struct grd_view *v, grd_tensor *self);
bool plan_imag(struct grd_view *v, grd_tensor *self);
bool plan_view_as_real(struct grd_view *v, grd_tensor *self);
bool plan_view_as_complex(struct grd_view *v, grd_tensor *self);
bool plan_view_dtype(struct grd_view *v, grd_tensor *self, grd_dtype dtype);

#endif
