/* Orthogonal polynomials of a degree n, which is truncated to an integer: 0 for negative degrees. See special.h. Formulas by number: NIST Digital Library of
 * Mathematical Functions, https://dlmf.nist.gov */
#include <math.h>
#include <stdbool.h>

#include "kernel/special.h"

/* Beyond these degrees Hermite's polynomials overflow, and the recurrences of Laguerre's and Legendre's would go on for long: NaN. */
static const double most_of_hermite = 512, most_of_others = 1 << 20;

/* The degrees up to which Chebyshev's polynomials are taken by the recurrence 18.9.1. */
enum { SHORT = 8 };

static bool is_odd(double n)
{
    return fmod(n, 2) != 0;
}

/* p(k + 1) = 2 x p(k) - p(k - 1) from p(0) = 1 and p(1). */
static double short_chebyshev(double x, double n, double first)
{
    double before = 1, p = first;
    for (int k = 1; k < n; k++) {
        const double next = 2 * x * p - before;
        before = p;
        p = next;
    }
    return n == 0 ? 1 : p;
}

/* 18.5.1 to 18.5.4 in theta = acos(x), or acosh(x) beyond 1: cos(a theta) / cos(b theta), and the same of sines. */
static double cosines(double x, double a, double b)
{
    return x <= 1 ? cos(a * acos(x)) / cos(b * acos(x)) : cosh(a * acosh(x)) / cosh(b * acosh(x));
}

static double sines(double x, double a, double b)
{
    return x == 1 ? a / b : x < 1 ? sin(a * acos(x)) / sin(b * acos(x)) : sinh(a * acosh(x)) / sinh(b * acosh(x));
}

/* T_n(-x) = (-1)^n T_n(x): computes T_n(|x|), then restores the sign. */
double grd_math_chebyshev_t(double x, double degree)
{
    const double n = trunc(degree), y = cosines(fabs(x), n, 0);
    return !(n >= 0) ? 0 : n <= SHORT ? short_chebyshev(x, n, x) : x < 0 && is_odd(n) ? -y : y;
}

double grd_math_chebyshev_u(double x, double degree)
{
    const double n = trunc(degree), y = sines(fabs(x), n + 1, 1);
    return !(n >= 0) ? 0 : n <= SHORT ? short_chebyshev(x, n, 2 * x) : x < 0 && is_odd(n) ? -y : y;
}

/* V_n(-x) = (-1)^n W_n(x). */
double grd_math_chebyshev_v(double x, double degree)
{
    const double n = trunc(degree), y = x < 0 ? sines(-x, n + 0.5, 0.5) : cosines(x, n + 0.5, 0.5);
    return !(n >= 0) ? 0 : n <= SHORT ? short_chebyshev(x, n, 2 * x - 1) : x < 0 && is_odd(n) ? -y : y;
}

double grd_math_chebyshev_w(double x, double degree)
{
    const double n = trunc(degree), y = x < 0 ? cosines(-x, n + 0.5, 0.5) : sines(x, n + 0.5, 0.5);
    return !(n >= 0) ? 0 : n <= SHORT ? short_chebyshev(x, n, 2 * x + 1) : x < 0 && is_odd(n) ? -y : y;
}

/* 18.9.1 with table 18.9.1: p(k + 1) from p(k) and p(k - 1); it ends where the numbers do. */
static double recurrence(double x, double degree, double most, double first, double (*next)(double x, double k, double p, double before))
{
    const double n = trunc(degree);
    if (!(n >= 0))
        return 0;
    if (n > most)
        return NAN;
    double before = 1, p = first;
    for (double k = 1; k < n && p == p; k++) {
        const double after = next(x, k, p, before);
        before = p;
        p = after;
    }
    return n == 0 ? 1 : p;
}

static double next_hermite_h(double x, double k, double p, double before)
{
    return 2 * (x * p - k * before);
}

static double next_hermite_he(double x, double k, double p, double before)
{
    return x * p - k * before;
}

static double next_laguerre(double x, double k, double p, double before)
{
    return ((2 * k + 1 - x) * p - k * before) / (k + 1);
}

static double next_legendre(double x, double k, double p, double before)
{
    return ((2 * k + 1) * x * p - k * before) / (k + 1);
}

double grd_math_hermite_h(double x, double degree)
{
    return recurrence(x, degree, most_of_hermite, 2 * x, next_hermite_h);
}

double grd_math_hermite_he(double x, double degree)
{
    return recurrence(x, degree, most_of_hermite, x, next_hermite_he);
}

double grd_math_laguerre(double x, double degree)
{
    return recurrence(x, degree, most_of_others, 1 - x, next_laguerre);
}

double grd_math_legendre(double x, double degree)
{
    return recurrence(x, degree, most_of_others, x, next_legendre);
}
