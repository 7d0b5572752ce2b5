/* Computes the derivatives of gamma and beta random numbers with respect to their concentrations; see special.h. The approximations and their
 * coefficients are from the paper named there. Each approximation is accurate for some range of the random number and the concentration. */
#include <math.h>

#include "kernel/cpu/vecmath_special.h"
#include "kernel/special.h"

static double digamma(double x)
{
    return vm_digamma(x);
}

static double zero_for_nan(double x)
{
    return isnan(x) ? 0 : x;
}

/* Returns c[0] + c[1] x + c[2] x^2 + c[3] x^3. */
static double cubic(const double c[4], double x)
{
    return c[0] + x * (c[1] + x * (c[2] + x * c[3]));
}

/* ---- Gamma ----------------------------------------------------------------------------------------------------------------------------- */

/* Returns the derivative of a gamma(a) random number x with respect to a, for small x. It uses the Taylor series of the distribution function at
 * 0, with terms proportional to x^a (-x)^i / (i! (a + i)). */
static double gamma_of_small(double a, double x)
{
    double term = 1, series = 1 / a, slopes = 1 / (a * a);
    for (int i = 1; i <= 5; i++) {
        term *= -x / i;
        series += term / (a + i);
        slopes += term / ((a + i) * (a + i));
    }
    const double power = pow(x, a), density = pow(x, a - 1) * exp(-x);
    return zero_for_nan(-((log(x) - digamma(a)) * power * series - power * slopes) / density);
}

/* Returns the derivative of a random number x from gamma(a) by the concentration a, for large a. It uses Rice's saddle point expansion. This
 * expansion has a removable singularity at x = a, so x near a uses a series instead. */
static double gamma_of_large(double a, double x)
{
    if (0.9 * a <= x && x <= 1.1 * a) {
        const double p = 1440 * a * a + 6 * x * (53 - 120 * x) - 65 * x * x / a + a * (107 + 3600 * x);
        return (1 + 24 * a * (1 + 12 * a)) * p / (1244160 * (a * a) * (a * a));
    }
    const double root = sqrt(8 * a), way = a - x, ratio = log(x / a), power = pow(x - a - a * ratio, -1.5);
    const double both = root / way + (x < a ? -power : power);
    const double sum = ratio * both - sqrt(2 / a) * (a + x) / (way * way);
    const double stirling = 1 + 1 / (12 * a) * (1 + 1 / (24 * a));
    return -stirling * x * sum / root;
}

/* Returns the derivative of a random number x from gamma(a) by the concentration a, for x >= 0.8 and a <= 8. It is a rational function of log(x / a)
 * and log(a). */
static double gamma_between(double a, double x)
{
    static const double c[3][8] = {
        {0.16009398, -0.094634809, 0.025146376, -0.0030648343, 1, 0.32668115, 0.10406089, 0.0014179084},
        {0.53487893, 0.1298071, 0.065735949, -0.0015649758, 0.16639465, 0.020070113, -0.0035938915, -0.00058392623},
        {0.040121004, -0.0065914022, -0.0026286047, -0.0013441777, 0.017050642, -0.0021309326, 0.00085092367, -1.5247877e-07},
    };
    const double u = log(x / a), v = log(a);
    double of_v[8];
    for (int i = 0; i < 8; i++)
        of_v[i] = c[0][i] + u * (c[1][i] + u * c[2][i]);
    return exp(cubic(of_v, v) / cubic(of_v + 4, v));
}

double grd_math_gamma_gradient(double concentration, double x)
{
    return x < 0.8             ? gamma_of_small(concentration, x)
           : concentration > 8 ? gamma_of_large(concentration, x)
                               : gamma_between(concentration, x);
}

/* ---- Beta ------------------------------------------------------------------------------------------------------------------------------ */

/* Returns the derivative by alpha of a random number x from a beta distribution, for small x. It uses a Taylor series. */
static double beta_by_alpha(double x, double alpha, double beta)
{
    const double factor = digamma(alpha) - digamma(alpha + beta) - log(x);
    double term = 1, series = 1 / alpha * (factor + 1 / alpha);
    for (int i = 1; i <= 10; i++) {
        term *= (i - beta) * x / i;
        series += term / (alpha + i) * (factor + 1 / (alpha + i));
    }
    return zero_for_nan(x * pow(1 - x, -beta) * series);
}

/* Returns the derivative by `beta` of a random number x from a beta distribution, for small x, from a Taylor series. Its terms contain the
 * products (beta - 1) ... (beta - i) and their derivatives by `beta`. */
static double beta_by_beta(double x, double alpha, double beta)
{
    const double factor = digamma(alpha + beta) - digamma(beta);
    double term = 1, product = 1, slope = 0, series = factor / alpha;
    for (int i = 1; i <= 8; i++) {
        term *= -x / i;
        slope = slope * (beta - i) + product;
        product *= beta - i;
        series += term / (alpha + i) * (slope + factor * product);
    }
    return zero_for_nan(-pow(1 - x, 1 - beta) * series);
}

/* Returns the derivative by a of a random number x from the distribution beta(a, b), for x near the mean, where the formula of beta_of_large has a
 * removable singularity. It uses Rice's expansion. */
static double beta_at_mean(double x, double a, double b, double total)
{
    const double square = b * b;
    const double poly =
        47 * x * square * square + a * ((43 + 20 * (16 + 27 * b) * x) * square * b +
                                        a * (3 * (59 + 180 * b - 90 * x) * square +
                                             a * ((453 + 1620 * b * (1 - x) - 455 * x) * b + a * (8 * (1 - x) * (135 * b - 11)))));
    return (1 + 12 * a) * (1 + 12 * b) / (total * total) / (1 - x) * poly / (12960 * a * a * a * b * b * (1 + 12 * total));
}

/* Returns gamma(x) divided by the leading term of Stirling's formula, approximately. This factor tends to 1 as x grows. */
static double stirling(double x)
{
    return 1 + 1 / (12 * x) + 1 / (288 * x * x);
}

/* Returns the derivative by a of a random number x from the distribution beta(a, b), for large a and b, by Rice's saddle point expansion. */
static double beta_of_large(double x, double a, double b)
{
    const double total = a + b, mean = a / total, deviation = sqrt(a * b / (total + 1)) / total;
    if (mean - 0.1 * deviation <= x && x <= mean + 0.1 * deviation)
        return beta_at_mean(x, a, b, total);
    const double way = a * (x - 1) + b * x, of_a = log(a / (total * x)), of_b = log(b / (total * (1 - x)));
    const double first = (2 * a * a * (x - 1) + a * b * (x - 1) - x * b * b) / (sqrt(2 * a / b) * pow(total, 1.5) * way * way);
    const double power = pow(b * of_b + a * of_a, -1.5);
    const double sum = first + 0.5 * of_a * (sqrt(8 * a * b / total) / way + (x < mean ? power : -power));
    return stirling(a) * stirling(b) / stirling(total) * -x / sqrt(2 * a * b / total) * sum;
}

/* Returns the derivative by alpha of a random number x from a beta distribution, where no function above applies. The result is a simple
 * approximation, corrected by a factor that is a rational function of log(x), log(alpha / x) and log(total x / alpha). */
static double beta_between(double x, double alpha, double total)
{
    static const double c[2][3][3][4] = {
        {{{1.003668233, -0.01061107488, -0.0657888334, 0.01201642863},
          {0.6336835991, -0.3557432599, 0.05486251648, -0.001465281033},
          {-0.03276231906, 0.004474107445, 0.002429354597, -0.0001557569013}},
         {{0.221950385, -0.3187676331, 0.01799915743, 0.01074823814},
          {-0.2951249643, 0.06219954479, 0.01535556598, 0.001550077057},
          {0.02155310298, 0.004170831599, 0.001292462449, 6.976601077e-05}},
         {{-0.05980841433, 0.008441916499, 0.01085618172, 0.002319392565},
          {0.02911413504, 0.01400243777, -0.002721828457, 0.000751041181},
          {0.005900514878, -0.001936558688, -9.495446725e-06, 5.385558597e-05}}},
        {{{1, -0.02924021934, -0.04438342661, 0.007285809825},
          {0.6357567472, -0.3473456711, 0.05454656494, -0.002407477521},
          {-0.03301322327, 0.004845219414, 0.00231480583, -0.0002307248149}},
         {{0.5925320577, -0.1757678135, 0.01505928619, 0.000564515273},
          {0.1014815858, -0.06589186703, 0.01272886114, -0.0007316646956},
          {-0.007258481865, 0.001096195486, 0.0003934994223, -4.12701925e-05}},
         {{0.06469649321, -0.0236701437, 0.002902096474, -5.896963079e-05},
          {0.001925008108, -0.002869809258, 0.0008000589141, -6.063713228e-05},
          {-0.0003477407336, 6.959756487e-05, 1.097287507e-05, -1.650964693e-06}}},
    };
    const double u = log(x), a = log(alpha) - u, b = log(total) - a;
    const double powers_u[] = {1, u, u * u}, powers_a[] = {1, a, a * a};
    double sums[2] = {0};
    for (int part = 0; part < 2; part++)
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 3; j++)
                sums[part] += powers_u[i] * powers_a[j] * cubic(c[part][i][j], b);
    return sums[0] / sums[1] * x * (digamma(total) - digamma(alpha)) / (total - alpha);
}

double grd_math_dirichlet_gradient(double x, double alpha, double total)
{
    const double beta = total - alpha, spread = total * x * (1 - x);
    if (x <= 0.5 && spread < 2.5)
        return beta_by_alpha(x, alpha, beta);
    if (x >= 0.5 && spread < 0.75)
        return -beta_by_beta(1 - x, beta, alpha);
    return alpha > 6 && beta > 6 ? beta_of_large(x, alpha, beta) : beta_between(x, alpha, total);
}
