/* Checks, resizes and fills `out`, the tensor that the caller of an operator passes for the result. */
#include "op/out.h"

#include "core/resize.h"
#include "core/tensor.h"
#include "op/copy.h"
#include "op/sizes.h"
#include "core/iter.h"
#include "op/checks.h"

bool grd_out_check(const grd_tensor *out, grd_dtype dtype, grd_device device)
{
    if (out == NULL)
        return true;
    return grd_check_devices(device, grd_device_of(out)) && grd_check_castable(dtype, out->dtype) && grd_check_no_internal_overlap(out);
}

bool grd_out_check_inputs(const grd_tensor *out, grd_tensors inputs)
{
    for (int64_t i = 0; i < inputs.n && out != NULL; i++)
        if (inputs.data[i] != NULL && !grd_check_no_partial_overlap(out, inputs.data[i]))
            return false;
    return true;
}

bool grd_out_resize(grd_tensor *out, const grd_tensor *result)
{
    const grd_dims sizes = grd_sizes(result);
    return grd_out_check(out, (grd_dtype)result->dtype, grd_device_of(result)) &&
           (grd_same_sizes(out, sizes) || grd_resize_out(out, sizes, result->strides));
}

grd_tensor *grd_out_finish(grd_tensor *out, grd_tensor *result)
{
    if (grd_pending())
        return grd_failed;
    if (out == NULL || out == result)
        return result;
    if (!grd_out_resize(out, result))
        return grd_failed;
    return grd_copy_elements(out, result) ? out : grd_failed;
}
