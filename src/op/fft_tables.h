/* Caches the tables of Fourier transforms. A node (fft_node.h) holds the tables for one length and is made when this length is first used. */
#ifndef GRD_OP_FFT_TABLES_H
#define GRD_OP_FFT_TABLES_H

#include "gradus/types.h"
#include "op/fft_node.h"

/* Returns the tables for transforms of n elements, which live at least until the innermost memory scope closes. `dtype` is float32 or float64.
 * Returns NULL, with MemoryError, if memory runs out. */
const struct grd_fft_node *grd_fft_node(enum grd_fft_kind kind, int64_t n, grd_dtype dtype);

/* Makes fork() hold the lock of the cache, and memory trimming empty the cache. The library's constructor calls this once. */
void grd_fft_tables_init(void);

#endif
