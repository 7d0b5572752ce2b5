/* Defines functions for REAL, which is float or double: operations on the bits of a number, which are read as a WORD, and polynomials. The including
 * file defines REAL, WORD, FUSED (the fused multiply-add) and NAME(f), the name of function f for this type. vecmath_float.h and vecmath.h include
 * this file once each. */

GRD_INLINE WORD NAME(vm_bits)(REAL x)
{
    WORD u;
    memcpy(&u, &x, sizeof u);
    return u;
}

GRD_INLINE REAL NAME(vm_from_bits)(WORD u)
{
    REAL x;
    memcpy(&x, &u, sizeof x);
    return x;
}

/* Returns a * b + c, fused if the processor has an instruction for it. */
GRD_INLINE REAL NAME(vm_fma)(REAL a, REAL b, REAL c)
{
#ifdef HAS_FMA
    return FUSED(a, b, c);
#else
    return a * b + c;
#endif
}

#define SIGN ((WORD)1 << (8 * sizeof(WORD) - 1))

GRD_INLINE REAL NAME(vm_abs)(REAL x)
{
    return NAME(vm_from_bits)(NAME(vm_bits)(x) & ~SIGN);
}

/* Returns x, which must not be negative, with the sign of `sign`. */
GRD_INLINE REAL NAME(vm_signed)(REAL x, REAL sign)
{
    return NAME(vm_from_bits)(NAME(vm_bits)(x) | (NAME(vm_bits)(sign) & SIGN));
}

GRD_INLINE REAL NAME(vm_copysign)(REAL x, REAL sign)
{
    return NAME(vm_signed)(NAME(vm_abs)(x), sign);
}

#undef SIGN

/* Returns c[0] + c[1] x + ... + c[n - 1] x^(n - 1). */
GRD_INLINE REAL NAME(vm_poly)(const REAL *c, int n, REAL x)
{
    REAL p = c[n - 1];
    UNROLLED for (int i = n - 2; i >= 0; i--) p = NAME(vm_fma)(p, x, c[i]);
    return p;
}

/* Returns the same polynomial as vm_poly(), up to rounding. Even and odd powers are added in two chains of operations, which run in parallel. */
GRD_INLINE REAL NAME(vm_poly_abreast)(const REAL *c, int n, REAL x)
{
    const REAL square = x * x;
    const int even = (n - 1) / 2 * 2, odd = n / 2 * 2 - 1;
    REAL p = c[even], q = c[odd];
    UNROLLED for (int i = even - 2; i >= 0; i -= 2) p = NAME(vm_fma)(p, square, c[i]);
    UNROLLED for (int i = odd - 2; i >= 0; i -= 2) q = NAME(vm_fma)(q, square, c[i]);
    return NAME(vm_fma)(q, x, p);
}

#undef REAL
#undef WORD
#undef FUSED
#undef NAME
