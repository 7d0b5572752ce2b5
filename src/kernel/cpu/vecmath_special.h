/* Defines special functions that libm lacks, inline and without branches like the functions of vecmath.h. They compute in double; float results are
 * rounded once. Double results have an error of about 4 ulp. digamma is a sum whose terms cancel near its zeros, so there the error is about 4 ulp of
 * the largest term. Formula numbers refer to the NIST Digital Library of Mathematical Functions (DLMF), https://dlmf.nist.gov. Polynomials
 * interpolate at Chebyshev nodes; their coefficients were computed with 45 digits. */
#ifndef GRD_KERNEL_VECMATH_SPECIAL_H
#define GRD_KERNEL_VECMATH_SPECIAL_H

#include "kernel/cpu/vecmath_angle.h"

/* Returns c[0] + c[1] x + ... + c[n - 1] x^(n - 1) for an even n. Even and odd powers are computed in separate chains of operations, because GCC's
 * unroll pragma here allows at most 16 steps, and a single chain would have more. */
GRD_INLINE double vm_poly_long(const double *c, int n, double x)
{
    const double z = x * x;
    double even = c[n - 2], odd = c[n - 1];
    UNROLLED for (int i = n - 4; i >= 0; i -= 2)
    {
        even = vm_fma(even, z, c[i]);
        odd = vm_fma(odd, z, c[i + 1]);
    }
    return vm_fma(x, odd, even);
}

/* ---- sinc ---------------------------------------------------------------------------------------------------------------- */
/* Returns sin(pi r) / (pi r) for |r| <= 1/2. */
GRD_INLINE double vm_sinc_near(double r)
{
    static const double c[] = {1.0,
                               -1.6449340668482264,
                               0.8117424252833393,
                               -0.19075182412149616,
                               0.02614784780555096,
                               -0.0023460808954639607,
                               0.0001484278414189103,
                               -6.972099660851199e-06,
                               2.4502943624559793e-07};
    return vm_poly(c, 9, r * r);
}

/* Returns sin(pi x) / (pi x), computed from the distance r of x to the nearest integer; the sign of sin(pi x) alternates from integer to integer. */
GRD_INLINE double vm_sinc(double x)
{
    const double n = rint(x), r = x - n, half = 0.5 * n;
    const double y = (r == x ? 1 : r / x) * vm_sinc_near(r);
    return rint(half) != half ? -y : y;
}

/* ---- The logarithm of gamma ------------------------------------------------------------------------------------------------------ */
/* Returns lgamma(t) / ((t - 1) (t - 2)) for t in [1, 2.5]. */
GRD_INLINE double vm_lgamma_middle(double t)
{
    static const double c[] = {0.45013931210708713,   -0.08961118996804693,    0.025042751826455885,  -0.008038388572783934,
                               0.0027768926703619816, -0.001002893316103218,   0.0003730056903742953, -0.0001415871200628767,
                               5.437559451115722e-05, -2.1191626946452257e-05, 8.72514785267911e-06,  -3.461359354399483e-06,
                               9.193330964139505e-07, -3.6551977840235817e-07, 4.303937017408397e-07, -1.746513470498902e-07};
    return vm_poly(c, 16, (t - 1.75) * (4. / 3));
}

/* Returns the logarithm of a positive normal number. */
GRD_INLINE double vm_log_normal(double x)
{
    const struct vm_split split = vm_split(x);
    return vm_log_of_split(split.f, split.exponent);
}

/* Returns lgamma(x). For x >= 0 the result is base - log(divisor):
 *
 *   x < 1.5          base = lgamma(x + 1)   divisor = x
 *   1.5 <= x < 2.5   base = lgamma(x)       divisor = 1
 *   2.5 <= x < 8     base = lgamma(x + 6)   divisor = x (x + 1) ... (x + 5)
 *   8 <= x           base = lgamma(x)       divisor = 1
 *
 * For x >= 2.5, base is computed by the series 5.11.1 of the DLMF, otherwise by vm_lgamma_middle(). For x < 0, the reflection formula 5.5.3 with
 * z = 1 - x is used. Doubles use lgamma() of libm, because it has all digits near the zeros below -2. */
GRD_INLINE float vm_lgamma_float(float number)
{
    static const double stirling[] = {1. / 12, -1. / 360, 1. / 1260, -1. / 1680, 1. / 1188, -691. / 360360};
    const double x = number, z = x < 0 ? 1 - x : x;
    const bool low = z < 1.5, middle = z < 2.5, shifted = !middle & (z < 8);
    const double t = low ? z + 1 : z, product = z * (z + 1) * ((z + 2) * (z + 3)) * ((z + 4) * (z + 5));
    const double far = z < 8 ? z + 6 : z, w = 1 / far;
    const double series = vm_fma(far - 0.5, vm_log_normal(far), w * vm_poly(stirling, 6, w * w) - far) + 0.9189385332046728;
    const double base = middle ? (low ? z : t - 1) * (t - 2) * vm_lgamma_middle(middle ? t : 1) : series;
    const double r = x - rint(x), divisor = low ? z : shifted ? product : 1;
    const double log = vm_log_normal(x < 0 ? divisor / (vm_abs(r) * vm_sinc_near(r)) : divisor);
    const double y = x < 0 ? log - base : base - log;
    const float inside = vm_abs(x) == INFINITY || (x <= 0 && r == 0) ? INFINITY : (float)y;
    return vm_or_nan(number, inside);
}

#define vm_lgamma(x) _Generic((x), float : vm_lgamma_float, double : lgamma)(x)

/* ---- Digamma --------------------------------------------------------------------------------------------------------------- */
/* Returns pi / tan(pi r) for |r| <= 1/2. */
GRD_INLINE double vm_cotangent(double r)
{
    static const double c[] = {1.0,
                               -4.934802200544676,
                               4.058712126416497,
                               -1.335262768843447,
                               0.23533063012953284,
                               -0.025806888737002202,
                               0.0019295562724817132,
                               -0.00010456655338748738,
                               4.149564353942586e-06};
    return vm_poly(c, 9, r * r) / (r * vm_sinc_near(r));
}

/* Returns digamma(x). From 8 on it uses formula 5.11.2 of the DLMF. Below 8 it applies the recurrence 5.5.2 eight times; the terms of these steps,
 * except the first, are added as one fraction. For negative x it uses the reflection 5.5.4. */
GRD_INLINE double vm_digamma(double x)
{
    /* B(2k) / (2k) for k = 1 to 9, where B are the Bernoulli numbers */
    static const double bernoulli[] = {1. / 12,       -1. / 120, 1. / 252,      -1. / 240,     1. / 132,
                                       -691. / 32760, 1. / 12,   -3617. / 8160, 43867. / 14364};
    const double z = x < 0 ? 1 - x : x, low = z < 8 ? z : 8;
    double above = 1, below = low + 1;
    UNROLLED for (int k = 2; k < 8; k++)
    {
        above = vm_fma(above, low + k, below);
        below *= low + k;
    }
    const double far = z < 8 ? z + 8 : z, w = 1 / (far * far);
    const double series = vm_log_double(far) - 0.5 / far - w * vm_poly(bernoulli, 9, w);
    const double y = z < 8 ? series - above / below - 1 / z : series;
    const double reflected = y - vm_cotangent(x - rint(x));
    return x < 0 ? (x == rint(x) ? NAN : reflected) : y;
}

/* ---- Modified Bessel functions ------------------------------------------------------------------------------------------------- */
/* The two functions below return I0(a) = 1 + z p(z) and I1(a) = a / 2 (1 + z p(z)) for a <= 8, where z = (a / 2)^2 and each function has its own
 * polynomial p (10.25.2 of the DLMF). */
GRD_INLINE double vm_i0_near(double a)
{
    static const double c[] = {1.0,
                               0.25,
                               0.027777777777777762,
                               0.001736111111111147,
                               6.944444444440493e-05,
                               1.929012345705309e-06,
                               3.936759887993035e-08,
                               6.151187361364193e-10,
                               7.594057685381156e-12,
                               7.594070019494474e-14,
                               6.275948796822122e-16,
                               4.359498405380122e-18,
                               2.5722398177811744e-20,
                               1.3440225063774028e-22,
                               5.062353740472856e-25,
                               3.548836657975522e-27};
    const double z = 0.25 * a * a;
    return vm_fma(z, vm_poly(c, 16, z), 1);
}

GRD_INLINE double vm_i1_near(double a)
{
    static const double c[] = {0.5,
                               0.08333333333333331,
                               0.0069444444444445004,
                               0.0003472222222221193,
                               1.1574074074173187e-05,
                               2.7557319218244207e-07,
                               4.9209498831124465e-09,
                               6.834652024432265e-11,
                               7.594068659611249e-13,
                               6.903555797446423e-15,
                               5.231322675888681e-17,
                               3.3442300506385306e-19,
                               1.880771354951542e-21,
                               7.606752944827284e-24,
                               5.669579277854459e-26};
    const double z = 0.25 * a * a, half = 0.5 * a;
    return vm_fma(half * z, vm_poly(c, 15, z), half);
}

/* The two functions below return e^-a I0(a) and e^-a I1(a) for a >= 8. Multiplied by sqrt(a), these are smooth functions of 1 / a (10.40.1 of the
 * DLMF), and are computed as polynomials in t = 16 / a - 1. */
GRD_INLINE double vm_i0_far(double a)
{
    static const double c[] = {0.4021765094450081,      0.0033605519836678944,  0.00013621607439186705, 1.1143033787545386e-05,
                               1.4838475687894938e-06,  2.9735996224521226e-07, 8.872214307451732e-08,  3.932437699533459e-08,
                               2.15488936175863e-08,    7.566352487698237e-09,  -6.750552282740284e-09, -1.346629294837396e-08,
                               -5.394456734259438e-09,  7.737147033780934e-09,  7.406235049001522e-09,  -3.905230623712341e-09,
                               -5.91556056510856e-09,   2.1053080134403423e-09, 3.5985362919394714e-09, -1.1448789558755036e-09,
                               -1.5930354799216344e-09, 5.122212147228388e-10,  4.4789181847911815e-10, -1.5066113686101474e-10,
                               -5.905024573995148e-11,  2.0820835852793106e-11};
    return vm_poly_long(c, 26, 16 / a - 1) / sqrt(a);
}

GRD_INLINE double vm_i1_far(double a)
{
    static const double c[] = {0.38939845902587233,     -0.009749577193235768,   -0.00021923576383382282, -1.5038547197358572e-05,
                               -1.8349101357991557e-06, -3.4838567401229716e-07, -1.0001282610189342e-07, -4.312778920167609e-08,
                               -2.337446787242448e-08,  -8.43880090582137e-09,   6.737493433374833e-09,   1.408852075202545e-08,
                               5.963645798166707e-09,   -7.816968266767898e-09,  -7.863004697555056e-09,  3.803814960536081e-09,
                               6.202984113000443e-09,   -1.992076551203188e-09,  -3.75344338735913e-09,   1.0715528639398075e-09,
                               1.657764699456319e-09,   -4.798751536934023e-10,  -4.6561597954216946e-10, 1.417650842869536e-10,
                               6.135932778393812e-11,   -1.9677083272584384e-11};
    return vm_poly_long(c, 26, 16 / a - 1) / sqrt(a);
}

#define VM_E16 0x1.0f2ebd0a80020p+23 /* e^16: I0 and I1 use e^(a - 16) * e^16 for e^a, because e^a overflows before they do */

GRD_INLINE double vm_i0(double x)
{
    const double a = vm_abs(x);
    const struct vm_product e = vm_exp_product((a < 720 ? a : 720) - 16, 0);
    const double far = vm_i0_far(a) * e.a * e.b * VM_E16;
    return a <= 8 ? vm_i0_near(a) : a < 720 ? far : a + INFINITY;
}

GRD_INLINE double vm_i1(double x)
{
    const double a = vm_abs(x);
    const struct vm_product e = vm_exp_product((a < 720 ? a : 720) - 16, 0);
    const double far = vm_i1_far(a) * e.a * e.b * VM_E16;
    return vm_copysign(a <= 8 ? vm_i1_near(a) : a < 720 ? far : a + INFINITY, x);
}

/* Returns e^-|x| I0(x). */
GRD_INLINE double vm_i0e(double x)
{
    const double a = vm_abs(x), near = vm_exp_double(-a) * vm_i0_near(a);
    return a <= 8 ? near : vm_i0_far(a);
}

/* Returns e^-|x| I1(x). */
GRD_INLINE double vm_i1e(double x)
{
    const double a = vm_abs(x), near = vm_exp_double(-a) * vm_i1_near(a);
    return vm_copysign(a <= 8 ? near : vm_i1_far(a), x);
}

/* ---- The normal distribution ------------------------------------------------------------------------------------------------------- */
/* Returns e^(a^2) erfc(a) for a >= 0. From 27.5 on, beyond the range of vm_erfcx, it uses 7.12.1 of the DLMF. */
GRD_INLINE double vm_erfcx_positive(double a)
{
    static const double c[] = {1, -1. / 2, 3. / 4, -15. / 8, 105. / 16, -945. / 32, 10395. / 64, -135135. / 128};
    const double near = vm_erfcx(a < 27.5 ? a : 27.5), w = 1 / (a * a);
    const double far = vm_poly(c, 8, w) / (a * 1.7724538509055160273);
    return a < 27.5 ? near : far;
}

/* Returns e^(factor * a^2). The rounding error of a^2 is taken into account. */
GRD_INLINE double vm_exp_square(double factor, double a)
{
    const double b = a < 0x1p500 ? a : 0x1p500, z = b * b;
    const struct vm_product e = vm_exp_product(factor * z, factor * (z < 2000 ? vm_product_error(b, b, z) : 0));
    return e.a * e.b;
}

GRD_INLINE float vm_erfc_float(float number)
{
    const double x = number, a = vm_clamp(vm_abs(x), 0, 14), tail = vm_exp_short(-a * a) * vm_erfcx_short(a);
    return x == x ? (float)(x < 0 ? 2 - tail : tail) : number;
}

#define vm_erfc(x) _Generic((x), float : vm_erfc_float, double : erfc)(x)

GRD_INLINE double vm_erfcx_any(double x)
{
    const double a = vm_abs(x), y = vm_erfcx_positive(a);
    const double left = 2 * vm_exp_square(1, a) - y;
    return x < 0 ? left : y;
}

/* Returns P(X < -a) for a standard normal X and a >= 0. */
GRD_INLINE double vm_normal_tail(double a)
{
    return 0.5 * vm_exp_square(-0.5, a) * vm_erfcx_positive(a * 0x1.6a09e667f3bcdp-1);
}

/* Returns P(X < x) for a standard normal X. */
GRD_INLINE double vm_ndtr(double x)
{
    const double tail = vm_normal_tail(vm_abs(x));
    return x < 0 ? tail : 1 - tail;
}

/* Returns log(P(X < x)) for a standard normal X. For x < 0 it uses the logarithm of the ratio of the tail probability and the density, because this
 * ratio does not underflow. */
GRD_INLINE double vm_log_ndtr(double x)
{
    const double a = vm_abs(x), mills = 0.5 * vm_erfcx_positive(a * 0x1.6a09e667f3bcdp-1);
    const double left = vm_log_double(mills) - 0.5 * x * x, right = vm_log1p_double(-mills * vm_exp_square(-0.5, a));
    return x < 0 ? left : right;
}

/* Returns the normal quantile of 1/2 + y for |y| <= 0.3647. It is y times a polynomial in t, where t is a linear function of y^2 that goes from -1 to
 * 1 as y^2 goes from 0 to 0.1332. */
GRD_INLINE double vm_quantile_middle(double y)
{
    static const double c[] = {2.7128595245069795,    0.2449510409487426,     0.047951906054690775,  0.011698028193374524,
                               0.0031694525783381275, 0.0009130663717167928,  0.0002738350444608896, 8.448956090503483e-05,
                               2.66242437001687e-05,  8.527538897908951e-06,  2.766904413914191e-06, 9.07281415584867e-07,
                               3.001056393699227e-07, 1.0000497516695442e-07, 3.355851246425401e-08, 1.1315126393576547e-08,
                               3.796884862160119e-09, 1.2914022530714248e-09, 4.790051856965824e-10, 1.6429552102237964e-10,
                               3.122730377603913e-11, 1.0681580320302332e-11, 1.329792815086903e-11, 4.616520551548435e-12};
    return y * vm_poly_long(c, 24, vm_fma(y * y, 1 / 0.0666, -1));
}

/* Returns x with P(X < -x) = p for a standard normal X and p <= 0.138. With z = sqrt(-2 log p), x is z times a polynomial in t. Here t is a linear
 * function of log z that goes from -1 to 1 as z goes from 1.99 to 38.65. */
GRD_INLINE double vm_quantile_tail(double p)
{
    static const double c[] = {0.9593573196146874,      0.10214243533765002,     -0.1248834435005684,     0.09817633520226476,
                               -0.05507895142725817,    0.022988709605860094,    -0.007114139013602549,   0.0015144908655475766,
                               -0.00016017498606729142, -4.232984325294549e-06,  -1.3873005597941965e-05, 1.6710151160673982e-05,
                               -6.245461426293031e-06,  -1.020076965139036e-06,  2.2084284804518953e-06,  -8.267233577416828e-07,
                               -2.441826776668251e-07,  3.874003213746037e-07,   -1.2209117016489882e-07, -7.018682911745637e-08,
                               7.872433494675243e-08,   -9.702781150105182e-09,  -2.3970608826953245e-08, 1.0221584047851985e-08,
                               4.264794575865895e-09,   -2.9523572467831656e-09, -3.583494781974943e-10,  3.487779109587918e-10};
    const double square = -2 * vm_log_double(p), t = (vm_log_double(square) - 4.342681413769832) * 0.3371075744209634;
    const double x = sqrt(square) * vm_poly_long(c, 28, t);
    return p > 0 ? x : p == 0 ? INFINITY : NAN;
}

/* Returns x with P(X < x) = p for a standard normal X. */
GRD_INLINE double vm_ndtri(double p)
{
    const double y = p - 0.5, middle = vm_quantile_middle(y), tail = vm_quantile_tail(p < 0.5 ? p : 1 - p);
    return vm_abs(y) <= 0.3645 ? middle : vm_copysign(tail, y);
}

/* Returns erfinv(x), which is the normal quantile of (1 + x) / 2 divided by sqrt(2). */
GRD_INLINE double vm_erfinv(double x)
{
    const double a = vm_abs(x), middle = vm_quantile_middle(0.5 * x), tail = vm_quantile_tail(0.5 * (1 - a));
    return (a <= 0.729 ? middle : vm_copysign(tail, x)) * 0x1.6a09e667f3bcdp-1;
}

#endif
