/* Operators that make tensors of random numbers: the factories, permutations, dropout and multinomial.
 *
 * The fills they call are in random.c. Invariants are those of random.c: drawn serially, in PyTorch's order and width, after every check. */
#include <math.h>

#include "base/half.h"
#include "base/memory.h"
#include "gradus/ops/add.h"
#include "gradus/ops/bernoulli.h"
#include "gradus/ops/div.h"
#include "gradus/ops/empty.h"
#include "gradus/ops/empty_like.h"
#include "gradus/ops/exponential.h"
#include "gradus/ops/min.h"
#include "gradus/ops/mul.h"
#include "gradus/ops/normal.h"
#include "gradus/ops/random.h"
#include "gradus/ops/to.h"
#include "gradus/ops/uniform.h"
#include "gradus/ops/zeros.h"
#include "gen/impl/random.h"
#include "kernel/random.h"
#include "kernel/table.h"
#include "op/common.h"
#include "op/random.h"
#include "op/order.h"
#include "op/rank.h"

enum { WORDS = 512 }; /* drawn at a time */

/* ---- Factories ---------------------------------------------------------------------------------------------------------------------- */

/* Gradients are asked for after the fill, which would be refused on a leaf that needs one. */
static grd_tensor *finish_factory(grd_tensor *t, bool requires_grad)
{
    if (requires_grad && !grd_pending()) {
        if (grd_category_of((grd_dtype)t->dtype) <= GRD_CATEGORY_INTEGER)
            grd_raise(GRD_ERROR_RUNTIME, "Only Tensors of floating point and complex dtype can require gradients");
        else
            grd_mark_requires_grad(t, true);
    }
    return grd_pending() ? grd_failed : t;
}

grd_tensor *op_rand(grd_dims size, grd_generator *generator, grd_dtype dtype, grd_device device, bool requires_grad)
{
    grd_tensor *t = grd_empty(size, .dtype = dtype, .device = device);
    return finish_factory(grd_uniform_(t, .generator = generator), requires_grad);
}

grd_tensor *op_randn(grd_dims size, grd_generator *generator, grd_dtype dtype, grd_device device, bool requires_grad)
{
    grd_tensor *t = grd_empty(size, .dtype = dtype, .device = device);
    return finish_factory(grd_normal_(t, .generator = generator), requires_grad);
}

grd_tensor *op_rand_like(grd_tensor *self, grd_generator *generator, grd_dtype dtype, grd_device device, bool requires_grad)
{
    grd_tensor *t = grd_empty_like(self, .dtype = dtype, .device = device);
    return finish_factory(grd_uniform_(t, .generator = generator), requires_grad);
}

grd_tensor *op_randn_like(grd_tensor *self, grd_generator *generator, grd_dtype dtype, grd_device device, bool requires_grad)
{
    grd_tensor *t = grd_empty_like(self, .dtype = dtype, .device = device);
    return finish_factory(grd_normal_(t, .generator = generator), requires_grad);
}

grd_tensor *op_randint(int64_t low, int64_t high, grd_dims size, grd_generator *generator, grd_dtype dtype, grd_device device,
                       bool requires_grad)
{
    grd_tensor *t = grd_empty(size, .dtype = dtype == GRD_DTYPE_NONE ? GRD_INT64 : dtype, .device = device);
    return finish_factory(grd_random_(t, .from = grd_int(low), .to = grd_int(high), .generator = generator), requires_grad);
}

grd_tensor *op_randint_like(grd_tensor *self, int64_t low, int64_t high, grd_dtype dtype, grd_device device, bool requires_grad)
{
    grd_tensor *t = grd_empty_like(self, .dtype = dtype, .device = device);
    return finish_factory(grd_random_(t, .from = grd_int(low), .to = grd_int(high)), requires_grad);
}

grd_tensor *op_randint_like_high(grd_tensor *self, int64_t high, grd_dtype dtype, grd_device device, bool requires_grad)
{
    return op_randint_like(self, 0, high, dtype, device, requires_grad);
}

grd_tensor *op_random_to(grd_tensor *out, grd_tensor *self, int64_t to, grd_generator *generator)
{
    (void)out;
    return grd_random_(self, .from = grd_int(0), .to = grd_int(to), .generator = generator);
}

/* ---- Normal numbers of many means and deviations ------------------------------------------------------------------------------------- */

static bool check_deviations(grd_tensor *std)
{
    if (grd_dtype_is_complex((grd_dtype)std->dtype))
        return grd_raise(GRD_ERROR_RUNTIME, "normal expects standard deviation to be non-complex");
    if (grd_is_meta(std) || std->numel == 0)
        return true;
    const double least = grd_item_double(grd_min(std));
    return !grd_pending() && (least >= 0 || grd_raise(GRD_ERROR_RUNTIME, "normal expects all elements of std >= 0.0"));
}

/* Standard normal numbers are drawn, then scaled and moved: PyTorch's order, which gives its bits. */
grd_tensor *op_normal_tensors(grd_tensor *mean, grd_tensor *std, grd_generator *generator)
{
    int64_t sizes[GRD_MAX_DIMS], n;
    if (!check_deviations(std) || !grd_shape_broadcast(grd_sizes(mean), grd_sizes(std), sizes, &n))
        return grd_failed;
    grd_tensor *t = grd_normal_(grd_new(grd_dims_from(sizes, n), (grd_dtype)mean->dtype, grd_device_of(mean)), .generator = generator);
    return grd_add_(grd_mul_(t, std), mean);
}

grd_tensor *op_normal_means(grd_tensor *mean, double std, grd_generator *generator)
{
    return grd_add_(grd_normal_(grd_new_like(mean, GRD_DTYPE_NONE), .std = std, .generator = generator), mean);
}

grd_tensor *op_normal_deviations(double mean, grd_tensor *std, grd_generator *generator)
{
    if (!check_deviations(std))
        return grd_failed;
    grd_tensor *t = grd_normal_(grd_new(grd_sizes(std), (grd_dtype)std->dtype, grd_device_of(std)), .generator = generator);
    return grd_add_scalar_(grd_mul_(t, std), grd_float(mean));
}

grd_tensor *op_normal_sized(double mean, double std, grd_dims size, grd_generator *generator, grd_dtype dtype, grd_device device,
                            bool requires_grad)
{
    grd_tensor *t = grd_empty(size, .dtype = dtype, .device = device);
    return finish_factory(grd_normal_(t, .mean = mean, .std = std, .generator = generator), requires_grad);
}

/* ---- Permutations ------------------------------------------------------------------------------------------------------------------- */

/* From this length on PyTorch draws 64 bits per step, from the inside out. */
#define LONG_PERMUTATION ((int64_t)(UINT32_MAX / 20))

static void shuffle(struct grd_generator *generator, uint32_t *values, int64_t n)
{
    uint32_t words[WORDS];
    for (int64_t i = 0; i < n; i++)
        values[i] = (uint32_t)i;
    for (int64_t begin = 0; begin < n - 1; begin += WORDS) {
        const int64_t count = n - 1 - begin < WORDS ? n - 1 - begin : WORDS;
        grd_kernels->random->words(&generator->engine, count, words);
        for (int64_t i = begin; i < begin + count; i++) {
            const int64_t z = i + words[i - begin] % (uint32_t)(n - i);
            const uint32_t saved = values[i];
            values[i] = values[z];
            values[z] = saved;
        }
    }
}

static void shuffle_long(struct grd_generator *generator, int64_t *values, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const int64_t z = (int64_t)(grd_random64(generator) % (uint64_t)(i + 1));
        values[i] = i;
        values[i] = values[z];
        values[z] = i;
    }
}

grd_tensor *op_randperm(int64_t n, grd_generator *generator, grd_dtype dtype, grd_device device, bool requires_grad)
{
    if (dtype == GRD_DTYPE_NONE)
        dtype = GRD_INT64;
    bool floating = grd_random_is_floating(dtype);
    int64_t low, high;
    if (dtype == GRD_BOOL || (grd_category_of(dtype) > GRD_CATEGORY_INTEGER && !floating))
        return grd_fail_no_kernel("randperm", dtype);
    grd_random_bounds(dtype, &low, &high);
    int64_t most = floating ? ((int64_t)1 << grd_random_digits(dtype)) + 1 : high == INT64_MAX ? high : high + 1;
    if (n > most && dtype != GRD_BFLOAT16) /* which PyTorch lets round */
        grd_raise(GRD_ERROR_RUNTIME, "n cannot be greater than %lld for %s type.", (long long)most, grd_dtype_type_name(dtype));
    grd_tensor *result = grd_empty(grd_dims(n), .dtype = dtype, .device = device);
    if (grd_pending())
        return grd_failed;
    if (!grd_is_meta(result)) {
        const bool is_long = n >= LONG_PERMUTATION;
        grd_tensor *values = grd_new(grd_dims(n), is_long ? GRD_INT64 : GRD_UINT32, grd_device_of(result));
        if (grd_pending())
            return grd_failed;
        struct grd_generator *locked = grd_generator_lock(generator);
        if (is_long)
            shuffle_long(locked, (int64_t *)values->data, n);
        else
            shuffle(locked, (uint32_t *)values->data, n);
        grd_generator_unlock(locked);
        if (!grd_copy_elements(result, values))
            return grd_failed;
    }
    return finish_factory(result, requires_grad);
}

/* ---- dropout, multinomial ----------------------------------------------------------------------------------------------------------- */

grd_tensor *op_dropout(grd_tensor *input, double p, bool training, grd_generator *generator)
{
    if (!(p >= 0 && p <= 1))
        return grd_fail(GRD_ERROR_VALUE, "dropout probability has to be between 0 and 1, but got %g", p);
    if (!training || p == 0 || input->numel == 0)
        return input;
    if (p == 1)
        return grd_mul(input, grd_zeros(GRD_NO_DIMS, .dtype = (grd_dtype)input->dtype, .device = grd_device_of(input)));
    if (!grd_check_castable(GRD_FLOAT32, (grd_dtype)input->dtype))
        return grd_failed;
    /* 1 / (1 - p) is rounded once, from float32 where the dtype has fewer bits. */
    const bool half = input->dtype == GRD_FLOAT16 || input->dtype == GRD_BFLOAT16;
    grd_tensor *noise = grd_empty_like(input, .dtype = half ? GRD_FLOAT32 : GRD_DTYPE_NONE);
    noise = grd_div_scalar_(grd_bernoulli_(noise, .p = grd_float(1 - p), .generator = generator), grd_float(1 - p));
    return grd_mul(input, half ? grd_to(noise, .dtype = (grd_dtype)input->dtype) : noise);
}

/* The first class whose cumulated probability reaches u; without branches, which could not be foreseen. */
static int64_t find_class(const double *cumulated, int64_t classes, double u)
{
    const double *first = cumulated;
    for (int64_t n = classes; n > 1; n -= n / 2)
        first += (first[n / 2 - 1] < u) * (n / 2);
    return first - cumulated;
}

/* With replacement: a binary search in the cumulated probabilities, which are kept in float for dtypes up to float32. */
static void draw_rows(struct grd_generator *generator, const double *p, int64_t rows, int64_t classes, int64_t samples, bool wide,
                      double *cumulated, int64_t *ret_indices)
{
    for (int64_t row = 0; row < rows; row++, p += classes, ret_indices += samples) {
        double sum = 0;
        for (int64_t i = 0; i < classes; i++) {
            sum = wide ? sum + p[i] : (double)((float)sum + (float)p[i]);
            cumulated[i] = sum;
        }
        for (int64_t i = 0; i < classes; i++)
            cumulated[i] = wide ? cumulated[i] / sum : (double)((float)cumulated[i] / (float)sum);
        cumulated[classes - 1] = 1;
        for (int64_t s = 0; s < samples; s += WORDS / 2) {
            const int64_t count = samples - s < WORDS / 2 ? samples - s : WORDS / 2;
            uint32_t words[WORDS];
            double u[WORDS / 2];
            grd_kernels->random->words(&generator->engine, 2 * count, words);
            grd_kernels->random->uniform_double(count, words, 0, 1, u);
            for (int64_t i = 0; i < count; i++)
                ret_indices[s + i] = find_class(cumulated, classes, u[i]);
        }
    }
}

/* p / q as the dtype rounds it. */
static double quotient(double p, double q, grd_dtype dtype)
{
    switch (dtype) {
    case GRD_FLOAT16:
        return grd_from_float16(grd_to_float16((float)p / (float)q));
    case GRD_BFLOAT16:
        return grd_from_bfloat16(grd_to_bfloat16((float)p / (float)q));
    case GRD_FLOAT32:
        return (float)p / (float)q;
    default:
        return p / q;
    }
}

/* Without replacement: the places of the largest p / q, with q exponentially distributed. */
static void rank_rows(const double *p, const double *q, int64_t rows, int64_t classes, int64_t samples, grd_dtype dtype,
                      struct grd_ranked *scores, int64_t *ret_indices)
{
    for (int64_t row = 0; row < rows; row++, p += classes, q += classes, ret_indices += samples) {
        for (int64_t i = 0; i < classes; i++)
            scores[i] = (struct grd_ranked){grd_order_key(quotient(p[i], q[i], dtype)), i};
        if (samples == 1) {
            int64_t best = 0;
            for (int64_t i = 1; i < classes; i++)
                if (scores[i].key > scores[best].key)
                    best = i;
            ret_indices[0] = best;
            continue;
        }
        grd_rank_largest(scores, classes, samples);
        for (int64_t s = 0; s < samples; s++)
            ret_indices[s] = scores[s].index;
    }
}

static bool check_probabilities(const double *p, int64_t rows, int64_t classes, bool replacement)
{
    for (int64_t row = 0; row < rows; row++, p += classes) {
        double sum = 0;
        for (int64_t i = 0; i < classes; i++) {
            if (!replacement && !(p[i] >= 0 && p[i] < INFINITY))
                return grd_raise(GRD_ERROR_RUNTIME, "probability tensor contains either `inf`, `nan` or element < 0");
            if (!(p[i] >= 0))
                return grd_raise(GRD_ERROR_RUNTIME, "invalid multinomial distribution (encountering probability entry < 0)");
            if (p[i] == INFINITY)
                return grd_raise(GRD_ERROR_RUNTIME, "invalid multinomial distribution (encountering probability entry = infinity or NaN)");
            sum += p[i];
        }
        if (!(sum > 0))
            return grd_raise(GRD_ERROR_RUNTIME, "invalid multinomial distribution (sum of probabilities <= 0)");
    }
    return true;
}

grd_tensor *op_multinomial(grd_tensor *self, int64_t num_samples, bool replacement, grd_generator *generator)
{
    grd_dtype dtype = (grd_dtype)self->dtype;
    if (self->ndim < 1 || self->ndim > 2)
        grd_raise(GRD_ERROR_RUNTIME, "prob_dist must be 1 or 2 dim");
    else if (!grd_random_is_floating(dtype))
        grd_raise(GRD_ERROR_RUNTIME, "multinomial only supports floating-point dtypes for input, got: %s", grd_dtype_type_name(dtype));
    else if (num_samples <= 0)
        grd_raise(GRD_ERROR_RUNTIME, "cannot sample n_sample <= 0 samples");
    else if (!replacement && num_samples > self->sizes[self->ndim - 1])
        grd_raise(GRD_ERROR_RUNTIME, "cannot sample n_sample > prob_dist.size(-1) samples without replacement");
    else if (self->sizes[self->ndim - 1] > 1 << 24)
        grd_raise(GRD_ERROR_RUNTIME, "number of categories cannot exceed 2^24");
    if (grd_pending())
        return grd_failed;
    int64_t classes = self->sizes[self->ndim - 1], rows = self->ndim == 2 ? self->sizes[0] : 1;
    grd_tensor *result = grd_new(self->ndim == 2 ? grd_dims(rows, num_samples) : grd_dims(num_samples), GRD_INT64, grd_device_of(self));
    if (grd_pending() || grd_is_meta(result) || result->numel == 0)
        return grd_pending() ? grd_failed : result;
    grd_tensor *p = grd_contiguous_as(self, GRD_FLOAT64);
    bool cumulative = replacement && num_samples > 1;
    if (grd_pending() || !check_probabilities((const double *)p->data, rows, classes, cumulative))
        return grd_failed;
    size_t size = (size_t)classes * (cumulative ? sizeof(double) : sizeof(struct grd_ranked));
    void *work = grd_alloc(size);
    if (work == NULL)
        return grd_failed;
    if (cumulative) {
        struct grd_generator *locked = grd_generator_lock(generator);
        draw_rows(locked, (const double *)p->data, rows, classes, num_samples, dtype == GRD_FLOAT64, work, (int64_t *)result->data);
        grd_generator_unlock(locked);
    } else {
        grd_tensor *q = grd_contiguous_as(grd_exponential_(grd_new_like(self, GRD_DTYPE_NONE), .generator = generator), GRD_FLOAT64);
        if (!grd_pending())
            rank_rows((const double *)p->data, (const double *)q->data, rows, classes, num_samples, dtype, work, (int64_t *)result->data);
    }
    grd_free(work, size);
    return grd_pending() ? grd_failed : result;
}
