/* Computes polygamma, zeta and the incomplete gamma functions; see special.h. Formula numbers refer to the NIST Digital Library of Mathematical
 * Functions (DLMF), https://dlmf.nist.gov */
#include "kernel/special.h"

#include <math.h>

/* B(2k) / (2k)! for k = 1 to 8, where B are the Bernoulli numbers. */
static const double bernoulli[] = {
    1. / 12, -1. / 720, 1. / 30240, -1. / 1209600, 1. / 47900160, -691. / 1307674368000, 1. / 74724249600, -3617. / 10670622842880000};
/* TERMS, FAR: zeta(s, a) by the Euler-Maclaurin formula with TERMS terms has the accuracy of a double if a >= FAR + s. LAST: the largest n for which
 * n! is finite in a double. */
enum { TERMS = sizeof bernoulli / sizeof *bernoulli, FAR = 10, LAST = 170 };

/* ---- Polygamma ------------------------------------------------------------------------------------------------------------------------- */

/* Returns a^-s. For s = 2, the most frequent exponent, it does not call pow. */
static double inverse_power(double a, double s)
{
    return s == 2 ? 1 / (a * a) : pow(a, -s);
}

/* Returns Hurwitz's zeta function, the sum of (a + k)^-s over k >= 0, for a > 0 and s > 1, by the Euler-Maclaurin formula (25.11.5 with 2.10.1 of the
 * DLMF). */
static double zeta_of_positive(double s, double a)
{
    double sum = 0;
    for (; a < FAR + s; a++) {
        const double power = inverse_power(a, s);
        sum += power;
        if (power <= sum * 0x1p-60)
            return sum;
    }
    double power = inverse_power(a, s);
    sum += a * power / (s - 1) + power / 2;
    double factor = s * power / a; /* in round k of the loop: s (s + 1) ... (s + 2k) a^-(s + 2k + 1) */
    for (int k = 0; k < TERMS; k++) {
        sum += bernoulli[k] * factor;
        factor *= (s + 2 * k + 1.) / a * ((s + 2 * k + 2) / a);
    }
    return sum;
}

/* Returns Hurwitz's zeta function of s and a. For a < 0 and an integer s, the terms (a + k)^-s with positive a + k and those with negative a + k are
 * summed separately. There are only finitely many k with a + k < 0. Their terms are summed as the difference of two infinite sums. The distances of a
 * to its neighbouring integers are computed from a, because the small one of them would lose its digits in a difference from 1. */
double grd_math_zeta(double s, double a)
{
    if (!(s > 1))
        return s == 1 ? INFINITY : NAN;
    if (a > 0)
        return isinf(a) ? 0 : zeta_of_positive(s, a);
    if (a == floor(a))
        return INFINITY;
    if (s != floor(s))
        return NAN;
    const double below = zeta_of_positive(s, ceil(a) - a) - zeta_of_positive(s, 1 - a);
    return zeta_of_positive(s, a - floor(a)) + (fmod(s, 2) == 0 ? below : -below);
}

/* Returns derivative number `order` of the digamma function at x, by formula 5.15.2 of the DLMF. Returns NaN for orders above LAST, because their
 * factorial overflows. Returns NaN for x = -infinity, where there is no limit. */
double grd_math_polygamma(double order, double x)
{
    if (!(order <= LAST) || x == -INFINITY)
        return NAN;
    const int n = (int)order;
    return (n % 2 == 0 ? -1 : 1) * tgamma(n + 1.) * grd_math_zeta(n + 1, x);
}

/* ---- The incomplete gamma function ------------------------------------------------------------------------------------------------------- */

enum { MOST_TERMS = 1 << 16 }; /* the most terms of a series that are computed; without this limit a loop might never end */

/* Returns x^a exp(-x) / gamma(a), a factor of P(a, x) and Q(a, x) in the series and in the continued fraction. */
static double gamma_front(double a, double x)
{
    return exp(a * log(x) - x - lgamma(a));
}

/* Returns P(a, x) by the series 8.11.4 of the DLMF, which converges fast for x up to about a. */
static double gammainc_series(double a, double x)
{
    double term = 1 / a, sum = term;
    for (int k = 1; k < MOST_TERMS && term > sum * 0x1p-54; k++) {
        term *= x / (a + k);
        sum += term;
    }
    return sum * gamma_front(a, x);
}

/* Returns Q(a, x) by the continued fraction 8.9.2 of the DLMF, which converges fast for x larger than about a. The fraction is computed by Lentz's
 * method. */
static double gammaincc_fraction(double a, double x)
{
    static const double tiny = 1e-300;
    double b = x + 1 - a, c = 1 / tiny, d = 1 / b, value = d;
    for (int k = 1; k < MOST_TERMS; k++) {
        const double factor = -k * (k - a);
        b += 2;
        d = factor * d + b;
        c = b + factor / c;
        d = 1 / (fabs(d) < tiny ? tiny : d);
        c = fabs(c) < tiny ? tiny : c;
        value *= d * c;
        if (fabs(d * c - 1) < 0x1p-53)
            break;
    }
    return value * gamma_front(a, x);
}

/* Returns P(a, x) if a or x is 0, infinite, negative or NaN. The result is NaN where P is undefined. For all other arguments returns 2, which is not
 * a value of P; the caller then evaluates a formula. */
static double gammainc_at_ends(double a, double x)
{
    if (!(a >= 0 && x >= 0) || (a == 0 && x == 0) || (isinf(a) && isinf(x)))
        return NAN;
    return x == 0 || isinf(a) ? 0 : a == 0 || isinf(x) ? 1 : 2;
}

double grd_math_gammainc(double a, double x)
{
    const double end = gammainc_at_ends(a, x);
    return end != 2 ? end : x < a + 1 ? gammainc_series(a, x) : 1 - gammaincc_fraction(a, x);
}

double grd_math_gammaincc(double a, double x)
{
    const double end = gammainc_at_ends(a, x);
    return end != 2 ? 1 - end : x < a + 1 ? 1 - gammainc_series(a, x) : gammaincc_fraction(a, x);
}
