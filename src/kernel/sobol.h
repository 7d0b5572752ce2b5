/* Declares functions for the Sobol sequence: quasi-random points of [0, 1)^d that fill the cube evenly. */
#ifndef GRD_KERNEL_SOBOL_H
#define GRD_KERNEL_SOBOL_H

#include <stdbool.h>
#include <stdint.h>

/* BITS: the number of bits of a coordinate. DIMENSIONS: the largest number of dimensions of the sequence. */
enum { GRD_SOBOL_BITS = 30, GRD_SOBOL_DIMENSIONS = 21201 };

/* Writes the direction numbers of the first `dimensions` dimensions to `directions`, GRD_SOBOL_BITS numbers for each dimension. The functions
 * below derive points from them. */
void grd_sobol_directions(int64_t dimensions, int64_t *directions);
/* Moves `point` from point number `from` of the sequence to point number `to`. `point` holds one coordinate per dimension. */
void grd_sobol_move(int64_t dimensions, const int64_t *directions, int64_t from, int64_t to, int64_t *point);
/* Moves `point` from point number `first` of the sequence to the next point, n times. After each move writes the coordinates of `point` divided by
 * 2^30 (so in [0, 1)) to ret_points. */
void grd_sobol_draw(int64_t dimensions, const int64_t *directions, int64_t first, int64_t n, int64_t *point, double *ret_points);
/* Scrambles the direction numbers. `matrices` has one square bit matrix for each dimension. Each direction number is a vector of bits; it is
 * multiplied, modulo 2, by the matrix of its dimension. The diagonals of the matrices are taken as ones, whatever they hold. */
void grd_sobol_scramble(int64_t dimensions, const int64_t *matrices, int64_t *directions);

#endif
