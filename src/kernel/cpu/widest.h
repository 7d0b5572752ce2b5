/* How loops of a file that includes this first are vectorised: with registers of 512 bits where the level has them (GCC's default is half
 * of that), and also the short ones over a few lanes (which GCC would unroll before it looks at them). */
#ifndef GRD_KERNEL_WIDEST_H
#define GRD_KERNEL_WIDEST_H

#if defined(__AVX512F__) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC target("prefer-vector-width=512")
#endif

/* Before a loop over 16 lanes or fewer. */
#define LANEWISE _Pragma("GCC unroll 1")

/* Before a loop whose results may be where its inputs are, element for element. */
#if defined(__clang__)
#define IN_PLACE _Pragma("clang loop vectorize(assume_safety)")
#else
#define IN_PLACE _Pragma("GCC ivdep")
#endif

#endif
