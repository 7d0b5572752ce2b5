/* Caches the tables of Fourier transforms. A node (fft_node.h) holds the tables for one length and is made when this length is first used. */
#ifndef GRD_OP_FFT_TABLES_H
#define GRD_OP_FFT_TABLES_H

#include "gradus/types.h"
#include "op/fft_node.h"

/* Returns the tables for transforms of n elements. The tables live at least until the innermost memory scope closes. `dtype` is float32 or float64.
 * Returns NULL, with MemoryError, if memory runs out. */
const struct grd_fft_node *grd_fft_node(enum grd_fft_kind kind, int64_t n, grd_dtype dtype);

/* Registers the cache with fork() and with the trimming of memory. fork() takes the lock of the cache, so that the child finds the cache consistent.
 * Trimming memory empties the cache. The library's constructor calls this once. */
void grd_fft_tables_init(void);

#endif
