/* The kernel table: one constant struct per instruction-set level, chosen once at load.
 *
 * Kernels are inner loops. They cannot fail, do not allocate, know no tensors. A missing kernel (NULL) means that the operator does not exist for
 * that dtype; the operator makes it an error. */
#ifndef GRD_KERNEL_TABLE_H
#define GRD_KERNEL_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cpu.h"
#include "gradus/types.h"

/* Over n elements: data[0] is the result, data[1...] the inputs, strides are in bytes. */
typedef void grd_loop_kernel(int64_t n, char *const *data, const int64_t *strides, const void *params);

/* Over contiguous elements. The result may be an input. params: the operator's numbers in the order of its signature; of a light kernel, NULL or a
 * struct grd_light_call. */
typedef void grd_block_kernel(int64_t n, char *const *data, const void *params);

/* How a result is written: Note [Large results] in kernel/map.c. */
enum grd_stores { GRD_STORES_NEAR, GRD_STORES_FAR, GRD_STORES_PAST };

/* How a light kernel is to take its operands, by lines of the cache: n elements are a number of whole lines. */
struct grd_light_call {
    /* An input that is one element in the place of all n; NULL: it is contiguous. The kernel fills its data, of a line, with copies of it, whatever n is. */
    const char *element[3];
    enum grd_stores stores; /* if not near, the result begins a line */
};
enum { GRD_LINE_BYTES = 64 };

/* An elementwise kernel. Operands with strides reach its block by way of grd_map (kernel/map.h). */
struct grd_map_kernel {
    grd_block_kernel *block; /* NULL: there is none */
    uint32_t sizes;          /* bytes of an element of each operand: GRD_MAP_SIZES */
    bool light;              /* takes a struct grd_light_call */
};

/* to[r * to_stride + c] = from[c * from_stride + r], strides in bytes, elements of the size in question. `streamed`: the result goes past
 * the caches; `to` and to_stride are multiples of 64 bytes. */
typedef void grd_transpose_kernel(int64_t rows, int64_t columns, char *to, int64_t to_stride, const char *from, int64_t from_stride,
                                  bool streamed);

struct grd_lines_block;       /* kernel/lines.h */
struct grd_reduce_row;        /* kernel/reduce.h */
struct grd_product_kernels;   /* kernel/gemm.h */
struct grd_index_kernels;     /* kernel/index.h */
struct grd_random_kernels;    /* kernel/random.h */
struct grd_order_row;         /* kernel/order.h */
struct grd_optim_row;         /* kernel/optim.h */
struct grd_nll_row;           /* kernel/nll.h */
struct grd_rnn_row;           /* kernel/rnn.h */
struct grd_ctc_row;           /* kernel/ctc.h */
struct grd_range_row;         /* kernel/range.h */
struct grd_bags_row;          /* kernel/bags.h */
struct grd_margin_row;        /* kernel/margin.h */
struct grd_histogram_row;     /* kernel/histogram.h */
struct grd_decomposition_row; /* kernel/decomposition.h */
struct grd_bytes_kernels;     /* kernel/bytes.h */
struct grd_spectral_row;      /* kernel/spectral.h */
struct grd_eigen_row;         /* kernel/eigen.h */
struct grd_lu_row;            /* kernel/lu.h */
struct grd_ldl_row;           /* kernel/ldl.h */
struct grd_channels_row;      /* kernel/channels.h */
struct grd_attention_row;     /* kernel/attention.h */
struct grd_distance_block;    /* kernel/distance.h */
struct grd_distance_gradient; /* kernel/distance.h */
struct grd_pool_row;          /* kernel/pool.h */
struct grd_conv_row;          /* kernel/conv.h */
struct grd_resample_row;      /* kernel/resample.h */
struct grd_grid_row;          /* kernel/grid.h */
struct grd_fft_row;           /* kernel/fft.h */

struct grd_kernel_table {
    const char *isa;
    /* Elementwise: unary[dtype] is the row of that dtype, indexed by enum grd_unary_kernel (gen/unary_kernels.h). The rows of
     * float16 and bfloat16 have few kernels, and complex32 has no row: the others are those of grd_computed_dtype, see kernel/map.h. */
    const struct grd_map_kernel *unary[GRD_DTYPE_COUNT];
    const struct grd_map_kernel *binary[GRD_DTYPE_COUNT];
    const struct grd_map_kernel *ternary[GRD_DTYPE_COUNT];
    /* Gradients in one loop, of two or three inputs: float32 float64. */
    const struct grd_map_kernel *gradient[GRD_DTYPE_COUNT];
    /* Conversion: cast[from][to]; same to same is a copy. All dtypes but quantized: ask grd_cast_kernel. */
    grd_loop_kernel *const *cast[GRD_DTYPE_COUNT];
    /* Over lines, indexed by enum grd_lines_kernel_index: int64 float32 float64 complex128. */
    void (*const *lines[GRD_DTYPE_COUNT])(const struct grd_lines_block *block);
    const struct grd_reduce_row *reduce[GRD_DTYPE_COUNT];    /* uint8 int64 uint64 bfloat16 float32 float64 complex128 */
    const struct grd_product_kernels *gemm[GRD_DTYPE_COUNT]; /* integers of 4 and 8 bytes, float32 float64 complex64 complex128 */
    const struct grd_index_kernels *index;
    const struct grd_bytes_kernels *bytes;
    grd_transpose_kernel *transpose[5]; /* by grd_index_size */
    const struct grd_random_kernels *random;
    const struct grd_order_row *order[GRD_DTYPE_COUNT];                        /* real dtypes of at most 8 bytes, but float8 */
    const struct grd_optim_row *optim[GRD_DTYPE_COUNT];                        /* float32 float64 */
    const struct grd_range_row *range[GRD_DTYPE_COUNT];                        /* int64 float32 float64 */
    const struct grd_bags_row *bags[GRD_DTYPE_COUNT];                          /* float32 float64 */
    const struct grd_margin_row *margin[GRD_DTYPE_COUNT];                      /* float32 float64 */
    const struct grd_histogram_row *histogram[GRD_DTYPE_COUNT];                /* float32 float64 */
    const struct grd_decomposition_row *decomposition[GRD_DTYPE_COUNT];        /* float32 float64 complex64 complex128 */
    const struct grd_spectral_row *jacobi[GRD_DTYPE_COUNT];                    /* the same */
    const struct grd_eigen_row *eigen[GRD_DTYPE_COUNT];                        /* the same */
    const struct grd_lu_row *lu[GRD_DTYPE_COUNT];                              /* float32 float64 complex64 complex128 */
    const struct grd_ldl_row *ldl[GRD_DTYPE_COUNT];                            /* the same */
    const struct grd_channels_row *channels[GRD_DTYPE_COUNT];                  /* float32 float64 */
    void (*distance[GRD_DTYPE_COUNT])(const struct grd_distance_block *block); /* float32 float64 */
    void (*distance_gradient[GRD_DTYPE_COUNT])(const struct grd_distance_gradient *x);
    const struct grd_nll_row *nll[GRD_DTYPE_COUNT];             /* float16 bfloat16 float32 float64 */
    const struct grd_rnn_row *rnn[GRD_DTYPE_COUNT];             /* float32 float64 */
    const struct grd_ctc_row *ctc[GRD_DTYPE_COUNT];             /* float32 float64 */
    const struct grd_attention_row *attention[GRD_DTYPE_COUNT]; /* float32 float64 */
    const struct grd_pool_row *pool[GRD_DTYPE_COUNT];           /* int64 float32 float64 */
    const struct grd_conv_row *conv[GRD_DTYPE_COUNT];           /* float32 float64 */
    const struct grd_resample_row *resample[GRD_DTYPE_COUNT];   /* uint8 float32 float64 */
    const struct grd_grid_row *grid[GRD_DTYPE_COUNT];           /* float32 float64 */
    const struct grd_fft_row *fft[GRD_DTYPE_COUNT];             /* float32 float64 */
};

/* The level in use (kernel/select.c). */
extern const struct grd_kernel_table *grd_kernels __attribute__((visibility("hidden")));

/* True for float16, bfloat16 and complex32, whose arithmetic is done in grd_computed_dtype where they have no kernels of their own. */
static inline bool grd_is_half(grd_dtype dtype)
{
    _Static_assert(GRD_DTYPE_COUNT <= 32, "a bit for each dtype");
    return ((1u << GRD_FLOAT16 | 1u << GRD_BFLOAT16 | 1u << GRD_COMPLEX32) >> dtype & 1) != 0;
}

/* The dtype that arithmetic on `dtype` is done in: float32 for float16 and bfloat16, complex64 for complex32, otherwise `dtype` itself. */
static inline grd_dtype grd_computed_dtype(grd_dtype dtype)
{
    return !grd_is_half(dtype) ? dtype : dtype == GRD_COMPLEX32 ? GRD_COMPLEX64 : GRD_FLOAT32;
}

/* The conversion, or NULL. A quantized element is moved as the integer that stands for it, to and from that integer dtype: anything else
 * would need its scale. */
grd_loop_kernel *grd_cast_kernel(grd_dtype from, grd_dtype to);

#endif
