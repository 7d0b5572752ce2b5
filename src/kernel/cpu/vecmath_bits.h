/* The bits of a REAL, float or double, as a WORD, and arithmetic on it. The includer defines both, what is FUSED, and the NAME of a function:
 * vecmath_float.h and vecmath.h include this once each. */

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

/* a * b + c, fused where that is one instruction. */
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

/* x, whose bit of the sign is not set, with that of another number. */
GRD_INLINE REAL NAME(vm_signed)(REAL x, REAL sign)
{
    return NAME(vm_from_bits)(NAME(vm_bits)(x) | (NAME(vm_bits)(sign) & SIGN));
}

GRD_INLINE REAL NAME(vm_copysign)(REAL x, REAL sign)
{
    return NAME(vm_signed)(NAME(vm_abs)(x), sign);
}

#undef SIGN

/* c[0] + c[1] x + … */
GRD_INLINE REAL NAME(vm_poly)(const REAL *c, int n, REAL x)
{
    REAL p = c[n - 1];
    UNROLLED for (int i = n - 2; i >= 0; i--) p = NAME(vm_fma)(p, x, c[i]);
    return p;
}

/* The same in two chains, of even and of odd powers, which do not wait for each other. */
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
