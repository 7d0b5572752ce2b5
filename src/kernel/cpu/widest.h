/* Makes GCC vectorise the loops of a file with 512-bit registers if the instruction-set level has them; by default GCC uses 256 bits. A file must
 * include this header before all others, because the pragma holds only for the code after it. */
#ifndef GRD_KERNEL_WIDEST_H
#define GRD_KERNEL_WIDEST_H

#if defined(__AVX512F__) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC target("prefer-vector-width=512")
#endif

#include "kernel/cpu/loop.h"

#endif
