/* Reads, writes and converts single elements of every dtype, and converts scalars. Loops over many elements are in kernels, not here.
 *
 * Invariant: no conversion has undefined behavior. */
#include "core/scalar.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/half.h"
#include "core/dtype.h"

double grd_scalar_double(grd_scalar s)
{
    if (s.kind == GRD_SCALAR_FLOAT || s.kind == GRD_SCALAR_COMPLEX)
        return s.v.c.re;
    if (s.kind == GRD_SCALAR_UINT)
        return (double)(uint64_t)s.v.i;
    return s.kind == GRD_SCALAR_NONE ? (double)NAN : (double)s.v.i;
}

/* Returns `x` truncated to an integer, or INT64_MIN if `x` is NaN or out of range, as the conversion instruction of x86-64 does. */
static int64_t truncate_to_int64(double x)
{
    return x >= -0x1p63 && x < 0x1p63 ? (int64_t)x : INT64_MIN;
}

int64_t grd_scalar_int64(grd_scalar s)
{
    if (grd_scalar_is_integral(s))
        return s.v.i;
    return s.kind == GRD_SCALAR_NONE ? 0 : truncate_to_int64(s.v.c.re);
}

grd_scalar grd_scalar_of_untyped(double value)
{
    const double limit = 0x1p53;
    const bool whole = value > -limit && value < limit && value == (double)(int64_t)value && !(value == 0 && signbit(value));
    return whole ? grd_int((int64_t)value) : grd_float(value);
}

grd_dtype grd_scalar_dtype(grd_scalar s)
{
    if (s.kind == GRD_SCALAR_FLOAT)
        return grd_default_dtype();
    if (s.kind == GRD_SCALAR_COMPLEX)
        return grd_dtype_to_complex(grd_default_dtype());
    if (s.kind == GRD_SCALAR_NONE)
        return GRD_DTYPE_NONE;
    return s.kind == GRD_SCALAR_BOOL ? GRD_BOOL : GRD_INT64;
}

/* ---- Elements ------------------------------------------------------------------------------------------------------ */

static void write_double(double x, grd_dtype dtype, void *element)
{
    switch (dtype) {
    case GRD_FLOAT64:
        memcpy(element, &x, sizeof x);
        break;
    case GRD_FLOAT32:
        memcpy(element, &(float){(float)x}, sizeof(float));
        break;
    case GRD_FLOAT16:
        memcpy(element, &(uint16_t){grd_to_float16((float)x)}, sizeof(uint16_t));
        break;
    case GRD_BFLOAT16:
        memcpy(element, &(uint16_t){grd_to_bfloat16((float)x)}, sizeof(uint16_t));
        break;
    case GRD_FLOAT8_E4M3FN:
        *(uint8_t *)element = grd_to_float8_e4m3fn((float)x);
        break;
    default:
        *(uint8_t *)element = grd_to_float8_e5m2((float)x);
        break;
    }
}

static void write_complex(double re, double im, grd_dtype dtype, void *element)
{
    if (dtype == GRD_COMPLEX32)
        memcpy(element, &(grd_complex32){grd_to_float16((float)re), grd_to_float16((float)im)}, sizeof(grd_complex32));
    else if (dtype == GRD_COMPLEX64)
        memcpy(element, &(grd_complex64){(float)re, (float)im}, sizeof(grd_complex64));
    else
        memcpy(element, &(grd_complex128){re, im}, sizeof(grd_complex128));
}

/* The range of each integer dtype, and the C type name that PyTorch's error messages use for it. */
static const struct range {
    const char *type;
    int64_t min;
    uint64_t max;
} ranges[GRD_DTYPE_COUNT] = {
    [GRD_UINT8] = {"uint8_t", 0, UINT8_MAX},      [GRD_INT8] = {"int8_t", INT8_MIN, INT8_MAX},
    [GRD_UINT16] = {"uint16_t", 0, UINT16_MAX},   [GRD_INT16] = {"int16_t", INT16_MIN, INT16_MAX},
    [GRD_UINT32] = {"uint32_t", 0, UINT32_MAX},   [GRD_INT32] = {"int", INT32_MIN, INT32_MAX},
    [GRD_UINT64] = {"uint64_t", 0, UINT64_MAX},   [GRD_INT64] = {"int64_t", INT64_MIN, INT64_MAX},
    [GRD_QUINT8] = {"uint8_t", 0, UINT8_MAX},     [GRD_QINT8] = {"int8_t", INT8_MIN, INT8_MAX},
    [GRD_QINT32] = {"int", INT32_MIN, INT32_MAX},
};

/* Copies an element of `size` bytes: 1, 2, 4, 8 or 16. The constant sizes let the compiler inline the copy. */
static inline void copy_element(void *to, const void *from, size_t size)
{
    switch (size) {
    case 1:
        memcpy(to, from, 1);
        break;
    case 2:
        memcpy(to, from, 2);
        break;
    case 4:
        memcpy(to, from, 4);
        break;
    case 8:
        memcpy(to, from, 8);
        break;
    default:
        memcpy(to, from, 16);
        break;
    }
}

/* Writes the low bytes of `bits` to `element`, as many bytes as `dtype` has. */
static void write_bits(uint64_t bits, grd_dtype dtype, void *element)
{
    const uint64_t words[2] = {bits, 0};
    copy_element(element, words, grd_dtype_table[dtype].size);
}

/* Returns the integer of dtype `dtype` that is in the low bytes of `bits`. Shifting the bits to the top and back extends the sign. */
static __attribute__((noinline)) int64_t extended(uint64_t bits, grd_dtype dtype)
{
    const int unused = 64 - 8 * grd_dtype_table[dtype].size;
    return ranges[dtype].min < 0 ? (int64_t)(bits << unused) >> unused : (int64_t)(bits << unused >> unused);
}

grd_scalar grd_scalar_read(const void *element, grd_dtype dtype)
{
    union {
        uint8_t byte;
        uint16_t half;
        uint64_t bits;
        float f;
        double d;
        grd_complex32 h;
        grd_complex64 c;
        grd_complex128 z;
    } x;
    copy_element(&x, element, grd_dtype_table[dtype].size);
    switch (dtype) {
    case GRD_DTYPE_NONE:
        return (grd_scalar){.kind = GRD_SCALAR_NONE};
    case GRD_BOOL:
        return grd_bool(x.byte != 0);
    case GRD_UINT64:
        return grd_uint(x.bits);
    case GRD_FLOAT16:
        return grd_float(grd_from_float16(x.half));
    case GRD_BFLOAT16:
        return grd_float(grd_from_bfloat16(x.half));
    case GRD_FLOAT32:
        return grd_float(x.f);
    case GRD_FLOAT64:
        return grd_float(x.d);
    case GRD_COMPLEX32:
        return grd_complex_number(grd_from_float16(x.h.re), grd_from_float16(x.h.im));
    case GRD_COMPLEX64:
        return grd_complex_number(x.c.re, x.c.im);
    case GRD_COMPLEX128:
        return grd_complex_number(x.z.re, x.z.im);
    case GRD_FLOAT8_E4M3FN:
        return grd_float(grd_from_float8_e4m3fn(x.byte));
    case GRD_FLOAT8_E5M2:
        return grd_float(grd_from_float8_e5m2(x.byte));
    default:
        return grd_int(extended(x.bits, dtype));
    }
}

void grd_element_convert(const void *from, grd_dtype from_dtype, void *ret_to, grd_dtype to_dtype)
{
    if (from_dtype == to_dtype) {
        memcpy(ret_to, from, grd_dtype_table[to_dtype].size);
        return;
    }
    grd_scalar s = grd_scalar_read(from, from_dtype);
    bool integral = grd_scalar_is_integral(s);
    double re = grd_scalar_double(s);
    double im = grd_scalar_imaginary(s);
    switch (grd_dtype_table[to_dtype].category) {
    case GRD_CATEGORY_BOOL:
        *(uint8_t *)ret_to = integral ? s.v.i != 0 : re != 0 || im != 0;
        break;
    case GRD_CATEGORY_FLOAT:
        write_double(re, to_dtype, ret_to);
        break;
    case GRD_CATEGORY_COMPLEX:
        write_complex(re, im, to_dtype, ret_to);
        break;
    default: {
        uint64_t bits = integral ? (uint64_t)s.v.i : (uint64_t)truncate_to_int64(re);
        if (!integral && to_dtype == GRD_UINT64 && re >= 0x1p63 && re < 0x1p64)
            bits = (uint64_t)re;
        write_bits(bits, to_dtype, ret_to);
    }
    }
}

/* ---- Writing with the range checked ----------------------------------------------------------------------------------- */

/* Raises RuntimeError "value cannot be converted to type uint8_t without overflow", with `type` as the name. Always returns false. */
static bool overflow(const char *type)
{
    return grd_raise(GRD_ERROR_RUNTIME, "value cannot be converted to type %s without overflow", type);
}

/* Note [Unsigned wrap-around]
 * As in C and PyTorch, a negative integer may be written to an unsigned dtype and wraps around if its absolute value is
 * in the range of the dtype. For example, -255 may be written to uint8 and -256 may not. A negative floating-point number may not be written to an
 * unsigned dtype.
 *
 * Writes the scalar as an integer of `dtype`. Returns false, with RuntimeError, if it is out of range. */
static bool write_integer(grd_scalar s, grd_dtype dtype, void *element)
{
    const struct range range = ranges[dtype];
    if (grd_scalar_is_integral(s)) {
        int64_t i = s.v.i;
        bool negative = i < 0 && s.kind != GRD_SCALAR_UINT;
        uint64_t magnitude = negative ? -(uint64_t)i : (uint64_t)i;
        bool fits = negative && range.min < 0 ? i >= range.min : magnitude <= range.max;
        if (!fits)
            return overflow(range.type);
        write_bits((uint64_t)i, dtype, element);
        return true;
    }
    double x = s.v.c.re;
    /* The largest values of the 64-bit integer dtypes are not doubles. Converted to double they are rounded up to a power of two, which is out of
     * range. */
    bool below = grd_dtype_table[dtype].size == 8 ? x < (double)range.max : x <= (double)range.max;
    if (!(x >= (double)range.min && below) || (s.kind == GRD_SCALAR_COMPLEX && s.v.c.im != 0))
        return overflow(range.type);
    write_bits(dtype == GRD_UINT64 ? (uint64_t)x : (uint64_t)(int64_t)x, dtype, element);
    return true;
}

/* True if `x` is finite but overflows float32. */
static bool beyond_float(double x)
{
    return isfinite(x) && fabs(x) > (double)FLT_MAX;
}

bool grd_scalar_write(grd_scalar s, grd_dtype dtype, void *ret_element)
{
    if (s.kind == GRD_SCALAR_NONE)
        return grd_raise(GRD_ERROR_TYPE, "a number is required");
    double re = grd_scalar_double(s);
    double im = grd_scalar_imaginary(s);
    switch (grd_dtype_table[dtype].category) {
    case GRD_CATEGORY_BOOL:
        *(uint8_t *)ret_element = re != 0 || im != 0;
        return true;
    case GRD_CATEGORY_FLOAT:
        if (im != 0 || (dtype == GRD_FLOAT32 && beyond_float(re)))
            return overflow(dtype == GRD_FLOAT32 ? "float" : "double");
        write_double(re, dtype, ret_element);
        return true;
    case GRD_CATEGORY_COMPLEX:
        if (dtype == GRD_COMPLEX64 && (beyond_float(re) || beyond_float(im)))
            return overflow("c10::complex<float>");
        write_complex(re, im, dtype, ret_element);
        return true;
    default:
        return write_integer(s, dtype, ret_element);
    }
}
