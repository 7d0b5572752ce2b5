/* The scalar bodies of elementwise kernels and the loops generated around them need this: arithmetic of the dtype, numbers of the operator, and loop.h.
 * How operands with strides reach those loops is in kernel/map.h. */
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

/* Returns yes or no. Both are computed before the choice, so that loops vectorise. */
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

/* The loops of kernels without numbers, whose results are of the dtype of their inputs. */
GRD_INLINE void map_1(int64_t n, char *const *data, C (*body)(C))
{
    T *made = (T *)data[0];
    const T *x = (const T *)data[1];
    IN_PLACE
    for (int64_t i = 0; i < n; i++)
        made[i] = store(body(load(x[i])));
}

GRD_INLINE void map_2(int64_t n, char *const *data, C (*body)(C, C))
{
    T *made = (T *)data[0];
    const T *x = (const T *)data[1], *y = (const T *)data[2];
    IN_PLACE
    for (int64_t i = 0; i < n; i++)
        made[i] = store(body(load(x[i]), load(y[i])));
}

/* The loops of kernels without numbers, whose results are bool. */
GRD_INLINE void test_1(int64_t n, char *const *data, bool (*body)(C))
{
    uint8_t *made = (uint8_t *)data[0];
    const C *x = (const C *)data[1];
    IN_PLACE
    for (int64_t i = 0; i < n; i++)
        made[i] = body(x[i]);
}

GRD_INLINE void test_2(int64_t n, char *const *data, bool (*body)(C, C))
{
    uint8_t *made = (uint8_t *)data[0];
    const C *x = (const C *)data[1], *y = (const C *)data[2];
    IN_PLACE
    for (int64_t i = 0; i < n; i++)
        made[i] = body(x[i], y[i]);
}

GRD_INLINE void map_3(int64_t n, char *const *data, C (*body)(C, C, C))
{
    T *made = (T *)data[0];
    const T *x = (const T *)data[1], *y = (const T *)data[2], *z = (const T *)data[3];
    IN_PLACE
    for (int64_t i = 0; i < n; i++)
        made[i] = store(body(load(x[i]), load(y[i]), load(z[i])));
}

/* ---- Light kernels: map_1, map_2 and map_3, or line by line ---------------------------------------------------------------------------- */

/* Two loops over complex numbers may round products differently, because compilers contract them as they vectorise. */
enum { LIGHT = !GRD_IS_COMPLEX, OF_LINE = GRD_LINE_BYTES / sizeof(T) };

/* An operand that is read line by line: or its first line again and again, which holds copies of one element. So one loop serves all cases. */
struct line_source {
    const T *data;
    int64_t places; /* a mask */
};

/* The copies are stored as wide as they are loaded: what is stored in parts is forwarded to no load. */
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

GRD_INLINE const T *line_at(const struct line_source *x, int64_t i)
{
    return x->data + (i & x->places);
}

GRD_INLINE bool has_element(const struct grd_light_call *call)
{
    return call->element[0] != NULL || call->element[1] != NULL || call->element[2] != NULL;
}

GRD_INLINE void write_part(T *to, const T *part, int width, bool past)
{
    if (past)
        stream(to, part, width * (int)sizeof(T));
    else
        memcpy(to, part, (size_t)width * sizeof(T));
}

/* A part of a large result is half a line, see Note [Large results]; of half types a whole one, since it is widened to twice its size. */
enum { FAR_PART = GRD_IS_HALF ? OF_LINE : OF_LINE / 2 };

/* Takes `width` elements at a time, and `round` before it looks whether it is done. */
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

/* `numbers`: the second and the third operand where both are one element, which is then converted once; otherwise NULL. */
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
    if (x[1].places != 0 || x[2].places != 0 || !are_numbers) /* a body need not look for NaN in the other loops */
        lines_3(n, made, x, NULL, FAR_PART, past, body);
    else if (past)
        lines_3(n, made, x, numbers, FAR_PART, true, body);
    else if (call->stores == GRD_STORES_NEAR)
        lines_3(n, made, x, numbers, OF_LINE, false, body);
    else
        lines_3(n, made, x, numbers, FAR_PART, false, body);
}

/* The number at `index` among those of the operator. Not inline: there are many loops, and a call for each number is little. */
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
    const double x = s.v.c.re; /* out of range as a cast to int64 has it, see cast.c */
    return (C)(whole ? s.v.i : x >= -0x1p63 && x < 0x1p63 ? (int64_t)x : INT64_MIN);
#endif
}

#endif
