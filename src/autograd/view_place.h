/* The place of a view in its base, by which the same view of another tensor can be made. */
#ifndef GRD_AUTOGRAD_VIEW_PLACE_H
#define GRD_AUTOGRAD_VIEW_PLACE_H

#include "core/tensor.h"

struct grd_view_place {
    grd_dtype
        dtype; /* of the view: that of the base, or the complex dtype whose parts the base's elements are, or the dtype of such parts */
    grd_dims sizes, strides; /* of the view */
    int64_t shift; /* from the first element of the base to the first of the view; counts real numbers if one of the two is complex */
    bool turned;   /* exactly one of view and base has the conjugate or negative bit */
};

/* Returns the place of `view` in `base`, whose memory it shares. Borrows the sizes and strides of the view. */
struct grd_view_place grd_view_place_of(const grd_tensor *view, const grd_tensor *base);
/* Returns the view of `base` at the place, made by operators, so that autograd records it. `base` has the sizes, strides and dtype of the base that
 * the place was taken from. */
grd_tensor *grd_view_at(grd_tensor *base, const struct grd_view_place *place);
/* Returns the view of `base` that `view` is of its own base, which has the sizes and strides of `base`. Made by operators. */
grd_tensor *grd_view_like(grd_tensor *base, const grd_tensor *view);

#endif
