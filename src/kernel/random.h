/* Random words in bulk, and what distributions, permutations and choices make of them. Every level gives the same bits. */
#ifndef GRD_KERNEL_RANDOM_H
#define GRD_KERNEL_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/mt19937.h"
#include "base/random.h"

/* A number u from [0, 1) is the low 24 bits of a word times 2^-24, or the low 53 bits of two words, the first the high half, times 2^-53.
 * A kind says what values are made of how many words. The values that are not named by their dtype are double. */
enum grd_random_kind {
    GRD_RANDOM_UNIFORM_FLOAT,  /* u * (b - a) + a, rounded once; a where that is b. 1 word, for the half dtypes as well */
    GRD_RANDOM_UNIFORM_DOUBLE, /* 2 words */
    GRD_RANDOM_UNIFORM_FLOAT16,
    GRD_RANDOM_UNIFORM_BFLOAT16,
    GRD_RANDOM_EXPONENTIAL,   /* -log(1 - u) / a: 2 words */
    GRD_RANDOM_GEOMETRIC,     /* ceil(log(u) / log(1 - a)): 2 words */
    GRD_RANDOM_CAUCHY,        /* a + b tan(pi (u - 1/2)): 2 words */
    GRD_RANDOM_BERNOULLI,     /* bool, u < a: 2 words */
    GRD_RANDOM_INTEGERS,      /* int64, base + word % range: 1 word */
    GRD_RANDOM_LONG_INTEGERS, /* int64, 2 words, the first the high half; range 0: all of them */
    GRD_RANDOM_NORMAL_FLOAT,  /* of mean a and deviation b by Box–Muller, in whole blocks: 8 radii, then 8 angles. 1 word */
    GRD_RANDOM_NORMAL_DOUBLE, /* 2 words. The float one rounds as PyTorch's 256-bit code does, at every level */
    GRD_RANDOM_KIND_COUNT
};

enum { GRD_NORMAL_BLOCK = 16 };

/* The parameters of a distribution. */
struct grd_random_numbers {
    double a, b;
    uint64_t range; /* 0: that of the words */
    int64_t base;
};

enum grd_probabilities { GRD_PROBABILITIES_FINE, GRD_PROBABILITIES_NEGATIVE, GRD_PROBABILITIES_INFINITE, GRD_PROBABILITIES_ZERO };

struct grd_random_kernels {
    /* The next n words of the engine. */
    void (*words)(struct grd_mt19937 *engine, int64_t n, uint32_t *ret_words);
    void (*make[GRD_RANDOM_KIND_COUNT])(const struct grd_random_numbers *x, int64_t n, const uint32_t *words, void *ret_values);
    /* u < p[i]. wide: u has 53 bits of two words, otherwise 24 of one. */
    void (*bernoulli_each)(int64_t n, const uint32_t *words, const double *p, bool wide, uint8_t *ret_values);
    /* Normal numbers in pairs, of which the second waits in the generator for the next call. */
    void (*normal_one_by_one)(const struct grd_random_numbers *x, struct grd_generator *generator, int64_t n, double *ret_values);
    /* 0, 1, … n - 1 in random order. The long one takes two words for each and goes from the inside out. */
    void (*shuffle)(struct grd_mt19937 *engine, int64_t n, uint32_t *ret_values);
    void (*shuffle_long)(struct grd_mt19937 *engine, int64_t n, int64_t *ret_values);
    /* The first fault in n probabilities, NaN being negative; ZERO: their sum is not positive. */
    enum grd_probabilities (*check_probabilities)(int64_t n, const double *p);
    /* (p[0] + … + p[i]) / (the sum of all n), in float unless `wide`; the last is 1. */
    void (*cumulate)(int64_t n, const double *p, bool wide, double *ret_cumulated);
    /* n classes drawn with these cumulated probabilities. */
    void (*choose)(struct grd_mt19937 *engine, int64_t classes, const double *cumulated, int64_t n, int64_t *ret_indices);
};

#endif
