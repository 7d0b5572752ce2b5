/* Tests unary kernels at every instruction-set level: accuracy compared with libm, special values, all float16 and bfloat16 numbers, integers, and
 * equal bits for contiguous, strided and in-place operands. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the headers above but does not include them. */
#include <cmocka.h>
#include <math.h>
#include <stdio.h>

#include "base/half.h"
#include "kernel_levels.h"

static long double sigmoid(long double x)
{
    return 1 / (1 + expl(-x));
}

static long double silu(long double x)
{
    return x / (1 + expl(-x));
}

/* Reference for gelu, x * (1 + erf(x / sqrt(2))) / 2. It uses erfc, because 1 + erf loses accuracy by cancellation for negative x. */
static long double gelu(long double x)
{
    const long double tail = 0.5L * erfcl(fabsl(x) * sqrtl(0.5L));
    return x < 0 ? x * tail : x * (1 - tail);
}

static long double gelu_tanh(long double x)
{
    return x / (1 + expl(-2 * sqrtl(2 / acosl(-1)) * (x + 0.044715L * x * x * x)));
}

static long double reciprocal(long double x)
{
    return 1 / x;
}

static long double rsqrt(long double x)
{
    return 1 / sqrtl(x);
}

static long double square(long double x)
{
    return x * x;
}

static const struct function {
    const char *name;
    int kernel;
    long double (*exact)(long double x);
    double float_ulps, double_ulps;
    double range; /* largest magnitude of the float64 arguments tested */
} functions[] = {
    {"exp", GRD_UNARY_EXP, expl, 1, 1.5, 800},
    {"exp2", GRD_UNARY_EXP2, exp2l, 1.1, 1.5, 1100},
    {"expm1", GRD_UNARY_EXPM1, expm1l, 1.6, 2.5, 800},
    {"log", GRD_UNARY_LOG, logl, 1, 1.2, INFINITY},
    {"log2", GRD_UNARY_LOG2, log2l, 1.1, 1.2, INFINITY},
    {"log10", GRD_UNARY_LOG10, log10l, 1, 1, INFINITY},
    {"log1p", GRD_UNARY_LOG1P, log1pl, 1.5, 1.5, INFINITY},
    {"sin", GRD_UNARY_SIN, sinl, 1, 1, INFINITY},
    {"cos", GRD_UNARY_COS, cosl, 1, 1, INFINITY},
    {"tan", GRD_UNARY_TAN, tanl, 1.5, 2.2, INFINITY},
    {"asin", GRD_UNARY_ASIN, asinl, 1.5, 1.5, 1.1},
    {"acos", GRD_UNARY_ACOS, acosl, 1.5, 1.5, 1.1},
    {"tanh", GRD_UNARY_TANH, tanhl, 1.3, 3, 30},
    {"sinh", GRD_UNARY_SINH, sinhl, 1.7, 1.7, 720},
    {"cosh", GRD_UNARY_COSH, coshl, 1.7, 1.7, 720},
    {"lgamma", GRD_UNARY_LGAMMA, lgammal, 0.7, 8, INFINITY},
    {"atan", GRD_UNARY_ATAN, atanl, 1.5, 2, INFINITY},
    {"asinh", GRD_UNARY_ASINH, asinhl, 0.51, 2.5, INFINITY},
    {"acosh", GRD_UNARY_ACOSH, acoshl, 0.51, 2.5, INFINITY},
    {"atanh", GRD_UNARY_ATANH, atanhl, 0.51, 2.5, 1.1},
    {"erfc", GRD_UNARY_ERFC, erfcl, 2, 4, 30},
    {"sigmoid", GRD_UNARY_SIGMOID, sigmoid, 2, 3, 800},
    {"silu", GRD_UNARY_SILU, silu, 2, 3.5, 800},
    {"erf", GRD_UNARY_ERF, erfl, 1, 2, 8},
    {"gelu", GRD_UNARY_HIDDEN_GELU_ERF, gelu, 4.5, 4, 40},
    {"gelu_tanh", GRD_UNARY_HIDDEN_GELU_TANH, gelu_tanh, 2, 4, 40},
    {"sqrt", GRD_UNARY_SQRT, sqrtl, 0.5, 0.501, INFINITY},
    {"rsqrt", GRD_UNARY_RSQRT, rsqrt, 1.5, 1.5, INFINITY},
    {"reciprocal", GRD_UNARY_RECIPROCAL, reciprocal, 0.5, 0.501, INFINITY},
    {"square", GRD_UNARY_HIDDEN_SQUARE, square, 0.5, 0.501, INFINITY},
    {"floor", GRD_UNARY_FLOOR, floorl, 0, 0, INFINITY},
    {"ceil", GRD_UNARY_CEIL, ceill, 0, 0, INFINITY},
    {"round", GRD_UNARY_ROUND, rintl, 0, 0, INFINITY},
    {"trunc", GRD_UNARY_TRUNC, truncl, 0, 0, INFINITY},
    {"abs", GRD_UNARY_HIDDEN_ABS, fabsl, 0, 0, INFINITY},
};

enum { CHUNK = 256 };

static void check_float(const struct grd_kernel_table *table, const struct function *function, float *x, int n)
{
    float y[CHUNK];
    call_map(&table->unary[GRD_FLOAT32][function->kernel], n, (char *[]){(char *)y, (char *)x}, (int64_t[]){4, 4}, NULL);
    for (int i = 0; i < n; i++) {
        const long double exact = function->exact(x[i]);
        const double error = distance(y[i], exact, (float)exact, 24, -125);
        if (!(error <= function->float_ulps))
            fail_msg("%s: %s(%a) = %a, %g ulps from %La", table->isa, function->name, x[i], y[i], error, exact);
    }
}

static void check_double(const struct grd_kernel_table *table, const struct function *function, double *x, int n)
{
    double y[CHUNK];
    call_map(&table->unary[GRD_FLOAT64][function->kernel], n, (char *[]){(char *)y, (char *)x}, (int64_t[]){8, 8}, NULL);
    for (int i = 0; i < n; i++) {
        const long double exact = function->exact(x[i]);
        const double error = distance(y[i], exact, (double)exact, 53, -1021);
        if (!(error <= function->double_ulps))
            fail_msg("%s: %s(%a) = %a, %g ulps from %La", table->isa, function->name, x[i], y[i], error, exact);
    }
}

/* Tests every 100003rd bit pattern of float32. These patterns include every exponent and both signs. */
static void test_float32_kernels_are_accurate(void **state)
{
    (void)state;
    for (int level = 0; table_of_level(level) != NULL; level++)
        for (int f = 0; f < (int)(sizeof functions / sizeof *functions); f++)
            for (uint64_t bits = 0; bits < 1ull << 32;) {
                float x[CHUNK];
                int n = 0;
                for (; n < CHUNK && bits < 1ull << 32; bits += 100003)
                    x[n++] = float_of_bits((uint32_t)bits);
                check_float(table_of_level(level), &functions[f], x, n);
            }
}

static void test_float64_kernels_are_accurate(void **state)
{
    (void)state;
    for (int level = 0; table_of_level(level) != NULL; level++)
        for (int f = 0; f < (int)(sizeof functions / sizeof *functions); f++)
            for (int round = 0; round < 80; round++) {
                double x[CHUNK];
                for (int i = 0; i < CHUNK; i++) {
                    const double unit = (double)(random_bits() >> 11) * 0x1p-52 - 1;
                    const double any = ldexp(unit, (int)(random_bits() % 2000) - 1000), limit = functions[f].range;
                    x[i] = round % 4 == 0   ? (fabs(any) <= limit ? any : unit)
                           : round % 4 == 1 ? unit * (limit < 2 ? limit : 2)
                           : round % 4 == 2 ? unit * (limit < 40 ? limit : 40)
                                            : unit * (limit < 1e6 ? limit : 1e6);
                }
                check_double(table_of_level(level), &functions[f], x, CHUNK);
            }
}

/* Returns an x for which 2^k divides x^2 - c. c must be 1 modulo 8. Each step makes x^2 - c divisible by the next power of 2. */
static uint64_t root_modulo(uint64_t c, int k)
{
    uint64_t x = 1;
    for (int bit = 3; bit < k; bit++)
        if ((x * x - c) >> bit & 1)
            x += 1ull << (bit - 1);
    return x;
}

static void expect_roots(double *x, int n)
{
    for (int level = 0; table_of_level(level) != NULL; level++) {
        const struct grd_kernel_table *table = table_of_level(level);
        double y[CHUNK];
        call_map(&table->unary[GRD_FLOAT64][GRD_UNARY_SQRT], n, (char *[]){(char *)y, (char *)x}, (int64_t[]){8, 8}, NULL);
        for (int i = 0; i < n; i++)
            if (y[i] != sqrt(x[i]))
                fail_msg("%s: sqrt(%a) = %a, not %a", table->isa, x[i], y[i], sqrt(x[i]));
    }
}

/* Tests numbers whose square roots are closest to the midpoint of two neighbouring doubles. An inexact root could be rounded to the wrong double.
 * If the two doubles are scaled to integers of 53 bits, their midpoint is m / 2 for an odd integer m of 54 bits. The number (m^2 - c) / 4 is
 * tested for small c, because its root is close to the midpoint. This number fits into a double only if m^2 - c, which has 107 or 108 bits, is
 * divisible by 2^54 or 2^55. In the code `middle` is m. */
static void test_sqrt_rounds_hard_cases_correctly(void **state)
{
    (void)state;
    double x[CHUNK];
    int n = 0, all = 0;
    for (int64_t c = -4095; c < 4096; c += 8)
        for (int k = 54; k <= 55; k++)
            for (int other = 0; other < 4; other++) {
                const uint64_t root = root_modulo((uint64_t)c, k), turned = other & 1 ? -root : root,
                               middle = (turned + (other & 2 ? 1ull << (k - 1) : 0)) & ((1ull << k) - 1);
                const unsigned __int128 number = ((unsigned __int128)middle * middle - (unsigned __int128)(__int128)c) >> 2;
                if (middle >> 53 != 1 || number >> (k + 50) != 1)
                    continue;
                x[n++] = ldexp((double)number, -104);
                all++;
                if (n == CHUNK) {
                    expect_roots(x, n);
                    n = 0;
                }
            }
    expect_roots(x, n);
    assert_int_equal(all, 1458);
}

static void test_kernels_are_accurate_at_special_values(void **state)
{
    (void)state;
    static const double specials[] = {
        0.0, -0.0, INFINITY, NAN,     0x1p-1074, -0x1p-1074, 0x1p-149,      0x1p-1022,      0.5,  -0.5,  1.5,
        2.5, 1,    -1,       0x1p-30, -0x1p-30,  0x1p20,     0x1.000001p20, 0x1.fffffep127, 1e22, -1e22, -1e6};
    for (int level = 0; table_of_level(level) != NULL; level++)
        for (int f = 0; f < (int)(sizeof functions / sizeof *functions); f++)
            for (int i = 0; i < (int)(sizeof specials / sizeof *specials); i++) {
                double x = specials[i];
                float narrow = (float)x;
                check_double(table_of_level(level), &functions[f], &x, 1);
                check_float(table_of_level(level), &functions[f], &narrow, 1);
            }
}

/* True for the kernels neg and abs. They do not convert a float16 or bfloat16 number x to float32 but change only its sign bit, even if x is NaN.
 * Stores the expected bits in *ret. */
static bool by_bits(int kernel, uint16_t x, uint16_t *ret)
{
    *ret = kernel == GRD_UNARY_NEG ? x ^ 0x8000 : x & 0x7fff;
    return kernel == GRD_UNARY_NEG || kernel == GRD_UNARY_HIDDEN_ABS;
}

/* For every float16 and bfloat16 number, the result must be the rounded result of the float32 kernel. */
static void test_half_kernels_equal_float32_with_rounding(void **state)
{
    (void)state;
    static uint16_t x[65536], y[65536];
    static float wide[65536];
    for (int i = 0; i < 65536; i++)
        x[i] = (uint16_t)i;
    for (int level = 0; table_of_level(level) != NULL; level++)
        for (int bfloat = 0; bfloat < 2; bfloat++)
            for (int kernel = 0; kernel < GRD_UNARY_COUNT; kernel++) {
                const struct grd_kernel_table *table = table_of_level(level);
                const struct grd_map_kernel *map = &table->unary[GRD_FLOAT32][kernel];
                if (map->block == NULL || kernel == GRD_UNARY_ISNAN || kernel == GRD_UNARY_ISINF || kernel == GRD_UNARY_ISFINITE ||
                    kernel == GRD_UNARY_LOGICAL_NOT)
                    continue;
                const grd_scalar params[] = {grd_float(1.25), grd_int(20), grd_float(0.75)};
                const struct grd_map half = map_of(table->unary, bfloat ? GRD_BFLOAT16 : GRD_FLOAT16, kernel, params);
                grd_map(65536, (char *[]){(char *)y, (char *)x}, (int64_t[]){2, 2}, &half);
                for (int i = 0; i < 65536; i++)
                    wide[i] = bfloat ? grd_from_bfloat16(x[i]) : grd_from_float16(x[i]);
                call_map(map, 65536, (char *[]){(char *)wide, (char *)wide}, (int64_t[]){4, 4}, params);
                for (int i = 0; i < 65536; i++) {
                    uint16_t expected;
                    if (!by_bits(kernel, x[i], &expected))
                        expected = bfloat ? grd_to_bfloat16(wide[i]) : grd_to_float16(wide[i]);
                    if (y[i] != expected)
                        fail_msg("%s: kernel %d of %#x is %#x, float gives %a", table->isa, kernel, i, y[i], wide[i]);
                }
            }
}

static void test_results_do_not_depend_on_strides_or_aliasing(void **state)
{
    (void)state;
    const grd_scalar params[] = {grd_float(1.25), grd_int(3), grd_float(0.75)};
    for (int level = 0; table_of_level(level) != NULL; level++)
        for (grd_dtype dtype = GRD_BOOL; dtype <= GRD_COMPLEX128; dtype++)
            for (int kernel = 0; kernel < GRD_UNARY_COUNT; kernel++) {
                const struct grd_map map = map_of(table_of_level(level)->unary, dtype, kernel, params);
                if (map.kernel->block == NULL)
                    continue;
                const bool to_bool = kernel == GRD_UNARY_ISNAN || kernel == GRD_UNARY_ISINF || kernel == GRD_UNARY_ISFINITE ||
                                     kernel == GRD_UNARY_LOGICAL_NOT;
                if (!map_is_same_on_every_path(&map, 1, (grd_dtype[]){to_bool ? GRD_BOOL : dtype, dtype}))
                    fail_msg("%s: kernel %d of %s", table_of_level(level)->isa, kernel, grd_dtype_name(dtype));
            }
}

static void test_integer_kernels_at_edge_values(void **state)
{
    (void)state;
    for (int level = 0; table_of_level(level) != NULL; level++) {
        const struct grd_kernel_table *table = table_of_level(level);
        int32_t x[] = {INT32_MIN, -5, 0, 7, INT32_MAX}, y[5];
        char *data[] = {(char *)y, (char *)x};
        const int64_t strides[] = {4, 4};
        call_map(&table->unary[GRD_INT32][GRD_UNARY_HIDDEN_ABS], 5, data, strides, NULL);
        assert_memory_equal(y, ((int32_t[]){INT32_MIN, 5, 0, 7, INT32_MAX}), sizeof y);
        call_map(&table->unary[GRD_INT32][GRD_UNARY_NEG], 5, data, strides, NULL);
        assert_memory_equal(y, ((int32_t[]){INT32_MIN, 5, 0, -7, -INT32_MAX}), sizeof y);
        call_map(&table->unary[GRD_INT32][GRD_UNARY_SIGN], 5, data, strides, NULL);
        assert_memory_equal(y, ((int32_t[]){-1, -1, 0, 1, 1}), sizeof y);
        call_map(&table->unary[GRD_INT32][GRD_UNARY_HIDDEN_SQUARE], 5, data, strides, NULL);
        assert_memory_equal(y, ((int32_t[]){0, 25, 0, 49, 1}), sizeof y);
        call_map(&table->unary[GRD_INT32][GRD_UNARY_RELU], 5, data, strides, NULL);
        assert_memory_equal(y, ((int32_t[]){0, 0, 0, 7, INT32_MAX}), sizeof y);
        call_map(&table->unary[GRD_UINT32][GRD_UNARY_NEG], 5, data, strides, NULL);
        assert_memory_equal(y, ((int32_t[]){INT32_MIN, 5, 0, -7, -INT32_MAX}), sizeof y);
        call_map(&table->unary[GRD_INT32][GRD_UNARY_BITWISE_NOT], 5, data, strides, NULL);
        assert_memory_equal(y, ((int32_t[]){INT32_MAX, 4, -1, -8, INT32_MIN}), sizeof y);
        assert_null(table->unary[GRD_INT32][GRD_UNARY_EXP].block);
        assert_null(table->unary[GRD_BOOL][GRD_UNARY_NEG].block);
    }
}

static void test_sign_relu_and_softplus_at_edge_values(void **state)
{
    (void)state;
    for (int level = 0; table_of_level(level) != NULL; level++) {
        const struct grd_kernel_table *table = table_of_level(level);
        float x[] = {NAN, -0.0f, -INFINITY, INFINITY, -2.5f, 30}, y[6];
        char *data[] = {(char *)y, (char *)x};
        const int64_t strides[] = {4, 4};
        call_map(&table->unary[GRD_FLOAT32][GRD_UNARY_SIGN], 6, data, strides, NULL);
        assert_memory_equal(y, ((float[]){0, 0, -1, 1, -1, 1}), sizeof y);
        call_map(&table->unary[GRD_FLOAT32][GRD_UNARY_RELU], 6, data, strides, NULL);
        assert_true(isnan(y[0]) && y[1] == 0 && signbit(y[1]) && y[2] == 0 && y[3] == INFINITY && y[4] == 0 && y[5] == 30);
        call_map(&table->unary[GRD_FLOAT32][GRD_UNARY_SOFTPLUS], 6, data, strides, (grd_scalar[]){grd_int(1), grd_int(20)});
        assert_true(isnan(y[0]) && y[2] == 0 && y[3] == INFINITY && y[5] == 30 && fabsf(y[1] - logf(2)) < 1e-7f);
        call_map(&table->unary[GRD_FLOAT32][GRD_UNARY_SOFTPLUS], 6, data, strides, (grd_scalar[]){grd_float(2), grd_int(20)});
        assert_true(fabsf(y[4] - log1pf(expf(-5)) / 2) < 1e-9f);
        call_map(&table->unary[GRD_FLOAT32][GRD_UNARY_LEAKY_RELU], 6, data, strides, (grd_scalar[]){grd_float(0.5)});
        assert_true(isnan(y[0]) && y[4] == -1.25f && y[5] == 30);
    }
}

static void test_complex_sqrt_square_reciprocal_and_exp(void **state)
{
    (void)state;
    for (int level = 0; table_of_level(level) != NULL; level++) {
        const struct grd_kernel_table *table = table_of_level(level);
        double x[] = {3, 4}, y[2];
        char *data[] = {(char *)y, (char *)x};
        const int64_t strides[] = {16, 16};
        call_map(&table->unary[GRD_COMPLEX128][GRD_UNARY_SQRT], 1, data, strides, NULL);
        assert_true(y[0] == 2 && y[1] == 1);
        call_map(&table->unary[GRD_COMPLEX128][GRD_UNARY_HIDDEN_SQUARE], 1, data, strides, NULL);
        assert_true(y[0] == -7 && y[1] == 24);
        call_map(&table->unary[GRD_COMPLEX128][GRD_UNARY_RECIPROCAL], 1, data, strides, NULL);
        assert_true(fabs(y[0] - 0.12) < 1e-16 && fabs(y[1] + 0.16) < 1e-16);
        call_map(&table->unary[GRD_COMPLEX128][GRD_UNARY_HIDDEN_CONJ_PHYSICAL], 1, data, strides, NULL);
        assert_true(y[0] == 3 && y[1] == -4);
        call_map(&table->unary[GRD_COMPLEX128][GRD_UNARY_EXP], 1, data, strides, NULL);
        assert_true(fabs(y[0] - exp(3) * cos(4)) < 1e-14 && fabs(y[1] - exp(3) * sin(4)) < 1e-14);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_float32_kernels_are_accurate),
        cmocka_unit_test(test_float64_kernels_are_accurate),
        cmocka_unit_test(test_kernels_are_accurate_at_special_values),
        cmocka_unit_test(test_sqrt_rounds_hard_cases_correctly),
        cmocka_unit_test(test_half_kernels_equal_float32_with_rounding),
        cmocka_unit_test(test_results_do_not_depend_on_strides_or_aliasing),
        cmocka_unit_test(test_integer_kernels_at_edge_values),
        cmocka_unit_test(test_sign_relu_and_softplus_at_edge_values),
        cmocka_unit_test(test_complex_sqrt_square_reciprocal_and_exp),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
