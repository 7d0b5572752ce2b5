/* The tensor: sizes, strides, offset, dtype, device and layout over a shared storage. Fixed layout, no virtual calls.
 *
 * Invariants
 * - A tensor always has a storage (grd_failed_tensor included); many tensors may share one.
 * - `data` is storage->data + offset * itemsize, or NULL on the meta device.
 * - `keys` is what the dispatcher reads: the device's key, plus AUTOGRAD while the tensor requires a gradient. That bit is the only thing in a
 *   header that changes while other threads may use the tensor, so keys are read with grd_keys_read.
 * - With the key CONJUGATE the elements are the conjugates of those in memory or, where the dtype is real, their negatives. Views inherit it.
 * - A storage lies in one block of memory with the tensor it was made for, and small data lies there too. The block lives until
 *   the storage's count is zero: that tensor owns it, and so do tensors detached from it. A view owns its base, and the storage through it. */
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

enum { GRD_INLINE_DIMS = 5 };

enum grd_tensor_flags {
    GRD_FLAG_CONTIGUOUS = 1,    /* row-major, no gaps */
    GRD_FLAG_CHANNELS_LAST = 2, /* 4-d NHWC or 5-d NDHWC strides */
    GRD_FLAG_NUMBER = 4,        /* made of a number: counts as a Python number in type promotion */
    /* At most one of these two, which views of the view inherit. */
    GRD_FLAG_NO_GRAD_VIEW = 16, /* a view made while grad mode was off */
    GRD_FLAG_MULTI_VIEW = 32,   /* one of several views returned by one operator (split, unbind, chunk) */
    GRD_FLAG_CANONICAL = 128,   /* at most GRD_INLINE_DIMS dimensions, every stride as in a new tensor, also where the size is 1 */
    GRD_FLAG_MOVED = 256,       /* no longer uses the storage of the block it lies in (data.c) */
    GRD_FLAG_REPLACED = 512,    /* its storage was replaced, or it is a view of such a tensor: its views own their storage (data.c) */
    GRD_FLAG_BATCHED = 1024,    /* a struct grd_batch */
    GRD_FLAG_DETACHED = 64,     /* shares data but no history: a write in place is not recorded as a write to a view */
    /* The flags that follow from sizes and strides. */
    GRD_FLAGS_GEOMETRY = GRD_FLAG_CONTIGUOUS | GRD_FLAG_CHANNELS_LAST | GRD_FLAG_CANONICAL
};

struct grd_storage {
    struct grd_object object;
    void *data;
    int64_t bytes;
    _Atomic uint32_t version; /* bumped by every operator that writes; shared by all views */
    uint16_t block_bytes;     /* size of the struct grd_block this storage lies in */
    uint8_t device;           /* type, in the device table */
    int8_t device_index;
    void (*release)(void *context); /* NULL unless `data` is borrowed; then this function gives it back */
    void *context;
    atomic_bool saved; /* a node of a graph has saved a tensor that uses this storage */
};

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
        uint64_t traits; /* all fields of the struct above as one word: see grd_traits */
    };
    struct grd_storage *storage;
    char *data;
    int64_t offset; /* in elements */
    int64_t numel;
    int64_t *sizes, *strides;    /* inline_dims, or one block of 2 * ndim */
    struct grd_tensor *base;     /* owned; the tensor, itself no view, that this one is a view of; NULL if it is no view */
    struct grd_object *autograd; /* owned by the autograd floor; NULL for most tensors */
    uint32_t view_version;       /* for a view: the version of its storage when the view was made */
    struct grd_binding *binding; /* the object that stands for it in another language, or NULL (binding.c) */
    int64_t inline_dims[2 * GRD_INLINE_DIMS];
};

/* One allocation: the tensor that was made, its storage and, on the cpu up to GRD_SMALL_BYTES, its data. There is at least one byte of `data`,
 * used or not: so it is the address of nothing else, and says whether a storage's data lies here. */
enum { GRD_SMALL_BYTES = 512, GRD_DATA_ALIGNMENT = 64 };

struct grd_block {
    struct grd_tensor tensor;
    struct grd_storage storage;
    _Alignas(GRD_DATA_ALIGNMENT) char data[];
};

/* A batch tensor: every operator sees one element of a batch, whose elements lie along dimension 0 of `physical`. Sizes and strides are those of one
 * element, the storage is that of `physical`, and `data` is NULL. It has neither history nor base: those of `physical` count, and whether that
 * requires a gradient is noted in its keys, below BATCH. */
struct grd_batch {
    struct grd_tensor tensor;
    grd_tensor *physical; /* owned */
    uint64_t level;       /* struct grd_level: it can be used while that lasts */
};

extern struct grd_block grd_failed_block;

/* The word that lies over the fields from `dtype` to `ndim`, to be written and compared at once. */
static inline uint64_t grd_traits(unsigned dtype, unsigned layout, grd_device device, unsigned flags, int64_t ndim)
{
    _Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the first field is the lowest byte");
    return dtype | layout << 8 | (unsigned)device.type << 16 | (unsigned)(uint8_t)device.index << 24 |
           (uint64_t)(flags | (unsigned)ndim << 16) << 32;
}

/* Parts of the traits, as masks. */
#define GRD_TRAITS_DTYPE UINT64_C(0xff)
#define GRD_TRAITS_LAYOUT UINT64_C(0xff00)
#define GRD_TRAITS_DEVICE_TYPE UINT64_C(0xff0000)
#define GRD_TRAITS_DEVICE UINT64_C(0xffff0000) /* with its index */
#define GRD_TRAITS_NDIM (UINT64_C(0xffff) << 48)
/* All bits but the flags. Tensors that agree in them need no conversion for one kernel. */
#define GRD_TRAITS_KIND (GRD_TRAITS_DTYPE | GRD_TRAITS_LAYOUT | GRD_TRAITS_DEVICE | GRD_TRAITS_NDIM)

/* Returns the flags shifted to their place in the traits. */
static inline uint64_t grd_traits_flags(unsigned flags)
{
    return (uint64_t)flags << 32;
}

/* The number of references that a view adds to its base, so that the count tells whether there are views. */
#define GRD_VIEW_WEIGHT ((INT64_C(1) << 32) + 1)

static inline bool grd_has_views(const grd_tensor *t)
{
    return atomic_load_explicit(&t->object.refs, memory_order_acquire) >= GRD_VIEW_WEIGHT;
}

static inline bool grd_was_saved(const grd_tensor *t)
{
    return atomic_load_explicit(&t->storage->saved, memory_order_relaxed);
}

/* Marks the storage as saved. It reads before it writes, so that threads that save tensors of one storage do
 * not invalidate each other's cache line. */
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

/* True for the remains of a freed tensor, which there are while GRADUS_DEBUG=lifetimes (lifetimes.h). */
static inline bool grd_is_dead(const grd_tensor *t)
{
    return GRD_UNLIKELY(__atomic_load_n(&t->keys, __ATOMIC_RELAXED) >> GRD_KEY_LIFETIMES != 0); /* another thread may set another key */
}

static inline bool grd_is_meta(const grd_tensor *t)
{
    return GRD_UNLIKELY(t->device == GRD_DEVICE_META);
}

static inline bool grd_has(const grd_tensor *t, enum grd_tensor_flags flag)
{
    return (t->flags & flag) != 0;
}

/* True if `t` is a view that owns its storage beside its base, because the base may get another one (data.c). */
static inline bool grd_owns_storage_as_view(const grd_tensor *t)
{
    return GRD_UNLIKELY(grd_has(t, GRD_FLAG_REPLACED));
}

static inline bool grd_is_batch(const grd_tensor *t)
{
    return GRD_UNLIKELY(grd_has(t, GRD_FLAG_BATCHED));
}

/* Returns the tensor that has the elements and the history, borrowed: the physical tensor of a batch tensor, otherwise `t` itself. */
static inline grd_tensor *grd_physical(const grd_tensor *t)
{
    return grd_is_batch(t) ? ((const struct grd_batch *)t)->physical : (grd_tensor *)(uintptr_t)t;
}

/* Raises RuntimeError, because a batch tensor has no data of its own to read. Always returns false. */
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

/* True if the elements are the conjugates, or for a real dtype the negatives, of the values in memory. */
static inline bool grd_is_conjugated(const grd_tensor *t)
{
    return grd_keys_read(t) >> GRD_KEY_CONJUGATE & 1;
}

/* True if the tensor itself has the AUTOGRAD key. The keys of its base do not count. */
static inline bool grd_marked_requires_grad(const grd_tensor *t)
{
    return grd_keys_read(t) >> GRD_KEY_AUTOGRAD & 1;
}

/* Sets the keys of a batch tensor: BATCH, and AUTOGRAD while its physical tensor requires a gradient. */
void grd_mark_batch(grd_tensor *t);
/* Sets the AUTOGRAD key or takes it away; the caller has checked the dtype. */
void grd_mark_requires_grad(grd_tensor *t, bool requires_grad);

#endif
