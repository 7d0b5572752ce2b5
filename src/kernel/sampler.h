/* Declares samplers for Poisson, binomial and gamma numbers. They use rejection, so the number of random 32-bit words that a sample takes is not
 * known in advance. Therefore they draw one sample at a time. They are compiled once, without fused multiply-add, as in PyTorch. Distributions with a
 * fixed number of words per value are in kernel/random.h. */
#ifndef GRD_KERNEL_SAMPLER_H
#define GRD_KERNEL_SAMPLER_H

#include <stdbool.h>

#include "base/random.h"

/* The three grd_sample functions below write one number for each of n parameters. Parameters have the precision of float64 (`wide`) or
 * float32; intermediate values are rounded to float32 where PyTorch does so. The caller holds the generator's lock. */

/* Writes Poisson numbers with the given rates, which are at least 0. */
void grd_sample_poissons(struct grd_generator *generator, int64_t n, const double *rates, double *ret_numbers);
/* Writes binomial numbers: NaN if count or probability is NaN, 0 if the count is negative. */
void grd_sample_binomials(struct grd_generator *generator, int64_t n, const double *counts, const double *probabilities, bool wide,
                          double *ret_numbers);
/* Writes numbers from gamma distributions with rate 1 and the given concentrations. A number below the smallest normal number of the dtype is
 * replaced by that smallest number. */
void grd_sample_gammas(struct grd_generator *generator, int64_t n, const double *concentrations, bool wide, double *ret_numbers);
/* Divides each row of n gamma numbers by the sum of the row, which gives a sample of a Dirichlet distribution. Results are clamped between the
 * smallest normal number and the largest number below 1. */
void grd_normalize_gammas(int64_t rows, int64_t n, bool wide, double *numbers);

#endif
