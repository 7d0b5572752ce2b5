/* Draws Poisson, binomial and gamma random numbers; see sampler.h. Sources: W. Hoermann, The transformed rejection method for generating Poisson
 * random variables, 1993 (PTRS), and The generation of binomial random variates, 1993 (BTRS); G. Marsaglia and W. W. Tsang, A simple method for
 * generating gamma variables, 2000. */
#include "kernel/sampler.h"

#include <float.h>
#include <math.h>

/* ---- Uniform and normal numbers ---------------------------------------------------------------------------------------------------- */

static uint32_t next_word(struct grd_mt19937 *engine)
{
    if (engine->left == 1)
        grd_mt19937_renew(engine);
    engine->left--;
    return grd_mt19937_temper(engine->state[engine->next++]);
}

/* Returns a uniform multiple of 2^-53 in [0, 1), made from two words; the first word is the high half. */
static double next_uniform(struct grd_generator *generator)
{
    const uint64_t high = next_word(&generator->engine), low = next_word(&generator->engine);
    return (double)((high << 32 | low) & (((uint64_t)1 << 53) - 1)) * 0x1p-53;
}

/* Returns a standard normal number (Box-Muller). Numbers are made in pairs; the second one is stored in the generator for the next call. */
static double next_normal(struct grd_generator *generator)
{
    if (generator->has_normal_double) {
        generator->has_normal_double = false;
        return generator->normal_double;
    }
    const double u1 = next_uniform(generator), u2 = next_uniform(generator);
    const double radius = sqrt(-2 * log1p(-u2)), angle = 6.283185307179586477 * u1;
    generator->normal_double = radius * sin(angle);
    generator->has_normal_double = true;
    return radius * cos(angle);
}

/* Returns x rounded to the precision of the distribution's parameters: float64 if `wide`, otherwise float32. */
static double rounded(double x, bool wide)
{
    return wide ? x : (float)x;
}

/* ---- Poisson ------------------------------------------------------------------------------------------------------------------------- */

/* Returns a Poisson number: how many uniform numbers can be multiplied before the product is at most exp(-rate). This method is used for small rates,
 * because it takes about `rate` steps. */
static double poisson_by_product(struct grd_generator *generator, double rate)
{
    const double end = exp(-rate);
    double count = 0;
    for (double product = next_uniform(generator); product > end; product *= next_uniform(generator))
        count++;
    return count;
}

/* Returns x converted to int64 and back to double. Returns -2^63 if x does not fit into int64, like the x86 instruction; C leaves this case
 * undefined. */
static double as_int64(double x)
{
    return x >= -0x1p63 && x < 0x1p63 ? (double)(int64_t)x : -0x1p63;
}

/* Returns a Poisson number by the rejection algorithm PTRS (Hoermann, 1993), which needs a rate of at least 10. */
static double poisson_by_rejection(struct grd_generator *generator, double rate)
{
    const double log_rate = log(rate), b = 0.931 + 2.53 * sqrt(rate), a = -0.059 + 0.02483 * b;
    const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4), squeeze = 0.9277 - 3.6224 / (b - 2);
    for (;;) {
        const double u = next_uniform(generator) - 0.5, v = next_uniform(generator), edge = 0.5 - fabs(u);
        const double k = floor((2 * a / edge + b) * u + rate + 0.43);
        if (edge >= 0.07 && v <= squeeze)
            return as_int64(k);
        if (k < 0 || (edge < 0.013 && v > edge))
            continue;
        if (log(v) + log(inverse_alpha) - log(a / (edge * edge) + b) <= -rate + k * log_rate - lgamma(k + 1))
            return as_int64(k);
    }
}

static double next_poisson(struct grd_generator *generator, double rate)
{
    return rate >= 10 ? poisson_by_rejection(generator, rate) : rate == 0 ? 0 : poisson_by_product(generator, rate);
}

/* ---- Binomial ------------------------------------------------------------------------------------------------------------------------ */

/* Returns log(k!) minus its approximation by Stirling's formula. */
static double stirling_tail(double k)
{
    static const double small[] = {0.0810614667953272, 0.0413406959554092, 0.0276779256849983, 0.02079067210376509, 0.0166446911898211,
                                   0.0138761288230707, 0.0118967099458917, 0.0104112652619720, 0.00925546218271273, 0.00833056343336287};
    if (k < sizeof small / sizeof *small)
        return small[(int)k];
    const double square = (k + 1) * (k + 1);
    return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1);
}

/* Returns a binomial number: how many geometric random numbers can be added before their sum exceeds `count`. It takes about count * p steps, so
 * it is used for small count * p. */
static double binomial_by_geometric(struct grd_generator *generator, double count, double p, bool wide)
{
    const double log_failure = wide ? log1p(-p) : (double)log1pf((float)-p);
    double sum = 0, found = 0;
    for (;;) {
        sum += ceil(log(next_uniform(generator)) / log_failure);
        if (sum > count)
            return found;
        found = rounded(found + 1, wide);
    }
}

/* Returns a binomial number by the rejection algorithm BTRS (Hoermann, 1993), which needs count * p >= 10. */
static double binomial_by_rejection(struct grd_generator *generator, double count, double p, bool wide)
{
    const double failure = rounded(1 - p, wide), mean = rounded(count * p, wide), more = rounded(count + 1, wide);
    const double deviation = rounded(sqrt(rounded(mean * failure, wide)), wide), b = 1.15 + 2.53 * deviation;
    const double a = -0.0873 + 0.0248 * b + 0.01 * p, c = mean + 0.5, squeeze = 0.92 - 4.2 / b, odds = rounded(p / failure, wide);
    const double alpha = (2.83 + 5.1 / b) * deviation, mode = floor(rounded(more * p, wide));
    for (;;) {
        const double u = next_uniform(generator) - 0.5, v = next_uniform(generator), edge = 0.5 - fabs(u);
        const double k = rounded(floor((2 * a / edge + b) * u + c), wide);
        if (k < 0 || k > count)
            continue;
        if (edge >= 0.07 && v <= squeeze)
            return k;
        const double rest = rounded(count - k, wide), after = rounded(rest + 1, wide), next = rounded(k + 1, wide);
        const double bound = (mode + 0.5) * log((mode + 1) / (odds * (count - mode + 1))) + more * log((count - mode + 1) / after) +
                             (k + 0.5) * log(odds * after / next) + stirling_tail(mode) + stirling_tail(count - mode) - stirling_tail(k) -
                             stirling_tail(rest);
        if (log(v * alpha / (a / (edge * edge) + b)) <= bound)
            return k;
    }
}

/* Returns a binomial number. If the probability is above 1/2, draws the number of failures and subtracts it from `count`. */
static double next_binomial(struct grd_generator *generator, double count, double probability, bool wide)
{
    if (isnan(count) || isnan(probability))
        return NAN;
    if (count <= 0 || probability <= 0)
        return 0;
    if (probability >= 1)
        return count;
    const double p = probability <= 0.5 ? probability : rounded(1 - probability, wide);
    const double drawn = rounded(count * p, wide) >= 10 ? binomial_by_rejection(generator, count, p, wide)
                                                        : binomial_by_geometric(generator, count, p, wide);
    return probability <= 0.5 ? drawn : rounded(count - drawn, wide);
}

/* ---- Gamma --------------------------------------------------------------------------------------------------------------------------- */

/* Returns a number from the gamma distribution with rate 1, by the method of Marsaglia and Tsang. */
static double next_gamma(struct grd_generator *generator, double concentration, bool wide)
{
    double scale = 1;
    if (concentration == 0)
        return 0;
    if (concentration < 1) { /* A number from gamma(a) is a number from gamma(a + 1) times u^(1 / a), with u uniform in (0, 1]. */
        scale = pow(1 - next_uniform(generator), rounded(1 / concentration, wide));
        concentration = rounded(concentration + 1, wide);
    }
    const double d = rounded(concentration - (double)(1.0f / 3.0f), wide), c = 1 / sqrt(9 * d);
    for (;;) {
        double x, y;
        do {
            x = next_normal(generator);
            y = 1 + c * x;
        } while (y <= 0);
        const double v = y * y * y, u = 1 - next_uniform(generator), square = x * x;
        if (u < 1 - (double)0.0331f * square * square || log(u) < 0.5 * square + d * (1 - v + log(v)))
            return scale * d * v;
    }
}

/* ---- Arrays ---------------------------------------------------------------------------------------------------------------------------- */

/* Returns x, or the smallest normal number if x is below that or NaN. */
static double at_least_normal(double x, bool wide)
{
    const double least = wide ? DBL_MIN : (double)FLT_MIN;
    return least < x ? x : least;
}

void grd_sample_poissons(struct grd_generator *generator, int64_t n, const double *rates, double *ret_numbers)
{
    for (int64_t i = 0; i < n; i++)
        ret_numbers[i] = next_poisson(generator, rates[i]);
}

void grd_sample_binomials(struct grd_generator *generator, int64_t n, const double *counts, const double *probabilities, bool wide,
                          double *ret_numbers)
{
    for (int64_t i = 0; i < n; i++)
        ret_numbers[i] = next_binomial(generator, counts[i], probabilities[i], wide);
}

void grd_sample_gammas(struct grd_generator *generator, int64_t n, const double *concentrations, bool wide, double *ret_numbers)
{
    for (int64_t i = 0; i < n; i++)
        ret_numbers[i] = at_least_normal(next_gamma(generator, concentrations[i], wide), wide);
}

void grd_normalize_gammas(int64_t rows, int64_t n, bool wide, double *numbers)
{
    const double most = 1 - (wide ? DBL_EPSILON : (double)FLT_EPSILON) / 2;
    for (double *row = numbers, *end = numbers + rows * n; row < end; row += n) {
        double sum = 0;
        for (int64_t i = 0; i < n; i++)
            sum += row[i];
        for (int64_t i = 0; i < n; i++)
            row[i] = fmin(most, at_least_normal(row[i] / sum, wide));
    }
}
