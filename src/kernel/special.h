/* Special functions that libm lacks: what the loops of cpu/unary.c call where speed is no matter. Compiled once, for no level. */
#ifndef GRD_KERNEL_SPECIAL_H
#define GRD_KERNEL_SPECIAL_H

/* The n-th derivative of digamma, n from 1 to 170; NaN for others. Infinite at its poles. */
double grd_math_polygamma(double n, double x);
/* The sum of (a + k)^-s over k >= 0: infinite for s = 1 and at a = 0, -1, ...; NaN for s < 1, and below 0 for an s that is no integer. */
double grd_math_zeta(double s, double a);
/* The shares of the gamma function's integral below and above x; NaN for negative numbers. */
double grd_math_gammainc(double a, double x);
double grd_math_gammaincc(double a, double x);

/* Derivatives of random numbers by a parameter of their distribution at a fixed value of the distribution function: -(dF / da) / (dF / dx). They are
 * approximated as M. Jankowiak and F. Obermeyer do (Pathwise derivatives beyond the reparameterization trick, 2018); relative errors are about 1e-4.
 * Compiled in reparameterize.c.
 * Of x from gamma(concentration) by the concentration. */
double grd_math_gamma_gradient(double concentration, double x);
/* The derivative by alpha of a sample x of beta(alpha, total - alpha), divided by 1 - x. */
double grd_math_dirichlet_gradient(double x, double alpha, double total);

/* Bessel functions; those that `scaled` are multiplied by exp(x). Y and K are infinite at 0, NaN below; J and Y are NaN at infinity. Compiled in bessel.c. */
double grd_math_bessel_j0(double x);
double grd_math_bessel_j1(double x);
double grd_math_bessel_y0(double x);
double grd_math_bessel_y1(double x);
double grd_math_bessel_k0(double x);
double grd_math_bessel_k1(double x);
double grd_math_scaled_bessel_k0(double x);
double grd_math_scaled_bessel_k1(double x);
double grd_math_airy_ai(double x);

/* Orthogonal polynomials. Compiled in polynomial.c. */
double grd_math_chebyshev_t(double x, double degree);
double grd_math_chebyshev_u(double x, double degree);
double grd_math_chebyshev_v(double x, double degree);
double grd_math_chebyshev_w(double x, double degree);
double grd_math_hermite_h(double x, double degree);
double grd_math_hermite_he(double x, double degree);
double grd_math_laguerre(double x, double degree);
double grd_math_legendre(double x, double degree);

#endif
