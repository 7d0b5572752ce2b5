/* Random words in bulk and the arithmetic on them. Every level gives the same bits; what needs the C library's functions is in op/random.c. */
#ifndef GRD_KERNEL_RANDOM_H
#define GRD_KERNEL_RANDOM_H

#include <stdint.h>

#include "base/mt19937.h"

/* A number u from [0, 1) is the low 24 bits of a word times 2^-24, or the low 53 bits of two words, the first the high half, times 2^-53. */
struct grd_random_kernels {
    /* The next n words of the engine. */
    void (*words)(struct grd_mt19937 *engine, int64_t n, uint32_t *ret_words);
    /* u * (to - from) + from, rounded once; from where that is `to`. n words for the float one, 2n for the double one. */
    void (*uniform_float)(int64_t n, const uint32_t *words, float from, float to, float *ret_values);
    void (*uniform_double)(int64_t n, const uint32_t *words, double from, double to, double *ret_values);
    /* u < p, from 2n words. */
    void (*bernoulli)(int64_t n, const uint32_t *words, double p, uint8_t *ret_values);
    /* Box–Muller on n blocks of 16 numbers u, in place: 8 radii, then 8 angles; normal numbers of that mean and deviation come out.
     * The float one rounds as PyTorch's 256-bit code does, at every level. */
    void (*normal_float)(int64_t n, float *data, float mean, float std);
    void (*normal_double)(int64_t n, double *data, double mean, double std);
};

#endif
