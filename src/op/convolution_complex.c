/* Complex convolutions by real ones. With x = a + b i and w = c + d i
 *
 *   x * w = (a * c - b * d) + ((a + b) * (c + d) - a * c - b * d) i
 *
 * so three real products, which the kernels of real convolutions compute two to three times as fast as the packed product of complex windows, are
 * a complex one. PyTorch computes the same three. They are the groups of one real convolution, whose operands are the parts and their sums one
 * after the other along the channels.
 *
 * Invariant: sums are joined element by element, so the bits do not depend on the number of threads. */
#include "base/parallel.h"
#include "gen/uses/op/convolution_complex.h"
#include "core/tensor.h"
#include "kernel/conv.h"
#include "kernel/table.h"
#include "op/convolution.h"
#include "op/product.h"
#include "op/sizes.h"

enum {
    THIRDS = 3,
    LEAST_WORK = 1 << 14, /* complex multiplications for which copies in parts are worth making … */
    LEAST_PLACES = 8,     /* … and how often each weight must be used */
    TASK_ELEMENTS = 1 << 13
};

static bool is_worth_copies(const struct grd_conv *c)
{
    double places = (double)c->batch, weights = (double)c->groups * (double)c->inner * (double)c->outer;
    for (int d = 0; d < GRD_CONV_DIMS; d++) {
        places *= (double)c->places[d];
        weights *= (double)c->kernel[d];
    }
    return places >= LEAST_PLACES && places * weights >= LEAST_WORK;
}

bool grd_conv_split(struct grd_plan *p)
{
    struct grd_conv *const c = grd_conv_of(p);
    const struct grd_conv complex = *c;
    if (!grd_dtype_is_complex(c->dtype) || grd_product_dtype(c->dtype) != c->dtype || c->groups > INT32_MAX || !is_worth_copies(c))
        return false;
    c->dtype = grd_dtype_to_real(c->dtype);
    c->groups *= THIRDS;
    c->is_split = true;
    grd_conv_choose(p);
    if (c->way == GRD_CONV_DIRECT)
        return true;
    *c = complex;
    return false;
}

grd_tensor *grd_conv_thirds(grd_tensor *x, int64_t dim)
{
    grd_tensor *const re = grd_real(x), *const im = grd_imag(x);
    return grd_cat(grd_tensors(re, im, grd_add(re, im)), .dim = dim);
}

struct joined {
    const struct grd_plan *p;
    const char *sums;
    int64_t channels, elements; /* channels of a sample of the complex result, and elements of a channel */
};

/* Joins channels [begin, end), counted over all samples. */
static void join_channels(int64_t begin, int64_t end, void *context)
{
    const struct joined *j = context;
    const struct grd_conv *c = grd_conv_of(j->p);
    const grd_tensor *result = j->p->results[0], *bias = j->p->nreads > 2 ? j->p->in[2] : NULL;
    const bool channels_last = !grd_has(result, GRD_FLAG_CONTIGUOUS);
    const int64_t size = grd_dtype_size(c->dtype);
    for (int64_t i = begin; i < end; i++) {
        const int64_t sample = i / j->channels, channel = i % j->channels,
                      at = channels_last ? sample * j->channels * j->elements + channel : i * j->elements;
        grd_kernels->conv[c->dtype]->join(&(struct grd_conv_join){.n = j->elements,
                                                                  .part = j->channels * j->elements,
                                                                  .x = j->sums + (2 * sample * j->channels + i) * j->elements * size,
                                                                  .bias = bias != NULL ? bias->data + 2 * channel * size : NULL,
                                                                  .to = result->data + 2 * at * size,
                                                                  .step = channels_last ? j->channels : 1});
    }
}

void grd_conv_join(const struct grd_plan *p, const char *sums)
{
    const struct grd_conv *c = grd_conv_of(p);
    const bool image = c->kind == GRD_CONV_IMAGE, weight = c->kind == GRD_CONV_WEIGHT;
    struct joined j = {p, sums, c->groups / THIRDS * (image ? c->inner : c->outer),
                       weight ? c->inner * grd_conv_product(c->kernel) : grd_conv_product(image ? c->image : c->places)};
    grd_parallel_for(0, (weight ? 1 : c->batch) * j.channels, 1 + TASK_ELEMENTS / grd_greatest(1, j.elements), join_channels, &j);
}
