/* Defines GRD_INLINE, the mark of functions that are always inlined. */
#ifndef GRD_BASE_INLINE_H
#define GRD_BASE_INLINE_H

/* Marks a function that is always inlined. It is for small functions that every operator call runs, and for bodies of loops that the compiler
 * specialises for constant arguments. In builds that measure coverage the compiler decides what to inline, because otherwise the branches of the
 * function would be counted once per call site. */
#ifdef GRD_COVERAGE
#define GRD_INLINE static inline
#else
#define GRD_INLINE static inline __attribute__((always_inline))
#endif

#endif
