/* Converts a gradient to the shape, dtype and device of the output that it belongs to, and decides whether a gradient may be written in place. */
#ifndef GRD_AUTOGRAD_GRADIENT_H
#define GRD_AUTOGRAD_GRADIENT_H

#include "autograd/node.h"

/* Returns `grad` converted to the shape, dtype and device in `output`. NULL, with RuntimeError, if this is impossible. The error text
 * contains `node_name`, and `index`, which is the position of `grad` among the node's gradients. */
grd_tensor *grd_adapt_gradient(const struct grd_output *output, grd_tensor *grad, const char *node_name, int64_t index);

/* Returns `grad` itself if it has the shape, dtype and device of the output, otherwise the result of grd_adapt_gradient. */
static inline grd_tensor *grd_fit_gradient(const struct grd_output *output, grd_tensor *grad, const char *node_name, int64_t index)
{
    bool fits = grd_output_traits(grad) == output->traits;
    for (int i = 0; fits && i < output->ndim; i++)
        fits = grad->sizes[i] == output->sizes[i];
    return GRD_LIKELY(fits) ? grad : grd_adapt_gradient(output, grad, node_name, index);
}
/* True if only the caller owns the tensor and its memory, so that the caller may write it in place. */
bool grd_is_exclusive(const grd_tensor *t);

/* A quicker test than grd_is_exclusive. If it is true, only the caller owns the tensor and its memory. It is always false for a view and for a
 * tensor that is not contiguous. */
static inline bool grd_is_exclusive_whole(const grd_tensor *t)
{
    return t->base == NULL && grd_has(t, GRD_FLAG_CONTIGUOUS) && grd_object_unique(t) && t->autograd == NULL &&
           t->storage->release == NULL && grd_object_unique(t->storage);
}

#endif
