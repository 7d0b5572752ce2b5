/* Declares special functions that libm lacks. The loops of cpu/unary.c call those that have no vectorised version. All functions are compiled only
 * once, and not for each instruction set. */
#ifndef GRD_KERNEL_SPECIAL_H
#define GRD_KERNEL_SPECIAL_H

/* Returns the n-th derivative of digamma at x for n from 1 to 170, and NaN for other n. It is infinite at the poles. */
double grd_math_polygamma(double n, double x);
/* Returns Hurwitz's zeta function, the sum of (a + k)^-s over k >= 0. The result is infinite for s = 1 and for a = 0, -1, ... It is NaN for s < 1,
 * and for a < 0 if s is not an integer. */
double grd_math_zeta(double s, double a);
/* The two functions below return the regularised lower and upper incomplete gamma functions P(a, x) and Q(a, x), or NaN for negative
 * arguments. */
double grd_math_gammainc(double a, double x);
double grd_math_gammaincc(double a, double x);

/* The two functions below differentiate a random number x by a parameter a of its distribution, with the distribution function F(x, a) held
 * constant: -(dF / da) / (dF / dx). They use approximations (Jankowiak and Obermeyer, Pathwise derivatives beyond the reparameterization trick,
 * 2018) with relative errors of about 1e-4. grd_math_gamma_gradient is for x from gamma(concentration). */
double grd_math_gamma_gradient(double concentration, double x);
/* Returns (dx / dalpha) / (1 - x), where dx / dalpha is the derivative by alpha of a random number x from the distribution
 * beta(alpha, total - alpha). */
double grd_math_dirichlet_gradient(double x, double alpha, double total);

/* The functions below return Bessel functions, and Airy's function Ai, of x. The results of the `scaled` functions are multiplied by exp(x). Y and K
 * are infinite at 0 and NaN for x < 0; J and Y are NaN at infinity. bessel.c defines the functions. */
double grd_math_bessel_j0(double x);
double grd_math_bessel_j1(double x);
double grd_math_bessel_y0(double x);
double grd_math_bessel_y1(double x);
double grd_math_bessel_k0(double x);
double grd_math_bessel_k1(double x);
double grd_math_scaled_bessel_k0(double x);
double grd_math_scaled_bessel_k1(double x);
double grd_math_airy_ai(double x);

/* The functions below return the values of orthogonal polynomials at x. The degree is truncated to an integer. polynomial.c defines the functions. */
double grd_math_chebyshev_t(double x, double degree);
double grd_math_chebyshev_u(double x, double degree);
double grd_math_chebyshev_v(double x, double degree);
double grd_math_chebyshev_w(double x, double degree);
double grd_math_hermite_h(double x, double degree);
double grd_math_hermite_he(double x, double degree);
double grd_math_laguerre(double x, double degree);
double grd_math_legendre(double x, double degree);

#endif
