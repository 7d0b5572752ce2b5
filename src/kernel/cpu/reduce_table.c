/* Assembles the reduction, scan and softmax kernels of one instruction-set level from the rows of the typed files. */
#include "kernel/cpu/level.h"
#include "kernel/reduce.h"

#define ROW_(name, dtype, level) name##_##dtype##_##level
#define ROW_AT(name, dtype, level) ROW_(name, dtype, level)
#define ROW(name, dtype) ROW_AT(name, dtype, GRD_LEVEL)

extern const struct grd_reduce_row ROW(grd_reduce_row, uint8), ROW(grd_reduce_row, int64), ROW(grd_reduce_row, uint64),
    ROW(grd_reduce_row, float32), ROW(grd_reduce_row, float64), ROW(grd_reduce_row, complex128);
extern const struct grd_scan_row ROW(grd_scan_row, int64), ROW(grd_scan_row, float32), ROW(grd_scan_row, float64),
    ROW(grd_scan_row, complex128);
extern const struct grd_softmax_row ROW(grd_softmax_row, float32), ROW(grd_softmax_row, float64);

extern const struct grd_reduce_kernels GRD_AT_LEVEL(grd_reduce_kernels);
const struct grd_reduce_kernels GRD_AT_LEVEL(grd_reduce_kernels) = {
    .reduce =
        {
            [GRD_UINT8] = &ROW(grd_reduce_row, uint8),
            [GRD_INT64] = &ROW(grd_reduce_row, int64),
            [GRD_UINT64] = &ROW(grd_reduce_row, uint64),
            [GRD_FLOAT32] = &ROW(grd_reduce_row, float32),
            [GRD_FLOAT64] = &ROW(grd_reduce_row, float64),
            [GRD_COMPLEX128] = &ROW(grd_reduce_row, complex128),
        },
    .scan =
        {
            [GRD_INT64] = &ROW(grd_scan_row, int64),
            [GRD_FLOAT32] = &ROW(grd_scan_row, float32),
            [GRD_FLOAT64] = &ROW(grd_scan_row, float64),
            [GRD_COMPLEX128] = &ROW(grd_scan_row, complex128),
        },
    .softmax =
        {
            [GRD_FLOAT32] = &ROW(grd_softmax_row, float32),
            [GRD_FLOAT64] = &ROW(grd_softmax_row, float64),
        },
};
