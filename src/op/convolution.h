/* A convolution and its two gradients over strided memory. Between an image and places lies a kernel: place p sees the elements
 * p * stride + t * dilation - padding of the image through its taps t. Of the three one is computed from the other two:
 *
 *   GRD_CONV_PLACES  y[n, o, p] = bias[o] + sum over c, t of w[o, c, t] * x[n, c, p * stride + t * dilation - padding]
 *   GRD_CONV_IMAGE   x[n, c, i] = bias[c] + sum over o, t of w[o, c, t] * y[n, o, p], where i is what p sees through t: a transposed convolution
 *   GRD_CONV_WEIGHT  w[o, c, t] = sum over n, p of y[n, o, p] * x[n, c, p * stride + t * dilation - padding]
 *
 * within each of `groups` groups of channels. One or two dimensions are the last of three. Checks and shapes are in convolution.c, running in
 * convolution_run.c. */
#ifndef GRD_OP_CONVOLUTION_H
#define GRD_OP_CONVOLUTION_H

#include "core/tensor.h"
#include "kernel/windows.h"
#include "op/plan.h"

enum { GRD_CONV_DIMS = GRD_WINDOW_DIMS };
enum grd_conv_kind { GRD_CONV_PLACES, GRD_CONV_IMAGE, GRD_CONV_WEIGHT };
enum grd_conv_way { GRD_CONV_SMALL, GRD_CONV_DIRECT, GRD_CONV_PRODUCT };

struct grd_conv {
    enum grd_conv_kind kind;
    grd_dtype dtype;
    int64_t batch, groups, inner, outer; /* inner and outer: channels of a group in the image and in the places */
    int64_t image[GRD_CONV_DIMS], kernel[GRD_CONV_DIMS], places[GRD_CONV_DIMS];
    int64_t stride[GRD_CONV_DIMS], padding[GRD_CONV_DIMS], dilation[GRD_CONV_DIMS];
    bool is_channels_last; /* the result, an image or places */
    enum grd_conv_way way; /* how it is run */
    bool is_lines;
    bool is_split; /* a complex one, computed as a real one of three times as many groups: see convolution_complex.c */
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

static inline grd_dtype grd_conv_result_dtype(const struct grd_conv *c)
{
    return c->is_split ? grd_dtype_to_complex(c->dtype) : c->dtype;
}

/* Three ways: one for small ones (convolution_small.c); one for floating numbers that reads what is seen by its strides (convolution_direct.c);
 * one for everything (convolution_run.c). The others read it contiguous. Reads are what is seen through windows (x, y, x), what is multiplied (w,
 * w, y), contiguous, and the bias, if there is one. grd_conv_choose is asked what is not small. */
bool grd_conv_is_small(const struct grd_conv *c);
void grd_conv_run_small(const struct grd_plan *p);
void grd_conv_choose(struct grd_plan *p);
bool grd_conv_prepare_direct(struct grd_plan *p);
void grd_conv_run_direct(const struct grd_plan *p);
bool grd_conv_prepare(struct grd_plan *p);
void grd_conv_run(const struct grd_plan *p);

/* Turns the description of a complex convolution into that of the real one that computes it, and chooses; false, and nothing is changed, where
 * that is not worth it. */
bool grd_conv_split(struct grd_plan *p);
/* Returns x as its real part, its imaginary part and their sum, one after the other along a dimension. */
grd_tensor *grd_conv_thirds(grd_tensor *x, int64_t dim);
/* Joins what the real convolution has given to the complex result. */
void grd_conv_join(const struct grd_plan *p, const char *sums);

#endif
