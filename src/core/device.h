/* Declares the device table: how to find a device type, allocate and copy its memory, and find its kernels. */
#ifndef GRD_CORE_DEVICE_H
#define GRD_CORE_DEVICE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "gradus/device.h"
#include "gradus/tensor.h"

struct grd_device_slot {
    const grd_op *op; /* NULL if this slot of the hash table is free */
    grd_boxed_kernel *kernel;
};

struct grd_device_entry {
    grd_device_type type; /* name, functions and kernels of the device type; for cpu and meta only the name is set */
    grd_key key;
    bool has_data;          /* true if tensors of the device have memory; false only for meta */
    _Atomic int64_t blocks; /* number of allocations that have not been released */
    /* Number of slots in the hash table minus 1. The number of slots is a power of 2. */
    uint64_t mask;
    struct grd_device_slot *slots; /* hash table from operators to kernels, open addressing */
    char name[32];
};
/* Registers the lock of the device table with base/fork.h, so that a fork waits until no thread changes the table. Called once, by the library's
 * constructor, after the allocator has been initialized. */
void grd_device_init(void);
struct grd_device_entry *grd_device_at(uint8_t type); /* returns NULL if no device type has this number */
/* Writes to *ret_device the device that an optional `device` argument denotes. GRD_DEVICE_NONE becomes cpu. The index becomes -1 for cpu and meta;
 * for other devices an index of -1 becomes 0. Returns false, with RuntimeError, if the device does not exist. */
bool grd_device_resolve(grd_device device, grd_device *ret_device);
/* Adds a device type, whose description the caller has checked, to the table and writes its number to *ret_type. type->kernels[i] is the kernel for
 * ops[i]. Returns false, with the error raised, if the name is taken, the table is full or there is no memory. */
bool grd_device_add(const grd_device_type *type, const grd_op *const *ops, uint8_t *ret_type);
/* Returns the device's kernel for `op`, or NULL if the device has none. */
grd_boxed_kernel *grd_device_kernel_of(const struct grd_device_entry *entry, const grd_op *op);

/* The name and index of a device as text, e.g. "cpu" or "vault:0", stored in the struct itself. */
struct grd_device_text {
    char chars[40];
};
struct grd_device_text grd_device_text(grd_device device);
/* Raises RuntimeError "Expected all tensors to be on the same device, but found at least two devices, vault:0 and cpu!" Always returns false. */
bool grd_raise_devices(grd_device a, grd_device b);

/* Allocates memory of a device other than meta; the caller owns it. Returns NULL, with MemoryError, on failure. */
void *grd_device_allocate(grd_device device, int64_t bytes);
/* Frees memory that grd_device_allocate returned. `bytes` is the size that was allocated. */
void grd_device_release(grd_device device, void *data, int64_t bytes);
/* Copies `bytes` bytes within one type of device, or between a device and the CPU. The source and the destination must not overlap. To copy
 * between two device types other than the CPU, the caller goes through CPU memory. Returns false, with the error raised, if the device's
 * copy function failed. */
bool grd_device_copy(void *to, grd_device to_device, const void *from, grd_device from_device, int64_t bytes);

/* True for a device type that was registered at run time, i.e. neither cpu nor meta. */
static inline bool grd_is_extra(grd_device device)
{
    return device.type >= GRD_DEVICE_FIRST_EXTRA;
}

#endif
