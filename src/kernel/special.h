/* Special functions of one number that libm lacks: what the loops of cpu/unary.c call where speed is no matter. Compiled once, for no level. */
#ifndef GRD_KERNEL_SPECIAL_H
#define GRD_KERNEL_SPECIAL_H

/* The derivative of digamma, the derivative of log(gamma(x)), of an order from 0 to 170; NaN for others. At its poles digamma is NaN (at 0 -infinity or
 * infinity, as 0 is signed), its derivatives are infinite. */
double grd_special_polygamma(double order, double x);
/* y with erf(y) = x: infinite at -1 and 1, NaN beyond. */
double grd_special_erfinv(double x);

#endif
