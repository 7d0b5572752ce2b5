/* Declares the argument checks that operators of all families use. Each returns true if its condition holds. Otherwise it raises an error with
 * PyTorch's text and returns false. */
#ifndef GRD_OP_CHECKS_H
#define GRD_OP_CHECKS_H

#include "core/device.h"
#include "core/tensor.h"

/* Raises RuntimeError "Expected all tensors to be on the same device, ..." if devices `a` and `b` differ. */
static inline bool grd_check_devices(grd_device a, grd_device b)
{
    return (a.type == b.type && a.index == b.index) || grd_raise_devices(a, b);
}

/* Raises RuntimeError "Expected all tensors to be on the same device, but found at least two devices, cpu and meta!" if the devices of two tensors
 * differ. NULL entries are skipped. */
bool grd_check_same_device(grd_tensors tensors);
/* Raises an error if the values of `t` cannot be read: NotImplementedError "not available on the meta device" for a meta tensor, RuntimeError for
 * a tensor with a batch dimension of vmap. Operators whose results depend on values of `t` call it. */
bool grd_check_has_data(const grd_tensor *t);
/* Raises a NotImplementedError such as "\"tanh_cpu\" not implemented for 'Int'", for operator `name` and `dtype`. Always returns false. */
bool grd_raise_no_kernel(const char *name, grd_dtype dtype);
/* Raises the same error as grd_raise_no_kernel and returns grd_failed. */
static inline grd_tensor *grd_fail_no_kernel(const char *name, grd_dtype dtype)
{
    grd_raise_no_kernel(name, dtype);
    return grd_failed;
}
/* Raises RuntimeError if `n`, a number of dimensions, is above GRD_MAX_DIMS. */
static inline bool grd_check_ndim(int64_t n)
{
    return n <= GRD_MAX_DIMS || grd_raise(GRD_ERROR_RUNTIME, "too many dimensions: %lld, the limit is %d", (long long)n, GRD_MAX_DIMS);
}

#endif
