/* Reference tensors for the fuzz targets. A reference tensor (struct reference) is slow and simple. For each element it has the number of the memory
 * cell that holds the element. Operators are loops over indices in double arithmetic, and each number carries its derivatives with respect to a few
 * chosen elements of leaves.
 *
 * Nothing here calls an operator of the library. After each operator the library's results are read into the reference (reference_read), so that
 * rounding errors do not accumulate. */
#ifndef GRD_TEST_REFERENCE_H
#define GRD_TEST_REFERENCE_H

#include "fuzz.h"

enum { REFERENCE_DIMS = 4, REFERENCE_CELLS = 48, REFERENCE_TRACKED = 6 };

struct number {
    double re, im;               /* the value of floating and complex dtypes */
    int64_t i;                   /* the value of bool and integer dtypes */
    double d[REFERENCE_TRACKED]; /* derivatives with respect to the tracked elements of leaves, for float64 */
    /* sum of the absolute values of the terms that were added; the allowed rounding error is proportional to it */
    double size;
};

struct memory {
    struct number cells[REFERENCE_CELLS];
    bool lost; /* true if the derivatives in the cells are unknown */
};

struct reference {
    grd_dtype dtype;
    int ndim, n, at[REFERENCE_CELLS];
    int64_t sizes[REFERENCE_DIMS];
    struct memory *memory;
};

enum verdict {
    VALID,
    REFUSED, /* the library must raise an error */
    UNSURE,  /* the library may raise an error or return any result */
    TOO_LARGE
};

/* Frees the memory of all reference tensors for reuse. */
void reference_reset(void);
/* Makes `p` a reference tensor of zeros in memory of its own. Returns false if it is too large or there is no memory left. */
bool reference_new(struct reference *p, grd_dtype dtype, int ndim, const int64_t *sizes);
struct number *reference_at(const struct reference *p, int i);
/* Replaces the elements of `p` with those of `t`, which has the same shape. The derivatives of `p` do not change. */
void reference_read(struct reference *p, grd_tensor *t);
/* True if `t` has the shape, dtype and elements of `p`, bit for bit except that all NaNs are equal. */
bool reference_equals(const struct reference *p, grd_tensor *t);
/* True if the elements of `t` differ from those of `p` by at most `ulps` ulps of their dtype, or of the dtype `computed_in` if that is coarser. */
bool reference_near(const struct reference *p, grd_tensor *t, double ulps, grd_dtype computed_in);
/* True if two elements of p lie in the same memory cell. */
bool reference_overlaps_itself(const struct reference *p);
/* True if an element of p and an element of q lie in the same memory cell. */
bool reference_shares(const struct reference *p, const struct reference *q);
/* True if an elementwise operator that reads q (broadcast to p) and writes p could overwrite elements of q before it reads them. This is so if p and
 * q share cells, unless each element of p lies in the same cell as the element of q with the same index. */
bool reference_overlaps(const struct reference *p, const struct reference *q);

/* The operators that the reference implements. The enumerators of the operators are numbered in the order of these lists. */
/* clang-format off */
#define REFERENCE_UNARY(X) \
    X(neg) X(abs) X(square) X(sign) X(relu) X(floor) X(ceil) X(round) X(trunc) X(exp) X(log) X(sin) X(cos) X(tanh) X(sqrt) X(sigmoid) \
    X(reciprocal) X(erf) X(expm1) X(log1p) X(atan) X(logical_not) X(isnan) X(isfinite)
#define REFERENCE_BINARY(X) \
    X(add) X(sub) X(mul) X(div) X(maximum) X(minimum) X(atan2) X(eq) X(ne) X(lt) X(le) X(gt) X(ge) X(logical_and) X(logical_or) \
    X(logical_xor) X(bitwise_and) X(bitwise_or) X(bitwise_xor)
#define REFERENCE_REDUCTION(X) X(sum) X(mean) X(amax) X(amin) X(any) X(all) X(count_nonzero) X(var) X(logsumexp)
#define REFERENCE_ALONG(X) X(cumsum) X(cumprod) X(softmax) X(log_softmax) X(prod) X(argmax) X(argmin)
/* clang-format on */

#define REFERENCE_ENUM(name) REFERENCE_##name,
enum reference_unary { REFERENCE_UNARY(REFERENCE_ENUM) REFERENCE_UNARIES };
enum reference_binary { REFERENCE_BINARY(REFERENCE_ENUM) REFERENCE_BINARIES };
enum reference_reduction { REFERENCE_REDUCTION(REFERENCE_ENUM) REFERENCE_REDUCTIONS };
enum reference_along { REFERENCE_ALONG(REFERENCE_ENUM) REFERENCE_ALONGS };
#undef REFERENCE_ENUM

enum verdict reference_unary(enum reference_unary op, const struct reference *x, struct reference *ret);
/* Computes a binary operator and stores the result in *ret. `common` is the dtype to which both operands promote. `alpha` is the factor of y in
 * add and sub. */
enum verdict reference_binary(enum reference_binary op, const struct reference *x, const struct reference *y, grd_dtype common,
                              double alpha, struct reference *ret);
enum verdict reference_where(const struct reference *c, const struct reference *x, const struct reference *y, grd_dtype common,
                             struct reference *ret);
enum verdict reference_reduce(enum reference_reduction op, const struct reference *x, unsigned dims, bool keepdim, struct reference *ret);
enum verdict reference_along(enum reference_along op, const struct reference *x, int dim, struct reference *ret);
/* Computes x @ y as matmul does and stores it in *ret. Returns REFUSED if x and y have different dtypes or shapes that do not fit. */
enum verdict reference_matmul(const struct reference *x, const struct reference *y, struct reference *ret);
enum verdict reference_convert(const struct reference *x, grd_dtype dtype, struct reference *ret);
/* Compute gather and index_select along `dim`, and store the result in *ret. `at` is the integer tensor of indices; for index_select it is a vector.
 * Return REFUSED if an index is invalid. */
enum verdict reference_gather(const struct reference *x, int dim, const struct reference *at, struct reference *ret);
enum verdict reference_index_select(const struct reference *x, int dim, const struct reference *at, struct reference *ret);
/* Computes scatter_add (or scatter, if `add` is false) along `dim`, and stores the result in *ret: a copy of x, to which the elements of `source` are
 * added or written. `at` is the integer tensor of indices. */
enum verdict reference_scatter(const struct reference *x, int dim, const struct reference *at, const struct reference *source, bool add,
                               struct reference *ret);
enum verdict reference_cat(const struct reference *const *parts, int n, int dim, grd_dtype common, struct reference *ret);

/* Writes x, broadcast to the shape of p and converted to its dtype, to p. Returns false if x does not broadcast to the shape of p. */
bool reference_write(struct reference *p, const struct reference *x);

/* All these functions but reference_flip make *ret a view. A view shares the memory of x, but has its own list of the memory cells of its elements.
 * reference_flip makes a copy. The functions return REFUSED for invalid arguments. */
enum verdict reference_transpose(const struct reference *x, int a, int b, struct reference *ret);
enum verdict reference_select(const struct reference *x, int dim, int64_t index, struct reference *ret);
enum verdict reference_slice(const struct reference *x, int dim, int64_t start, int64_t end, int64_t step, struct reference *ret);
enum verdict reference_expand(const struct reference *x, int ndim, const int64_t *sizes, struct reference *ret);
/* Makes *ret a tensor with the given sizes and the elements of x in the same row-major order, sharing the memory of x. */
enum verdict reference_reshape(const struct reference *x, int ndim, const int64_t *sizes, struct reference *ret);
enum verdict reference_flip(const struct reference *x, unsigned dims, struct reference *ret);

#endif
