/* Tools for unit tests: cmocka and the headers it uses, a scope around each test, sample tensors, and checks of error texts. Tests of kernels use
 * kernel_levels.h instead. The tests that run every operator have their own tools in test/op. */
#ifndef GRD_TEST_SUPPORT_H
#define GRD_TEST_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the headers above but does not include them. */
#include <cmocka.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef GRD_COVERAGE
#include <gcov.h>
#endif

#include "core/scalar.h"
#include "core/tensor.h"
#include "gradus/gradus.h"

/* ---- Setup, skipping and child processes ------------------------------------------------------------------------------------- */

/* An entry of a cmocka list of tests. The test runs in a scope of its own, so that its tensors are dropped at its end. The default generator is
 * seeded first, so that random numbers do not depend on earlier tests. */
#define IN_SCOPE(test) cmocka_unit_test_setup_teardown(test, open_scope, close_scope)

/* Skips the running test. `make test` collects the reasons and prints them at its end. */
static inline void skip_because(const char *reason)
{
    print_message("skipped: %s\n", reason);
    skip();
}

static inline int open_scope(void **state)
{
    static grd_scope scope;
    scope = grd_scope_open();
    *state = &scope;
    grd_manual_seed(1);
    return 0;
}

static inline int close_scope(void **state)
{
    grd_scope_close(*(grd_scope *)*state);
    return 0;
}

/* Ends a child process with _exit, after writing its coverage data in a coverage build. */
static inline _Noreturn void end_child(int status)
{
#ifdef GRD_COVERAGE
    __gcov_dump();
#endif
    _exit(status);
}

/* Waits for a child process and returns its exit status. The test fails if a signal ended the child. */
static inline int status_of(pid_t child)
{
    int status;
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* ---- Errors -------------------------------------------------------------------------------------------------------------------- */

/* Checks that the pending error has this code and exactly this text, and clears it. */
static inline void expect_error(grd_error_code code, const char *text)
{
    assert_string_equal(grd_error_message(), text);
    assert_int_equal(grd_error_get(), code);
    grd_error_clear();
}

/* ---- Tensors ------------------------------------------------------------------------------------------------------------------- */

/* Returns a float64 tensor of the given sizes with the elements 0, 1, 2, ... */
static inline grd_tensor *iota(grd_dims sizes)
{
    int64_t n = 1;
    for (int64_t i = 0; i < sizes.n; i++)
        n *= sizes.data[i];
    return grd_view(grd_arange(grd_int(n), .dtype = GRD_FLOAT64), sizes);
}

/* Returns the element at a position in row-major order, read through the strides. */
static inline double element_at(const grd_tensor *t, int64_t position)
{
    const char *data = t->data;
    double x;
    for (int64_t i = t->ndim - 1; i >= 0; i--) {
        data += position % t->sizes[i] * t->strides[i] * (int64_t)t->itemsize;
        position /= t->sizes[i];
    }
    grd_element_convert(data, t->dtype, &x, GRD_FLOAT64);
    return x;
}

#endif
