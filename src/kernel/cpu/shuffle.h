/* Defines functions that select the even or odd lanes of two vectors, interleave two vectors, reverse a vector, and transpose several vectors. Lanes
 * are moved as bits, whatever they hold. */
#ifndef GRD_KERNEL_CPU_SHUFFLE_H
#define GRD_KERNEL_CPU_SHUFFLE_H

#include "kernel/cpu/lanes.h"

typedef float floats __attribute__((vector_size(VECTOR_BYTES)));
typedef double doubles __attribute__((vector_size(VECTOR_BYTES)));

/* Lists of lane numbers for __builtin_shufflevector. The suffix is the number of lanes of a vector. The lanes of the second vector are numbered after
 * those of the first. */
#define EVENS_16 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30
#define EVENS_8 0, 2, 4, 6, 8, 10, 12, 14
#define EVENS_4 0, 2, 4, 6
#define EVENS_2 0, 2
#define ODDS_16 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31
#define ODDS_8 1, 3, 5, 7, 9, 11, 13, 15
#define ODDS_4 1, 3, 5, 7
#define ODDS_2 1, 3
#define LOW_16 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define LOW_8 0, 8, 1, 9, 2, 10, 3, 11
#define LOW_4 0, 4, 1, 5
#define LOW_2 0, 2
#define HIGH_16 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#define HIGH_8 4, 12, 5, 13, 6, 14, 7, 15
#define HIGH_4 2, 6, 3, 7
#define HIGH_2 1, 3
#define REVERSED_16 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0
#define REVERSED_8 7, 6, 5, 4, 3, 2, 1, 0
#define REVERSED_4 3, 2, 1, 0
#define REVERSED_2 1, 0
/* Lists of lane numbers that interleave two vectors within each group of 16 bytes. Those with LOW in their name take the lower half of each group,
 * those with HIGH the upper half. */
#define FLOATS_LOW_16 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29
#define FLOATS_LOW_8 0, 8, 1, 9, 4, 12, 5, 13
#define FLOATS_LOW_4 0, 4, 1, 5
#define FLOATS_HIGH_16 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31
#define FLOATS_HIGH_8 2, 10, 3, 11, 6, 14, 7, 15
#define FLOATS_HIGH_4 2, 6, 3, 7
#define DOUBLES_LOW_8 0, 8, 2, 10, 4, 12, 6, 14
#define DOUBLES_LOW_4 0, 4, 2, 6
#define DOUBLES_LOW_2 0, 2
#define DOUBLES_HIGH_8 1, 9, 3, 11, 5, 13, 7, 15
#define DOUBLES_HIGH_4 1, 5, 3, 7
#define DOUBLES_HIGH_2 1, 3
/* Lists of lane numbers that interleave two vectors in groups of 16 bytes. Those with LOW in their name take the lower halves of the vectors, those
 * with HIGH the upper halves. */
#define LOW_GROUPS_8 0, 1, 8, 9, 2, 3, 10, 11
#define LOW_GROUPS_4 0, 1, 4, 5
#define LOW_GROUPS_2 0, 1
#define HIGH_GROUPS_8 4, 5, 12, 13, 6, 7, 14, 15
#define HIGH_GROUPS_4 2, 3, 6, 7
#define HIGH_GROUPS_2 2, 3

/* OF_FLOATS(list) and OF_DOUBLES(list) append to the name `list` the number of floats or of doubles in a vector, e.g. LOW_GROUPS_8. This number
 * depends on the instruction-set level. */
#if defined(__AVX512F__)
#define OF_FLOATS(list) list##_16
#define OF_DOUBLES(list) list##_8
#elif defined(__AVX__)
#define OF_FLOATS(list) list##_8
#define OF_DOUBLES(list) list##_4
#else
#define OF_FLOATS(list) list##_4
#define OF_DOUBLES(list) list##_2
#endif

/* Returns the even lanes of x, followed by those of y. */
GRD_INLINE vector evens(vector x, vector y)
{
    return sizeof(lane) == 4 ? (vector)__builtin_shufflevector((floats)x, (floats)y, OF_FLOATS(EVENS))
                             : (vector)__builtin_shufflevector((doubles)x, (doubles)y, OF_DOUBLES(EVENS));
}

/* Returns the odd lanes of x, followed by those of y. */
GRD_INLINE vector odds(vector x, vector y)
{
    return sizeof(lane) == 4 ? (vector)__builtin_shufflevector((floats)x, (floats)y, OF_FLOATS(ODDS))
                             : (vector)__builtin_shufflevector((doubles)x, (doubles)y, OF_DOUBLES(ODDS));
}

/* Returns the lower halves of x and y, interleaved. */
GRD_INLINE vector low_pairs(vector x, vector y)
{
    return sizeof(lane) == 4 ? (vector)__builtin_shufflevector((floats)x, (floats)y, OF_FLOATS(LOW))
                             : (vector)__builtin_shufflevector((doubles)x, (doubles)y, OF_DOUBLES(LOW));
}

/* Returns the upper halves of x and y, interleaved. */
GRD_INLINE vector high_pairs(vector x, vector y)
{
    return sizeof(lane) == 4 ? (vector)__builtin_shufflevector((floats)x, (floats)y, OF_FLOATS(HIGH))
                             : (vector)__builtin_shufflevector((doubles)x, (doubles)y, OF_DOUBLES(HIGH));
}

/* Returns the lanes of x in reverse order. */
GRD_INLINE vector reversed(vector x)
{
    return sizeof(lane) == 4 ? (vector)__builtin_shufflevector((floats)x, (floats)x, OF_FLOATS(REVERSED))
                             : (vector)__builtin_shufflevector((doubles)x, (doubles)x, OF_DOUBLES(REVERSED));
}

#define FLOATS(list, x, y) (vector) __builtin_shufflevector((floats)(x), (floats)(y), OF_FLOATS(list))
#define DOUBLES(list, x, y) (vector) __builtin_shufflevector((doubles)(x), (doubles)(y), OF_DOUBLES(list))

/* Transposes LANES vectors in place, so that lane i of vector j becomes lane j of vector i. It transposes within groups of 16 bytes first, and then
 * transposes the groups. */
GRD_INLINE void transpose_lanes(vector v[LANES])
{
    enum { IN_GROUP = 16 / sizeof(lane), GROUPS = LANES / IN_GROUP };
    vector groups[IN_GROUP][GROUPS];
    UNROLLED for (int g = 0; g < GROUPS; g++)
    {
        const vector *x = v + g * IN_GROUP;
        if (IN_GROUP == 4) {
            const vector a = FLOATS(FLOATS_LOW, x[0], x[1]), b = FLOATS(FLOATS_LOW, x[2], x[3]);
            const vector c = FLOATS(FLOATS_HIGH, x[0], x[1]), d = FLOATS(FLOATS_HIGH, x[2], x[3]);
            groups[0][g] = DOUBLES(DOUBLES_LOW, a, b);
            groups[1][g] = DOUBLES(DOUBLES_HIGH, a, b);
            groups[IN_GROUP - 2][g] = DOUBLES(DOUBLES_LOW, c, d);
            groups[IN_GROUP - 1][g] = DOUBLES(DOUBLES_HIGH, c, d);
        } else {
            groups[0][g] = DOUBLES(DOUBLES_LOW, x[0], x[1]);
            groups[1][g] = DOUBLES(DOUBLES_HIGH, x[0], x[1]);
        }
    }
    UNROLLED for (int i = 0; i < IN_GROUP; i++)
    {
        vector *x = groups[i];
        for (int round = 1; round < GROUPS; round *= 2) {
            vector y[GROUPS];
            UNROLLED for (int g = 0; g < GROUPS / 2; g++)
            {
                y[2 * g] = DOUBLES(LOW_GROUPS, x[g], x[g + GROUPS / 2]);
                y[2 * g + 1] = DOUBLES(HIGH_GROUPS, x[g], x[g + GROUPS / 2]);
            }
            UNROLLED for (int g = 0; g < GROUPS; g++) x[g] = y[g];
        }
        UNROLLED for (int g = 0; g < GROUPS; g++) v[g * IN_GROUP + i] = x[g];
    }
}

#undef FLOATS
#undef DOUBLES

#endif
