/* Functions that formulas in schema/ call besides operators: codegen/functions.py reads them here. Each is in the file of its family. Like operators they
 * return pooled tensors, and grd_failed while an error is pending; a check raises its error and returns false. */
#ifndef GRD_OP_FORMULA_H
#define GRD_OP_FORMULA_H

#include "core/iter.h"
#include "op/checks.h"
#include "op/composite.h"
#include "op/copy.h"
#include "op/dtypes.h"
#include "op/out.h"
#include "op/sizes.h"

/* Elements for each result of a reduction along `dim`, none: all; 0 and an error where there is no such dim. */
double grd_reduced_count(grd_dims sizes, grd_dims dim);
/* The dtype of a sum of elements of self, which are read as floating-point numbers: that of out= where it has more digits. `out` may be NULL. */
grd_dtype grd_summing_dtype(const grd_tensor *out, const grd_tensor *self);
/* Of torch.fft: fft_arguments.c. The number, in a transform of n real numbers, of the first element behind those whose conjugates are elements, too. */
int64_t grd_fft_paired(int64_t n);
/* The input, integers and bool as the default float, if `complex` as complex numbers. RuntimeError: a dtype without transforms. */
grd_tensor *grd_fft_input(grd_tensor *self, bool complex);
/* RuntimeError: the input is complex. `function` stands before the text, which calls it so. */
bool grd_fft_check_real(const grd_tensor *self, const char *function, const char *wanted);
/* The length of a transform along `dim`: n, or that of the input, which is half of the transform if `half`. RuntimeError: it is not positive. */
int64_t grd_fft_length(const grd_tensor *self, grd_scalar n, int64_t dim, bool half);
/* The dims of a transform of several, counted from 0, and the input's sizes along them, where s does not say others. RuntimeError: they do not fit each other; there are
 * none, where `function` needs one. */
grd_dims grd_fft_dims(const grd_tensor *self, grd_dims s, grd_dims dim, const char *function);
grd_dims grd_fft_sizes(const grd_tensor *self, grd_dims s, grd_dims dims);
/* The length of the last real dimension; and sizes as they are before a transform to that. */
int64_t grd_fft_real_length(const grd_tensor *self, grd_dims s, grd_dims dims);
grd_dims grd_fft_halved(grd_dims sizes, int64_t length);
/* The input cut, or filled up with zeros, to sizes along dims. */
grd_tensor *grd_fft_resized(grd_tensor *self, grd_dims dims, grd_dims sizes);
/* How _fft_c2c and others divide. RuntimeError: no such norm. */
int64_t grd_fft_normalization(const char *norm, bool forward);
/* The dtype of frequencies: the default float, if none is given. RuntimeError: integers. */
grd_dtype grd_fft_frequency_dtype(grd_dtype dtype, const char *function);
/* The dtype of a window: the default float, if none is given. RuntimeError, of those of torch.signal.windows ValueError: not floating, or a negative length. */
grd_dtype grd_window_dtype(grd_dtype dtype, int64_t length, const char *function);
grd_dtype grd_signal_window_dtype(grd_dtype dtype, int64_t length, const char *function);
/* The dims that fftshift moves, all where none are given, and how far; `back`: how far ifftshift does. */
grd_dims grd_fft_shift_dims(grd_dims sizes, grd_dims dim);
grd_dims grd_fft_shifts(grd_dims sizes, grd_dims dims, bool back);
/* The order of dims, lengths of a border or shifts along dims of a tensor of such sizes that undo the given ones. */
grd_dims grd_inverse_order(grd_dims dims);
grd_dims grd_pad_back(grd_dims pad);
grd_dims grd_shifts_back(grd_dims shifts, grd_dims dims, grd_dims sizes);
/* The strides of a dense tensor whose dimensions lie in memory in an order, outermost first. RuntimeError: that is none of them. */
grd_dims grd_permuted_strides(grd_dims sizes, grd_dims order);
/* Checks the arguments of put. RuntimeError: the dtypes. IndexError: the numbers of elements. */
bool grd_put_check(const grd_tensor *self, const grd_tensor *index, const grd_tensor *source);
/* The border behind the elements that makes `to` of sizes `from`. */
grd_dims grd_pad_to(grd_dims from, grd_dims to);
/* Sizes of what `repeat` makes of `sizes`, in which each repetition is a dimension of its own, before that which it repeats; once: of size 1. */
grd_dims grd_repeat_sizes(grd_dims repeats, grd_dims sizes, bool once);
/* Checks the source of index_add and index_reduce. */
bool grd_check_index_source(const grd_tensor *self, int64_t dim, const grd_tensor *index, const grd_tensor *source);
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

/* Of histograms: histogram.c. The edges of `bins` bins from low to high, or where those are absent from the least to the largest element; 0 to 1 of none. A dimension of
 * -1 is that of histc, where equal ends are none. RuntimeError: there are no bins, or the range is not finite. */
grd_tensor *grd_histogram_edges(grd_tensor *self, int64_t bins, grd_scalar low, grd_scalar high, int64_t dimension);
/* How many rows of self, or how much of their weight, each cell between edges holds; `search` is enum grd_histogram_search. RuntimeError: dtypes or sizes do not fit. */
grd_tensor *grd_histogram_counts(grd_tensor *self, grd_tensors edges, grd_tensor *weight, bool density, int64_t search);

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
/* Checks the arguments of multi_margin_loss. ValueError: a p that is neither 1 nor 2, a weight that is no vector. */
bool grd_multi_margin_check(const grd_tensor *self, const grd_tensor *target, double p, const grd_tensor *weight);
/* Checks what cdist asks of its operands, and whether distances come from a product of them. ValueError: no such mode. */
bool grd_cdist_check(const grd_tensor *x1, const grd_tensor *x2, double p);
bool grd_cdist_by_product(const char *mode, double p, const grd_tensor *x1, const grd_tensor *x2);

/* RuntimeError: batches that are none, or do not fit each other. */
bool grd_addbmm_check(const grd_tensor *batch1, const grd_tensor *batch2);
/* Of schema/combine.toml and schema/arrange.toml. RuntimeError: a tensor that is no vector. */
bool grd_vectors_check(grd_tensors tensors);
/* RuntimeError: fewer than `least` dimensions, or a size along `dim` that does not divide by sections. `name` is the function's. */
bool grd_split_check(const grd_tensor *self, int64_t least, int64_t dim, int64_t sections, const char *name);
/* Of schema/statistics.toml. A fraction as a 0-d tensor of self's dtype. RuntimeError: it is outside of [0, 1]. */
grd_tensor *grd_quantile_fraction(grd_tensor *self, double q);
/* RuntimeError: bool, or a distance that is not real. IndexError: no such dim. `function` stands before the texts. */
bool grd_trapezoid_check(const grd_tensor *y, grd_scalar dx, int64_t dim, const char *function);
/* The places of samples as they broadcast to y. RuntimeError: bool, or not a place for each sample of a line. */
grd_tensor *grd_trapezoid_places(const grd_tensor *y, grd_tensor *x, int64_t dim, const char *function);

/* RuntimeError: inputs (…, A) and (…, B) of other batches or dtypes than each other, or a weight not (K, A, B), or a bias, unless NULL, not (K). */
bool grd_bilinear_check(const grd_tensor *input1, const grd_tensor *input2, const grd_tensor *weight, const grd_tensor *bias);
/* RuntimeError: the last sizes of the input, or those of a weight that is not NULL, are others. */
bool grd_layer_norm_check(const grd_tensor *input, grd_dims shape, const grd_tensor *weight);
/* RuntimeError: fewer than 2 dimensions, statistics, weights or biases that are not one for each channel or of another dtype, or no statistics where they are
 * not the input's `own`. ValueError: one of two statistics. */
bool grd_check_batch_norm(const grd_tensor *input, const grd_tensor *running_mean, const grd_tensor *running_var, const grd_tensor *weight,
                          const grd_tensor *bias, bool own);
/* RuntimeError: one of n parameters, each of which may be NULL, has another dtype than the input. Beside one of a half type all may be float32. */
bool grd_check_parameter_dtypes(const grd_tensor *input, const grd_tensor *const *parameters, int n);
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
bool grd_is_pair(grd_dims size); /* true for two numbers */
/* Windows of rows as those of images with one row: one number, and that for the other dimension before it. An empty list stays. */
grd_dims grd_window_of_row(grd_dims numbers, int64_t above);
/* Rows as images of one row. RuntimeError: self is no row or batch of rows, or a list has not one number; a stride may be absent. */
grd_tensor *grd_row_images(const char *name, grd_tensor *self, grd_dims kernel_size, grd_dims stride, grd_dims padding, grd_dims dilation);
grd_tensor *grd_adaptive_row_images(const char *name, grd_tensor *self, grd_dims output_size);
/* True if every window of images of n dimensions covers the image. */
bool grd_is_average(const grd_tensor *self, grd_dims output_size, int64_t n);
/* The number of elements of a window of n dimensions. */
double grd_window_elements(grd_dims kernel_size, int64_t n);
/* Returns what a place of scatter_reduce starts from when it does not count itself. */
grd_scalar grd_scatter_identity(const char *reduce, grd_dtype dtype);
/* How many values a mean is over at each place; 1 where there is none. */
grd_tensor *grd_scatter_counts(grd_tensor *self, int64_t dim, grd_tensor *index, grd_tensor *src, bool include_self);
/* RuntimeError: no matrices, or none that are square. `function` stands before the text. */
bool grd_decomposition_check_square(const grd_tensor *x, const char *function);
/* RuntimeError: integers or bool. */
bool grd_decomposition_check_inexact(const grd_tensor *x, const char *function);
/* LinAlgError: `values`, eigenvalues or singular values, were not found, by what _linalg_eigh or _linalg_svd says. */
bool grd_spectral_check(grd_tensor *info, const char *function, const char *values);
/* RuntimeError: a dtype without complex numbers; and the same as above, or an element that is not finite. */
bool grd_eig_check_dtype(const grd_tensor *A);
bool grd_eig_check(grd_tensor *info);
/* RuntimeError: any but NULL. */
bool grd_svd_check_driver(const char *driver);
/* Of schema/matrix_norm.toml: RuntimeError for what PyTorch refuses in its words. */
bool grd_vector_norm_check(const grd_tensor *self, grd_scalar ord, grd_dtype as);
bool grd_matrix_norm_check(const grd_tensor *self, grd_dims dim, grd_dtype as);
bool grd_linalg_norm_check(const grd_tensor *self, bool has_ord, grd_dims dim);
bool grd_rank_check(const grd_tensor *self, const grd_tensor *atol, const grd_tensor *rtol, const char *function);
bool grd_pinv_check(const grd_tensor *self, const grd_tensor *atol, const grd_tensor *rtol);
bool grd_lstsq_check(const grd_tensor *self, const grd_tensor *b, const char *driver);
bool grd_cond_check(const grd_tensor *self, grd_scalar p);
bool grd_cond_check_name(const grd_tensor *self, const char *p);
bool grd_frobenius_check(const grd_tensor *self, grd_dims dim);
/* True if linalg.norm is that of matrices, and the dims of it: 0 and 1 where none are given. */
bool grd_norm_is_of_matrices(const grd_tensor *self, grd_dims dim);
grd_dims grd_norm_dims(grd_dims dim);
/* The given dims, or all of self: in pooled memory. */
grd_dims grd_nuclear_dims(const grd_tensor *self, grd_dims dim);
/* The longer side times the distance from 1 to the next number. */
double grd_rank_epsilon(const grd_tensor *self);
/* A number as a tensor of self's real dtype; NULL for none. */
grd_tensor *grd_tolerance_tensor(grd_tensor *self, grd_scalar tolerance);
/* True if b has no dimension of columns. */
bool grd_lstsq_is_vector(const grd_tensor *self, const grd_tensor *b);
/* The given number, or else grd_rank_epsilon. */
double grd_lstsq_rcond(const grd_tensor *self, grd_scalar rcond);
/* Solutions with the strides of PyTorch's: column by column, those of m x n matrices with m > n in the first rows of m x k ones. */
grd_tensor *grd_lstsq_laid(grd_tensor *solution, grd_dims sizes);
/* True if the driver computes residuals: m > n, and where it finds ranks, all of them are n. */
bool grd_lstsq_has_residuals(const grd_tensor *self, grd_tensor *rank, const char *driver);
/* True for matrices of more rows than columns. */
bool grd_is_tall(grd_dims sizes);
/* Sizes of a batch of square matrices, as long and wide as those of `sizes` are along dim -2 or -1: in pooled memory. */
grd_dims grd_square_sizes(grd_dims sizes, int64_t dim);
bool grd_householder_check(const grd_tensor *input, const grd_tensor *tau);
bool grd_ormqr_check(const grd_tensor *input, const grd_tensor *tau, const grd_tensor *other, bool left);
/* The dtype of random vectors that are multiplied by A: float32 for integers. */
grd_dtype grd_lowrank_dtype(const grd_tensor *A);
grd_tensor *grd_composite_columns(grd_tensor *matrices);
/* LinAlgError: a leading minor is not positive, by what _cholesky_factor says. */
bool grd_cholesky_check(grd_tensor *info, const char *function);
bool grd_cholesky_check_dtype(const grd_tensor *x, const char *kernel);
bool grd_cholesky_inverse_check(grd_tensor *triangles);
bool grd_cholesky_solve_check(const grd_tensor *b, const grd_tensor *u);
bool grd_triangular_solve_check(const grd_tensor *b, const grd_tensor *a);
/* The number of columns of matrices. */
int64_t grd_columns_of(grd_dims sizes);
/* The shorter side of m x n matrices, whose decomposition is differentiated, and whether it is m. RuntimeError: it has no derivative in that mode. */
int64_t grd_qr_side(grd_dims sizes, const char *mode);
bool grd_qr_is_wide(grd_dims sizes);
/* Sizes without the last two; rows and columns of matrices; the dimensions of an element, of matrices or at least one more than of pivots for them. */
grd_dims grd_batch_sizes_of(grd_dims sizes);
grd_dims grd_matrix_sizes(grd_dims sizes);
int64_t grd_pivots_rank(const grd_tensor *matrices, const grd_tensor *pivots);
/* Errors of decompositions that found a zero on the diagonal of U, by info: RuntimeError of linalg.lu_factor and its kin, LinAlgError of linalg.solve and linalg.inv. */
bool grd_lu_check(grd_tensor *info, const char *function);
bool grd_solve_check(grd_tensor *info, const char *function);
bool grd_inverse_check(grd_tensor *info, const char *function);
/* RuntimeError: matrices, a B or start vectors X that lobpcg does not take; B and X may be NULL. Sizes of n start vectors; and the default of tol. */
bool grd_lobpcg_check(const grd_tensor *A, const grd_tensor *B, const grd_tensor *X);
grd_dims grd_lobpcg_sizes(grd_dims sizes, int64_t n);
double grd_lobpcg_tolerance(const grd_tensor *A);
/* RuntimeError: a zero on the diagonal of D, by what _ldl_factor says. */
bool grd_ldl_check(grd_tensor *info, const char *function);
/* RuntimeError: half types, which are not decomposed. */
bool grd_decomposition_check_width(const grd_tensor *x, const char *function);
bool grd_lu_unpack_check(const grd_tensor *data, const grd_tensor *pivots, bool unpack_pivots);
bool grd_lu_solve_check(const grd_tensor *lu, const grd_tensor *pivots, const grd_tensor *b, bool left);
bool grd_solve_check_shapes(const grd_tensor *a, const grd_tensor *b, bool left);
/* True if the right sides of linalg.solve are vectors. */
bool grd_solve_is_vector(grd_dims a, grd_dims b);
/* Returns the number that stands for a zero on the diagonal of U, so that a determinant and its derivatives have half of their digits right. */
double grd_small_pivot(grd_dtype dtype);
/* The solution of linalg.solve for vectors in the strides that PyTorch gives it. */
grd_tensor *grd_solve_shaped(grd_tensor *vectors);
/* One noise for each channel of each sample: sizes (N, C, 1, …), of at least two dimensions. */
grd_dims grd_channel_sizes(grd_dims sizes);
/* Returns the factor by which alpha_dropout keeps the variance. */
double grd_alpha_dropout_scale(double p);
/* RuntimeError: probabilities that are not finite, or rows of them that sum to 0. */
bool grd_multinomial_check(grd_tensor *p);

/* Of elementwise operators: elementwise_checks.c. */
/* NotImplementedError: there is no derivative for what is named. */
double grd_underived(const char *what);
static inline bool grd_is_one(grd_scalar s)
{
    return GRD_LIKELY(s.kind == GRD_SCALAR_INT && s.v.i == 1);
}

/* True for a wrapped number that is not complex. */
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
/* How many bits of a float the half type lacks that two tensors promote to; 0 of other types. */
double grd_dropped_bits(grd_tensor *self, grd_tensor *other);
double grd_number_power(grd_tensor *self, grd_tensor *exponent);

bool grd_check_clamp(grd_tensor *self, grd_tensor *min, grd_tensor *max);
/* A bound beyond an integer dtype would wrap around into it. */
bool grd_check_bounds(grd_tensor *out, grd_tensor *self, grd_scalar min, grd_scalar max);

#endif
