/* Declares functions of tensors that are not operators: lifetime, sizes and strides, data, printing. Operators are in gradus/ops.h. */
#ifndef GRADUS_TENSOR_H
#define GRADUS_TENSOR_H

#include "gradus/types.h"

GRD_BEGIN_DECLS

/* Returns the tensor that a failed operator returns: a zero-dimensional float32 NaN that is never freed. It is not NULL, because NULL stands for
 * an absent optional argument. */
GRD_API grd_tensor *grd_failed_tensor(void);
#define grd_failed (grd_failed_tensor())

/* ---- Lifetime ---------------------------------------------------------------------------------------------------- */
/* Takes a reference for the caller, so that `t` outlives the scope in which it was made. Returns `t`. */
GRD_API grd_tensor *grd_keep(grd_tensor *t);
/* Gives up a reference that grd_keep took. There must be exactly one grd_drop for each grd_keep, and none for the reference that a scope owns;
 * GRADUS_DEBUG=lifetimes reports a grd_drop too many. NULL is allowed. */
GRD_API void grd_drop(grd_tensor *t);

/* ---- From and to memory -------------------------------------------------------------------------------------------- */
/* Returns a new contiguous CPU tensor with a copy of the elements at `data`. Their number is the product of the sizes, and their dtype is `dtype`. */
GRD_API grd_tensor *grd_from_data(const void *data, grd_dims_view sizes, grd_dtype dtype);
/* Returns a tensor over memory that the caller owns. The first element is `offset` elements after `data`, which allows negative strides: over the
 * numbers 3, 4, 5, grd_from_memory(data, grd_dims(3), grd_dims(-1), 2, ...) is {5, 4, 3}. Strides are in elements; an absent list means
 * contiguous. When the last tensor over the memory is freed, release(context) is called once, on any thread; `release` may be NULL. On failure
 * `release` is not called, and the caller still owns the memory. The caller must make sure that all elements are inside the memory, because the
 * library does not know its size. Raises RuntimeError if an element would be before `data`, and TypeError if `data` is NULL and the tensor is not
 * empty. */
GRD_API grd_tensor *grd_from_memory(void *data, grd_dims_view sizes, grd_dims_view strides, int64_t offset, grd_dtype dtype,
                                    void (*release)(void *context), void *context);
/* Returns a tensor with the given sizes, strides and dtype over the storage of `owner`. The tensor has no autograd history and does not count as
 * a view of `owner`. Strides and offset are in elements of `dtype`. Raises RuntimeError if an element would be outside the storage or the memory
 * is not aligned for `dtype`. */
GRD_API grd_tensor *grd_from_storage(grd_tensor *owner, grd_dims_view sizes, grd_dims_view strides, int64_t offset, grd_dtype dtype);
/* Returns a zero-dimensional tensor with this value. Type promotion treats the tensor as a Python number. */
GRD_API grd_tensor *grd_number(grd_scalar value);
/* Returns the element of a one-element tensor. Raises RuntimeError if `t` has no element or several. On failure returns NaN (of kind FLOAT). */
GRD_API grd_scalar grd_item(grd_tensor *t);
/* Returns grd_item(t) as a double, converted by grd_scalar_double. */
GRD_API double grd_item_double(grd_tensor *t);
/* Returns grd_item(t) as an integer, converted by grd_scalar_int64. */
GRD_API int64_t grd_item_int64(grd_tensor *t);
/* Writes the elements of `t`, in row-major order and converted to `dtype`, to `ret_data`, which must have room for all elements. */
GRD_API void grd_to_memory(grd_tensor *t, void *ret_data, grd_dtype dtype);

/* ---- Geometry: never fails, never dispatches ------------------------------------------------------------------------- */
GRD_API int64_t grd_ndim(const grd_tensor *t);
GRD_API int64_t grd_numel(const grd_tensor *t);
GRD_API grd_dims_view grd_sizes(const grd_tensor *t);   /* valid while `t` lives */
GRD_API grd_dims_view grd_strides(const grd_tensor *t); /* in elements; valid while `t` lives */
/* Returns the size of dimension `dim`, which counts from the end if it is negative. Returns 0, with IndexError, if `dim` is out of range. */
GRD_API int64_t grd_size(const grd_tensor *t, int64_t dim);
/* Returns the stride of dimension `dim` in elements; a negative `dim` counts from the end. Returns 0, with IndexError, if `dim` is out of range. */
GRD_API int64_t grd_stride(const grd_tensor *t, int64_t dim);
GRD_API int64_t grd_offset(const grd_tensor *t); /* number of elements from the start of the storage to the first element */
GRD_API grd_dtype grd_tensor_dtype(const grd_tensor *t);
GRD_API grd_device grd_tensor_device(const grd_tensor *t);
GRD_API grd_layout grd_tensor_layout(const grd_tensor *t);
GRD_API bool grd_is_contiguous(const grd_tensor *t);
GRD_API bool grd_is_channels_last(const grd_tensor *t);
/* Returns the address of the first element; NULL on the meta device. If `t` is on a device of a plug-in, only the device's kernels may dereference
 * the address. Writing through the address does not change the version counter, so backward does not notice that a saved tensor has changed. For a
 * batch tensor returns NULL, with RuntimeError. */
GRD_API void *grd_data(const grd_tensor *t);
/* True for a complex tensor whose elements are the conjugates of the values in memory (grd_conj). Operators compute with the elements. Code that
 * reads the memory itself (grd_data) must call grd_resolve_conj first. */
GRD_API bool grd_is_conj(const grd_tensor *t);
/* True for a real tensor whose elements are the negatives of the values in memory, e.g. the imaginary part of a tensor for which grd_is_conj is
 * true. Code that reads the memory itself (grd_data) must call grd_resolve_neg first. */
GRD_API bool grd_is_neg(const grd_tensor *t);
/* Returns the size of the storage in bytes. */
GRD_API int64_t grd_storage_bytes(const grd_tensor *t);
/* Returns an address that identifies the storage. Two tensors share a storage exactly if their addresses are equal. The address must not be
 * dereferenced. */
GRD_API const void *grd_storage_identity(const grd_tensor *t);
/* True if both tensors share a storage. */
GRD_API bool grd_same_storage(const grd_tensor *a, const grd_tensor *b);
/* Returns the version counter of the storage, which counts how often operators have written to it in place. Backward raises an error if the
 * version of a saved tensor has changed. */
GRD_API int64_t grd_tensor_version(const grd_tensor *t);
/* Returns the tensor that `t` is a view of, or NULL. */
GRD_API grd_tensor *grd_view_base(const grd_tensor *t);

/* Returns the dtype to which an operator promotes `n` inputs, as torch.result_type does. Tensors with dimensions have priority over zero-dimensional
 * tensors, and zero-dimensional tensors over numbers (grd_number). An input of lower priority matters only if its category (bool, integer, floating
 * point, complex) is higher than that of the inputs with priority over it. NULL entries are skipped. Returns GRD_DTYPE_NONE, with RuntimeError, if
 * the dtypes do not promote. */
GRD_API grd_dtype grd_result_type(grd_tensor *const *inputs, int n);

/* Broadcasts the shapes `a` and `b`. Writes the sizes of the result to ret_sizes, which has room for GRD_MAX_DIMS numbers, and their number to
 * ret_ndim. Returns false if the shapes do not broadcast, with RuntimeError "The size of tensor a (3) must match the size of tensor b (4) at
 * non-singleton dimension 1". */
GRD_API bool grd_broadcast_shapes(grd_dims_view a, grd_dims_view b, int64_t *ret_sizes, int64_t *ret_ndim);

/* ---- Data without history --------------------------------------------------------------------------------------------- */
/* Returns a tensor over the memory of `t` that has no autograd history and its own version counter. Autograd does not notice when the returned
 * tensor is written. */
GRD_API grd_tensor *grd_alias(grd_tensor *t);
/* Makes `t` share the memory of `source` and take over the sizes, strides and dtype of `source`. `t` keeps its history, gradient and version.
 * Views of `t` that exist already keep the old memory. Raises RuntimeError if the devices differ, or if `t` requires a gradient and the dtype of
 * `source` is neither floating point nor complex. */
GRD_API void grd_set_data(grd_tensor *t, grd_tensor *source);

/* Makes `t` share the storage of `source` (PyTorch's Tensor.set_) with the given sizes, strides and offset. Strides and offset count elements of the
 * dtype of `t`. Increments the version counter. `t` keeps its history. Raises RuntimeError if the devices differ, if an element would be outside the
 * storage, or if the memory is not aligned for the dtype. */
GRD_API void grd_set_storage(grd_tensor *t, grd_tensor *source, grd_dims_view sizes, grd_dims_view strides, int64_t offset);

/* ---- Resizing storages ------------------------------------------------------------------------------------------------- */
/* True if the `n` tensors, which must be different tensors, are all the tensors over one storage. The storage can get new memory only if all its
 * tensors are listed, because each tensor stores the address of its first element, which must be updated. Raises TypeError if `n` is 0 or an entry
 * is NULL. */
GRD_API bool grd_storage_owned_by(grd_tensor *const *tensors, int64_t n);
/* True if the library itself allocated the storage of `t` on the CPU and the storage is not shared with other processes. */
GRD_API bool grd_storage_resizable(const grd_tensor *t);
/* Changes the size of the storage of the `n` tensors to `bytes`. Added bytes are 0. The sizes of the tensors do not change, and their elements
 * beyond the end of the storage read as 0. Returns false, with RuntimeError, if the storage is not resizable or the `n` tensors are not all the
 * tensors over it. */
GRD_API bool grd_storage_resize(grd_tensor *const *tensors, int64_t n, int64_t bytes);

/* ---- Comparing tensors ----------------------------------------------------------------------------------------------- */
/* True if `a` and `b` have the same sizes and, after type promotion, equal elements. NaN is not equal to NaN. */
GRD_API bool grd_equal(grd_tensor *a, grd_tensor *b);
/* True if |a - b| <= atol + rtol * |b| for all elements of the broadcast tensors. Infinities must be equal, and NaN is close to NaN only with
 * `equal_nan`. Raises RuntimeError if the dtypes differ or a tolerance is negative. */
GRD_API bool grd_allclose(grd_tensor *a, grd_tensor *b, double rtol, double atol, bool equal_nan);

/* ---- Printing ------------------------------------------------------------------------------------------------------- */
typedef struct grd_print_options {
    int precision;     /* digits after the decimal point; initially 4 */
    int64_t threshold; /* a tensor with more elements is summarized, i.e. the middle of its dimensions is left out; initially 1000 */
    int64_t edge;      /* number of elements shown at each end of a dimension in a summarized tensor; initially 3 */
    int line_width;    /* number of characters in a line; initially 80 */
    int sci_mode;      /* scientific notation: 0 never, 1 always, -1 (initially) depending on the values */
} grd_print_options;

GRD_API grd_print_options grd_print_options_get(void);
GRD_API void grd_print_options_set(grd_print_options options);
/* Returns the tensor as PyTorch prints it, "tensor([1., 2.])", in a string that the caller frees with free(). Returns NULL on failure. */
GRD_API char *grd_to_string(grd_tensor *t);
/* Returns the string that grd_to_string returns, but with `name` in place of "tensor": "MyTensor([1., 2.])". */
GRD_API char *grd_to_string_as(grd_tensor *t, const char *name);
/* Prints grd_to_string(t) and a newline to standard output. */
GRD_API void grd_print(grd_tensor *t);
/* Returns a drawing of a strided tensor as the text of an SVG file, in a string that the caller frees with free(). The drawing shows the cells of
 * the storage with their numbers, and beside them the elements of the tensor with their indices, each in the color of its cell. The sizes, strides
 * and offset are printed above. The tooltip of an element shows how its cell is computed, "[1, 2]: 0 + 1·4 + 2·1 is storage cell 6". If the tensor
 * has more elements than the print options' threshold, the middle of each dimension is left out, as in printing. If the storage has more cells
 * than the threshold, cells without an element in the drawing are left out. Elements on devices other than the CPU are drawn without values.
 * Returns NULL on failure: RuntimeError if the drawing would have more than 4096 elements or `t` is a batch tensor, NotImplementedError if `t` is
 * a wrapper. */
GRD_API char *grd_draw_strides(grd_tensor *t);

GRD_END_DECLS
#endif
