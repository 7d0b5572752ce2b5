/* The Sobol sequence: points of [0, 1)^d that fill it evenly. */
#ifndef GRD_KERNEL_SOBOL_H
#define GRD_KERNEL_SOBOL_H

#include <stdbool.h>
#include <stdint.h>

/* Bits of a coordinate, and the dimensions for which there are direction numbers. */
enum { GRD_SOBOL_BITS = 30, GRD_SOBOL_DIMENSIONS = 21201 };

/* Writes the direction numbers of the first dimensions, GRD_SOBOL_BITS for each. */
void grd_sobol_directions(int64_t dimensions, int64_t *directions);
/* point ^= the directions between the points of numbers `from` and `to` of the sequence. */
void grd_sobol_move(int64_t dimensions, const int64_t *directions, int64_t from, int64_t to, int64_t *point);
/* Moves the point, whose number is `first`, on n times and writes each new one, divided by 2^30. */
void grd_sobol_draw(int64_t dimensions, const int64_t *directions, int64_t first, int64_t n, int64_t *point, double *ret_points);
/* Multiplies the directions of each dimension, as vectors of bits, by its square matrix of bits modulo 2. The diagonal counts as ones. */
void grd_sobol_scramble(int64_t dimensions, const int64_t *matrices, int64_t *directions);

#endif
