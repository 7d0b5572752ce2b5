/* Samplers that reject: how many words a number takes follows from the words, so these draw one number at a time. Compiled once, without fused
 * multiply-add, as PyTorch's are. Numbers made of a fixed count of words are in kernel/random.h. */
#ifndef GRD_KERNEL_SAMPLER_H
#define GRD_KERNEL_SAMPLER_H

#include <stdbool.h>

#include "base/random.h"

/* Each returns a number of a distribution. The parameters are elements of float64 (`wide`) or float32; intermediate values are rounded to
 * float32 where PyTorch rounds them. The generator is locked by the caller. */

/* rate >= 0. */
double grd_sample_poisson(struct grd_generator *generator, double rate);
/* NaN where count or probability is NaN; 0 where count is negative. */
double grd_sample_binomial(struct grd_generator *generator, double count, double probability, bool wide);
/* The gamma distribution of rate 1; 0 for concentration 0. */
double grd_sample_gamma(struct grd_generator *generator, double concentration, bool wide);

#endif
