/* A view as planned: all that its operator says. The views themselves are made in view.c, with code that is generated (gen/view_calls.h). */
#ifndef GRD_OP_VIEW_H
#define GRD_OP_VIEW_H

#include "core/tensor.h"

struct grd_view {
    int64_t n, offset;
    const int64_t *sizes, *strides; /* of n dimensions: in the room below, or those of another tensor */
    int64_t *size,
        *stride;     /* room for GRD_MAX_DIMS dimensions, outside of this struct: what the compiler keeps in registers then is the rest */
    grd_dtype dtype; /* in whose elements strides and offset are counted; NONE: that of the tensor */
    bool checked;    /* against the storage; otherwise it is known to lie within its tensor, and to have no more elements */
    bool detached;   /* without history and base; its dtype is said */
    bool itself;     /* no view: the tensor is returned */
    bool turns;      /* conjugated when it is read where the tensor is not, and the other way round */
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
