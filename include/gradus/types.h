/* The small value types of the API: dtype, device, layout, scalar, dims, lists of tensors. */
#ifndef GRADUS_TYPES_H
#define GRADUS_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
#include <initializer_list>
#endif

#include "gradus/export.h"

GRD_BEGIN_DECLS

typedef struct grd_tensor grd_tensor;
typedef struct grd_generator grd_generator;

/* A tensor has at most this many dimensions. */
#define GRD_MAX_DIMS 64

/* The dtype table: enum suffix, name, C storage type, bytes, category, accumulator.
 * The order is the order of promotion inside a category. */
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
    X(COMPLEX64, complex64, grd_complex64, 8, COMPLEX, complex64)                                                                          \
    X(COMPLEX128, complex128, grd_complex128, 16, COMPLEX, complex128)                                                                     \
    X(FLOAT8_E4M3FN, float8_e4m3fn, uint8_t, 1, FLOAT, float32)                                                                            \
    X(FLOAT8_E5M2, float8_e5m2, uint8_t, 1, FLOAT, float32)                                                                                \
    X(QINT8, qint8, int8_t, 1, QUANTIZED, int64)                                                                                           \
    X(QUINT8, quint8, uint8_t, 1, QUANTIZED, int64)                                                                                        \
    X(QINT32, qint32, int32_t, 4, QUANTIZED, int64)

/* GRD_DTYPE_NONE (zero) stands for an absent optional dtype. */
typedef enum grd_dtype {
    GRD_DTYPE_NONE,
#define GRD_DTYPE_ENUM(NAME, name, ctype, size, category, acc) GRD_##NAME,
    GRD_DTYPES(GRD_DTYPE_ENUM)
#undef GRD_DTYPE_ENUM
        GRD_DTYPE_COUNT
} grd_dtype;

/* "float32"; "none" for GRD_DTYPE_NONE. */
GRD_API const char *grd_dtype_name(grd_dtype dtype);
/* Bytes of one element. */
GRD_API int64_t grd_dtype_size(grd_dtype dtype);
GRD_API bool grd_dtype_is_floating(grd_dtype dtype);
GRD_API bool grd_dtype_is_complex(grd_dtype dtype);
GRD_API bool grd_dtype_is_integer(grd_dtype dtype); /* bool is not an integer */
/* The dtype both promote to, as torch.promote_types. */
GRD_API grd_dtype grd_promote(grd_dtype a, grd_dtype b);
/* Whether a result of `from` may be written to a tensor of `to`, as torch.can_cast: bool, integers, real and complex numbers in this order. */
GRD_API bool grd_can_cast(grd_dtype from, grd_dtype to);
/* The default floating dtype of this process: float32 until set; RuntimeError-free for floating dtypes only. */
GRD_API grd_dtype grd_default_dtype(void);
GRD_API void grd_set_default_dtype(grd_dtype dtype);

typedef enum grd_layout { GRD_LAYOUT_NONE, GRD_STRIDED } grd_layout;

/* A device: its type in the device table and an index (-1: the first one). Zero stands for absent. */
typedef struct grd_device {
    uint8_t type;
    int8_t index;
} grd_device;

/* Types from GRD_DEVICE_FIRST_EXTRA on are registered at run time (gradus/device.h): as many as the type has values. */
enum { GRD_DEVICE_NONE, GRD_DEVICE_CPU, GRD_DEVICE_META, GRD_DEVICE_FIRST_EXTRA, GRD_DEVICE_COUNT = 256 };

#ifdef __cplusplus
#define GRD_CPU (grd_device{GRD_DEVICE_CPU, -1})
#define GRD_META (grd_device{GRD_DEVICE_META, -1})
#else
#define GRD_CPU ((grd_device){GRD_DEVICE_CPU, -1})
#define GRD_META ((grd_device){GRD_DEVICE_META, -1})
#endif

/* "cpu", "meta", or the name a plug-in registered. */
GRD_API const char *grd_device_name(grd_device device);

/* A number with its kind. A zeroed scalar is an absent optional argument. */
typedef enum grd_scalar_kind {
    GRD_SCALAR_NONE,
    GRD_SCALAR_BOOL,
    GRD_SCALAR_INT,
    GRD_SCALAR_FLOAT,
    GRD_SCALAR_COMPLEX,
    GRD_SCALAR_UINT /* an integer above INT64_MAX */
} grd_scalar_kind;

typedef struct grd_scalar {
    grd_scalar_kind kind;
    union {
        int64_t i; /* BOOL and INT; the bits of UINT */
        struct {
            double re, im; /* FLOAT (im is 0) and COMPLEX */
        } c;
    } v;
} grd_scalar;

static inline grd_scalar grd_bool(bool value)
{
    grd_scalar s;
    s.kind = GRD_SCALAR_BOOL;
    s.v.c.im = 0;
    s.v.i = value;
    return s;
}

static inline grd_scalar grd_int(int64_t value)
{
    grd_scalar s;
    s.kind = GRD_SCALAR_INT;
    s.v.c.im = 0;
    s.v.i = value;
    return s;
}

static inline grd_scalar grd_uint(uint64_t value)
{
    grd_scalar s = grd_int((int64_t)value);
    if (value > INT64_MAX)
        s.kind = GRD_SCALAR_UINT;
    return s;
}

static inline grd_scalar grd_float(double value)
{
    grd_scalar s;
    s.kind = GRD_SCALAR_FLOAT;
    s.v.c.re = value;
    s.v.c.im = 0;
    return s;
}

static inline grd_scalar grd_complex_number(double re, double im)
{
    grd_scalar s;
    s.kind = GRD_SCALAR_COMPLEX;
    s.v.c.re = re;
    s.v.c.im = im;
    return s;
}

/* The value as a double (the real part of a complex one); NaN when absent. */
GRD_API double grd_scalar_double(grd_scalar s);
/* The value as an integer, truncated toward zero; 0 when absent. From 2^63 on it wraps around. */
GRD_API int64_t grd_scalar_int64(grd_scalar s);

/* A list of sizes, strides or dimensions. data == NULL is an absent optional list; an empty list has n == 0 and a pointer. */
typedef struct grd_dims {
    const int64_t *data;
    int64_t n;
} grd_dims;

/* A list of tensors. */
typedef struct grd_tensors {
    grd_tensor *const *data;
    int64_t n;
} grd_tensors;

/* Lists over arrays of the caller. */
static inline grd_dims grd_dims_from(const int64_t *data, int64_t n)
{
    grd_dims dims;
    dims.data = data;
    dims.n = n;
    return dims;
}

static inline grd_tensors grd_tensors_from(grd_tensor *const *data, int64_t n)
{
    grd_tensors tensors;
    tensors.data = data;
    tensors.n = n;
    return tensors;
}

GRD_END_DECLS

/* grd_dims(2, 3) and grd_tensors(a, b): lists that live as long as the enclosing block (in C++: the full expression).
 * At least one element; GRD_NO_DIMS is the empty list. */
#ifdef __cplusplus
static inline grd_dims grd_dims_of(const std::initializer_list<int64_t> &list)
{
    return grd_dims_from(list.begin(), (int64_t)list.size());
}
static inline grd_tensors grd_tensors_of(const std::initializer_list<grd_tensor *> &list)
{
    return grd_tensors_from(list.begin(), (int64_t)list.size());
}
#define grd_dims(...) grd_dims_of(std::initializer_list<int64_t>{__VA_ARGS__})
#define grd_tensors(...) grd_tensors_of(std::initializer_list<grd_tensor *>{__VA_ARGS__})
#define GRD_NO_DIMS grd_dims_of(std::initializer_list<int64_t>{})
#else
#define grd_dims(...) ((grd_dims){(const int64_t[]){__VA_ARGS__}, (int64_t)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))})
#define grd_tensors(...)                                                                                                                   \
    ((grd_tensors){(grd_tensor *const[]){__VA_ARGS__}, (int64_t)(sizeof((grd_tensor *const[]){__VA_ARGS__}) / sizeof(grd_tensor *))})
#define GRD_NO_DIMS ((grd_dims){(const int64_t[]){0}, 0})
#endif

#endif
