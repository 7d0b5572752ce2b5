/* Special functions that libm lacks: what the loops of cpu/unary.c call where speed is no matter. Compiled once, for no level. */
#ifndef GRD_KERNEL_SPECIAL_H
#define GRD_KERNEL_SPECIAL_H

/* The derivative of digamma, the derivative of log(gamma(x)), of an order from 0 to 170; NaN for others. At its poles digamma is NaN (at 0 -infinity or
 * infinity, as 0 is signed), its derivatives are infinite. */
double grd_special_polygamma(double order, double x);
/* y with erf(y) = x: infinite at -1 and 1, NaN beyond. */
double grd_special_erfinv(double x);
/* The shares of the gamma function's integral below and above x; NaN for negative numbers. */
double grd_special_gammainc(double a, double x);
double grd_special_gammaincc(double a, double x);

/* Derivatives of random numbers by a parameter of their distribution at a fixed value of the distribution function: -(dF / da) / (dF / dx). They are
 * approximated as M. Jankowiak and F. Obermeyer do (Pathwise derivatives beyond the reparameterization trick, 2018); relative errors are about 1e-4.
 * Compiled in reparameterize.c.
 * Of x from gamma(concentration) by the concentration. */
double grd_special_gamma_gradient(double concentration, double x);
/* Of x from beta(alpha, total - alpha) by alpha, divided by 1 - x. */
double grd_special_dirichlet_gradient(double x, double alpha, double total);

#endif
