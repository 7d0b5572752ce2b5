/* Comparisons of whole tensors that answer with a bool: not operators, since they have no tensor result. */
#include <math.h>

#include "core/tensor.h"
#include "gradus/gradus.h"

/* Whether every element of a bool tensor is set; false with an error pending. */
static bool all_set(grd_tensor *t)
{
    return grd_item_int64(grd_all(t)) != 0 && !grd_pending();
}

static bool same_shape(const grd_tensor *a, const grd_tensor *b)
{
    if (a->ndim != b->ndim)
        return false;
    for (int i = 0; i < a->ndim; i++)
        if (a->sizes[i] != b->sizes[i])
            return false;
    return true;
}

static bool check_tensors(const char *name, const grd_tensor *a, const grd_tensor *b)
{
    if (grd_pending())
        return false;
    if (a == NULL || b == NULL)
        return grd_raise(GRD_ERROR_TYPE, "%s: argument '%s' must be a tensor, not NULL", name, a == NULL ? "a" : "b");
    return true;
}

bool grd_equal(grd_tensor *a, grd_tensor *b)
{
    if (!check_tensors("equal", a, b) || !same_shape(a, b))
        return false;
    grd_scope scope = grd_scope_open();
    bool previous = grd_set_grad_enabled(false);
    bool result = all_set(grd_eq(a, b));
    grd_set_grad_enabled(previous);
    grd_scope_close(scope);
    return result;
}

/* isclose: equal, or finitely far apart and within the tolerance. An infinite difference is never close, whatever it is compared to. */
static grd_tensor *close_elements(grd_tensor *a, grd_tensor *b, double rtol, double atol, bool equal_nan)
{
    grd_tensor *allowed = grd_add(grd_abs(grd_mul(b, grd_number(grd_float(rtol)))), grd_number(grd_float(atol)));
    grd_tensor *distance = grd_abs(grd_sub(a, b));
    grd_tensor *near = grd_logical_and(grd_le(distance, allowed), grd_lt(distance, grd_number(grd_float(INFINITY))));
    grd_tensor *close = grd_logical_or(grd_eq(a, b), near);
    return equal_nan ? grd_logical_or(close, grd_logical_and(grd_ne(a, a), grd_ne(b, b))) : close;
}

bool grd_allclose(grd_tensor *a, grd_tensor *b, double rtol, double atol, bool equal_nan)
{
    if (!check_tensors("allclose", a, b))
        return false;
    if (a->dtype != b->dtype)
        return grd_raise(GRD_ERROR_RUNTIME, "allclose: %s did not match %s", grd_dtype_type_name(a->dtype), grd_dtype_type_name(b->dtype));
    if (!(rtol >= 0) || !(atol >= 0))
        return grd_raise(GRD_ERROR_RUNTIME, "allclose: %s must be greater than or equal to zero, but got %g",
                         !(rtol >= 0) ? "rtol" : "atol", !(rtol >= 0) ? rtol : atol);
    grd_scope scope = grd_scope_open();
    bool previous = grd_set_grad_enabled(false);
    enum grd_category category = (enum grd_category)grd_dtype_table[a->dtype].category;
    grd_tensor *close;
    if (category == GRD_CATEGORY_FLOAT || category == GRD_CATEGORY_COMPLEX)
        close = close_elements(a, b, rtol, atol, equal_nan);
    else
        close = close_elements(grd_to(a, .dtype = GRD_FLOAT64), grd_to(b, .dtype = GRD_FLOAT64), rtol, atol, equal_nan);
    bool result = all_set(close);
    grd_set_grad_enabled(previous);
    grd_scope_close(scope);
    return result;
}
