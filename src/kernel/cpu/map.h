/* The loops around the scalar bodies of unary.c, binary.c and ternary.c. A body is a constant argument of an always_inline function, so
 * that each kernel has one loop with the body in it, which the compiler vectorises.
 *
 * Operands that are not contiguous, and those of half types, go through a buffer a block at a time: gathered before the loop, or filled
 * once where the stride is 0; results are scattered after it. So every path computes with the same instructions, and a strided operand
 * costs a copy in cache.
 * The result may be an input (exactly the same elements); operands never overlap in part: the caller has checked. */
#ifndef GRD_KERNEL_MAP_H
#define GRD_KERNEL_MAP_H

#include "kernel/cpu/typed.h"

#define MAP_INLINE static inline __attribute__((always_inline, unused))

/* The next loop has no dependences between its iterations: the result is an input or apart from it. */
#if defined(__clang__)
#define MAP_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define MAP_INDEPENDENT _Pragma("GCC ivdep")
#else
#define MAP_INDEPENDENT
#endif

/* Elements of a block; where all operands are contiguous there is one block. */
enum { MAP_BLOCK = 256 };

/* ---- Blocks: of C, so that half types are converted on the way in and out -------------------------------------------- */
static __attribute__((noinline, unused)) void map_gather(C *block, const char *data, int64_t stride, int64_t n)
{
    if (stride == sizeof(T)) {
        for (int64_t i = 0; i < n; i++)
            block[i] = load(((const T *)data)[i]);
        return;
    }
    if (stride == 0) {
        const C value = load(*(const T *)data);
        for (int64_t i = 0; i < n; i++)
            block[i] = value;
        return;
    }
    for (int64_t i = 0; i < n; i++)
        block[i] = load(*(const T *)(data + i * stride));
}

static __attribute__((noinline, unused)) void map_scatter(char *data, int64_t stride, const C *block, int64_t n)
{
    if (stride == sizeof(T)) {
        for (int64_t i = 0; i < n; i++)
            ((T *)data)[i] = store(block[i]);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        *(T *)(data + i * stride) = store(block[i]);
}

static __attribute__((noinline, unused)) void map_gather_bytes(uint8_t *block, const char *data, int64_t stride, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        block[i] = *(const uint8_t *)(data + i * stride);
}

static __attribute__((noinline, unused)) void map_scatter_bytes(char *data, int64_t stride, const uint8_t *block, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        *(uint8_t *)(data + i * stride) = block[i];
}

/* An operand whose memory is an array of C. */
MAP_INLINE bool map_direct(int64_t stride)
{
    return stride == (int64_t)sizeof(C) && !GRD_IS_HALF;
}

MAP_INLINE bool map_all_direct(const int64_t *strides, int operands)
{
    bool direct = true;
    for (int i = 0; i < operands; i++)
        direct &= map_direct(strides[i]);
    return direct;
}

MAP_INLINE int64_t map_step(int64_t n, bool direct)
{
    return direct || n < MAP_BLOCK ? n : MAP_BLOCK;
}

MAP_INLINE int64_t map_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Elements [start, start + n) of an input, where they are or in the buffer; a stride of 0 fills the buffer once, at the first block,
 * which is the longest. */
MAP_INLINE const C *map_input(const char *data, int64_t stride, int64_t start, int64_t n, C *buffer)
{
    if (map_direct(stride))
        return (const C *)data + start;
    if (stride != 0 || start == 0)
        map_gather(buffer, data + start * stride, stride, n);
    return buffer;
}

MAP_INLINE C *map_output(char *data, int64_t stride, int64_t start, C *buffer)
{
    return map_direct(stride) ? (C *)data + start : buffer;
}

MAP_INLINE void map_finish(char *data, int64_t stride, int64_t start, int64_t n, const C *buffer)
{
    if (!map_direct(stride))
        map_scatter(data + start * stride, stride, buffer, n);
}

MAP_INLINE uint8_t *map_output_bytes(char *data, int64_t stride, int64_t start, uint8_t *buffer)
{
    return stride == 1 ? (uint8_t *)data + start : buffer;
}

MAP_INLINE void map_finish_bytes(char *data, int64_t stride, int64_t start, int64_t n, const uint8_t *buffer)
{
    if (stride != 1)
        map_scatter_bytes(data + start * stride, stride, buffer, n);
}

/* ---- The operator's numbers ------------------------------------------------------------------------------------------ */
static inline C param(const void *params, int index)
{
    const grd_scalar s = ((const grd_scalar *)params)[index];
    const bool whole = s.kind == GRD_SCALAR_INT || s.kind == GRD_SCALAR_BOOL;
#if GRD_IS_COMPLEX
    C c = {whole ? (R)s.v.i : (R)s.v.c.re, whole ? 0 : (R)s.v.c.im};
    return c;
#elif GRD_IS_FLOAT
    return whole ? (C)s.v.i : (C)s.v.c.re;
#elif GRD_IS_BOOL
    return whole ? s.v.i != 0 : s.v.c.re != 0;
#else
    return whole ? (C)s.v.i : (C)(int64_t)s.v.c.re;
#endif
}

/* ---- One input --------------------------------------------------------------------------------------------------------- */
MAP_INLINE void map_unary_each(int64_t n, char *const *data, const int64_t *strides, C (*body)(C))
{
    C in[MAP_BLOCK], out[MAP_BLOCK];
    const int64_t step = map_step(n, map_all_direct(strides, 2));
    for (int64_t start = 0; start < n; start += step) {
        const int64_t m = map_min(n - start, step);
        const C *x = map_input(data[1], strides[1], start, m, in);
        C *y = map_output(data[0], strides[0], start, out);
        MAP_INDEPENDENT
        for (int64_t i = 0; i < m; i++)
            y[i] = body(x[i]);
        map_finish(data[0], strides[0], start, m, out);
    }
}

/* A body over a block of at most MAP_BLOCK numbers, for functions that look at all of them first; y may be x. */
typedef void map_block_body(int64_t n, C *y, const C *x);

MAP_INLINE void map_unary_blocks(int64_t n, char *const *data, const int64_t *strides, map_block_body *body)
{
    C in[MAP_BLOCK], out[MAP_BLOCK];
    const int64_t step = map_step(n, false);
    for (int64_t start = 0; start < n; start += step) {
        const int64_t m = map_min(n - start, step);
        const C *x = map_input(data[1], strides[1], start, m, in);
        C *y = map_output(data[0], strides[0], start, out);
        body(m, y, x);
        map_finish(data[0], strides[0], start, m, out);
    }
}

/* A body is one or the other by its type. */
#define map_unary(n, data, strides, body)                                                                                                  \
    _Generic((body), C(*)(C) : map_unary_each, map_block_body * : map_unary_blocks)(n, data, strides, body)

MAP_INLINE void map_unary_1(int64_t n, char *const *data, const int64_t *strides, C (*body)(C, C), C a)
{
    C in[MAP_BLOCK], out[MAP_BLOCK];
    const int64_t step = map_step(n, map_all_direct(strides, 2));
    for (int64_t start = 0; start < n; start += step) {
        const int64_t m = map_min(n - start, step);
        const C *x = map_input(data[1], strides[1], start, m, in);
        C *y = map_output(data[0], strides[0], start, out);
        MAP_INDEPENDENT
        for (int64_t i = 0; i < m; i++)
            y[i] = body(x[i], a);
        map_finish(data[0], strides[0], start, m, out);
    }
}

MAP_INLINE void map_unary_2(int64_t n, char *const *data, const int64_t *strides, C (*body)(C, C, C), C a, C b)
{
    C in[MAP_BLOCK], out[MAP_BLOCK];
    const int64_t step = map_step(n, map_all_direct(strides, 2));
    for (int64_t start = 0; start < n; start += step) {
        const int64_t m = map_min(n - start, step);
        const C *x = map_input(data[1], strides[1], start, m, in);
        C *y = map_output(data[0], strides[0], start, out);
        MAP_INDEPENDENT
        for (int64_t i = 0; i < m; i++)
            y[i] = body(x[i], a, b);
        map_finish(data[0], strides[0], start, m, out);
    }
}

MAP_INLINE void map_unary_bool(int64_t n, char *const *data, const int64_t *strides, bool (*body)(C))
{
    C in[MAP_BLOCK];
    uint8_t out[MAP_BLOCK];
    const int64_t step = map_step(n, strides[0] == 1 && map_direct(strides[1]));
    for (int64_t start = 0; start < n; start += step) {
        const int64_t m = map_min(n - start, step);
        const C *x = map_input(data[1], strides[1], start, m, in);
        uint8_t *y = map_output_bytes(data[0], strides[0], start, out);
        MAP_INDEPENDENT
        for (int64_t i = 0; i < m; i++)
            y[i] = body(x[i]);
        map_finish_bytes(data[0], strides[0], start, m, out);
    }
}

/* ---- Two inputs ---------------------------------------------------------------------------------------------------------- */
MAP_INLINE void map_binary(int64_t n, char *const *data, const int64_t *strides, C (*body)(C, C))
{
    C in[2][MAP_BLOCK], out[MAP_BLOCK];
    const int64_t step = map_step(n, map_all_direct(strides, 3));
    for (int64_t start = 0; start < n; start += step) {
        const int64_t m = map_min(n - start, step);
        const C *a = map_input(data[1], strides[1], start, m, in[0]);
        const C *b = map_input(data[2], strides[2], start, m, in[1]);
        C *y = map_output(data[0], strides[0], start, out);
        MAP_INDEPENDENT
        for (int64_t i = 0; i < m; i++)
            y[i] = body(a[i], b[i]);
        map_finish(data[0], strides[0], start, m, out);
    }
}

MAP_INLINE void map_binary_1(int64_t n, char *const *data, const int64_t *strides, C (*body)(C, C, C), C p)
{
    C in[2][MAP_BLOCK], out[MAP_BLOCK];
    const int64_t step = map_step(n, map_all_direct(strides, 3));
    for (int64_t start = 0; start < n; start += step) {
        const int64_t m = map_min(n - start, step);
        const C *a = map_input(data[1], strides[1], start, m, in[0]);
        const C *b = map_input(data[2], strides[2], start, m, in[1]);
        C *y = map_output(data[0], strides[0], start, out);
        MAP_INDEPENDENT
        for (int64_t i = 0; i < m; i++)
            y[i] = body(a[i], b[i], p);
        map_finish(data[0], strides[0], start, m, out);
    }
}

MAP_INLINE void map_binary_bool(int64_t n, char *const *data, const int64_t *strides, bool (*body)(C, C))
{
    C in[2][MAP_BLOCK];
    uint8_t out[MAP_BLOCK];
    const int64_t step = map_step(n, strides[0] == 1 && map_all_direct(strides + 1, 2));
    for (int64_t start = 0; start < n; start += step) {
        const int64_t m = map_min(n - start, step);
        const C *a = map_input(data[1], strides[1], start, m, in[0]);
        const C *b = map_input(data[2], strides[2], start, m, in[1]);
        uint8_t *y = map_output_bytes(data[0], strides[0], start, out);
        MAP_INDEPENDENT
        for (int64_t i = 0; i < m; i++)
            y[i] = body(a[i], b[i]);
        map_finish_bytes(data[0], strides[0], start, m, out);
    }
}

/* ---- Three inputs ---------------------------------------------------------------------------------------------------------- */
MAP_INLINE void map_ternary(int64_t n, char *const *data, const int64_t *strides, C (*body)(C, C, C))
{
    C in[3][MAP_BLOCK], out[MAP_BLOCK];
    const int64_t step = map_step(n, map_all_direct(strides, 4));
    for (int64_t start = 0; start < n; start += step) {
        const int64_t m = map_min(n - start, step);
        const C *a = map_input(data[1], strides[1], start, m, in[0]);
        const C *b = map_input(data[2], strides[2], start, m, in[1]);
        const C *c = map_input(data[3], strides[3], start, m, in[2]);
        C *y = map_output(data[0], strides[0], start, out);
        MAP_INDEPENDENT
        for (int64_t i = 0; i < m; i++)
            y[i] = body(a[i], b[i], c[i]);
        map_finish(data[0], strides[0], start, m, out);
    }
}

MAP_INLINE void map_ternary_1(int64_t n, char *const *data, const int64_t *strides, C (*body)(C, C, C, C), C p)
{
    C in[3][MAP_BLOCK], out[MAP_BLOCK];
    const int64_t step = map_step(n, map_all_direct(strides, 4));
    for (int64_t start = 0; start < n; start += step) {
        const int64_t m = map_min(n - start, step);
        const C *a = map_input(data[1], strides[1], start, m, in[0]);
        const C *b = map_input(data[2], strides[2], start, m, in[1]);
        const C *c = map_input(data[3], strides[3], start, m, in[2]);
        C *y = map_output(data[0], strides[0], start, out);
        MAP_INDEPENDENT
        for (int64_t i = 0; i < m; i++)
            y[i] = body(a[i], b[i], c[i], p);
        map_finish(data[0], strides[0], start, m, out);
    }
}

/* The first input is bool. */
MAP_INLINE void map_ternary_mask(int64_t n, char *const *data, const int64_t *strides, C (*body)(bool, C, C))
{
    C in[2][MAP_BLOCK], out[MAP_BLOCK];
    uint8_t mask[MAP_BLOCK];
    const int64_t step = map_step(n, map_direct(strides[0]) && strides[1] == 1 && map_all_direct(strides + 2, 2));
    for (int64_t start = 0; start < n; start += step) {
        const int64_t m = map_min(n - start, step);
        const uint8_t *choose = (const uint8_t *)data[1] + start;
        if (strides[1] != 1) {
            map_gather_bytes(mask, data[1] + start * strides[1], strides[1], m);
            choose = mask;
        }
        const C *b = map_input(data[2], strides[2], start, m, in[0]);
        const C *c = map_input(data[3], strides[3], start, m, in[1]);
        C *y = map_output(data[0], strides[0], start, out);
        MAP_INDEPENDENT
        for (int64_t i = 0; i < m; i++)
            y[i] = body(choose[i] != 0, b[i], c[i]);
        map_finish(data[0], strides[0], start, m, out);
    }
}

#endif
