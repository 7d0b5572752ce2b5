/* Tensors: lifetime, geometry, data, printing. Operators are in gradus/ops.h. */
#ifndef GRADUS_TENSOR_H
#define GRADUS_TENSOR_H

#include "gradus/types.h"

GRD_BEGIN_DECLS

/* Returns the tensor that a failed operator returns: immortal, 0-d float32, NaN. It is never NULL, which is an absent optional argument. */
GRD_API grd_tensor *grd_failed_tensor(void);
#define grd_failed (grd_failed_tensor())

/* ---- Lifetime ---------------------------------------------------------------------------------------------------- */
/* Takes a reference that outlives the scope; returns `t`. */
GRD_API grd_tensor *grd_keep(grd_tensor *t);
/* Gives up a reference that grd_keep took: exactly one for each, and not the one that a scope owns. NULL is allowed. A tensor that was never
 * kept must not be dropped: GRADUS_DEBUG=lifetimes reports where one is. */
GRD_API void grd_drop(grd_tensor *t);

/* ---- From and to memory -------------------------------------------------------------------------------------------- */
/* A new contiguous cpu tensor with a copy of `data`: as many elements of `dtype` as the sizes say. */
GRD_API grd_tensor *grd_from_data(const void *data, grd_dims_view sizes, grd_dtype dtype);
/* A tensor over memory that the caller owns. Its first element lies `offset` elements behind `data`, so that negative strides can reach back:
 * {5, 4, 3} is grd_from_memory(data, grd_dims(3), grd_dims(-1), 2, …) over 3, 4, 5. Strides are in elements and may be absent, which means
 * contiguous. release(context) is called once, on any thread, when the last tensor over the memory goes; release may be NULL. On failure it
 * is not called: the memory is still the caller's. RuntimeError: an element would lie before `data`; TypeError: data is NULL and there are elements.
 * Nothing checks how far the memory goes. */
GRD_API grd_tensor *grd_from_memory(void *data, grd_dims_view sizes, grd_dims_view strides, int64_t offset, grd_dtype dtype,
                                    void (*release)(void *context), void *context);
/* A tensor of any dtype and geometry over the storage of another one, whatever that one's dtype: it has no history and is no view. Strides and offset
 * are in elements of `dtype`. RuntimeError when an element would lie outside the storage, or when its memory is not aligned to the dtype. */
GRD_API grd_tensor *grd_from_storage(grd_tensor *owner, grd_dims_view sizes, grd_dims_view strides, int64_t offset, grd_dtype dtype);
/* A 0-d tensor that takes part in type promotion as a plain number does. */
GRD_API grd_tensor *grd_number(grd_scalar value);
/* The only element of a one-element tensor. RuntimeError otherwise. NaN (kind FLOAT) on failure. */
GRD_API grd_scalar grd_item(grd_tensor *t);
GRD_API double grd_item_double(grd_tensor *t);
GRD_API int64_t grd_item_int64(grd_tensor *t);
/* Copies the elements, in row-major order, to `ret_data`, as `dtype`. */
GRD_API void grd_to_memory(grd_tensor *t, void *ret_data, grd_dtype dtype);

/* ---- Geometry: never fails, never dispatches ------------------------------------------------------------------------- */
GRD_API int64_t grd_ndim(const grd_tensor *t);
GRD_API int64_t grd_numel(const grd_tensor *t);
GRD_API grd_dims_view grd_sizes(const grd_tensor *t);   /* valid while the tensor lives */
GRD_API grd_dims_view grd_strides(const grd_tensor *t); /* in elements */
/* Size and stride of one dimension, which may be negative; IndexError and 0 when out of range. */
GRD_API int64_t grd_size(const grd_tensor *t, int64_t dim);
GRD_API int64_t grd_stride(const grd_tensor *t, int64_t dim);
GRD_API int64_t grd_offset(const grd_tensor *t); /* elements from the start of the storage */
GRD_API grd_dtype grd_tensor_dtype(const grd_tensor *t);
GRD_API grd_device grd_tensor_device(const grd_tensor *t);
GRD_API grd_layout grd_tensor_layout(const grd_tensor *t);
GRD_API bool grd_is_contiguous(const grd_tensor *t);
GRD_API bool grd_is_channels_last(const grd_tensor *t);
/* The first element; NULL on the meta device. On a device of a plug-in it is an address that only its kernels can follow. Writing through it is not
 * seen by version checks. Of a batch tensor NULL, with RuntimeError. */
GRD_API void *grd_data(const grd_tensor *t);
/* True for a complex tensor whose elements are the conjugates of those in memory (grd_conj), and for a real one whose elements are the negatives of those in memory (the
 * imaginary part of such a tensor). Operators see the elements; who reads memory (grd_data) calls grd_resolve_conj or grd_resolve_neg first. */
GRD_API bool grd_is_conj(const grd_tensor *t);
GRD_API bool grd_is_neg(const grd_tensor *t);
/* Bytes of the storage, and whether two tensors share one. */
GRD_API int64_t grd_storage_bytes(const grd_tensor *t);
/* Returns an address that tells storages apart: equal for tensors that share one. It is not to be followed. */
GRD_API const void *grd_storage_identity(const grd_tensor *t);
GRD_API bool grd_same_storage(const grd_tensor *a, const grd_tensor *b);
/* How often the storage was written by operators: the counter saved tensors are checked against. */
GRD_API int64_t grd_tensor_version(const grd_tensor *t);
/* The tensor this one is a view of, or NULL. */
GRD_API grd_tensor *grd_view_base(const grd_tensor *t);

/* The dtype of a result of these inputs as torch.result_type: tensors with dimensions decide, then 0-d tensors, then plain numbers (grd_number), the
 * later ones only by their category. NULL entries are skipped. NONE, with RuntimeError, when the dtypes do not promote. */
GRD_API grd_dtype grd_result_type(grd_tensor *const *inputs, int n);

/* Writes the sizes that two shapes broadcast to into ret_sizes[GRD_MAX_DIMS], and their number. False, with RuntimeError
 * "The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 1", when they do not broadcast. */
GRD_API bool grd_broadcast_shapes(grd_dims_view a, grd_dims_view b, int64_t *ret_sizes, int64_t *ret_ndim);

/* ---- Data apart from history ------------------------------------------------------------------------------------------ */
/* A tensor over the same memory that has neither history nor version in common with `t`: writing to it is not seen by autograd. */
GRD_API grd_tensor *grd_alias(grd_tensor *t);
/* Gives `t` the memory, sizes and dtype of `source`, which it shares from then on; its history, gradient and version stay, and views made of it
 * before keep the old memory. RuntimeError when the devices differ, or `t` requires a gradient and the dtype of `source` cannot. */
GRD_API void grd_set_data(grd_tensor *t, grd_tensor *source);

/* Makes `t` a tensor of its dtype over the storage of `source`, as grd_from_storage does, and counts that as a write: Tensor.set_. Its history stays.
 * RuntimeError as grd_from_storage, and when the devices differ. */
GRD_API void grd_set_storage(grd_tensor *t, grd_tensor *source, grd_dims_view sizes, grd_dims_view strides, int64_t offset);

/* ---- Storages that get other memory ------------------------------------------------------------------------------------ */
/* A storage can get other memory only when all tensors over it are known, since each holds the address of its first element. True if the n tensors,
 * no two of them the same, are all there are. TypeError: there is none. */
GRD_API bool grd_storage_owned_by(grd_tensor *const *tensors, int64_t n);
/* True for memory of the cpu that nobody has lent and that is not shared between processes. */
GRD_API bool grd_storage_resizable(const grd_tensor *t);
/* Gives the storage of the tensors another number of bytes; new ones are 0. The tensors keep their sizes: what they reach beyond the end reads as 0.
 * False, with RuntimeError, when the storage is not resizable, or others than the n tensors lie over it. */
GRD_API bool grd_storage_resize(grd_tensor *const *tensors, int64_t n, int64_t bytes);

/* ---- Comparing whole tensors ----------------------------------------------------------------------------------------- */
/* Same sizes and equal elements (NaN equals nothing); dtypes are promoted. */
GRD_API bool grd_equal(grd_tensor *a, grd_tensor *b);
/* True if |a - b| <= atol + rtol * |b| for all elements, which broadcast; infinities must be equal. equal_nan: NaN is close to NaN.
 * RuntimeError unless the dtypes are the same and the tolerances are not negative. */
GRD_API bool grd_allclose(grd_tensor *a, grd_tensor *b, double rtol, double atol, bool equal_nan);

/* ---- Printing ------------------------------------------------------------------------------------------------------- */
typedef struct grd_print_options {
    int precision;     /* digits after the point; 4 */
    int64_t threshold; /* elements above which the middle is left out; 1000 */
    int64_t edge;      /* elements shown at each end then; 3 */
    int line_width;    /* 80 */
    int sci_mode;      /* -1: decide from the values; 0: never; 1: always */
} grd_print_options;

GRD_API grd_print_options grd_print_options_get(void);
GRD_API void grd_print_options_set(grd_print_options options);
/* The tensor as PyTorch prints it, "tensor([1., 2.])"; malloc'ed, the caller frees it. NULL on failure. */
GRD_API char *grd_to_string(grd_tensor *t);
/* Returns the same text with `name` in the place of "tensor": "MyTensor([1., 2.])". */
GRD_API char *grd_to_string_as(grd_tensor *t, const char *name);
/* Prints it and a newline to standard output. */
GRD_API void grd_print(grd_tensor *t);
/* Returns a picture of a strided tensor, as the text of an SVG file: the cells of its storage with their numbers, and beside them its elements with their
 * indices, each in the color of the cell it is read from. Sizes, strides and offset stand above; the tooltip of an element is the sum that leads to its
 * cell, "[1, 2]: 0 + 1·4 + 2·1 is storage cell 6". malloc'ed, the caller frees it. NULL on failure.
 * As in printing, the middle of each dimension is left out where there are more elements than the print options' threshold. Where the storage has more
 * cells than that, those that no drawn element is read from are left out. Elements on other devices than the cpu are drawn without values.
 * RuntimeError: more than 4096 elements are left to draw, or `t` is a batch tensor. NotImplementedError: `t` is a wrapper. */
GRD_API char *grd_draw_strides(grd_tensor *t);

GRD_END_DECLS
#endif
