/* Implements the argument checks of checks.h, which operators of all families share. */
#include "core/dtype.h"
#include "core/tensor.h"
#include "op/checks.h"

#include <string.h>

bool grd_check_same_device(grd_tensors tensors)
{
    const grd_tensor *first = NULL;
    for (int64_t i = 0; i < tensors.n; i++) {
        const grd_tensor *t = tensors.data[i];
        if (t == NULL)
            continue;
        if (first == NULL)
            first = t;
        else if (GRD_UNLIKELY(t->device != first->device || t->device_index != first->device_index))
            return grd_check_devices(grd_device_of(first), grd_device_of(t));
    }
    return true;
}

bool grd_check_has_data(const grd_tensor *t)
{
    if (grd_is_batch(t))
        return grd_raise_batch_data();
    return !grd_is_meta(t) || grd_raise(GRD_ERROR_NOT_IMPLEMENTED, "not available on the meta device");
}

bool grd_raise_no_kernel(const char *name, grd_dtype dtype)
{
    static const char special[] = "special_"; /* PyTorch's names of kernels do not have this prefix. */
    name += strspn(name, "_");
    name += strncmp(name, special, sizeof special - 1) == 0 ? sizeof special - 1 : 0;
    return grd_raise(GRD_ERROR_NOT_IMPLEMENTED, "\"%s_cpu\" not implemented for '%s'", name, grd_dtype_type_name(dtype));
}
