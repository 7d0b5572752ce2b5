/* Computes the outputs of the random number engine (32-bit words of the Mersenne Twister), and makes random numbers, permutations and choices from
 * these words; see kernel/random.h. The build compiles this file once per instruction-set level.
 * Invariant: every level gives the bits that the CPU generator of PyTorch gives on a processor with fused multiply-add. So fused operations are
 * written as fma() here, and the compiler must not fuse others. */
#include <math.h>

#include "base/half.h"
#include "kernel/cpu/level.h"
#include "kernel/cpu/loop.h"
#include "kernel/random.h"
#include "kernel/table.h"

enum { HALF_BLOCK = 8, PIECE = 512 };

/* ---- Words and uniform numbers ---------------------------------------------------------------------------------------------------- */

static void words(struct grd_mt19937 *engine, int64_t n, uint32_t *ret_words)
{
    while (n > 0) {
        if (engine->left == 1)
            grd_mt19937_renew(engine);
        const int ready = engine->left - 1, count = n < ready ? (int)n : ready;
        const uint32_t *state = engine->state + engine->next;
        for (int i = 0; i < count; i++)
            ret_words[i] = grd_mt19937_temper(state[i]);
        engine->left -= count;
        engine->next += count;
        ret_words += count;
        n -= count;
    }
}

/* Returns a uniform double in [0, 1) from the two words at `pair`. The two products and their sum are exact. */
GRD_INLINE double unit_double(const uint32_t *pair)
{
    return (double)(int32_t)(pair[0] & 0x1fffff) * 0x1p-21 + (double)pair[1] * 0x1p-53;
}

static void uniform_float(const struct grd_random_numbers *x, int64_t n, const uint32_t *words, void *ret_values)
{
    const float from = (float)x->a, to = (float)x->b, range = to - from;
    float *values = ret_values;
    for (int64_t i = 0; i < n; i++) {
        const float value = fmaf((float)(int32_t)(words[i] & 0xffffff) * 0x1p-24f, range, from);
        values[i] = value == to ? from : value;
    }
}

static void uniform_double(const struct grd_random_numbers *x, int64_t n, const uint32_t *words, void *ret_values)
{
    const double from = x->a, to = x->b, range = to - from;
    double *values = ret_values;
    for (int64_t i = 0; i < n; i++) {
        const double value = fma(unit_double(words + 2 * i), range, from);
        values[i] = value == to ? from : value;
    }
}

extern grd_loop_kernel *const GRD_PASTE3(grd_cast_row, float32, GRD_LEVEL)[];

/* Writes n uniform numbers in [x->a, x->b), which are computed in float and rounded to a half dtype. A number that is rounded up to the upper bound
 * is replaced by the lower bound. */
GRD_INLINE void uniform_half(const struct grd_random_numbers *x, int64_t n, const uint32_t *words, uint16_t *ret_values, grd_dtype dtype)
{
    static const int64_t strides[] = {sizeof(uint16_t), sizeof(float)};
    grd_loop_kernel *narrow = GRD_PASTE3(grd_cast_row, float32, GRD_LEVEL)[dtype];
    float wide[PIECE], bounds[] = {(float)x->a, (float)x->b};
    uint16_t ends[2];
    narrow(2, (char *const[]){(char *)ends, (char *)bounds}, strides, NULL);
    const uint16_t size = ends[1] & 0x7fff; /* the upper bound without its sign, as 0 and -0 count as the same bound */
    for (; n > 0; n -= PIECE, words += PIECE, ret_values += PIECE) {
        const int64_t count = grd_least(n, PIECE);
        uniform_float(x, count, words, wide);
        narrow(count, (char *const[]){(char *)ret_values, (char *)wide}, strides, NULL);
        for (int64_t i = 0; i < count; i++)
            ret_values[i] = ret_values[i] == ends[1] || ((ret_values[i] & 0x7fff) | size) == 0 ? ends[0] : ret_values[i];
    }
}

static void uniform_float16(const struct grd_random_numbers *x, int64_t n, const uint32_t *words, void *ret_values)
{
    uniform_half(x, n, words, ret_values, GRD_FLOAT16);
}

static void uniform_bfloat16(const struct grd_random_numbers *x, int64_t n, const uint32_t *words, void *ret_values)
{
    uniform_half(x, n, words, ret_values, GRD_BFLOAT16);
}

/* The parameters of the uniform distribution on [0, 1). */
static const struct grd_random_numbers unit = {.a = 0, .b = 1};

static void exponential(const struct grd_random_numbers *x, int64_t n, const uint32_t *words, void *ret_values)
{
    double *values = ret_values, scale = -1.0 / x->a;
    uniform_double(&unit, n, words, values);
    for (int64_t i = 0; i < n; i++)
        values[i] = scale * log1p(-values[i]);
}

static void geometric(const struct grd_random_numbers *x, int64_t n, const uint32_t *words, void *ret_values)
{
    double *values = ret_values;
    const double log_failure = log1p(-x->a);
    uniform_double(&unit, n, words, values);
    for (int64_t i = 0; i < n; i++)
        values[i] = ceil(log(values[i]) / log_failure);
}

static void cauchy(const struct grd_random_numbers *x, int64_t n, const uint32_t *words, void *ret_values)
{
    double *values = ret_values;
    uniform_double(&unit, n, words, values);
    for (int64_t i = 0; i < n; i++)
        values[i] = fma(x->b, tan(3.14159265358979323846 * (values[i] - 0.5)), x->a);
}

static void bernoulli(const struct grd_random_numbers *x, int64_t n, const uint32_t *words, void *ret_values)
{
    const double p = x->a;
    uint8_t *values = ret_values;
    for (int64_t i = 0; i < n; i++)
        values[i] = unit_double(words + 2 * i) < p;
}

static void bernoulli_each(int64_t n, const uint32_t *words, const double *p, bool wide, uint8_t *ret_values)
{
    if (wide)
        for (int64_t i = 0; i < n; i++)
            ret_values[i] = unit_double(words + 2 * i) < p[i];
    else
        for (int64_t i = 0; i < n; i++)
            ret_values[i] = (double)(int32_t)(words[i] & 0xffffff) * 0x1p-24 < p[i];
}

static void integers(const struct grd_random_numbers *x, int64_t n, const uint32_t *words, void *ret_values)
{
    const uint32_t range = (uint32_t)x->range;
    int64_t *values = ret_values;
    for (int64_t i = 0; i < n; i++)
        values[i] = (int64_t)((range == 0 ? words[i] : words[i] % range) + (uint64_t)x->base);
}

static void long_integers(const struct grd_random_numbers *x, int64_t n, const uint32_t *words, void *ret_values)
{
    int64_t *values = ret_values;
    for (int64_t i = 0; i < n; i++) {
        const uint64_t bits = (uint64_t)words[2 * i] << 32 | words[2 * i + 1];
        values[i] = (int64_t)((x->range == 0 ? bits : bits % x->range) + (uint64_t)x->base);
    }
}

/* ---- Box-Muller -------------------------------------------------------------------------------------------------------------------
 *
 *   radius = sqrt(-2 log(1 - u1)), angle = 2 pi u2;  mean + std * radius * cos(angle), mean + std * radius * sin(angle)
 *
 * PyTorch's float code is the Cephes single-precision log, sin and cos with multiplications fused into the additions that follow them. */

/* Returns `yes` if the mask is -1, `no` if it is 0. */
GRD_INLINE float bits_select(int32_t mask, float yes, float no)
{
    return grd_float_from_bits(((uint32_t)mask & grd_float_bits(yes)) | (~(uint32_t)mask & grd_float_bits(no)));
}

/* Returns log(x) for positive normal x as logf() of the Cephes library does. It writes x as m 2^e with m in [sqrt(1/2), sqrt(2)) and evaluates a
 * polynomial in m - 1. */
GRD_INLINE float log_cephes(float x)
{
    uint32_t u = grd_float_bits(x);
    float e = (float)((int32_t)(u >> 23) - 0x7f) + 1;
    float m = grd_float_from_bits((u & 0x807fffff) | 0x3f000000);
    int32_t low = -(m < 0.707106781186547524f);
    float fraction = (m - 1) + bits_select(low, m, 0);
    e -= bits_select(low, 1, 0);
    float z = fraction * fraction;
    float y = 7.0376836292e-2f;
    y = fmaf(y, fraction, -1.1514610310e-1f);
    y = fmaf(y, fraction, 1.1676998740e-1f);
    y = fmaf(y, fraction, -1.2420140846e-1f);
    y = fmaf(y, fraction, 1.4249322787e-1f);
    y = fmaf(y, fraction, -1.6668057665e-1f);
    y = fmaf(y, fraction, 2.0000714765e-1f);
    y = fmaf(y, fraction, -2.4999993993e-1f);
    y = fmaf(y, fraction, 3.3333331174e-1f);
    y = y * fraction;
    y = fmaf(y, z, e * -2.12194440e-4f);
    y = fmaf(z, -0.5f, y);
    return fmaf(e, 0.693359375f, fraction + y);
}

/* Computes sin(x) and cos(x) for 0 <= x < 8192 as sincosf() of the Cephes library does. It writes x as j pi/4 + r, where pi/4 is subtracted in three
 * parts to keep r accurate, and evaluates polynomials for sin(r) and cos(r). j decides which polynomial is the sine and which the cosine, and their
 * signs. */
GRD_INLINE void sincos_cephes(float x, float *ret_sin, float *ret_cos)
{
    int32_t j = ((int32_t)(x * 1.27323954473516f) + 1) & ~1;
    float y = (float)j;
    float r = fmaf(y, -0.78515625f, x);
    r = fmaf(y, -2.4187564849853515625e-4f, r);
    r = fmaf(y, -3.77489497744594108e-8f, r);
    float z = r * r;
    float c = 2.443315711809948e-5f;
    c = fmaf(c, z, -1.388731625493765e-3f);
    c = fmaf(c, z, 4.166664568298827e-2f);
    c = c * z;
    c = fmaf(c, z, z * -0.5f) + 1;
    float s = -1.9515295891e-4f;
    s = fmaf(s, z, 8.3321608736e-3f);
    s = fmaf(s, z, -1.6666654611e-1f);
    s = s * z;
    s = fmaf(s, r, r);
    int32_t straight = -((j & 2) == 0);
    float sine = bits_select(straight, s, c), cosine = bits_select(straight, c, s);
    *ret_sin = grd_float_from_bits(grd_float_bits(sine) ^ ((uint32_t)(j & 4) << 29));
    *ret_cos = grd_float_from_bits(grd_float_bits(cosine) ^ ((uint32_t)(~(j - 2) & 4) << 29));
}

static void normal_float(const struct grd_random_numbers *x, int64_t n, const uint32_t *words, void *ret_values)
{
    const float mean = (float)x->a, std = (float)x->b;
    float *data = ret_values;
    uniform_float(&unit, n, words, data);
    for (const float *end = data + n; data < end; data += GRD_NORMAL_BLOCK)
        for (int i = 0; i < HALF_BLOCK; i++) {
            float sine, cosine, radius = sqrtf(-2 * log_cephes(1 - data[i]));
            sincos_cephes(6.2831853071795864769f * data[i + HALF_BLOCK], &sine, &cosine);
            data[i] = fmaf(radius * cosine, std, mean);
            data[i + HALF_BLOCK] = fmaf(radius * sine, std, mean);
        }
}

static void normal_double(const struct grd_random_numbers *x, int64_t n, const uint32_t *words, void *ret_values)
{
    double *data = ret_values;
    uniform_double(&unit, n, words, data);
    for (const double *end = data + n; data < end; data += GRD_NORMAL_BLOCK)
        for (int i = 0; i < HALF_BLOCK; i++) {
            double radius = sqrt(-2 * log(1 - data[i])), angle = 6.283185307179586477 * data[i + HALF_BLOCK];
            data[i] = fma(radius * cos(angle), x->b, x->a);
            data[i + HALF_BLOCK] = fma(radius * sin(angle), x->b, x->a);
        }
}

/* Returns a uniform double in [0, 1) made from the next two words of the engine. */
static double next_unit(struct grd_mt19937 *engine)
{
    uint32_t pair[2];
    words(engine, 2, pair);
    return unit_double(pair);
}

/* Returns a standard normal number made by the Box-Muller method. The method makes numbers in pairs; the second one of a pair is stored in the
 * generator for the next call. */
static double next_normal(struct grd_generator *generator)
{
    if (generator->has_normal_double) {
        generator->has_normal_double = false;
        return generator->normal_double;
    }
    const double u1 = next_unit(&generator->engine), u2 = next_unit(&generator->engine);
    const double radius = sqrt(-2 * log1p(-u2)), angle = 6.283185307179586477 * u1;
    generator->normal_double = radius * sin(angle);
    generator->has_normal_double = true;
    return radius * cos(angle);
}

static void normal_one_by_one(const struct grd_random_numbers *x, struct grd_generator *generator, int64_t n, double *ret_values)
{
    for (int64_t i = 0; i < n; i++)
        ret_values[i] = fma(next_normal(generator), x->b, x->a);
}

/* ---- Permutations ------------------------------------------------------------------------------------------------------------------- */

static void shuffle(struct grd_mt19937 *engine, int64_t n, uint32_t *ret_values)
{
    uint32_t drawn[PIECE];
    for (int64_t i = 0; i < n; i++)
        ret_values[i] = (uint32_t)i;
    for (int64_t begin = 0; begin < n - 1; begin += PIECE) {
        const int64_t count = grd_least(n - 1 - begin, PIECE);
        words(engine, count, drawn);
        for (int64_t i = begin; i < begin + count; i++) {
            const int64_t z = i + drawn[i - begin] % (uint32_t)(n - i);
            const uint32_t saved = ret_values[i];
            ret_values[i] = ret_values[z];
            ret_values[z] = saved;
        }
    }
}

static void shuffle_long(struct grd_mt19937 *engine, int64_t n, int64_t *ret_values)
{
    for (int64_t i = 0; i < n; i++) {
        uint32_t pair[2];
        words(engine, 2, pair);
        const int64_t z = (int64_t)(((uint64_t)pair[0] << 32 | pair[1]) % (uint64_t)(i + 1));
        ret_values[i] = i;
        ret_values[i] = ret_values[z];
        ret_values[z] = i;
    }
}

/* ---- Choices ------------------------------------------------------------------------------------------------------------------------ */

static enum grd_probabilities check_probabilities(int64_t n, const double *p)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        if (!(p[i] >= 0))
            return GRD_PROBABILITIES_NEGATIVE;
        if (p[i] == INFINITY)
            return GRD_PROBABILITIES_INFINITE;
        sum += p[i];
    }
    return sum > 0 ? GRD_PROBABILITIES_FINE : GRD_PROBABILITIES_ZERO;
}

static void cumulate(int64_t n, const double *p, bool wide, double *ret_cumulated)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        ret_cumulated[i] = sum = wide ? sum + p[i] : (double)((float)sum + (float)p[i]);
    for (int64_t i = 0; i < n; i++)
        ret_cumulated[i] = wide ? ret_cumulated[i] / sum : (double)((float)ret_cumulated[i] / (float)sum);
    ret_cumulated[n - 1] = 1;
}

/* Returns the first class whose cumulative probability is at least u. The binary search has no branches, because they would be unpredictable. */
GRD_INLINE int64_t find_class(int64_t classes, const double *cumulated, double u)
{
    const double *first = cumulated;
    for (int64_t n = classes; n > 1; n -= n / 2)
        first += (first[n / 2 - 1] < u) * (n / 2);
    return first - cumulated;
}

static void choose(struct grd_mt19937 *engine, int64_t classes, const double *cumulated, int64_t n, int64_t *ret_indices)
{
    uint32_t drawn[2 * PIECE];
    for (; n > 0; n -= PIECE, ret_indices += PIECE) {
        const int64_t count = grd_least(n, PIECE);
        words(engine, 2 * count, drawn);
        for (int64_t i = 0; i < count; i++)
            ret_indices[i] = find_class(classes, cumulated, unit_double(drawn + 2 * i));
    }
}

const struct grd_random_kernels GRD_AT_LEVEL(grd_random_kernels) = {
    .words = words,
    .make = {[GRD_RANDOM_UNIFORM_FLOAT] = uniform_float,
             [GRD_RANDOM_UNIFORM_DOUBLE] = uniform_double,
             [GRD_RANDOM_UNIFORM_FLOAT16] = uniform_float16,
             [GRD_RANDOM_UNIFORM_BFLOAT16] = uniform_bfloat16,
             [GRD_RANDOM_EXPONENTIAL] = exponential,
             [GRD_RANDOM_GEOMETRIC] = geometric,
             [GRD_RANDOM_CAUCHY] = cauchy,
             [GRD_RANDOM_BERNOULLI] = bernoulli,
             [GRD_RANDOM_INTEGERS] = integers,
             [GRD_RANDOM_LONG_INTEGERS] = long_integers,
             [GRD_RANDOM_NORMAL_FLOAT] = normal_float,
             [GRD_RANDOM_NORMAL_DOUBLE] = normal_double},
    .bernoulli_each = bernoulli_each,
    .normal_one_by_one = normal_one_by_one,
    .shuffle = shuffle,
    .shuffle_long = shuffle_long,
    .check_probabilities = check_probabilities,
    .cumulate = cumulate,
    .choose = choose,
};
