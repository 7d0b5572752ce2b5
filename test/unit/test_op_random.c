/* Compares random numbers for seed 7 with those of PyTorch 2.13, which test/record_random.py recorded. */
#include <math.h>
#include <string.h>

#include "recorded_random.h"
#include "support.h"

static int seed(void **state)
{
    int failed = open_scope(state);
    grd_manual_seed(7);
    return failed;
}

/* Checks that the tensor, converted to `dtype`, has exactly the bits of `values`, which are `size` bytes long. */
static void expect(grd_tensor *t, const void *values, size_t size, grd_dtype dtype)
{
    char got[512];
    assert_string_equal(grd_error_message(), "");
    assert_int_equal(grd_numel(t) * grd_dtype_size(dtype), (int64_t)size);
    grd_to_memory(t, got, dtype);
    assert_memory_equal(got, values, size);
}

#define EXPECT(t, values, dtype) expect((t), (values), sizeof(values), (dtype))

/* Checks that the values differ from the recorded ones by at most about the last bit. The values depend on functions of the C library, which round
 * differently on different systems. */
static void expect_close(grd_tensor *t, const double *values, int64_t n)
{
    double got[32];
    assert_string_equal(grd_error_message(), "");
    assert_int_equal(grd_numel(t), n);
    grd_to_memory(t, got, GRD_FLOAT64);
    for (int64_t i = 0; i < n; i++)
        assert_true(fabs(got[i] - values[i]) <= 4e-16 * fabs(values[i]));
}

static void test_rand_and_uniform_equal_pytorch(void **state)
{
    (void)state;
    EXPECT(grd_rand(grd_dims(7)), rand_7, GRD_FLOAT32);
    grd_manual_seed(7);
    grd_tensor *wide = grd_empty(grd_dims(4), .dtype = GRD_FLOAT64);
    EXPECT(grd_uniform_(wide, .from = -3.3, .to = 7.7), uniform_double, GRD_FLOAT64);
}

static void test_strided_tensors_are_drawn_in_memory_order(void **state)
{
    (void)state;
    EXPECT(grd_uniform_(grd_t(grd_empty(grd_dims(3, 2)))), transposed, GRD_FLOAT32);
}

static void test_randn_equals_pytorch(void **state)
{
    (void)state;
    EXPECT(grd_randn(grd_dims(5)), randn_5, GRD_FLOAT32);
    grd_manual_seed(7);
    EXPECT(grd_randn(grd_dims(19)), randn_19, GRD_FLOAT32);
    grd_manual_seed(7);
    expect_close(grd_randn(grd_dims(17), .dtype = GRD_FLOAT64), randn_double_17, 17);
}

static void test_exponential_equals_pytorch(void **state)
{
    (void)state;
    expect_close(grd_exponential_(grd_empty(grd_dims(4), .dtype = GRD_FLOAT64), .lambd = 1.5), exponential, 4);
}

static void test_randint_randperm_and_random_equal_pytorch(void **state)
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

static void test_bernoulli_and_dropout_equal_pytorch(void **state)
{
    (void)state;
    EXPECT(grd_bernoulli_(grd_empty(grd_dims(12), .dtype = GRD_INT64), .p = grd_float(0.3)), bernoulli, GRD_INT64);
    grd_manual_seed(7);
    EXPECT(grd_dropout(grd_ones(grd_dims(8)), .p = 0.25), dropout, GRD_FLOAT32);
    grd_tensor *x = grd_ones(grd_dims(3));
    assert_ptr_equal(grd_data(grd_dropout(x, .p = 0)), grd_data(x));
}

static void test_multinomial_equals_pytorch(void **state)
{
    (void)state;
    grd_tensor *p = grd_from_data((const float[]){0.1f, 0.2f, 0.3f, 0.4f}, grd_dims(4), GRD_FLOAT32);
    EXPECT(grd_multinomial(p, 6, .replacement = true), multinomial_with, GRD_INT64);
    grd_manual_seed(7);
    EXPECT(grd_multinomial(p, 3), multinomial_without, GRD_INT64);
}

static void test_calls_in_sequence_share_one_random_stream(void **state)
{
    (void)state;
    float values[7];
    grd_to_memory(grd_randn(grd_dims(3)), values, GRD_FLOAT32);
    grd_to_memory(grd_rand(grd_dims(2)), values + 3, GRD_FLOAT32);
    grd_to_memory(grd_randn(grd_dims(2)), values + 5, GRD_FLOAT32);
    assert_memory_equal(values, mixed, sizeof values);
    EXPECT(grd_randperm(4), mixed_permutation, GRD_INT64);
}

static void test_dropout_of_float16_rounds_once(void **state)
{
    (void)state;
    grd_tensor *x = grd_full(grd_dims(8), grd_float(0.5), .dtype = GRD_FLOAT16);
    EXPECT(grd_dropout(x, .p = 0.16173971899693784), dropout_half, GRD_FLOAT32);
}

static void test_multinomial_orders_equal_scores_as_pytorch(void **state)
{
    (void)state;
    grd_tensor *p = grd_cat(grd_tensors(grd_zeros(grd_dims(20)), grd_ones(grd_dims(4))));
    EXPECT(grd_multinomial(p, 24), multinomial_equal, GRD_INT64);
}

/* Normal numbers are drawn in pairs. A state that is saved after the first number of a pair contains the second one. */
static void test_a_saved_state_includes_the_pending_normal(void **state)
{
    (void)state;
    unsigned char saved[5056];
    float values[7];
    grd_randn(grd_dims(3));
    grd_generator_get_state(NULL, saved);
    grd_to_memory(grd_randn(grd_dims(7)), values, GRD_FLOAT32);
    grd_manual_seed(1);
    grd_generator_set_state(NULL, saved, sizeof saved);
    EXPECT(grd_randn(grd_dims(7)), values, GRD_FLOAT32);
}

/* The generator makes its 32-bit words in batches. N numbers use several batches, and use the last batch only in part. */
static void test_random_numbers_do_not_depend_on_the_thread_count(void **state)
{
    (void)state;
    enum { N = 100003 };
    const int before = grd_num_threads();
    for (int kind = 0; kind < 3; kind++) {
        grd_tensor *drawn[2];
        for (int several = 0; several < 2; several++) {
            grd_set_num_threads(several ? 8 : 1);
            grd_manual_seed(5);
            grd_tensor *t = grd_empty(grd_dims(N), .dtype = GRD_FLOAT64);
            drawn[several] = kind == 0 ? grd_exponential_(t) : kind == 1 ? grd_normal_(t) : grd_uniform_(t);
        }
        assert_true(grd_equal(drawn[0], drawn[1]));
    }
    grd_set_num_threads(before);
}

/* Without bounds, random_ of uint32 draws from 2^32 values, and this number does not fit into 32 bits. */
static void test_random_fills_the_whole_range_of_uint32(void **state)
{
    (void)state;
    uint32_t values[3];
    grd_to_memory(grd_random_(grd_empty(grd_dims(3), .dtype = GRD_UINT32)), values, GRD_UINT32);
    const float units[] = {0x1p-24f * (float)(values[0] & 0xffffff), 0x1p-24f * (float)(values[1] & 0xffffff)};
    assert_memory_equal(units, rand_7, sizeof units);
    assert_int_equal(grd_numel(grd_randperm(1000, .dtype = GRD_BFLOAT16)), 1000);
}

static void test_operators_draw_from_a_given_generator(void **state)
{
    (void)state;
    grd_generator *generator = grd_generator_new(7);
    EXPECT(grd_rand(grd_dims(7), .generator = generator), rand_7, GRD_FLOAT32);
    EXPECT(grd_rand(grd_dims(7)), rand_7, GRD_FLOAT32);
    grd_generator_drop(generator);
}

static void test_refused_calls_draw_nothing(void **state)
{
    (void)state;
    grd_tensor *x = grd_zeros(grd_dims(3)), *bytes = grd_zeros(grd_dims(3), .dtype = GRD_UINT8);
    grd_normal_(x, .std = -1);
    expect_error(GRD_ERROR_RUNTIME, "normal: normal expects std >= 0.0, but found std -1");
    grd_uniform_(x, .from = 2, .to = 1);
    expect_error(GRD_ERROR_RUNTIME, "uniform: uniform_ expects to return a [from, to) range, but found from=2 > to=1");
    grd_random_(x, .from = grd_int(3), .to = grd_int(3));
    expect_error(GRD_ERROR_RUNTIME, "random: random_ expects 'from' to be less than 'to', but got from=3 >= to=3");
    grd_random_(bytes, .from = grd_int(0), .to = grd_int(257));
    expect_error(GRD_ERROR_RUNTIME, "random: to - 1 is out of bounds for uint8");
    grd_bernoulli_(x, .p = grd_float(1.5));
    expect_error(GRD_ERROR_RUNTIME, "bernoulli: bernoulli_ expects p to be in [0, 1], but got p=1.5");
    grd_exponential_(x, .lambd = 0);
    expect_error(GRD_ERROR_RUNTIME, "exponential: exponential_ expects lambda > 0.0, but found lambda=0");
    grd_dropout(bytes);
    expect_error(GRD_ERROR_RUNTIME, "dropout: result type Float can't be cast to the desired output type Byte");
    grd_multinomial(x, 4);
    expect_error(GRD_ERROR_RUNTIME, "multinomial: cannot sample n_sample > prob_dist.size(-1) samples without replacement");
    grd_uniform_(grd_expand(grd_zeros(grd_dims(1)), grd_dims(3)));
    assert_false(grd_ok());
    grd_error_clear();
    EXPECT(grd_rand(grd_dims(7)), rand_7, GRD_FLOAT32);
}

static void test_meta_tensors_draw_nothing(void **state)
{
    (void)state;
    assert_int_equal(grd_numel(grd_randn(grd_dims(3, 4), .device = GRD_META)), 12);
    EXPECT(grd_rand(grd_dims(7)), rand_7, GRD_FLOAT32);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_rand_and_uniform_equal_pytorch, seed, close_scope),
        cmocka_unit_test_setup_teardown(test_strided_tensors_are_drawn_in_memory_order, seed, close_scope),
        cmocka_unit_test_setup_teardown(test_randn_equals_pytorch, seed, close_scope),
        cmocka_unit_test_setup_teardown(test_exponential_equals_pytorch, seed, close_scope),
        cmocka_unit_test_setup_teardown(test_randint_randperm_and_random_equal_pytorch, seed, close_scope),
        cmocka_unit_test_setup_teardown(test_bernoulli_and_dropout_equal_pytorch, seed, close_scope),
        cmocka_unit_test_setup_teardown(test_multinomial_equals_pytorch, seed, close_scope),
        cmocka_unit_test_setup_teardown(test_calls_in_sequence_share_one_random_stream, seed, close_scope),
        cmocka_unit_test_setup_teardown(test_dropout_of_float16_rounds_once, seed, close_scope),
        cmocka_unit_test_setup_teardown(test_multinomial_orders_equal_scores_as_pytorch, seed, close_scope),
        cmocka_unit_test_setup_teardown(test_a_saved_state_includes_the_pending_normal, seed, close_scope),
        cmocka_unit_test_setup_teardown(test_random_numbers_do_not_depend_on_the_thread_count, seed, close_scope),
        cmocka_unit_test_setup_teardown(test_random_fills_the_whole_range_of_uint32, seed, close_scope),
        cmocka_unit_test_setup_teardown(test_operators_draw_from_a_given_generator, seed, close_scope),
        cmocka_unit_test_setup_teardown(test_refused_calls_draw_nothing, seed, close_scope),
        cmocka_unit_test_setup_teardown(test_meta_tensors_draw_nothing, seed, close_scope),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
