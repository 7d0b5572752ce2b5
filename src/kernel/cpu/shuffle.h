/* The lanes of two vectors, taken apart into even and odd ones or put together in turn; lanes are moved as they are, whatever they hold. */
#ifndef GRD_KERNEL_CPU_SHUFFLE_H
#define GRD_KERNEL_CPU_SHUFFLE_H

#include "kernel/cpu/lanes.h"

typedef float floats __attribute__((vector_size(VECTOR_BYTES)));
typedef double doubles __attribute__((vector_size(VECTOR_BYTES)));

/* Lists of lanes by how many a vector has: those of the second follow those of the first. */
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

/* Lanes of even number, of x and then of y. */
INLINE vector evens(vector x, vector y)
{
    return sizeof(lane) == 4 ? (vector)__builtin_shufflevector((floats)x, (floats)y, OF_FLOATS(EVENS))
                             : (vector)__builtin_shufflevector((doubles)x, (doubles)y, OF_DOUBLES(EVENS));
}

/* Lanes of odd number, of x and then of y. */
INLINE vector odds(vector x, vector y)
{
    return sizeof(lane) == 4 ? (vector)__builtin_shufflevector((floats)x, (floats)y, OF_FLOATS(ODDS))
                             : (vector)__builtin_shufflevector((doubles)x, (doubles)y, OF_DOUBLES(ODDS));
}

/* Lanes of x and y in turn: those of the lower halves. */
INLINE vector low_pairs(vector x, vector y)
{
    return sizeof(lane) == 4 ? (vector)__builtin_shufflevector((floats)x, (floats)y, OF_FLOATS(LOW))
                             : (vector)__builtin_shufflevector((doubles)x, (doubles)y, OF_DOUBLES(LOW));
}

/* Lanes of x and y in turn: those of the upper halves. */
INLINE vector high_pairs(vector x, vector y)
{
    return sizeof(lane) == 4 ? (vector)__builtin_shufflevector((floats)x, (floats)y, OF_FLOATS(HIGH))
                             : (vector)__builtin_shufflevector((doubles)x, (doubles)y, OF_DOUBLES(HIGH));
}

#endif
