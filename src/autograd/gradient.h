/* Fits a gradient to the shape, dtype and device of its output, and decides whether the gradient may be written in place. */
#ifndef GRD_AUTOGRAD_GRADIENT_H
#define GRD_AUTOGRAD_GRADIENT_H

#include "autograd/node.h"

/* Returns the gradient converted to the shape, dtype and device of the output. NULL, with RuntimeError, if the two are incompatible. */
grd_tensor *grd_adapt_gradient(const struct grd_output *output, grd_tensor *grad, const char *node_name, int64_t index);

/* Returns the gradient itself if it fits the output, otherwise the result of grd_adapt_gradient. */
static inline grd_tensor *grd_fit_gradient(const struct grd_output *output, grd_tensor *grad, const char *node_name, int64_t index)
{
    bool fits = grd_output_traits(grad) == output->traits;
    for (int i = 0; fits && i < output->ndim; i++)
        fits = grad->sizes[i] == output->sizes[i];
    return GRD_LIKELY(fits) ? grad : grd_adapt_gradient(output, grad, node_name, index);
}
/* True if nobody else can see the tensor's data, so that it can be written in place. */
bool grd_is_exclusive(const grd_tensor *t);

/* A faster and narrower form of grd_is_exclusive: true only for contiguous tensors that are not views. */
static inline bool grd_is_exclusive_whole(const grd_tensor *t)
{
    return t->base == NULL && grd_has(t, GRD_FLAG_CONTIGUOUS) && grd_object_unique(t) && t->autograd == NULL &&
           t->storage->release == NULL && grd_object_unique(t->storage);
}

#endif
