/* Defines the types and macros of a typed file, i.e. a kernel file that is compiled once per dtype, e.g. with -DGRD_DTYPE=float16. T is the type in
 * which an element is stored, and C is the type in which it is computed. load() and store() convert between T and C. The macros GRD_IS_... are
 * conditions for #if on the kind of dtype.
 * Half dtypes are stored as uint16_t and computed in float. bool is stored as uint8_t, 0 or 1. Files for casts are also compiled for float8
 * (stored as uint8_t, computed in float) and complex32 (stored as two float16, computed in complex64). Loops are in elementwise.h. */
#ifndef GRD_KERNEL_TYPED_H
#define GRD_KERNEL_TYPED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/half.h"
#include "gradus/types.h"
#include "kernel/cpu/level.h"
#include "kernel/cpu/loop.h"

#define GRD_TAG_bool 1
#define GRD_TAG__Bool 1 /* stdbool.h defines bool as _Bool, so _Bool appears in this name and in the names of kernel tables */
#define GRD_TAG_uint8 2
#define GRD_TAG_int8 3
#define GRD_TAG_uint16 4
#define GRD_TAG_int16 5
#define GRD_TAG_uint32 6
#define GRD_TAG_int32 7
#define GRD_TAG_uint64 8
#define GRD_TAG_int64 9
#define GRD_TAG_float16 10
#define GRD_TAG_bfloat16 11
#define GRD_TAG_float32 12
#define GRD_TAG_float64 13
#define GRD_TAG_complex32 14
#define GRD_TAG_complex64 15
#define GRD_TAG_complex128 16
#define GRD_TAG_float8_e4m3fn 17
#define GRD_TAG_float8_e5m2 18
#define GRD_TAG GRD_PASTE2(GRD_TAG, GRD_DTYPE)

#define GRD_IS_BOOL (GRD_TAG == GRD_TAG_bool)
#define GRD_IS_INTEGER (GRD_TAG >= GRD_TAG_uint8 && GRD_TAG <= GRD_TAG_int64)
#define GRD_IS_SIGNED (GRD_IS_INTEGER && GRD_TAG % 2 == 1)
#define GRD_IS_HALF (GRD_TAG == GRD_TAG_float16 || GRD_TAG == GRD_TAG_bfloat16)
#define GRD_IS_BFLOAT16 (GRD_TAG == GRD_TAG_bfloat16)
#define GRD_IS_FLOAT8 (GRD_TAG == GRD_TAG_float8_e4m3fn || GRD_TAG == GRD_TAG_float8_e5m2)
#define GRD_IS_FLOAT ((GRD_TAG >= GRD_TAG_float16 && GRD_TAG <= GRD_TAG_float64) || GRD_IS_FLOAT8)
#define GRD_IS_COMPLEX (GRD_TAG >= GRD_TAG_complex32 && GRD_TAG <= GRD_TAG_complex128)

/* Defines the types T and C. For integers it also defines U, the unsigned type in which arithmetic wraps around. U is at least as wide as unsigned
 * int, because narrower types would be promoted to signed int. For complex dtypes it also defines R, the type of a real or imaginary part. */
#if GRD_IS_INTEGER
typedef GRD_PASTE2(GRD_DTYPE, t) T, C; /* int8_t and so on */
#if GRD_TAG == GRD_TAG_uint64 || GRD_TAG == GRD_TAG_int64
typedef uint64_t U;
#else
typedef uint32_t U;
#endif
#elif GRD_IS_BOOL
typedef uint8_t T, C;
#elif GRD_IS_HALF
typedef uint16_t T;
typedef float C;
#elif GRD_IS_FLOAT8
typedef uint8_t T;
typedef float C;
#elif GRD_TAG == GRD_TAG_float32
typedef float T, C;
#elif GRD_TAG == GRD_TAG_float64
typedef double T, C;
#elif GRD_IS_COMPLEX
#if GRD_TAG == GRD_TAG_complex128
typedef double R;
typedef double _Complex E;
#else
typedef float R;
typedef float _Complex E;
#endif
typedef struct {
    R re, im;
} C;
#if GRD_TAG == GRD_TAG_complex32
typedef struct {
    uint16_t re, im;
} T;
#else
typedef C T;
#endif
#else
#error "GRD_DTYPE is not a dtype with kernels"
#endif

/* E is the type of elements in expressions with + and *. For complex dtypes it is a _Complex type, because the type C is a struct there. G is the
 * type in which sums are accumulated. For integers G is unsigned, so that sums wrap around. */
#if GRD_IS_COMPLEX
typedef double _Complex G;
#elif GRD_IS_FLOAT
typedef C E;
typedef double G;
#else
typedef T E;
typedef uint64_t G;
#endif

/* Converts an element from its storage type to the type it is computed in. */
static inline C load(T x)
{
#if GRD_IS_HALF || GRD_IS_FLOAT8
    return GRD_PASTE2(grd_from, GRD_DTYPE)(x);
#elif GRD_TAG == GRD_TAG_complex32
    C c = {grd_from_float16(x.re), grd_from_float16(x.im)};
    return c;
#else
    return x;
#endif
}

/* Converts a result to its storage type. */
static inline T store(C x)
{
#if GRD_IS_HALF || GRD_IS_FLOAT8
    return GRD_PASTE2(grd_to, GRD_DTYPE)(x);
#elif GRD_TAG == GRD_TAG_complex32
    T t = {grd_to_float16(x.re), grd_to_float16(x.im)};
    return t;
#else
    return x;
#endif
}

#endif
