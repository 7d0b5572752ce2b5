/* Says in which dtypes random numbers can be drawn. */
#ifndef GRD_OP_RANDOM_FILL_H
#define GRD_OP_RANDOM_FILL_H

#include "base/random.h"
#include "core/tensor.h"

/* True if the dtype can hold numbers of a continuous distribution: float16, bfloat16, float32 or float64. */
bool grd_random_is_floating(grd_dtype dtype);

#endif
