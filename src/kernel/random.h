/* Declares kernels that make many random numbers at once: words of the engine, and distributions, permutations and choices made from words. Words are
 * 32-bit outputs of the Mersenne Twister. Every instruction-set level gives the same bits. */
#ifndef GRD_KERNEL_RANDOM_H
#define GRD_KERNEL_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/mt19937.h"
#include "base/random.h"

/* The kinds of values that `make` computes from words. a, b, base and range are parameters of the distribution (struct grd_random_numbers). u is a
 * uniform number in [0, 1): the low 24 bits of one word times 2^-24, or the low 53 bits of two words, the first being the high half, times 2^-53.
 * Values are double unless the name or the comment says another dtype. */
enum grd_random_kind {
    GRD_RANDOM_UNIFORM_FLOAT,  /* u * (b - a) + a with one rounding; if the result is b, a instead. One word, also for the half dtypes */
    GRD_RANDOM_UNIFORM_DOUBLE, /* like UNIFORM_FLOAT, but double and from two words */
    GRD_RANDOM_UNIFORM_FLOAT16,
    GRD_RANDOM_UNIFORM_BFLOAT16,
    GRD_RANDOM_EXPONENTIAL,   /* -log(1 - u) / a; takes two words */
    GRD_RANDOM_GEOMETRIC,     /* ceil(log(u) / log(1 - a)); takes two words */
    GRD_RANDOM_CAUCHY,        /* a + b tan(pi (u - 1/2)); takes two words */
    GRD_RANDOM_BERNOULLI,     /* bool, true if u < a; takes two words */
    GRD_RANDOM_INTEGERS,      /* int64, base + word % range; takes one word */
    GRD_RANDOM_LONG_INTEGERS, /* int64, like INTEGERS but from two words, the first being the high half; range 0: all 64-bit integers */
    /* normal with mean a and deviation b, by Box-Muller in blocks of 16: 8 radii, then 8 angles. Takes one word. Rounds as PyTorch's AVX2 code does,
     * whatever the instruction set */
    GRD_RANDOM_NORMAL_FLOAT,
    GRD_RANDOM_NORMAL_DOUBLE, /* like NORMAL_FLOAT, but double and from two words */
    GRD_RANDOM_KIND_COUNT
};

/* The number of normal numbers that NORMAL_FLOAT and NORMAL_DOUBLE compute together. */
enum { GRD_NORMAL_BLOCK = 16 };

/* The parameters of a distribution; the kinds above say which of them they use. */
struct grd_random_numbers {
    double a, b;
    uint64_t range; /* 0 means all numbers that the words can express */
    int64_t base;
};

/* Results of check_probabilities: the first fault that it found, or FINE. */
enum grd_probabilities { GRD_PROBABILITIES_FINE, GRD_PROBABILITIES_NEGATIVE, GRD_PROBABILITIES_INFINITE, GRD_PROBABILITIES_ZERO };

struct grd_random_kernels {
    /* Writes the next n words of the engine. */
    void (*words)(struct grd_mt19937 *engine, int64_t n, uint32_t *ret_words);
    /* make[kind] computes n values of this kind from `words`. */
    void (*make[GRD_RANDOM_KIND_COUNT])(const struct grd_random_numbers *x, int64_t n, const uint32_t *words, void *ret_values);
    /* Writes 1 where u < p[i] and 0 elsewhere, with a new uniform u for each of n probabilities. If `wide`, u has 53 bits from two words, otherwise
     * 24 bits from one word. */
    void (*bernoulli_each)(int64_t n, const uint32_t *words, const double *p, bool wide, uint8_t *ret_values);
    /* Writes n normal numbers, which are made in pairs: the second number of a pair is stored in the generator for the next call. */
    void (*normal_one_by_one)(const struct grd_random_numbers *x, struct grd_generator *generator, int64_t n, double *ret_values);
    /* The two functions below write a random permutation of 0 to n - 1. shuffle_long is for large n; it takes two words per number
     * and uses the inside-out variant of the Fisher-Yates shuffle. */
    void (*shuffle)(struct grd_mt19937 *engine, int64_t n, uint32_t *ret_values);
    void (*shuffle_long)(struct grd_mt19937 *engine, int64_t n, int64_t *ret_values);
    /* Returns the first fault found in n probabilities. NaN counts as negative; ZERO means that their sum is not positive. */
    enum grd_probabilities (*check_probabilities)(int64_t n, const double *p);
    /* Writes the cumulative probabilities (p[0] + ... + p[i]) / sum(p), in float unless `wide`; the last one is 1. */
    void (*cumulate)(int64_t n, const double *p, bool wide, double *ret_cumulated);
    /* Draws n of the classes 0 to `classes` - 1 with the given cumulative probabilities, and writes the drawn classes to ret_indices. */
    void (*choose)(struct grd_mt19937 *engine, int64_t classes, const double *cumulated, int64_t n, int64_t *ret_indices);
};

#endif
