/* Implements the foreach functions on lists of tensors, which call an operator for each tensor in turn. */
#include "gen/uses/op/foreach.h"
#include "core/tensor.h"

typedef grd_tensor *with_tensor(grd_tensor *self, grd_tensor *other);
typedef grd_tensor *with_scalar(grd_tensor *self, grd_scalar scalar);

/* Returns the list of function(self[i], other[i]) for all i; on failure a list whose data is NULL, with the error raised. */
static grd_tensors for_lists(grd_tensors self, grd_tensors other, with_tensor *function)
{
    grd_tensor **results = grd_pool_array(self.n + 1, sizeof *results);
    if (self.n != other.n)
        grd_raise(GRD_ERROR_RUNTIME, "Tensor lists must have the same number of tensors, got %lld and %lld", (long long)self.n,
                  (long long)other.n);
    for (int64_t i = 0; i < self.n && !grd_pending(); i++)
        results[i] = function(self.data[i], other.data[i]);
    return grd_pending() ? (grd_tensors){0} : grd_tensors_from(results, self.n);
}

/* Returns the list of function(self[i], scalar) for all i; on failure a list whose data is NULL, with the error raised. */
static grd_tensors for_scalar(grd_tensors self, grd_scalar scalar, with_scalar *function)
{
    grd_tensor **results = grd_pool_array(self.n + 1, sizeof *results);
    for (int64_t i = 0; i < self.n && !grd_pending(); i++)
        results[i] = function(self.data[i], scalar);
    return grd_pending() ? (grd_tensors){0} : grd_tensors_from(results, self.n);
}

static grd_tensor *one_add(grd_tensor *self, grd_tensor *other)
{
    return grd_add(self, other);
}

grd_tensors op_foreach_add_list(grd_tensors self, grd_tensors other)
{
    return for_lists(self, other, one_add);
}

static grd_tensor *one_add_scalar(grd_tensor *self, grd_scalar scalar)
{
    return grd_add_scalar(self, scalar);
}

grd_tensors op_foreach_add_scalar(grd_tensors self, grd_scalar scalar)
{
    return for_scalar(self, scalar, one_add_scalar);
}

static grd_tensor *one_add_inplace(grd_tensor *self, grd_tensor *other)
{
    return grd_add_(self, other);
}

grd_tensors op_foreach_add_list_inplace(grd_tensors self, grd_tensors other)
{
    return for_lists(self, other, one_add_inplace);
}

static grd_tensor *one_add_scalar_inplace(grd_tensor *self, grd_scalar scalar)
{
    return grd_add_scalar_(self, scalar);
}

grd_tensors op_foreach_add_scalar_inplace(grd_tensors self, grd_scalar scalar)
{
    return for_scalar(self, scalar, one_add_scalar_inplace);
}

static grd_tensor *one_sub(grd_tensor *self, grd_tensor *other)
{
    return grd_sub(self, other);
}

grd_tensors op_foreach_sub_list(grd_tensors self, grd_tensors other)
{
    return for_lists(self, other, one_sub);
}

static grd_tensor *one_sub_scalar(grd_tensor *self, grd_scalar scalar)
{
    return grd_sub_scalar(self, scalar);
}

grd_tensors op_foreach_sub_scalar(grd_tensors self, grd_scalar scalar)
{
    return for_scalar(self, scalar, one_sub_scalar);
}

static grd_tensor *one_sub_inplace(grd_tensor *self, grd_tensor *other)
{
    return grd_sub_(self, other);
}

grd_tensors op_foreach_sub_list_inplace(grd_tensors self, grd_tensors other)
{
    return for_lists(self, other, one_sub_inplace);
}

static grd_tensor *one_sub_scalar_inplace(grd_tensor *self, grd_scalar scalar)
{
    return grd_sub_scalar_(self, scalar);
}

grd_tensors op_foreach_sub_scalar_inplace(grd_tensors self, grd_scalar scalar)
{
    return for_scalar(self, scalar, one_sub_scalar_inplace);
}

grd_tensors op_foreach_mul_list(grd_tensors self, grd_tensors other)
{
    return for_lists(self, other, grd_mul);
}

grd_tensors op_foreach_mul_scalar(grd_tensors self, grd_scalar scalar)
{
    return for_scalar(self, scalar, grd_mul_scalar);
}

grd_tensors op_foreach_mul_list_inplace(grd_tensors self, grd_tensors other)
{
    return for_lists(self, other, grd_mul_);
}

grd_tensors op_foreach_mul_scalar_inplace(grd_tensors self, grd_scalar scalar)
{
    return for_scalar(self, scalar, grd_mul_scalar_);
}

static grd_tensor *one_div(grd_tensor *self, grd_tensor *other)
{
    return grd_div(self, other);
}

grd_tensors op_foreach_div_list(grd_tensors self, grd_tensors other)
{
    return for_lists(self, other, one_div);
}

static grd_tensor *one_div_scalar(grd_tensor *self, grd_scalar scalar)
{
    return grd_div_scalar(self, scalar);
}

grd_tensors op_foreach_div_scalar(grd_tensors self, grd_scalar scalar)
{
    return for_scalar(self, scalar, one_div_scalar);
}

static grd_tensor *one_div_inplace(grd_tensor *self, grd_tensor *other)
{
    return grd_div_(self, other);
}

grd_tensors op_foreach_div_list_inplace(grd_tensors self, grd_tensors other)
{
    return for_lists(self, other, one_div_inplace);
}

static grd_tensor *one_div_scalar_inplace(grd_tensor *self, grd_scalar scalar)
{
    return grd_div_scalar_(self, scalar);
}

grd_tensors op_foreach_div_scalar_inplace(grd_tensors self, grd_scalar scalar)
{
    return for_scalar(self, scalar, one_div_scalar_inplace);
}

grd_tensors op_foreach_mul_tensor_inplace(grd_tensors self, grd_tensor *other)
{
    grd_tensor **results = grd_pool_array(self.n + 1, sizeof *results);
    for (int64_t i = 0; i < self.n && !grd_pending(); i++)
        results[i] = grd_mul_(self.data[i], other);
    return grd_pending() ? (grd_tensors){0} : grd_tensors_from(results, self.n);
}

grd_tensors op_foreach_clamp_min_inplace(grd_tensors self, grd_scalar scalar)
{
    return for_scalar(self, scalar, grd_clamp_min_);
}

grd_tensors op_foreach_clamp_max_inplace(grd_tensors self, grd_scalar scalar)
{
    return for_scalar(self, scalar, grd_clamp_max_);
}

static grd_tensor *zero(grd_tensor *self, grd_scalar scalar)
{
    (void)scalar;
    return grd_zero_(self);
}

grd_tensors op_foreach_zero_inplace(grd_tensors self)
{
    return for_scalar(self, grd_int(0), zero);
}

static grd_tensor *norm(grd_tensor *self, grd_scalar order)
{
    return grd_norm(self, .p = order);
}

grd_tensors op_foreach_norm(grd_tensors self, grd_scalar order)
{
    return for_scalar(self, order, norm);
}
