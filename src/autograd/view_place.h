/* Describes which elements of its base a view has, so that the same view of another tensor can be made. */
#ifndef GRD_AUTOGRAD_VIEW_PLACE_H
#define GRD_AUTOGRAD_VIEW_PLACE_H

#include "core/tensor.h"

/* Describes a view relative to its base. The dtypes of view and base may differ: the view may show a complex base as real numbers, or a real base
 * as complex numbers. */
struct grd_view_place {
    /* The dtype of the view: the base's dtype, or its real dtype if the base is complex, or the complex dtype if the base is real. */
    grd_dtype dtype;
    grd_dims sizes, strides; /* the sizes and strides of the view */
    /* offset of the view from the start of the base, counted in elements; counted in real numbers if only one of view and base is complex */
    int64_t shift;
    bool turned; /* the view has the conjugate or negative bit and the base has not, or the reverse */
};

/* Returns the description of `view` relative to `base`, whose memory it shares. Borrows the sizes and strides of the view. */
struct grd_view_place grd_view_place_of(const grd_tensor *view, const grd_tensor *base);
/* Returns the view of `base` that `place` describes. It is made by operators, so autograd records it. `base` must have the sizes, strides and dtype
 * of the tensor that was passed to grd_view_place_of as base. */
grd_tensor *grd_view_at(grd_tensor *base, const struct grd_view_place *place);
/* Returns a view of `base` with the sizes, strides and offset that `view` has in its own base. The two bases must have the same sizes and strides.
 * The view is made by operators, so autograd records it. */
grd_tensor *grd_view_like(grd_tensor *base, const grd_tensor *view);

#endif
