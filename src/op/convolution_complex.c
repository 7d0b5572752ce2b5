/* Computes complex convolutions by real ones. With x = a + b i and w = c + d i
 *
 *  x * w = (a * c - b * d) + ((a + b) * (c + d) - a * c - b * d) i
 *
 * so one complex convolution needs three real ones. The kernels of real convolutions are two to three times as fast as a product of packed complex
 * windows. PyTorch computes the same three convolutions. They are run as the groups of one real convolution, whose operands are the real parts, the
 * imaginary parts and their sums, concatenated along the channels.
 *
 * Invariant: the three results are combined element by element, so results do not depend on the number of threads, bit for bit. */
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
    /* least number of complex multiplications; with fewer, copying the operands' real and imaginary parts costs more than it saves */
    LEAST_WORK = 1 << 14,
    LEAST_PLACES = 8, /* least number of output positions; with fewer, a copied weight is used too rarely to pay for the copy */
    TASK_ELEMENTS = 1 << 13
};

/* True if the convolution has enough output positions and multiplications to pay for copies of its operands. */
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

/* The arguments that grd_parallel_for passes to join_channels. `sums` holds the results of the three real convolutions. */
struct joined {
    const struct grd_plan *p;
    const char *sums;
    /* channels: number of channels of one sample of the complex result; elements: number of elements of one channel */
    int64_t channels, elements;
};

/* Computes channels [begin, end) of the complex result, numbered sample after sample, from the results of the three real convolutions. */
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
