/* Functions that formulas for batch tensors (the `batch` lines of the schema) call besides operators: codegen/functions.py reads them here. Tensors
 * are physical ones, with the batch in front; sizes and dims are those of an element. Results are pooled. */
#ifndef GRD_TRANSFORM_FORMULA_H
#define GRD_TRANSFORM_FORMULA_H

#include "core/tensor.h"

/* Returns t with dimensions of size 1 inserted after the batch dimension, so that an element has at least `rank` dimensions. */
grd_tensor *grd_batch_aligned(grd_tensor *t, int64_t rank);
/* Returns t, with a dimension of size 1 inserted after the batch dimension if an element is zero-dimensional. */
grd_tensor *grd_batch_lifted(grd_tensor *t);
/* Returns t as a matrix with one row per element of the batch. */
grd_tensor *grd_batch_rows(grd_tensor *t);
/* Returns the sizes with the batch size in front. grd_batch_dim and grd_batch_dims return the physical dims for dims of an element of `rank`
 * dimensions. */
grd_dims grd_batch_sizes(grd_dims sizes);
grd_dims grd_batch_repeats(grd_dims repeats); /* with a 1 in front */
int64_t grd_batch_dim(int64_t dim, int64_t rank);
grd_dims grd_batch_dims(grd_dims dims, int64_t rank);
/* Returns all dims of t except the batch dimension. */
grd_dims grd_batch_all(const grd_tensor *t);
/* Returns the larger number of dimensions of an element of a and of b. */
int64_t grd_batch_rank(const grd_tensor *a, const grd_tensor *b);
/* Images of n dimensions of all elements as one batch of images, and results for those as they were; an element without a batch has its own. */
grd_tensor *grd_batch_images(grd_tensor *t, int64_t n);
grd_tensor *grd_batch_images_back(grd_tensor *result, const grd_tensor *t, int64_t n);
/* Returns the vector, which has the same number of elements for each element of the batch, as a matrix with one row per element of the batch. */
grd_tensor *grd_batch_split(grd_tensor *vector);
/* grd_batch_is_shared is true if all elements of the batch are the same memory, grd_batch_is_constant if moreover no gradient is recorded.
 * grd_batch_first returns element 0 of the batch. */
bool grd_batch_is_shared(const grd_tensor *t);
bool grd_batch_is_constant(const grd_tensor *t);
grd_tensor *grd_batch_first(grd_tensor *t);

/* The index of index_add and others, a vector for each element, with the sizes of `like` but along physical dim `dim`, where it has its own: for
 * scatter. */
grd_tensor *grd_batch_along(grd_tensor *index, const grd_tensor *like, int64_t dim);
grd_tensor *grd_batch_index_select(grd_tensor *self, int64_t dim, grd_tensor *index);
/* index and index_put. RuntimeError: a mask that differs between the elements of the batch. */
grd_tensor *grd_batch_index(grd_tensor *self, grd_tensors indices, grd_dims dims);
grd_tensor *grd_batch_index_put(grd_tensor *self, grd_tensors indices, grd_tensor *values, bool accumulate, grd_dims dims);
/* The rows of the weight that the indices name, and the gradient of that. */
grd_tensor *grd_batch_embedding(grd_tensor *weight, grd_tensor *indices, int64_t padding_idx);
grd_tensor *grd_batch_embedding_gradient(grd_tensor *grad, grd_dims sizes, grd_tensor *indices, int64_t padding_idx, bool scale);
grd_tensor *grd_batch_cat(grd_tensors tensors, int64_t dim);

/* A batch of convolutions is one with as many times the groups: images, or places, of a convolution of `rank` weight dimensions whose channels are
 * those of all elements one after the other; what comes out, given back to `count` elements; sizes likewise. */
grd_tensor *grd_batch_into_channels(grd_tensor *t, int64_t rank);
grd_tensor *grd_batch_from_channels(grd_tensor *t, int64_t rank, int64_t count);
grd_dims grd_batch_channel_sizes(grd_dims sizes, int64_t rank, int64_t count);
/* The sizes, of which that at `dim` is `count` times as large; a list of numbers once for each element of the batch. */
grd_dims grd_batch_times(grd_dims sizes, int64_t dim, int64_t count);
grd_dims grd_batch_each(grd_dims numbers);
int64_t grd_conv_rank(grd_dims weight);

grd_tensor *grd_batch_isin(grd_tensor *elements, grd_tensor *test_elements, bool invert);
/* The sizes of the product of two lists of matrices for each element of the batch. */
grd_dims grd_batch_product_sizes(const grd_tensor *a, const grd_tensor *b);

/* nll_loss: the weight of each target, 0 where it is ignored; -x * weight at the targets. `weight` may be NULL. */
grd_tensor *grd_batch_class_weights(const grd_tensor *self, grd_tensor *target, grd_tensor *weight, int64_t ignore_index);
grd_tensor *grd_batch_class_losses(grd_tensor *self, grd_tensor *target, grd_tensor *weights, int64_t ignore_index);
/* Losses reduced for each element of the batch. */
grd_tensor *grd_batch_loss(grd_tensor *losses, const char *reduction);

#endif
