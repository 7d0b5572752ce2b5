/* Compares dtypes and scalars with PyTorch 2.13: promotion, permitted casts, ranges and conversions. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/scalar.h"
#include "support.h"

/* torch.promote_types(row, column). Rows and columns are dtypes in the order of GRD_DTYPES. 'a' stands for the first dtype, '-' for an error. PyTorch
 * does not promote uint16, uint32 and uint64 with other integers. For these pairs the table has the smallest dtype that holds both. */
static const char *const promotions[] = {
    "abcdefghijklmnop-----", /* bool promoted with each dtype */
    "bbedefghijklmnop-----", /* uint8 promoted with each dtype */
    "cecgeig-ijklmnop-----", /* int8 promoted with each dtype */
    "ddgdgfghijklmnop-----", /* uint16 promoted with each dtype */
    "eeegeig-ijklmnop-----", /* int16 promoted with each dtype */
    "ffififihijklmnop-----", /* uint32 promoted with each dtype */
    "gggggig-ijklmnop-----", /* int32 promoted with each dtype */
    "hh-h-h-h-jklmnop-----", /* uint64 promoted with each dtype */
    "iiiiiii-ijklmnop-----", /* int64 promoted with each dtype */
    "jjjjjjjjjjllmnop-----", /* float16 promoted with each dtype */
    "kkkkkkkkklklmoop-----", /* bfloat16 promoted with each dtype */
    "llllllllllllmoop-----", /* float32 promoted with each dtype */
    "mmmmmmmmmmmmmppp-----", /* float64 promoted with each dtype */
    "nnnnnnnnnnoopnop-----", /* complex32 promoted with each dtype */
    "oooooooooooopoop-----", /* complex64 promoted with each dtype */
    "pppppppppppppppp-----", /* complex128 promoted with each dtype */
    "----------------q----", /* float8_e4m3fn promoted with each dtype */
    "-----------------r---", /* float8_e5m2 promoted with each dtype */
    "------------------s--", /* qint8 promoted with each dtype */
    "-------------------t-", /* quint8 promoted with each dtype */
    "--------------------u", /* qint32 promoted with each dtype */
};

/* torch.can_cast(row, column) as '1' or '.'. Rows and columns are dtypes in the order of GRD_DTYPES. */
static const char *const casts[] = {
    "111111111111111111111", /* casts from bool to each dtype: 1 if allowed */
    ".11111111111111111111", /* casts from uint8 to each dtype: 1 if allowed */
    ".11111111111111111111", /* casts from int8 to each dtype: 1 if allowed */
    ".11111111111111111111", /* casts from uint16 to each dtype: 1 if allowed */
    ".11111111111111111111", /* casts from int16 to each dtype: 1 if allowed */
    ".11111111111111111111", /* casts from uint32 to each dtype: 1 if allowed */
    ".11111111111111111111", /* casts from int32 to each dtype: 1 if allowed */
    ".11111111111111111111", /* casts from uint64 to each dtype: 1 if allowed */
    ".11111111111111111111", /* casts from int64 to each dtype: 1 if allowed */
    ".........111111111111", /* casts from float16 to each dtype: 1 if allowed */
    ".........111111111111", /* casts from bfloat16 to each dtype: 1 if allowed */
    ".........111111111111", /* casts from float32 to each dtype: 1 if allowed */
    ".........111111111111", /* casts from float64 to each dtype: 1 if allowed */
    ".............111.....", /* casts from complex32 to each dtype: 1 if allowed */
    ".............111.....", /* casts from complex64 to each dtype: 1 if allowed */
    ".............111.....", /* casts from complex128 to each dtype: 1 if allowed */
    ".........111111111111", /* casts from float8_e4m3fn to each dtype: 1 if allowed */
    ".........111111111111", /* casts from float8_e5m2 to each dtype: 1 if allowed */
    ".11111111111111111111", /* casts from qint8 to each dtype: 1 if allowed */
    ".11111111111111111111", /* casts from quint8 to each dtype: 1 if allowed */
    ".11111111111111111111", /* casts from qint32 to each dtype: 1 if allowed */
};

static void promotion_and_casts_follow_pytorch(void **state)
{
    (void)state;
    for (int a = 1; a < GRD_DTYPE_COUNT; a++) {
        for (int b = 1; b < GRD_DTYPE_COUNT; b++) {
            char expected = promotions[a - 1][b - 1];
            grd_dtype promoted = grd_promote((grd_dtype)a, (grd_dtype)b);
            assert_int_equal(promoted, expected == '-' ? GRD_DTYPE_NONE : (grd_dtype)(expected - 'a' + 1));
            assert_int_equal(grd_error_get(), expected == '-' ? GRD_ERROR_RUNTIME : GRD_ERROR_NONE);
            grd_error_clear();
            assert_int_equal(grd_can_cast((grd_dtype)a, (grd_dtype)b), casts[a - 1][b - 1] == '1');
        }
    }
    grd_promote(GRD_INT8, GRD_UINT64);
    assert_string_equal(grd_error_message(), "no integer dtype holds what Char and UInt64 do");
    grd_error_clear();
    assert_int_equal(grd_promote(GRD_DTYPE_NONE, GRD_INT8), GRD_INT8);
}

static void dtypes_have_names_sizes_and_kinds(void **state)
{
    (void)state;
    assert_string_equal(grd_dtype_name(GRD_BFLOAT16), "bfloat16");
    assert_string_equal(grd_dtype_name(GRD_DTYPE_NONE), "none");
    assert_string_equal(grd_dtype_name((grd_dtype)99), "none");
    assert_int_equal(grd_dtype_size(GRD_COMPLEX128), 16);
    assert_int_equal(grd_dtype_size((grd_dtype)-1), 0);
    assert_true(grd_dtype_is_floating(GRD_FLOAT8_E5M2) && !grd_dtype_is_floating(GRD_COMPLEX64));
    assert_true(grd_dtype_is_complex(GRD_COMPLEX64) && !grd_dtype_is_integer(GRD_BOOL));
    assert_int_equal(grd_dtype_to_real(GRD_COMPLEX128), GRD_FLOAT64);
    assert_int_equal(grd_dtype_to_complex(GRD_FLOAT32), GRD_COMPLEX64);
    assert_int_equal(grd_dtype_to_real(GRD_COMPLEX32), GRD_FLOAT16);
    assert_int_equal(grd_dtype_to_complex(GRD_FLOAT16), GRD_COMPLEX32);
    assert_int_equal(grd_dtype_to_complex(GRD_BFLOAT16), GRD_COMPLEX64);
    assert_int_equal(grd_dtype_to_complex(GRD_INT8), GRD_INT8);
}

static void the_default_dtype_decides_the_dtype_of_numbers(void **state)
{
    (void)state;
    assert_int_equal(grd_scalar_dtype(grd_float(1)), GRD_FLOAT32);
    grd_set_default_dtype(GRD_FLOAT64);
    assert_int_equal(grd_default_dtype(), GRD_FLOAT64);
    assert_int_equal(grd_scalar_dtype(grd_float(1)), GRD_FLOAT64);
    assert_int_equal(grd_scalar_dtype(grd_complex_number(1, 2)), GRD_COMPLEX128);
    for (int dtype = GRD_DTYPE_NONE; dtype < GRD_DTYPE_COUNT; dtype++)
        if (dtype < GRD_FLOAT16 || dtype > GRD_FLOAT64) { /* only float16, bfloat16, float32 and float64 can be the default dtype */
            grd_set_default_dtype((grd_dtype)dtype);
            assert_int_equal(grd_error_get(), GRD_ERROR_TYPE);
            grd_error_clear();
            assert_int_equal(grd_default_dtype(), GRD_FLOAT64);
        }
    grd_set_default_dtype(GRD_FLOAT32);
    assert_int_equal(grd_scalar_dtype(grd_complex_number(1, 2)), GRD_COMPLEX64);
    assert_int_equal(grd_scalar_dtype(grd_int(1)), GRD_INT64);
    assert_int_equal(grd_scalar_dtype(grd_bool(1)), GRD_BOOL);
    assert_int_equal(grd_scalar_dtype((grd_scalar){0}), GRD_DTYPE_NONE);
}

/* One case of writing_a_number_checks_its_range. `expected` is the written element, as a double. `overflows` is the C type that the error
 * names, or NULL if there is no error. */
struct write {
    grd_dtype dtype;
    grd_scalar value;
    double expected;
    const char *overflows;
};

static void writing_a_number_checks_its_range(void **state)
{
    (void)state;
    const struct write writes[] = {
        {GRD_UINT8, grd_int(255), 255, NULL},
        {GRD_UINT8, grd_int(256), 0, "uint8_t"},
        {GRD_UINT8, grd_int(-1), 255, NULL},
        {GRD_UINT8, grd_int(-255), 1, NULL},
        {GRD_UINT8, grd_int(-256), 0, "uint8_t"},
        {GRD_UINT8, grd_float(-0.5), 0, "uint8_t"},
        {GRD_UINT8, grd_float(255.5), 0, "uint8_t"},
        {GRD_UINT8, grd_float(3.7), 3, NULL},
        {GRD_INT8, grd_int(-128), -128, NULL},
        {GRD_INT8, grd_int(-129), 0, "int8_t"},
        {GRD_INT8, grd_float(-1.5), -1, NULL},
        {GRD_INT16, grd_int(32768), 0, "int16_t"},
        {GRD_UINT16, grd_int(-65535), 1, NULL},
        {GRD_INT32, grd_float(2147483648.0), 0, "int"},
        {GRD_INT32, grd_float(NAN), 0, "int"},
        {GRD_UINT32, grd_int(4294967296), 0, "uint32_t"},
        {GRD_INT64, grd_float(INFINITY), 0, "int64_t"},
        {GRD_INT64, grd_float(0x1p63), 0, "int64_t"},
        {GRD_INT64, grd_float(-0x1p63), -0x1p63, NULL},
        {GRD_UINT64, grd_int(-1), 0x1p64, NULL},
        {GRD_UINT64, grd_uint(UINT64_MAX), 0x1p64, NULL},
        {GRD_INT64, grd_uint(INT64_MAX), 0x1p63, NULL},
        {GRD_INT64, grd_uint((uint64_t)1 << 63), 0, "int64_t"},
        {GRD_UINT8, grd_uint(UINT64_MAX), 0, "uint8_t"},
        {GRD_FLOAT32, grd_uint((uint64_t)1 << 63), 0x1p63, NULL},
        {GRD_COMPLEX64, grd_uint((uint64_t)1 << 63), 0x1p63, NULL},
        {GRD_BOOL, grd_uint((uint64_t)1 << 63), 1, NULL},
        {GRD_UINT64, grd_float(0x1p63), 0x1p63, NULL},
        {GRD_UINT64, grd_float(0x1p64), 0, "uint64_t"},
        {GRD_INT64, grd_complex_number(1, 0), 1, NULL},
        {GRD_INT64, grd_complex_number(1, 2), 0, "int64_t"},
        {GRD_FLOAT32, grd_float(1e39), 0, "float"},
        {GRD_FLOAT32, grd_float(INFINITY), INFINITY, NULL},
        {GRD_FLOAT32, grd_complex_number(1, NAN), 0, "float"},
        {GRD_FLOAT16, grd_float(1e6), INFINITY, NULL},
        {GRD_BFLOAT16, grd_float(1e39), INFINITY, NULL},
        {GRD_FLOAT64, grd_complex_number(1, 1), 0, "double"},
        {GRD_COMPLEX64, grd_complex_number(1e39, 0), 0, "c10::complex<float>"},
        {GRD_COMPLEX64, grd_complex_number(-2, 1), -2, NULL},
        {GRD_COMPLEX32, grd_complex_number(-2, 1), -2, NULL},
        {GRD_COMPLEX32, grd_complex_number(1e6, 1), INFINITY, NULL},
        {GRD_BOOL, grd_float(-0.0), 0, NULL},
        {GRD_BOOL, grd_float(NAN), 1, NULL},
        {GRD_BOOL, grd_complex_number(0, 2), 1, NULL},
        {GRD_QINT8, grd_int(-128), -128, NULL},
    };
    for (int i = 0; i < GRD_LENGTH(writes); i++) {
        uint8_t element[16], untouched[16];
        char message[100];
        memset(element, 0x5a, sizeof element);
        memcpy(untouched, element, sizeof element);
        bool ok = grd_scalar_write(writes[i].value, writes[i].dtype, element);
        assert_int_equal(ok, writes[i].overflows == NULL);
        if (ok) {
            double read;
            grd_element_convert(element, writes[i].dtype, &read, GRD_FLOAT64);
            assert_true(read == writes[i].expected);
        } else {
            snprintf(message, sizeof message, "value cannot be converted to type %s without overflow", writes[i].overflows);
            assert_string_equal(grd_error_message(), message);
            assert_memory_equal(element, untouched, sizeof element);
        }
        grd_error_clear();
    }
    uint8_t element[16];
    assert_false(grd_scalar_write((grd_scalar){0}, GRD_INT8, element));
    assert_int_equal(grd_error_get(), GRD_ERROR_TYPE);
    grd_error_clear();
}

static void numbers_survive_writing_and_reading(void **state)
{
    (void)state;
    for (int d = 1; d < GRD_DTYPE_COUNT; d++) {
        for (int i = 0; i < 2; i++) {
            uint8_t element[16];
            assert_true(grd_scalar_write(grd_int(i), (grd_dtype)d, element));
            grd_scalar s = grd_scalar_read(element, (grd_dtype)d);
            assert_true(grd_scalar_double(s) == i);
            assert_int_equal(grd_scalar_int64(s), i);
            for (int other = 1; other < GRD_DTYPE_COUNT; other++) {
                uint8_t converted[16];
                grd_element_convert(element, (grd_dtype)d, converted, (grd_dtype)other);
                assert_true(grd_scalar_double(grd_scalar_read(converted, (grd_dtype)other)) == i);
            }
        }
    }
}

static int64_t converted(double x, grd_dtype dtype)
{
    uint8_t element[16];
    grd_element_convert(&x, GRD_FLOAT64, element, dtype);
    return grd_scalar_read(element, dtype).v.i;
}

static void conversions_to_integers_wrap_around(void **state)
{
    (void)state;
    assert_int_equal(converted(300, GRD_UINT8), 44);
    assert_int_equal(converted(-1, GRD_UINT16), 65535);
    assert_int_equal(converted(-1.9, GRD_INT32), -1);
    assert_int_equal(converted(NAN, GRD_INT64), INT64_MIN);
    assert_int_equal(converted(1e300, GRD_INT32), 0);
    assert_true((uint64_t)converted(0x1p63, GRD_UINT64) == (uint64_t)1 << 63);
    assert_true((uint64_t)converted(0x1.8p63, GRD_UINT64) == (uint64_t)3 << 62); /* 1.5 * 2^63 does not fit into int64 */
    assert_true((uint64_t)converted(-1, GRD_UINT64) == UINT64_MAX);
    uint64_t big = UINT64_MAX;
    double read;
    grd_element_convert(&big, GRD_UINT64, &read, GRD_FLOAT64);
    assert_true(read == 0x1p64);
    assert_true(isnan(grd_scalar_double((grd_scalar){0})));
    assert_int_equal(grd_scalar_int64((grd_scalar){0}), 0);
    assert_int_equal(grd_scalar_int64(grd_float(-2.7)), -2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(promotion_and_casts_follow_pytorch),
        cmocka_unit_test(dtypes_have_names_sizes_and_kinds),
        cmocka_unit_test(the_default_dtype_decides_the_dtype_of_numbers),
        cmocka_unit_test(writing_a_number_checks_its_range),
        cmocka_unit_test(numbers_survive_writing_and_reading),
        cmocka_unit_test(conversions_to_integers_wrap_around),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
