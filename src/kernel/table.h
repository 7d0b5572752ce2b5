/* Defines the kernel table. There is one constant table per instruction-set level; the table for this machine is chosen when the library is loaded.
 *
 * Kernels are inner loops. They cannot fail, do not allocate and know nothing of tensors. A missing kernel (NULL) means that the operator does not
 * exist for that dtype; the operator raises an error. */
#ifndef GRD_KERNEL_TABLE_H
#define GRD_KERNEL_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cpu.h"
#include "base/hidden.h"
#include "gradus/types.h"

/* A function that runs over n elements. data[0] is the result, data[1] and up are the inputs. strides[i] is the stride of data[i] in bytes. */
typedef void grd_loop_kernel(int64_t n, char *const *data, const int64_t *strides, const void *params);

/* A function that runs over n contiguous elements. The result may be one of the inputs. `params` points to the numeric arguments of the operator,
 * in the order of its signature. For a light kernel (of an operator so cheap that memory limits its speed), `params` is NULL or points to a struct
 * grd_light_call. */
typedef void grd_block_kernel(int64_t n, char *const *data, const void *params);

/* The ways to store a result. NEAR uses ordinary stores of whole cache lines. FAR stores half a cache line at a time. PAST uses stores that bypass
 * the caches. See Note [Large results] in kernel/map.c. */
enum grd_stores { GRD_STORES_NEAR, GRD_STORES_FAR, GRD_STORES_PAST };

/* The `params` of a light kernel, i.e. the kernel of an operator so cheap that memory limits its speed. A call with these `params` computes only
 * whole cache lines. */
struct grd_light_call {
    /* element[i] is NULL if input i is a contiguous array at data[i + 1]. Otherwise input i is the single element at address element[i],
     * repeated n times. The kernel then fills data[i + 1], scratch memory of one cache line, with copies of the element and reads these copies. */
    const char *element[3];
    enum grd_stores stores; /* how to store the result; unless `stores` is GRD_STORES_NEAR, the result must be aligned to a cache line */
};
enum { GRD_LINE_BYTES = 64 };

/* An elementwise kernel for contiguous operands. grd_map (kernel/map.h) runs it on operands with strides. */
struct grd_map_kernel {
    grd_block_kernel *block; /* NULL if there is no such kernel */
    uint32_t sizes;          /* element sizes of the result and the inputs in bytes, packed by GRD_MAP_SIZES */
    bool light;              /* true: `params` of `block` is NULL or points to a struct grd_light_call */
};

/* Transposes a matrix: to[r * to_stride + c] = from[c * from_stride + r], where r < rows, c < columns and the strides are in bytes. If `streamed`,
 * the stores bypass the caches; `to` and to_stride must then be multiples of 64. */
typedef void grd_transpose_kernel(int64_t rows, int64_t columns, char *to, int64_t to_stride, const char *from, int64_t from_stride,
                                  bool streamed);

struct grd_lines_block;       /* defined in kernel/lines.h */
struct grd_reduce_row;        /* defined in kernel/reduce.h */
struct grd_product_kernels;   /* defined in kernel/gemm.h */
struct grd_index_kernels;     /* defined in kernel/index.h */
struct grd_random_kernels;    /* defined in kernel/random.h */
struct grd_order_row;         /* defined in kernel/order.h */
struct grd_optim_row;         /* defined in kernel/optim.h */
struct grd_nll_row;           /* defined in kernel/nll.h */
struct grd_rnn_row;           /* defined in kernel/rnn.h */
struct grd_ctc_row;           /* defined in kernel/ctc.h */
struct grd_range_row;         /* defined in kernel/range.h */
struct grd_bags_row;          /* defined in kernel/bags.h */
struct grd_margin_row;        /* defined in kernel/margin.h */
struct grd_histogram_row;     /* defined in kernel/histogram.h */
struct grd_decomposition_row; /* defined in kernel/decomposition.h */
struct grd_bytes_kernels;     /* defined in kernel/bytes.h */
struct grd_spectral_row;      /* defined in kernel/spectral.h */
struct grd_eigen_row;         /* defined in kernel/eigen.h */
struct grd_lu_row;            /* defined in kernel/lu.h */
struct grd_ldl_row;           /* defined in kernel/ldl.h */
struct grd_channels_row;      /* defined in kernel/channels.h */
struct grd_attention_row;     /* defined in kernel/attention.h */
struct grd_distance_block;    /* defined in kernel/distance.h */
struct grd_distance_gradient; /* defined in kernel/distance.h */
struct grd_pool_row;          /* defined in kernel/pool.h */
struct grd_conv_row;          /* defined in kernel/conv.h */
struct grd_resample_row;      /* defined in kernel/resample.h */
struct grd_grid_row;          /* defined in kernel/grid.h */
struct grd_fft_row;           /* defined in kernel/fft.h */

/* Arrays with GRD_DTYPE_COUNT elements are indexed by dtype. An element is NULL if its dtype has no such kernels. The comment at an array lists the
 * dtypes with kernels. */
struct grd_kernel_table {
    const char *isa;
    /* Kernels of elementwise operators. unary[dtype] is the array of kernels of that dtype, indexed by enum grd_unary_kernel (gen/unary_kernels.h).
     * float16 and bfloat16 have few kernels and complex32 has none: operators on these dtypes use the kernels of grd_computed_dtype, see
     * kernel/map.h. */
    const struct grd_map_kernel *unary[GRD_DTYPE_COUNT];
    const struct grd_map_kernel *binary[GRD_DTYPE_COUNT];
    const struct grd_map_kernel *ternary[GRD_DTYPE_COUNT];
    /* Kernels that compute the gradient of an elementwise operator with two or three inputs in one loop; for float32 and float64. */
    const struct grd_map_kernel *gradient[GRD_DTYPE_COUNT];
    /* cast[from][to] converts elements, or copies them if both dtypes are equal. Quantized dtypes have no kernel here; grd_cast_kernel returns
     * kernels for them too. */
    grd_loop_kernel *const *cast[GRD_DTYPE_COUNT];
    /* Kernels of operators along a dimension, indexed by enum grd_lines_kernel_index; for int64, float32, float64 and complex128. */
    void (*const *lines[GRD_DTYPE_COUNT])(const struct grd_lines_block *block);
    /* Kernels for reductions; for uint8, int8, int16, int32, int64, uint64, bfloat16, float32, float64 and complex128. */
    const struct grd_reduce_row *reduce[GRD_DTYPE_COUNT];
    const struct grd_product_kernels *gemm[GRD_DTYPE_COUNT]; /* for integers of 4 and 8 bytes, float32, float64, complex64 and complex128 */
    const struct grd_index_kernels *index;
    const struct grd_bytes_kernels *bytes;
    grd_transpose_kernel *transpose[5]; /* kernels for elements of 1, 2, 4, 8 and 16 bytes, indexed by grd_index_size */
    const struct grd_random_kernels *random;
    const struct grd_order_row *order[GRD_DTYPE_COUNT];                        /* for real dtypes of at most 8 bytes except float8 */
    const struct grd_optim_row *optim[GRD_DTYPE_COUNT];                        /* for float32 and float64 */
    const struct grd_range_row *range[GRD_DTYPE_COUNT];                        /* for int64, float32 and float64 */
    const struct grd_bags_row *bags[GRD_DTYPE_COUNT];                          /* for float32 and float64 */
    const struct grd_margin_row *margin[GRD_DTYPE_COUNT];                      /* for float32 and float64 */
    const struct grd_histogram_row *histogram[GRD_DTYPE_COUNT];                /* for float32 and float64 */
    const struct grd_decomposition_row *decomposition[GRD_DTYPE_COUNT];        /* for float32, float64, complex64 and complex128 */
    const struct grd_spectral_row *jacobi[GRD_DTYPE_COUNT];                    /* for float32, float64, complex64 and complex128 */
    const struct grd_eigen_row *eigen[GRD_DTYPE_COUNT];                        /* for float32, float64, complex64 and complex128 */
    const struct grd_lu_row *lu[GRD_DTYPE_COUNT];                              /* for float32, float64, complex64 and complex128 */
    const struct grd_ldl_row *ldl[GRD_DTYPE_COUNT];                            /* for float32, float64, complex64 and complex128 */
    const struct grd_channels_row *channels[GRD_DTYPE_COUNT];                  /* for float32 and float64 */
    void (*distance[GRD_DTYPE_COUNT])(const struct grd_distance_block *block); /* for float32 and float64 */
    void (*distance_gradient[GRD_DTYPE_COUNT])(const struct grd_distance_gradient *x);
    const struct grd_nll_row *nll[GRD_DTYPE_COUNT];             /* for float16, bfloat16, float32 and float64 */
    const struct grd_rnn_row *rnn[GRD_DTYPE_COUNT];             /* for float32 and float64 */
    const struct grd_ctc_row *ctc[GRD_DTYPE_COUNT];             /* for float32 and float64 */
    const struct grd_attention_row *attention[GRD_DTYPE_COUNT]; /* for float32 and float64 */
    const struct grd_pool_row *pool[GRD_DTYPE_COUNT];           /* for int64, float32 and float64 */
    const struct grd_conv_row *conv[GRD_DTYPE_COUNT];           /* for float32 and float64 */
    const struct grd_resample_row *resample[GRD_DTYPE_COUNT];   /* for uint8, float32 and float64 */
    const struct grd_grid_row *grid[GRD_DTYPE_COUNT];           /* for float32 and float64 */
    const struct grd_fft_row *fft[GRD_DTYPE_COUNT];             /* for float32 and float64 */
};

/* The kernel table for the instruction-set level of this CPU. kernel/select.c sets it when the library is loaded. */
extern GRD_HIDDEN const struct grd_kernel_table *grd_kernels;

/* True for float16, bfloat16 and complex32. Arithmetic on these dtypes is done in grd_computed_dtype if they have no kernel of their own. */
static inline bool grd_is_half(grd_dtype dtype)
{
    _Static_assert(GRD_DTYPE_COUNT <= 32, "a bit for each dtype");
    return ((1u << GRD_FLOAT16 | 1u << GRD_BFLOAT16 | 1u << GRD_COMPLEX32) >> dtype & 1) != 0;
}

/* Returns the dtype in which arithmetic on `dtype` is done: float32 for float16 and bfloat16, complex64 for complex32, otherwise `dtype`
 * itself. */
static inline grd_dtype grd_computed_dtype(grd_dtype dtype)
{
    return !grd_is_half(dtype) ? dtype : dtype == GRD_COMPLEX32 ? GRD_COMPLEX64 : GRD_FLOAT32;
}

/* Returns the kernel that converts `from` into `to`, or NULL if there is none. A quantized dtype converts only to itself and to and from the integer
 * dtype that stores it; any other conversion would need the scale of the quantized tensor. */
grd_loop_kernel *grd_cast_kernel(grd_dtype from, grd_dtype to);

#endif
