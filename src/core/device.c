/* Keeps the table of device types, which holds cpu, meta and the devices that are registered at run time, and allocates and copies memory on any
 * of them.
 *
 * The table also stores the kernels of devices; dispatch/device.c calls these kernels. Invariant: reading the table takes no lock. An entry stays
 * until the device is unregistered. A device cannot be unregistered while memory of it is allocated. */
#include "core/device.h"

#include <ctype.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fork.h"
#include "base/memory.h"
#include "base/transaction.h"
#include "core/tensor.h"

static struct grd_device_entry cpu = {.type.name = "cpu", .key = GRD_KEY_CPU, .has_data = true};
static struct grd_device_entry meta = {.type.name = "meta", .key = GRD_KEY_META};

static struct grd_device_entry *_Atomic table[GRD_DEVICE_COUNT] = {[GRD_DEVICE_CPU] = &cpu, [GRD_DEVICE_META] = &meta};
static pthread_mutex_t registration = PTHREAD_MUTEX_INITIALIZER;

struct grd_device_entry *grd_device_at(uint8_t type)
{
    return atomic_load_explicit(&table[type], memory_order_acquire);
}

/* ---- Names ----------------------------------------------------------------------------------------------------------- */

const char *grd_device_name(grd_device device)
{
    const struct grd_device_entry *entry = grd_device_at(device.type);
    return entry != NULL ? entry->type.name : "none";
}

struct grd_device_text grd_device_text(grd_device device)
{
    struct grd_device_text text;
    snprintf(text.chars, sizeof text.chars, device.index >= 0 ? "%s:%d" : "%s", grd_device_name(device), device.index);
    return text;
}

bool grd_raise_devices(grd_device a, grd_device b)
{
    return grd_raise(GRD_ERROR_RUNTIME, "Expected all tensors to be on the same device, but found at least two devices, %s and %s!",
                     grd_device_text(a).chars, grd_device_text(b).chars);
}

bool grd_device_resolve(grd_device device, grd_device *ret_device)
{
    if (device.type == GRD_DEVICE_NONE)
        device = GRD_CPU;
    const struct grd_device_entry *entry = grd_device_at(device.type);
    if (entry == NULL)
        return grd_raise(GRD_ERROR_RUNTIME, "unknown device type %d", device.type);
    if (!grd_is_extra(device))
        device.index = -1; /* cpu and meta have no index */
    else if (device.index < 0)
        device.index = 0;
    else if (device.index >= entry->type.count)
        return grd_raise(GRD_ERROR_RUNTIME, "there is no device '%s:%d': '%s' has %d", entry->type.name, device.index, entry->type.name,
                         entry->type.count);
    *ret_device = device;
    return true;
}

/* Returns the device type whose name is the first `length` characters of `name`, or GRD_DEVICE_NONE. */
static uint8_t find_type(const char *name, size_t length)
{
    for (int i = GRD_DEVICE_CPU; i < GRD_DEVICE_COUNT; i++) {
        const struct grd_device_entry *entry = grd_device_at((uint8_t)i);
        if (entry != NULL && strncmp(entry->type.name, name, length) == 0 && entry->type.name[length] == '\0')
            return (uint8_t)i;
    }
    return GRD_DEVICE_NONE;
}

/* Writes the device index that the string `digits` spells. Returns false if `digits` is not a decimal number or the number exceeds INT8_MAX. */
static bool read_index(const char *digits, int8_t *ret_index)
{
    char *end;
    const long index = strtol(digits, &end, 10);
    *ret_index = (int8_t)index;
    return isdigit((unsigned char)digits[0]) && *end == '\0' && index <= INT8_MAX;
}

grd_device grd_device_find(const char *name)
{
    const grd_device absent = {GRD_DEVICE_NONE, 0};
    grd_device device = {GRD_DEVICE_NONE, -1};
    if (grd_pending())
        return absent;
    if (name == NULL) {
        grd_raise(GRD_ERROR_TYPE, "grd_device_find: argument 'name' must be a string, not NULL");
        return absent;
    }
    const size_t length = strcspn(name, ":");
    device.type = find_type(name, length);
    if (device.type == GRD_DEVICE_NONE) {
        grd_raise(GRD_ERROR_RUNTIME, "there is no device type '%.*s'", (int)length, name);
        return absent;
    }
    if (name[length] == ':' && !read_index(name + length + 1, &device.index)) {
        grd_raise(GRD_ERROR_RUNTIME, "Invalid device string: '%s'", name);
        return absent;
    }
    return grd_device_resolve(device, &device) ? device : absent;
}

/* ---- Registration ------------------------------------------------------------------------------------------------------ */

/* Returns the index of the hash-table slot that holds the kernel for `op`, or of the free slot where that kernel would be stored. */
static uint64_t slot_for(const struct grd_device_entry *entry, const grd_op *op)
{
    uint64_t at = (uint64_t)(uintptr_t)op * 0x9e3779b97f4a7c15u >> 32 & entry->mask;
    while (entry->slots[at].op != NULL && entry->slots[at].op != op)
        at = (at + 1) & entry->mask;
    return at;
}

grd_boxed_kernel *grd_device_kernel_of(const struct grd_device_entry *entry, const grd_op *op)
{
    return entry->slots[slot_for(entry, op)].kernel;
}

static size_t slot_bytes(const struct grd_device_entry *entry)
{
    return (entry->mask + 1) * sizeof *entry->slots;
}

static void free_entry(struct grd_device_entry *entry)
{
    grd_free(entry->slots, slot_bytes(entry));
    grd_free(entry, sizeof *entry);
}

/* Returns a new table entry for the device type `type`, with a hash table in which type->kernels[i] is the kernel for ops[i]. Returns NULL, with
 * the error raised, if there is no memory. */
static struct grd_device_entry *new_entry(const grd_device_type *type, const grd_op *const *ops)
{
    struct grd_device_entry *entry = grd_alloc_zeroed(sizeof *entry);
    if (entry == NULL)
        return NULL;
    entry->type = *type;
    snprintf(entry->name, sizeof entry->name, "%s", type->name);
    entry->type.name = entry->name;
    entry->key = GRD_KEY_DEVICE;
    entry->has_data = true;
    while (entry->mask < 2 * (uint64_t)type->nkernels)
        entry->mask = 2 * entry->mask + 1;
    entry->slots = grd_alloc_zeroed(slot_bytes(entry));
    if (entry->slots == NULL) {
        grd_free(entry, sizeof *entry);
        return NULL;
    }
    for (int i = 0; i < type->nkernels; i++)
        entry->slots[slot_for(entry, ops[i])] = (struct grd_device_slot){ops[i], type->kernels[i].kernel};
    return entry;
}

/* Returns the first free index of the device table for a device type called `name`. Returns GRD_DEVICE_NONE, with RuntimeError, if the name is
 * taken or the table is full. */
static uint8_t find_place(const char *name)
{
    if (find_type(name, strlen(name)) != GRD_DEVICE_NONE) {
        grd_raise(GRD_ERROR_RUNTIME, "a device named '%s' is registered already", name);
        return GRD_DEVICE_NONE;
    }
    for (int i = GRD_DEVICE_FIRST_EXTRA; i < GRD_DEVICE_COUNT; i++)
        if (grd_device_at((uint8_t)i) == NULL)
            return (uint8_t)i;
    grd_raise(GRD_ERROR_RUNTIME, "cannot register device '%s': the limit of %d device types is reached", name,
              GRD_DEVICE_COUNT - GRD_DEVICE_FIRST_EXTRA);
    return GRD_DEVICE_NONE;
}

/* The allocator of a device whose plug-in failed to load. It always fails. */
static void *allocate_nothing(grd_device device, int64_t bytes)
{
    (void)device, (void)bytes;
    return NULL;
}

/* The release function of a device whose plug-in failed to load. The memory is lost, because the plug-in's code is no longer loaded. */
static void forget(grd_device device, void *data, int64_t bytes)
{
    (void)device, (void)data, (void)bytes;
}

/* The copy function of a device whose plug-in failed to load. It always raises RuntimeError. */
static void refuse_copy(void *to, grd_device to_device, const void *from, grd_device from_device, int64_t bytes)
{
    (void)to, (void)to_device, (void)from, (void)from_device, (void)bytes;
    grd_raise(GRD_ERROR_RUNTIME, "the plug-in of this tensor's device failed to load");
}

/* Removes the device `of` from the table when the loading of its plug-in is rolled back. `place` is its index in the table. If tensors on the
 * device are still alive, the entry stays, with functions that do not call the plug-in. */
static void take_device(void *of, int place)
{
    struct grd_device_entry *entry = of;
    pthread_mutex_lock(&registration);
    const bool empty = atomic_load(&entry->blocks) == 0;
    if (empty) {
        atomic_store_explicit(&table[place], NULL, memory_order_release);
    } else {
        memset(entry->slots, 0, slot_bytes(entry));
        entry->type = (grd_device_type){
            .name = "failed to load", .count = entry->type.count, .allocate = allocate_nothing, .release = forget, .copy = refuse_copy};
    }
    pthread_mutex_unlock(&registration);
    if (empty)
        free_entry(entry);
}

static const struct grd_step_type device_step = {.roll_back = take_device};

bool grd_device_add(const grd_device_type *type, const grd_op *const *ops, uint8_t *ret_type)
{
    struct grd_device_entry *entry = new_entry(type, ops);
    if (entry == NULL)
        return false;
    pthread_mutex_lock(&registration);
    const uint8_t place = find_place(type->name);
    const bool added = place != GRD_DEVICE_NONE && grd_transaction_add(&device_step, entry, place);
    if (added)
        atomic_store_explicit(&table[place], entry, memory_order_release);
    pthread_mutex_unlock(&registration);
    if (added)
        *ret_type = place;
    else
        free_entry(entry);
    return added;
}

/* Removes the entry of a device type from the table and returns it. Returns NULL, with RuntimeError, if there is no such device type or some of
 * its memory is still allocated. */
static struct grd_device_entry *take_out(uint8_t type)
{
    struct grd_device_entry *entry = grd_device_at(type);
    if (type < GRD_DEVICE_FIRST_EXTRA || entry == NULL) {
        grd_raise(GRD_ERROR_RUNTIME, "there is no device type %d to unregister", type);
        return NULL;
    }
    const int64_t blocks = atomic_load(&entry->blocks);
    if (blocks > 0) {
        grd_raise(GRD_ERROR_RUNTIME, "device '%s' cannot be unregistered: %lld blocks of its memory are in use", entry->type.name,
                  (long long)blocks);
        return NULL;
    }
    atomic_store_explicit(&table[type], NULL, memory_order_release);
    return entry;
}

bool grd_device_unregister(grd_device device)
{
    pthread_mutex_lock(&registration);
    struct grd_device_entry *entry = take_out(device.type);
    pthread_mutex_unlock(&registration);
    if (entry == NULL)
        return false;
    free_entry(entry);
    return true;
}

void grd_device_init(void)
{
    static struct grd_held_lock held = {.lock = &registration};
    grd_hold_around_fork(&held);
}

/* ---- Memory ------------------------------------------------------------------------------------------------------------- */

void *grd_device_allocate(grd_device device, int64_t bytes)
{
    if (!grd_is_extra(device))
        return grd_alloc((size_t)bytes);
    struct grd_device_entry *entry = grd_device_at(device.type);
    void *data = entry->type.allocate(device, bytes > 0 ? bytes : 1);
    if (data == NULL) {
        grd_raise(GRD_ERROR_MEMORY, "%s: out of memory: %lld bytes were asked for", grd_device_text(device).chars, (long long)bytes);
        return NULL;
    }
    atomic_fetch_add_explicit(&entry->blocks, 1, memory_order_relaxed);
    return data;
}

void grd_device_release(grd_device device, void *data, int64_t bytes)
{
    if (!grd_is_extra(device)) {
        grd_free(data, (size_t)bytes);
        return;
    }
    struct grd_device_entry *entry = grd_device_at(device.type);
    entry->type.release(device, data, bytes > 0 ? bytes : 1);
    atomic_fetch_sub_explicit(&entry->blocks, 1, memory_order_release);
}

bool grd_device_copy(void *to, grd_device to_device, const void *from, grd_device from_device, int64_t bytes)
{
    const bool to_extra = grd_is_extra(to_device), from_extra = grd_is_extra(from_device);
    if (bytes == 0)
        return true;
    if (to_extra || from_extra)
        grd_device_at(to_extra ? to_device.type : from_device.type)->type.copy(to, to_device, from, from_device, bytes);
    else
        memcpy(to, from, (size_t)bytes);
    return !grd_pending();
}
