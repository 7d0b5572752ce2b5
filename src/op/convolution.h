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
 * Each sum is over the channels of one of `groups` groups. All arrays of sizes have three elements; a convolution of one or two dimensions uses the
 * last ones. Checks and shapes are in convolution.c, the general implementation is in convolution_run.c. */
#ifndef GRD_OP_CONVOLUTION_H
#define GRD_OP_CONVOLUTION_H

#include "core/tensor.h"
#include "kernel/windows.h"
#include "op/plan.h"

enum { GRD_CONV_DIMS = GRD_WINDOW_DIMS };
/* The three kinds of computation for y = conv(x, w): compute the output y (PLACES), the image x (IMAGE) or the weight w (WEIGHT) from the other
 * two. IMAGE and WEIGHT compute the gradients; IMAGE is also the transposed convolution. */
enum grd_conv_kind { GRD_CONV_PLACES, GRD_CONV_IMAGE, GRD_CONV_WEIGHT };
/* The implementation that runs a convolution: convolution_small.c, convolution_direct.c or, as a matrix product, convolution_run.c. */
enum grd_conv_way { GRD_CONV_SMALL, GRD_CONV_DIRECT, GRD_CONV_PRODUCT };

/* The description of a convolution, which the plan functions of convolution.c make and the implementations read. */
struct grd_conv {
    enum grd_conv_kind kind;
    grd_dtype dtype;
    int64_t batch, groups, inner, outer; /* per group: number of channels of the image (`inner`) and of the output (`outer`) */
    int64_t image[GRD_CONV_DIMS], kernel[GRD_CONV_DIMS], places[GRD_CONV_DIMS];
    int64_t stride[GRD_CONV_DIMS], padding[GRD_CONV_DIMS], dilation[GRD_CONV_DIMS];
    bool is_channels_last; /* true if the result has its channels innermost in memory */
    enum grd_conv_way way; /* the implementation that is used */
    /* True if a vector of convolution_direct.c holds several output positions, false if it holds several channels. */
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

/* Returns the dtype of the result. It is complex if a complex convolution is computed as a real one (is_split), for which c->dtype is real. */
static inline grd_dtype grd_conv_result_dtype(const struct grd_conv *c)
{
    return c->is_split ? grd_dtype_to_complex(c->dtype) : c->dtype;
}

/* The functions below are the three implementations: for small convolutions (convolution_small.c), for floating-point dtypes (convolution_direct.c)
 * and for all others (convolution_run.c). Each computes one of the three kinds from two operands. One of these is read through sliding windows: the
 * image or, for GRD_CONV_IMAGE, the output. All operands are contiguous, except that convolution_direct.c reads the operand under the windows by its
 * strides. */

/* True if the convolution is so small that convolution_small.c, which has the least overhead, should run it. */
bool grd_conv_is_small(const struct grd_conv *c);
void grd_conv_run_small(const struct grd_plan *p);
/* Chooses between convolution_direct.c and convolution_run.c, and sets `way` and `is_lines` of the plan's struct grd_conv. */
void grd_conv_choose(struct grd_plan *p);
/* Sets p->scratch_bytes for grd_conv_run_direct. Always returns true. */
bool grd_conv_prepare_direct(struct grd_plan *p);
/* Runs the convolution without copying windows. It computes once the memory offsets of the windows and of the kernel elements in a window, and
 * then reads the image, or a padded copy of it, at these offsets. */
void grd_conv_run_direct(const struct grd_plan *p);
/* Sets p->scratch_bytes for grd_conv_run. Always returns true. */
bool grd_conv_prepare(struct grd_plan *p);
/* Runs the convolution as a matrix product, after copying windows into packed panels. */
void grd_conv_run(const struct grd_plan *p);

/* If a complex convolution is faster as a real convolution of three times as many groups, replaces its description in the plan by that of the real
 * one, chooses the implementation and returns true. Otherwise changes nothing and returns false. */
bool grd_conv_split(struct grd_plan *p);
/* Returns the real part of `x`, its imaginary part and the sum of both parts, concatenated along `dim`. They are the operands of the three real
 * convolutions that replace a complex one. */
grd_tensor *grd_conv_thirds(grd_tensor *x, int64_t dim);
/* Computes the complex result of `p` from `sums`, the result of the real convolution with three times as many groups: the convolutions of the real
 * parts, of the imaginary parts and of their sums. */
void grd_conv_join(const struct grd_plan *p, const char *sums);

#endif
