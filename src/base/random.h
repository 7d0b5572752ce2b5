/* The generator object. Distributions live with the operators, drawing words with the kernels. */
#ifndef GRD_BASE_RANDOM_H
#define GRD_BASE_RANDOM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/mt19937.h"
#include "base/object.h"
#include "gradus/runtime.h"

struct grd_generator {
    struct grd_object object;
    atomic_flag lock; /* held while an operator draws */
    uint64_t seed;
    struct grd_mt19937 engine;
    /* The spare value of a Box–Muller pair, kept across calls as PyTorch's CPU generator does. */
    bool has_normal_double, has_normal_float;
    double normal_double;
    float normal_float;
};

/* NULL means the default generator. Between the two the generator is the caller's alone. */
struct grd_generator *grd_generator_lock(struct grd_generator *generator);
void grd_generator_unlock(struct grd_generator *generator);

/* A number of 53 bits that nobody can foresee, from the system. */
uint64_t grd_random_unpredictable(void);

#endif
