/* Vectorised loops of a file that includes this first use registers of 512 bits where the level has them; GCC's default is half of that. */
#ifndef GRD_KERNEL_WIDEST_H
#define GRD_KERNEL_WIDEST_H

#if defined(__AVX512F__) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC target("prefer-vector-width=512")
#endif

#endif
