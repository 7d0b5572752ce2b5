/* Functions that are always inlined. */
#ifndef GRD_BASE_INLINE_H
#define GRD_BASE_INLINE_H

/* Always inlined: small functions on the path of every call, and parts of loops, which the compiler specialises for arguments that are constants at
 * the call. Builds that count branches leave the choice to the compiler, or each place of a call would have branches of its own. */
#ifdef GRD_COVERAGE
#define GRD_INLINE static inline
#else
#define GRD_INLINE static inline __attribute__((always_inline))
#endif

#endif
