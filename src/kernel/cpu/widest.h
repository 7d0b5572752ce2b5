/* Included first, makes GCC vectorise the file's loops with registers of 512 bits where the level has them (its default is half of that). */
#ifndef GRD_KERNEL_WIDEST_H
#define GRD_KERNEL_WIDEST_H

#if defined(__AVX512F__) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC target("prefer-vector-width=512")
#endif

#include "kernel/cpu/loop.h"

#endif
