/* See composite.h. */
#include "op/composite.h"

#include "gradus/gradus.h"
#include "op/common.h"

grd_tensor *grd_composite_input(grd_tensor *out, grd_tensor *self)
{
    return out != NULL && out == self && grd_grad_enabled() && grd_requires_grad(self) ? grd_clone(self) : self;
}

grd_tensor *grd_composite_finish(grd_tensor *out, const grd_tensor *self, grd_tensor *value)
{
    if (grd_pending() || out == NULL || out == value)
        return grd_pending() ? grd_failed : value;
    if (!grd_out_check(out, (grd_dtype)value->dtype, grd_device_of(value)))
        return grd_failed;
    if (out == self)
        return grd_check_inplace_shape(out, grd_sizes(value)) ? grd_copy_(out, value) : grd_failed;
    if (grd_grad_enabled() && (grd_requires_grad(value) || grd_requires_grad(out))) {
        grd_raise(GRD_ERROR_RUNTIME, "functions with out=... arguments don't support automatic differentiation, but one of the arguments "
                                     "requires grad.");
        return grd_failed;
    }
    return grd_same_sizes(out, grd_sizes(value)) || grd_resize(out, grd_sizes(value)) ? grd_copy_(out, value) : grd_failed;
}
