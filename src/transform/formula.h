/* Declares functions that formulas for batch tensors (the key `batch` of schema entries) call in addition to operators. codegen/functions.py
 * reads the declarations of these functions in this file. Tensor arguments are physical tensors: dimension 0 is the batch of vmap. Sizes and dims
 * are those of one element of the batch. The results are temporary tensors of the innermost open scope (grd_scope_open), which frees them. */
#ifndef GRD_TRANSFORM_FORMULA_H
#define GRD_TRANSFORM_FORMULA_H

#include "core/tensor.h"

/* Returns the physical tensor `t` with dimensions of size 1 inserted after dimension 0, which is the batch. In the result, one element of the batch
 * has at least `rank` dimensions. */
grd_tensor *grd_batch_aligned(grd_tensor *t, int64_t rank);
/* Returns the physical tensor `t`, whose dimension 0 is the batch. If an element of the batch is zero-dimensional, a dimension of size 1 is
 * inserted after dimension 0. */
grd_tensor *grd_batch_lifted(grd_tensor *t);
/* Returns the physical tensor `t`, whose dimension 0 is the batch, as a matrix with one row for each element of the batch. */
grd_tensor *grd_batch_rows(grd_tensor *t);
/* Returns a list that begins with the size of the batch, followed by `sizes`. */
grd_dims grd_batch_sizes(grd_dims sizes);
/* Returns a list that begins with 1 (for the batch dimension), followed by `repeats`. */
grd_dims grd_batch_repeats(grd_dims repeats);
/* Converts the dimension `dim` of one element of the batch to the dimension of the physical tensor, whose dimension 0 is the batch. An element has
 * `rank` dimensions. Returns 0, with IndexError, if `dim` is out of range. */
int64_t grd_batch_dim(int64_t dim, int64_t rank);
/* Converts the dimensions `dims` of one element of the batch to dimensions of the physical tensor, whose dimension 0 is the batch. An element has
 * `rank` dimensions. */
grd_dims grd_batch_dims(grd_dims dims, int64_t rank);
/* Returns all dimensions of the physical tensor `t` except dimension 0, which is the batch. */
grd_dims grd_batch_all(const grd_tensor *t);
/* Returns the number of dimensions that one element of the batch has in `a` or in `b`, whichever is larger. */
int64_t grd_batch_rank(const grd_tensor *a, const grd_tensor *b);
/* If each element of vmap's batch is itself a batch of images (with channels and `n` more dimensions), returns `t` with both batch dimensions
 * merged into one. If each element is one image, returns `t` unchanged. */
grd_tensor *grd_batch_images(grd_tensor *t, int64_t n);
/* Undoes grd_batch_images(t, n) for `result`, which was computed from the tensor that grd_batch_images returned. If that call merged two batch
 * dimensions, separates the first dimension of `result` into two dimensions again. */
grd_tensor *grd_batch_images_back(grd_tensor *result, const grd_tensor *t, int64_t n);
/* Returns `vector` as a matrix with one row for each element of the batch. `vector` holds the same number of entries for each element. */
grd_tensor *grd_batch_split(grd_tensor *vector);
/* True if all elements of the batch share their memory (the stride of the batch dimension is 0), or if there is at most one element. */
bool grd_batch_is_shared(const grd_tensor *t);
/* True if all elements of the batch share their memory (grd_batch_is_shared) and no gradient is recorded for `t`. */
bool grd_batch_is_constant(const grd_tensor *t);
/* Returns element 0 of the batch, as a tensor without the batch dimension. */
grd_tensor *grd_batch_first(grd_tensor *t);

/* Returns an index tensor for scatter or gather along dimension `dim` of the physical tensor `like`. It is made from `index`, which holds one vector
 * of indices for each element of the batch. The result has the length of the vector along `dim` and otherwise the sizes of `like`. */
grd_tensor *grd_batch_along(grd_tensor *index, const grd_tensor *like, int64_t dim);
/* Returns index_select along dimension `dim` of `self`, whose dimension 0 is the batch. `index` holds a vector of indices for each element of the
 * batch. */
grd_tensor *grd_batch_index_select(grd_tensor *self, int64_t dim, grd_tensor *index);
/* Returns index() for each element of the batch. `dims` lists the indexed dims; if it is absent, the first dims are indexed. Raises RuntimeError for
 * a mask that differs between the elements of the batch. */
grd_tensor *grd_batch_index(grd_tensor *self, grd_tensors indices, grd_dims dims);
/* Returns index_put() for each element of the batch. `dims` lists the indexed dims; if it is absent, the first dims are indexed. Raises RuntimeError
 * for a mask that differs between the elements of the batch. */
grd_tensor *grd_batch_index_put(grd_tensor *self, grd_tensors indices, grd_tensor *values, bool accumulate, grd_dims dims);
/* Returns embedding() for each element of the batch, i.e. the rows of its weight that its indices select. The rows for `padding_idx` have no
 * gradient. */
grd_tensor *grd_batch_embedding(grd_tensor *weight, grd_tensor *indices, int64_t padding_idx);
/* Returns the gradient of grd_batch_embedding with respect to the weight. `sizes` are the sizes of one element's weight. */
grd_tensor *grd_batch_embedding_gradient(grd_tensor *grad, grd_dims sizes, grd_tensor *indices, int64_t padding_idx, bool scale);
/* Returns cat() for each element of the batch, along dim `dim` of the elements. */
grd_tensor *grd_batch_cat(grd_tensors tensors, int64_t dim);

/* Returns `t` with the batch dimension merged into the channel dimension. `t` holds images for a convolution whose weight has `rank` dimensions. In
 * this way a batch of convolutions is computed as one grouped convolution, in which each element of the batch has its own groups. */
grd_tensor *grd_batch_into_channels(grd_tensor *t, int64_t rank);
/* Undoes grd_batch_into_channels for the result `t` of the convolution. Splits the channels into `count` equal parts, one for each element of the
 * batch, and returns a tensor whose dimension 0 is the batch. */
grd_tensor *grd_batch_from_channels(grd_tensor *t, int64_t rank, int64_t count);
/* Returns `sizes`, the sizes of images, with the number of channels multiplied by `count`. The images are for a convolution whose weight has `rank`
 * dimensions. */
grd_dims grd_batch_channel_sizes(grd_dims sizes, int64_t rank, int64_t count);
/* Returns `sizes` with the size of dimension `dim` multiplied by `count`. */
grd_dims grd_batch_times(grd_dims sizes, int64_t dim, int64_t count);
/* Returns the list `numbers` repeated once for each element of the batch. */
grd_dims grd_batch_each(grd_dims numbers);
/* Returns the number of dimensions of a convolution's weight. The list `weight` holds its sizes. */
int64_t grd_conv_rank(grd_dims weight);

/* Returns isin(elements, test_elements) for each element of the batch. */
grd_tensor *grd_batch_isin(grd_tensor *elements, grd_tensor *test_elements, bool invert);
/* Returns the sizes of the matrix product of `a` and `b`. In both, each element of vmap's batch is itself a batch of matrices. */
grd_dims grd_batch_product_sizes(const grd_tensor *a, const grd_tensor *b);

/* Returns for each target the weight of its class, for nll_loss. The weight is 0 for a target equal to `ignore_index`. `weight` is NULL if all
 * weights are 1. */
grd_tensor *grd_batch_class_weights(const grd_tensor *self, grd_tensor *target, grd_tensor *weight, int64_t ignore_index);
/* Returns for each target the loss -self * weights at the target's class, for nll_loss. The loss is 0 for a target equal to `ignore_index`. */
grd_tensor *grd_batch_class_losses(grd_tensor *self, grd_tensor *target, grd_tensor *weights, int64_t ignore_index);
/* Returns the losses of each element of the batch, reduced as `reduction` says: "none", "sum" or "mean". */
grd_tensor *grd_batch_loss(grd_tensor *losses, const char *reduction);

#endif
