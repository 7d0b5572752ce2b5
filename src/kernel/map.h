/* Runs elementwise kernels, which need contiguous operands, on operands with any strides. map.c does not depend on a dtype or an instruction set, so
 * it is compiled once. */
#ifndef GRD_KERNEL_MAP_H
#define GRD_KERNEL_MAP_H

#include <stdbool.h>

#include "kernel/table.h"

/* The element sizes of result and inputs in bytes, packed into one number; 0 for an operand that does not exist. */
#define GRD_MAP_SIZES(result, x, y, z) ((uint32_t)(result) | (uint32_t)(x) << 8 | (uint32_t)(y) << 16 | (uint32_t)(z) << 24)
enum { GRD_MAP_OPERANDS = 4 };

/* The `params` of grd_map, which say which elementwise kernel to call and how. */
struct grd_map {
    const struct grd_map_kernel *kernel;
    /* The `params` argument of `kernel`. */
    const void *params;
    /* A half dtype (float16, bfloat16 or complex32) if the kernel computes in grd_computed_dtype(half), e.g. float32. Inputs of the half dtype are
     * then converted before the call, and the result after it. Otherwise GRD_DTYPE_NONE. */
    grd_dtype half;
    enum grd_stores stores; /* the kind of stores for a result that is written directly, i.e. not through a buffer */
};

/* Returns how the result data[0] should be stored if all `noperands` operands together have `bytes` bytes. data[1...] are the inputs. */
enum grd_stores grd_stores_for(int64_t bytes, int noperands, char *const *data);

/* Calls the kernel of a struct grd_map. Contiguous operands are passed to the kernel as they are, in one call. Operands with strides go through a
 * buffer, some hundred elements at a time: inputs are copied to the buffer before each call (only once if the stride is 0), and the result is copied
 * from the buffer after the call. So every layout gives the same bits, and a strided operand costs one copy within the cache. The result may be one
 * of the inputs, with exactly the same elements; otherwise operands do not overlap. */
grd_loop_kernel grd_map;

/* Converts n elements from data[1] to data[0] in two steps: `first` writes to a buffer with elements of `size` bytes, and `second` converts these. */
void grd_map_twice(int64_t n, char *const *data, const int64_t *strides, grd_loop_kernel *first, int64_t size, grd_loop_kernel *second);

/* grd_copy_N copies elements of N bytes unchanged. params: NULL, or a pointer to an enum grd_stores that says how to store the result. */
grd_loop_kernel grd_copy_1, grd_copy_2, grd_copy_4, grd_copy_8, grd_copy_16;

/* Copies `lines` rows of n elements of `size` bytes. In to_strides and from_strides, element 0 is the distance in bytes between two elements of a
 * row, and element 1 is the distance between two rows. */
void grd_copy_lines(int64_t lines, int64_t n, int64_t size, char *to, const int64_t *to_strides, const char *from,
                    const int64_t *from_strides);

#endif
