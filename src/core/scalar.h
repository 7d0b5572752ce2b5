/* Declares functions that read, write and convert single elements of every dtype, and that convert scalars. */
#ifndef GRD_CORE_SCALAR_H
#define GRD_CORE_SCALAR_H

#include <stdbool.h>

#include "gradus/tensor.h"

static inline bool grd_scalar_is_integral(grd_scalar s)
{
    return s.kind == GRD_SCALAR_INT || s.kind == GRD_SCALAR_BOOL || s.kind == GRD_SCALAR_UINT;
}

/* Returns the imaginary part of a scalar; 0 unless its kind is COMPLEX. */
static inline double grd_scalar_imaginary(grd_scalar s)
{
    return s.kind == GRD_SCALAR_COMPLEX ? s.v.c.im : 0;
}

/* Returns the number `value`, e.g. an option of an operator, as a scalar. It is not known whether the number was an int or a float. So the scalar is
 * of kind INT if the number is integral and below 2^53 in magnitude, otherwise of kind FLOAT. See Note [Numbers as options]. */
grd_scalar grd_scalar_of_untyped(double value);
/* Returns the dtype of a tensor made from this number: bool, int64, the default dtype, or the complex dtype of the default dtype. Returns
 * GRD_DTYPE_NONE if the scalar is absent. */
grd_dtype grd_scalar_dtype(grd_scalar s);
/* Writes the scalar as one element of `dtype`, as fill_ does. Returns false, with an error raised, on failure. The error is RuntimeError "value
 * cannot be converted to type uint8_t without overflow" (see Note [Unsigned wrap-around]), or TypeError if the scalar is absent. */
bool grd_scalar_write(grd_scalar s, grd_dtype dtype, void *ret_element);
/* Returns the element of dtype `dtype` at this address as a scalar. */
grd_scalar grd_scalar_read(const void *element, grd_dtype dtype);
/* Converts one element as a cast does: truncates to integers, wraps around, drops imaginary parts. It never fails. */
void grd_element_convert(const void *from, grd_dtype from_dtype, void *ret_to, grd_dtype to_dtype);

#endif
