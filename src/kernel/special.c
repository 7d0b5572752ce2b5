/* See special.h. Formulas by number: NIST Digital Library of Mathematical Functions, https://dlmf.nist.gov */
#include "kernel/special.h"

#include <math.h>

static const double pi = 0x1.921fb54442d18p1;

/* B(2k) / (2k)!, k = 1 to 8. */
static const double bernoulli[] = {
    1. / 12, -1. / 720, 1. / 30240, -1. / 1209600, 1. / 47900160, -691. / 1307674368000, 1. / 74724249600, -3617. / 10670622842880000};
enum { TERMS = sizeof bernoulli / sizeof *bernoulli, FAR = 10, LAST = 170 };

/* ---- Polygamma ------------------------------------------------------------------------------------------------------------------------- */

/* Hurwitz's zeta function, the sum of (a + k)^-s over k >= 0, for a > 0: Euler and Maclaurin, 25.11.5 with 2.10.1. */
static double zeta_of_positive(int s, double a)
{
    double sum = 0;
    for (; a < FAR + s; a++)
        sum += pow(a, -s);
    double power = pow(a, -s);
    sum += a * power / (s - 1) + power / 2;
    double factor = s * power / a; /* s (s + 1) ... (s + 2k) a^-(s + 2k + 1) */
    for (int k = 0; k < TERMS; k++) {
        sum += bernoulli[k] * factor;
        factor *= (s + 2 * k + 1.) / a * ((s + 2 * k + 2) / a);
    }
    return sum;
}

/* For a < 0 the terms on either side of 0 are two such sums, the one before it cut off. */
static double zeta(int s, double a)
{
    if (a > 0)
        return isinf(a) ? 0 : zeta_of_positive(s, a);
    const double above = a - floor(a);
    if (above == 0)
        return INFINITY;
    const double below = zeta_of_positive(s, 1 - above) - zeta_of_positive(s, 1 - a);
    return zeta_of_positive(s, above) + (s % 2 == 0 ? below : -below);
}

/* 5.5.2 up to where 5.11.2 is exact; below 0 reflected, 5.5.4. */
static double digamma(double x)
{
    if (x == 0)
        return copysign(INFINITY, -x);
    if (x < 0)
        return x == floor(x) ? NAN : digamma(1 - x) - pi / tan(pi * (x - nearbyint(x)));
    double below = 0;
    for (; x < FAR; x++)
        below += 1 / x;
    double sum = log(x) - 0.5 / x - below, factor = 1 / (x * x); /* (2k - 1)! x^-2k */
    for (int k = 0; k < TERMS; k++) {
        sum -= bernoulli[k] * factor;
        factor *= (2 * k + 2) / x * ((2 * k + 3) / x);
    }
    return sum;
}

/* 5.15.2; beyond LAST the factorial is no double. */
double grd_special_polygamma(double order, double x)
{
    if (!(order >= 0 && order <= LAST))
        return NAN;
    const int n = (int)order;
    return n == 0 ? digamma(x) : (n % 2 == 0 ? -1 : 1) * tgamma(n + 1.) * zeta(n + 1, x);
}

/* ---- Erfinv ------------------------------------------------------------------------------------------------------------------------------ */

/* Polynomials of M. Giles, Approximating the erfinv function, 2012; good to 3e-7. */
static double erfinv_roughly(double x)
{
    static const double middle[] = {2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087,
                                    -0.00125372503, -0.00417768164, 0.246640727,    1.50140941};
    static const double tail[] = {-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773,
                                  -0.0076224613,   0.00943887047,  1.00167406,    2.83297682};
    const double w = -log((1 - x) * (1 + x)), z = w < 5 ? w - 2.5 : sqrt(w) - 3;
    const double *c = w < 5 ? middle : tail;
    double p = c[0];
    for (int i = 1; i < 9; i++)
        p = p * z + c[i];
    return p * x;
}

/* Newton's steps for erf; beyond 1/2 for log(erfc), which is nearly straight there. */
double grd_special_erfinv(double x)
{
    const double a = fabs(x), rest = 1 - a;
    if (!(a < 1))
        return a == 1 ? copysign(INFINITY, x) : NAN;
    double y = fabs(erfinv_roughly(x));
    for (int step = 0; step < 4; step++) {
        const double above = erfc(y), error = a > 0.5 ? -above * log(above / rest) : erf(y) - a;
        y -= error * (sqrt(pi) / 2) * exp(y * y);
    }
    return copysign(y, x);
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

double grd_special_gammainc(double a, double x)
{
    const double end = gammainc_at_ends(a, x);
    return end != 2 ? end : x < a + 1 ? gammainc_series(a, x) : 1 - gammaincc_fraction(a, x);
}

double grd_special_gammaincc(double a, double x)
{
    const double end = gammainc_at_ends(a, x);
    return end != 2 ? 1 - end : x < a + 1 ? 1 - gammainc_series(a, x) : gammaincc_fraction(a, x);
}
