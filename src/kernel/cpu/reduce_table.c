/* Assembles the reduction kernels of one instruction-set level from the rows of the typed files. */
#include "gen/kernel_levels.h"
#include "kernel/cpu/level.h"
#include "kernel/reduce.h"

#define REDUCE(dtype) GRD_BUILT(reduce, grd_reduce_row, dtype)

extern const struct grd_reduce_row REDUCE(uint8), REDUCE(int64), REDUCE(uint64), REDUCE(float32), REDUCE(float64), REDUCE(complex128);

extern const struct grd_reduce_kernels GRD_AT_LEVEL(grd_reduce_kernels);
const struct grd_reduce_kernels GRD_AT_LEVEL(grd_reduce_kernels) = {
    .reduce =
        {
            [GRD_UINT8] = &REDUCE(uint8),
            [GRD_INT64] = &REDUCE(int64),
            [GRD_UINT64] = &REDUCE(uint64),
            [GRD_FLOAT32] = &REDUCE(float32),
            [GRD_FLOAT64] = &REDUCE(float64),
            [GRD_COMPLEX128] = &REDUCE(complex128),
        },
};
