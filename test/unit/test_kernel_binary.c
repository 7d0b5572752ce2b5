/* Tests binary and ternary kernels at every instruction-set level: edge cases of integers, NaN, the accuracy of pow and division, and equal bits
 * for contiguous, strided, broadcast and in-place operands. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the headers above but does not include them. */
#include <cmocka.h>
#include <math.h>

#include "kernel_levels.h"

static bool gives_bool(int kernel)
{
    switch (kernel) {
    case GRD_BINARY_EQ:
    case GRD_BINARY_NE:
    case GRD_BINARY_LT:
    case GRD_BINARY_LE:
    case GRD_BINARY_GT:
    case GRD_BINARY_GE:
    case GRD_BINARY_LOGICAL_AND:
    case GRD_BINARY_LOGICAL_OR:
    case GRD_BINARY_LOGICAL_XOR:
        return true;
    default:
        return false;
    }
}

static void test_results_do_not_depend_on_strides_or_aliasing(void **state)
{
    (void)state;
    const grd_scalar params[] = {grd_int(3), grd_int(2)};
    for (int level = 0; table_of_level(level) != NULL; level++)
        for (grd_dtype dtype = GRD_BOOL; dtype <= GRD_COMPLEX128; dtype++) {
            const struct grd_kernel_table *table = table_of_level(level);
            for (int kernel = 0; kernel < GRD_BINARY_COUNT; kernel++) {
                const struct grd_map map = map_of(table->binary, dtype, kernel, params);
                if (map.kernel->block != NULL &&
                    !map_is_same_on_every_path(&map, 2, (grd_dtype[]){gives_bool(kernel) ? GRD_BOOL : dtype, dtype, dtype}))
                    fail_msg("%s: binary kernel %d of %s", table->isa, kernel, grd_dtype_name(dtype));
            }
            for (int kernel = 0; kernel < GRD_TERNARY_COUNT; kernel++) {
                const struct grd_map map = map_of(table->ternary, dtype, kernel, params);
                if (map.kernel->block != NULL &&
                    !map_is_same_on_every_path(&map, 3,
                                               (grd_dtype[]){dtype, kernel == GRD_TERNARY_HIDDEN_WHERE ? GRD_BOOL : dtype, dtype, dtype}))
                    fail_msg("%s: ternary kernel %d of %s", table->isa, kernel, grd_dtype_name(dtype));
            }
        }
}

/* Checks every kernel for bfloat16. Its result must be that of the float32 kernel for the same inputs, rounded to bfloat16.
 * `where` is the index of the kernel whose first input is a mask, or -1 if there is none. */
static void compare_bfloat16(const struct grd_map_kernel *const *rows, int count, int where)
{
    enum { COUNT = 1 << 16 };
    static uint16_t x[COUNT], y[COUNT], z[COUNT], made[COUNT], expected[COUNT];
    static uint8_t condition[COUNT];
    int kernels = 0;
    for (int i = 0; i < COUNT; i++) {
        random_element(GRD_BFLOAT16, (char *)&x[i]);
        random_element(GRD_BFLOAT16, (char *)&y[i]);
        random_element(GRD_BFLOAT16, (char *)&z[i]);
        random_element(GRD_BOOL, (char *)&condition[i]);
    }
    for (int kernel = 0; kernel < count; kernel++) {
        char *const first = kernel == where ? (char *)condition : (char *)x;
        const int64_t strides[] = {2, kernel == where ? 1 : 2, 2, 2};
        if (rows[GRD_BFLOAT16][kernel].block == NULL)
            continue;
        const struct grd_map own = map_of(rows, GRD_BFLOAT16, kernel, NULL), other = converted_map(rows, GRD_BFLOAT16, kernel, NULL);
        grd_map(COUNT, (char *const[]){(char *)made, first, (char *)y, (char *)z}, strides, &own);
        grd_map(COUNT, (char *const[]){(char *)expected, first, (char *)y, (char *)z}, strides, &other);
        assert_memory_equal(made, expected, sizeof made);
        kernels++;
    }
    assert_true(kernels > 0);
}

static void test_bfloat16_kernels_equal_float32_with_rounding(void **state)
{
    (void)state;
    for (int level = 0; table_of_level(level) != NULL; level++) {
        compare_bfloat16(table_of_level(level)->binary, GRD_BINARY_COUNT, -1);
        compare_bfloat16(table_of_level(level)->ternary, GRD_TERNARY_COUNT, GRD_TERNARY_HIDDEN_WHERE);
    }
}

static int64_t floor_quotient(int64_t x, int64_t y)
{
    return x / y - (x % y != 0 && (x < 0) != (y < 0));
}

/* Returns the result of a binary kernel for the int8 values x and y, computed in int64. */
static int64_t exact_int8(int kernel, int64_t x, int64_t y)
{
    switch (kernel) {
    case GRD_BINARY_HIDDEN_ADD:
        return x + y;
    case GRD_BINARY_HIDDEN_SUB:
        return x - y;
    case GRD_BINARY_MUL:
        return x * y;
    case GRD_BINARY_HIDDEN_DIV_TRUNC:
        return y == 0 ? 0 : x / y;
    case GRD_BINARY_HIDDEN_DIV_FLOOR:
        return y == 0 ? 0 : floor_quotient(x, y);
    case GRD_BINARY_REMAINDER:
        return y == 0 ? 0 : x - y * floor_quotient(x, y);
    case GRD_BINARY_FMOD:
        return y == 0 ? 0 : x % y;
    case GRD_BINARY_MAXIMUM:
        return x > y ? x : y;
    case GRD_BINARY_MINIMUM:
        return x < y ? x : y;
    case GRD_BINARY_BITWISE_AND:
        return x & y;
    case GRD_BINARY_BITWISE_OR:
        return x | y;
    case GRD_BINARY_BITWISE_XOR:
        return x ^ y;
    case GRD_BINARY_BITWISE_LEFT_SHIFT:
        return y < 0 || y >= 8 ? 0 : (int64_t)((uint64_t)x << y);
    case GRD_BINARY_BITWISE_RIGHT_SHIFT:
        return y < 0 || y >= 8 ? (x < 0 ? -1 : 0) : x >> y;
    case GRD_BINARY_HIDDEN_POW: {
        if (y < 0)
            return x == 1 ? 1 : x == -1 ? (y % 2 == 0 ? 1 : -1) : 0;
        uint64_t power = 1;
        for (int64_t i = 0; i < y; i++)
            power *= (uint64_t)x;
        return (int64_t)power;
    }
    default:
        return 0;
    }
}

static void test_int8_kernels_are_exact_for_all_pairs(void **state)
{
    (void)state;
    static const int kernels[] = {GRD_BINARY_HIDDEN_ADD,
                                  GRD_BINARY_HIDDEN_SUB,
                                  GRD_BINARY_MUL,
                                  GRD_BINARY_HIDDEN_DIV_TRUNC,
                                  GRD_BINARY_HIDDEN_DIV_FLOOR,
                                  GRD_BINARY_REMAINDER,
                                  GRD_BINARY_FMOD,
                                  GRD_BINARY_MAXIMUM,
                                  GRD_BINARY_MINIMUM,
                                  GRD_BINARY_BITWISE_AND,
                                  GRD_BINARY_BITWISE_OR,
                                  GRD_BINARY_BITWISE_XOR,
                                  GRD_BINARY_BITWISE_LEFT_SHIFT,
                                  GRD_BINARY_BITWISE_RIGHT_SHIFT,
                                  GRD_BINARY_HIDDEN_POW};
    for (int level = 0; table_of_level(level) != NULL; level++)
        for (int k = 0; k < (int)(sizeof kernels / sizeof *kernels); k++) {
            int8_t x[65536], y[65536], z[65536];
            for (int i = 0; i < 65536; i++) {
                x[i] = (int8_t)(i & 255);
                y[i] = (int8_t)(i >> 8);
            }
            call_map(&table_of_level(level)->binary[GRD_INT8][kernels[k]], 65536, (char *[]){(char *)z, (char *)x, (char *)y},
                     (int64_t[]){1, 1, 1}, NULL);
            for (int i = 0; i < 65536; i++)
                if (z[i] != (int8_t)exact_int8(kernels[k], x[i], y[i]))
                    fail_msg("%s: kernel %d of %d and %d is %d", table_of_level(level)->isa, kernels[k], x[i], y[i], z[i]);
        }
}

static void test_int64_and_uint64_edge_cases(void **state)
{
    (void)state;
    for (int level = 0; table_of_level(level) != NULL; level++) {
        const struct grd_map_kernel *const row = table_of_level(level)->binary[GRD_INT64];
        int64_t x[] = {INT64_MIN, INT64_MIN, INT64_MAX, 5}, y[] = {-1, 0, 2, 64}, z[4];
        char *data[] = {(char *)z, (char *)x, (char *)y};
        const int64_t strides[] = {8, 8, 8};
        call_map(&row[GRD_BINARY_HIDDEN_DIV_TRUNC], 4, data, strides, NULL);
        assert_memory_equal(z, ((int64_t[]){INT64_MIN, 0, INT64_MAX / 2, 0}), sizeof z);
        call_map(&row[GRD_BINARY_HIDDEN_DIV_FLOOR], 4, data, strides, NULL);
        assert_memory_equal(z, ((int64_t[]){INT64_MIN, 0, INT64_MAX / 2, 0}), sizeof z);
        call_map(&row[GRD_BINARY_REMAINDER], 4, data, strides, NULL);
        assert_memory_equal(z, ((int64_t[]){0, 0, 1, 5}), sizeof z);
        call_map(&row[GRD_BINARY_HIDDEN_ADD], 4, data, strides, NULL);
        assert_memory_equal(z, ((int64_t[]){INT64_MAX, INT64_MIN, INT64_MIN + 1, 69}), sizeof z);
        call_map(&row[GRD_BINARY_MUL], 4, data, strides, NULL);
        assert_memory_equal(z, ((int64_t[]){INT64_MIN, 0, -2, 320}), sizeof z);
        call_map(&row[GRD_BINARY_BITWISE_LEFT_SHIFT], 4, data, strides, NULL);
        assert_memory_equal(z, ((int64_t[]){0, INT64_MIN, -4, 0}), sizeof z);
        call_map(&row[GRD_BINARY_BITWISE_RIGHT_SHIFT], 4, data, strides, NULL);
        assert_memory_equal(z, ((int64_t[]){-1, INT64_MIN, INT64_MAX / 4, 0}), sizeof z);
        call_map(&row[GRD_BINARY_HIDDEN_ADD_SCALED], 4, data, strides, (grd_scalar[]){grd_int(-2)});
        assert_memory_equal(z, ((int64_t[]){INT64_MIN + 2, INT64_MIN, INT64_MAX - 4, -123}), sizeof z);
        /* Unsigned operands above INT64_MAX must not be treated as negative. */
        uint64_t a[] = {UINT64_MAX, UINT64_MAX - 1}, b[] = {2, UINT64_MAX}, c[2];
        char *wide[] = {(char *)c, (char *)a, (char *)b};
        call_map(&table_of_level(level)->binary[GRD_UINT64][GRD_BINARY_HIDDEN_DIV_FLOOR], 2, wide, strides, NULL);
        assert_memory_equal(c, ((uint64_t[]){UINT64_MAX / 2, 0}), sizeof c);
        call_map(&table_of_level(level)->binary[GRD_UINT64][GRD_BINARY_MAXIMUM], 2, wide, strides, NULL);
        assert_memory_equal(c, ((uint64_t[]){UINT64_MAX, UINT64_MAX}), sizeof c);
    }
}

static void test_maximum_fmax_and_clamp_treat_nan_as_specified(void **state)
{
    (void)state;
    for (int level = 0; table_of_level(level) != NULL; level++) {
        const struct grd_kernel_table *table = table_of_level(level);
        float x[] = {NAN, 1, NAN, 2, -1}, y[] = {1, NAN, NAN, 3, -2}, z[5];
        char *data[] = {(char *)z, (char *)x, (char *)y};
        const int64_t strides[] = {4, 4, 4};
        call_map(&table->binary[GRD_FLOAT32][GRD_BINARY_MAXIMUM], 5, data, strides, NULL);
        assert_true(isnan(z[0]) && isnan(z[1]) && isnan(z[2]) && z[3] == 3 && z[4] == -1);
        call_map(&table->binary[GRD_FLOAT32][GRD_BINARY_MINIMUM], 5, data, strides, NULL);
        assert_true(isnan(z[0]) && isnan(z[1]) && isnan(z[2]) && z[3] == 2 && z[4] == -2);
        call_map(&table->binary[GRD_FLOAT32][GRD_BINARY_FMAX], 5, data, strides, NULL);
        assert_true(z[0] == 1 && z[1] == 1 && isnan(z[2]) && z[3] == 3 && z[4] == -1);
        call_map(&table->binary[GRD_FLOAT32][GRD_BINARY_FMIN], 5, data, strides, NULL);
        assert_true(z[0] == 1 && z[1] == 1 && isnan(z[2]) && z[3] == 2 && z[4] == -2);
        float low[] = {0, NAN, 5, 0, 3}, high[] = {1, 1, 1, NAN, 2}, middle[] = {NAN, 1, 0, 1, 1};
        char *clamp[] = {(char *)z, (char *)middle, (char *)low, (char *)high};
        call_map(&table->ternary[GRD_FLOAT32][GRD_TERNARY_HIDDEN_CLAMP_BOTH], 5, clamp, (int64_t[]){4, 4, 4, 4}, NULL);
        assert_true(isnan(z[0]) && isnan(z[1]) && z[2] == 1 && isnan(z[3]) && z[4] == 2);
    }
}

static void test_floor_and_truncated_division_of_floats(void **state)
{
    (void)state;
    static const double x[] = {7, -7, 7, -7, 1, -1, 0.5, 6, 0, INFINITY, 5, 1e300},
                        y[] = {2, 2, -2, -2, 0, 0, 0.1, 0.1, -3, 2, INFINITY, 7};
    enum { N = sizeof x / sizeof *x };
    for (int level = 0; table_of_level(level) != NULL; level++) {
        double quotient[N], remainder[N], truncated[N];
        const int64_t strides[] = {8, 8, 8};
        const struct grd_map_kernel *const row = table_of_level(level)->binary[GRD_FLOAT64];
        call_map(&row[GRD_BINARY_HIDDEN_DIV_FLOOR], N, (char *[]){(char *)quotient, (char *)x, (char *)y}, strides, NULL);
        call_map(&row[GRD_BINARY_REMAINDER], N, (char *[]){(char *)remainder, (char *)x, (char *)y}, strides, NULL);
        call_map(&row[GRD_BINARY_HIDDEN_DIV_TRUNC], N, (char *[]){(char *)truncated, (char *)x, (char *)y}, strides, NULL);
        assert_true(quotient[0] == 3 && quotient[1] == -4 && quotient[2] == -4 && quotient[3] == 3);
        assert_true(quotient[4] == INFINITY && quotient[5] == -INFINITY && quotient[6] == 4 && quotient[7] == 59);
        assert_true(quotient[8] == 0 && signbit(quotient[8]) && isnan(quotient[9]) && quotient[10] == 0);
        assert_true(remainder[0] == 1 && remainder[1] == 1 && remainder[2] == -1 && remainder[3] == -1 && isnan(remainder[4]));
        assert_true(remainder[10] == 5 && truncated[1] == -3 && truncated[2] == -3 && truncated[7] == 60);
    }
}

static void test_pow_of_float32_is_accurate(void **state)
{
    (void)state;
    static const float specials[] = {0.0f,     -0.0f,    1,         -1,        2,    -2,        3,          -3,
                                     0.5f,     -0.5f,    INFINITY,  -INFINITY, NAN,  0x1p-149f, -0x1p-149f, 0x1.fffffep127f,
                                     16777216, 16777218, -16777215, 1e10f,     2.5f, -2.5f,     0.999999f,  1.000001f};
    enum { COUNT = sizeof specials / sizeof *specials, RANDOM = 100000 };
    static float x[COUNT * COUNT + RANDOM], y[COUNT * COUNT + RANDOM], z[COUNT * COUNT + RANDOM];
    for (int i = 0; i < COUNT * COUNT; i++) {
        x[i] = specials[i / COUNT];
        y[i] = specials[i % COUNT];
    }
    for (int i = COUNT * COUNT; i < COUNT * COUNT + RANDOM; i++) {
        x[i] = float_of_bits((uint32_t)random_bits());
        const double unit = (double)(random_bits() >> 11) * 0x1p-52 - 1;
        y[i] = i % 3 == 0 ? float_of_bits((uint32_t)random_bits()) : (float)(unit * 160 / log2(fabs(x[i])));
        if (i % 3 == 2)
            x[i] = fabsf(x[i]);
    }
    for (int level = 0; table_of_level(level) != NULL; level++) {
        call_map(&table_of_level(level)->binary[GRD_FLOAT32][GRD_BINARY_HIDDEN_POW], COUNT * COUNT + RANDOM,
                 (char *[]){(char *)z, (char *)x, (char *)y}, (int64_t[]){4, 4, 4}, NULL);
        for (int i = 0; i < COUNT * COUNT + RANDOM; i++) {
            const long double exact = powl(x[i], y[i]);
            const double error = distance(z[i], exact, (float)exact, 24, -125);
            if (!(error <= 0.6))
                fail_msg("%s: pow(%a, %a) = %a, %g ulps from %La", table_of_level(level)->isa, x[i], y[i], z[i], error, exact);
        }
    }
}

static void test_pow_of_float64_is_accurate(void **state)
{
    (void)state;
    static const double specials[] = {0.0,
                                      -0.0,
                                      1,
                                      -1,
                                      2,
                                      -2,
                                      3,
                                      -3,
                                      0.5,
                                      -0.5,
                                      INFINITY,
                                      -INFINITY,
                                      NAN,
                                      0x1p-1074,
                                      -0x1p-1074,
                                      0x1.fffffffffffffp1023,
                                      0x1p52,
                                      0x1p53,
                                      0x1.fffffffffffffp52,
                                      -0x1.fffffffffffffp52,
                                      0x1p52 + 1,
                                      0x1.0000000000001p0,
                                      0x1.fffffffffffffp-1,
                                      1e300};
    enum { SPECIALS = sizeof specials / sizeof *specials, COUNT = SPECIALS * SPECIALS + 40000 };
    static double x[COUNT], y[COUNT], z[COUNT];
    for (int i = 0; i < COUNT; i++) {
        const double unit = (double)(random_bits() >> 11) * 0x1p-52 - 1;
        const int exponent = i % 4 == 0 ? -30 : i % 4 == 1 ? -1 : (int)(random_bits() % 2000) - 1040;
        x[i] = i < SPECIALS * SPECIALS ? specials[i / SPECIALS] : i % 4 == 0 ? 1 + ldexp(unit, exponent) : ldexp(fabs(unit), exponent);
        y[i] = i < SPECIALS * SPECIALS ? specials[i % SPECIALS] : unit * 710 / fabs(log(x[i]));
    }
    for (int level = 0; table_of_level(level) != NULL; level++) {
        call_map(&table_of_level(level)->binary[GRD_FLOAT64][GRD_BINARY_HIDDEN_POW], COUNT, (char *[]){(char *)z, (char *)x, (char *)y},
                 (int64_t[]){8, 8, 8}, NULL);
        for (int i = 0; i < COUNT; i++) {
            const long double exact = powl(x[i], y[i]);
            if (!(distance(z[i], exact, (double)exact, 53, -1021) <= 0.8))
                fail_msg("%s: pow(%a, %a) = %a, not %La", table_of_level(level)->isa, x[i], y[i], z[i], exact);
        }
    }
}

/* Tests that fmod is exact for every quotient, with small and large quotients in one vector and with subnormal numbers. */
static void test_fmod_is_exact(void **state)
{
    (void)state;
    static const double specials[] = {0.0,
                                      -0.0,
                                      1,
                                      -1,
                                      INFINITY,
                                      -INFINITY,
                                      NAN,
                                      0x1p-1074,
                                      -0x1p-149,
                                      0x1.fffffep127,
                                      0x1.fffffffffffffp1023,
                                      -2.5,
                                      0x1p-1022,
                                      0x1p26,
                                      0x1.fffffffffffffp25,
                                      3};
    enum { SPECIALS = sizeof specials / sizeof *specials, COUNT = SPECIALS * SPECIALS + 40000 };
    static double x[COUNT], y[COUNT], z[COUNT];
    static float x_float[COUNT], y_float[COUNT], z_float[COUNT];
    for (int i = 0; i < COUNT; i++) {
        const bool special = i < SPECIALS * SPECIALS;
        const int spread = i < COUNT / 2 ? 8 : 2000;
        x[i] = special ? specials[i / SPECIALS]
                       : ldexp((double)(int64_t)random_bits(), -63 - spread / 2 + (int)(random_bits() % (unsigned)spread));
        y[i] = special ? specials[i % SPECIALS]
                       : ldexp((double)(int64_t)(random_bits() & ~UINT64_C(0) << random_bits() % 63),
                               -63 - spread / 2 + (int)(random_bits() % (unsigned)spread));
        x_float[i] = (float)x[i];
        y_float[i] = (float)y[i];
    }
    for (int level = 0; table_of_level(level) != NULL; level++) {
        const struct grd_kernel_table *table = table_of_level(level);
        call_map(&table->binary[GRD_FLOAT64][GRD_BINARY_FMOD], COUNT, (char *[]){(char *)z, (char *)x, (char *)y}, (int64_t[]){8, 8, 8},
                 NULL);
        call_map(&table->binary[GRD_FLOAT32][GRD_BINARY_FMOD], COUNT, (char *[]){(char *)z_float, (char *)x_float, (char *)y_float},
                 (int64_t[]){4, 4, 4}, NULL);
        for (int i = 0; i < COUNT; i++) {
            const double exact = fmod(x[i], y[i]);
            const float exact_float = fmodf(x_float[i], y_float[i]);
            if (!(z[i] == exact && !signbit(z[i]) == !signbit(exact)) && !(isnan(z[i]) && isnan(exact)))
                fail_msg("%s: fmod(%a, %a) = %a, not %a", table->isa, x[i], y[i], z[i], exact);
            if (!(z_float[i] == exact_float && !signbit(z_float[i]) == !signbit(exact_float)) && !(isnan(z_float[i]) && isnan(exact_float)))
                fail_msg("%s: fmod(%a, %a) = %a, not %a", table->isa, x_float[i], y_float[i], z_float[i], exact_float);
        }
    }
}

/* Tests hypot and atan2 on points (x, y). The magnitudes of x and y are similar, very different or arbitrary. The squares of some coordinates
 * underflow or overflow. */
static void test_hypot_and_atan2_are_accurate(void **state)
{
    (void)state;
    static const double specials[] = {
        0.0, -0.0, 1, -1, INFINITY, -INFINITY, NAN, 0x1p-1074, -0x1p-149, 0x1.fffffep127, 0x1.fffffffffffffp1023, -2.5};
    enum { SPECIALS = sizeof specials / sizeof *specials, COUNT = SPECIALS * SPECIALS + 40000 };
    static double x[COUNT], y[COUNT], z[COUNT];
    static float x_float[COUNT], y_float[COUNT], z_float[COUNT];
    for (int i = 0; i < COUNT; i++) {
        const int spread = i % 4 == 0 ? 4 : i % 4 == 1 ? 60 : 1074, base = i % 4 == 3 ? -1070 : 0;
        x[i] = i < SPECIALS * SPECIALS ? specials[i / SPECIALS]
                                       : ldexp((double)(int64_t)random_bits(), base - 63 + (int)(random_bits() % (unsigned)spread));
        y[i] = i < SPECIALS * SPECIALS ? specials[i % SPECIALS]
                                       : ldexp((double)(int64_t)random_bits(), base - 63 + (int)(random_bits() % (unsigned)spread));
        x_float[i] = (float)x[i];
        y_float[i] = (float)y[i];
    }
    static const int kernels[] = {GRD_BINARY_HYPOT, GRD_BINARY_ATAN2};
    static long double (*const functions[])(long double, long double) = {hypotl, atan2l};
    for (int level = 0; table_of_level(level) != NULL; level++)
        for (int k = 0; k < 2; k++) {
            const struct grd_kernel_table *table = table_of_level(level);
            call_map(&table->binary[GRD_FLOAT64][kernels[k]], COUNT, (char *[]){(char *)z, (char *)x, (char *)y}, (int64_t[]){8, 8, 8},
                     NULL);
            call_map(&table->binary[GRD_FLOAT32][kernels[k]], COUNT, (char *[]){(char *)z_float, (char *)x_float, (char *)y_float},
                     (int64_t[]){4, 4, 4}, NULL);
            for (int i = 0; i < COUNT; i++) {
                const long double exact = functions[k](x[i], y[i]), exact_float = functions[k](x_float[i], y_float[i]);
                if (!(distance(z[i], exact, (double)exact, 53, -1021) <= 0.8))
                    fail_msg("%s: kernel %d of %a, %a: %a, not %La", table->isa, kernels[k], x[i], y[i], z[i], exact);
                if (!(distance(z_float[i], exact_float, (float)exact_float, 24, -125) <= (k == 0 ? 0.501 : 1)))
                    fail_msg("%s: kernel %d of %a, %a: %a, not %La", table->isa, kernels[k], x_float[i], y_float[i], z_float[i],
                             exact_float);
            }
        }
}

static void test_complex_products_quotients_and_powers(void **state)
{
    (void)state;
    for (int level = 0; table_of_level(level) != NULL; level++) {
        const struct grd_map_kernel *const row = table_of_level(level)->binary[GRD_COMPLEX128];
        double x[] = {1, 2, 1e300, 1e300, 1, 0, 0, 0}, y[] = {3, -4, 1e300, 1e300, 0, 0, 0, 0}, z[8];
        char *data[] = {(char *)z, (char *)x, (char *)y};
        const int64_t strides[] = {16, 16, 16};
        call_map(&row[GRD_BINARY_MUL], 1, data, strides, NULL);
        assert_true(z[0] == 11 && z[1] == 2);
        call_map(&row[GRD_BINARY_HIDDEN_DIV_TRUE], 4, data, strides, NULL);
        assert_true(fabs(z[0] + 0.2) < 1e-15 && fabs(z[1] - 0.4) < 1e-15 && z[2] == 1 && z[3] == 0);
        assert_true(z[4] == INFINITY && isnan(z[5]) && isnan(z[6]) && isnan(z[7]));
        call_map(&row[GRD_BINARY_HIDDEN_POW], 4, data, strides, NULL);
        assert_true(z[4] == 1 && z[5] == 0 && z[6] == 1 && z[7] == 0);
        call_map(&row[GRD_BINARY_HIDDEN_ADD_SCALED], 1, data, strides, (grd_scalar[]){grd_complex_number(0, 1)});
        assert_true(z[0] == 5 && z[1] == 5);
    }
}

static void test_lerp_addcmul_addcdiv_and_where(void **state)
{
    (void)state;
    for (int level = 0; table_of_level(level) != NULL; level++) {
        const struct grd_kernel_table *table = table_of_level(level);
        double x[] = {1, 2}, end[] = {3, 6}, weight[] = {0.25, 1}, z[2];
        char *data[] = {(char *)z, (char *)x, (char *)end, (char *)weight};
        const int64_t strides[] = {8, 8, 8, 8};
        call_map(&table->ternary[GRD_FLOAT64][GRD_TERNARY_LERP], 2, data, strides, NULL);
        assert_true(z[0] == 1.5 && z[1] == 6);
        call_map(&table->ternary[GRD_FLOAT64][GRD_TERNARY_HIDDEN_ADDCMUL], 2, data, strides, (grd_scalar[]){grd_int(2)});
        assert_true(z[0] == 2.5 && z[1] == 14);
        call_map(&table->ternary[GRD_FLOAT64][GRD_TERNARY_HIDDEN_ADDCDIV], 2, data, strides, (grd_scalar[]){grd_float(0.5)});
        assert_true(z[0] == 7 && z[1] == 5);
        uint8_t mask[] = {0, 1};
        data[1] = (char *)mask;
        call_map(&table->ternary[GRD_FLOAT64][GRD_TERNARY_HIDDEN_WHERE], 2, data, (int64_t[]){8, 1, 8, 8}, NULL);
        assert_true(z[0] == 0.25 && z[1] == 6);
    }
}

static void test_bool_kernels_compute_logic(void **state)
{
    (void)state;
    for (int level = 0; table_of_level(level) != NULL; level++) {
        const struct grd_map_kernel *const row = table_of_level(level)->binary[GRD_BOOL];
        uint8_t x[] = {0, 0, 1, 1}, y[] = {0, 1, 0, 1}, z[4];
        char *data[] = {(char *)z, (char *)x, (char *)y};
        const int64_t strides[] = {1, 1, 1};
        call_map(&row[GRD_BINARY_HIDDEN_ADD], 4, data, strides, NULL);
        assert_memory_equal(z, ((uint8_t[]){0, 1, 1, 1}), 4);
        call_map(&row[GRD_BINARY_MUL], 4, data, strides, NULL);
        assert_memory_equal(z, ((uint8_t[]){0, 0, 0, 1}), 4);
        call_map(&row[GRD_BINARY_LT], 4, data, strides, NULL);
        assert_memory_equal(z, ((uint8_t[]){0, 1, 0, 0}), 4);
        call_map(&row[GRD_BINARY_LOGICAL_XOR], 4, data, strides, NULL);
        assert_memory_equal(z, ((uint8_t[]){0, 1, 1, 0}), 4);
        assert_null(row[GRD_BINARY_HIDDEN_SUB].block);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_results_do_not_depend_on_strides_or_aliasing),
        cmocka_unit_test(test_bfloat16_kernels_equal_float32_with_rounding),
        cmocka_unit_test(test_int8_kernels_are_exact_for_all_pairs),
        cmocka_unit_test(test_int64_and_uint64_edge_cases),
        cmocka_unit_test(test_maximum_fmax_and_clamp_treat_nan_as_specified),
        cmocka_unit_test(test_floor_and_truncated_division_of_floats),
        cmocka_unit_test(test_pow_of_float32_is_accurate),
        cmocka_unit_test(test_pow_of_float64_is_accurate),
        cmocka_unit_test(test_hypot_and_atan2_are_accurate),
        cmocka_unit_test(test_fmod_is_exact),
        cmocka_unit_test(test_complex_products_quotients_and_powers),
        cmocka_unit_test(test_lerp_addcmul_addcdiv_and_where),
        cmocka_unit_test(test_bool_kernels_compute_logic),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
