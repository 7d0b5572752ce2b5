/* Describes a convolution and its two gradients, which the same code computes.
 *
 * All three relate an image x, a kernel w and an output y of the forward convolution. An output position p (`places` in the code) reads the image
 * element p * stride + t * dilation - padding through each tap t (element of the kernel). The three kinds of computation yield one of x, y, w from
 * the other two:
 *
 *  GRD_CONV_PLACES  y[n, o, p] = bias[o] + sum over c, t of w[o, c, t] * x[n, c, p * stride + t * dilation - padding]
 *  GRD_CONV_IMAGE   x[n, c, i] = bias[c] + sum over o, t of w[o, c, t] * y[n, o, p], where p reads i through t (a transposed convolution)
 *  GRD_CONV_WEIGHT  w[o, c, t] = sum over n, p of y[n, o, p] * x[n, c, p * stride + t * dilation - padding]
 *
 * The channels are divided into `groups` groups. In each formula, channels c and o belong to the same group. All arrays of sizes have three elements;
 * a convolution of one or two dimensions uses the last ones. Checks and shapes are in convolution.c, the general implementation is in
 * convolution_run.c. */
#ifndef GRD_OP_CONVOLUTION_H
#define GRD_OP_CONVOLUTION_H

#include "core/tensor.h"
#include "kernel/windows.h"
#include "op/plan.h"

enum { GRD_CONV_DIMS = GRD_WINDOW_DIMS };
/* The three kinds of computation for y = conv(x, w). PLACES computes the output y from x and w. IMAGE computes the gradient of x from w and the
 * gradient of y; it is also the transposed convolution. WEIGHT computes the gradient of w from x and the gradient of y. */
enum grd_conv_kind { GRD_CONV_PLACES, GRD_CONV_IMAGE, GRD_CONV_WEIGHT };
/* The implementation that runs a convolution: convolution_small.c, convolution_direct.c or, as a matrix product, convolution_run.c. */
enum grd_conv_way { GRD_CONV_SMALL, GRD_CONV_DIRECT, GRD_CONV_PRODUCT };

/* The description of a convolution, which the plan functions of convolution.c make and the implementations read. */
struct grd_conv {
    enum grd_conv_kind kind;
    grd_dtype dtype;
    /* In each of the `groups` groups, the image has `inner` channels and the output has `outer` channels. */
    int64_t batch, groups, inner, outer;
    int64_t image[GRD_CONV_DIMS], kernel[GRD_CONV_DIMS], places[GRD_CONV_DIMS];
    int64_t stride[GRD_CONV_DIMS], padding[GRD_CONV_DIMS], dilation[GRD_CONV_DIMS];
    bool is_channels_last; /* true if the result has its channels innermost in memory */
    enum grd_conv_way way; /* the implementation that is used */
    /* Only for GRD_CONV_DIRECT. true: a vector register holds several output positions of one channel; false: it holds several channels of one
     * position. */
    bool is_lines;
    bool is_split; /* true for a complex convolution computed as a real one with three times as many groups (convolution_complex.c) */
};

static inline struct grd_conv *grd_conv_of(const struct grd_plan *p)
{
    _Static_assert(sizeof(struct grd_conv) <= GRD_PLAN_STATE, "room in the plan");
    return (struct grd_conv *)(uintptr_t)p->state;
}

static inline int64_t grd_conv_product(const int64_t sizes[GRD_CONV_DIMS])
{
    return sizes[0] * sizes[1] * sizes[2];
}

/* Returns the dtype of the result. If a complex convolution is computed as a real one (is_split), c->dtype is the real dtype, and this function
 * returns the corresponding complex dtype. */
static inline grd_dtype grd_conv_result_dtype(const struct grd_conv *c)
{
    return c->is_split ? grd_dtype_to_complex(c->dtype) : c->dtype;
}

/* The functions below belong to the three implementations: convolution_small.c for small convolutions, convolution_direct.c for most other
 * convolutions of floating-point numbers, and convolution_run.c for the rest. Each implementation computes all kinds (enum grd_conv_kind) from two
 * operands. One operand is read through sliding windows: the image or, for GRD_CONV_IMAGE, the output. Both operands are contiguous, except that
 * convolution_direct.c can read the operand under the windows by its strides. */

/* True if the convolution is so small that convolution_small.c, which has the least overhead, should run it. */
bool grd_conv_is_small(const struct grd_conv *c);
void grd_conv_run_small(const struct grd_plan *p);
/* Chooses convolution_direct.c or convolution_run.c, and sets `way` and `is_lines` in the plan's struct grd_conv accordingly. */
void grd_conv_choose(struct grd_plan *p);
/* Sets p->scratch_bytes to the scratch memory that grd_conv_run_direct needs. Always returns true. */
bool grd_conv_prepare_direct(struct grd_plan *p);
/* Runs the planned convolution without copying windows: reads the elements of a window in the image, or in a padded copy of the image. The offsets of
 * the windows, and of the kernel elements within a window, are computed once. */
void grd_conv_run_direct(const struct grd_plan *p);
/* Sets p->scratch_bytes to the scratch memory that grd_conv_run needs. Always returns true. */
bool grd_conv_prepare(struct grd_plan *p);
/* Runs the planned convolution as a matrix product (im2col): copies windows into packed blocks of columns and multiplies them with the other
 * operand. */
void grd_conv_run(const struct grd_plan *p);

/* If the plan's complex convolution is faster as a real convolution with three times as many groups, makes the plan describe the real convolution
 * and returns true. Otherwise changes nothing and returns false. */
bool grd_conv_split(struct grd_plan *p);
/* Returns the real part of `x`, its imaginary part and the sum of both parts, concatenated along `dim`. They are the operands of the three real
 * convolutions that replace a complex one. */
grd_tensor *grd_conv_thirds(grd_tensor *x, int64_t dim);
/* Computes the complex result of the plan `p` from `sums`, the result of the real convolution that replaces the complex one. Of the
 * groups of the real convolution, the first third convolves the real parts, the second the imaginary parts, and the last the sums of both. */
void grd_conv_join(const struct grd_plan *p, const char *sums);

#endif
