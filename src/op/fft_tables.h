/* The nodes of transforms (fft_node.h) with their tables, made when a length is first met and kept for the next call. */
#ifndef GRD_OP_FFT_TABLES_H
#define GRD_OP_FFT_TABLES_H

#include "gradus/types.h"
#include "op/fft_node.h"

/* Returns the node, held by the innermost scope; NULL, with MemoryError, on failure. `dtype` is float32 or float64. */
const struct grd_fft_node *grd_fft_node(enum grd_fft_kind kind, int64_t n, grd_dtype dtype);

void grd_fft_tables_init(void);

#endif
