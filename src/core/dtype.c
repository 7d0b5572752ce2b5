/* Keeps the dtype table and the default dtype, and promotes dtypes.
 *
 * Reading and converting single elements is in scalar.c. Invariant: promotion gives the results of PyTorch's promote_types, and raises an error for
 * the same pairs of dtypes. The only exception is pairs with uint16, uint32 or uint64. */
#include "core/dtype.h"

#include "core/tensor.h"

const struct grd_dtype_info grd_dtype_table[GRD_DTYPE_COUNT] = {[GRD_DTYPE_NONE] = {"none", 0, 0},
#define DTYPE_INFO(NAME, name, ctype, size, category, acc) [GRD_##NAME] = {#name, size, GRD_CATEGORY_##category},
                                                                GRD_DTYPES(DTYPE_INFO)
#undef DTYPE_INFO
};

#define CHECK_SIZE(NAME, name, ctype, size, category, acc) _Static_assert(sizeof(ctype) == (size), #name);
GRD_DTYPES(CHECK_SIZE)
#undef CHECK_SIZE

static _Atomic uint8_t default_dtype = GRD_FLOAT32;

/* Returns the table entry of a dtype; the entry of GRD_DTYPE_NONE for an invalid number. */
static const struct grd_dtype_info *info(grd_dtype dtype)
{
    return &grd_dtype_table[(unsigned)dtype < GRD_DTYPE_COUNT ? dtype : GRD_DTYPE_NONE];
}

const char *grd_dtype_name(grd_dtype dtype)
{
    return info(dtype)->name;
}

const char *grd_dtype_type_name(grd_dtype dtype)
{
    static const char *const names[GRD_DTYPE_COUNT] = {
        [GRD_BOOL] = "Bool",
        [GRD_UINT8] = "Byte",
        [GRD_INT8] = "Char",
        [GRD_UINT16] = "UInt16",
        [GRD_INT16] = "Short",
        [GRD_UINT32] = "UInt32",
        [GRD_INT32] = "Int",
        [GRD_UINT64] = "UInt64",
        [GRD_INT64] = "Long",
        [GRD_FLOAT16] = "Half",
        [GRD_BFLOAT16] = "BFloat16",
        [GRD_FLOAT32] = "Float",
        [GRD_FLOAT64] = "Double",
        [GRD_COMPLEX32] = "ComplexHalf",
        [GRD_COMPLEX64] = "ComplexFloat",
        [GRD_COMPLEX128] = "ComplexDouble",
        [GRD_FLOAT8_E4M3FN] = "Float8_e4m3fn",
        [GRD_FLOAT8_E5M2] = "Float8_e5m2",
        [GRD_QINT8] = "QInt8",
        [GRD_QUINT8] = "QUInt8",
        [GRD_QINT32] = "QInt32",
    };
    const char *name = (unsigned)dtype < GRD_DTYPE_COUNT ? names[dtype] : NULL;
    return name != NULL ? name : "Undefined";
}

const char *grd_dtype_c_name(grd_dtype dtype)
{
    static const char *const names[GRD_DTYPE_COUNT] = {
        [GRD_BOOL] = "bool",
        [GRD_UINT8] = "unsigned char",
        [GRD_INT8] = "signed char",
        [GRD_UINT16] = "unsigned short",
        [GRD_INT16] = "short int",
        [GRD_UINT32] = "unsigned int",
        [GRD_INT32] = "int",
        [GRD_UINT64] = "unsigned long",
        [GRD_INT64] = "long int",
        [GRD_FLOAT16] = "c10::Half",
        [GRD_BFLOAT16] = "c10::BFloat16",
        [GRD_FLOAT32] = "float",
        [GRD_FLOAT64] = "double",
        [GRD_COMPLEX32] = "c10::complex<c10::Half>",
        [GRD_COMPLEX64] = "c10::complex<float>",
        [GRD_COMPLEX128] = "c10::complex<double>",
    };
    const char *name = names[(unsigned)dtype];
    return name != NULL ? name : grd_dtype_type_name(dtype);
}

int64_t grd_dtype_size(grd_dtype dtype)
{
    return info(dtype)->size;
}

bool grd_dtype_is_floating(grd_dtype dtype)
{
    return info(dtype)->category == GRD_CATEGORY_FLOAT;
}

bool grd_dtype_is_complex(grd_dtype dtype)
{
    return info(dtype)->category == GRD_CATEGORY_COMPLEX;
}

bool grd_dtype_is_integer(grd_dtype dtype)
{
    return info(dtype)->category == GRD_CATEGORY_INTEGER;
}

grd_dtype grd_dtype_to_real(grd_dtype dtype)
{
    switch (dtype) {
    case GRD_COMPLEX32:
        return GRD_FLOAT16;
    case GRD_COMPLEX64:
        return GRD_FLOAT32;
    case GRD_COMPLEX128:
        return GRD_FLOAT64;
    default:
        return dtype;
    }
}

grd_dtype grd_dtype_to_complex(grd_dtype dtype)
{
    if (!grd_dtype_is_floating(dtype))
        return dtype;
    return dtype == GRD_FLOAT64 ? GRD_COMPLEX128 : dtype == GRD_FLOAT16 ? GRD_COMPLEX32 : GRD_COMPLEX64;
}

grd_dtype grd_default_dtype(void)
{
    return (grd_dtype)atomic_load_explicit(&default_dtype, memory_order_relaxed);
}

void grd_set_default_dtype(grd_dtype dtype)
{
    if (dtype < GRD_FLOAT16 || dtype > GRD_FLOAT64) {
        grd_raise(GRD_ERROR_TYPE, "only floating-point types are supported as the default type, not %s", grd_dtype_name(dtype));
        return;
    }
    atomic_store_explicit(&default_dtype, (uint8_t)dtype, memory_order_relaxed);
}

bool grd_can_cast(grd_dtype from, grd_dtype to)
{
    int source = info(from)->category, target = info(to)->category;
    if (source == GRD_CATEGORY_COMPLEX)
        return target == GRD_CATEGORY_COMPLEX;
    if (source == GRD_CATEGORY_FLOAT)
        return target != GRD_CATEGORY_BOOL && target != GRD_CATEGORY_INTEGER;
    return source == GRD_CATEGORY_BOOL || target != GRD_CATEGORY_BOOL;
}

/* True for the unsigned dtypes of 2, 4 and 8 bytes. PyTorch promotes these dtypes only with floating-point dtypes. Gradus also promotes them with
 * integer dtypes, to the smallest dtype that can represent the values of both dtypes. */
static bool is_wide_unsigned(grd_dtype dtype)
{
    return dtype == GRD_UINT16 || dtype == GRD_UINT32 || dtype == GRD_UINT64;
}

/* Raises RuntimeError with a text made of `format` and the names of `a` and `b`. Returns GRD_DTYPE_NONE. */
static GRD_PRINTF(1, 0) grd_dtype refuse(const char *format, grd_dtype a, grd_dtype b)
{
    grd_raise(GRD_ERROR_RUNTIME, format, grd_dtype_type_name(a), grd_dtype_type_name(b));
    return GRD_DTYPE_NONE;
}

static bool is_unsigned(grd_dtype dtype)
{
    return dtype == GRD_UINT8 || is_wide_unsigned(dtype);
}

/* Returns the smallest integer dtype that can represent the values of both `a` and `b`, of which at least one is uint16, uint32 or uint64.
 * Returns GRD_DTYPE_NONE, with RuntimeError, if there is no such dtype (uint64 with a signed dtype). */
static grd_dtype promote_unsigned(grd_dtype a, grd_dtype b)
{
    static const grd_dtype wider[] = {[1] = GRD_INT16, [2] = GRD_INT32, [4] = GRD_INT64};
    const grd_dtype natural = is_unsigned(a) ? a : b, other = is_unsigned(a) ? b : a;
    if (other == GRD_BOOL || is_unsigned(other))
        return info(other)->size > info(natural)->size ? other : natural;
    if (info(natural)->size == sizeof(uint64_t))
        return refuse("no integer dtype holds what %s and %s do", a, b);
    return info(other)->size > info(natural)->size ? other : wider[info(natural)->size];
}

grd_dtype grd_promote(grd_dtype a, grd_dtype b)
{
    if (a == b)
        return a;
    if (a == GRD_DTYPE_NONE || b == GRD_DTYPE_NONE)
        return a == GRD_DTYPE_NONE ? b : a;
    grd_dtype low = a < b ? a : b, high = a < b ? b : a;
    if (info(high)->category == GRD_CATEGORY_QUANTIZED)
        return refuse("promoteTypes with quantized numbers is not handled yet; figure out what the correct rules should be, "
                      "offending types: %s %s",
                      a, b);
    if (high == GRD_FLOAT8_E4M3FN || high == GRD_FLOAT8_E5M2)
        return refuse("Promotion for Float8 Types is not supported, attempted to promote %s and %s", a, b);
    if ((is_wide_unsigned(low) || is_wide_unsigned(high)) && info(high)->category <= GRD_CATEGORY_INTEGER)
        return promote_unsigned(a, b);
    if (low == GRD_UINT8 && high == GRD_INT8)
        return GRD_INT16;
    if (low == GRD_FLOAT16 && high == GRD_BFLOAT16)
        return GRD_FLOAT32;
    if (info(low)->category == GRD_CATEGORY_FLOAT && info(high)->category == GRD_CATEGORY_COMPLEX)
        return grd_dtype_to_complex(grd_promote(low, grd_dtype_to_real(high)));
    return high;
}
