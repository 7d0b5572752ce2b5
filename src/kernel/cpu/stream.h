/* Defines stores that bypass the caches (non-temporal stores). With them, a cache line is not read from memory before it is overwritten. Other
 * threads may see these stores only after settle() has been called. */
#ifndef GRD_KERNEL_CPU_STREAM_H
#define GRD_KERNEL_CPU_STREAM_H

#include <stdint.h>
#include <string.h>
#ifdef __SSE2__
#include <immintrin.h>
#endif

#include "kernel/cpu/loop.h"

/* Copies `bytes` bytes (16, 32 or 64) with stores that bypass the caches, or with ordinary stores on processors that have no such stores. The address
 * `to` must be a multiple of `bytes`. */
GRD_INLINE void stream(void *to, const void *from, int bytes)
{
#ifdef __AVX512F__
    if (bytes == 64) {
        _mm512_stream_si512(to, _mm512_loadu_si512(from));
        return;
    }
#endif
#ifdef __AVX__
    if (bytes >= 32) {
        for (int i = 0; i < bytes; i += 32)
            _mm256_stream_si256((__m256i *)((char *)to + i), _mm256_loadu_si256((const __m256i *)((const char *)from + i)));
        return;
    }
#endif
#ifdef __SSE2__
    for (int i = 0; i < bytes; i += 16)
        _mm_stream_si128((__m128i *)((char *)to + i), _mm_loadu_si128((const __m128i *)((const char *)from + i)));
#else
    memcpy(to, from, (size_t)bytes);
#endif
}

/* Waits until the stores of stream() are visible to other threads. */
GRD_INLINE void settle(void)
{
#ifdef __SSE2__
    _mm_sfence();
#endif
}

#endif
