/* Declares the functions that formulas in schema/ may call in addition to operators, grouped by the file that defines them. codegen/functions.py
 * reads their prototypes here. Like operators, they return grd_failed while an error is pending. Tensors and lists that they return are freed
 * when the innermost memory scope closes. A check returns true, or raises an error and returns false. */
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

/* Raises RuntimeError if the input has fewer than 2 dimensions, or if statistics, weight or bias have a wrong dtype or not one element per channel.
 * `own` is true if the input is normalized by its own mean and variance. Raises ValueError if `own` is true and only one running statistic is given.
 * Raises RuntimeError if `own` is false and a running statistic is missing. */
bool grd_check_batch_norm(const grd_tensor *input, const grd_tensor *running_mean, const grd_tensor *running_var, const grd_tensor *weight,
                          const grd_tensor *bias, bool own);
/* Raises RuntimeError if the dtype of one of the n parameters (NULL entries are skipped) is not the input's dtype. If the input has a half type, all
 * parameters may be float32 instead. */
bool grd_check_parameter_dtypes(const grd_tensor *input, const grd_tensor *const *parameters, int n);
/* Raises RuntimeError if the input has fewer than 2 dimensions, or its number of channels (dimension 1) is not divisible by num_groups. */
bool grd_check_groups(const grd_tensor *input, int64_t num_groups);
/* Returns the sizes to which group_norm reshapes a tensor of sizes `sizes`: (samples, groups, elements of a group). */
grd_dims grd_group_sizes(grd_dims sizes, int64_t num_groups);

/* ---- broadcast.c --------------------------------------------------------------------------------------------------------------------- */

/* Raises RuntimeError if a tensor is not a vector. */
bool grd_vectors_check(grd_tensors tensors);

/* ---- cdist.c ------------------------------------------------------------------------------------------------------------------------- */

/* Raises RuntimeError if cdist does not accept these arguments: x1 and x2 must have the same dtype and number of columns, and p must not be
 * negative. */
bool grd_cdist_check(const grd_tensor *x1, const grd_tensor *x2, double p);
/* True if cdist computes the distances by a matrix product. This depends on its compute_mode `mode`, on p, and on the numbers of rows. Raises
 * ValueError and returns false if there is no such mode. */
bool grd_cdist_by_product(const char *mode, double p, const grd_tensor *x1, const grd_tensor *x2);

/* ---- convolution.c ------------------------------------------------------------------------------------------------------------------- */

/* Raises RuntimeError if the input or the weight does not have the number of dimensions of a convolution with n spatial dimensions, or if the input has
 * samples and channels but no elements. `name` is the operator's name in the error's text. */
bool grd_check_conv(const grd_tensor *input, const grd_tensor *weight, int64_t n, const char *name);
/* Returns the index of the dimension of channels in an image of these sizes: 1 if the image has a batch dimension, otherwise 0. */
int64_t grd_conv_channel(grd_dims image, grd_dims weight);
/* Raises RuntimeError if `padding` is neither "valid" nor "same", or if it is "same" and a stride is not 1 or a dilation is not positive. */
bool grd_check_conv_padding(const char *padding, grd_dims weight, grd_dims stride, grd_dims dilation);
/* Returns the number of padding elements on each side of each dimension for the argument `padding`, which is "valid" or "same". */
grd_dims grd_conv_padding(const char *padding, grd_dims weight, grd_dims dilation);
/* Returns the input, padded by one element at the end of each dimension for which `padding` "same" needs an odd number of padding elements. The
 * convolution itself pads both ends of a dimension equally. */
grd_tensor *grd_conv_padded(grd_tensor *input, grd_dims weight, const char *padding, grd_dims dilation);

/* ---- creation.c ---------------------------------------------------------------------------------------------------------------------- */

/* Returns the strides of a dense tensor whose dimensions have the given order in memory, outermost first. Raises RuntimeError if `order` is not a
 * permutation. */
grd_dims grd_permuted_strides(grd_dims sizes, grd_dims order);

/* ---- decomposition.c ----------------------------------------------------------------------------------------------------------------- */

/* Raises RuntimeError if linalg.householder_product does not accept these tensors: `input` must be m x n matrices with m >= n, and `tau` vectors
 * of at most n elements with the same dtype and batch sizes. */
bool grd_householder_check(const grd_tensor *input, const grd_tensor *tau);
/* Raises RuntimeError if the sizes of these tensors do not fit together as arguments of ormqr. */
bool grd_ormqr_check(const grd_tensor *input, const grd_tensor *tau, const grd_tensor *other, bool left);
/* Returns the dtype of the random vectors by which svd_lowrank and pca_lowrank multiply A: that of A, or float32 if A is integral or bfloat16. */
grd_dtype grd_lowrank_dtype(const grd_tensor *A);
/* Returns `matrices` if they are column-major, otherwise a column-major copy. */
grd_tensor *grd_composite_columns(grd_tensor *matrices);
/* Raises LinAlgError if `info`, a result of _cholesky_factor, says that a matrix is not positive-definite. The error's text begins with
 * `function`. */
bool grd_cholesky_check(grd_tensor *info, const char *function);
/* Raises NotImplementedError if there is no kernel for the dtype of `x`. `kernel` is the kernel's name in the error's text. */
bool grd_cholesky_check_dtype(const grd_tensor *x, const char *kernel);
/* Raises LinAlgError if a matrix of `triangles`, the Cholesky factors given to cholesky_inverse, has a zero on its diagonal. */
bool grd_cholesky_inverse_check(grd_tensor *triangles);
/* Raises RuntimeError if `u` is not square, or the dtypes or sizes of `b` and `u` do not fit together as arguments of cholesky_solve. */
bool grd_cholesky_solve_check(const grd_tensor *b, const grd_tensor *u);
/* Raises RuntimeError if `a` is not square, or the sizes of `b` and `a` do not fit together as arguments of triangular_solve. */
bool grd_triangular_solve_check(const grd_tensor *b, const grd_tensor *a);
/* Returns min(m, n) for m x n matrices whose QR decomposition is differentiated. Raises RuntimeError if the decomposition has no derivative for
 * `mode`. */
int64_t grd_qr_side(grd_dims sizes, const char *mode);
/* True if matrices of these sizes have more columns than rows. */
bool grd_qr_is_wide(grd_dims sizes);

/* ---- dropout.c ----------------------------------------------------------------------------------------------------------------------- */

/* Returns sizes (N, C, 1, ...), for one random number per channel of each sample. */
grd_dims grd_channel_sizes(grd_dims sizes);
/* Returns the factor by which alpha_dropout multiplies its result to keep the variance of its input. */
double grd_alpha_dropout_scale(double p);

/* ---- eig.c --------------------------------------------------------------------------------------------------------------------------- */

/* Raises RuntimeError if the dtype of A has no complex counterpart. */
bool grd_eig_check_dtype(const grd_tensor *A);
/* Raises LinAlgError if `info`, a result of _linalg_eig, says that the eigenvalues did not converge. Raises RuntimeError if it says that an
 * element is not finite. */
bool grd_eig_check(grd_tensor *info);

/* ---- eigh_svd.c ---------------------------------------------------------------------------------------------------------------------- */

/* Raises LinAlgError if `info`, a result of _linalg_eigh or _linalg_svd, says that the algorithm did not converge. The error's text begins with
 * `function` and names `values`, which is "eigenvalues" or "singular values". */
bool grd_spectral_check(grd_tensor *info, const char *function, const char *values);
/* Raises RuntimeError if the driver of linalg.svd is not NULL, because drivers can be chosen only on CUDA. */
bool grd_svd_check_driver(const char *driver);
/* True if matrices of these sizes have more rows than columns. */
bool grd_is_tall(grd_dims sizes);
/* Returns the sizes of a batch of square matrices: `sizes` with the last two numbers both replaced by the number at `dim`, which is -2 or -1. */
grd_dims grd_square_sizes(grd_dims sizes, int64_t dim);

/* ---- elementwise_checks.c ------------------------------------------------------------------------------------------------------------ */

/* Raises NotImplementedError, which says that the derivative for `what` is not implemented. Returns 0. */
double grd_underived(const char *what);
/* True if `s` is the integer 1. */
static inline bool grd_is_one(grd_scalar s)
{
    return GRD_LIKELY(s.kind == GRD_SCALAR_INT && s.v.i == 1);
}
/* True if `t` is a wrapped number (a Python scalar as a tensor) that is not complex. */
bool grd_is_real_number(const grd_tensor *t);
/* Returns the complex conjugate of `s`. */
grd_scalar grd_scalar_conj(grd_scalar s);
/* Returns -s, as a float if `s` is an unsigned integer. */
grd_scalar grd_scalar_negated(grd_scalar s);
/* Raises RuntimeError if torch.add does not accept this alpha. A bool alpha needs a bool result. A float alpha needs a result that is not integral. A
 * complex alpha needs a complex result. If the result's dtype is a half type or bool, rounds *alpha to this dtype. */
bool grd_take_alpha(grd_tensor *self, grd_tensor *other, grd_scalar *alpha);
/* Raises RuntimeError if an operand is a wrapped number (a Python scalar as a tensor) that does not fit into the dtype of the result. Operators that
 * store the number unchanged call this; without the check, the number would wrap around. */
bool grd_check_numbers(grd_tensor *self, grd_tensor *other);
/* Raises RuntimeError if `value` does not fit into the dtype to which `tensors` promote. If this dtype is a half type, `value` only has to fit into
 * float32. */
bool grd_check_factor(grd_tensors tensors, grd_scalar value);
/* Raises RuntimeError if `exponent` is a Python scalar that torch.pow does not accept: a negative integer for an integral self, or a number that
 * does not fit into the integral dtype of the result. */
bool grd_check_power(grd_tensor *self, grd_tensor *exponent);
/* Returns the exponent of pow as a double if `exponent` is a wrapped number (a tensor made from a Python scalar), is real, and does not change the
 * result's dtype. Otherwise returns NaN. */
double grd_number_power(grd_tensor *self, grd_tensor *exponent);
/* Raises RuntimeError if both bounds of clamp are NULL. Raises NotImplementedError if the result would be complex, or bool with two bounds. */
bool grd_check_clamp(grd_tensor *self, grd_tensor *min, grd_tensor *max);
/* Raises RuntimeError if both bounds of clamp are absent, or if the result has an integer dtype that cannot hold a bound. Raises NotImplementedError
 * if clamp is not supported for the dtype. */
bool grd_check_bounds(grd_tensor *out, grd_tensor *self, grd_scalar min, grd_scalar max);

/* ---- elementwise_composites.c -------------------------------------------------------------------------------------------------------- */

/* Returns how many significant bits of float32 are lost in the dtype to which self and other promote: 13 for float16, 16 for bfloat16, and 0 for all
 * other dtypes. */
double grd_dropped_bits(grd_tensor *self, grd_tensor *other);

/* ---- embedding_bag.c ----------------------------------------------------------------------------------------------------------------- */

/* Returns the row of the table that padding_idx designates (from the end if negative); -1 if padding_idx is absent. Raises RuntimeError if there
 * is no such row. */
int64_t grd_padding_row(grd_scalar padding_idx, const grd_tensor *weight);

/* ---- fft_arguments.c ----------------------------------------------------------------------------------------------------------------- */

/* Returns (n + 1) / 2, here called p. A transform of n real numbers stores only its elements 0 to n / 2. Each stored element from 1 to p - 1 also
 * stands for its complex conjugate, which is not stored. */
int64_t grd_fft_paired(int64_t n);
/* Returns the input converted for a transform: bool and integers to the default float dtype and, if `complex`, real to complex numbers.
 * Raises RuntimeError if there are no transforms for the dtype. */
grd_tensor *grd_fft_input(grd_tensor *self, bool complex);
/* Raises RuntimeError if the input is complex. The error's text begins with `function`, and `wanted` describes the input that is expected. */
bool grd_fft_check_real(const grd_tensor *self, const char *function, const char *wanted);
/* Returns the length of a transform along `dim`: n if given, otherwise the input's size. If `half`, the input is the stored half of a transform
 * (elements 0 to length / 2), and the default is 2 * (size - 1). Raises RuntimeError if the length is not positive. */
int64_t grd_fft_length(const grd_tensor *self, grd_scalar n, int64_t dim, bool half);
/* Returns the dims of a transform, numbered from 0: `dim` if given, otherwise the last s.n dims if `s` is given, otherwise all dims. Raises
 * RuntimeError if `s` and `dim` do not fit together. If `function` (the caller's name) is not NULL, also raises RuntimeError if there are no dims. */
grd_dims grd_fft_dims(const grd_tensor *self, grd_dims s, grd_dims dim, const char *function);
/* Returns the sizes of the transform along `dims`: those of `s`, or the input's sizes where `s` is absent or -1. */
grd_dims grd_fft_sizes(const grd_tensor *self, grd_dims s, grd_dims dims);
/* Returns the length of the real result of a transform along the last of `dims`: the last number of `s`. If that is absent or -1, the length is 2 *
 * (size - 1), where size is the input's size along this dim. */
int64_t grd_fft_real_length(const grd_tensor *self, grd_dims s, grd_dims dims);
/* Returns `sizes` with the last one replaced by length / 2 + 1, the number of complex elements that determine `length` real ones. */
grd_dims grd_fft_halved(grd_dims sizes, int64_t length);
/* Returns the input cut or padded with zeros to `sizes` along `dims`. */
grd_tensor *grd_fft_resized(grd_tensor *self, grd_dims dims, grd_dims sizes);
/* Returns the normalization that `norm` requests, as a code for _fft_c2c, _fft_r2c and _fft_c2r: 0 for none, 1 for division by sqrt(n), 2 for
 * division by n. The code also depends on `forward`, which is false for an inverse transform. Raises RuntimeError if there is no such `norm`. */
int64_t grd_fft_normalization(const char *norm, bool forward);
/* Returns the dtype of fftfreq's result: `dtype` or, if it is absent, the default float dtype. Raises RuntimeError if `dtype` is integral. The
 * error's text begins with `function`. */
grd_dtype grd_fft_frequency_dtype(grd_dtype dtype, const char *function);
/* Returns the dims along which fftshift shifts: `dim`, or all dims if it is absent. */
grd_dims grd_fft_shift_dims(grd_dims sizes, grd_dims dim);
/* Returns the shift along each of `dims`. If `back` is false (fftshift), it is half the size of the dim, rounded down. If `back` is true (ifftshift),
 * it is half the size, rounded up. */
grd_dims grd_fft_shifts(grd_dims sizes, grd_dims dims, bool back);

/* ---- flip_roll.c --------------------------------------------------------------------------------------------------------------------- */

/* Returns the shifts that undo a roll by `shifts` along `dims` of a tensor of these sizes. */
grd_dims grd_shifts_back(grd_dims shifts, grd_dims dims, grd_dims sizes);
/* Returns the number of quarter turns that undo rot90 by k quarter turns. */
int64_t grd_turns_back(int64_t k);

/* ---- fold.c -------------------------------------------------------------------------------------------------------------------------- */

/* Returns the number of groups with which channel_shuffle undoes a channel_shuffle of `groups` groups. */
int64_t grd_groups_back(grd_dims sizes, int64_t groups);

/* ---- grid_sample.c ------------------------------------------------------------------------------------------------------------------- */

/* Returns the sizes of the affine grid for images of the given size, with its points merged into one dimension if `merged`. */
grd_dims grd_affine_sizes(grd_dims size, bool merged);

/* ---- histogram.c --------------------------------------------------------------------------------------------------------------------- */

/* Returns the edges of `bins` bins from `low` to `high`. If `low` is absent, the bins cover the range of the elements, or 0 to 1 for an empty tensor.
 * `dimension` is the dimension's number in error texts. It is -1 for histc, which treats equal `low` and `high` as absent. Raises RuntimeError if
 * bins <= 0, or the range is not finite. */
grd_tensor *grd_histogram_edges(grd_tensor *self, int64_t bins, grd_scalar low, grd_scalar high, int64_t dimension);
/* Returns a tensor with one element per cell of the grid that `edges` define: the number of rows (points) of self in the cell or, with `weight`,
 * their total weight. If `density`, each element is divided by the total of all cells and by the volume of its cell. `search` is an enum
 * grd_histogram_search. Raises RuntimeError if dtypes or sizes do not fit. */
grd_tensor *grd_histogram_counts(grd_tensor *self, grd_tensors edges, grd_tensor *weight, bool density, int64_t search);

/* ---- index_add.c --------------------------------------------------------------------------------------------------------------------- */

/* Raises IndexError if the index of index_add is not a vector. Raises RuntimeError if the dtype of the index or of the source, or the sizes of
 * the source, do not fit. */
bool grd_check_index_source(const grd_tensor *self, int64_t dim, const grd_tensor *index, const grd_tensor *source);

/* ---- layer_norm.c -------------------------------------------------------------------------------------------------------------------- */

/* Raises RuntimeError if the last shape.n sizes of the input, or the sizes of `weight` (which may be NULL), differ from `shape`. */
bool grd_layer_norm_check(const grd_tensor *input, grd_dims shape, const grd_tensor *weight);

/* ---- ldl.c --------------------------------------------------------------------------------------------------------------------------- */

/* Raises RuntimeError if `info`, a result of _ldl_factor, says that D has a zero on its diagonal. `function` is the caller's name in the error's
 * text. */
bool grd_ldl_check(grd_tensor *info, const char *function);

/* ---- least_squares.c ----------------------------------------------------------------------------------------------------------------- */

/* Raises RuntimeError if linalg.lstsq does not accept these dtypes, sizes or numbers of dimensions, or there is no such `driver`. */
bool grd_lstsq_check(const grd_tensor *self, const grd_tensor *b, const char *driver);
/* True if `b` is a batch of vectors, without a dimension of columns. */
bool grd_lstsq_is_vector(const grd_tensor *self, const grd_tensor *b);
/* Returns `rcond` or, if it is absent, the default: max(m, n) times the epsilon of self's dtype, for m x n matrices. */
double grd_lstsq_rcond(const grd_tensor *self, grd_scalar rcond);
/* Returns `solution` with the strides that PyTorch's lstsq gives it, for m x n matrices and k right-hand sides. If m <= n, the result is
 * column-major. If m > n, the result is the first n rows of a column-major m x k matrix. */
grd_tensor *grd_lstsq_laid(grd_tensor *solution, grd_dims sizes);
/* True if linalg.lstsq returns residuals. This needs m > n, a driver other than "gelsy", and rank n for all matrices. With the driver "gels", which
 * does not compute ranks, the rank is not checked. */
bool grd_lstsq_has_residuals(const grd_tensor *self, grd_tensor *rank, const char *driver);

/* ---- lobpcg.c ------------------------------------------------------------------------------------------------------------------------ */

/* Raises RuntimeError if lobpcg does not accept these matrices: A must be square and float32 or float64, B must have A's sizes, and X as many
 * rows as A. B and X may be NULL. */
bool grd_lobpcg_check(const grd_tensor *A, const grd_tensor *B, const grd_tensor *X);
/* Returns the sizes of a tensor with n start vectors for each matrix of a batch. `sizes` is the sizes of that batch. */
grd_dims grd_lobpcg_sizes(grd_dims sizes, int64_t n);
/* Returns the default of lobpcg's argument tol: the square root of the epsilon of A's dtype. */
double grd_lobpcg_tolerance(const grd_tensor *A);

/* ---- loss.c -------------------------------------------------------------------------------------------------------------------------- */

/* The reductions of losses: "mean" (also NULL), "sum" and "none". */
enum grd_loss_reduction { GRD_LOSS_MEAN, GRD_LOSS_SUM, GRD_LOSS_NONE, GRD_LOSS_INVALID };
/* Returns the reduction with this name. For any other name raises ValueError and returns GRD_LOSS_INVALID. */
enum grd_loss_reduction grd_loss_reduction_of(const char *name);
/* Raises ValueError if `reduction` is not the name of a reduction of losses. */
bool grd_loss_check(const char *reduction);
/* Returns the mean or the sum of `loss`, or `loss` itself if `reduction` is "none". */
grd_tensor *grd_loss_reduced(grd_tensor *loss, const char *reduction);
/* Returns the derivative of the reduced loss with respect to one element of the loss. For a mean it is 1 / n, where n is the number of elements of
 * the shape to which sizes `a` and `b` broadcast. Otherwise it is 1. */
double grd_loss_share(const char *reduction, grd_dims a, grd_dims b);
/* Returns the dimension of the classes in an input of a loss: 1, or 0 if there is no batch dimension. */
int64_t grd_class_dim(grd_dims sizes);
/* Raises RuntimeError if `weight`, unless NULL, does not have one element per class. */
bool grd_loss_check_weight(const grd_tensor *weight, int64_t classes);
/* Raises RuntimeError if the input is not a vector or matrix, or if the weight (C, ..., in) or the bias does not fit the input. If the input is a
 * vector, the weight must have two dimensions. */
bool grd_linear_cross_entropy_check(const grd_tensor *input, const grd_tensor *linear_weight, const grd_tensor *linear_bias);
/* Returns the sizes of a weight (C, ..., in) without the last size. */
grd_dims grd_linear_classes(grd_dims linear_weight);
/* Returns the sizes of the scores: those of the input (..., in) without the last, followed by `classes`. */
grd_dims grd_logits_sizes(grd_dims input, grd_dims classes);
/* Returns `var`, reshaped if needed so that it broadcasts to the input. `var` must have the input's sizes, the same sizes with one replaced by 1, or
 * one element per row of the input. Raises ValueError for other sizes or a negative variance. */
grd_tensor *grd_loss_variance(const grd_tensor *input, grd_tensor *var);

/* ---- lu.c ---------------------------------------------------------------------------------------------------------------------------- */

/* Returns the batch sizes of matrices, i.e. `sizes` without the last two. */
grd_dims grd_batch_sizes_of(grd_dims sizes);
/* Returns the numbers of rows and columns of matrices, which are the last two of `sizes`. */
grd_dims grd_matrix_sizes(grd_dims sizes);
/* Returns the number of dimensions to which vmap extends the matrices that it passes to _exchange_rows. With this number, the batch dimensions of the
 * matrices broadcast with those of the pivots. The dimension over which vmap maps is not counted. */
int64_t grd_pivots_rank(const grd_tensor *matrices, const grd_tensor *pivots);
/* Raises RuntimeError if `info`, a result of an LU decomposition, says that U has a zero on its diagonal. `function` is the caller's name in the
 * error's text. */
bool grd_lu_check(grd_tensor *info, const char *function);
/* Raises LinAlgError if `info` says that a matrix given to linalg.solve is singular. */
bool grd_solve_check(grd_tensor *info, const char *function);
/* Raises LinAlgError if `info` says that a matrix given to linalg.inv is singular. */
bool grd_inverse_check(grd_tensor *info, const char *function);
/* Raises RuntimeError if `x` has a half type, for which there are no decompositions. */
bool grd_decomposition_check_width(const grd_tensor *x, const char *function);
/* Raises RuntimeError if `data` has fewer than 2 dimensions or, with unpack_pivots, the pivots of lu_unpack are not int32. */
bool grd_lu_unpack_check(const grd_tensor *data, const grd_tensor *pivots, bool unpack_pivots);
/* Raises RuntimeError if linalg.lu_solve does not accept the dtypes or sizes of these tensors: lu must be square, pivots int32, and b must fit to
 * lu. */
bool grd_lu_solve_check(const grd_tensor *lu, const grd_tensor *pivots, const grd_tensor *b, bool left);
/* Raises RuntimeError if linalg.solve does not accept these matrices: `a` must be square, `b` must have the same dtype, and their sizes must fit. */
bool grd_solve_check_shapes(const grd_tensor *a, const grd_tensor *b, bool left);
/* True if linalg.solve takes `b` as a batch of vectors instead of matrices. */
bool grd_solve_is_vector(grd_dims a, grd_dims b);
/* Returns the number that replaces a zero on the diagonal of U in an LU decomposition. It is the square root of the dtype's epsilon, so that a
 * determinant and its derivatives keep half of their digits. */
double grd_small_pivot(grd_dtype dtype);
/* Returns `vectors`, the solution of linalg.solve for right-hand sides that are vectors, with the strides that PyTorch gives this result. */
grd_tensor *grd_solve_shaped(grd_tensor *vectors);

/* ---- margin.c ------------------------------------------------------------------------------------------------------------------------ */

/* Raises ValueError if p is neither 1 nor 2. Raises ValueError or RuntimeError if the weight is not a vector with one element per class, or the
 * sizes of self and target do not fit. */
bool grd_multi_margin_check(const grd_tensor *self, const grd_tensor *target, double p, const grd_tensor *weight);

/* ---- matmul.c ------------------------------------------------------------------------------------------------------------------------ */

/* Raises RuntimeError if batch1 and batch2 are not batches of matrices that can be multiplied. */
bool grd_addbmm_check(const grd_tensor *batch1, const grd_tensor *batch2);
/* Checks the shapes of bilinear: inputs (..., A) and (..., B) with equal batch sizes, weight (K, A, B), and bias (K) or NULL. Raises RuntimeError if
 * a shape is wrong or the inputs differ in dtype. */
bool grd_bilinear_check(const grd_tensor *input1, const grd_tensor *input2, const grd_tensor *weight, const grd_tensor *bias);

/* ---- matrix_batch.c ------------------------------------------------------------------------------------------------------------------ */

/* Raises RuntimeError if `x` is not a batch of square matrices. The error's text begins with `function`. */
bool grd_decomposition_check_square(const grd_tensor *x, const char *function);
/* Raises RuntimeError if the dtype of `x` is integral. */
bool grd_decomposition_check_inexact(const grd_tensor *x, const char *function);

/* ---- matrix_exp.c -------------------------------------------------------------------------------------------------------------------- */

/* Returns the number of columns of matrices of these sizes. */
int64_t grd_columns_of(grd_dims sizes);

/* ---- norm.c -------------------------------------------------------------------------------------------------------------------------- */

/* Returns a / b, with 0 where b is 0. */
grd_tensor *grd_quotient_or_zero(grd_tensor *a, grd_tensor *b);
/* Raises RuntimeError if a norm would be taken over no elements and p is negative or infinite, because such a norm is undefined. Raises
 * NotImplementedError if there is no arithmetic for the dtype. */
bool grd_norm_check(const grd_tensor *self, double p, grd_dims dim, grd_dtype as);
/* The eight checks below raise RuntimeError with PyTorch's texts for arguments that norms, ranks, pseudo-inverses and condition numbers do not
 * accept. */
bool grd_vector_norm_check(const grd_tensor *self, grd_scalar ord, grd_dtype as);
bool grd_matrix_norm_check(const grd_tensor *self, grd_dims dim, grd_dtype as);
bool grd_linalg_norm_check(const grd_tensor *self, bool has_ord, grd_dims dim);
bool grd_rank_check(const grd_tensor *self, const grd_tensor *atol, const grd_tensor *rtol, const char *function);
bool grd_pinv_check(const grd_tensor *self, const grd_tensor *atol, const grd_tensor *rtol);
bool grd_cond_check(const grd_tensor *self, grd_scalar p);
bool grd_cond_check_name(const grd_tensor *self, const char *p);
bool grd_frobenius_check(const grd_tensor *self, grd_dims dim);
/* True if linalg.norm computes a matrix norm, because `dim` has two dims or, if it is absent, self has two. */
bool grd_norm_is_of_matrices(const grd_tensor *self, grd_dims dim);
/* Returns `dim`, or (0, 1) if it is absent. */
grd_dims grd_norm_dims(grd_dims dim);
/* Returns `dim`, or all dims of self if it is absent. */
grd_dims grd_nuclear_dims(const grd_tensor *self, grd_dims dim);
/* Returns the default tolerance of ranks: max(rows, columns) times the distance from 1 to the next number of the dtype. */
double grd_rank_epsilon(const grd_tensor *self);
/* Returns the number `tolerance` as a zero-dimensional tensor of the real dtype that belongs to self's dtype; NULL if `tolerance` is absent. */
grd_tensor *grd_tolerance_tensor(grd_tensor *self, grd_scalar tolerance);

/* ---- pad.c --------------------------------------------------------------------------------------------------------------------------- */

/* Returns the padding lengths with which constant_pad_nd undoes a constant_pad_nd by `pad`. */
grd_dims grd_pad_back(grd_dims pad);
/* Returns the padding at the end of each dimension that extends sizes `from` to sizes `to`. */
grd_dims grd_pad_to(grd_dims from, grd_dims to);
/* Returns a copy of self padded by `pad` in the last n dimensions. `mode` is "reflect" or "replicate". Raises RuntimeError if `pad` does not have
 * 2 * n lengths. */
grd_tensor *grd_pad_bordered(grd_tensor *self, grd_dims pad, const char *mode, int64_t n);

/* ---- pool.c -------------------------------------------------------------------------------------------------------------------------- */

/* Returns the last n of `sizes`, which are the sizes of images. */
grd_dims grd_image_sizes(grd_dims sizes, int64_t n);
/* Returns `sizes` with the last n merged into one. */
grd_dims grd_plane_sizes(grd_dims sizes, int64_t n);
/* True if `size` has exactly two numbers. */
bool grd_is_pair(grd_dims size);
/* Converts an argument of one-dimensional pooling, such as kernel_size, to the argument of two-dimensional pooling over images with one row. Returns
 * two numbers: `above`, which is for the height, and the only number in `numbers`, which is for the width. Returns an empty list if `numbers` does
 * not have exactly one number. */
grd_dims grd_window_of_row(grd_dims numbers, int64_t above);
/* Returns the input of one-dimensional pooling as images with one row, for two-dimensional pooling. Raises RuntimeError if self does not have 2
 * or 3 dimensions, or if a list (kernel_size, stride, padding, dilation) does not have exactly one number; `stride` may be absent. */
grd_tensor *grd_row_images(const char *name, grd_tensor *self, grd_dims kernel_size, grd_dims stride, grd_dims padding, grd_dims dilation);
/* Returns the input of one-dimensional adaptive pooling as images with one row, for two-dimensional pooling. Raises RuntimeError if self does not
 * have 2 or 3 dimensions, or if output_size does not have one number. */
grd_tensor *grd_adaptive_row_images(const char *name, grd_tensor *self, grd_dims output_size);
/* Raises RuntimeError if a dimension of self from `first` on has size 0. `name` is the operator's name in the error's text. */
bool grd_check_pooled(const char *name, const grd_tensor *self, int64_t first);
/* True if adaptive pooling to output_size averages each image, because all of the n output sizes are 1. Without elements the average is NaN. */
bool grd_is_average(const grd_tensor *self, grd_dims output_size, int64_t n);
/* Returns the number of elements of a window with n dimensions. */
double grd_window_elements(grd_dims kernel_size, int64_t n);

/* ---- random_indices.c ---------------------------------------------------------------------------------------------------------------- */

/* Raises RuntimeError if a probability is negative or not finite, or the probabilities of a row sum to 0. */
bool grd_multinomial_check(grd_tensor *p);

/* ---- reduce_plan.c ------------------------------------------------------------------------------------------------------------------- */

/* Returns the number of elements that a reduction along `dim` (absent: all dims) combines into one; 0, with an error pending, if there is no such
 * dim. */
double grd_reduced_count(grd_dims sizes, grd_dims dim);
/* Returns the floating-point dtype in which elements of self are summed: self's dtype (the default float dtype for bool and integers), or the dtype
 * of `out` if that dtype has more precision. `out` may be NULL. */
grd_dtype grd_summing_dtype(const grd_tensor *out, const grd_tensor *self);

/* ---- repeat.c ------------------------------------------------------------------------------------------------------------------------ */

/* Returns the sizes of the result of `repeat`, in which each dimension with a number of repetitions other than 1 is split in two: first the number of
 * repetitions, then the size of the input's dimension. If `once`, returns these sizes with every number of repetitions replaced by 1. The gradient of
 * `repeat` sums from the first sizes to the second. */
grd_dims grd_repeat_sizes(grd_dims repeats, grd_dims sizes, bool once);

/* ---- resample.c ---------------------------------------------------------------------------------------------------------------------- */

/* Returns the last image.n numbers of `sizes`. */
grd_dims grd_image_sizes_as(grd_dims sizes, grd_dims image);

/* ---- scatter.c ----------------------------------------------------------------------------------------------------------------------- */

/* Returns the sizes of the part of `src` from which scatter reads if the index has the sizes `index`. */
grd_dims grd_used_sizes(grd_dims index, grd_dims src);
/* Returns the identity element of the reduction `reduce`, from which scatter_reduce starts if include_self is false. */
grd_scalar grd_scatter_identity(const char *reduce, grd_dtype dtype);
/* Returns for each element of self the number of values whose mean scatter_reduce writes to this element, or 1 if there are none. */
grd_tensor *grd_scatter_counts(grd_tensor *self, int64_t dim, grd_tensor *index, grd_tensor *src, bool include_self);

/* ---- signal_windows.c ---------------------------------------------------------------------------------------------------------------- */

/* Returns the dtype of a window, by default the default float dtype. Raises RuntimeError if `dtype` is not a floating-point dtype, or the length
 * is negative. `function` is the caller's name in the error's text. */
grd_dtype grd_window_dtype(grd_dtype dtype, int64_t length, const char *function);
/* Returns the dtype of a window of torch.signal.windows, by default the default float dtype. Raises ValueError if `dtype` is not a floating-point
 * dtype, or the length is negative. `function` is the caller's name in the error's text. */
grd_dtype grd_signal_window_dtype(grd_dtype dtype, int64_t length, const char *function);

/* ---- statistics.c -------------------------------------------------------------------------------------------------------------------- */

/* Returns q as a zero-dimensional tensor of self's dtype. Raises RuntimeError if q is not in [0, 1]. */
grd_tensor *grd_quantile_fraction(grd_tensor *self, double q);
/* Raises RuntimeError if y is bool, or dx is complex. Raises IndexError if there is no such dim. The error's text begins with `function`. */
bool grd_trapezoid_check(const grd_tensor *y, grd_scalar dx, int64_t dim, const char *function);
/* Returns the sample positions `x` reshaped so that they broadcast to y. Raises RuntimeError if a tensor is bool, or if `x` does not have one
 * position for each sample of y along `dim`. */
grd_tensor *grd_trapezoid_places(const grd_tensor *y, grd_tensor *x, int64_t dim, const char *function);

/* ---- take.c -------------------------------------------------------------------------------------------------------------------------- */

/* Raises RuntimeError if the index is not int64, or self and source differ in dtype. Raises IndexError if index and source differ in their
 * numbers of elements. */
bool grd_put_check(const grd_tensor *self, const grd_tensor *index, const grd_tensor *source);

/* ---- tensor_split.c ------------------------------------------------------------------------------------------------------------------ */

/* Raises RuntimeError if self has fewer than `least` dimensions, or its size along `dim` is not divisible by `sections`. `name` is the function's
 * name in the error's text. */
bool grd_split_check(const grd_tensor *self, int64_t least, int64_t dim, int64_t sections, const char *name);

/* ---- view.c -------------------------------------------------------------------------------------------------------------------------- */

/* Returns the permutation that undoes the permutation `dims`. */
grd_dims grd_inverse_order(grd_dims dims);
/* Returns `dimension` + 1, where a negative `dimension` counts from the end, or 0 for a zero-dimensional tensor. The gradient formula of unfold moves
 * the last dimension of the gradient, which runs along a window, to the returned position. */
int64_t grd_window_dim(grd_dims sizes, int64_t dimension);
/* Returns storage_offset - offset, where `offset` is the storage offset of the tensor whose view is taken; 0 if storage_offset is absent. */
int64_t grd_offset_within(grd_scalar storage_offset, int64_t offset);

/* ---- view_gradient.c ----------------------------------------------------------------------------------------------------------------- */

/* Returns storage_offset or, if it is absent, `offset`, which is the tensor's own offset. */
int64_t grd_offset_given(grd_scalar storage_offset, int64_t offset);
/* True if two elements of a tensor with these sizes and strides may share memory. */
bool grd_geometry_overlaps(grd_dims sizes, grd_dims strides);

#endif
