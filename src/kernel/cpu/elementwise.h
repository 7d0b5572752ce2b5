/* Shared by all files of elementwise kernels. Defines arithmetic of numbers of the dtype, loops that apply a function to every element, and access to
 * the scalar arguments of an operator. The loops take contiguous operands; kernel/map.h says how operands with other strides are copied to buffers
 * first. */
#ifndef GRD_KERNEL_CPU_ELEMENTWISE_H
#define GRD_KERNEL_CPU_ELEMENTWISE_H

#include "kernel/cpu/stream.h"
#include "kernel/cpu/typed.h"
#include "kernel/map.h"
#if GRD_IS_COMPLEX
#include "kernel/cpu/complex.h"
#else
#include "kernel/cpu/real.h"
#endif

/* Returns `yes` if `test` is true, otherwise `no`. `yes` and `no` are both computed before the choice, so that loops vectorise. */
static inline C choose(bool test, C yes, C no)
{
    return test ? yes : no;
}

static inline bool is_true(C x)
{
    return !equal(x, constant(0));
}

#if GRD_IS_INTEGER
static inline bool is_negative(C x)
{
#if GRD_IS_SIGNED
    return x < 0;
#else
    (void)x;
    return false;
#endif
}

static inline bool is_minus_one(C x)
{
    return GRD_IS_SIGNED && x == (C)-1;
}
#endif

/* Sets result[i] = body(x[i]) for n contiguous elements. data[0] is the result, data[1] is x; both have the dtype of this file. */
GRD_INLINE void map_1(int64_t n, char *const *data, C (*body)(C))
{
    T *made = (T *)data[0];
    const T *x = (const T *)data[1];
    IN_PLACE
    for (int64_t i = 0; i < n; i++)
        made[i] = store(body(load(x[i])));
}

/* Sets result[i] = body(x[i], y[i]) for n contiguous elements. data[0] is the result, data[1] is x, data[2] is y; all have the dtype of this file. */
GRD_INLINE void map_2(int64_t n, char *const *data, C (*body)(C, C))
{
    T *made = (T *)data[0];
    const T *x = (const T *)data[1], *y = (const T *)data[2];
    IN_PLACE
    for (int64_t i = 0; i < n; i++)
        made[i] = store(body(load(x[i]), load(y[i])));
}

/* Sets the bool result[i] = body(x[i]) for n contiguous elements. data[0] is the result, data[1] is x. */
GRD_INLINE void test_1(int64_t n, char *const *data, bool (*body)(C))
{
    uint8_t *made = (uint8_t *)data[0];
    const C *x = (const C *)data[1];
    IN_PLACE
    for (int64_t i = 0; i < n; i++)
        made[i] = body(x[i]);
}

/* Sets the bool result[i] = body(x[i], y[i]) for n contiguous elements. data[0] is the result, data[1] is x, data[2] is y. */
GRD_INLINE void test_2(int64_t n, char *const *data, bool (*body)(C, C))
{
    uint8_t *made = (uint8_t *)data[0];
    const C *x = (const C *)data[1], *y = (const C *)data[2];
    IN_PLACE
    for (int64_t i = 0; i < n; i++)
        made[i] = body(x[i], y[i]);
}

/* Sets result[i] = body(x[i], y[i], z[i]) for n contiguous elements. data[0] is the result, data[1] to data[3] are x, y and z. */
GRD_INLINE void map_3(int64_t n, char *const *data, C (*body)(C, C, C))
{
    T *made = (T *)data[0];
    const T *x = (const T *)data[1], *y = (const T *)data[2], *z = (const T *)data[3];
    IN_PLACE
    for (int64_t i = 0; i < n; i++)
        made[i] = store(body(load(x[i]), load(y[i]), load(z[i])));
}

/* ---- Light kernels: map_1, map_2 and map_3, or line by line ---------------------------------------------------------------------------- */

/* OF_LINE: number of elements in a cache line. LIGHT: true if light_1(), light_2() and light_3() may choose among several loops. These functions
 * apply operators so cheap that memory limits their speed. For complex dtypes LIGHT is false, because compilers contract complex products differently
 * in different loops, which changes the rounding. */
enum { LIGHT = !GRD_IS_COMPLEX, OF_LINE = GRD_LINE_BYTES / sizeof(T) };

/* An operand that is read one cache line at a time. If it is a single element, `data` is one cache line filled with copies of the element, and each
 * read takes this line. So one loop serves arrays and single elements. */
struct line_source {
    const T *data;
    int64_t places; /* mask for an index: -1 for an array; 0 for a single element, which turns each index into 0 */
};

/* Returns a struct line_source for an operand. If `element` is NULL, `data` is the operand's array. Otherwise the operand is the number *element, and
 * the cache line at `data`, which is scratch memory, is first filled with copies of it. The loop that fills it vectorises, so its stores are as wide
 * as the later loads. After narrower stores these loads would stall. */
GRD_INLINE struct line_source source_of(char *data, const char *element)
{
    T *x = (T *)data;
    if (element == NULL)
        return (struct line_source){x, -1};
    const T copied = *(const T *)element;
    for (int k = 0; k < OF_LINE; k++)
        x[k] = copied;
    return (struct line_source){x, 0};
}

/* Returns the address of the cache line of the operand x that begins with element i. */
GRD_INLINE const T *line_at(const struct line_source *x, int64_t i)
{
    return x->data + (i & x->places);
}

/* True if at least one input of the call is a single element. */
GRD_INLINE bool has_element(const struct grd_light_call *call)
{
    return call->element[0] != NULL || call->element[1] != NULL || call->element[2] != NULL;
}

/* Copies the first `width` elements of `part` to the result at `to`, with non-temporal stores if `past`. */
GRD_INLINE void write_part(T *to, const T *part, int width, bool past)
{
    if (past)
        stream(to, part, width * (int)sizeof(T));
    else
        memcpy(to, part, (size_t)width * sizeof(T));
}

/* Number of elements of a large result that are computed at a time. This is half a cache line, see Note [Large results] in kernel/map.c. For half
 * dtypes it is a whole cache line, because their elements are widened to twice the size. */
enum { FAR_PART = GRD_IS_HALF ? OF_LINE : OF_LINE / 2 };

/* Sets made[i] = body(x[i]) for n elements; n is a multiple of `round`. Each round of the outer loop handles `round` elements, `width` of them at
 * a time. Stores are non-temporal if `past`. */
GRD_INLINE void lines_1(int64_t n, T *made, struct line_source x, const int round, const int width, bool past, C (*body)(C))
{
    for (int64_t i = 0; i < n; i += round) {
        const T *x_line = line_at(&x, i);
        UNROLLED for (int begin = 0; begin < round; begin += width)
        {
            T part[OF_LINE];
            LANEWISE for (int k = 0; k < width; k++) part[k] = store(body(load(x_line[begin + k])));
            write_part(made + i + begin, part, width, past);
        }
    }
    if (past)
        settle();
}

/* Sets data[0][i] = body(x[i]) for i < n, where x is data[1]. If `call` is NULL, x is an array. Otherwise the n elements fill whole cache lines, x
 * may be a single element, and *call says how the result is stored. */
GRD_INLINE void light_1(int64_t n, char *const *data, const struct grd_light_call *call, C (*body)(C))
{
    if (!LIGHT || call == NULL) {
        map_1(n, data, body);
        return;
    }
    T *made = (T *)data[0];
    const struct line_source x = source_of(data[1], call->element[0]);
    if (call->stores == GRD_STORES_NEAR)
        lines_1(n, made, x, OF_LINE, OF_LINE, false, body);
    else if (call->stores == GRD_STORES_PAST)
        lines_1(n, made, x, FAR_PART, FAR_PART, true, body);
    else if (has_element(call))
        lines_1(n, made, x, OF_LINE, FAR_PART, false, body);
    else
        lines_1(n, made, x, FAR_PART, FAR_PART, false, body);
}

/* Sets made[i] = body(x[i], y[i]) for n elements; n is a multiple of `round`. Each round of the outer loop handles `round` elements, `width` of them
 * at a time. Stores are non-temporal if `past`. */
GRD_INLINE void lines_2(int64_t n, T *made, struct line_source x, struct line_source y, const int round, const int width, bool past,
                        C (*body)(C, C))
{
    for (int64_t i = 0; i < n; i += round) {
        const T *x_line = line_at(&x, i), *y_line = line_at(&y, i);
        UNROLLED for (int begin = 0; begin < round; begin += width)
        {
            T part[OF_LINE];
            LANEWISE for (int k = 0; k < width; k++) part[k] = store(body(load(x_line[begin + k]), load(y_line[begin + k])));
            write_part(made + i + begin, part, width, past);
        }
    }
    if (past)
        settle();
}

/* Sets data[0][i] = body(x[i], y[i]) for i < n, where x is data[1] and y is data[2]. If `call` is NULL, x and y are arrays. Otherwise the n
 * elements fill whole cache lines, x or y may be a single element, and *call says how the result is stored. */
GRD_INLINE void light_2(int64_t n, char *const *data, const struct grd_light_call *call, C (*body)(C, C))
{
    if (!LIGHT || call == NULL) {
        map_2(n, data, body);
        return;
    }
    T *made = (T *)data[0];
    const struct line_source x = source_of(data[1], call->element[0]), y = source_of(data[2], call->element[1]);
    if (call->stores == GRD_STORES_NEAR)
        lines_2(n, made, x, y, OF_LINE, OF_LINE, false, body);
    else if (call->stores == GRD_STORES_PAST)
        lines_2(n, made, x, y, FAR_PART, FAR_PART, true, body);
    else if (has_element(call))
        lines_2(n, made, x, y, OF_LINE, FAR_PART, false, body);
    else
        lines_2(n, made, x, y, FAR_PART, FAR_PART, false, body);
}

/* Sets made[i] = body(x[0][i], x[1][i], x[2][i]) for n elements, `width` of them at a time. Stores are non-temporal if `past`. If x[1] and x[2] are
 * single elements, `numbers` points to their two values, which are then converted only once. Otherwise `numbers` is NULL. */
GRD_INLINE void lines_3(int64_t n, T *made, const struct line_source *x, const C *numbers, const int width, bool past, C (*body)(C, C, C))
{
    for (int64_t i = 0; i < n; i += OF_LINE) {
        const T *x_line = line_at(&x[0], i), *y_line = line_at(&x[1], i), *z_line = line_at(&x[2], i);
        UNROLLED for (int begin = 0; begin < OF_LINE; begin += width)
        {
            T part[OF_LINE];
            LANEWISE for (int k = 0; k < width; k++)
            {
                const C y = numbers != NULL ? numbers[0] : load(y_line[begin + k]),
                        z = numbers != NULL ? numbers[1] : load(z_line[begin + k]);
                part[k] = store(body(load(x_line[begin + k]), y, z));
            }
            write_part(made + i + begin, part, width, past);
        }
    }
    if (past)
        settle();
}

/* Sets data[0][i] = body(x[i], y[i], z[i]) for i < n, where x, y and z are data[1] to data[3]. If `call` is NULL, x, y and z are arrays. Otherwise
 * the n elements fill whole cache lines, each input may be a single element, and *call says how the result is stored. */
GRD_INLINE void light_3(int64_t n, char *const *data, const struct grd_light_call *call, C (*body)(C, C, C))
{
    if (!LIGHT || call == NULL) {
        map_3(n, data, body);
        return;
    }
    T *made = (T *)data[0];
    const struct line_source x[] = {source_of(data[1], call->element[0]), source_of(data[2], call->element[1]),
                                    source_of(data[3], call->element[2])};
    const C numbers[] = {load(x[1].data[0]), load(x[2].data[0])};
    const bool past = call->stores == GRD_STORES_PAST, are_numbers = equal(numbers[0], numbers[0]) && equal(numbers[1], numbers[1]);
    /* a NaN takes this branch, so that the loops for two numbers need no test for NaN */
    if (x[1].places != 0 || x[2].places != 0 || !are_numbers)
        lines_3(n, made, x, NULL, FAR_PART, past, body);
    else if (past)
        lines_3(n, made, x, numbers, FAR_PART, true, body);
    else if (call->stores == GRD_STORES_NEAR)
        lines_3(n, made, x, numbers, OF_LINE, false, body);
    else
        lines_3(n, made, x, numbers, FAR_PART, false, body);
}

/* Returns scalar argument number `index` of the operator, converted to the type C. The function is not inlined, so that the many loops that call it
 * stay short. A loop calls it once for each argument before it starts, which costs little. */
static __attribute__((noinline, unused)) C param(const void *params, int index)
{
    const grd_scalar s = ((const grd_scalar *)params)[index];
    const bool whole = s.kind != GRD_SCALAR_FLOAT && s.kind != GRD_SCALAR_COMPLEX;
#if GRD_IS_COMPLEX
    C c = {s.kind == GRD_SCALAR_UINT ? (R)(uint64_t)s.v.i : whole ? (R)s.v.i : (R)s.v.c.re, whole ? 0 : (R)s.v.c.im};
    return c;
#elif GRD_IS_FLOAT
    return s.kind == GRD_SCALAR_UINT ? (C)(uint64_t)s.v.i : whole ? (C)s.v.i : (C)s.v.c.re;
#elif GRD_IS_BOOL
    return whole ? s.v.i != 0 : s.v.c.re != 0;
#else
    const double x = s.v.c.re; /* a number that int64 cannot hold becomes INT64_MIN, as in cast.c */
    return (C)(whole ? s.v.i : x >= -0x1p63 && x < 0x1p63 ? (int64_t)x : INT64_MIN);
#endif
}

#endif
