/* Numbers with their kind, and single elements of every dtype: read, written and converted. */
#ifndef GRD_CORE_SCALAR_H
#define GRD_CORE_SCALAR_H

#include <stdbool.h>

#include "gradus/tensor.h"

static inline bool grd_scalar_is_integral(grd_scalar s)
{
    return s.kind == GRD_SCALAR_INT || s.kind == GRD_SCALAR_BOOL || s.kind == GRD_SCALAR_UINT;
}

/* A plain number with its kind: INT when it is whole and below 2^53 in size, otherwise FLOAT. See Note [Plain options]. */
grd_scalar grd_number_of_plain(double value);
/* Returns the dtype of a tensor made of this number: bool, int64, the default float dtype, or its complex dtype. */
grd_dtype grd_scalar_dtype(grd_scalar s);
/* Writes the scalar as one element of dtype, as fill_ does. RuntimeError "value cannot be converted to type uint8_t without
 * overflow" when it is out of range; see Note [Unsigned wrap-around]. Absent scalars are refused: TypeError. */
bool grd_scalar_write(grd_scalar s, grd_dtype dtype, void *ret_element);
/* Returns one element as a scalar. */
grd_scalar grd_scalar_read(const void *element, grd_dtype dtype);
/* Converts one element as a cast does: truncates, wraps, drops imaginary parts; never fails. */
void grd_element_convert(const void *from, grd_dtype from_dtype, void *ret_to, grd_dtype to_dtype);

#endif
