/* Describes a planned view, i.e. everything that a view operator determines about its result. The tensors are created in view.c by generated code
 * (gen/view_calls.h). */
#ifndef GRD_OP_VIEW_H
#define GRD_OP_VIEW_H

#include "core/tensor.h"

struct grd_view {
    /* n: number of dimensions; offset: offset in the storage, in elements. */
    int64_t n, offset;
    const int64_t *sizes, *strides; /* arrays of n sizes and strides: `size` and `stride` below, or arrays of a tensor */
    int64_t *size,
        *stride;     /* arrays of GRD_MAX_DIMS elements outside of this struct, so that the compiler can keep the struct in registers */
    grd_dtype dtype; /* dtype of the view; strides and offset count elements of this dtype; NONE means the dtype of the tensor */
    bool checked;    /* true if the view must be checked against the storage; false if it is known to be inside of its tensor */
    bool detached;   /* true if the view gets no autograd history and no base tensor; if true, `dtype` is not NONE */
    bool itself;     /* true if the result is the tensor itself and not a view */
    bool turns;      /* true if the conjugate (or negative) flag of the view is the opposite of the tensor's */
};

/* Starts a view of `t` with n dimensions, whose sizes and strides the caller writes. */
static inline void grd_view_start(struct grd_view *v, const grd_tensor *t, int64_t n)
{
    v->n = n;
    v->offset = t->offset;
    v->sizes = v->size;
    v->strides = v->stride;
}

/* Appends a dimension to a view. */
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
