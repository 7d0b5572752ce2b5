/* Defines a vector type as wide as the registers of the instruction-set level, arithmetic of such vectors, and loads and stores of only the first
 * lanes of a vector. */
#ifndef GRD_KERNEL_CPU_LANES_H
#define GRD_KERNEL_CPU_LANES_H

#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#include <math.h>

#include "kernel/cpu/typed.h"

/* The type of one lane of a vector. For real dtypes it is C, the type in which the dtype is computed. For complex dtypes it is the type of a real or
 * imaginary part. */
#if GRD_IS_COMPLEX
typedef R lane;
#else
typedef C lane;
#endif

#if defined(__AVX512F__)
enum { VECTOR_BYTES = 64 };
#elif defined(__AVX__)
enum { VECTOR_BYTES = 32 };
#else
enum { VECTOR_BYTES = 16 };
#endif

typedef lane vector __attribute__((vector_size(VECTOR_BYTES)));
typedef lane vector_unaligned __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(lane)), may_alias));

enum { LANES = VECTOR_BYTES / sizeof(lane) };

GRD_INLINE vector load_vector(const lane *p)
{
    return *(const vector_unaligned *)p;
}

GRD_INLINE void store_vector(lane *p, vector v)
{
    *(vector_unaligned *)p = v;
}

/* Returns x * y + z, rounded once if the instruction-set level has fused multiply-add. All calls at one level round in the same way, whereas a
 * compiler may contract the expression x * y + z in one loop and not in another. */
GRD_INLINE vector multiply_add(vector x, vector y, vector z)
{
#if defined(__AVX512F__)
    return sizeof(lane) == 4 ? (vector)_mm512_fmadd_ps((__m512)x, (__m512)y, (__m512)z)
                             : (vector)_mm512_fmadd_pd((__m512d)x, (__m512d)y, (__m512d)z);
#elif defined(__AVX2__)
    return sizeof(lane) == 4 ? (vector)_mm256_fmadd_ps((__m256)x, (__m256)y, (__m256)z)
                             : (vector)_mm256_fmadd_pd((__m256d)x, (__m256d)y, (__m256d)z);
#elif defined(__aarch64__)
    return sizeof(lane) == 4 ? (vector)vfmaq_f32((float32x4_t)z, (float32x4_t)x, (float32x4_t)y)
                             : (vector)vfmaq_f64((float64x2_t)z, (float64x2_t)x, (float64x2_t)y);
#else
    return x * y + z;
#endif
}

/* Returns x * y - z, rounded in the same way as multiply_add(). */
GRD_INLINE vector multiply_subtract(vector x, vector y, vector z)
{
#if defined(__AVX512F__)
    return sizeof(lane) == 4 ? (vector)_mm512_fmsub_ps((__m512)x, (__m512)y, (__m512)z)
                             : (vector)_mm512_fmsub_pd((__m512d)x, (__m512d)y, (__m512d)z);
#elif defined(__AVX2__)
    return sizeof(lane) == 4 ? (vector)_mm256_fmsub_ps((__m256)x, (__m256)y, (__m256)z)
                             : (vector)_mm256_fmsub_pd((__m256d)x, (__m256d)y, (__m256d)z);
#else
    return multiply_add(x, y, -z);
#endif
}

/* An integer as wide as a lane. Vectors of such integers hold the bits of numbers, or they are masks, in which a lane has either all bits set or
 * none. */
typedef __typeof__(__builtin_choose_expr(sizeof(lane) == 4, (int32_t)0, (int64_t)0)) lane_integer;
typedef lane_integer lane_bits __attribute__((vector_size(VECTOR_BYTES)));

/* Returns a vector with x in all lanes. */
GRD_INLINE vector everywhere(lane x)
{
    return x - (vector){0};
}

/* Returns the absolute value of each lane of x. */
GRD_INLINE vector magnitudes(vector x)
{
    return (vector)((lane_bits)x & ~(lane_bits) - (vector){0});
}

/* Returns the greater of x and y in each lane, or y if either of them is NaN. */
GRD_INLINE vector maximum(vector x, vector y)
{
#if defined(__AVX512F__)
    return sizeof(lane) == 4 ? (vector)_mm512_max_ps((__m512)x, (__m512)y) : (vector)_mm512_max_pd((__m512d)x, (__m512d)y);
#elif defined(__AVX2__)
    return sizeof(lane) == 4 ? (vector)_mm256_max_ps((__m256)x, (__m256)y) : (vector)_mm256_max_pd((__m256d)x, (__m256d)y);
#else
    vector greater;
    for (int l = 0; l < LANES; l++)
        greater[l] = x[l] > y[l] ? x[l] : y[l];
    return greater;
#endif
}

GRD_INLINE vector square_roots(vector x)
{
#if defined(__AVX512F__)
    return sizeof(lane) == 4 ? (vector)_mm512_sqrt_ps((__m512)x) : (vector)_mm512_sqrt_pd((__m512d)x);
#elif defined(__AVX__)
    return sizeof(lane) == 4 ? (vector)_mm256_sqrt_ps((__m256)x) : (vector)_mm256_sqrt_pd((__m256d)x);
#elif defined(__aarch64__)
    return sizeof(lane) == 4 ? (vector)vsqrtq_f32((float32x4_t)x) : (vector)vsqrtq_f64((float64x2_t)x);
#else
    for (int l = 0; l < LANES; l++)
        x[l] = sqrt(x[l]);
    return x;
#endif
}

#if defined(__AVX512F__)
/* Returns x * y + z, rounded once, toward minus infinity. */
GRD_INLINE vector multiply_add_down(vector x, vector y, vector z)
{
    enum { DOWN = _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC };
    return sizeof(lane) == 4 ? (vector)_mm512_fmadd_round_ps((__m512)x, (__m512)y, (__m512)z, DOWN)
                             : (vector)_mm512_fmadd_round_pd((__m512d)x, (__m512d)y, (__m512d)z, DOWN);
}

/* Returns an estimate of 1 / sqrt(x) with a relative error of at most 2^-14. */
GRD_INLINE vector nearly_reciprocal_roots(vector x)
{
    return sizeof(lane) == 4 ? (vector)_mm512_rsqrt14_ps((__m512)x) : (vector)_mm512_rsqrt14_pd((__m512d)x);
}
#endif

/* Returns the bits of `a` where the bits of the mask m are set, and the bits of b elsewhere. */
GRD_INLINE vector chosen(lane_bits m, vector a, vector b)
{
    return (vector)(((lane_bits)a & m) | ((lane_bits)b & ~m));
}

/* ---- The first lanes of a vector ------------------------------------------------------------------------------------------------ */

#if defined(__AVX512F__)
typedef __mmask16 lane_mask;
enum { MASKED = 1 };

/* Returns the mask of the first n lanes. */
GRD_INLINE lane_mask first_lanes(int64_t n)
{
    return (lane_mask)((1u << n) - 1);
}

/* Loads the lanes in `mask` from a vector at p. The memory of all other lanes is not read; they are 0 in the result. */
GRD_INLINE vector load_lanes(const lane *p, lane_mask mask)
{
    return sizeof(lane) == 4 ? (vector)_mm512_maskz_loadu_epi32(mask, p) : (vector)_mm512_maskz_loadu_epi64((__mmask8)mask, p);
}

GRD_INLINE void store_lanes(lane *p, lane_mask mask, vector v)
{
    if (sizeof(lane) == 4)
        _mm512_mask_storeu_epi32(p, mask, (__m512i)v);
    else
        _mm512_mask_storeu_epi64(p, (__mmask8)mask, (__m512i)v);
}
#elif defined(__AVX2__)
typedef __m256i lane_mask;
enum { MASKED = 1 };

GRD_INLINE lane_mask first_lanes(int64_t n)
{
    return sizeof(lane) == 4 ? _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7))
                             : _mm256_cmpgt_epi64(_mm256_set1_epi64x(n), _mm256_setr_epi64x(0, 1, 2, 3));
}

GRD_INLINE vector load_lanes(const lane *p, lane_mask mask)
{
    return sizeof(lane) == 4 ? (vector)_mm256_maskload_epi32((const int *)p, mask)
                             : (vector)_mm256_maskload_epi64((const long long *)p, mask);
}

GRD_INLINE void store_lanes(lane *p, lane_mask mask, vector v)
{
    if (sizeof(lane) == 4)
        _mm256_maskstore_epi32((int *)p, mask, (__m256i)v);
    else
        _mm256_maskstore_epi64((long long *)p, mask, (__m256i)v);
}
#else
/* A mask of the first lanes of a vector, held as the number of these lanes. This instruction-set level has no masked loads and stores. */
typedef int lane_mask;
enum { MASKED = 0 };

GRD_INLINE lane_mask first_lanes(int64_t n)
{
    return (lane_mask)n;
}

GRD_INLINE vector load_lanes(const lane *p, lane_mask mask)
{
    vector v = {0};
    for (int l = 0; l < mask; l++)
        v[l] = p[l];
    return v;
}

GRD_INLINE void store_lanes(lane *p, lane_mask mask, vector v)
{
    for (int l = 0; l < mask; l++)
        p[l] = v[l];
}
#endif

#endif
