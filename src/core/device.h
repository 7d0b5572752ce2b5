/* The device table: allocation, copies and kernels of each type of device. */
#ifndef GRD_CORE_DEVICE_H
#define GRD_CORE_DEVICE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "gradus/device.h"
#include "gradus/tensor.h"

struct grd_device_slot {
    const grd_op *op; /* NULL: free */
    grd_boxed_kernel *kernel;
};

struct grd_device_entry {
    grd_device_type type; /* for cpu and meta only the name is set */
    grd_key key;
    bool has_data;          /* false: meta */
    _Atomic int64_t blocks; /* allocations that have not been released */
    uint64_t mask;
    struct grd_device_slot *slots; /* kernels by operator, open addressing */
    char name[32];
};
/* Run once, by the library's constructor, after the allocator is there. */
void grd_device_init(void);
struct grd_device_entry *grd_device_at(uint8_t type); /* NULL when unknown */
/* Absent becomes cpu; the index -1 of cpu and meta, and one that exists of others; false, with RuntimeError, when unknown. */
bool grd_device_resolve(grd_device device, grd_device *ret_device);
/* Adds a checked description whose kernels[i] is for ops[i]. False, with the error raised, when the name is taken or there is no place. */
bool grd_device_add(const grd_device_type *type, const grd_op *const *ops, uint8_t *ret_type);
/* Returns the kernel that a device has for an operator, or NULL. */
grd_boxed_kernel *grd_device_kernel_of(const struct grd_device_entry *entry, const grd_op *op);

/* "cpu", "vault:0": for the arguments of one call. */
struct grd_device_text {
    char chars[40];
};
struct grd_device_text grd_device_text(grd_device device);
/* "Expected all tensors to be on the same device, but found at least two devices, vault:0 and cpu!" Always false. */
bool grd_raise_devices(grd_device a, grd_device b);

/* Returns memory of a device that has data, owned by the caller; NULL, with MemoryError, on failure. */
void *grd_device_allocate(grd_device device, int64_t bytes);
void grd_device_release(grd_device device, void *data, int64_t bytes);
/* Copies bytes that do not overlap within one type of device, or between it and the cpu: others are brought to the cpu by the caller.
 * False, with the error raised, when the device failed. */
bool grd_device_copy(void *to, grd_device to_device, const void *from, grd_device from_device, int64_t bytes);

static inline bool grd_is_extra(grd_device device)
{
    return device.type >= GRD_DEVICE_FIRST_EXTRA;
}

#endif
