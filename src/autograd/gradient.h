/* Fits a gradient to the output it belongs to, and tells whether it may be written in place. */
#ifndef GRD_AUTOGRAD_GRADIENT_H
#define GRD_AUTOGRAD_GRADIENT_H

#include "autograd/node.h"
#include "autograd/variable.h"

/* The gradient in the shape, dtype and device an output asks for; NULL, with the error raised, when that cannot be. */
grd_tensor *grd_adapt_gradient(const struct grd_output *output, grd_tensor *grad, const char *node_name, int64_t index);

static inline grd_tensor *grd_fit_gradient(const struct grd_output *output, grd_tensor *grad, const char *node_name, int64_t index)
{
    bool fits = grd_output_traits(grad) == output->traits;
    for (int i = 0; fits && i < output->ndim; i++)
        fits = grad->sizes[i] == output->sizes[i];
    return GRD_LIKELY(fits) ? grad : grd_adapt_gradient(output, grad, node_name, index);
}
/* Nobody else can see the tensor's data, and it can be written in place. */
bool grd_is_exclusive(const grd_tensor *t);

/* Does so for most tensors: contiguous, and no view. */
static inline bool grd_is_exclusive_whole(const grd_tensor *t)
{
    return t->base == NULL && grd_has(t, GRD_FLAG_CONTIGUOUS) && grd_object_unique(t) && t->autograd == NULL &&
           t->storage->release == NULL && grd_object_unique(t->storage);
}

#endif
