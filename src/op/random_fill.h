/* Which dtypes random numbers can be drawn in. */
#ifndef GRD_OP_RANDOM_FILL_H
#define GRD_OP_RANDOM_FILL_H

#include "base/random.h"
#include "core/tensor.h"

/* True if a dtype takes numbers of a continuous distribution: float16, bfloat16, float32, float64. */
bool grd_random_is_floating(grd_dtype dtype);

#endif
