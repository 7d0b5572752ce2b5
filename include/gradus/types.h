/* Defines the small value types of the API: dtype, device, layout, scalar, and lists of numbers and of tensors. */
#ifndef GRADUS_TYPES_H
#define GRADUS_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gradus/export.h"

GRD_BEGIN_DECLS

typedef struct grd_tensor grd_tensor;
typedef struct grd_generator grd_generator;

/* The largest number of dimensions of a tensor. */
#define GRD_MAX_DIMS 64

/* The dtype table. The columns are the suffix of the enumerator, the name, the C type that stores an element, the bytes of an element, the
 * category, and the dtype in which sums are accumulated. Two dtypes of one category promote to the one that comes later in the table, with
 * exceptions (grd_promote). */
#define GRD_DTYPES(X)                                                                                                                      \
    X(BOOL, bool, uint8_t, 1, BOOL, int64)                                                                                                 \
    X(UINT8, uint8, uint8_t, 1, INTEGER, int64)                                                                                            \
    X(INT8, int8, int8_t, 1, INTEGER, int64)                                                                                               \
    X(UINT16, uint16, uint16_t, 2, INTEGER, int64)                                                                                         \
    X(INT16, int16, int16_t, 2, INTEGER, int64)                                                                                            \
    X(UINT32, uint32, uint32_t, 4, INTEGER, int64)                                                                                         \
    X(INT32, int32, int32_t, 4, INTEGER, int64)                                                                                            \
    X(UINT64, uint64, uint64_t, 8, INTEGER, uint64)                                                                                        \
    X(INT64, int64, int64_t, 8, INTEGER, int64)                                                                                            \
    X(FLOAT16, float16, uint16_t, 2, FLOAT, float32)                                                                                       \
    X(BFLOAT16, bfloat16, uint16_t, 2, FLOAT, float32)                                                                                     \
    X(FLOAT32, float32, float, 4, FLOAT, float32)                                                                                          \
    X(FLOAT64, float64, double, 8, FLOAT, float64)                                                                                         \
    X(COMPLEX32, complex32, grd_complex32, 4, COMPLEX, complex64)                                                                          \
    X(COMPLEX64, complex64, grd_complex64, 8, COMPLEX, complex64)                                                                          \
    X(COMPLEX128, complex128, grd_complex128, 16, COMPLEX, complex128)                                                                     \
    X(FLOAT8_E4M3FN, float8_e4m3fn, uint8_t, 1, FLOAT, float32)                                                                            \
    X(FLOAT8_E5M2, float8_e5m2, uint8_t, 1, FLOAT, float32)                                                                                \
    X(QINT8, qint8, int8_t, 1, QUANTIZED, int64)                                                                                           \
    X(QUINT8, quint8, uint8_t, 1, QUANTIZED, int64)                                                                                        \
    X(QINT32, qint32, int32_t, 4, QUANTIZED, int64)

/* The dtypes. GRD_DTYPE_NONE, which is 0, stands for an absent optional dtype. */
typedef enum grd_dtype {
    GRD_DTYPE_NONE,
#define GRD_DTYPE_ENUM(NAME, name, ctype, size, category, acc) GRD_##NAME,
    GRD_DTYPES(GRD_DTYPE_ENUM)
#undef GRD_DTYPE_ENUM
        GRD_DTYPE_COUNT
} grd_dtype;

/* Returns the name of the dtype, e.g. "float32"; "none" for GRD_DTYPE_NONE. */
GRD_API const char *grd_dtype_name(grd_dtype dtype);
/* Returns the number of bytes of one element. */
GRD_API int64_t grd_dtype_size(grd_dtype dtype);
GRD_API bool grd_dtype_is_floating(grd_dtype dtype);
GRD_API bool grd_dtype_is_complex(grd_dtype dtype);
GRD_API bool grd_dtype_is_integer(grd_dtype dtype); /* false for bool */
/* Returns the dtype of the real part (and of the imaginary part) of a complex dtype. Returns any other dtype unchanged. */
GRD_API grd_dtype grd_dtype_to_real(grd_dtype dtype);
/* Returns the complex dtype whose parts can represent all values of a floating-point dtype, e.g. complex32 for float16 and complex64 for bfloat16.
 * Returns any other dtype unchanged. */
GRD_API grd_dtype grd_dtype_to_complex(grd_dtype dtype);
/* Returns the dtype to which `a` and `b` promote, as torch.promote_types does. */
GRD_API grd_dtype grd_promote(grd_dtype a, grd_dtype b);
/* True if a result of dtype `from` may be written to a tensor of dtype `to`, as in torch.can_cast. The category of `to` must not be lower than
 * that of `from`, in the order bool, integer, floating point, complex. */
GRD_API bool grd_can_cast(grd_dtype from, grd_dtype to);
/* Returns the floating-point dtype of new tensors for which no dtype is given. It is float32 unless grd_set_default_dtype has set another one. */
GRD_API grd_dtype grd_default_dtype(void);
/* Sets the default dtype for all threads. Raises TypeError, and changes nothing, if `dtype` is not float16, bfloat16, float32 or float64. */
GRD_API void grd_set_default_dtype(grd_dtype dtype);

typedef enum grd_layout { GRD_LAYOUT_NONE, GRD_STRIDED } grd_layout;

/* A device: its type and its index among the devices of this type. The index -1 means the first device. A struct of zeros stands for an absent
 * optional device. */
typedef struct grd_device {
    uint8_t type;
    int8_t index;
} grd_device;

/* The device types. Types from GRD_DEVICE_FIRST_EXTRA on are registered at run time (gradus/device.h). */
enum { GRD_DEVICE_NONE, GRD_DEVICE_CPU, GRD_DEVICE_META, GRD_DEVICE_FIRST_EXTRA, GRD_DEVICE_COUNT = 256 };

#ifdef __cplusplus
#define GRD_CPU (grd_device{GRD_DEVICE_CPU, -1})
#define GRD_META (grd_device{GRD_DEVICE_META, -1})
#else
#define GRD_CPU ((grd_device){GRD_DEVICE_CPU, -1})
#define GRD_META ((grd_device){GRD_DEVICE_META, -1})
#endif

/* Returns the name of the device's type: "cpu", "meta", or the name with which it was registered; "none" if there is no such type. */
GRD_API const char *grd_device_name(grd_device device);

/* The kinds of a number; grd_scalar is a number and its kind, e.g. grd_int(2) or grd_float(0.5). Arguments that have type Scalar in the schema
 * are passed as grd_scalar. In C++ the built-in number types convert to grd_scalar. A struct of zeros stands for an absent optional argument. */
typedef enum grd_scalar_kind {
    GRD_SCALAR_NONE,
    GRD_SCALAR_BOOL,
    GRD_SCALAR_INT,
    GRD_SCALAR_FLOAT,
    GRD_SCALAR_COMPLEX,
    GRD_SCALAR_UINT, /* an integer above INT64_MAX */
    /* a number given as a C option such as .alpha = 2, which may stand for an integer or a float; Note [Numbers as options] */
    GRD_SCALAR_UNTYPED
} grd_scalar_kind;

typedef struct grd_scalar {
    union {
        struct {
            double re, im; /* the value for kinds FLOAT (im is 0), COMPLEX and UNTYPED */
        } c;
        int64_t i; /* the value for kinds BOOL and INT; for kind UINT the bits of a uint64_t */
    } v;
    grd_scalar_kind kind;
#ifdef __cplusplus
    grd_scalar() = default;
    inline grd_scalar(bool value);
    inline grd_scalar(int value);
    inline grd_scalar(unsigned value);
    inline grd_scalar(long value);
    inline grd_scalar(unsigned long value);
    inline grd_scalar(long long value);
    inline grd_scalar(unsigned long long value);
    inline grd_scalar(double value);
#endif
} grd_scalar;

static inline grd_scalar grd_bool(bool value)
{
    grd_scalar s;
    s.v.c.im = 0;
    s.v.i = value;
    s.kind = GRD_SCALAR_BOOL;
    return s;
}

static inline grd_scalar grd_int(int64_t value)
{
    grd_scalar s;
    s.v.c.im = 0;
    s.v.i = value;
    s.kind = GRD_SCALAR_INT;
    return s;
}

static inline grd_scalar grd_uint(uint64_t value)
{
    grd_scalar s = grd_int((int64_t)value);
    if (value > INT64_MAX)
        s.kind = GRD_SCALAR_UINT;
    return s;
}

static inline grd_scalar grd_complex_number(double re, double im)
{
    grd_scalar s;
    s.v.c.re = re;
    s.v.c.im = im;
    s.kind = GRD_SCALAR_COMPLEX;
    return s;
}

static inline grd_scalar grd_float(double value)
{
    grd_scalar s;
    s.v.c.re = value;
    s.v.c.im = 0;
    s.kind = GRD_SCALAR_FLOAT;
    return s;
}

/* Returns the value as a double. Returns the real part of a complex number, and NaN if `s` is absent. */
GRD_API double grd_scalar_double(grd_scalar s);
/* Returns the value as an integer, truncated toward zero, or 0 if `s` is absent. Unsigned integers from 2^63 on
 * wrap around, and other values out of range give INT64_MIN. */
GRD_API int64_t grd_scalar_int64(grd_scalar s);

/* A list of sizes, strides or dimensions that does not own its elements. If `data` is NULL, the list is an absent optional argument; an empty
 * list has n == 0 and a non-NULL pointer. In C grd_dims is another name for this type. In C++ grd_dims is a list that owns its elements and
 * converts to a grd_dims_view when it is passed to a function; see Note [Lists in C++]. */
typedef struct grd_dims_view {
    int64_t n;
    const int64_t *data;
#ifdef __cplusplus
    void operator=(struct grd_dims_literal &&) = delete;
#endif
} grd_dims_view;

/* A list of tensors that owns neither its array nor the tensors. If `data` is NULL, the list is an absent optional argument; an empty list has n
 * == 0 and a non-NULL pointer. */
typedef struct grd_tensors_view {
    int64_t n;
    grd_tensor *const *data;
#ifdef __cplusplus
    void operator=(struct grd_tensors_literal &&) = delete;
#endif
} grd_tensors_view;

#ifndef __cplusplus
typedef grd_dims_view grd_dims;
typedef grd_tensors_view grd_tensors;
#endif

/* Returns a list over `n` numbers of the caller's array `data`, which must live as long as the list is used. */
static inline grd_dims_view grd_dims_from(const int64_t *data, int64_t n)
{
    grd_dims_view dims;
    dims.n = n;
    dims.data = data;
    return dims;
}

/* Returns a list over `n` tensors of the caller's array `data`, which must live as long as the list is used. */
static inline grd_tensors_view grd_tensors_from(grd_tensor *const *data, int64_t n)
{
    grd_tensors_view tensors;
    tensors.n = n;
    tensors.data = data;
    return tensors;
}

GRD_END_DECLS

/* grd_dims(2, 3) and grd_tensors(a, b) make lists of one or more elements; GRD_NO_DIMS is the empty list. In C the elements live as long as the
 * enclosing block of code. */
#ifdef __cplusplus
#include "gradus/cpp.h"
#else
#define grd_dims(...) ((grd_dims){(int64_t)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[]){__VA_ARGS__}})
#define grd_tensors(...)                                                                                                                   \
    ((grd_tensors){(int64_t)(sizeof((grd_tensor *const[]){__VA_ARGS__}) / sizeof(grd_tensor *)), (grd_tensor *const[]){__VA_ARGS__}})
#define GRD_NO_DIMS ((grd_dims){0, (const int64_t[]){0}})
#endif

#endif
