/* Computes orthogonal polynomials of degree n; see special.h. The degree is truncated to an integer; the result is 0 for negative degrees. Formula
 * numbers refer to the NIST Digital Library of Mathematical Functions (DLMF), https://dlmf.nist.gov */
#include <math.h>
#include <stdbool.h>

#include "kernel/special.h"

/* The largest degrees; above them the result is NaN. Hermite's polynomials of larger degrees overflow, and the recurrences of Laguerre's and
 * Legendre's polynomials would take too long. */
static const double most_of_hermite = 512, most_of_others = 1 << 20;

/* Up to this degree Chebyshev polynomials are computed by the recurrence 18.9.1 of the DLMF, above it by trigonometric functions. */
enum { SHORT = 8 };

static bool is_odd(double n)
{
    return fmod(n, 2) != 0;
}

/* Returns p(n), where p(0) = 1, p(1) = first and p(k + 1) = 2 x p(k) - p(k - 1). */
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

/* The two functions below give Chebyshev polynomials by the formulas 18.5.1 to 18.5.4 of the DLMF. With t = acos(x) they return
 * cos(a t) / cos(b t) and sin(a t) / sin(b t); for x > 1 they use t = acosh(x) with cosh and sinh. */
static double cosines(double x, double a, double b)
{
    return x <= 1 ? cos(a * acos(x)) / cos(b * acos(x)) : cosh(a * acosh(x)) / cosh(b * acosh(x));
}

static double sines(double x, double a, double b)
{
    return x == 1 ? a / b : x < 1 ? sin(a * acos(x)) / sin(b * acos(x)) : sinh(a * acosh(x)) / sinh(b * acosh(x));
}

/* Returns the Chebyshev polynomial T_n(x). T_n(-x) = (-1)^n T_n(x), so this computes T_n(|x|) and restores the sign. */
double grd_math_chebyshev_t(double x, double degree)
{
    const double n = trunc(degree), y = cosines(fabs(x), n, 0);
    return !(n >= 0) ? 0 : n <= SHORT ? short_chebyshev(x, n, x) : x < 0 && is_odd(n) ? -y : y;
}

/* Returns the Chebyshev polynomial U_n(x). U_n(-x) = (-1)^n U_n(x), so this computes U_n(|x|) and restores the sign. */
double grd_math_chebyshev_u(double x, double degree)
{
    const double n = trunc(degree), y = sines(fabs(x), n + 1, 1);
    return !(n >= 0) ? 0 : n <= SHORT ? short_chebyshev(x, n, 2 * x) : x < 0 && is_odd(n) ? -y : y;
}

/* Returns the Chebyshev polynomial V_n(x). V_n(-x) = (-1)^n W_n(x), so a negative x uses the formula of W_n. */
double grd_math_chebyshev_v(double x, double degree)
{
    const double n = trunc(degree), y = x < 0 ? sines(-x, n + 0.5, 0.5) : cosines(x, n + 0.5, 0.5);
    return !(n >= 0) ? 0 : n <= SHORT ? short_chebyshev(x, n, 2 * x - 1) : x < 0 && is_odd(n) ? -y : y;
}

/* Returns the Chebyshev polynomial W_n(x). W_n(-x) = (-1)^n V_n(x), so a negative x uses the formula of V_n. */
double grd_math_chebyshev_w(double x, double degree)
{
    const double n = trunc(degree), y = x < 0 ? cosines(-x, n + 0.5, 0.5) : sines(x, n + 0.5, 0.5);
    return !(n >= 0) ? 0 : n <= SHORT ? short_chebyshev(x, n, 2 * x + 1) : x < 0 && is_odd(n) ? -y : y;
}

/* Returns p(n), where n is the truncated degree, by a recurrence of table 18.9.1 of the DLMF with p(0) = 1 and p(1) = first. next() computes
 * p(k + 1) from p(k) and p(k - 1). Returns NaN if n > most, and stops at the first NaN. */
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
