/* Provides the autograd tests with functions that make and read tensors, that check error texts, and that check that a test leaks no memory. */
#ifndef GRD_TEST_AUTOGRAD_SUPPORT_H
#define GRD_TEST_AUTOGRAD_SUPPORT_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gradus/gradus.h"

/* Returns a one-dimensional float32 tensor of n numbers. */
static inline grd_tensor *vector(int64_t n, const float *values)
{
    return grd_from_data(values, grd_dims(n), GRD_FLOAT32);
}

#define VECTOR(...) vector((int64_t)(sizeof((const float[]){__VA_ARGS__}) / sizeof(float)), (const float[]){__VA_ARGS__})

/* Returns a leaf that requires a gradient, with the elements 1, 2, 3. */
static inline grd_tensor *leaf3(void)
{
    return grd_set_requires_grad(VECTOR(1, 2, 3), true);
}

static inline void expect_ok(void)
{
    if (!grd_ok())
        fail_msg("unexpected error: %s", grd_error_message());
}

/* Checks that an error whose text contains `text` is pending, and clears it. */
static inline void expect_error(const char *text)
{
    if (grd_ok())
        fail_msg("no error, expected: %s", text);
    if (strstr(grd_error_message(), text) == NULL)
        fail_msg("error: %s\nexpected: %s", grd_error_message(), text);
    grd_error_clear();
}

/* Checks that an error with exactly this text is pending, and clears it. */
static inline void expect_whole_error(const char *text)
{
    assert_string_equal(grd_error_message(), text);
    grd_error_clear();
}

static inline void expect_values(grd_tensor *t, int n, const double *values)
{
    double actual[64];
    expect_ok();
    if (t == NULL)
        fail_msg("no tensor");
    assert_int_equal(grd_numel(t), n);
    grd_to_memory(t, actual, GRD_FLOAT64);
    expect_ok();
    for (int i = 0; i < n; i++)
        if (fabs(actual[i] - values[i]) > 1e-5 * (1 + fabs(values[i])))
            fail_msg("element %d is %g, expected %g", i, actual[i], values[i]);
}

#define EXPECT_VALUES(t, ...)                                                                                                              \
    expect_values((t), (int)(sizeof((const double[]){__VA_ARGS__}) / sizeof(double)), (const double[]){__VA_ARGS__})

/* The state that `setup` passes to `teardown`. `scope` is the scope around the test. `before` holds the memory statistics before the test, which
 * `teardown` compares with the statistics after it. */
struct test_state {
    grd_scope scope;
    grd_memory_stats before;
};

static inline int setup(void **state)
{
    static struct test_state current;
    current.before = grd_memory_get_stats();
    current.scope = grd_scope_open();
    *state = &current;
    return 0;
}

static inline int teardown(void **state)
{
    struct test_state *current = *state;
    grd_error_clear();
    grd_memory_fail_at(0, false);
    grd_set_grad_enabled(true);
    grd_scope_close(current->scope);
    grd_memory_stats after = grd_memory_get_stats();
    if (after.blocks == current->before.blocks && after.allocated == current->before.allocated)
        return 0;
    print_error("left behind: %lld blocks, %lld bytes\n", (long long)(after.blocks - current->before.blocks),
                (long long)(after.allocated - current->before.allocated));
    return 1;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

/* Makes the thread allocate its list of temporary tensors, its error text and its hook table before a test counts memory, because the thread keeps
 * them after first use. */
static inline int warm_up(void **state)
{
    (void)state;
    grd_scope scope = grd_scope_open();
    for (int i = 0; i < 4096; i++)
        grd_ones(GRD_NO_DIMS);
    grd_error_set(GRD_ERROR_RUNTIME, "warm");
    grd_error_clear();
    grd_scope_close(scope);
    return 0;
}

#endif
