/* Converts arrays between float16 and float32 with the conversion instructions of the processor. This header is for files that are compiled for one
 * of these dtypes. Functions that work on every processor are in base/half.h. */
#ifndef GRD_KERNEL_CPU_HALF_LANES_H
#define GRD_KERNEL_CPU_HALF_LANES_H

#include "kernel/cpu/typed.h"

#if defined(__F16C__)
#include <immintrin.h>

enum { HALF_LANES = sizeof(__m256i) / sizeof(float), NAN_BITS = (int16_t)0xfe00 };

#if GRD_TAG == GRD_TAG_float16
/* Converts n contiguous elements of float16 at data[1] to float32 and writes them to data[0]. */
static void widen_halves(int64_t n, char *const *data, const void *params)
{
    (void)params;
    float *y = (float *)data[0];
    const uint16_t *x = (const uint16_t *)data[1];
    int64_t i = 0;
#if defined(__AVX512F__)
    for (; i + 2 * HALF_LANES <= n; i += 2 * HALF_LANES)
        _mm512_storeu_ps(y + i, _mm512_cvtph_ps(_mm256_loadu_si256((const void *)(x + i))));
    if (i < n) {
        const __mmask16 rest = (__mmask16)((1u << (n - i)) - 1);
        _mm512_mask_storeu_ps(y + i, rest, _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(rest, x + i)));
    }
#else
    for (; i + HALF_LANES <= n; i += HALF_LANES)
        _mm256_storeu_ps(y + i, _mm256_cvtph_ps(_mm_loadu_si128((const void *)(x + i))));
    for (; i < n; i++)
        y[i] = grd_from_float16(x[i]);
#endif
}
#elif GRD_TAG == GRD_TAG_float32
/* Converts n contiguous elements of float32 at data[1] to float16 at data[0], with the same results as grd_to_float16(). The conversion instruction
 * keeps some of the low bits of a NaN; they are cleared afterwards. */
static void narrow_to_halves(int64_t n, char *const *data, const void *params)
{
    (void)params;
    uint16_t *y = (uint16_t *)data[0];
    const float *x = (const float *)data[1];
    int64_t i = 0;
#if defined(__AVX512F__)
    for (; i < n; i += 2 * HALF_LANES) {
        const __mmask16 lanes = n - i < 2 * HALF_LANES ? (__mmask16)((1u << (n - i)) - 1) : (__mmask16)0xffff;
        const __m512 from = _mm512_maskz_loadu_ps(lanes, x + i);
        const __m256i half = _mm512_cvtps_ph(from, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
        const __mmask16 nan = _mm512_cmp_ps_mask(from, from, _CMP_UNORD_Q);
        _mm256_mask_storeu_epi16(y + i, lanes, _mm256_mask_blend_epi16(nan, half, _mm256_and_si256(half, _mm256_set1_epi16(NAN_BITS))));
    }
#else
    for (; i + HALF_LANES <= n; i += HALF_LANES) {
        const __m256 from = _mm256_loadu_ps(x + i);
        const __m256i number = (__m256i)_mm256_cmp_ps(from, from, _CMP_ORD_Q);
        const __m128i keep = _mm_packs_epi32(_mm256_castsi256_si128(number), _mm256_extracti128_si256(number, 1));
        const __m128i half = _mm256_cvtps_ph(from, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
        _mm_storeu_si128((void *)(y + i), _mm_and_si128(half, _mm_or_si128(keep, _mm_set1_epi16(NAN_BITS))));
    }
    for (; i < n; i++)
        y[i] = grd_to_float16(x[i]);
#endif
}
#endif
#endif

/* Returns widen_halves() or narrow_to_halves() if one of them converts the dtype of this file to the dtype `to`, otherwise `loop`. */
GRD_INLINE grd_block_kernel *machine_kernel(grd_dtype to, grd_block_kernel *loop)
{
    (void)to;
#if defined(__F16C__) && GRD_TAG == GRD_TAG_float16
    return to == GRD_FLOAT32 ? widen_halves : loop;
#elif defined(__F16C__) && GRD_TAG == GRD_TAG_float32
    return to == GRD_FLOAT16 ? narrow_to_halves : loop;
#else
    return loop;
#endif
}

#endif
