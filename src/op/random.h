/* What drawing random numbers asks of dtypes, shared by the fills (random.c) and the operators that make tensors (sample.c). */
#ifndef GRD_OP_RANDOM_H
#define GRD_OP_RANDOM_H

#include "base/random.h"
#include "core/tensor.h"

/* Whether a dtype takes numbers of a continuous distribution: float16, bfloat16, float32, float64. */
bool grd_random_is_floating(grd_dtype dtype);
/* Significant bits of a floating dtype, or bits above the sign of an integer one. */
int grd_random_digits(grd_dtype dtype);
/* The smallest and largest int64 of an integral dtype, or that a floating one reaches. */
void grd_random_bounds(grd_dtype dtype, int64_t *ret_low, int64_t *ret_high);

#endif
