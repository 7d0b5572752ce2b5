/* Declares functions that the files reference*.c share. They compute positions of elements, convert numbers between dtypes, and
 * compute derivatives. */
#ifndef GRD_TEST_REFERENCE_PARTS_H
#define GRD_TEST_REFERENCE_PARTS_H

#include "reference.h"

#include <math.h>

/* ---- Positions of elements ------------------------------------------------------------------------------------------------------- */
int64_t reference_count(int ndim, const int64_t *sizes);
int reference_split_index(const struct reference *p, int place, int64_t *ret_index);
int reference_join_index(const struct reference *p, const int64_t *index);
/* Returns the position of the element of x that is broadcast to position i of `shape`. */
int reference_broadcast_place(const struct reference *x, const struct reference *shape, int i);
/* Computes the shape to which the n inputs broadcast. Returns false if they do not broadcast. */
bool reference_broadcast(const struct reference *const *inputs, int n, int *ret_ndim, int64_t *ret_sizes);

/* ---- Numbers --------------------------------------------------------------------------------------------------------------------- */
enum category { BOOLEAN, INTEGRAL, FLOATING, COMPLEX };

enum category number_category(grd_dtype dtype);
int64_t number_wrap(int64_t i, grd_dtype dtype);
double number_to_double(const struct number *x, grd_dtype dtype);
bool number_is_true(const struct number *x, grd_dtype dtype);
/* Returns x rounded to the dtype. */
double number_round(double x, grd_dtype dtype);
/* Converts a number of dtype `from` to `to`. Returns false if the result is undefined, e.g. for a float out of the range of an integer dtype. */
bool number_convert(const struct number *x, grd_dtype from, grd_dtype to, struct number *ret);
grd_dtype number_to_float(grd_dtype dtype);

/* ---- Derivatives ----------------------------------------------------------------------------------------------------------------- */
/* Marks the derivatives of `ret` as unknown if those of x are, or if `ret` was computed with less precision than float64. */
void reference_inherit(struct reference *ret, const struct reference *x);
/* Adds `slope` times the derivatives of x to the derivatives of y. `slope` is the partial derivative of y with respect to its argument x. */
void number_add_slope(struct number *y, const struct number *x, double slope);

/* ---- Reductions ------------------------------------------------------------------------------------------------------------------ */
/* The n elements, in row-major order, that a reduction combines to one element. */
struct group {
    int n;
    const struct number *x[REFERENCE_CELLS];
};

#endif
