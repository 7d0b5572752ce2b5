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
/* Returns a new contiguous tensor on the CPU with a copy of `data`, which holds as many elements of `dtype` as the product of the sizes. */
GRD_API grd_tensor *grd_from_data(const void *data, grd_dims_view sizes, grd_dtype dtype);
/* Returns a tensor over memory that the caller owns. The tensor's first element lies `offset` elements behind `data`, so strides may be negative:
 * over the numbers 3, 4, 5, grd_from_memory(data, grd_dims(3), grd_dims(-1), 2, …) is {5, 4, 3}. Strides are in elements; an absent list means
 * contiguous. release(context) is called once, on any thread, when the last tensor over the memory is freed; `release` may be NULL. On failure
 * `release` is not called, and the memory is still the caller's. RuntimeError: an element would lie before `data`. TypeError: `data` is NULL and the
 * tensor is not empty. The library does not know the size of the memory, so the caller must make sure that all elements lie inside. */
GRD_API grd_tensor *grd_from_memory(void *data, grd_dims_view sizes, grd_dims_view strides, int64_t offset, grd_dtype dtype,
                                    void (*release)(void *context), void *context);
/* Returns a tensor with its own sizes, strides and dtype over the storage of `owner`. It has no autograd history and does not count as a view of
 * `owner`. Strides and offset are in elements of `dtype`. RuntimeError: an element would lie outside the storage, or the memory is not aligned for
 * `dtype`. */
GRD_API grd_tensor *grd_from_storage(grd_tensor *owner, grd_dims_view sizes, grd_dims_view strides, int64_t offset, grd_dtype dtype);
/* Returns a zero-dimensional tensor that takes part in type promotion as a Python number does. */
GRD_API grd_tensor *grd_number(grd_scalar value);
/* Returns the element of a one-element tensor. RuntimeError: `t` has no or several elements. On failure the result is NaN (of kind FLOAT). */
GRD_API grd_scalar grd_item(grd_tensor *t);
/* Return grd_item(t) converted by grd_scalar_double and grd_scalar_int64. */
GRD_API double grd_item_double(grd_tensor *t);
GRD_API int64_t grd_item_int64(grd_tensor *t);
/* Copies the elements, in row-major order and converted to `dtype`, to `ret_data`. */
GRD_API void grd_to_memory(grd_tensor *t, void *ret_data, grd_dtype dtype);

/* ---- Geometry: never fails, never dispatches ------------------------------------------------------------------------- */
GRD_API int64_t grd_ndim(const grd_tensor *t);
GRD_API int64_t grd_numel(const grd_tensor *t);
GRD_API grd_dims_view grd_sizes(const grd_tensor *t);   /* valid while the tensor lives */
GRD_API grd_dims_view grd_strides(const grd_tensor *t); /* in elements */
/* Return the size and the stride (in elements) of one dimension; `dim` counts from the end if it is negative. Out of range: 0, with IndexError. */
GRD_API int64_t grd_size(const grd_tensor *t, int64_t dim);
GRD_API int64_t grd_stride(const grd_tensor *t, int64_t dim);
GRD_API int64_t grd_offset(const grd_tensor *t); /* elements from the start of the storage */
GRD_API grd_dtype grd_tensor_dtype(const grd_tensor *t);
GRD_API grd_device grd_tensor_device(const grd_tensor *t);
GRD_API grd_layout grd_tensor_layout(const grd_tensor *t);
GRD_API bool grd_is_contiguous(const grd_tensor *t);
GRD_API bool grd_is_channels_last(const grd_tensor *t);
/* Returns the address of the first element; NULL on the meta device. Only the kernels of a plug-in's device may dereference an address on that
 * device. Writing through the address does not change the version counter, so saved tensors do not notice it. RuntimeError, and NULL: a batch
 * tensor. */
GRD_API void *grd_data(const grd_tensor *t);
/* True for a complex tensor whose elements are the conjugates of those in memory (grd_conj), and, for grd_is_neg, a real one whose elements
 * are the negatives of those in memory (the imaginary part of such a tensor). Operators compute with the elements; code that reads memory (grd_data)
 * calls grd_resolve_conj or grd_resolve_neg first. */
GRD_API bool grd_is_conj(const grd_tensor *t);
GRD_API bool grd_is_neg(const grd_tensor *t);
/* Returns the size of the storage in bytes. */
GRD_API int64_t grd_storage_bytes(const grd_tensor *t);
/* Returns an address that is equal exactly for tensors that share a storage. It must not be dereferenced. */
GRD_API const void *grd_storage_identity(const grd_tensor *t);
/* True if both tensors share a storage. */
GRD_API bool grd_same_storage(const grd_tensor *a, const grd_tensor *b);
/* Returns the version counter: how often operators have written to the storage in place. Backward is an error if the version of a saved tensor has
 * changed. */
GRD_API int64_t grd_tensor_version(const grd_tensor *t);
/* Returns the tensor that `t` is a view of, or NULL. */
GRD_API grd_tensor *grd_view_base(const grd_tensor *t);

/* Returns the dtype to which an operator promotes these inputs, as torch.result_type does: tensors with dimensions come first, then zero-dimensional
 * tensors, then numbers (grd_number); one of a later group counts only if its category (bool, integer, floating point, complex) is higher. NULL
 * entries are skipped. GRD_DTYPE_NONE, with RuntimeError: the dtypes do not promote. */
GRD_API grd_dtype grd_result_type(grd_tensor *const *inputs, int n);

/* Writes the sizes to which two shapes broadcast to ret_sizes, which has room for GRD_MAX_DIMS, and their number to ret_ndim. False, with
 * RuntimeError "The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 1": the shapes do not broadcast. */
GRD_API bool grd_broadcast_shapes(grd_dims_view a, grd_dims_view b, int64_t *ret_sizes, int64_t *ret_ndim);

/* ---- Data without history --------------------------------------------------------------------------------------------- */
/* Returns a tensor over the memory of `t`, with no autograd history and a version counter of its own, so autograd does not notice writes to it. */
GRD_API grd_tensor *grd_alias(grd_tensor *t);
/* Makes `t` share the memory of `source`, with the sizes, strides and dtype of `source`. History, gradient and version of `t` stay; views of `t` made
 * before keep the old memory. RuntimeError: the devices differ, or `t` requires a gradient and the dtype of `source` is neither floating point nor
 * complex. */
GRD_API void grd_set_data(grd_tensor *t, grd_tensor *source);

/* Makes `t` share the storage of `source`, with the given sizes, strides and offset in elements of the dtype of `t` (PyTorch's Tensor.set_), and
 * increments the version counter. The history of `t` stays. RuntimeError: the errors of grd_from_storage, or the devices differ. */
GRD_API void grd_set_storage(grd_tensor *t, grd_tensor *source, grd_dims_view sizes, grd_dims_view strides, int64_t offset);

/* ---- Resizing storages ------------------------------------------------------------------------------------------------- */
/* True if the n tensors, which must differ from each other, are all tensors over one storage. Only then can the storage be given new memory, because
 * each tensor holds the address of its first element, which must be updated. TypeError: n is 0, or an entry is NULL. */
GRD_API bool grd_storage_owned_by(grd_tensor *const *tensors, int64_t n);
/* True if the library itself allocated the storage of `t`, on the CPU, and it is not shared with other processes. */
GRD_API bool grd_storage_resizable(const grd_tensor *t);
/* Changes the size of the storage of the n tensors to `bytes`; added bytes are 0. The tensors keep their sizes; elements beyond the end of the
 * storage read as 0. False, with RuntimeError: the storage is not resizable, or other tensors also lie over it. */
GRD_API bool grd_storage_resize(grd_tensor *const *tensors, int64_t n, int64_t bytes);

/* ---- Comparing tensors ----------------------------------------------------------------------------------------------- */
/* True if both have the same sizes and equal elements, after type promotion. NaN is not equal to NaN. */
GRD_API bool grd_equal(grd_tensor *a, grd_tensor *b);
/* True if |a - b| <= atol + rtol * |b| for all elements, which broadcast; infinities must be equal. equal_nan: NaN is close to NaN.
 * RuntimeError unless the dtypes are the same and the tolerances are not negative. */
GRD_API bool grd_allclose(grd_tensor *a, grd_tensor *b, double rtol, double atol, bool equal_nan);

/* ---- Printing ------------------------------------------------------------------------------------------------------- */
typedef struct grd_print_options {
    int precision;     /* digits after the point; 4 */
    int64_t threshold; /* a tensor with more elements is summarized; 1000 */
    int64_t edge;      /* elements at each end of a dimension in a summary; 3 */
    int line_width;    /* 80 */
    int sci_mode;      /* -1: decide from the values; 0: never; 1: always */
} grd_print_options;

GRD_API grd_print_options grd_print_options_get(void);
GRD_API void grd_print_options_set(grd_print_options options);
/* Returns the tensor as PyTorch prints it, "tensor([1., 2.])", allocated with malloc; the caller frees it. NULL on failure. */
GRD_API char *grd_to_string(grd_tensor *t);
/* Returns the same text with `name` in the place of "tensor": "MyTensor([1., 2.])". */
GRD_API char *grd_to_string_as(grd_tensor *t, const char *name);
/* Prints grd_to_string(t) and a newline to standard output. */
GRD_API void grd_print(grd_tensor *t);
/* Returns a picture of a strided tensor, as the text of an SVG file: the cells of its storage with their numbers, and beside them its elements
 * with their indices, each in the color of the cell it is read from. Sizes, strides and offset stand above; the tooltip of an element is the sum
 * that leads to its cell, "[1, 2]: 0 + 1·4 + 2·1 is storage cell 6". malloc'ed, the caller frees it. NULL on failure.
 * As in printing, the middle of each dimension is left out where there are more elements than the print options' threshold. Where the storage has
 * more cells than that, those that no drawn element is read from are left out. Elements on other devices than the cpu are drawn without values.
 * RuntimeError: more than 4096 elements are left to draw, or `t` is a batch tensor. NotImplementedError: `t` is a wrapper. */
GRD_API char *grd_draw_strides(grd_tensor *t);

GRD_END_DECLS
#endif
