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
    GRD_FLAG_NUMBER = 4,        /* a plain number in type promotion */
    /* At most one of these two, which views of the view inherit. */
    GRD_FLAG_NO_GRAD_VIEW = 16, /* a view made while grad mode was off */
    GRD_FLAG_MULTI_VIEW = 32,   /* one of several views returned by one operator (split, unbind, chunk) */
    GRD_FLAG_CANONICAL = 128,   /* contiguous, few dimensions, each with the stride of a new tensor: those of one element have such, too */
    GRD_FLAG_MOVED = 256,       /* in a block whose storage it does not use any more (data.c) */
    GRD_FLAG_REPLACED = 512,    /* its storage was replaced, or is that of such a tensor: views own their storage, too (data.c) */
    GRD_FLAG_BATCHED = 1024,    /* a struct grd_batch */
    GRD_FLAG_DETACHED = 64,     /* shares data, not history: in-place writes are not a view's writes */
    /* Those that follow from sizes and strides. */
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
    void (*release)(void *context); /* not NULL: `data` is borrowed, and this gives it back */
    void *context;
    atomic_bool saved; /* some node of a graph has kept a tensor of this storage */
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
        uint64_t traits; /* all of these: grd_traits */
    };
    struct grd_storage *storage;
    char *data;
    int64_t offset; /* in elements */
    int64_t numel;
    int64_t *sizes, *strides;    /* inline_dims, or one block of 2 * ndim */
    struct grd_tensor *base;     /* of a view: the root it is a view of, owned; NULL otherwise */
    struct grd_object *autograd; /* owned by the autograd floor; NULL for most tensors */
    uint32_t view_version;       /* of a view: the version of its storage when it was made */
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

/* ---- Dtype table ------------------------------------------------------------------------------------------------ */
enum grd_category { GRD_CATEGORY_BOOL, GRD_CATEGORY_INTEGER, GRD_CATEGORY_FLOAT, GRD_CATEGORY_COMPLEX, GRD_CATEGORY_QUANTIZED };

struct grd_dtype_info {
    const char *name;
    uint8_t size, category;
};
extern const struct grd_dtype_info grd_dtype_table[GRD_DTYPE_COUNT];

typedef struct grd_complex32 {
    uint16_t re, im; /* float16 */
} grd_complex32;
typedef struct grd_complex64 {
    float re, im;
} grd_complex64;
typedef struct grd_complex128 {
    double re, im;
} grd_complex128;

/* As PyTorch's errors call it: "Float", "Long", "ComplexDouble". */
const char *grd_dtype_type_name(grd_dtype dtype);
const char *grd_dtype_c_name(grd_dtype dtype); /* "c10::Half": the name in C++, which some texts of PyTorch have */
static inline bool grd_scalar_is_integral(grd_scalar s)
{
    return s.kind == GRD_SCALAR_INT || s.kind == GRD_SCALAR_BOOL || s.kind == GRD_SCALAR_UINT;
}

/* A plain number with its kind: INT when it is whole and below 2^53 in size, otherwise FLOAT. See Note [Plain options]. */
grd_scalar grd_number_of_plain(double value);
/* The dtype a bare number has: bool, int64, the default float, or the complex of that. */
grd_dtype grd_scalar_dtype(grd_scalar s);
/* Writes the scalar as one element of dtype, as fill_ does. RuntimeError "value cannot be converted to type uint8_t without
 * overflow" when it is out of range; see Note [Unsigned wrap-around]. Absent scalars are refused: TypeError. */
bool grd_scalar_write(grd_scalar s, grd_dtype dtype, void *ret_element);
/* One element as a scalar. */
grd_scalar grd_scalar_read(const void *element, grd_dtype dtype);
/* An element of a tensor as a scalar: the conjugate of what lies in memory where the tensor is read so. */
grd_scalar grd_element_of(const grd_tensor *t, const void *element);
/* Converts one element as a cast does: truncates, wraps, drops imaginary parts; never fails. */
void grd_element_convert(const void *from, grd_dtype from_dtype, void *ret_to, grd_dtype to_dtype);

/* ---- Making tensors: each result is pooled; grd_failed, with the error raised, on failure ------------------------------ */
/* Uninitialised and contiguous. Sizes are checked: negative is RuntimeError, overflow too. */
grd_tensor *grd_new(grd_dims sizes, grd_dtype dtype, grd_device device);
/* With given strides over a fresh storage big enough for them. */
grd_tensor *grd_new_strided(grd_dims sizes, grd_dims strides, grd_dtype dtype, grd_device device);
/* A tensor to be made. */
struct grd_planned {
    grd_dtype dtype, as; /* of the result, and what the run writes: converted once, at the end */
    uint8_t ndim;
    bool strided; /* with the strides planned; otherwise contiguous, and they are not set */
    int64_t sizes[GRD_MAX_DIMS], strides[GRD_MAX_DIMS];
};
/* Uninitialised, of the same sizes, and of the same strides where `like` is dense and non-overlapping (otherwise contiguous
 * in the order of its strides), as empty_like. dtype NONE: that of `like`. */
grd_tensor *grd_new_like(const grd_tensor *like, grd_dtype dtype);
/* A view of `base`'s storage with strides of any sign; `offset` is in elements of the storage. Records the root base for
 * autograd. Bounds are checked against the storage: RuntimeError. */
grd_tensor *grd_new_view(grd_tensor *base, grd_dims sizes, grd_dims strides, int64_t offset);
/* The same with the memory read as elements of another dtype, in which strides and offset are counted. */
grd_tensor *grd_new_view_as(grd_tensor *base, grd_dtype dtype, grd_dims sizes, grd_dims strides, int64_t offset);
/* The same where the result is known to lie within what `base` reaches, sizes and strides being its own, rearranged or reduced. */
grd_tensor *grd_new_part(grd_tensor *base, grd_dims sizes, grd_dims strides, int64_t offset);
/* A batch tensor over `physical`, whose dimension 0 is the batch. */
grd_tensor *grd_new_batch(grd_tensor *physical, uint64_t level);
/* Each of two batch tensors becomes the other. */
void grd_batch_swap(grd_tensor *a, grd_tensor *b);
/* Sets the keys of a batch tensor: BATCH, and AUTOGRAD while its physical tensor requires a gradient. */
void grd_mark_batch(grd_tensor *t);
/* A view that shares data but has no history and no base. */
grd_tensor *grd_new_detached(grd_tensor *t);
/* Returns a view with any geometry that lies in the storage, and the memory read as elements of another dtype. */
grd_tensor *grd_new_detached_as(grd_tensor *t, grd_dtype dtype, grd_dims sizes, grd_dims strides, int64_t offset);
/* Resizes an `out` tensor in place: contiguous, from the same offset; grows the storage when it is too small. RuntimeError
 * when that storage is borrowed or has other views. Nothing changes when the sizes are those it has. */
bool grd_resize(grd_tensor *t, grd_dims sizes);
/* Gives the tensor itself other sizes, strides and offset, within its storage. */
bool grd_set_geometry(grd_tensor *t, grd_dims sizes, grd_dims strides, int64_t offset);
/* Warns, as PyTorch does, that an out= with elements has not the sizes of the result. False when the warning became an error. */
bool grd_warn_resized(const grd_tensor *out, grd_dims sizes);
/* grd_resize to the strides of a result, where those have no gaps. NULL: contiguous. */
bool grd_resize_like(grd_tensor *out, grd_dims sizes, const int64_t *strides);
/* The same for an out= that a caller gave: with the warning. */
bool grd_resize_out(grd_tensor *out, grd_dims sizes, const int64_t *strides);

static inline grd_tensor *grd_new_planned(const struct grd_planned *planned, grd_dtype dtype, grd_device device)
{
    const grd_dims sizes = grd_dims_from(planned->sizes, planned->ndim);
    return planned->strided ? grd_new_strided(sizes, grd_dims_from(planned->strides, planned->ndim), dtype, device)
                            : grd_new(sizes, dtype, device);
}

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
/* Tensors that one kernel takes as they are have these bits in common: all but the flags. */
#define GRD_TRAITS_KIND (GRD_TRAITS_DTYPE | GRD_TRAITS_LAYOUT | GRD_TRAITS_DEVICE | GRD_TRAITS_NDIM)

/* Some flags, where the traits have them. */
static inline uint64_t grd_traits_flags(unsigned flags)
{
    return (uint64_t)flags << 32;
}

/* True while operators take the shorter ways they have for simple operands: results are the same, bit for bit. False with GRADUS_SHORTCUTS=off. */
extern GRD_HIDDEN bool grd_shortcuts;
/* Reads it; run once by the library's constructor. */
void grd_shortcuts_init(void);
/* True while gradients are computed by accelerated formulas and fused kernels; tests that compare them with the formulas set it. */
extern GRD_HIDDEN bool grd_accelerations;

/* What a view counts for among the owners of its base. */
#define GRD_VIEW_WEIGHT ((INT64_C(1) << 32) + 1)

static inline bool grd_has_views(const grd_tensor *t)
{
    return atomic_load_explicit(&t->object.refs, memory_order_acquire) >= GRD_VIEW_WEIGHT;
}

static inline bool grd_was_saved(const grd_tensor *t)
{
    return atomic_load_explicit(&t->storage->saved, memory_order_relaxed);
}

/* Asks first: threads that save tensors of one storage go on sharing its cache line. */
static inline void grd_mark_saved(const grd_tensor *t)
{
    if (!grd_was_saved(t))
        atomic_store_explicit(&t->storage->saved, true, memory_order_relaxed);
}

/* grd_raise for a function that returns a tensor: always the failed one. */
grd_tensor *grd_fail(grd_error_code code, const char *format, ...) GRD_PRINTF(2, 3);

static inline bool grd_is_failed(const grd_tensor *t)
{
    return GRD_UNLIKELY(t == &grd_failed_block.tensor);
}

/* TypeError unless it is the number of a dtype. */
bool grd_check_dtype(grd_dtype dtype);

/* True for the remains of a freed tensor, which there are while GRADUS_DEBUG=lifetimes (lifetimes.h). */
static inline bool grd_is_dead(const grd_tensor *t)
{
    return GRD_UNLIKELY(__atomic_load_n(&t->keys, __ATOMIC_RELAXED) >> GRD_KEY_LIFETIMES != 0); /* another thread may set another key */
}

/* "grd_is_leaf: argument 't' must be a tensor, not NULL", or how it died. Always false. */
bool grd_refuse_tensor(const grd_tensor *t, const char *function, const char *argument);

/* For the public functions: false, with the error raised, for NULL and for a dead tensor. */
static inline bool grd_given(const grd_tensor *t, const char *function, const char *argument)
{
    return GRD_LIKELY(t != NULL && !grd_is_dead(t)) || grd_refuse_tensor(t, function, argument);
}

/* The same for an array of them, of which there is one at least. */
static inline bool grd_given_all(grd_tensor *const *tensors, int64_t n, const char *function, const char *argument)
{
    if (tensors == NULL || n < 1)
        return grd_raise(GRD_ERROR_TYPE, "%s: argument '%s' must be an array of at least one tensor, not of %lld", function, argument,
                         (long long)n);
    for (int64_t i = 0; i < n; i++)
        if (!grd_given(tensors[i], function, argument))
            return false;
    return true;
}

/* The same for an argument that may be NULL. */
static inline bool grd_given_or_null(const grd_tensor *t, const char *function, const char *argument)
{
    return t == NULL || grd_given(t, function, argument);
}

static inline bool grd_is_meta(const grd_tensor *t)
{
    return GRD_UNLIKELY(t->device == GRD_DEVICE_META);
}

static inline bool grd_dims_equal(grd_dims a, grd_dims b)
{
    if (a.n != b.n)
        return false;
    for (int64_t i = 0; i < a.n; i++)
        if (a.data[i] != b.data[i])
            return false;
    return true;
}

static inline bool grd_has(const grd_tensor *t, enum grd_tensor_flags flag)
{
    return (t->flags & flag) != 0;
}

static inline bool grd_is_batch(const grd_tensor *t)
{
    return GRD_UNLIKELY(grd_has(t, GRD_FLAG_BATCHED));
}

/* The tensor that has the elements and the history: that below a batch tensor, `t` itself otherwise. */
static inline grd_tensor *grd_physical(const grd_tensor *t)
{
    return grd_is_batch(t) ? ((const struct grd_batch *)t)->physical : (grd_tensor *)(uintptr_t)t;
}

/* RuntimeError: a batch tensor's elements cannot be read one by one. Always false. */
bool grd_raise_batch_data(void);

static inline grd_device grd_device_of(const grd_tensor *t)
{
    return (grd_device){t->device, t->device_index};
}

/* a * b modulo 2^64: for strides and sizes that may not fit, because they belong to a dimension with at most one element or to an empty
 * tensor, where no step is ever taken. */
static inline int64_t grd_wrapping_product(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a * (uint64_t)b);
}

/* The product of sizes modulo 2^64: beside a 0, in the whole tensor, it may not fit. */
static inline int64_t grd_sizes_product(const int64_t *sizes, int64_t n)
{
    int64_t product = 1;
    for (int64_t i = 0; i < n; i++)
        product = grd_wrapping_product(product, sizes[i]);
    return product;
}

/* The stride of a dimension in bytes. */
static inline int64_t grd_byte_stride(const grd_tensor *t, int64_t dim)
{
    return grd_wrapping_product(t->strides[dim], t->itemsize);
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

/* True if the elements are the conjugates, or the negatives, of those in memory. */
static inline bool grd_is_conjugated(const grd_tensor *t)
{
    return grd_keys_read(t) >> GRD_KEY_CONJUGATE & 1;
}

/* Of the tensor itself, not of a base it is a view of. */
static inline bool grd_marked_requires_grad(const grd_tensor *t)
{
    return grd_keys_read(t) >> GRD_KEY_AUTOGRAD & 1;
}

/* Sets the AUTOGRAD key or takes it away; the caller has checked the dtype. */
void grd_mark_requires_grad(grd_tensor *t, bool requires_grad);

/* ---- Shape algebra (shape.c): pure functions of sizes and strides --------------------------------------------------------- */
/* Product of sizes; false, with RuntimeError naming the sizes, when negative or when it overflows. */
bool grd_shape_numel(grd_dims sizes, int64_t *ret_numel);
void grd_shape_contiguous_strides(grd_dims sizes, int64_t *ret_strides);
bool grd_shape_is_contiguous(grd_dims sizes, const int64_t *strides);
bool grd_shape_is_channels_last(grd_dims sizes, const int64_t *strides);
/* For 4 or 5 dimensions. */
void grd_shape_channels_last_strides(grd_dims sizes, int64_t *ret_strides);
/* True if the dimensions lie in the order of channels last, with or without gaps: what PyTorch's suggest_memory_format asks. Where sizes of 1 leave
 * that open, False. */
bool grd_shape_suggests_channels_last(grd_dims sizes, const int64_t *strides);
/* Called where a tensor got other sizes or another dtype: what its history says of it follows. */
void grd_tell_reshaped(grd_tensor *t);
/* Every element at its own address, no gaps, in some order of dimensions; strides positive. Empty shapes are dense. */
bool grd_shape_is_dense(grd_dims sizes, const int64_t *strides);
/* True if two indices may share an address: stride 0 with size > 1, or strides that interleave. False is certain, true is not. */
bool grd_shape_may_overlap(grd_dims sizes, const int64_t *strides);
/* Wraps a negative dim; false, with IndexError "Dimension out of range (expected to be in range of [-2, 1], but got 2)".
 * ndim 0 counts as 1. */
void grd_shape_refuse_dim(int64_t dim, int64_t ndim);
static inline bool grd_shape_wrap_dim(int64_t dim, int64_t ndim, int64_t *ret_dim)
{
    const int64_t n = ndim > 1 ? ndim : 1, wrapped = dim < 0 ? dim + n : dim;
    if (GRD_UNLIKELY((uint64_t)wrapped >= (uint64_t)n)) {
        grd_shape_refuse_dim(dim, ndim);
        return false;
    }
    *ret_dim = wrapped;
    return true;
}
/* Wraps a list and refuses duplicates ("dim 0 appears multiple times in the list of dims"); absent or empty gives all dims.
 * Bit set of dims. */
bool grd_shape_dim_mask(grd_dims dims, int64_t ndim, uint64_t *ret_mask);
/* Broadcast of two shapes into ret_sizes[GRD_MAX_DIMS]; false, with RuntimeError
 * "The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 1". */
bool grd_shape_broadcast(grd_dims a, grd_dims b, int64_t *ret_sizes, int64_t *ret_ndim);
/* Lowest and highest offset, relative to the first element, that an index reaches (both 0 when empty); false, with no error,
 * when they overflow. */
bool grd_shape_extent(grd_dims sizes, const int64_t *strides, int64_t *ret_lowest, int64_t *ret_highest);
/* The order of dimensions, innermost first, that the strides of n operands of these sizes tell. A stride of 0 is of a dimension that is broadcast. */
void grd_shape_order(grd_dims sizes, const int64_t (*strides)[GRD_MAX_DIMS], int n, int *ret_order);
/* Strides without gaps in that order. */
void grd_shape_ordered_strides(grd_dims sizes, const int64_t (*strides)[GRD_MAX_DIMS], int n, int64_t *ret_strides);
/* Strides without gaps that keep the order of the given ones: what empty_like gives a tensor that is not dense. */
void grd_shape_dense_strides(grd_dims sizes, const int64_t *strides, int64_t *ret_strides);
/* Strides of a view with new sizes over the old geometry; false (no error) when only a copy can do. Sizes have no -1. */
bool grd_shape_view_strides(grd_dims sizes, const int64_t *strides, grd_dims new_sizes, int64_t *ret_strides);
/* Replaces one -1; false, with RuntimeError "shape '[2, -1]' is invalid for input of size 3". */
bool grd_shape_infer(grd_dims sizes, int64_t numel, int64_t *ret_sizes);

/* ---- Devices (device.c) ------------------------------------------------------------------------------------------ */
struct grd_device_slot {
    const grd_op *op; /* NULL: free */
    grd_boxed_kernel *kernel;
};

struct grd_device_entry {
    grd_device_type type; /* of cpu and meta only the name */
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
/* The kernel a device has for an operator, or NULL. */
grd_boxed_kernel *grd_device_kernel_of(const struct grd_device_entry *entry, const grd_op *op);

/* "cpu", "vault:0": for the arguments of one call. */
struct grd_device_text {
    char chars[40];
};
struct grd_device_text grd_device_text(grd_device device);
/* "Expected all tensors to be on the same device, but found at least two devices, vault:0 and cpu!" Always false. */
bool grd_raise_devices(grd_device a, grd_device b);

/* Memory of any device that has data; NULL with MemoryError. */
void *grd_device_allocate(grd_device device, int64_t bytes);
void grd_device_release(grd_device device, void *data, int64_t bytes);
/* Copies bytes that do not overlap within one type of device, or between it and the cpu: others are brought to the cpu by the caller.
 * False, with the error raised, when the device failed. */
bool grd_device_copy(void *to, grd_device to_device, const void *from, grd_device from_device, int64_t bytes);

static inline bool grd_is_extra(grd_device device)
{
    return device.type >= GRD_DEVICE_FIRST_EXTRA;
}

/* ---- Elements on devices (transfer.c) ----------------------------------------------------------------------------- */
/* `t` where this process can read it: itself on the cpu, otherwise a copy with the same strides. Pooled or borrowed; grd_failed, with
 * NotImplementedError, when it has no data. */
grd_tensor *grd_on_cpu(const grd_tensor *t);
/* Copies the elements between tensors of the same sizes and dtype on any two devices, in as few pieces as the strides allow; no other byte is
 * written. The two do not overlap. */
bool grd_transfer(grd_tensor *to, const grd_tensor *from);

/* ---- Wrappers (wrapper.c) ----------------------------------------------------------------------------------------- */
/* The type of a wrapper, NULL for other tensors. */
const grd_wrapper_type *grd_wrapper_type_of(const grd_tensor *t);

/* ---- Storage (storage.c) ----------------------------------------------------------------------------------------- */
/* Gives the data back before the storage goes; nobody reads it any more. */
void grd_storage_empty(struct grd_storage *storage);
/* Grows the data of a tensor that shares it with no other, keeping what is there; RuntimeError otherwise: others would keep the old address. */
bool grd_storage_grow(grd_tensor *t, int64_t bytes);
/* The storage that `storage` borrows its data from; itself when it borrows none (data.c). */
struct grd_storage *grd_storage_root(struct grd_storage *storage);
/* Gives the storage of the tensors, which are all its owners, other memory, into which as many bytes are copied as fit (relocate.c). RuntimeError, and
 * nothing changes, when it has other owners. */
bool grd_storage_replace(grd_tensor *const *tensors, int64_t n, void *data, int64_t bytes, void (*release)(void *context), void *context);

/* ---- Printing (print.c) ------------------------------------------------------------------------------------------ */
/* The name printed as grad_fn=<AddBackward0>, or NULL for a leaf. Set by the autograd floor at load; NULL: nothing is printed. */
extern const char *(*grd_print_grad_fn)(const grd_tensor *t);
/* The tangent printed as tangent=tensor(…), pooled, or NULL: likewise. */
extern grd_tensor *(*grd_print_tangent)(const grd_tensor *t);

#endif
