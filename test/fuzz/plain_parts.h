/* Shared by the files of the reference tensors: positions of elements, numbers of a dtype, derivatives. */
#ifndef GRD_TEST_PLAIN_PARTS_H
#define GRD_TEST_PLAIN_PARTS_H

#include "plain.h"

#include <math.h>

/* ---- Positions of elements ------------------------------------------------------------------------------------------------------- */
int64_t plain_count(int ndim, const int64_t *sizes);
int plain_split_index(const struct plain *p, int place, int64_t *ret_index);
int plain_join_index(const struct plain *p, const int64_t *index);
/* Returns the position of the element of x that is broadcast to position i of `shape`. */
int plain_broadcast_place(const struct plain *x, const struct plain *shape, int i);
/* Computes the broadcast shape; returns false if the shapes do not broadcast or have too many dimensions. */
bool plain_broadcast(const struct plain *const *inputs, int n, int *ret_ndim, int64_t *ret_sizes);

/* ---- Numbers --------------------------------------------------------------------------------------------------------------------- */
enum category { BOOLEAN, INTEGRAL, FLOATING, COMPLEX };

enum category number_category(grd_dtype dtype);
int64_t number_wrap(int64_t i, grd_dtype dtype);
double number_to_double(const struct number *x, grd_dtype dtype);
bool number_is_true(const struct number *x, grd_dtype dtype);
/* Returns x rounded to the dtype. */
double number_round(double x, grd_dtype dtype);
/* Converts a number; returns false if the result is undefined, as for a float outside the range of an integer dtype. */
bool number_convert(const struct number *x, grd_dtype from, grd_dtype to, struct number *ret);
grd_dtype number_to_float(grd_dtype dtype);

/* ---- Derivatives ----------------------------------------------------------------------------------------------------------------- */
/* Marks the derivatives of `ret` unknown if those of x are, or if `ret` is less precise than float64. */
void plain_inherit(struct plain *ret, const struct plain *x);
/* Adds slope * dx to the derivatives of y, for one argument x of y = f(...). */
void number_add_slope(struct number *y, const struct number *x, double slope);

/* ---- Reductions ------------------------------------------------------------------------------------------------------------------ */
/* The elements that are reduced to one element, in row-major order. */
struct group {
    int n;
    const struct number *x[PLAIN_CELLS];
};

#endif
