/* The streams of random numbers: values recorded from PyTorch 2.13 on a CPU, seed 7. */
#include <math.h>
#include <string.h>

#include "support.h"

static const float rand_7[] = {0x1.11e15e0000000p-1f, 0x1.9726200000000p-3f, 0x1.5184320000000p-1f, 0x1.5053ec0000000p-1f,
                               0x1.dcb2180000000p-3f, 0x1.b3434c0000000p-2f, 0x1.a81cb80000000p-3f};
static const double uniform_double[] = {-0x1.d084865a714b0p-3, -0x1.285062ebf980cp-2, 0x1.8bb6a45226befp+2, 0x1.f637a1a54ef35p+1};
static const float randn_5[] = {-0x1.2ca2e80000000p-3f, 0x1.92811c0000000p-1f, 0x1.e4c5ce0000000p-1f, -0x1.1d45a60000000p+0f,
                                0x1.b0d7a00000000p+0f};
static const float randn_19[] = {-0x1.a3e8ac0000000p-1f, 0x1.9520560000000p-2f,  0x1.cc3dbc0000000p-1f,  -0x1.51ee980000000p-2f,
                                 0x1.966a5c0000000p-3f,  0x1.906bd40000000p-1f,  0x1.0a02f60000000p+0f,  -0x1.72f3120000000p-1f,
                                 -0x1.b2a4260000000p-1f, -0x1.3788b00000000p+0f, -0x1.4bdd4a0000000p-4f, -0x1.61871c0000000p-2f,
                                 -0x1.07de820000000p+1f, 0x1.5923ba0000000p-1f,  -0x1.52c6ca0000000p+0f, -0x1.5c19d20000000p+0f,
                                 -0x1.bbc0500000000p-1f, -0x1.20c57c0000000p-1f, -0x1.073a2a0000000p+1f};
static const double randn_double_17[] = {0x1.0f6e8d3a53973p-4,  -0x1.2a06c67e33848p-2, 0x1.d5026572adeb7p-2,  0x1.b17a7806ce055p+0,
                                         0x1.751bc44dd094ap+0,  0x1.eea5a21096e4bp+0,  -0x1.711ab8c9c9497p+0, 0x1.749d011ade7a0p-1,
                                         -0x1.502a937321611p+0, -0x1.36f1b9fa84205p+1, -0x1.3790c8dcbdd93p-3, -0x1.586ff8c3a394bp+1,
                                         0x1.bdfa986709c28p+0,  -0x1.0c449e70ad4cdp-1, -0x1.22b12c8c0e81cp-2, 0x1.cf6ff3d1fa92fp-2,
                                         -0x1.aaf04bea1dd97p+0};
static const float transposed[] = {0x1.11e15e0000000p-1f, 0x1.5184320000000p-1f, 0x1.dcb2180000000p-3f,
                                   0x1.9726200000000p-3f, 0x1.5053ec0000000p-1f, 0x1.b3434c0000000p-2f};
static const double exponential[] = {0x1.bf57d9f50ae0ap-3, 0x1.b49c6ca0fce22p-3, 0x1.521ee05a82bcep+0, 0x1.6cecdbbbab9bdp-1};
static const int64_t bernoulli[] = {1, 1, 0, 0, 0, 0, 1, 0, 0, 0, 1, 1};
static const int64_t randint_9[] = {-4, 0, 3, -2, 0, 2, 4, 1, 0};
static const int64_t randint_wide[] = {752595690692, 108744157686, 291964244179};
static const int64_t randperm_10[] = {5, 0, 3, 4, 1, 7, 9, 6, 8, 2};
static const int64_t random_int64[] = {1407639518939636932, 5163590386780219894};
static const int64_t multinomial_with[] = {1, 1, 3, 3, 3, 3};
static const int64_t multinomial_without[] = {1, 3, 0};
static const float mixed[] = {-0x1.2ca2e80000000p-3f, 0x1.92811c0000000p-1f,  0x1.e4c5ce0000000p-1f, 0x1.7615700000000p-2f,
                              0x1.b3d9720000000p-1f,  -0x1.1d45a60000000p+0f, 0x1.c870b20000000p-2f};
static const int64_t mixed_permutation[] = {2, 0, 1, 3};
static const float dropout[] = {0x1.5555560000000p+0f, 0x1.5555560000000p+0f, 0x0.0p+0f, 0x1.5555560000000p+0f, 0x0.0p+0f, 0x0.0p+0f,
                                0x1.5555560000000p+0f, 0x1.5555560000000p+0f};

static int seed(void **state)
{
    int failed = open_scope(state);
    grd_manual_seed(7);
    return failed;
}

/* Bit for bit. */
static void expect(grd_tensor *t, const void *values, size_t size, grd_dtype dtype)
{
    char got[512];
    assert_string_equal(grd_error_message(), "");
    assert_int_equal(grd_numel(t) * grd_dtype_size(dtype), (int64_t)size);
    grd_to_memory(t, got, dtype);
    assert_memory_equal(got, values, size);
}

#define EXPECT(t, values, dtype) expect((t), (values), sizeof(values), (dtype))

/* Functions of the C library stand behind these, which may differ in the last bit elsewhere. */
static void expect_close(grd_tensor *t, const double *values, int64_t n)
{
    double got[32];
    assert_string_equal(grd_error_message(), "");
    assert_int_equal(grd_numel(t), n);
    grd_to_memory(t, got, GRD_FLOAT64);
    for (int64_t i = 0; i < n; i++)
        assert_true(fabs(got[i] - values[i]) <= 4e-16 * fabs(values[i]));
}

static void test_uniform(void **state)
{
    (void)state;
    EXPECT(grd_rand(grd_dims(7)), rand_7, GRD_FLOAT32);
    grd_manual_seed(7);
    grd_tensor *wide = grd_empty(grd_dims(4), .dtype = GRD_FLOAT64);
    EXPECT(grd_uniform_(wide, .from = grd_float(-3.3), .to = grd_float(7.7)), uniform_double, GRD_FLOAT64);
}

static void test_strided_in_order_of_memory(void **state)
{
    (void)state;
    EXPECT(grd_uniform_(grd_t(grd_empty(grd_dims(3, 2)))), transposed, GRD_FLOAT32);
}

static void test_normal(void **state)
{
    (void)state;
    EXPECT(grd_randn(grd_dims(5)), randn_5, GRD_FLOAT32);
    grd_manual_seed(7);
    EXPECT(grd_randn(grd_dims(19)), randn_19, GRD_FLOAT32);
    grd_manual_seed(7);
    expect_close(grd_randn(grd_dims(17), .dtype = GRD_FLOAT64), randn_double_17, 17);
}

static void test_exponential(void **state)
{
    (void)state;
    expect_close(grd_exponential_(grd_empty(grd_dims(4), .dtype = GRD_FLOAT64), .lambd = grd_float(1.5)), exponential, 4);
}

static void test_integers(void **state)
{
    (void)state;
    EXPECT(grd_randint(-4, 5, grd_dims(9)), randint_9, GRD_INT64);
    grd_manual_seed(7);
    EXPECT(grd_randint(0, (int64_t)1 << 40, grd_dims(3)), randint_wide, GRD_INT64);
    grd_manual_seed(7);
    EXPECT(grd_randperm(10), randperm_10, GRD_INT64);
    grd_manual_seed(7);
    EXPECT(grd_random_(grd_empty(grd_dims(2), .dtype = GRD_INT64)), random_int64, GRD_INT64);
}

static void test_bernoulli(void **state)
{
    (void)state;
    EXPECT(grd_bernoulli_(grd_empty(grd_dims(12), .dtype = GRD_INT64), .p = grd_float(0.3)), bernoulli, GRD_INT64);
    grd_manual_seed(7);
    EXPECT(grd_dropout(grd_ones(grd_dims(8)), .p = grd_float(0.25)), dropout, GRD_FLOAT32);
    grd_tensor *x = grd_ones(grd_dims(3));
    assert_ptr_equal(grd_data(grd_dropout(x, .p = grd_float(0))), grd_data(x));
}

static void test_multinomial(void **state)
{
    (void)state;
    grd_tensor *p = grd_from_data((const float[]){0.1f, 0.2f, 0.3f, 0.4f}, grd_dims(4), GRD_FLOAT32);
    EXPECT(grd_multinomial(p, 6, .replacement = true), multinomial_with, GRD_INT64);
    grd_manual_seed(7);
    EXPECT(grd_multinomial(p, 3), multinomial_without, GRD_INT64);
}

static void test_one_stream_for_all(void **state)
{
    (void)state;
    float values[7];
    grd_to_memory(grd_randn(grd_dims(3)), values, GRD_FLOAT32);
    grd_to_memory(grd_rand(grd_dims(2)), values + 3, GRD_FLOAT32);
    grd_to_memory(grd_randn(grd_dims(2)), values + 5, GRD_FLOAT32);
    assert_memory_equal(values, mixed, sizeof values);
    EXPECT(grd_randperm(4), mixed_permutation, GRD_INT64);
}

static void test_own_generator(void **state)
{
    (void)state;
    grd_generator *generator = grd_generator_new(7);
    EXPECT(grd_rand(grd_dims(7), .generator = generator), rand_7, GRD_FLOAT32);
    EXPECT(grd_rand(grd_dims(7)), rand_7, GRD_FLOAT32);
    grd_generator_drop(generator);
}

static void test_errors_draw_nothing(void **state)
{
    (void)state;
    grd_tensor *x = grd_zeros(grd_dims(3)), *bytes = grd_zeros(grd_dims(3), .dtype = GRD_UINT8);
    grd_normal_(x, .std = grd_float(-1));
    expect_error(GRD_ERROR_RUNTIME, "normal: normal expects std >= 0.0, but found std -1");
    grd_uniform_(x, .from = grd_float(2), .to = grd_float(1));
    expect_error(GRD_ERROR_RUNTIME, "uniform: uniform_ expects to return a [from, to) range, but found from=2 > to=1");
    grd_random_(x, .from = grd_int(3), .to = grd_int(3));
    expect_error(GRD_ERROR_RUNTIME, "random: random_ expects 'from' to be less than 'to', but got from=3 >= to=3");
    grd_random_(bytes, .from = grd_int(0), .to = grd_int(257));
    expect_error(GRD_ERROR_RUNTIME, "random: to - 1 is out of bounds for uint8");
    grd_bernoulli_(x, .p = grd_float(1.5));
    expect_error(GRD_ERROR_RUNTIME, "bernoulli: bernoulli_ expects p to be in [0, 1], but got p=1.5");
    grd_exponential_(x, .lambd = grd_float(0));
    expect_error(GRD_ERROR_RUNTIME, "exponential: exponential_ expects lambda > 0.0, but found lambda=0");
    grd_multinomial(x, 4);
    expect_error(GRD_ERROR_RUNTIME, "multinomial: cannot sample n_sample > prob_dist.size(-1) samples without replacement");
    grd_uniform_(grd_expand(grd_zeros(grd_dims(1)), grd_dims(3)));
    assert_false(grd_ok());
    grd_error_clear();
    EXPECT(grd_rand(grd_dims(7)), rand_7, GRD_FLOAT32);
}

static void test_meta(void **state)
{
    (void)state;
    assert_int_equal(grd_numel(grd_randn(grd_dims(3, 4), .device = GRD_META)), 12);
    EXPECT(grd_rand(grd_dims(7)), rand_7, GRD_FLOAT32);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_uniform, seed, close_scope),
        cmocka_unit_test_setup_teardown(test_strided_in_order_of_memory, seed, close_scope),
        cmocka_unit_test_setup_teardown(test_normal, seed, close_scope),
        cmocka_unit_test_setup_teardown(test_exponential, seed, close_scope),
        cmocka_unit_test_setup_teardown(test_integers, seed, close_scope),
        cmocka_unit_test_setup_teardown(test_bernoulli, seed, close_scope),
        cmocka_unit_test_setup_teardown(test_multinomial, seed, close_scope),
        cmocka_unit_test_setup_teardown(test_one_stream_for_all, seed, close_scope),
        cmocka_unit_test_setup_teardown(test_own_generator, seed, close_scope),
        cmocka_unit_test_setup_teardown(test_errors_draw_nothing, seed, close_scope),
        cmocka_unit_test_setup_teardown(test_meta, seed, close_scope),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
