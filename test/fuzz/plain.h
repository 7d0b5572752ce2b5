/* Reference tensors for the fuzz targets. A reference tensor (struct plain) is slow and simple: for each element it has the number of the memory
 * cell that holds it. Operators are loops over indices in double arithmetic, and each number carries its derivatives by a few chosen leaf elements.
 *
 * Nothing here calls an operator of the library. After each operator the library's results are read into the reference (plain_read), so that
 * rounding errors do not accumulate. */
#ifndef GRD_TEST_PLAIN_H
#define GRD_TEST_PLAIN_H

#include "fuzz.h"

enum { PLAIN_DIMS = 4, PLAIN_CELLS = 48, PLAIN_TRACKED = 6 };

struct number {
    double re, im;           /* the value of floating and complex dtypes */
    int64_t i;               /* the value of bool and integer dtypes */
    double d[PLAIN_TRACKED]; /* derivatives by the tracked leaf elements, for float64 */
    double size;             /* the magnitude of the summands, to which rounding errors are relative */
};

struct memory {
    struct number cells[PLAIN_CELLS];
    bool lost; /* true if derivatives are unknown */
};

struct plain {
    grd_dtype dtype;
    int ndim, n, at[PLAIN_CELLS];
    int64_t sizes[PLAIN_DIMS];
    struct memory *memory;
};

enum verdict {
    VALID,
    REFUSED, /* the library must raise an error */
    UNSURE,  /* the library may raise an error or return any result */
    TOO_LARGE
};

/* Forgets all tensors. */
void plain_reset(void);
/* Makes a tensor of zeros in memory of its own; returns false if it is too large for this test. */
bool plain_new(struct plain *p, grd_dtype dtype, int ndim, const int64_t *sizes);
struct number *plain_at(const struct plain *p, int i);
/* Replaces the values with the elements of `t`, which has the same shape. The derivatives stay. */
void plain_read(struct plain *p, grd_tensor *t);
/* True if `t` has the same elements, bit for bit. */
bool plain_equals(const struct plain *p, grd_tensor *t);
/* True if the elements of `t` agree within `ulps` ulps of their dtype, or of `computed_in` if that is coarser. */
bool plain_near(const struct plain *p, grd_tensor *t, double ulps, grd_dtype computed_in);
/* True if two elements of p lie in one cell. */
bool plain_overlaps_itself(const struct plain *p);
/* True if an element of p and one of q lie in one cell. */
bool plain_shares(const struct plain *p, const struct plain *q);
/* True if p and q share cells and are not the same elements in the same order. */
bool plain_overlaps(const struct plain *p, const struct plain *q);

/* Operators by their place in these lists. */
/* clang-format off */
#define PLAIN_UNARY(X) \
    X(neg) X(abs) X(square) X(sign) X(relu) X(floor) X(ceil) X(round) X(trunc) X(exp) X(log) X(sin) X(cos) X(tanh) X(sqrt) X(sigmoid) \
    X(reciprocal) X(erf) X(expm1) X(log1p) X(atan) X(logical_not) X(isnan) X(isfinite)
#define PLAIN_BINARY(X) \
    X(add) X(sub) X(mul) X(div) X(maximum) X(minimum) X(atan2) X(eq) X(ne) X(lt) X(le) X(gt) X(ge) X(logical_and) X(logical_or) \
    X(logical_xor) X(bitwise_and) X(bitwise_or) X(bitwise_xor)
#define PLAIN_REDUCTION(X) X(sum) X(mean) X(amax) X(amin) X(any) X(all) X(count_nonzero) X(var) X(logsumexp)
#define PLAIN_ALONG(X) X(cumsum) X(cumprod) X(softmax) X(log_softmax) X(prod) X(argmax) X(argmin)
/* clang-format on */

#define PLAIN_ENUM(name) PLAIN_##name,
enum plain_unary { PLAIN_UNARY(PLAIN_ENUM) PLAIN_UNARIES };
enum plain_binary { PLAIN_BINARY(PLAIN_ENUM) PLAIN_BINARIES };
enum plain_reduction { PLAIN_REDUCTION(PLAIN_ENUM) PLAIN_REDUCTIONS };
enum plain_along { PLAIN_ALONG(PLAIN_ENUM) PLAIN_ALONGS };
#undef PLAIN_ENUM

enum verdict plain_unary(enum plain_unary op, const struct plain *x, struct plain *ret);
/* `common` is the dtype that both operands promote to; the caller computes it. */
enum verdict plain_binary(enum plain_binary op, const struct plain *x, const struct plain *y, grd_dtype common, double alpha,
                          struct plain *ret);
enum verdict plain_where(const struct plain *c, const struct plain *x, const struct plain *y, grd_dtype common, struct plain *ret);
enum verdict plain_reduce(enum plain_reduction op, const struct plain *x, unsigned dims, bool keepdim, struct plain *ret);
enum verdict plain_along(enum plain_along op, const struct plain *x, int dim, struct plain *ret);
/* Computes x @ y as matmul does. Both have the same dtype. */
enum verdict plain_matmul(const struct plain *x, const struct plain *y, struct plain *ret);
enum verdict plain_convert(const struct plain *x, grd_dtype dtype, struct plain *ret);
/* Reads elements that an int64 tensor `at` selects along `dim`, as gather and index_select do: ret[index] = x[index with index[dim] replaced by the
 * value of `at`]. For index_select, `at` is a vector. */
enum verdict plain_gather(const struct plain *x, int dim, const struct plain *at, struct plain *ret);
enum verdict plain_index_select(const struct plain *x, int dim, const struct plain *at, struct plain *ret);
/* Returns a copy of x in which `source` is added to (or, unless `add`, written over) the elements that gather would read. */
enum verdict plain_scatter(const struct plain *x, int dim, const struct plain *at, const struct plain *source, bool add, struct plain *ret);
enum verdict plain_cat(const struct plain *const *parts, int n, int dim, grd_dtype common, struct plain *ret);

/* Writes x, broadcast and converted, to p, element by element. False when the shapes do not fit. */
bool plain_write(struct plain *p, const struct plain *x);

/* Views: the result has a list of cells of its own and shares the memory. REFUSED if the arguments are wrong. */
enum verdict plain_transpose(const struct plain *x, int a, int b, struct plain *ret);
enum verdict plain_select(const struct plain *x, int dim, int64_t index, struct plain *ret);
enum verdict plain_slice(const struct plain *x, int dim, int64_t start, int64_t end, int64_t step, struct plain *ret);
enum verdict plain_expand(const struct plain *x, int ndim, const int64_t *sizes, struct plain *ret);
/* Returns the same elements in row-major order with other sizes. */
enum verdict plain_reshape(const struct plain *x, int ndim, const int64_t *sizes, struct plain *ret);
enum verdict plain_flip(const struct plain *x, unsigned dims, struct plain *ret);

#endif
