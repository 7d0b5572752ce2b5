/* Declares functions for the Sobol sequence: quasi-random points of [0, 1)^d that fill the cube evenly. */
#ifndef GRD_KERNEL_SOBOL_H
#define GRD_KERNEL_SOBOL_H

#include <stdbool.h>
#include <stdint.h>

/* The number of bits of a coordinate, and the most dimensions that have direction numbers. */
enum { GRD_SOBOL_BITS = 30, GRD_SOBOL_DIMENSIONS = 21201 };

/* Writes the direction numbers of the first `dimensions` dimensions, GRD_SOBOL_BITS of them for each. */
void grd_sobol_directions(int64_t dimensions, int64_t *directions);
/* Moves `point`, which is point number `from` of the sequence, to point number `to`. */
void grd_sobol_move(int64_t dimensions, const int64_t *directions, int64_t from, int64_t to, int64_t *point);
/* Moves `point`, which is point number `first`, n times to the next point of the sequence. After each move writes its coordinates divided by 2^30 to
 * ret_points. */
void grd_sobol_draw(int64_t dimensions, const int64_t *directions, int64_t first, int64_t n, int64_t *point, double *ret_points);
/* Multiplies the direction numbers of each dimension, as vectors of bits, by the dimension's square bit matrix modulo 2. The diagonals of the
 * matrices are taken as ones. */
void grd_sobol_scramble(int64_t dimensions, const int64_t *matrices, int64_t *directions);

#endif
