/* Defines the tensor: sizes, strides, offset, dtype, device and layout over a shared storage. The struct has a fixed layout and no virtual calls.
 *
 * Invariants
 * - A tensor always has a storage, even grd_failed_tensor. Many tensors may share one storage.
 * - `data` is storage->data + offset * itemsize, or NULL on the meta device.
 * - `keys` is what the dispatcher reads: the device's key, and AUTOGRAD if the tensor requires a gradient. The AUTOGRAD bit is the only part of a
 *   tensor's header that changes while other threads may use the tensor, so keys are read with grd_keys_read.
 * - If the key CONJUGATE is set, the elements are the conjugates of the values in memory or, for a real dtype, their negatives. Views inherit the
 *   key.
 * - A storage is allocated in one memory block (struct grd_block) with the tensor that it was made for and, if the data is small, with the data.
 *   The block is freed when the reference count of the storage becomes 0. The tensor in the block, and each tensor detached from it, owns a
 *   reference to the storage. A view owns its base and thereby keeps the storage alive. */
#ifndef GRD_CORE_TENSOR_H
#define GRD_CORE_TENSOR_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/object.h"
#include "base/thread.h"
#include "gradus/device.h"
#include "gradus/tensor.h"
#include "gradus/wrapper.h"

/* The largest number of dimensions for which sizes and strides are stored in the tensor itself. */
enum { GRD_INLINE_DIMS = 5 };

enum grd_tensor_flags {
    GRD_FLAG_CONTIGUOUS = 1,    /* the tensor is row-major, without gaps */
    GRD_FLAG_CHANNELS_LAST = 2, /* the strides are those of NHWC (4 dimensions) or NDHWC (5 dimensions) */
    GRD_FLAG_NUMBER = 4,        /* the tensor was made from a number; type promotion treats it as a Python number */
    /* At most one of the next two flags is set. A view inherits these flags from the tensor it is a view of. */
    GRD_FLAG_NO_GRAD_VIEW = 16, /* the tensor is a view made while grad mode was off */
    GRD_FLAG_MULTI_VIEW = 32,   /* the tensor is one of several views returned by one operator (split, unbind, chunk) */
    /* The tensor has at most GRD_INLINE_DIMS dimensions and exactly the strides of a new contiguous tensor, even in dimensions of size 1. */
    GRD_FLAG_CANONICAL = 128,
    GRD_FLAG_MOVED = 256, /* the tensor has another storage than the one in its own memory block (Note [Lent data] in data.c) */
    /* The storage of the tensor was replaced, or the tensor is a view of a tensor whose storage was replaced earlier. Such a view owns both its base
     * and its storage, because the storage of the base can be replaced again (Note [Lent data] in data.c). */
    GRD_FLAG_REPLACED = 512,
    GRD_FLAG_BATCHED = 1024, /* the tensor is a struct grd_batch, i.e. stands for one element of a batch inside vmap */
    /* The tensor shares its data with another tensor but not that tensor's history (detach). Writing to it in place is not recorded as writing to
     * a view. */
    GRD_FLAG_DETACHED = 64,
    /* The flags that follow from sizes and strides alone. */
    GRD_FLAGS_GEOMETRY = GRD_FLAG_CONTIGUOUS | GRD_FLAG_CHANNELS_LAST | GRD_FLAG_CANONICAL
};

/* A storage: the memory that tensors share. */
struct grd_storage {
    struct grd_object object;
    void *data;
    int64_t bytes;
    _Atomic uint32_t version; /* incremented by every operator that writes to the storage; shared by all views */
    uint16_t block_bytes;     /* size of the struct grd_block that contains this storage */
    uint8_t device;           /* device type, an index in the device table */
    int8_t device_index;
    /* Called with `context` to free `data` if `data` is borrowed; NULL if the library itself has allocated `data`. */
    void (*release)(void *context);
    void *context;
    atomic_bool saved; /* true if autograd has saved a tensor that uses this storage */
};

/* A tensor; see the invariants at the top of tensor.h. */
struct grd_tensor {
    struct grd_object object;
    grd_keyset keys;
    uint32_t itemsize;
    union {
        struct {
            uint8_t dtype, layout, device;
            int8_t device_index;
            uint16_t flags;
            uint16_t ndim;
        };
        uint64_t traits; /* all members of the struct above as one number; see grd_traits */
    };
    struct grd_storage *storage;
    char *data;
    int64_t offset; /* position of the first element, in elements from the start of the storage */
    int64_t numel;
    int64_t *sizes, *strides; /* arrays of length ndim; both point into inline_dims or into one allocated array of 2 * ndim numbers */
    /* The tensor that this tensor is a view of, owned. The base is no view itself. NULL if this tensor is no view. */
    struct grd_tensor *base;
    /* The object with the history and the gradient of the tensor, defined in src/autograd; owned. NULL for most tensors. */
    struct grd_object *autograd;
    uint32_t view_version;       /* for a view: version of the storage when the view was made */
    struct grd_binding *binding; /* object that represents the tensor in another language, or NULL (binding.c) */
    int64_t inline_dims[2 * GRD_INLINE_DIMS];
};

/* A struct grd_block is one memory block. It contains a tensor and the storage that was made for the tensor. CPU data of at most GRD_SMALL_BYTES
 * bytes is in the block, too. The array `data` always has at least one byte, so that no other memory has its address. So storage.data == data
 * means that the data is in the block. */
enum { GRD_SMALL_BYTES = 512, GRD_DATA_ALIGNMENT = 64 };

struct grd_block {
    struct grd_tensor tensor;
    struct grd_storage storage;
    _Alignas(GRD_DATA_ALIGNMENT) char data[];
};

/* A batch tensor, which operators inside vmap see as one element of a batch. The elements are along dimension 0 of the tensor `physical`. Sizes
 * and strides are those of one element, the storage is that of `physical`, and `data` is NULL. A batch tensor has no history and no base; those
 * of `physical` are used instead. If `physical` requires a gradient, the batch tensor has the key AUTOGRAD as well as BATCH. */
struct grd_batch {
    struct grd_tensor tensor;
    grd_tensor *physical; /* the tensor that has the elements, with the batch as dimension 0; owned */
    uint64_t level;       /* number of the vmap call (struct grd_level) in which the tensor may be used */
};

extern struct grd_block grd_failed_block;

/* Returns the members from `dtype` to `ndim` of struct grd_tensor as one number, so that they can be set and compared at once. */
static inline uint64_t grd_traits(unsigned dtype, unsigned layout, grd_device device, unsigned flags, int64_t ndim)
{
    _Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the first field is the lowest byte");
    return dtype | layout << 8 | (unsigned)device.type << 16 | (unsigned)(uint8_t)device.index << 24 |
           (uint64_t)(flags | (unsigned)ndim << 16) << 32;
}

/* Masks for the parts of `traits`. */
#define GRD_TRAITS_DTYPE UINT64_C(0xff)
#define GRD_TRAITS_LAYOUT UINT64_C(0xff00)
#define GRD_TRAITS_DEVICE_TYPE UINT64_C(0xff0000)
#define GRD_TRAITS_DEVICE UINT64_C(0xffff0000) /* device type and index */
#define GRD_TRAITS_NDIM (UINT64_C(0xffff) << 48)
/* All bits except the flags. If these bits are equal for two tensors, one kernel can process both without conversion. */
#define GRD_TRAITS_KIND (GRD_TRAITS_DTYPE | GRD_TRAITS_LAYOUT | GRD_TRAITS_DEVICE | GRD_TRAITS_NDIM)

/* Returns the flags shifted to their position in `traits`. */
static inline uint64_t grd_traits_flags(unsigned flags)
{
    return (uint64_t)flags << 32;
}

/* The number of references that a view adds to the count of its base. It is larger than any number of ordinary references, so the reference count
 * shows whether views exist. */
#define GRD_VIEW_WEIGHT ((INT64_C(1) << 32) + 1)

/* True if views of `t` exist. */
static inline bool grd_has_views(const grd_tensor *t)
{
    return atomic_load_explicit(&t->object.refs, memory_order_acquire) >= GRD_VIEW_WEIGHT;
}

/* True if autograd has saved a tensor that uses the storage of `t` for a backward pass. */
static inline bool grd_was_saved(const grd_tensor *t)
{
    return atomic_load_explicit(&t->storage->saved, memory_order_relaxed);
}

/* Records that autograd has saved a tensor that uses the storage of `t`. Writes only if this is not recorded yet, so that threads which save
 * tensors over one storage do not invalidate each other's cache line. */
static inline void grd_mark_saved(const grd_tensor *t)
{
    if (!grd_was_saved(t))
        atomic_store_explicit(&t->storage->saved, true, memory_order_relaxed);
}

/* Raises an error as grd_raise does and returns grd_failed, for functions that return a tensor. */
grd_tensor *grd_fail(grd_error_code code, const char *format, ...) GRD_PRINTF(2, 3);

static inline bool grd_is_failed(const grd_tensor *t)
{
    return GRD_UNLIKELY(t == &grd_failed_block.tensor);
}

/* True if `t` was freed. Only in the debug mode GRADUS_DEBUG=lifetimes does memory of freed tensors stay readable, so that they can be recognized
 * (lifetimes.h). */
static inline bool grd_is_dead(const grd_tensor *t)
{
    /* The keys are read atomically, because another thread may be setting another key. */
    return GRD_UNLIKELY(__atomic_load_n(&t->keys, __ATOMIC_RELAXED) >> GRD_KEY_LIFETIMES != 0);
}

static inline bool grd_is_meta(const grd_tensor *t)
{
    return GRD_UNLIKELY(t->device == GRD_DEVICE_META);
}

static inline bool grd_has(const grd_tensor *t, enum grd_tensor_flags flag)
{
    return (t->flags & flag) != 0;
}

/* True if `t` is a view that owns both its base and its storage. Other views own only the base, which owns the storage. `t` owns its storage if
 * the storage of the base was replaced before `t` was made (Note [Lent data] in data.c). If the storage of the base is replaced again, the base no
 * longer keeps the storage of `t` alive. */
static inline bool grd_owns_storage_as_view(const grd_tensor *t)
{
    return GRD_UNLIKELY(grd_has(t, GRD_FLAG_REPLACED));
}

static inline bool grd_is_batch(const grd_tensor *t)
{
    return GRD_UNLIKELY(grd_has(t, GRD_FLAG_BATCHED));
}

/* Returns the tensor that has the elements and the history of `t`; it is borrowed. If `t` is a batch tensor, which stands for one element of a batch
 * inside vmap, returns the tensor that holds the whole batch. Otherwise returns `t` itself. */
static inline grd_tensor *grd_physical(const grd_tensor *t)
{
    return grd_is_batch(t) ? ((const struct grd_batch *)t)->physical : (grd_tensor *)(uintptr_t)t;
}

/* Raises RuntimeError, because inside vmap the elements of a tensor cannot be read. Always returns false. */
bool grd_raise_batch_data(void);

static inline grd_device grd_device_of(const grd_tensor *t)
{
    return (grd_device){t->device, t->device_index};
}

static inline void grd_bump_version(grd_tensor *t)
{
    atomic_fetch_add_explicit(&t->storage->version, 1, memory_order_relaxed);
}

static inline uint32_t grd_version_of(const grd_tensor *t)
{
    return atomic_load_explicit(&t->storage->version, memory_order_relaxed);
}

static inline grd_keyset grd_keys_read(const grd_tensor *t)
{
    return __atomic_load_n(&t->keys, __ATOMIC_RELAXED);
}

/* True if the elements of `t` are the conjugates or, for a real dtype, the negatives of the values in memory. */
static inline bool grd_is_conjugated(const grd_tensor *t)
{
    return grd_keys_read(t) >> GRD_KEY_CONJUGATE & 1;
}

/* True if `t` itself has the AUTOGRAD key. The keys of the base of `t` do not count. */
static inline bool grd_marked_requires_grad(const grd_tensor *t)
{
    return grd_keys_read(t) >> GRD_KEY_AUTOGRAD & 1;
}

/* Sets the keys of a batch tensor `t`: BATCH, and AUTOGRAD if the tensor that holds the elements of the whole batch requires a gradient. */
void grd_mark_batch(grd_tensor *t);
/* Sets or removes the AUTOGRAD key of `t`. The caller has checked that tensors of this dtype can have gradients. */
void grd_mark_requires_grad(grd_tensor *t, bool requires_grad);

#endif
