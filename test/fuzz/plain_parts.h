/* What the files of the plain tensors share: the places of elements, numbers of a dtype, derivatives. */
#ifndef GRD_TEST_PLAIN_PARTS_H
#define GRD_TEST_PLAIN_PARTS_H

#include "plain.h"

#include <math.h>

/* ---- Places ---------------------------------------------------------------------------------------------------------------------- */
int64_t plain_count(int ndim, const int64_t *sizes);
int plain_split_index(const struct plain *p, int place, int64_t *ret_index);
int plain_join_index(const struct plain *p, const int64_t *index);
/* The element of x that stands at place i of `shape`, to which x is broadcast. */
int plain_broadcast_place(const struct plain *x, const struct plain *shape, int i);
/* False when the shapes do not broadcast or are too many. */
bool plain_broadcast(const struct plain *const *inputs, int n, int *ret_ndim, int64_t *ret_sizes);

/* ---- Numbers --------------------------------------------------------------------------------------------------------------------- */
enum category { BOOLEAN, INTEGRAL, FLOATING, COMPLEX };

enum category number_category(grd_dtype dtype);
int64_t number_wrap(int64_t i, grd_dtype dtype);
double number_to_double(const struct number *x, grd_dtype dtype);
bool number_is_true(const struct number *x, grd_dtype dtype);
/* What a float16 holds of a double, or the dtype of another float. */
double number_round(double x, grd_dtype dtype);
/* False where the value is undefined: a float outside the integers. */
bool number_convert(const struct number *x, grd_dtype from, grd_dtype to, struct number *ret);
grd_dtype number_to_float(grd_dtype dtype);

/* ---- Derivatives ----------------------------------------------------------------------------------------------------------------- */
/* Results in less than float64 have no exact derivative; nor has what comes from a tensor without one. */
void plain_inherit(struct plain *ret, const struct plain *x);
/* y = f(...) with dy = slope * dx added. */
void number_add_slope(struct number *y, const struct number *x, double slope);

/* ---- Reductions ------------------------------------------------------------------------------------------------------------------ */
/* The elements that are reduced into one, in row-major order. */
struct group {
    int n;
    const struct number *x[PLAIN_CELLS];
};

#endif
