/* The functions that formulas in schema/ call besides operators, by the file that defines them; codegen/functions.py reads them here. Like
 * operators they return pooled tensors, and grd_failed while an error is pending; lists that they return are in pooled memory. A check raises its
 * error and returns false. */
#ifndef GRD_OP_FORMULA_H
#define GRD_OP_FORMULA_H

#include "core/geometry.h"
#include "core/iter.h"
#include "core/tensor.h"
#include "op/checks.h"
#include "op/composite.h"
#include "op/copy.h"
#include "op/dtypes.h"
#include "op/out.h"
#include "op/sizes.h"

/* ---- batch_norm.c -------------------------------------------------------------------------------------------------------------------- */

/* RuntimeError: fewer than 2 dimensions; statistics, weights or biases that are not one per channel or have another dtype; no statistics where the
 * input's `own` are not used. ValueError: one of the two statistics is missing. */
bool grd_check_batch_norm(const grd_tensor *input, const grd_tensor *running_mean, const grd_tensor *running_var, const grd_tensor *weight,
                          const grd_tensor *bias, bool own);
/* RuntimeError: one of n parameters, each of which may be NULL, has another dtype than the input. For inputs of half types all may be float32. */
bool grd_check_parameter_dtypes(const grd_tensor *input, const grd_tensor *const *parameters, int n);
/* RuntimeError: fewer than 2 dimensions, or channels, dimension 1, that are not divisible by num_groups. */
bool grd_check_groups(const grd_tensor *input, int64_t num_groups);
/* Returns sizes [samples, groups, elements of a group] with as many elements. */
grd_dims grd_group_sizes(grd_dims sizes, int64_t num_groups);

/* ---- broadcast.c --------------------------------------------------------------------------------------------------------------------- */

/* RuntimeError: a tensor is not a vector. */
bool grd_vectors_check(grd_tensors tensors);

/* ---- cdist.c ------------------------------------------------------------------------------------------------------------------------- */

/* Checks the operands of cdist. ValueError: no such mode. The second function is true if distances are computed by a matrix product. */
bool grd_cdist_check(const grd_tensor *x1, const grd_tensor *x2, double p);
bool grd_cdist_by_product(const char *mode, double p, const grd_tensor *x1, const grd_tensor *x2);

/* ---- convolution.c ------------------------------------------------------------------------------------------------------------------- */

/* RuntimeError: input or weight have not the dimensions of a convolution over n dimensions. */
bool grd_check_conv(const grd_tensor *input, const grd_tensor *weight, int64_t n, const char *name);
/* Returns the dimension of channels in an image of that shape, with or without a batch. */
int64_t grd_conv_channel(grd_dims image, grd_dims weight);
/* RuntimeError: `padding` is neither "valid" nor "same", or "same" with strides. */
bool grd_check_conv_padding(const char *padding, grd_dims weight, grd_dims stride, grd_dims dilation);
/* Returns the padding on both sides that the word stands for; and the input, padded by one more at the end where "same" needs an odd number. */
grd_dims grd_conv_padding(const char *padding, grd_dims weight, grd_dims dilation);
grd_tensor *grd_conv_padded(grd_tensor *input, grd_dims weight, const char *padding, grd_dims dilation);

/* ---- creation.c ---------------------------------------------------------------------------------------------------------------------- */

/* Returns the strides of a dense tensor whose dimensions lie in memory in that order, outermost first. RuntimeError: the order is not a
 * permutation. */
grd_dims grd_permuted_strides(grd_dims sizes, grd_dims order);

/* ---- decomposition.c ----------------------------------------------------------------------------------------------------------------- */

bool grd_householder_check(const grd_tensor *input, const grd_tensor *tau);
bool grd_ormqr_check(const grd_tensor *input, const grd_tensor *tau, const grd_tensor *other, bool left);
/* Returns the dtype of random vectors that are multiplied by A: float32 for integers. */
grd_dtype grd_lowrank_dtype(const grd_tensor *A);
grd_tensor *grd_composite_columns(grd_tensor *matrices);
/* LinAlgError: a leading minor is not positive, according to the info of _cholesky_factor. */
bool grd_cholesky_check(grd_tensor *info, const char *function);
bool grd_cholesky_check_dtype(const grd_tensor *x, const char *kernel);
bool grd_cholesky_inverse_check(grd_tensor *triangles);
bool grd_cholesky_solve_check(const grd_tensor *b, const grd_tensor *u);
bool grd_triangular_solve_check(const grd_tensor *b, const grd_tensor *a);
/* Returns the shorter side of m x n matrices whose decomposition is differentiated; and whether n is larger. RuntimeError: that mode has no
 * derivative. */
int64_t grd_qr_side(grd_dims sizes, const char *mode);
bool grd_qr_is_wide(grd_dims sizes);

/* ---- dropout.c ----------------------------------------------------------------------------------------------------------------------- */

/* Returns sizes (N, C, 1, …), for one random number per channel of each sample. */
grd_dims grd_channel_sizes(grd_dims sizes);
/* Returns the factor by which alpha_dropout keeps the variance. */
double grd_alpha_dropout_scale(double p);

/* ---- eig.c --------------------------------------------------------------------------------------------------------------------------- */

/* RuntimeError: the dtype has no complex counterpart. The second function, LinAlgError: the eigenvalues did not converge; RuntimeError: an element
 * is not finite. */
bool grd_eig_check_dtype(const grd_tensor *A);
bool grd_eig_check(grd_tensor *info);

/* ---- eigh_svd.c ---------------------------------------------------------------------------------------------------------------------- */

/* LinAlgError: the `values`, eigenvalues or singular values, did not converge, according to the info of _linalg_eigh or _linalg_svd. */
bool grd_spectral_check(grd_tensor *info, const char *function, const char *values);
/* RuntimeError: the driver is not NULL. */
bool grd_svd_check_driver(const char *driver);
/* True for matrices with more rows than columns. */
bool grd_is_tall(grd_dims sizes);
/* Returns the sizes of a batch of square matrices, whose sides are the size along dim -2 or -1. */
grd_dims grd_square_sizes(grd_dims sizes, int64_t dim);

/* ---- elementwise_checks.c ------------------------------------------------------------------------------------------------------------ */

/* Raises NotImplementedError: there is no derivative for what is named. */
double grd_underived(const char *what);
static inline bool grd_is_one(grd_scalar s)
{
    return GRD_LIKELY(s.kind == GRD_SCALAR_INT && s.v.i == 1);
}
/* True for a wrapped number that is not complex. */
bool grd_is_real_number(const grd_tensor *t);
grd_scalar grd_scalar_conj(grd_scalar s);
grd_scalar grd_scalar_negated(grd_scalar s);
/* Checks alpha as torch.add does, and rounds it as a half type does or, for bool, replaces it by its truth. */
bool grd_take_alpha(grd_tensor *self, grd_tensor *other, grd_scalar *alpha);
/* RuntimeError: a wrapped number does not fit into the result's dtype, into which it is written. (In arithmetic it would wrap around as the result
 * does.) */
bool grd_check_numbers(grd_tensor *self, grd_tensor *other);
bool grd_check_factor(grd_tensors tensors, grd_scalar value);
bool grd_check_power(grd_tensor *self, grd_tensor *exponent);
/* Returns the exponent if it is a number that leaves the dtype as it is; otherwise NaN. */
double grd_number_power(grd_tensor *self, grd_tensor *exponent);
bool grd_check_clamp(grd_tensor *self, grd_tensor *min, grd_tensor *max);
/* RuntimeError: a bound does not fit into an integer dtype, into which it would wrap around. */
bool grd_check_bounds(grd_tensor *out, grd_tensor *self, grd_scalar min, grd_scalar max);

/* ---- elementwise_composites.c -------------------------------------------------------------------------------------------------------- */

/* Returns how many bits a float has more than the half type that the two tensors promote to; 0 for other dtypes. */
double grd_dropped_bits(grd_tensor *self, grd_tensor *other);

/* ---- embedding_bag.c ----------------------------------------------------------------------------------------------------------------- */

/* Returns the row that counts as padding, from the end if negative; -1 if there is none. RuntimeError: the table has no such row. */
int64_t grd_padding_row(grd_scalar padding_idx, const grd_tensor *weight);

/* ---- fft_arguments.c ----------------------------------------------------------------------------------------------------------------- */

/* Returns (n + 1) / 2. Elements 1 to this, exclusive, of a half transform of n real numbers stand for two elements of the full one: their conjugates
 * are elements, too. */
int64_t grd_fft_paired(int64_t n);
/* Returns the input with integers and bool as the default float, and if `complex` as complex numbers. RuntimeError: the dtype has no transforms. */
grd_tensor *grd_fft_input(grd_tensor *self, bool complex);
/* RuntimeError: the input is complex. The text begins with `function` and names the `wanted` input. */
bool grd_fft_check_real(const grd_tensor *self, const char *function, const char *wanted);
/* Returns the length of a transform along `dim`: n or, without n, that of the input, which is doubled if it is `half` of a transform.
 * RuntimeError: it is not positive. */
int64_t grd_fft_length(const grd_tensor *self, grd_scalar n, int64_t dim, bool half);
/* Returns the dims of a transform, counted from 0; and the sizes of the input along them, replaced by s where that is given. RuntimeError: s and
 * dim do not fit together; there are no dims, but `function` needs one. */
grd_dims grd_fft_dims(const grd_tensor *self, grd_dims s, grd_dims dim, const char *function);
grd_dims grd_fft_sizes(const grd_tensor *self, grd_dims s, grd_dims dims);
/* Returns the length of the last, real dimension; and the sizes of the complex input of a transform to that length. */
int64_t grd_fft_real_length(const grd_tensor *self, grd_dims s, grd_dims dims);
grd_dims grd_fft_halved(grd_dims sizes, int64_t length);
/* Returns the input cut, or padded with zeros, to the sizes along dims. */
grd_tensor *grd_fft_resized(grd_tensor *self, grd_dims dims, grd_dims sizes);
/* Returns the number by which _fft_c2c and its kin know a norm. RuntimeError: no such norm. */
int64_t grd_fft_normalization(const char *norm, bool forward);
/* Returns the dtype of frequencies, by default the default float. RuntimeError: it is integral. */
grd_dtype grd_fft_frequency_dtype(grd_dtype dtype, const char *function);
/* Returns the dims that fftshift moves, all if none are given; and how far it moves them or, if `back`, ifftshift does. */
grd_dims grd_fft_shift_dims(grd_dims sizes, grd_dims dim);
grd_dims grd_fft_shifts(grd_dims sizes, grd_dims dims, bool back);

/* ---- flip_roll.c --------------------------------------------------------------------------------------------------------------------- */

/* Returns the shifts along `dims` that undo a roll of a tensor of these sizes. */
grd_dims grd_shifts_back(grd_dims shifts, grd_dims dims, grd_dims sizes);
/* Returns the number of turns that undo rot90. */
int64_t grd_turns_back(int64_t k);

/* ---- fold.c -------------------------------------------------------------------------------------------------------------------------- */

/* Returns the number of groups that undoes channel_shuffle. */
int64_t grd_groups_back(grd_dims sizes, int64_t groups);

/* ---- grid_sample.c ------------------------------------------------------------------------------------------------------------------- */

/* Returns the sizes of the grid for images of that size, with the points in one dimension if `merged`. */
grd_dims grd_affine_sizes(grd_dims size, bool merged);

/* ---- histogram.c --------------------------------------------------------------------------------------------------------------------- */

/* Returns the edges of `bins` bins from low to high; without these, from the least to the largest element, and from 0 to 1 for an empty tensor. A
 * dimension of -1 means histc, which counts equal ends as none. RuntimeError: there are no bins, or the range is not finite. */
grd_tensor *grd_histogram_edges(grd_tensor *self, int64_t bins, grd_scalar low, grd_scalar high, int64_t dimension);
/* Returns how many rows of self, or how much of their weight, each cell between edges holds; `search` is enum grd_histogram_search. RuntimeError:
 * dtypes or sizes do not fit. */
grd_tensor *grd_histogram_counts(grd_tensor *self, grd_tensors edges, grd_tensor *weight, bool density, int64_t search);

/* ---- index_add.c --------------------------------------------------------------------------------------------------------------------- */

/* Checks the source of index_add and index_reduce. */
bool grd_check_index_source(const grd_tensor *self, int64_t dim, const grd_tensor *index, const grd_tensor *source);

/* ---- layer_norm.c -------------------------------------------------------------------------------------------------------------------- */

/* RuntimeError: the last sizes of the input, or the sizes of a weight that is not NULL, differ from shape. */
bool grd_layer_norm_check(const grd_tensor *input, grd_dims shape, const grd_tensor *weight);

/* ---- ldl.c --------------------------------------------------------------------------------------------------------------------------- */

/* RuntimeError: D has a zero on its diagonal, according to the info of _ldl_factor. */
bool grd_ldl_check(grd_tensor *info, const char *function);

/* ---- least_squares.c ----------------------------------------------------------------------------------------------------------------- */

bool grd_lstsq_check(const grd_tensor *self, const grd_tensor *b, const char *driver);
/* True if b has no dimension of columns. */
bool grd_lstsq_is_vector(const grd_tensor *self, const grd_tensor *b);
/* Returns the given number, or else grd_rank_epsilon. */
double grd_lstsq_rcond(const grd_tensor *self, grd_scalar rcond);
/* Returns the solution with PyTorch's strides: column-major; for m x n matrices with m > n, the first rows of m x k ones. */
grd_tensor *grd_lstsq_laid(grd_tensor *solution, grd_dims sizes);
/* True if the driver computes residuals: m > n, and all ranks, if it finds ranks, are n. */
bool grd_lstsq_has_residuals(const grd_tensor *self, grd_tensor *rank, const char *driver);

/* ---- lobpcg.c ------------------------------------------------------------------------------------------------------------------------ */

/* RuntimeError: lobpcg does not take these matrices; B and X may be NULL. The others return the sizes of n start vectors, and the default of tol. */
bool grd_lobpcg_check(const grd_tensor *A, const grd_tensor *B, const grd_tensor *X);
grd_dims grd_lobpcg_sizes(grd_dims sizes, int64_t n);
double grd_lobpcg_tolerance(const grd_tensor *A);

/* ---- loss.c -------------------------------------------------------------------------------------------------------------------------- */

/* The reductions that every loss has: mean (also NULL), sum and none. INVALID, with ValueError, for any other name. */
enum grd_loss_reduction { GRD_LOSS_MEAN, GRD_LOSS_SUM, GRD_LOSS_NONE, GRD_LOSS_INVALID };
enum grd_loss_reduction grd_loss_reduction_of(const char *name);
bool grd_loss_check(const char *reduction);
grd_tensor *grd_loss_reduced(grd_tensor *loss, const char *reduction);
/* Returns the derivative of the reduced loss by one loss: for a mean 1 / the number of losses, which is that of a and b broadcast; otherwise 1. */
double grd_loss_share(const char *reduction, grd_dims a, grd_dims b);
/* Returns the dimension of an input's classes: 1, or 0 without a batch. */
int64_t grd_class_dim(grd_dims sizes);
/* RuntimeError: the weights, unless NULL, are not one for each class. */
bool grd_loss_check_weight(const grd_tensor *weight, int64_t classes);
/* RuntimeError: the input is not a vector or matrix, a weight (C, …, in) or a bias does not fit, or a vector has several dimensions of classes. */
bool grd_linear_cross_entropy_check(const grd_tensor *input, const grd_tensor *linear_weight, const grd_tensor *linear_bias);
/* Returns the sizes of a weight (C, …, in) without the last; and those of the scores of an input (…, in), whose classes come after its other
 * dimensions. */
grd_dims grd_linear_classes(grd_dims linear_weight);
grd_dims grd_logits_sizes(grd_dims input, grd_dims classes);
/* Returns a variance that broadcasts to the input: one per element, or of size 1 along one dimension; a variance per row gets a last dimension of
 * 1. ValueError: other sizes, a negative variance. */
grd_tensor *grd_loss_variance(const grd_tensor *input, grd_tensor *var);

/* ---- lu.c ---------------------------------------------------------------------------------------------------------------------------- */

/* Return the sizes of the batch; rows and columns of matrices; and the rank of one element: that of matrices, at least one more than that of their
 * pivots. */
grd_dims grd_batch_sizes_of(grd_dims sizes);
grd_dims grd_matrix_sizes(grd_dims sizes);
int64_t grd_pivots_rank(const grd_tensor *matrices, const grd_tensor *pivots);
/* Raise an error if info says that U has a zero on its diagonal: RuntimeError for linalg.lu_factor and its kin, LinAlgError for linalg.solve and
 * linalg.inv. */
bool grd_lu_check(grd_tensor *info, const char *function);
bool grd_solve_check(grd_tensor *info, const char *function);
bool grd_inverse_check(grd_tensor *info, const char *function);
/* RuntimeError: the dtype is a half type, which is not decomposed. */
bool grd_decomposition_check_width(const grd_tensor *x, const char *function);
bool grd_lu_unpack_check(const grd_tensor *data, const grd_tensor *pivots, bool unpack_pivots);
bool grd_lu_solve_check(const grd_tensor *lu, const grd_tensor *pivots, const grd_tensor *b, bool left);
bool grd_solve_check_shapes(const grd_tensor *a, const grd_tensor *b, bool left);
/* True if the right sides of linalg.solve are vectors. */
bool grd_solve_is_vector(grd_dims a, grd_dims b);
/* Returns the number that replaces a zero on the diagonal of U, so that a determinant and its derivatives keep half of their digits. */
double grd_small_pivot(grd_dtype dtype);
/* Returns the solution of linalg.solve for vectors with PyTorch's strides. */
grd_tensor *grd_solve_shaped(grd_tensor *vectors);

/* ---- margin.c ------------------------------------------------------------------------------------------------------------------------ */

/* ValueError: p is neither 1 nor 2, or the weight is not a vector of a number per class. */
bool grd_multi_margin_check(const grd_tensor *self, const grd_tensor *target, double p, const grd_tensor *weight);

/* ---- matmul.c ------------------------------------------------------------------------------------------------------------------------ */

/* RuntimeError: the operands are not batches, or do not fit together. */
bool grd_addbmm_check(const grd_tensor *batch1, const grd_tensor *batch2);
/* RuntimeError: inputs (…, A) and (…, B) differ in batch or dtype, the weight is not (K, A, B), or the bias, unless NULL, not (K). */
bool grd_bilinear_check(const grd_tensor *input1, const grd_tensor *input2, const grd_tensor *weight, const grd_tensor *bias);

/* ---- matrix_batch.c ------------------------------------------------------------------------------------------------------------------ */

/* RuntimeError: x is not a batch of square matrices. `function` begins the text. */
bool grd_decomposition_check_square(const grd_tensor *x, const char *function);
/* RuntimeError: the dtype is integral. */
bool grd_decomposition_check_inexact(const grd_tensor *x, const char *function);

/* ---- matrix_exp.c -------------------------------------------------------------------------------------------------------------------- */

/* Returns the number of columns of matrices. */
int64_t grd_columns_of(grd_dims sizes);

/* ---- norm.c -------------------------------------------------------------------------------------------------------------------------- */

/* Returns a / b, with 0 where b is 0. */
grd_tensor *grd_quotient_or_zero(grd_tensor *a, grd_tensor *b);
/* RuntimeError: the norm of an empty tensor has no identity. NotImplementedError: the dtype has no arithmetic. */
bool grd_norm_check(const grd_tensor *self, double p, grd_dims dim, grd_dtype as);
/* These checks raise RuntimeError in PyTorch's words for arguments that norms, ranks, pseudo-inverses and least squares refuse. */
bool grd_vector_norm_check(const grd_tensor *self, grd_scalar ord, grd_dtype as);
bool grd_matrix_norm_check(const grd_tensor *self, grd_dims dim, grd_dtype as);
bool grd_linalg_norm_check(const grd_tensor *self, bool has_ord, grd_dims dim);
bool grd_rank_check(const grd_tensor *self, const grd_tensor *atol, const grd_tensor *rtol, const char *function);
bool grd_pinv_check(const grd_tensor *self, const grd_tensor *atol, const grd_tensor *rtol);
bool grd_cond_check(const grd_tensor *self, grd_scalar p);
bool grd_cond_check_name(const grd_tensor *self, const char *p);
bool grd_frobenius_check(const grd_tensor *self, grd_dims dim);
/* True if linalg.norm is that of matrices; and its dims, 0 and 1 if none are given. */
bool grd_norm_is_of_matrices(const grd_tensor *self, grd_dims dim);
grd_dims grd_norm_dims(grd_dims dim);
/* Returns the given dims, or all of self. */
grd_dims grd_nuclear_dims(const grd_tensor *self, grd_dims dim);
/* Returns the default tolerance of ranks: the longer side times the distance from 1 to the next number. */
double grd_rank_epsilon(const grd_tensor *self);
/* Returns a number as a tensor of self's real dtype; NULL if there is none. */
grd_tensor *grd_tolerance_tensor(grd_tensor *self, grd_scalar tolerance);

/* ---- pad.c --------------------------------------------------------------------------------------------------------------------------- */

/* Returns the border lengths that undo `pad`. */
grd_dims grd_pad_back(grd_dims pad);
/* Returns the padding at the end that makes sizes `to` of sizes `from`. */
grd_dims grd_pad_to(grd_dims from, grd_dims to);
/* Returns a copy of self with the borders of `pad` in the last n dimensions. `mode`: "reflect" or "replicate". RuntimeError: not 2 * n lengths. */
grd_tensor *grd_pad_bordered(grd_tensor *self, grd_dims pad, const char *mode, int64_t n);

/* ---- pool.c -------------------------------------------------------------------------------------------------------------------------- */

/* Returns the sizes of the images, the last n. */
grd_dims grd_image_sizes(grd_dims sizes, int64_t n);
/* Returns the sizes with the last n merged into one. */
grd_dims grd_plane_sizes(grd_dims sizes, int64_t n);
/* True for two numbers. */
bool grd_is_pair(grd_dims size);
/* Returns the windows of rows as those of images of one row: `above` followed by the number. An empty list stays. */
grd_dims grd_window_of_row(grd_dims numbers, int64_t above);
/* Returns rows as images of one row. RuntimeError: self is not a row or batch of rows, or a list has not one number; the stride may be absent. */
grd_tensor *grd_row_images(const char *name, grd_tensor *self, grd_dims kernel_size, grd_dims stride, grd_dims padding, grd_dims dilation);
grd_tensor *grd_adaptive_row_images(const char *name, grd_tensor *self, grd_dims output_size);
/* True if every window of images of n dimensions covers the image. */
bool grd_is_average(const grd_tensor *self, grd_dims output_size, int64_t n);
/* Returns the number of elements of a window of n dimensions. */
double grd_window_elements(grd_dims kernel_size, int64_t n);

/* ---- random_indices.c ---------------------------------------------------------------------------------------------------------------- */

/* RuntimeError: probabilities are negative or not finite, or a row of them sums to 0. */
bool grd_multinomial_check(grd_tensor *p);

/* ---- reduce_plan.c ------------------------------------------------------------------------------------------------------------------- */

/* Returns the number of elements per result of a reduction along `dim` (none: all); 0 and an error if there is no such dim. */
double grd_reduced_count(grd_dims sizes, grd_dims dim);
/* Returns the dtype that elements of self are summed in, as floating-point numbers: that of `out`, which may be NULL, if it has more digits. */
grd_dtype grd_summing_dtype(const grd_tensor *out, const grd_tensor *self);

/* ---- repeat.c ------------------------------------------------------------------------------------------------------------------------ */

/* Returns the sizes of the result of `repeat` with each repetition as a dimension of its own before the one it repeats; of size 1 if `once`. */
grd_dims grd_repeat_sizes(grd_dims repeats, grd_dims sizes, bool once);

/* ---- resample.c ---------------------------------------------------------------------------------------------------------------------- */

/* Returns the last sizes, as many as there are in `image`. */
grd_dims grd_image_sizes_as(grd_dims sizes, grd_dims image);

/* ---- scatter.c ----------------------------------------------------------------------------------------------------------------------- */

/* Returns the sizes of the part of src that the index of scatter uses. */
grd_dims grd_used_sizes(grd_dims index, grd_dims src);
/* Returns the value that scatter_reduce starts from if it does not include self. */
grd_scalar grd_scatter_identity(const char *reduce, grd_dtype dtype);
/* Returns the number of values that a mean is over at each place; 1 where there are none. */
grd_tensor *grd_scatter_counts(grd_tensor *self, int64_t dim, grd_tensor *index, grd_tensor *src, bool include_self);

/* ---- signal_windows.c ---------------------------------------------------------------------------------------------------------------- */

/* Returns the dtype of a window, by default the default float. RuntimeError, for torch.signal.windows ValueError: it is not floating, or the
 * length is negative. */
grd_dtype grd_window_dtype(grd_dtype dtype, int64_t length, const char *function);
grd_dtype grd_signal_window_dtype(grd_dtype dtype, int64_t length, const char *function);

/* ---- statistics.c -------------------------------------------------------------------------------------------------------------------- */

/* Returns q as a 0-d tensor of self's dtype. RuntimeError: it is outside of [0, 1]. */
grd_tensor *grd_quantile_fraction(grd_tensor *self, double q);
/* RuntimeError: y is bool, or dx is complex. IndexError: no such dim. `function` begins the texts. */
bool grd_trapezoid_check(const grd_tensor *y, grd_scalar dx, int64_t dim, const char *function);
/* Returns the positions of samples so that they broadcast to y. RuntimeError: bool, or not a position for each sample of a line. */
grd_tensor *grd_trapezoid_places(const grd_tensor *y, grd_tensor *x, int64_t dim, const char *function);

/* ---- take.c -------------------------------------------------------------------------------------------------------------------------- */

/* Checks the arguments of put. RuntimeError: wrong dtypes. IndexError: index and source differ in their numbers of elements. */
bool grd_put_check(const grd_tensor *self, const grd_tensor *index, const grd_tensor *source);

/* ---- tensor_split.c ------------------------------------------------------------------------------------------------------------------ */

/* RuntimeError: fewer than `least` dimensions, or a size along `dim` that is not divisible by sections. `name` is the function's. */
bool grd_split_check(const grd_tensor *self, int64_t least, int64_t dim, int64_t sections, const char *name);

/* ---- view.c -------------------------------------------------------------------------------------------------------------------------- */

/* Returns the permutation that undoes `dims`. */
grd_dims grd_inverse_order(grd_dims dims);
/* Returns dimension + 1, counted from 0, where the elements of unfold's windows are put, next to the positions of the windows; 0 for a
 * zero-dimensional tensor. */
int64_t grd_window_dim(grd_dims sizes, int64_t dimension);
/* Returns storage_offset counted from the tensor's offset on; 0 if none is given. */
int64_t grd_offset_within(grd_scalar storage_offset, int64_t offset);

/* ---- view_gradient.c ----------------------------------------------------------------------------------------------------------------- */

/* Returns storage_offset, or the tensor's own offset if none is given. */
int64_t grd_offset_given(grd_scalar storage_offset, int64_t offset);
/* True if elements with these sizes and strides may share memory. */
bool grd_geometry_overlaps(grd_dims sizes, grd_dims strides);

#endif
