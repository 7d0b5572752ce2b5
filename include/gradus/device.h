/* Declares devices that a program or plug-in registers. A device determines where the memory of tensors is, and which kernels compute on it.
 *
 *     static const grd_device_type vault = {.name = "vault", .count = 1, .allocate = ..., .release = ..., .copy = ..., .fallback = grd_cpu_fallback};
 *     grd_device device = grd_device_register(&vault);
 *     grd_tensor *x = grd_ones(grd_dims(2, 3), .device = device);
 *
 * The library reads and writes the memory of such a device only through the function `copy`. It adds byte offsets to the addresses that
 * `allocate` returned, so address arithmetic must work on them, but it never dereferences them. grd_data of a tensor on the device returns such
 * an address, which only the device's kernels may use. */
#ifndef GRADUS_DEVICE_H
#define GRADUS_DEVICE_H

#include "gradus/dispatch.h"
#include "gradus/types.h"

GRD_BEGIN_DECLS

/* A kernel of a device type: the function `kernel` runs the operator called `op` on devices of the type. It has the parameters of grd_boxed_kernel,
 * and `context` is NULL. All tensors that the kernel gets are on the same device, except zero-dimensional CPU tensors, which can be combined with
 * tensors of any device. If the operator has a `device` argument, that argument may name another device. */
typedef struct grd_device_kernel {
    const char *op;
    grd_boxed_kernel *kernel;
} grd_device_kernel;

typedef struct grd_device_type {
    const char *name; /* a letter, then letters, digits and '_'; at most 31 characters */
    int count;        /* number of devices of this type (vault:0, vault:1, …), 1 to 128 */
    /* Allocates at least `bytes` bytes, aligned to 64 bytes. `bytes` is never 0. Returns NULL on failure. The library then raises MemoryError, unless
     * `allocate` has set an error. `allocate`, `release` and `copy` may be called at any time and on any thread. */
    void *(*allocate)(grd_device device, int64_t bytes);
    void (*release)(grd_device device, void *data, int64_t bytes);
    /* Copies `bytes` bytes between memory areas that do not overlap. At least one of the two devices is of this type; the other one may be the
     * CPU. Reports failure with grd_error_set. */
    void (*copy)(void *to, grd_device to_device, const void *from, grd_device from_device, int64_t bytes);
    /* An array of `nkernels` kernels. There is none for composite operators, which consist of calls of other operators. */
    const grd_device_kernel *kernels;
    int nkernels;
    /* The kernel that runs operators without a kernel of their own: grd_cpu_fallback or a function of the plug-in. If it is NULL, these operators
     * raise NotImplementedError. Views, `empty` and `copy_` need neither a kernel nor a fallback. */
    grd_boxed_kernel *fallback;
} grd_device_type;

/* Adds a type of device and returns its first device; `type` is copied. On failure returns an absent device. The error is ValueError if the name
 * or the count is invalid. It is RuntimeError if the name is taken, if an operator in `kernels` does not exist or is a composite (an operator that
 * calls only other operators), or if GRD_DEVICE_COUNT - GRD_DEVICE_FIRST_EXTRA types are registered already. */
GRD_API grd_device grd_device_register(const grd_device_type *type);
/* Unregisters the type of `device`. No thread may be using the device. Returns false, with RuntimeError, if memory of the device is still
 * allocated. */
GRD_API bool grd_device_unregister(grd_device device);
/* Returns the device called `name`: "cpu", "meta", "vault" (the first device of the type vault) or "vault:1". Returns an absent device, with
 * RuntimeError, if no device has this name. */
GRD_API grd_device grd_device_find(const char *name);

/* The boxed kernel that runs any operator on the CPU. It copies the tensor arguments to the CPU and the results back. If the operator writes to a
 * tensor in place or as `out` and this tensor is not contiguous, its elements are copied back one by one. The results equal those on the CPU bit
 * for bit, including random numbers. */
GRD_API void grd_cpu_fallback(const grd_op *op, grd_keyset keys, grd_tensor *out, const grd_value *args, grd_value *ret_results,
                              void *context);

GRD_END_DECLS
#endif
