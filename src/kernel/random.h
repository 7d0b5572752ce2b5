/* Declares kernels that make many random numbers at once: words of the engine, and distributions, permutations and choices made from words. Words are
 * 32-bit outputs of the Mersenne Twister. Every instruction-set level gives the same bits. */
#ifndef GRD_KERNEL_RANDOM_H
#define GRD_KERNEL_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/mt19937.h"
#include "base/random.h"

/* The kinds of values that `make` computes from random words. a, b, base and range are parameters of the distribution (struct grd_random_numbers).
 * u is a uniform number in [0, 1). From one word it is the low 24 bits times 2^-24. From two words, of which the first is the high half, it is the
 * low 53 bits times 2^-53. Values are double unless the name or the comment says another dtype. */
enum grd_random_kind {
    /* u * (b - a) + a, rounded once; the value is a if rounding gives b. One random word per number, also for the half dtypes below */
    GRD_RANDOM_UNIFORM_FLOAT,
    GRD_RANDOM_UNIFORM_DOUBLE, /* like UNIFORM_FLOAT, but in double and from two random words */
    GRD_RANDOM_UNIFORM_FLOAT16,
    GRD_RANDOM_UNIFORM_BFLOAT16,
    GRD_RANDOM_EXPONENTIAL, /* -log(1 - u) / a; u is made from two words */
    GRD_RANDOM_GEOMETRIC,   /* ceil(log(u) / log(1 - a)); u is made from two words */
    GRD_RANDOM_CAUCHY,      /* a + b tan(pi (u - 1/2)); u is made from two words */
    GRD_RANDOM_BERNOULLI,   /* bool, true if the uniform number u < a; u is made from two words */
    GRD_RANDOM_INTEGERS,    /* int64, base + w % range, where w is one 32-bit random word */
    /* int64, base + w % range, where w is two random words (the first is the high half); range 0 means any 64-bit integer */
    GRD_RANDOM_LONG_INTEGERS,
    /* Normal number with mean a and deviation b. Box-Muller turns 16 uniform numbers (8 for radii, 8 for angles), each from one random word, into
     * 16 normal numbers. All instruction-set levels round as PyTorch's AVX2 code does. */
    GRD_RANDOM_NORMAL_FLOAT,
    GRD_RANDOM_NORMAL_DOUBLE, /* like NORMAL_FLOAT, but in double and with two random words per number */
    GRD_RANDOM_KIND_COUNT
};

/* The number of normal numbers that NORMAL_FLOAT and NORMAL_DOUBLE compute together. */
enum { GRD_NORMAL_BLOCK = 16 };

/* The parameters of a distribution. The comment at each grd_random_kind says which of these parameters it uses. */
struct grd_random_numbers {
    double a, b;
    uint64_t range; /* number of different integers; 0 means all that the random words can express */
    int64_t base;
};

/* Results of check_probabilities. FINE: no fault. NEGATIVE: the first invalid probability is negative or NaN. INFINITE: the first invalid probability
 * is infinite. ZERO: all probabilities are valid, but their sum is not positive. */
enum grd_probabilities { GRD_PROBABILITIES_FINE, GRD_PROBABILITIES_NEGATIVE, GRD_PROBABILITIES_INFINITE, GRD_PROBABILITIES_ZERO };

struct grd_random_kernels {
    /* Writes the next n outputs of the random-number engine, 32 bits each. */
    void (*words)(struct grd_mt19937 *engine, int64_t n, uint32_t *ret_words);
    /* make[kind] writes n values of this kind to ret_values, computed from the random 32-bit words in `words`. */
    void (*make[GRD_RANDOM_KIND_COUNT])(const struct grd_random_numbers *x, int64_t n, const uint32_t *words, void *ret_values);
    /* For each of n probabilities p[i], writes 1 if a uniform random number is less than p[i], otherwise 0. If `wide`, the uniform number has 53 bits
     * and takes two words, otherwise it has 24 bits and takes one word. */
    void (*bernoulli_each)(int64_t n, const uint32_t *words, const double *p, bool wide, uint8_t *ret_values);
    /* Writes n normal numbers. They are made in pairs; a number that is left over is kept in `generator` for the next call. */
    void (*normal_one_by_one)(const struct grd_random_numbers *x, struct grd_generator *generator, int64_t n, double *ret_values);
    /* The two functions below write a random permutation of 0 to n - 1. shuffle_long is for large n; it takes two words per number
     * and uses the inside-out variant of the Fisher-Yates shuffle. */
    void (*shuffle)(struct grd_mt19937 *engine, int64_t n, uint32_t *ret_values);
    void (*shuffle_long)(struct grd_mt19937 *engine, int64_t n, int64_t *ret_values);
    /* Returns the first fault found in n probabilities. NaN counts as negative; ZERO means that their sum is not positive. */
    enum grd_probabilities (*check_probabilities)(int64_t n, const double *p);
    /* Writes the cumulative probabilities (p[0] + ... + p[i]) / sum(p), in float unless `wide`; the last one is 1. */
    void (*cumulate)(int64_t n, const double *p, bool wide, double *ret_cumulated);
    /* Draws n times, independently, one of the classes 0 to `classes` - 1, whose cumulative probabilities are given. Writes the drawn classes to
     * ret_indices. */
    void (*choose)(struct grd_mt19937 *engine, int64_t classes, const double *cumulated, int64_t n, int64_t *ret_indices);
};

#endif
