/* Declares the random number generator. The distributions are in op/random_fill.c and in the kernels. */
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
    atomic_flag lock; /* held while an operator draws numbers from this generator */
    uint64_t seed;
    struct grd_mt19937 engine;
    /* The second values of two Box-Muller pairs, one computed in double and one in float. Each is kept for the next call, as PyTorch's CPU generator
     * does. has_normal_double and has_normal_float say which of them exist. */
    bool has_normal_double, has_normal_float;
    double normal_double;
    float normal_float;
};

/* Locks `generator`, or the default generator if `generator` is NULL, and returns it. Only the caller may use the generator until
 * grd_generator_unlock. */
struct grd_generator *grd_generator_lock(struct grd_generator *generator);
void grd_generator_unlock(struct grd_generator *generator);

/* Returns an unpredictable number of 53 bits from the operating system. */
uint64_t grd_random_unpredictable(void);

#endif
