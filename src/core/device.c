/* The device table: cpu, meta, and what plug-ins register at run time.
 *
 * Invariant: an entry, once there, stays, unless the plug-in that brought it fails to load; reading the table takes no lock. */
#include <pthread.h>
#include <string.h>

#include "base/memory.h"
#include "base/transaction.h"
#include "core/tensor.h"

static void *cpu_allocate(int64_t bytes)
{
    return grd_alloc((size_t)bytes);
}

static void cpu_release(void *data, int64_t bytes)
{
    grd_free(data, (size_t)bytes);
}

static void cpu_copy(void *to, const void *from, int64_t bytes, uint8_t to_device, uint8_t from_device)
{
    (void)to_device;
    (void)from_device;
    if (bytes > 0)
        memcpy(to, from, (size_t)bytes);
}

static const struct grd_device_type cpu = {
    .name = "cpu",
    .allocate = cpu_allocate,
    .release = cpu_release,
    .copy = cpu_copy,
    .key = GRD_KEY_CPU,
    .has_data = true,
};
static const struct grd_device_type meta = {.name = "meta", .key = GRD_KEY_META};

static const struct grd_device_type *_Atomic table[GRD_DEVICE_COUNT] = {[GRD_DEVICE_CPU] = &cpu, [GRD_DEVICE_META] = &meta};
static pthread_mutex_t registration = PTHREAD_MUTEX_INITIALIZER;

const struct grd_device_type *grd_device_type_at(uint8_t type)
{
    return type < GRD_DEVICE_COUNT ? atomic_load_explicit(&table[type], memory_order_acquire) : NULL;
}

const char *grd_device_name(grd_device device)
{
    const struct grd_device_type *type = grd_device_type_at(device.type);
    return type != NULL ? type->name : "none";
}

bool grd_device_resolve(grd_device device, grd_device *ret_device)
{
    if (device.type == GRD_DEVICE_NONE)
        device = GRD_CPU;
    if (grd_device_type_at(device.type) == NULL)
        return grd_raise(GRD_ERROR_RUNTIME, "unknown device type %d", device.type);
    *ret_device = device;
    return true;
}

/* The first free entry, or -1 with the error raised. */
static int find_place(const char *name)
{
    for (int i = GRD_DEVICE_CPU; i < GRD_DEVICE_COUNT; i++) {
        const struct grd_device_type *entry = grd_device_type_at((uint8_t)i);
        if (entry == NULL)
            return i;
        if (strcmp(entry->name, name) == 0) {
            grd_raise(GRD_ERROR_RUNTIME, "a device named '%s' is registered already", name);
            return -1;
        }
    }
    grd_raise(GRD_ERROR_RUNTIME, "no place for device '%s': the table has %d entries", name, GRD_DEVICE_COUNT);
    return -1;
}

static void take_device(void *type, int place)
{
    (void)type;
    atomic_store_explicit(&table[place], NULL, memory_order_release);
}

static const struct grd_step_type device_step = {.roll_back = take_device};

bool grd_device_register(const struct grd_device_type *type, uint8_t *ret_type)
{
    pthread_mutex_lock(&registration);
    int place = find_place(type->name);
    const bool ok = place >= 0 && grd_transaction_add(&device_step, NULL, place);
    if (ok) {
        *ret_type = (uint8_t)place;
        atomic_store_explicit(&table[place], type, memory_order_release);
    }
    pthread_mutex_unlock(&registration);
    return ok;
}
