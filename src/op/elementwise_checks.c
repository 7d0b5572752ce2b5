/* Checks scalar arguments of elementwise operators before their kernels run. The functions are declared in formula.h. Schema:
 * schema/elementwise.toml. */
#include <math.h>

#include "core/dtype.h"
#include "core/geometry.h"
#include "core/scalar.h"
#include "core/tensor.h"
#include "dispatch/op.h"
#include "kernel/map.h"
#include "op/formula.h"

static bool is_number(const grd_tensor *t)
{
    return grd_has(t, GRD_FLAG_NUMBER) && t->data != NULL;
}

double grd_underived(const char *what)
{
    grd_raise(GRD_ERROR_NOT_IMPLEMENTED, "the derivative for '%s' is not implemented.", what);
    return 0;
}

bool grd_is_real_number(const grd_tensor *t)
{
    return is_number(t) && grd_category_of(t->dtype) != GRD_CATEGORY_COMPLEX;
}

grd_scalar grd_scalar_conj(grd_scalar s)
{
    if (s.kind == GRD_SCALAR_COMPLEX)
        s.v.c.im = -s.v.c.im;
    return s;
}

grd_scalar grd_scalar_negated(grd_scalar s)
{
    if (s.kind == GRD_SCALAR_UINT)
        return grd_float(-grd_scalar_double(s));
    if (grd_scalar_is_integral(s))
        return grd_int((int64_t) - (uint64_t)s.v.i);
    s.v.c.re = -s.v.c.re;
    s.v.c.im = -s.v.c.im;
    return s;
}

/* True if `dtype` can hold `number`. Otherwise returns false, with an error pending. */
static bool fits(grd_scalar number, grd_dtype dtype)
{
    char element[16];
    return !grd_pending() && grd_scalar_write(number, dtype, element);
}

static grd_dtype promoted(grd_tensor *a, grd_tensor *b)
{
    return grd_result_type((grd_tensor *const[]){a, b}, 2);
}

/* ---- add, addcmul, where ------------------------------------------------------------------------------------------------------------ */

bool grd_take_alpha(grd_tensor *self, grd_tensor *other, grd_scalar *alpha)
{
    char element[16];
    const grd_dtype result = promoted(self, other);
    if (grd_pending())
        return false;
    if (alpha->kind == GRD_SCALAR_BOOL && result != GRD_BOOL)
        return grd_raise(GRD_ERROR_RUNTIME, "Boolean alpha only supported for Boolean results.");
    if (!grd_scalar_is_integral(*alpha) && grd_dtype_is_integral(result))
        return grd_raise(GRD_ERROR_RUNTIME, "For integral input tensors, argument alpha must not be a floating point number.");
    if (alpha->kind == GRD_SCALAR_COMPLEX && grd_category_of(result) != GRD_CATEGORY_COMPLEX)
        return grd_raise(GRD_ERROR_RUNTIME, "For non-complex input tensors, argument alpha must not be a complex number.");
    if (!grd_scalar_write(*alpha, result, element))
        return false;
    if (result == GRD_BOOL || grd_is_half(result))
        *alpha = grd_scalar_read(element, result);
    return true;
}

bool grd_check_numbers(grd_tensor *self, grd_tensor *other)
{
    if (GRD_LIKELY(!is_number(self) && !is_number(other)))
        return true;
    const grd_dtype dtype = promoted(self, other);
    return (!is_number(self) || fits(grd_scalar_read(self->data, self->dtype), dtype)) &&
           (!is_number(other) || fits(grd_scalar_read(other->data, other->dtype), dtype));
}

bool grd_check_factor(grd_tensors tensors, grd_scalar value)
{
    const grd_dtype dtype = grd_result_type(tensors.data, (int)tensors.n);
    return fits(value, grd_computed_dtype(dtype));
}

/* ---- pow ------------------------------------------------------------------------------------------------------------------------------- */

bool grd_check_power(grd_tensor *self, grd_tensor *exponent)
{
    if (!is_number(exponent))
        return true;
    const grd_scalar power = grd_scalar_read(exponent->data, exponent->dtype);
    if (power.kind == GRD_SCALAR_INT && power.v.i < 0 && grd_dtype_is_integral(self->dtype))
        return grd_raise(GRD_ERROR_RUNTIME, "Integers to negative integer powers are not allowed.");
    const grd_dtype dtype = promoted(self, exponent);
    return !grd_pending() && (!grd_dtype_is_integral(dtype) || fits(power, dtype));
}

double grd_number_power(grd_tensor *self, grd_tensor *exponent)
{
    if (!grd_is_real_number(exponent) || promoted(self, exponent) != (grd_dtype)self->dtype)
        return NAN;
    return grd_scalar_double(grd_scalar_read(exponent->data, exponent->dtype));
}

/* ---- clamp --------------------------------------------------------------------------------------------------------------------------------- */

bool grd_check_clamp(grd_tensor *self, grd_tensor *min, grd_tensor *max)
{
    const grd_dtype dtype = grd_pending() ? GRD_DTYPE_NONE : grd_result_type((grd_tensor *const[]){self, min, max}, 3);
    if (dtype == GRD_DTYPE_NONE)
        return false;
    if (min == NULL && max == NULL)
        return grd_raise(GRD_ERROR_RUNTIME, "torch.clamp: At least one of 'min' or 'max' must not be None");
    if (grd_category_of(dtype) == GRD_CATEGORY_COMPLEX)
        return grd_raise(GRD_ERROR_NOT_IMPLEMENTED, "clamp is not supported for complex types");
    return dtype != GRD_BOOL || min == NULL || max == NULL /* with one bound, clamping bool is a logical OR (min) or AND (max) */ ||
           grd_raise_no_kernel("clamp", GRD_BOOL);
}

/* Raises RuntimeError if `dtype` is an integer dtype that cannot hold `bound`. */
static bool check_bound(grd_scalar bound, grd_dtype dtype)
{
    char element[16];
    if (bound.kind == GRD_SCALAR_NONE || grd_category_of(dtype) != GRD_CATEGORY_INTEGER)
        return true;
    if (!grd_scalar_write(bound, dtype, element))
        return false;
    grd_scalar back = grd_scalar_read(element, dtype);
    return back.v.i == bound.v.i || grd_raise(GRD_ERROR_RUNTIME, "value %lld cannot be converted to type %s without overflow",
                                              (long long)bound.v.i, grd_dtype_name(dtype));
}

bool grd_check_bounds(grd_tensor *out, grd_tensor *self, grd_scalar min, grd_scalar max)
{
    grd_tensor *low = min.kind == GRD_SCALAR_NONE ? NULL : grd_number(min);
    grd_tensor *high = max.kind == GRD_SCALAR_NONE ? NULL : grd_number(max);
    if (!grd_check_clamp(self, low, high))
        return false;
    const grd_dtype dtype = grd_result_type((grd_tensor *const[]){self, low, high}, 3);
    if (dtype == GRD_BOOL)
        return grd_raise_no_kernel("clamp", GRD_BOOL);
    return check_bound(min, dtype) && check_bound(max, dtype) &&
           (out == NULL || out == self || grd_check_out_dtype(grd_op_find("clamp"), 0, out, dtype));
}
