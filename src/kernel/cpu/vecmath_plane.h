/* Defines hypot and atan2. Like the functions of vecmath.h, they are inline and without branches. For floats, hypot computes in double, with an error
 * of at most 0.501 ulp, and atan2 has an error of at most 1 ulp. For doubles, the rounding errors of squares, roots and quotients are added to the
 * result, so the error is at most 1 ulp. For infinities, NaN and zeros the results are those that the C standard requires. */
#ifndef GRD_KERNEL_VECMATH_PLANE_H
#define GRD_KERNEL_VECMATH_PLANE_H

#include "kernel/cpu/vecmath_angle.h"

/* ---- hypot --------------------------------------------------------------------------------------------------------------------- */
GRD_INLINE float vm_hypot_float(float x, float y)
{
    const double a = x, b = y;
    const bool infinite = (vm_abs_float(x) == INFINITY) | (vm_abs_float(y) == INFINITY);
    return infinite ? INFINITY : (float)sqrt(a * a + b * b);
}

/* Returns sqrt(x^2 + y^2). Numbers close to the largest or smallest doubles are scaled by a power of two, so that their squares neither overflow nor
 * vanish. */
GRD_INLINE double vm_hypot_double(double x, double y)
{
    const double ax = vm_abs(x), ay = vm_abs(y), unscaled = ax > ay ? ax : ay;
    const double scale = unscaled > 0x1p500 ? 0x1p-600 : unscaled < 0x1p-400 ? 0x1p600 : 1;
    const double inverse = unscaled > 0x1p500 ? 0x1p600 : unscaled < 0x1p-400 ? 0x1p-600 : 1;
    const double large = unscaled * scale, small = (ax > ay ? ay : ax) * scale;
    const double first = large * large, second = small * small, sum = first + second, root = sqrt(sum);
    const double lost = (first - sum) + second + vm_product_error(large, large, first) + vm_product_error(small, small, second);
    const double square = root * root, error = (sum - square) - vm_product_error(root, root, square) + lost;
    const double nearer = root > 0 ? root + error / (2 * root) : root;
    return (ax == INFINITY) | (ay == INFINITY) ? INFINITY : nearer * inverse;
}

/* ---- atan2 --------------------------------------------------------------------------------------------------------------------------- */
/* Returns atan2(y, x). Let t = min(|x|, |y|) / max(|x|, |y|), and let u be t or (t - 1) / (t + 1), whichever is nearer to 0. Then atan(t) is atan(u)
 * or pi/4 + atan(u), and the result is a multiple of pi/4 plus or minus atan(u). atan(u) is computed as u + u^3 p(u^2) with a polynomial p. If
 * `exact`, the rounding error of u is taken into account. */
GRD_INLINE double vm_angle(double y, double x, bool exact)
{
    static const double c[] = {-0x1.555555555553dp-2, 0x1.999999999586dp-3, -0x1.24924922ad6ap-3,  0x1.c71c70e60fc66p-4,
                               -0x1.745cf8dc11953p-4, 0x1.3b111910327f2p-4, -0x1.10ebb789b1f1ap-4, 0x1.df0f3e5e68cecp-5,
                               -0x1.9cd27cf72abd3p-5, 0x1.37d4f9eaa3854p-5, -0x1.2568e0e2d714ep-6};
    const double ax = vm_abs(x), ay = vm_abs(y);
    const bool steep = ay > ax, left = vm_copysign(1, x) < 0;
    const double large = steep ? ay : ax, small = steep ? ax : ay, scale = large > 0x1p1000 ? 0x1p-100 : large < 0x1p-900 ? 0x1p600 : 1;
    const double infinite = small == INFINITY ? 1 : 0;
    const double far = large == INFINITY ? 1 : large * scale, near = large == INFINITY ? infinite : small * scale;
    const bool middle = near > far * 0x1.a827999fcef32p-2;
    const double top = middle ? near - far : near, bottom = middle ? near + far : far == 0 ? 1 : far, u = top / bottom;
    const double z = u * u, tail = u * z * vm_poly(c, 11, z);
    double low = 0;
    if (exact) {
        const double product = u * bottom, top_error = middle ? (near - (top + far)) : 0, bottom_error = middle ? near - (bottom - far) : 0;
        const double error = ((top - product) - vm_product_error(u, bottom, product) + top_error - u * bottom_error) / bottom;
        /* For `near` up to 2^-960, vm_product_error() is wrong, because the exact parts of the product underflow. */
        low = near > 0x1p-960 ? error : 0;
    }
    /* the angle is part * pi/4 plus or minus atan(u); `part` is 0, 1 or 2 for x > 0, and 4, 3 or 2 for x < 0 */
    const double right_part = middle ? 1 : steep ? 2 : 0, part = left ? 4 - right_part : right_part;
    const double multiple = part == 3 ? 0x1.2d97c7f3321d2p+1 : part * 0x1.921fb54442d18p-1,
                 rest = part == 3 ? 0x1.a79394c9e8a0ap-54 : part * 0x1.1a62633145c07p-55;
    const bool less = steep != left;
    const double v = less ? -u : u, v_tail = less ? -(tail + low) : tail + low, angle = multiple + (v + (v_tail + rest));
    return (x == x) & (y == y) ? vm_copysign(angle, y) : NAN;
}

/* Returns atan2(y, x). With fused multiply-add it computes atan(t) in float, where t is the smaller of |x| and |y| divided by the larger, and adds
 * the rounding error of t. Otherwise it computes in double. */
GRD_INLINE float vm_atan2_float(float y, float x)
{
#ifdef HAS_FMA
    const float ax = vm_abs_float(x), ay = vm_abs_float(y);
    const bool steep = ay > ax, left = vm_copysign_float(1, x) < 0;
    const float large = steep ? ay : ax, small = steep ? ax : ay, infinite = small == INFINITY ? 1 : 0;
    const float scale = (small < 0x1p-80f) & (large < 0x1p60f) ? 0x1p64f : 1; /* scales small numbers up, because `low` would underflow */
    const float far = large == INFINITY ? 1 : large * scale, near = large == INFINITY ? infinite : small * scale;
    const float inverse = 1 / (far == 0 ? 1 : far), t = near * inverse, low = vm_fma_float(-t, far, near) * inverse;
    const float z = t * t, tail = vm_fma_float(t * z, vm_atan_series_float(z), vm_fma_float(low * z, -0.5f, low));
    const float half_turn = left ? 2 * VM_PIO2_HIGH_FLOAT : 0, half_turn_rest = left ? 2 * VM_PIO2_LOW_FLOAT : 0;
    const float base = steep ? VM_PIO2_HIGH_FLOAT : half_turn, rest = steep ? VM_PIO2_LOW_FLOAT : half_turn_rest;
    const bool less = steep != left;
    const float angle = base + ((less ? -t : t) + ((less ? -tail : tail) + rest));
    return (x == x) & (y == y) ? vm_copysign_float(angle, y) : NAN;
#else
    return (float)vm_angle(y, x, false);
#endif
}

GRD_INLINE double vm_atan2_double(double y, double x)
{
    return vm_angle(y, x, true);
}

#define vm_hypot(x, y) _Generic((x), float : vm_hypot_float, double : vm_hypot_double)(x, y)
#define vm_atan2(y, x) _Generic((x), float : vm_atan2_float, double : vm_atan2_double)(y, x)

#endif
