/* Defines the functions that initialise accumulated values (begin_...), and the functions that finish them, e.g. by dividing a sum to get a mean
 * (end_...); see kernel/reduce.h. Included by reduce.c only. */
#ifndef GRD_KERNEL_REDUCE_ENDS_H
#define GRD_KERNEL_REDUCE_ENDS_H

GRD_INLINE void fill(int64_t n, G *gathered, G value)
{
    for (int64_t i = 0; i < n; i++)
        gathered[i] = value;
}

#if !GRD_HAS_EXTREMES_ALONE
static void begin_zero(int64_t n, void *gathered)
{
    fill(n, gathered, 0);
}
#endif

#if GRD_HAS_PRODUCTS
static void begin_one(int64_t n, void *gathered)
{
    fill(n, gathered, 1);
}
#endif

#if !GRD_IS_COMPLEX && !GRD_IS_HALF
GRD_INLINE void fill_elements(int64_t n, E *gathered, E value)
{
    for (int64_t i = 0; i < n; i++)
        gathered[i] = value;
}

/* The smallest and the largest value of the element type E. */
#if GRD_IS_FLOAT
static const E lowest = -INFINITY, highest = INFINITY;
#elif GRD_IS_SIGNED
static const E lowest = (E)(INT64_MIN >> (64 - 8 * sizeof(E))), highest = (E)(INT64_MAX >> (64 - 8 * sizeof(E)));
#else
static const E lowest = 0, highest = (E)-1;
#endif

static void begin_lowest(int64_t n, void *gathered)
{
    fill_elements(n, gathered, lowest);
}

static void begin_highest(int64_t n, void *gathered)
{
    fill_elements(n, gathered, highest);
}

/* Sets n indices to INT64_MAX, which is greater than the index of any element. */
static void begin_nowhere(int64_t n, void *gathered)
{
    for (int64_t i = 0; i < n; i++)
        ((int64_t *)gathered)[i] = INT64_MAX;
}
#endif

#if GRD_IS_FLOAT || GRD_IS_COMPLEX
/* Number of real numbers in an accumulated value: 2 for complex dtypes, otherwise 1. A complex value is divided by dividing both numbers. Roots are
 * taken only of real values; for complex dtypes these are stored in the real part. */
enum { PARTS = sizeof(G) / sizeof(double) };

static void end_divide(int64_t n, void *gathered, const void *center, double number)
{
    double *v = gathered;
    (void)center;
    for (int64_t i = 0; i < n * PARTS; i++)
        v[i] /= number;
}

static void end_root(int64_t n, void *gathered, const void *center, double number)
{
    double *v = gathered;
    (void)center, (void)number;
    for (int64_t i = 0; i < n * PARTS; i += PARTS)
        v[i] = sqrt(v[i]);
}

#if !GRD_IS_HALF
static void end_mean(int64_t n, void *gathered, const void *center, double number)
{
    double *v = gathered;
    const double *c = center;
    for (int64_t i = 0; i < n * PARTS; i++)
        v[i] = number == 1 ? c[i] : v[i] / number + c[i]; /* one infinity is its own mean, but its difference from itself is NaN */
}

static void end_divide_root(int64_t n, void *gathered, const void *center, double number)
{
    double *v = gathered;
    (void)center;
    for (int64_t i = 0; i < n * PARTS; i += PARTS)
        v[i] = sqrt(v[i] / number);
}
#endif
#endif

#if !GRD_IS_HALF && !GRD_HAS_EXTREMES_ALONE
#if GRD_IS_FLOAT
static void end_finite(int64_t n, void *gathered, const void *center, double number)
{
    E *v = gathered;
    (void)center, (void)number;
    for (int64_t i = 0; i < n; i++)
        v[i] = isinf(v[i]) ? 0 : v[i];
}

static void end_log(int64_t n, void *gathered, const void *center, double number)
{
    double *v = gathered;
    const E *c = center;
    (void)number;
    for (int64_t i = 0; i < n; i++)
        v[i] = log(v[i]) + (double)c[i];
}
#endif

/* end_any() and end_all() write their results as bytes to the start of the array `gathered` itself. There each byte overwrites only values that have
 * been read already. */
static void end_any(int64_t n, void *gathered, const void *center, double number)
{
    const G *v = gathered;
    uint8_t *truth = gathered;
    (void)center, (void)number;
    for (int64_t i = 0; i < n; i++)
        truth[i] = v[i] != 0;
}

static void end_all(int64_t n, void *gathered, const void *center, double number)
{
    const G *v = gathered;
    uint8_t *truth = gathered;
    (void)center;
    for (int64_t i = 0; i < n; i++)
        truth[i] = v[i] == (G)number;
}
#endif

#if GRD_TAG == GRD_TAG_uint8
static void end_truth(int64_t n, void *gathered, const void *center, double number)
{
    E *v = gathered;
    (void)center, (void)number;
    for (int64_t i = 0; i < n; i++)
        v[i] = v[i] != 0;
}
#endif

#endif
