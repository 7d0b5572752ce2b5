/* Tells the compilers about functions, and about the loop that follows; and the lengths of pieces. */
#ifndef GRD_KERNEL_LOOP_H
#define GRD_KERNEL_LOOP_H

#include <stdint.h>

#include "base/inline.h"

/* Over 16 lanes or fewer, to be vectorised, or over blocks of them: not written out before that is considered. */
#define LANEWISE _Pragma("GCC unroll 1")

/* To be taken four rounds at a time: for loops of loads and stores at computed places. */
#define BY_FOUR _Pragma("GCC unroll 4")

/* Results may be where the inputs are, element for element. */
#if defined(__clang__)
#define IN_PLACE _Pragma("clang loop vectorize(assume_safety)")
#else
#define IN_PLACE _Pragma("GCC ivdep")
#endif

/* At most 16 rounds, to be written out: for arrays in registers, and because a loop in it would keep the loop around it from vectorising. */
#if defined(__clang__)
#define UNROLLED _Pragma("clang loop unroll(full)")
#else
#define UNROLLED _Pragma("GCC unroll 16")
#endif

/* Defined where a fused multiply-add is one instruction. */
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
#define HAS_FMA
#endif

GRD_INLINE int64_t at_most(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

#endif
