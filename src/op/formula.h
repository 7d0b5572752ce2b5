/* Functions that formulas in schema/ call besides operators: codegen/functions.py reads them here. Each is in the file of its family. Like operators they
 * return pooled tensors, and grd_failed while an error is pending; a check raises its error and returns false. */
#ifndef GRD_OP_FORMULA_H
#define GRD_OP_FORMULA_H

#include "op/common.h"
#include "op/composite.h"

/* False where an element is outside of [low, high]. */
bool grd_composite_within(grd_tensor *t, double low, double high);
/* t expanded to the sizes that it and the other broadcast to, as PyTorch's functions do before they call their operators. */
grd_tensor *grd_composite_broadcast(grd_tensor *t, const grd_tensor *other);
/* A vector as it broadcasts along one dimension of a tensor of `ndim`; NULL stays. */
grd_tensor *grd_composite_along(grd_tensor *vector, int64_t ndim, int64_t dim);
/* A factory's result, which is filled in place by now: that would be refused on a leaf that needs a gradient. RuntimeError: its dtype has none. */
grd_tensor *grd_composite_requiring(grd_tensor *t, bool requires_grad);
/* As many last dims as a shape has, -n to -1, and all dims of sizes but one: in pooled memory. */
grd_dims grd_last_dims(grd_dims shape);
grd_dims grd_dims_but(grd_dims sizes, int64_t dim);

/* Elements for each result of a reduction along `dim`, none: all; 0 and an error where there is no such dim. */
double grd_reduced_count(grd_dims sizes, grd_dims dim);
bool grd_is_empty(grd_dims sizes);
/* The sizes of a reduction along `dim`, none: all, whose reduced dims are kept as 1. */
grd_dims grd_kept_sizes(grd_dims sizes, grd_dims dim);
/* Sizes [before, n, after] of the same elements, n those along `dim`; all in one line for none. */
grd_dims grd_line_sizes(grd_dims sizes, grd_scalar dim);
/* The product of sizes that a tensor has, and the least of at least one. */
int64_t grd_numel_of(grd_dims sizes);
int64_t grd_least_of(grd_dims sizes);
/* The order of dims, lengths of a border or shifts along dims of a tensor of such sizes that undo the given ones. */
grd_dims grd_inverse_order(grd_dims dims);
grd_dims grd_pad_back(grd_dims pad);
grd_dims grd_shifts_back(grd_dims shifts, grd_dims dims, grd_dims sizes);
/* The border behind the elements that makes `to` of sizes `from`. */
grd_dims grd_pad_to(grd_dims from, grd_dims to);
/* Sizes of what `repeat` makes of `sizes`, in which each repetition is a dimension of its own, before that which it repeats; once: of size 1. */
grd_dims grd_repeat_sizes(grd_dims repeats, grd_dims sizes, bool once);
/* The sizes of the elements of src that the index of scatter uses. */
grd_dims grd_used_sizes(grd_dims index, grd_dims src);
/* Where the dimension of the windows of unfold stands beside that of their places. */
int64_t grd_window_dim(grd_dims sizes, int64_t dimension);
/* A place in the storage, none: where the tensor begins; from the storage on, or from the offset of the tensor on. */
int64_t grd_offset_given(grd_scalar storage_offset, int64_t offset);
int64_t grd_offset_within(grd_scalar storage_offset, int64_t offset);
/* True if elements of that geometry may share memory. */
bool grd_geometry_overlaps(grd_dims sizes, grd_dims strides);
/* a / b with 0 where b is 0. */
grd_tensor *grd_quotient_or_zero(grd_tensor *a, grd_tensor *b);
/* RuntimeError: the extreme of nothing. NotImplementedError: no arithmetic in the dtype. */
bool grd_norm_check(const grd_tensor *self, double p, grd_dims dim, grd_dtype as);

/* How losses are reduced. INVALID, with ValueError, for any name but the three that every loss has: mean (or NULL), sum and none. */
enum grd_loss_reduction { GRD_LOSS_MEAN, GRD_LOSS_SUM, GRD_LOSS_NONE, GRD_LOSS_INVALID };
enum grd_loss_reduction grd_loss_reduction_of(const char *name);
bool grd_loss_check(const char *reduction);
grd_tensor *grd_loss_reduced(grd_tensor *loss, const char *reduction);
/* The share of each loss in what they are reduced to: of a mean 1 / their number, which is that of a and b broadcast, and otherwise 1. */
double grd_loss_share(const char *reduction, grd_dims a, grd_dims b);
/* The dimension of an input's classes: 1, or 0 of a sample without a batch. */
int64_t grd_class_dim(grd_dims sizes);
/* RuntimeError: the weights, unless NULL, are not one for each class. */
bool grd_loss_check_weight(const grd_tensor *weight, int64_t classes);
/* RuntimeError: an input that is no vector or matrix, a weight (C, …, in) of other rows than it has, a bias of other classes, or a vector with several dimensions
 * of classes. */
bool grd_linear_cross_entropy_check(const grd_tensor *input, const grd_tensor *linear_weight, const grd_tensor *linear_bias);
/* The sizes of a weight (C, …, in) without the last; and those of the scores of an input (…, in): the classes after its other dimensions. */
grd_dims grd_linear_classes(grd_dims linear_weight);
grd_dims grd_logits_sizes(grd_dims input, grd_dims classes);
/* A row that counts as padding, from the end if negative; -1 for none. RuntimeError: the table has no such row. */
int64_t grd_padding_row(grd_scalar padding_idx, const grd_tensor *weight);
/* A variance for each element of the input, or with a size of 1 along one dimension; it has a last dimension of 1 where it is one for each row. ValueError: other sizes, a
 * negative variance. */
grd_tensor *grd_loss_variance(const grd_tensor *input, grd_tensor *var);
/* What multi_margin_loss asks of its arguments. ValueError: a p that is neither 1 nor 2, a weight that is no vector. */
bool grd_multi_margin_check(const grd_tensor *self, const grd_tensor *target, double p, const grd_tensor *weight);
/* Checks what cdist asks of its operands, and whether distances come from a product of them. ValueError: no such mode. */
bool grd_cdist_check(const grd_tensor *x1, const grd_tensor *x2, double p);
bool grd_cdist_by_product(const char *mode, double p, const grd_tensor *x1, const grd_tensor *x2);

/* RuntimeError: inputs (…, A) and (…, B) of other batches or dtypes than each other, or a weight not (K, A, B), or a bias, unless NULL, not (K). */
bool grd_bilinear_check(const grd_tensor *input1, const grd_tensor *input2, const grd_tensor *weight, const grd_tensor *bias);
/* RuntimeError: the last sizes of the input, or those of a weight that is not NULL, are others. */
bool grd_layer_norm_check(const grd_tensor *input, grd_dims shape, const grd_tensor *weight);
/* RuntimeError: fewer than 2 dimensions, statistics, weights or biases that are not one for each channel or of another dtype, or no statistics where they are
 * not the input's `own`. */
bool grd_check_batch_norm(const grd_tensor *input, const grd_tensor *running_mean, const grd_tensor *running_var, const grd_tensor *weight,
                          const grd_tensor *bias, bool own);
/* RuntimeError: fewer than 2 dimensions, or channels, dimension 1, that do not divide into so many groups. */
bool grd_check_groups(const grd_tensor *input, int64_t num_groups);
/* Sizes [samples, groups, elements of a group] of the same elements. */
grd_dims grd_group_sizes(grd_dims sizes, int64_t num_groups);
/* The borders of pad in the last n dimensions, as a tensor of its own. `mode`: "reflect" or "replicate". RuntimeError: not 2 * n lengths. */
grd_tensor *grd_pad_bordered(grd_tensor *self, grd_dims pad, const char *mode, int64_t n);
/* RuntimeError: input and weight of a convolution over n dimensions have others. */
bool grd_check_conv(const grd_tensor *input, const grd_tensor *weight, int64_t n, const char *name);
/* The dimension of channels in an image of that shape, with samples or without. */
int64_t grd_conv_channel(grd_dims image, grd_dims weight);
/* RuntimeError: `padding` is neither "valid" nor "same", or that of a convolution with strides. */
bool grd_check_conv_padding(const char *padding, grd_dims weight, grd_dims stride, grd_dims dilation);
/* The padding on both sides that the word stands for, and the input, with one more behind it where "same" asks for an odd number. */
grd_dims grd_conv_padding(const char *padding, grd_dims weight, grd_dims dilation);
grd_tensor *grd_conv_padded(grd_tensor *input, grd_dims weight, const char *padding, grd_dims dilation);
/* The sizes of images of n dimensions. */
grd_dims grd_image_sizes(grd_dims sizes, int64_t n);
/* The sizes of a grid of points for images of that size; with the points in one dimension, if `merged`. */
grd_dims grd_affine_sizes(grd_dims size, bool merged);
/* The turns that undo rot90. */
int64_t grd_turns_back(int64_t k);
/* The groups that undo channel_shuffle. */
int64_t grd_groups_back(grd_dims sizes, int64_t groups);
grd_dims grd_image_sizes_as(grd_dims sizes, grd_dims image); /* of as many dimensions as `image` */
/* All sizes, with those of images of n dimensions in one. */
grd_dims grd_plane_sizes(grd_dims sizes, int64_t n);
bool grd_is_flat(grd_dims size); /* of two dimensions */
/* Windows of rows as those of images with one row: one number, and that for the other dimension before it. An empty list stays. */
grd_dims grd_window_of_row(grd_dims numbers, int64_t above);
/* Rows as images of one row. RuntimeError: self is no row or batch of rows, or a list has not one number; a stride may be absent. */
grd_tensor *grd_row_images(const char *name, grd_tensor *self, grd_dims kernel_size, grd_dims stride, grd_dims padding, grd_dims dilation);
grd_tensor *grd_adaptive_row_images(const char *name, grd_tensor *self, grd_dims output_size);
/* True if every window of images of n dimensions is a whole image. */
bool grd_is_average(const grd_tensor *self, grd_dims output_size, int64_t n);
/* The number of elements of a window of n dimensions. */
double grd_window_elements(grd_dims kernel_size, int64_t n);
/* Returns what a place of scatter_reduce starts from when it does not count itself. */
grd_scalar grd_scatter_identity(const char *reduce, grd_dtype dtype);
/* How many values a mean is over at each place; 1 where there is none. */
grd_tensor *grd_scatter_counts(grd_tensor *self, int64_t dim, grd_tensor *index, grd_tensor *src, bool include_self);
/* RuntimeError: no matrices, or none that are square. `function` stands before the text. */
bool grd_decomposition_check_square(const grd_tensor *x, const char *function);
bool grd_householder_check(const grd_tensor *input, const grd_tensor *tau);
grd_tensor *grd_composite_columns(grd_tensor *matrices);
/* LinAlgError: a leading minor is not positive, by what _cholesky_factor says. */
bool grd_cholesky_check(grd_tensor *info, const char *function);
bool grd_cholesky_solve_check(const grd_tensor *b, const grd_tensor *u);
bool grd_triangular_solve_check(const grd_tensor *b, const grd_tensor *a);
/* The number of columns of matrices. */
int64_t grd_columns_of(grd_dims sizes);
/* The shorter side of m x n matrices, whose decomposition is differentiated, and whether it is m. RuntimeError: it has no derivative in that mode. */
int64_t grd_qr_side(grd_dims sizes, const char *mode);
bool grd_qr_is_wide(grd_dims sizes);
/* One noise for each channel of each sample: sizes (N, C, 1, …), of at least two dimensions. */
grd_dims grd_channel_sizes(grd_dims sizes);
/* A number as a floating dtype holds it. */
double grd_rounded_to(double x, grd_dtype dtype);
/* Returns the factor by which alpha_dropout keeps the variance. */
double grd_alpha_dropout_scale(double p);
/* RuntimeError: probabilities that are not finite, or rows of them that sum to 0. */
bool grd_multinomial_check(grd_tensor *p);

/* Of elementwise operators: arithmetic.c. */
/* NotImplementedError: there is no derivative for what is named. */
double grd_underived(const char *what);
static inline bool grd_is_one(grd_scalar s)
{
    return GRD_LIKELY(s.kind == GRD_SCALAR_INT && s.v.i == 1);
}

/* True for a plain number that is not complex. */
bool grd_is_real_number(const grd_tensor *t);
grd_scalar grd_scalar_conj(grd_scalar s);
grd_scalar grd_scalar_negated(grd_scalar s);

/* Checks what torch.add demands of alpha. A half type multiplies by it as that type holds it, bool by its truth: so it is left. */
bool grd_take_alpha(grd_tensor *self, grd_tensor *other, grd_scalar *alpha);
/* A number that is written into the result as it is must fit; in arithmetic it would wrap around as the result does. */
bool grd_check_numbers(grd_tensor *self, grd_tensor *other);
bool grd_check_factor(grd_tensors tensors, grd_scalar value);

bool grd_check_power(grd_tensor *self, grd_tensor *exponent);
/* The exponent where it is a number that leaves the dtype as it is; NaN for others. */
double grd_plain_power(grd_tensor *self, grd_tensor *exponent);

bool grd_check_clamp(grd_tensor *self, grd_tensor *min, grd_tensor *max);
/* A bound beyond an integer dtype would wrap around into it. */
bool grd_check_bounds(grd_tensor *out, grd_tensor *self, grd_scalar min, grd_scalar max);

#endif
