/* See special.h. Formulas by number: NIST Digital Library of Mathematical Functions, https://dlmf.nist.gov */
#include "kernel/special.h"

#include <math.h>

/* B(2k) / (2k)!, k = 1 to 8. */
static const double bernoulli[] = {
    1. / 12, -1. / 720, 1. / 30240, -1. / 1209600, 1. / 47900160, -691. / 1307674368000, 1. / 74724249600, -3617. / 10670622842880000};
enum { TERMS = sizeof bernoulli / sizeof *bernoulli, FAR = 10, LAST = 170 };

/* ---- Polygamma ------------------------------------------------------------------------------------------------------------------------- */

/* Returns a^-s; s = 2, the most frequent exponent, takes no call of pow. */
static double inverse_power(double a, double s)
{
    return s == 2 ? 1 / (a * a) : pow(a, -s);
}

/* Hurwitz's zeta function, the sum of (a + k)^-s over k >= 0, for a > 0 and s > 1: Euler and Maclaurin, 25.11.5 with 2.10.1. */
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
    double factor = s * power / a; /* s (s + 1) ... (s + 2k) a^-(s + 2k + 1) */
    for (int k = 0; k < TERMS; k++) {
        sum += bernoulli[k] * factor;
        factor *= (s + 2 * k + 1.) / a * ((s + 2 * k + 2) / a);
    }
    return sum;
}

/* For a < 0 and an integer s the terms on either side of 0 are two such sums, the one before it cut off. */
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
    const double above = a - floor(a), below = zeta_of_positive(s, 1 - above) - zeta_of_positive(s, 1 - a);
    return zeta_of_positive(s, above) + (fmod(s, 2) == 0 ? below : -below);
}

/* 5.15.2; beyond LAST the factorial is no double, and at -infinity there is no limit. */
double grd_math_polygamma(double order, double x)
{
    if (!(order <= LAST) || x == -INFINITY)
        return NAN;
    const int n = (int)order;
    return (n % 2 == 0 ? -1 : 1) * tgamma(n + 1.) * grd_math_zeta(n + 1, x);
}

/* ---- The incomplete gamma function ------------------------------------------------------------------------------------------------------- */

enum { MOST_TERMS = 1 << 16 };

/* x^a exp(-x) / gamma(a). */
static double gamma_front(double a, double x)
{
    return exp(a * log(x) - x - lgamma(a));
}

/* 8.11.4, for x up to about a. */
static double gammainc_series(double a, double x)
{
    double term = 1 / a, sum = term;
    for (int k = 1; k < MOST_TERMS && term > sum * 0x1p-54; k++) {
        term *= x / (a + k);
        sum += term;
    }
    return sum * gamma_front(a, x);
}

/* The continued fraction 8.9.2, for larger x, by Lentz's method. */
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

/* Both at the ends of their domains: what is not there is NaN. 2 where neither is the case. */
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
