/* Samplers that reject: how many words a number takes follows from the words, so these draw one number at a time. Compiled once, without fused
 * multiply-add, as PyTorch's are. Numbers made of a fixed count of words are in kernel/random.h. */
#ifndef GRD_KERNEL_SAMPLER_H
#define GRD_KERNEL_SAMPLER_H

#include <stdbool.h>

#include "base/random.h"

/* Each writes n numbers of a distribution, one for each n parameters, which are elements of float64 (`wide`) or float32; intermediate values are rounded
 * to float32 where PyTorch rounds them. The generator is locked by the caller. */

/* rates >= 0. */
void grd_sample_poissons(struct grd_generator *generator, int64_t n, const double *rates, double *ret_numbers);
/* NaN where count or probability is NaN; 0 where the count is negative. */
void grd_sample_binomials(struct grd_generator *generator, int64_t n, const double *counts, const double *probabilities, bool wide,
                          double *ret_numbers);
/* The gamma distribution of rate 1; no number is smaller than the least normal one. */
void grd_sample_gammas(struct grd_generator *generator, int64_t n, const double *concentrations, bool wide, double *ret_numbers);
/* Divides each n numbers of gamma by their sum; between the least normal number and the largest below 1. */
void grd_normalize_gammas(int64_t rows, int64_t n, bool wide, double *numbers);

#endif
