/* See composite.h. */
#include "op/composite.h"

#include "base/object.h"
#include "dispatch/op.h"
#include "gradus/gradus.h"
#include "op/common.h"

static bool check_out(const grd_tensor *out, const grd_tensor *value)
{
    if (!grd_out_check(out, (grd_dtype)value->dtype, grd_device_of(value)))
        return false;
    return !grd_grad_enabled() || (!grd_requires_grad(value) && !grd_requires_grad(out)) ||
           grd_raise(GRD_ERROR_RUNTIME,
                     "functions with out=... arguments don't support automatic differentiation, but one of the arguments "
                     "requires grad.");
}

static grd_tensor *fill_out(grd_tensor *out, grd_tensor *value)
{
    return grd_same_sizes(out, grd_sizes(value)) || grd_resize(out, grd_sizes(value)) ? grd_copy_(out, value) : grd_failed;
}

grd_tensor *grd_composite_input(grd_tensor *out, grd_tensor *self)
{
    return out != NULL && out == self && grd_grad_enabled() && grd_requires_grad(self) ? grd_clone(self) : self;
}

grd_tensor *grd_composite_finish(grd_tensor *out, const grd_tensor *self, grd_tensor *value)
{
    if (grd_pending() || out == NULL || out == value)
        return grd_pending() ? grd_failed : value;
    if (out != self)
        return check_out(out, value) ? fill_out(out, value) : grd_failed;
    const bool fits = grd_out_check(out, (grd_dtype)value->dtype, grd_device_of(value)) && grd_check_inplace_shape(out, grd_sizes(value));
    return fits ? grd_copy_(out, value) : grd_failed;
}

static bool check_outs(const grd_op *op, grd_tensors outs, grd_tensors results)
{
    if (!grd_is_tensor_list(outs) || !grd_is_tensor_list(results))
        return grd_raise(GRD_ERROR_TYPE, "outs and results must be lists of tensors, without NULL");
    if (outs.n != results.n)
        return grd_raise(GRD_ERROR_TYPE, "%lld tensors were given for %lld results", (long long)outs.n, (long long)results.n);
    for (int64_t i = 0; i < outs.n; i++)
        if (!grd_check_writable(op, outs.data[i]) || !grd_check_writable(op, results.data[i]) || !check_out(outs.data[i], results.data[i]))
            return false;
    return true;
}

bool grd_write_results(const grd_op *op, grd_tensors outs, grd_tensors results)
{
    if (grd_pending())
        return false;
    if (op == NULL)
        return grd_raise(GRD_ERROR_TYPE, "an operator is required, not NULL");
    const int64_t mark = grd_pool_mark();
    bool ok = check_outs(op, outs, results);
    for (int64_t i = 0; i < outs.n && ok; i++)
        ok = outs.data[i] == results.data[i] || !grd_is_failed(fill_out(outs.data[i], results.data[i]));
    grd_pool_release(mark);
    if (!ok)
        grd_error_add_context(op->name);
    return ok;
}
