/* Defines grd_equal and grd_allclose. They are not operators, because they return a bool instead of a tensor. */
#include "core/given.h"
#include "core/shape.h"
#include "core/tensor.h"
#include "gradus/library.h"
#include "gen/uses/api/compare.h"

/* True if all elements of a bool tensor are true. False if an error is pending. */
static bool all_set(grd_tensor *t)
{
    return grd_item_int64(grd_all(t)) != 0 && !grd_pending();
}

static bool check_tensors(const char *name, const grd_tensor *a, const grd_tensor *b)
{
    return !grd_pending() && grd_given(a, name, "a") && grd_given(b, name, "b");
}

bool grd_equal(grd_tensor *a, grd_tensor *b)
{
    if (!check_tensors("equal", a, b) || !grd_dims_equal(grd_sizes(a), grd_sizes(b)))
        return false;
    grd_scope scope = grd_scope_open();
    bool previous = grd_set_grad_enabled(false);
    bool result = all_set(grd_eq(a, b));
    grd_set_grad_enabled(previous);
    grd_scope_close(scope);
    return result;
}

bool grd_allclose(grd_tensor *a, grd_tensor *b, double rtol, double atol, bool equal_nan)
{
    if (!check_tensors("allclose", a, b))
        return false;
    grd_scope scope = grd_scope_open();
    bool previous = grd_set_grad_enabled(false);
    bool result = all_set(grd_isclose(a, b, .rtol = rtol, .atol = atol, .equal_nan = equal_nan));
    grd_set_grad_enabled(previous);
    grd_scope_close(scope);
    if (!grd_ok())
        grd_error_add_context("allclose");
    return result;
}
