/* Checks that operators of all families make. Each raises its error, in PyTorch's words, and returns false when it does not hold. */
#ifndef GRD_OP_CHECKS_H
#define GRD_OP_CHECKS_H

#include "core/device.h"
#include "core/tensor.h"

/* RuntimeError when the devices differ: "Expected all tensors to be on the same device, …". */
static inline bool grd_check_devices(grd_device a, grd_device b)
{
    return (a.type == b.type && a.index == b.index) || grd_raise_devices(a, b);
}

/* RuntimeError "Expected all tensors to be on the same device, but found at least two devices, cpu and meta!". NULL entries are skipped. */
bool grd_check_same_device(grd_tensors tensors);
/* NotImplementedError "not available on the meta device": for operators that must read data. */
bool grd_check_has_data(const grd_tensor *t);
/* Raises NotImplementedError "\"tanh_cpu\" not implemented for 'Int'". Always false. */
bool grd_raise_no_kernel(const char *name, grd_dtype dtype);
static inline grd_tensor *grd_fail_no_kernel(const char *name, grd_dtype dtype)
{
    grd_raise_no_kernel(name, dtype);
    return grd_failed;
}
/* RuntimeError: `n` is more than GRD_MAX_DIMS. */
static inline bool grd_check_ndim(int64_t n)
{
    return n <= GRD_MAX_DIMS || grd_raise(GRD_ERROR_RUNTIME, "too many dimensions: %lld, the limit is %d", (long long)n, GRD_MAX_DIMS);
}

#endif
