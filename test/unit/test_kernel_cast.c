/* Compares conversions between all dtypes at every instruction-set level with conversions through the widest types. Strided and contiguous
 * operands must give the same bits. Also tests the kernels that copy bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the headers above but does not include them. */
#include <cmocka.h>
#include <math.h>

#include "base/half.h"
#include "kernel/bytes.h"
#include "kernel_levels.h"

/* The exact value of an element. For an integer, `bits` is the value in two's complement and `negative` its sign. Any other value is the complex
 * number re + im * i. */
struct value {
    bool is_integer, negative;
    uint64_t bits;
    double re, im;
};

static struct value read_value(grd_dtype dtype, const char *at)
{
    struct value v = {.is_integer = true};
    uint16_t half, halves[2];
    float f[2];
    double d[2];
    v.bits = 0;
    memcpy(&v.bits, at, (size_t)(grd_dtype_size(dtype) < 8 ? grd_dtype_size(dtype) : 8));
    switch (dtype) {
    case GRD_BOOL:
    case GRD_UINT8:
    case GRD_UINT16:
    case GRD_UINT32:
    case GRD_UINT64:
        return v;
    case GRD_INT8:
        v.bits = (uint64_t)(int64_t)(int8_t)v.bits;
        break;
    case GRD_INT16:
        v.bits = (uint64_t)(int64_t)(int16_t)v.bits;
        break;
    case GRD_INT32:
        v.bits = (uint64_t)(int64_t)(int32_t)v.bits;
        break;
    case GRD_INT64:
        break;
    default:
        v.is_integer = false;
    }
    v.negative = v.is_integer && (int64_t)v.bits < 0;
    switch (dtype) {
    case GRD_FLOAT16:
    case GRD_BFLOAT16:
        memcpy(&half, at, 2);
        v.re = dtype == GRD_FLOAT16 ? grd_from_float16(half) : grd_from_bfloat16(half);
        break;
    case GRD_FLOAT8_E4M3FN:
        v.re = grd_from_float8_e4m3fn((uint8_t)*at);
        break;
    case GRD_FLOAT8_E5M2:
        v.re = grd_from_float8_e5m2((uint8_t)*at);
        break;
    case GRD_COMPLEX32:
        memcpy(halves, at, sizeof halves);
        v.re = grd_from_float16(halves[0]);
        v.im = grd_from_float16(halves[1]);
        break;
    case GRD_FLOAT32:
    case GRD_COMPLEX64:
        memcpy(f, at, (size_t)grd_dtype_size(dtype));
        v.re = f[0];
        v.im = dtype == GRD_COMPLEX64 ? f[1] : 0;
        break;
    case GRD_FLOAT64:
    case GRD_COMPLEX128:
        memcpy(d, at, (size_t)grd_dtype_size(dtype));
        v.re = d[0];
        v.im = dtype == GRD_COMPLEX128 ? d[1] : 0;
        break;
    default:
        break;
    }
    return v;
}

static float as_float(struct value v)
{
    return !v.is_integer ? (float)v.re : v.negative ? (float)(int64_t)v.bits : (float)v.bits;
}

static double as_double(struct value v)
{
    return !v.is_integer ? v.re : v.negative ? (double)(int64_t)v.bits : (double)v.bits;
}

/* Returns `v` truncated toward zero. The result is a uint64 if `to` is uint64, an int64 if `to` is int64 or uint32, and an int32 otherwise. A value
 * that does not fit into int64 or int32 becomes the smallest number of that type. A value that is too large for uint64 becomes 0. */
static uint64_t as_integer(struct value v, grd_dtype to)
{
    if (v.is_integer)
        return v.bits;
    switch (to) {
    case GRD_UINT64:
        if (v.re >= 0x1p63)
            return v.re < 0x1p64 ? (uint64_t)v.re : 0;
        return v.re >= -0x1p63 ? (uint64_t)(int64_t)v.re : (uint64_t)INT64_MIN;
    case GRD_INT64:
    case GRD_UINT32:
        return (uint64_t)(v.re >= -0x1p63 && v.re < 0x1p63 ? (int64_t)v.re : INT64_MIN);
    default:
        return (uint64_t)(int64_t)(v.re > -0x1p31 - 1 && v.re < 0x1p31 ? (int32_t)v.re : INT32_MIN);
    }
}

static void write_value(grd_dtype to, struct value v, char *at)
{
    const float f[2] = {as_float(v), (float)v.im};
    const double d[2] = {as_double(v), v.im};
    const uint64_t integer = to >= GRD_UINT8 && to <= GRD_INT64 ? as_integer(v, to) : 0;
    uint16_t half;
    switch (to) {
    case GRD_BOOL:
        *at = v.is_integer ? v.bits != 0 : v.re != 0 || v.im != 0;
        return;
    case GRD_FLOAT16:
    case GRD_BFLOAT16:
        half = to == GRD_FLOAT16 ? grd_to_float16(f[0]) : grd_to_bfloat16(f[0]);
        memcpy(at, &half, 2);
        return;
    case GRD_FLOAT8_E4M3FN:
        *at = (char)grd_to_float8_e4m3fn(f[0]);
        return;
    case GRD_FLOAT8_E5M2:
        *at = (char)grd_to_float8_e5m2(f[0]);
        return;
    case GRD_COMPLEX32:
        memcpy(at, (uint16_t[]){grd_to_float16(f[0]), grd_to_float16(f[1])}, 2 * sizeof half);
        return;
    case GRD_FLOAT32:
    case GRD_COMPLEX64:
        memcpy(at, f, (size_t)grd_dtype_size(to));
        return;
    case GRD_FLOAT64:
    case GRD_COMPLEX128:
        memcpy(at, d, (size_t)grd_dtype_size(to));
        return;
    default:
        memcpy(at, &integer, (size_t)grd_dtype_size(to));
    }
}

/* Fills `out` with random bits, numbers of moderate size, and numbers near the limits of the integer types. */
static void fill(grd_dtype dtype, char *out, int n)
{
    static const double edges[] = {0,
                                   -0.0,
                                   0.5,
                                   -0.5,
                                   -0.99,
                                   127,
                                   128,
                                   -128,
                                   -129,
                                   255,
                                   256,
                                   300,
                                   -300,
                                   32767,
                                   32768,
                                   65535,
                                   65536,
                                   70000,
                                   -70000,
                                   2147483520,
                                   2147483648.0,
                                   -2147483648.0,
                                   2147483647.5,
                                   -2147483648.5,
                                   -2147483649.0,
                                   3e9,
                                   -3e9,
                                   4294967295.0,
                                   4294967296.0,
                                   9.2e18,
                                   0x1p63,
                                   -0x1p63,
                                   1.8e19,
                                   0x1p64,
                                   1e20,
                                   -1e20,
                                   INFINITY,
                                   -INFINITY,
                                   NAN,
                                   65504,
                                   65520,
                                   1e-8,
                                   6e-8,
                                   448,
                                   464,
                                   57344,
                                   1e300,
                                   1e-300};
    enum { EDGES = sizeof edges / sizeof *edges };
    const int64_t size = grd_dtype_size(dtype);
    for (int i = 0; i < n; i++) {
        const bool is_float = dtype >= GRD_FLOAT16;
        if (is_float && i < EDGES)
            write_value(dtype, (struct value){.re = edges[i], .im = i % 3 - 1}, out + i * size);
        else if (is_float && i % 2 == 0)
            write_value(dtype, (struct value){.re = ldexp((double)(random_bits() >> 11), (int)(random_bits() % 30) - 60) - 3},
                        out + i * size);
        else if (dtype == GRD_BOOL)
            out[i] = (char)(random_bits() >> 30 & 1);
        else
            for (int64_t k = 0; k < size; k++)
                out[i * size + k] = (char)(random_bits() >> 13);
    }
}

/* True if the elements at a and b have the same bits, or if both are NaN. The bits of a converted NaN are not specified. */
static bool same(grd_dtype dtype, const char *a, const char *b)
{
    if (memcmp(a, b, (size_t)grd_dtype_size(dtype)) == 0)
        return true;
    if (dtype < GRD_FLOAT16)
        return false;
    const struct value x = read_value(dtype, a), y = read_value(dtype, b);
    return (x.re == y.re || (isnan(x.re) && isnan(y.re))) && (x.im == y.im || (isnan(x.im) && isnan(y.im)));
}

static void test_every_pair_of_dtypes_is_converted(void **state)
{
    (void)state;
    enum { N = 1500 };
    static _Alignas(16) char x[16 * N], y[16 * N];
    char expected[16];
    for (int level = 0; table_of_level(level) != NULL; level++)
        for (grd_dtype from = GRD_BOOL; from <= GRD_FLOAT8_E5M2; from++)
            for (grd_dtype to = GRD_BOOL; to <= GRD_FLOAT8_E5M2; to++) {
                const int64_t from_size = grd_dtype_size(from), to_size = grd_dtype_size(to);
                fill(from, x, N);
                table_of_level(level)->cast[from][to](N, (char *[]){y, x}, (int64_t[]){to_size, from_size}, NULL);
                for (int i = 0; i < N; i++) {
                    const struct value v = read_value(from, x + i * from_size);
                    write_value(to, v, expected);
                    if (!same(to, y + i * to_size, expected))
                        fail_msg("%s: %s to %s: element %d, %g (%llx)", table_of_level(level)->isa, grd_dtype_name(from),
                                 grd_dtype_name(to), i, as_double(v), (unsigned long long)v.bits);
                }
            }
}

static void test_conversions_do_not_depend_on_strides(void **state)
{
    (void)state;
    for (int level = 0; table_of_level(level) != NULL; level++)
        for (grd_dtype from = GRD_BOOL; from <= GRD_FLOAT8_E5M2; from++)
            for (grd_dtype to = GRD_BOOL; to <= GRD_FLOAT8_E5M2; to++)
                if (!same_on_every_path(table_of_level(level)->cast[from][to], 1, (grd_dtype[]){to, from}, NULL))
                    fail_msg("%s: %s to %s", table_of_level(level)->isa, grd_dtype_name(from), grd_dtype_name(to));
}

/* Tests the kernels that copy every other element and that reverse elements, for every element size and many lengths. The source is a heap block
 * that ends with its last element, so that AddressSanitizer reports reads past it. */
static void test_every_second_and_reversed_elements_are_copied(void **state)
{
    (void)state;
    enum { MOST = 200 };
    for (int level = 0; table_of_level(level) != NULL; level++)
        for (int width = 0; width < GRD_BYTES_SIZES; width++)
            for (int64_t n = 1; n < MOST; n++) {
                const int64_t size = 1 << width, bytes = (2 * n - 1) * size;
                char *from = malloc((size_t)bytes), *to = malloc((size_t)(n * size));
                for (int64_t i = 0; i < bytes; i++)
                    from[i] = (char)random_bits();
                table_of_level(level)->bytes->every_other[width](n, to, from);
                for (int64_t i = 0; i < n; i++)
                    assert_memory_equal(to + i * size, from + 2 * i * size, (size_t)size);
                for (int past = 0; past < 2; past++) {
                    memset(to, 0, (size_t)(n * size));
                    table_of_level(level)->bytes->reverse[width](n, to, from + (n - 1) * size, past);
                    for (int64_t i = 0; i < n; i++)
                        assert_memory_equal(to + i * size, from + (n - 1 - i) * size, (size_t)size);
                }
                free(from);
                free(to);
            }
}

/* Copies blocks of bytes from and to every offset within a cache line. The bytes around the destination must stay unchanged. */
static void test_copies_write_only_their_destination(void **state)
{
    (void)state;
    enum { AROUND = 64, ROOM = 5000 + 3 * AROUND };
    static const int64_t lengths[] = {GRD_LINE_LEAST, 33, 63, 64, 150, 256, 257, 319, 384, 400, 511, 640, 4993};
    static _Alignas(64) char from[ROOM], to[ROOM], expected[ROOM];
    for (int64_t i = 0; i < ROOM; i++)
        from[i] = (char)random_bits();
    for (int level = 0; table_of_level(level) != NULL; level++)
        for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++)
            for (int64_t at = AROUND; at < 2 * AROUND; at++)
                for (int past = 0; past < 2; past++) {
                    const struct grd_bytes_kernels *bytes = table_of_level(level)->bytes;
                    const int64_t start = 7 * at % AROUND;
                    memset(to, 1, ROOM);
                    memset(expected, 1, ROOM);
                    memcpy(expected + at, from + start, (size_t)lengths[k]);
                    (past ? bytes->copy_past : bytes->copy)(lengths[k], to + at, from + start);
                    assert_memory_equal(to, expected, ROOM);
                }
}

/* Copies rows of 0 to 299 bytes. The bytes around each row of the destination must stay unchanged. */
static void test_row_copies_write_only_their_rows(void **state)
{
    (void)state;
    enum { ROWS = 4, MOST = 300, AFTER = 40, STRIDE = 2 * MOST + AFTER };
    static const int64_t index[] = {2, 0, 2, 3};
    static char from[ROWS * STRIDE + 1], to[ROWS * STRIDE + 3], expected[ROWS * STRIDE + 3];
    for (size_t i = 0; i < sizeof from; i++)
        from[i] = (char)random_bits();
    for (int level = 0; table_of_level(level) != NULL; level++)
        for (int64_t n = 0; n < MOST; n++) {
            const struct grd_bytes_kernels *bytes = table_of_level(level)->bytes;
            memset(to, 1, sizeof to);
            memset(expected, 1, sizeof expected);
            for (int64_t row = 1; row < ROWS; row++) {
                memcpy(expected + 3 + row * STRIDE, from + row * n, (size_t)n);
                memcpy(expected + 3 + row * STRIDE + n, from + 1 + row * 2 * MOST, (size_t)(MOST - n));
            }
            bytes->join_rows(&(struct grd_joined_rows){to + 3, STRIDE, 2, {{from, n, n}, {from + 1, 2 * MOST, MOST - n}}}, 1, ROWS);
            assert_memory_equal(to, expected, sizeof to);
            for (int64_t row = 0; row < ROWS; row++)
                memcpy(expected + 1 + row * STRIDE, from + index[row] * MOST, (size_t)n);
            bytes->gather_rows(&(struct grd_listed_rows){ROWS, n, STRIDE, MOST, to + 1, from, index});
            assert_memory_equal(to, expected, sizeof to);
        }
}

static void test_the_kernel_table_of_the_cpu_s_level_is_used(void **state)
{
    (void)state;
    assert_non_null(grd_kernels);
    assert_ptr_equal(grd_kernels, table_of_level((int)grd_cpu_level()));
    assert_string_equal(table_of_level(0)->isa, "portable");
    assert_null(grd_kernels->unary[GRD_FLOAT8_E5M2]);
    assert_null(grd_kernels->cast[GRD_QINT8]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_pair_of_dtypes_is_converted),
        cmocka_unit_test(test_conversions_do_not_depend_on_strides),
        cmocka_unit_test(test_every_second_and_reversed_elements_are_copied),
        cmocka_unit_test(test_copies_write_only_their_destination),
        cmocka_unit_test(test_row_copies_write_only_their_rows),
        cmocka_unit_test(test_the_kernel_table_of_the_cpu_s_level_is_used),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
