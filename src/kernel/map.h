/* From operands with any strides to loops over contiguous ones: the handling of strides exists once, whatever the dtype and the instruction set. */
#ifndef GRD_KERNEL_MAP_H
#define GRD_KERNEL_MAP_H

#include <stdbool.h>

#include "kernel/table.h"

/* The bytes of an element of each operand, as one number; 0 where there is no operand. */
#define GRD_MAP_SIZES(result, x, y, z) ((uint32_t)(result) | (uint32_t)(x) << 8 | (uint32_t)(y) << 16 | (uint32_t)(z) << 24)
enum { GRD_MAP_OPERANDS = 4 };

/* How an elementwise kernel is called: the params of grd_map. */
struct grd_map {
    const struct grd_map_kernel *kernel;
    const void *params;
    /* A half dtype: the kernel is of grd_computed_dtype(half), and its operands of that size are converted; otherwise GRD_DTYPE_NONE. */
    grd_dtype half;
    enum grd_stores stores; /* where the result is no buffer */
};

/* How a result is to be written, by the bytes of all operands. */
enum grd_stores grd_stores_for(int64_t bytes, int noperands, char *const *data);

/* Calls the kernel of a struct grd_map. Contiguous operands go to the block kernel as they are, all at once. Others go through a buffer, a piece at a time: gathered before the
 * call, or filled once where the stride is 0; results are scattered after it. So every path computes with the same instructions, and a
 * strided operand costs a copy in cache. The result may be an input (exactly the same elements); operands never overlap in part. */
grd_loop_kernel grd_map;

/* One conversion after the other, through a buffer of elements of `size` bytes. */
void grd_map_twice(int64_t n, char *const *data, const int64_t *strides, grd_loop_kernel *first, int64_t size, grd_loop_kernel *second);

/* Elements of 1, 2, 4, 8 and 16 bytes moved as they are. params: NULL, or the enum grd_stores for the result. */
grd_loop_kernel grd_copy_1, grd_copy_2, grd_copy_4, grd_copy_8, grd_copy_16;

/* Lines of n elements of `size` bytes: strides[0] is along a line, strides[1] from line to line. */
void grd_copy_lines(int64_t lines, int64_t n, int64_t size, char *to, const int64_t *to_strides, const char *from,
                    const int64_t *from_strides);

#endif
