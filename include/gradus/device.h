/* Devices from outside the library: where tensors lie, and who computes on them.
 *
 *     static const grd_device_type vault = {.name = "vault", .count = 1, .allocate = …, .release = …, .copy = …, .fallback = grd_cpu_fallback};
 *     grd_device device = grd_device_register(&vault);
 *     grd_tensor *x = grd_ones(grd_dims(2, 3), .device = device);
 *
 * The library reads and writes the memory of such a device through `copy` alone. It adds offsets to the addresses that `allocate` gave, so
 * they must be as numbers are; it never follows them. grd_data of a tensor there is such an address: only the device's kernels may use it. */
#ifndef GRADUS_DEVICE_H
#define GRADUS_DEVICE_H

#include "gradus/dispatch.h"
#include "gradus/types.h"

GRD_BEGIN_DECLS

/* A kernel for one operator; see grd_boxed_kernel; its context is NULL. All tensors it gets lie on one device of its type, but for 0-d cpu
 * tensors, which go with any device as numbers do, and but for the tensors of an operator with a device argument that names another device. */
typedef struct grd_device_kernel {
    const char *op;
    grd_boxed_kernel *kernel;
} grd_device_kernel;

typedef struct grd_device_type {
    const char *name; /* a letter, then letters, digits and '_': at most 31 */
    int count;        /* how many devices: vault:0, vault:1, … At least 1, at most 128 */
    /* At least one byte, aligned to 64. NULL on failure, with or without an error set: it is a MemoryError then. Any thread may call this
     * and what follows, at any time. */
    void *(*allocate)(grd_device device, int64_t bytes);
    void (*release)(grd_device device, void *data, int64_t bytes);
    /* Copies bytes; one side is a device of this type, the other is one too, or the cpu. The two do not overlap. Failure: grd_error_set. */
    void (*copy)(void *to, grd_device to_device, const void *from, grd_device from_device, int64_t bytes);
    const grd_device_kernel *kernels; /* of operators that are not composites: those reach the device as their parts */
    int nkernels;
    /* For operators without a kernel: grd_cpu_fallback, one of your own, or NULL: they are a NotImplementedError. Views, empty and copy_ need
     * neither. */
    grd_boxed_kernel *fallback;
} grd_device_type;

/* Adds a type of device; the description is copied. Its first device, or an absent one with the error set: ValueError for a name or a count
 * that cannot be, RuntimeError when the name is taken, when a kernel is for an operator that does not exist or is a composite, and when there
 * are GRD_DEVICE_COUNT - GRD_DEVICE_FIRST_EXTRA types already. */
GRD_API grd_device grd_device_register(const grd_device_type *type);
/* Unregisters the type of the device. No thread may be using the device. False, with RuntimeError: memory of the device is still allocated. */
GRD_API bool grd_device_unregister(grd_device device);
/* Returns the device named "cpu", "meta", "vault" (the first of its type) or "vault:1"; absent, with RuntimeError, if there is none. */
GRD_API grd_device grd_device_find(const char *name);

/* The boxed kernel that runs any operator on the cpu: tensor arguments are copied there, results back. What is written in place or into `out` is
 * written back, element by element where it is strided. Results are those of the cpu, bit for bit, random numbers too. */
GRD_API void grd_cpu_fallback(const grd_op *op, grd_keyset keys, grd_tensor *out, const grd_value *args, grd_value *ret_results,
                              void *context);

GRD_END_DECLS
#endif
