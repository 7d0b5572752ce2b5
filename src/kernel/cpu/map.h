/* The scalar bodies of elementwise kernels and the loops generated around them need this: arithmetic of the dtype, numbers of the operator, and loop.h.
 * How operands with strides reach those loops is in kernel/map.h. */
#ifndef GRD_KERNEL_CPU_MAP_H
#define GRD_KERNEL_CPU_MAP_H

#include "kernel/cpu/typed.h"
#include "kernel/map.h"
#if GRD_IS_COMPLEX
#include "kernel/cpu/complex.h"
#else
#include "kernel/cpu/real.h"
#endif

/* Both values are computed, so that loops vectorise. */
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
INLINE void map_1(int64_t n, char *const *data, C (*body)(C))
{
    T *made = (T *)data[0];
    const T *x = (const T *)data[1];
    IN_PLACE
    for (int64_t i = 0; i < n; i++)
        made[i] = store(body(load(x[i])));
}

INLINE void map_bits(int64_t n, char *const *data, T (*body)(T))
{
    T *made = (T *)data[0];
    const T *x = (const T *)data[1];
    IN_PLACE
    for (int64_t i = 0; i < n; i++)
        made[i] = body(x[i]);
}

INLINE void map_2(int64_t n, char *const *data, C (*body)(C, C))
{
    T *made = (T *)data[0];
    const T *x = (const T *)data[1], *y = (const T *)data[2];
    IN_PLACE
    for (int64_t i = 0; i < n; i++)
        made[i] = store(body(load(x[i]), load(y[i])));
}

/* Two loops over complex numbers may round products differently, because compilers contract them as they vectorise. */
enum { SPREADS = !GRD_IS_COMPLEX, SPREAD_ELEMENTS = GRD_SPREAD_BYTES / sizeof(T) };

/* Fills x with copies of the element, if there is one. They are stored as wide as they are loaded: what is stored in parts is forwarded to no load. */
INLINE void spread_element(T *x, const char *element)
{
    if (element == NULL)
        return;
    const T copied = *(const T *)element;
    for (int k = 0; k < SPREAD_ELEMENTS; k++)
        x[k] = copied;
}

/* map_2, and the loop where x or y is one element: its copies are loaded again and again, so that one loop serves x, y and both. */
INLINE void spread_2(int64_t n, char *const *data, const struct grd_spread *spread, C (*body)(C, C))
{
    if (!SPREADS || spread == NULL) {
        map_2(n, data, body);
        return;
    }
    T *made = (T *)data[0], *x = (T *)data[1], *y = (T *)data[2];
    const int64_t x_each = spread->element[0] == NULL ? -1 : 0, y_each = spread->element[1] == NULL ? -1 : 0;
    spread_element(x, spread->element[0]);
    spread_element(y, spread->element[1]);
    for (int64_t i = 0; i < n; i += SPREAD_ELEMENTS) {
        T *to = made + i;
        const T *x_here = x + (i & x_each), *y_here = y + (i & y_each);
        IN_PLACE
        for (int k = 0; k < SPREAD_ELEMENTS; k++)
            to[k] = store(body(load(x_here[k]), load(y_here[k])));
    }
}

INLINE void map_3(int64_t n, char *const *data, C (*body)(C, C, C))
{
    C *made = (C *)data[0];
    const C *x = (const C *)data[1], *y = (const C *)data[2], *z = (const C *)data[3];
    IN_PLACE
    for (int64_t i = 0; i < n; i++)
        made[i] = body(x[i], y[i], z[i]);
}

INLINE void spread_3(int64_t n, char *const *data, const struct grd_spread *spread, C (*body)(C, C, C))
{
    if (!SPREADS || spread == NULL) {
        map_3(n, data, body);
        return;
    }
    T *made = (T *)data[0], *x = (T *)data[1], *y = (T *)data[2], *z = (T *)data[3];
    const int64_t x_each = spread->element[0] == NULL ? -1 : 0, y_each = spread->element[1] == NULL ? -1 : 0,
                  z_each = spread->element[2] == NULL ? -1 : 0;
    spread_element(x, spread->element[0]);
    spread_element(y, spread->element[1]);
    spread_element(z, spread->element[2]);
    for (int64_t i = 0; i < n; i += SPREAD_ELEMENTS) {
        T *to = made + i;
        const T *x_here = x + (i & x_each), *y_here = y + (i & y_each), *z_here = z + (i & z_each);
        IN_PLACE
        for (int k = 0; k < SPREAD_ELEMENTS; k++)
            to[k] = store(body(load(x_here[k]), load(y_here[k]), load(z_here[k])));
    }
}

/* The loops of kernels without numbers, whose results are bool. */
INLINE void test_1(int64_t n, char *const *data, bool (*body)(C))
{
    uint8_t *made = (uint8_t *)data[0];
    const C *x = (const C *)data[1];
    IN_PLACE
    for (int64_t i = 0; i < n; i++)
        made[i] = body(x[i]);
}

INLINE void test_2(int64_t n, char *const *data, bool (*body)(C, C))
{
    uint8_t *made = (uint8_t *)data[0];
    const C *x = (const C *)data[1], *y = (const C *)data[2];
    IN_PLACE
    for (int64_t i = 0; i < n; i++)
        made[i] = body(x[i], y[i]);
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
