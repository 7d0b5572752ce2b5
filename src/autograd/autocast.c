/* Autocast casts the floating-point arguments of operators to another precision. It is enabled in a thread while the thread's dispatch keys
 * include AUTOCAST.
 *
 * This file has the kernel of the AUTOCAST key and a cache of leaf tensors that were cast. The schema of an operator says to which dtype its
 * arguments are cast.
 * Invariants
 * - Casts run with AUTOCAST excluded, so they reach the AUTOGRAD kernel and are recorded like any other operator.
 * - The cache owns a reference to each leaf and to its cast. An entry is not used once the version of its leaf has changed. */
#include "autograd/autocast.h"
#include "autograd/node.h"
#include "autograd/variable.h"
#include "base/memory.h"
#include "core/dtype.h"
#include "core/tensor.h"
#include "dispatch/op.h"
#include "gen/uses/autograd/autocast.h"

enum { AUTOCAST_BIT = 1 << GRD_KEY_AUTOCAST };

/* An entry of the cache: a leaf and the tensor that it was cast to. */
struct entry {
    grd_tensor *leaf, *cast; /* owned; both NULL if the entry is free */
    uint32_t version;        /* the version that `leaf` had when it was cast; the entry is not used once the version has changed */
};

/* The cache of this thread: a hash table with open addressing, whose keys are the leaves. At most half of its entries are used. */
static _Thread_local struct {
    struct entry *entries;
    int64_t capacity, n; /* capacity: number of entries, a power of 2 or 0; n: number of used entries */
} cache;
/* The dtype to which autocast casts the arguments of operators with the rule GRD_AUTOCAST_LOWER. */
static _Thread_local grd_dtype lower_dtype = GRD_BFLOAT16;
static _Thread_local bool cache_off;

/* True if the dtype is a floating-point dtype that is not complex. */
static bool is_floating(grd_dtype dtype)
{
    return grd_dtype_is_inexact(dtype) && !grd_dtype_is_complex(dtype);
}

/* ---- Settings --------------------------------------------------------------------------------------------------------------------- */

bool grd_autocast_enabled(void)
{
    return (grd_thread.include & AUTOCAST_BIT) != 0;
}

bool grd_set_autocast_enabled(bool enabled)
{
    const bool previous = grd_autocast_enabled();
    grd_thread.include = enabled ? grd_thread.include | AUTOCAST_BIT : grd_thread.include & ~(uint32_t)AUTOCAST_BIT;
    return previous;
}

grd_dtype grd_autocast_dtype(void)
{
    return lower_dtype;
}

void grd_set_autocast_dtype(grd_dtype dtype)
{
    if (!grd_is_dtype(dtype) || !is_floating(dtype))
        grd_raise(GRD_ERROR_TYPE, "grd_set_autocast_dtype: argument 'dtype' must be a floating point dtype");
    else
        lower_dtype = dtype;
}

bool grd_autocast_cache_enabled(void)
{
    return !cache_off;
}

void grd_set_autocast_cache_enabled(bool enabled)
{
    cache_off = !enabled;
}

/* ---- The cache -------------------------------------------------------------------------------------------------------------------- */

void grd_clear_autocast_cache(void)
{
    struct entry *entries = cache.entries;
    const int64_t capacity = cache.capacity;
    cache.entries = NULL;
    cache.capacity = cache.n = 0;
    for (int64_t i = 0; i < capacity; i++) {
        grd_drop(entries[i].leaf);
        grd_drop(entries[i].cast);
    }
    grd_free(entries, (size_t)capacity * sizeof *entries);
}

/* Returns the cache entry of `leaf`. If there is none, returns the free entry in which to store it. `capacity` is the length of `entries`. */
static struct entry *find_entry(struct entry *entries, int64_t capacity, const grd_tensor *leaf)
{
    uint64_t place = ((uintptr_t)leaf >> 4) * 0x9e3779b97f4a7c15u >> 20;
    for (;; place++) {
        struct entry *entry = &entries[place & (uint64_t)(capacity - 1)];
        if (entry->leaf == leaf || entry->leaf == NULL)
            return entry;
    }
}

/* Makes room for one more entry in the cache. False if memory is short; the caller then caches nothing, and no error is raised. */
static bool make_room(void)
{
    if (2 * (cache.n + 1) <= cache.capacity)
        return true;
    const int64_t capacity = cache.capacity > 0 ? 2 * cache.capacity : 64;
    struct entry *entries = grd_alloc_zeroed((size_t)capacity * sizeof *entries);
    if (entries == NULL) {
        grd_error_clear();
        return false;
    }
    for (int64_t i = 0; i < cache.capacity; i++)
        if (cache.entries[i].leaf != NULL)
            *find_entry(entries, capacity, cache.entries[i].leaf) = cache.entries[i];
    grd_free(cache.entries, (size_t)cache.capacity * sizeof *entries);
    cache.entries = entries;
    cache.capacity = capacity;
    return true;
}

/* Stores `cast`, the cast of `leaf`, in the cache. Does nothing if memory is short or the cast failed. */
static void keep_cast(grd_tensor *leaf, grd_tensor *cast)
{
    if (grd_pending() || !make_room())
        return;
    struct entry *entry = find_entry(cache.entries, cache.capacity, leaf);
    grd_tensor *old = entry->cast;
    if (entry->leaf == NULL) {
        entry->leaf = grd_keep(leaf);
        cache.n++;
    }
    entry->cast = grd_keep(cast);
    entry->version = grd_version_of(leaf);
    grd_drop(old);
}

/* ---- Casts ------------------------------------------------------------------------------------------------------------------------ */

static bool is_floating_on_cpu(const grd_tensor *t)
{
    return is_floating((grd_dtype)t->dtype) && grd_tensor_device(t).type == GRD_DEVICE_CPU;
}

/* Returns `t` cast to `dtype`. Returns `t` itself if it has this dtype already, is float64, is no floating-point tensor or is not on the CPU. The
 * casts of float32 leaves that require a gradient are cached, so that a weight that is used several times is cast once. */
static grd_tensor *cast(grd_tensor *t, grd_dtype dtype)
{
    if (t == NULL || t->dtype == dtype || t->dtype == GRD_FLOAT64 || !is_floating_on_cpu(t))
        return t;
    if (cache_off || dtype != lower_dtype || t->dtype != GRD_FLOAT32 || !grd_needs_grad(t) || !grd_is_leaf(t))
        return grd_to(t, .dtype = dtype);
    struct entry *entry = cache.capacity > 0 ? find_entry(cache.entries, cache.capacity, t) : NULL;
    if (entry != NULL && entry->leaf == t && entry->version == grd_version_of(t) && entry->cast->dtype == dtype)
        return entry->cast;
    grd_tensor *made = grd_to(t, .dtype = dtype);
    keep_cast(t, made);
    return made;
}

static grd_tensors cast_list(grd_tensors list, grd_dtype dtype)
{
    grd_tensor **made = grd_pool_alloc((size_t)list.n * sizeof *made);
    for (int64_t i = 0; made != NULL && i < list.n; i++)
        made[i] = cast(list.data[i], dtype);
    return grd_tensors_from(made, made != NULL ? list.n : 0);
}

/* True if `t` is a float32 tensor on the CPU. */
static bool is_float32(const grd_tensor *t)
{
    return t != NULL && t->dtype == GRD_FLOAT32 && is_floating_on_cpu(t);
}

/* Returns float32 if any argument is a float32 tensor on the CPU, otherwise the dtype to which autocast casts (lower_dtype). */
static grd_dtype widest(const struct grd_op *op, const grd_value *args)
{
    for (int i = 0; i < op->nargs; i++) {
        if (args[i].kind == GRD_KIND_TENSOR && is_float32(args[i].v.tensor))
            return GRD_FLOAT32;
        for (int64_t k = 0; args[i].kind == GRD_KIND_TENSORS && k < args[i].v.tensors.n; k++)
            if (is_float32(args[i].v.tensors.data[k]))
                return GRD_FLOAT32;
    }
    return lower_dtype;
}

/* ---- The kernel -------------------------------------------------------------------------------------------------------------------- */

/* Casts the arguments to the dtype that the operator's autocast rule gives, and runs the operator for all keys except AUTOCAST. */
static void run_cast(const grd_op *op, grd_tensor *out, const grd_value *args, grd_value *ret_results)
{
    const grd_dtype dtype = op->autocast == GRD_AUTOCAST_LOWER     ? lower_dtype
                            : op->autocast == GRD_AUTOCAST_PROMOTE ? widest(op, args)
                                                                   : GRD_FLOAT32;
    grd_value changed[GRD_MAX_ARGS];
    for (int i = 0; i < op->nargs; i++) {
        changed[i] = args[i];
        if (args[i].kind == GRD_KIND_TENSOR)
            changed[i].v.tensor = cast(args[i].v.tensor, dtype);
        else if (args[i].kind == GRD_KIND_TENSORS)
            changed[i].v.tensors = cast_list(args[i].v.tensors, dtype);
    }
    if (!grd_pending())
        grd_dispatch_boxed(op, grd_active_keys(grd_keys_of_values(op, out, changed)), out, changed, ret_results);
}

/* The kernel of the AUTOCAST key: runs the operator. Casts the arguments first if the operator has an autocast rule and the call is neither in place
 * nor has out=. */
static void call_autocast(const grd_op *op, grd_keyset keys, grd_tensor *out, const grd_value *args, grd_value *ret_results, void *context)
{
    const uint32_t exclude = grd_thread.exclude;
    (void)context;
    grd_thread.exclude |= AUTOCAST_BIT;
    if (op->autocast != GRD_AUTOCAST_NONE && out == NULL)
        run_cast(op, out, args, ret_results);
    else
        grd_dispatch_boxed(op, keys & ~(grd_keyset)AUTOCAST_BIT, out, args, ret_results);
    grd_thread.exclude = exclude;
}

void grd_autocast_init(void)
{
    grd_register_fallback(GRD_KEY_AUTOCAST, call_autocast, NULL);
}
