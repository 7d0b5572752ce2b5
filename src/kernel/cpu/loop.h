/* Defines macros that tell the compiler how to unroll or vectorise the next loop, and the macro HAS_FMA. */
#ifndef GRD_KERNEL_LOOP_H
#define GRD_KERNEL_LOOP_H

#include <stdint.h>

#include "base/inline.h"
#include "base/integer.h"

/* Keeps the compiler from unrolling the next loop before the vectoriser sees it. It is for loops over the lanes of a vector. */
#define LANEWISE _Pragma("GCC unroll 1")

/* Unrolls the next loop by four. It is for loops that load and store single elements at computed addresses, which do not vectorise. */
#define BY_FOUR _Pragma("GCC unroll 4")

/* Tells the vectoriser that the result of the next loop either is one of its inputs, element for element, or does not overlap them. */
#if defined(__clang__)
#define IN_PLACE _Pragma("clang loop vectorize(assume_safety)")
#else
#define IN_PLACE _Pragma("GCC ivdep")
#endif

/* Unrolls the next loop, of at most 16 rounds, completely. Then the arrays that it indexes stay in registers, and the loop around it can
 * vectorise. */
#if defined(__clang__)
#define UNROLLED _Pragma("clang loop unroll(full)")
#else
#define UNROLLED _Pragma("GCC unroll 16")
#endif

/* HAS_FMA is defined if the instruction-set level has an instruction for fused multiply-add. */
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
#define HAS_FMA
#endif

#endif
