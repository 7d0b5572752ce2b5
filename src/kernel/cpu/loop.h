/* Words that tell the compiler how to unroll and vectorise the loop that follows, whether it has fused multiply-add, and at_most(). */
#ifndef GRD_KERNEL_LOOP_H
#define GRD_KERNEL_LOOP_H

#include <stdint.h>

#include "base/inline.h"

/* For a loop over at most 16 lanes or over blocks of them: keeps it from being unrolled before the vectoriser sees it. */
#define LANEWISE _Pragma("GCC unroll 1")

/* Unrolls the loop that follows by four: for loops of loads and stores at computed addresses. */
#define BY_FOUR _Pragma("GCC unroll 4")

/* Tells the vectoriser that the result of the loop that follows may be one of its inputs, element for element, and overlaps them in no other way. */
#if defined(__clang__)
#define IN_PLACE _Pragma("clang loop vectorize(assume_safety)")
#else
#define IN_PLACE _Pragma("GCC ivdep")
#endif

/* Unrolls the loop that follows, of at most 16 rounds, completely: so its arrays stay in registers, and the loop around it can vectorise. */
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
