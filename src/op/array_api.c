/* Implements the functions of the Python array API standard whose results differ from those of PyTorch's function of the same name. Schema:
 * schema/elementwise.toml. */
#include <string.h>

#include "base/error.h"
#include "core/tensor.h"
#include "gen/uses/op/array_api.h"
#include "gradus/library.h"
#include "op/formula.h"

/* Returns tanh(x). For a complex x with an infinite real part and a finite imaginary part, the imaginary part of the result is a zero with the sign
 * of the imaginary part of x. */
static grd_tensor *tanh_by_parts(grd_tensor *x)
{
    grd_tensor *result = grd_tanh(x);
    if (!grd_dtype_is_complex((grd_dtype)x->dtype))
        return result;
    grd_tensor *re = grd_real(x), *im = grd_imag(x), *zero = grd_copysign(grd_zeros_like(im), im);
    grd_tensor *at_end = grd_bitwise_and(grd_isinf(re), grd_isfinite(im));
    return grd_where(at_end, grd_complex(grd_real(result), zero), result);
}

grd_tensor *op_hidden_array_function(grd_tensor *self, grd_tensor *other, const char *function)
{
    if (strcmp(function, "floor_divide") == 0)
        return grd_where(grd_bitwise_or(grd_isinf(self), grd_isinf(other)), grd_div(self, other), grd_floor_divide(self, other));
    if (strcmp(function, "sign") == 0)
        return grd_where(grd_isnan(self), self, grd_sign(self));
    if (strcmp(function, "tanh") == 0)
        return tanh_by_parts(self);
    if (strcmp(function, "remainder") != 0)
        return grd_fail(GRD_ERROR_RUNTIME, "the array API has no function '%s' that differs from PyTorch's", function);
    grd_tensor *rest = grd_remainder(self, other);
    return grd_where(grd_eq_scalar(rest, grd_int(0)), grd_copysign(rest, other), rest);
}
