/* Tests the random generator. Its numbers are compared with the standard values of mt19937 and with values recorded from PyTorch's CPU generator.
 * Also tests saving and restoring its state. */
#include <pthread.h>
#include <string.h>

#include "base/error.h"
#include "base/random.h"
#include "support.h"

static uint32_t draw32(struct grd_generator *generator)
{
    struct grd_mt19937 *engine = &generator->engine;
    if (engine->left == 1)
        grd_mt19937_renew(engine);
    engine->left--;
    return grd_mt19937_temper(engine->state[engine->next++]);
}

/* Returns 64 bits made of two 32-bit words, the first of which is the high half, as in PyTorch. */
static uint64_t draw64(struct grd_generator *generator)
{
    const uint64_t high = draw32(generator);
    return high << 32 | draw32(generator);
}

static void mt19937_yields_the_standard_values(void **state)
{
    (void)state;
    grd_generator *g = grd_generator_new(5489);
    assert_int_equal(draw32(g), 3499211612u);
    assert_int_equal(draw32(g), 581869302u);
    /* The C++ standard gives the 10000th value of a default-constructed std::mt19937 as a check. */
    for (int i = 2; i < 9999; i++)
        draw32(g);
    assert_int_equal(draw32(g), 4123659995u);
    grd_generator_drop(g);
}

/* The values were drawn from PyTorch: torch.empty((), dtype=torch.int64).random_(generator=g), torch.randint(0, 2**62, ...) and
 * torch.randint(0, 2**20, ...). */
static void draws_equal_those_of_pytorch(void **state)
{
    (void)state;
    grd_generator *g = grd_generator_new(42);
    assert_int_equal(draw64(g) & INT64_MAX, 0x5fe1dc66cbea3db3);
    assert_int_equal(draw64(g) & INT64_MAX, 0x7362035c2ef5950e);
    grd_generator_seed(g, 0x123456789abcdef);
    assert_int_equal(draw64(g) % (UINT64_C(1) << 62), 156493347493343411);
    assert_int_equal(draw64(g) % (UINT64_C(1) << 62), 3692318687892117815);
    grd_generator_seed(g, 7);
    const uint32_t expected[] = {585903, 189636, 573977, 535030};
    for (int i = 0; i < 4; i++)
        assert_int_equal(draw32(g) % (UINT32_C(1) << 20), expected[i]);
    grd_generator_drop(g);
}

static void seeding_uses_32_bits_and_clears_saved_normals(void **state)
{
    (void)state;
    grd_generator *g = grd_generator_new(UINT64_MAX);
    assert_int_equal(grd_generator_initial_seed(g), UINT64_MAX);
    uint32_t first = draw32(g);
    g->has_normal_double = g->has_normal_float = true;
    grd_generator_seed(g, UINT32_MAX); /* mt19937 uses only the low 32 bits of a seed */
    assert_false(g->has_normal_double || g->has_normal_float);
    assert_int_equal(draw32(g), first);
    grd_generator_drop(g);
}

static void random_seeds_differ(void **state)
{
    (void)state;
    grd_generator *g = grd_generator_new(1);
    const uint64_t first = grd_generator_seed_randomly(g), second = grd_generator_seed_randomly(g);
    assert_true(first != second && first >> 53 == 0 && second >> 53 == 0);
    assert_int_equal(grd_generator_initial_seed(g), second);
    const uint32_t word = draw32(g);
    grd_generator_seed(g, second);
    assert_int_equal(draw32(g), word);
    grd_generator_drop(g);
}

static void a_saved_state_can_be_restored(void **state)
{
    (void)state;
    grd_generator *a = grd_generator_new(3), *b = grd_generator_new(4);
    size_t size = grd_generator_state_size();
    assert_int_equal(size, 5056);
    unsigned char saved[5056], again[5056];
    for (int draws = 0; draws < 1300; draws += 13) {
        a->has_normal_float = draws % 2 == 1;
        a->normal_float = 0.5f;
        a->has_normal_double = draws % 3 == 1;
        a->normal_double = -1.25;
        grd_generator_get_state(a, saved);
        grd_generator_set_state(b, saved, size);
        assert_true(grd_ok());
        grd_generator_get_state(b, again);
        assert_memory_equal(saved, again, size);
        assert_int_equal(grd_generator_initial_seed(b), 3);
        assert_int_equal(b->has_normal_double, a->has_normal_double);
        for (int i = 0; i < 13; i++)
            assert_int_equal(draw32(a), draw32(b));
    }
    grd_generator_drop(a);
    grd_generator_drop(b);
}

/* The fields of a saved state have the same offsets as in torch.Generator.get_state(). The expected bytes are for seed 7 after eight draws. */
static void the_saved_state_has_pytorchs_layout(void **state)
{
    (void)state;
    grd_generator *g = grd_generator_new(7);
    for (int i = 0; i < 8; i++)
        draw32(g);
    unsigned char saved[5056];
    grd_generator_get_state(g, saved);
    const uint64_t expected[] = {7, (UINT64_C(1) << 32) | 617, 8, 2022286329, 1444425037, 2858264774, 1581888170};
    assert_memory_equal(saved, expected, sizeof expected);
    grd_generator_drop(g);
}

static void refused(grd_generator *g, const void *bytes, size_t size)
{
    grd_generator_set_state(g, bytes, size);
    assert_int_equal(grd_error_get(), GRD_ERROR_VALUE);
    grd_error_clear();
}

static void invalid_states_are_refused(void **state)
{
    (void)state;
    grd_generator *g = grd_generator_new(1);
    draw32(g);
    unsigned char good[5056], bad[5056];
    grd_generator_get_state(g, good);
    refused(g, good, 5055);
    refused(g, good, 0);
    memset(bad, 0, sizeof bad);
    refused(g, bad, sizeof bad);
    memset(bad, 0xff, sizeof bad);
    refused(g, bad, sizeof bad);
    /* Offsets of bytes in the fields `left`, `seeded` and `next` and in one word of the state. Flipping the top bit makes the field invalid. */
    const int offsets[] = {11, 12, 17, 24 + 4};
    for (int i = 0; i < 4; i++) {
        memcpy(bad, good, sizeof bad);
        bad[offsets[i]] ^= 0x80;
        refused(g, bad, sizeof bad);
    }
    memcpy(bad, good, sizeof bad);
    bad[16]++; /* `next` would point past the last word */
    refused(g, bad, sizeof bad);
    memcpy(bad, good, sizeof bad);
    memset(bad + 8, 0, 4); /* `left` is at least 1, even if all words are used */
    refused(g, bad, sizeof bad);
    grd_generator_set_state(g, NULL, sizeof bad);
    expect_error(GRD_ERROR_TYPE, "the state of a generator is required, not NULL");
    grd_generator_get_state(g, NULL);
    expect_error(GRD_ERROR_TYPE, "room for the generator's state is required, not NULL");
    grd_generator_get_state(g, bad);
    assert_memory_equal(good, bad, sizeof bad); /* a refused state changes nothing */
    grd_generator_drop(g);
}

static void the_default_generator_is_seeded_and_locked(void **state)
{
    (void)state;
    grd_generator *g = grd_generator_default();
    grd_manual_seed(5489);
    assert_int_equal(grd_generator_initial_seed(NULL), 5489);
    grd_generator_drop(g); /* has no effect: the default generator is never freed */
    struct grd_generator *locked = grd_generator_lock(NULL);
    assert_ptr_equal(locked, g);
    assert_int_equal(draw32(locked), 3499211612u);
    grd_generator_unlock(locked);
}

static void generators_are_reference_counted(void **state)
{
    (void)state;
    int64_t blocks = grd_memory_get_stats().blocks;
    grd_generator *g = grd_generator_new(1);
    assert_ptr_equal(grd_generator_keep(g), g);
    grd_generator_drop(g);
    grd_generator_drop(g);
    grd_generator_drop(NULL);
    assert_null(grd_generator_keep(NULL));
    assert_int_equal(grd_memory_get_stats().blocks, blocks);
    grd_memory_fail_at(1, false);
    assert_null(grd_generator_new(1));
    grd_memory_fail_at(0, false);
    assert_int_equal(grd_error_get(), GRD_ERROR_MEMORY);
    grd_error_clear();
}

enum { THREADS = 4, DRAWS = 2000 };

static void *draw(void *sum)
{
    for (int i = 0; i < DRAWS; i++) {
        struct grd_generator *g = grd_generator_lock(NULL);
        *(uint64_t *)sum += draw32(g);
        grd_generator_unlock(g);
    }
    return NULL;
}

static void threads_share_the_default_generator(void **state)
{
    (void)state;
    grd_manual_seed(9);
    pthread_t threads[THREADS];
    uint64_t sums[THREADS] = {0}, total = 0, expected = 0;
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, draw, &sums[i]), 0);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        total += sums[i];
    }
    grd_generator *g = grd_generator_new(9);
    for (int i = 0; i < THREADS * DRAWS; i++)
        expected += draw32(g);
    grd_generator_drop(g);
    assert_int_equal(total, expected);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mt19937_yields_the_standard_values),
        cmocka_unit_test(draws_equal_those_of_pytorch),
        cmocka_unit_test(seeding_uses_32_bits_and_clears_saved_normals),
        cmocka_unit_test(random_seeds_differ),
        cmocka_unit_test(a_saved_state_can_be_restored),
        cmocka_unit_test(the_saved_state_has_pytorchs_layout),
        cmocka_unit_test(invalid_states_are_refused),
        cmocka_unit_test(the_default_generator_is_seeded_and_locked),
        cmocka_unit_test(generators_are_reference_counted),
        cmocka_unit_test(threads_share_the_default_generator),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
