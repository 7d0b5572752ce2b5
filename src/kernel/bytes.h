/* Kernels that move bytes as they are, with the widest registers of the level. */
#ifndef GRD_KERNEL_BYTES_H
#define GRD_KERNEL_BYTES_H

#include <stdint.h>

enum { GRD_PATTERN = 16, GRD_REVERSE_SIZES = 4 };

struct grd_bytes_kernels {
    /* Fills n > 0 bytes with a pattern of GRD_PATTERN; up to 63 more than those are written. */
    void (*fill)(int64_t n, char *to, const void *pattern);
    /* to[i] = from[-i], for n elements of 1, 2, 4 and 8 bytes. */
    void (*reverse[GRD_REVERSE_SIZES])(int64_t n, char *to, const char *from);
};

#endif
