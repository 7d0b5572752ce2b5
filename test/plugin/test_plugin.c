/* Tests the loader of plug-ins: its error texts, loading a plug-in twice, loading in several threads at the same time, and loading while the process
 * forks. A failed load must leave nothing behind. */
#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
/* cmocka.h uses some of the headers above without including them. */
#include <cmocka.h>

#include "gradus/gradus.h"

/* Returns the path of a test plug-in with symbolic links resolved. Error texts contain this path. */
static const char *plugin(const char *name)
{
    static char path[PATH_MAX];
    char link[PATH_MAX];
    snprintf(link, sizeof link, PLUGINS "/%s.so", name);
    assert_non_null(realpath(link, path));
    return path;
}

static void expect_error(grd_error_code code, const char *format, ...)
{
    char text[2 * PATH_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    assert_string_equal(grd_error_message(), text);
    assert_int_equal(grd_error_get(), code);
    grd_error_clear();
}

static void refused(const char *name, const char *format)
{
    assert_false(grd_load_library(plugin(name)));
    expect_error(GRD_ERROR_RUNTIME, format, plugin(name));
}

/* Calls exp with GRD_KEY_WRAPPER, the dispatch key for which plugin_kernels registers a kernel. Returns true if that kernel ran. */
static bool exp_of_wrapper(void)
{
    const grd_scope scope = grd_scope_open();
    grd_value x = {.kind = GRD_KIND_TENSOR, .v.tensor = grd_ones(grd_dims(2))}, result;
    grd_redispatch(grd_op_find("exp"), 1u << GRD_KEY_WRAPPER, NULL, &x, &result);
    grd_scope_close(scope);
    return grd_ok();
}

static void nothing_was_registered(void)
{
    assert_false(exp_of_wrapper());
    expect_error(GRD_ERROR_NOT_IMPLEMENTED,
                 "no kernel for dispatch key WRAPPER; there are kernels for CPU, META, CONJUGATE, AUTOGRAD, FORWARD, AUTOCAST, BATCH");
    assert_null(grd_op_find("kernels::twice"));
    assert_null(grd_op_find("kernels::negate"));
}

/* ---- Files that are refused ------------------------------------------------------------------------------------------------------- */

static void test_files_that_are_no_shared_objects_are_refused(void **state)
{
    (void)state;
    assert_false(grd_load_library(NULL));
    expect_error(GRD_ERROR_TYPE, "grd_load_library: argument 'path' must not be NULL");
    assert_false(grd_load_library("/no/such/plugin.so"));
    expect_error(GRD_ERROR_IO, "cannot load plug-in '/no/such/plugin.so': No such file or directory");
    assert_false(grd_load_library("libm.so.6")); /* the name is a path, so the system's library folders are not searched */
    expect_error(GRD_ERROR_IO, "cannot load plug-in 'libm.so.6': No such file or directory");

    char path[] = "/tmp/gradus-plugin-XXXXXX";
    const int file = mkstemp(path);
    assert_int_equal(write(file, "no machine code", 15), 15);
    close(file);
    assert_false(grd_load_library(path));
    unlink(path);
    expect_error(GRD_ERROR_IO, "cannot load plug-in '%s': %s: file too short", path, path);
}

static void test_shared_objects_without_a_valid_descriptor_are_refused(void **state)
{
    (void)state;
    refused("plugin_foreign", "'%s' is not a Gradus plug-in: it does not export grd_plugin_descriptor");
    refused("plugin_nameless", "'%s' is a plug-in without a name");
    refused("plugin_loadless", "plug-in 'loadless' has no load function");
}

static void test_plugins_of_another_interface_version_are_refused(void **state)
{
    (void)state;
    assert_string_equal(grd_version(), GRD_VERSION);
    assert_false(grd_load_library(plugin("plugin_other_interface")));
    expect_error(GRD_ERROR_RUNTIME,
                 "'%s' was built against Gradus 9.8.7 for plug-in interface %d, but this is Gradus %s with plug-in interface %d",
                 plugin("plugin_other_interface"), GRD_PLUGIN_INTERFACE + 1, GRD_VERSION, GRD_PLUGIN_INTERFACE);
}

static void test_nothing_is_loaded_while_an_error_is_pending(void **state)
{
    (void)state;
    grd_error_set(GRD_ERROR_VALUE, "first");
    assert_false(grd_load_library(plugin("plugin_inner")));
    expect_error(GRD_ERROR_VALUE, "first");
    assert_false(exp_of_wrapper());
    grd_error_clear();
}

/* ---- A load that fails -------------------------------------------------------------------------------------------------------------- */

static void fails_with(const char *what, const char *text)
{
    const grd_memory_stats before = grd_memory_get_stats();
    setenv("PLUGIN_KERNELS", what, 1);
    for (int again = 0; again < 2; again++) {
        assert_false(grd_load_library(plugin("plugin_kernels")));
        expect_error(GRD_ERROR_RUNTIME, text);
        assert_int_equal(grd_memory_get_stats().blocks, before.blocks);
        nothing_was_registered();
    }
}

static void test_a_failed_load_leaks_nothing(void **state)
{
    (void)state;
    refused("plugin_silent", "silent: the load function failed and set no error");
    /* The first call makes the thread allocate a list of tensors and an error text, which it keeps. This must happen before blocks are counted. */
    nothing_was_registered();
    fails_with("fails", "kernels: add: The size of tensor a (2) must match the size of tensor b (3) at non-singleton dimension 0");
    fails_with("fails quietly", "kernels: the load function failed and set no error");
    fails_with("registers twice", "kernels: operator 'exp' has a kernel for dispatch key WRAPPER already");
    fails_with("defines twice", "kernels: operator 'kernels::twice' is already defined");
    char self[PATH_MAX];
    strcpy(self, plugin("plugin_kernels"));
    fails_with(self, "kernels: plug-in 'kernels' is being loaded");
}

/* ---- Concurrent loading --------------------------------------------------------------------------------------------------------------- */

enum { THREADS = 8 };

static void *load_and_compute(void *path)
{
    const grd_scope scope = grd_scope_open();
    for (int i = 0; i < 20; i++) {
        grd_add(grd_exp(grd_ones(grd_dims(3))), grd_ones(grd_dims(3)));
        if (i == 10)
            grd_load_library(path);
    }
    const bool ok = grd_ok();
    grd_scope_close(scope);
    return ok ? path : NULL;
}

static void test_threads_load_the_same_file(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    const char *path = plugin("plugin_inner");
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, load_and_compute, (void *)(uintptr_t)path), 0);
    for (int i = 0; i < THREADS; i++) {
        void *result;
        pthread_join(threads[i], &result);
        assert_ptr_equal(result, path);
    }
    assert_true(grd_load_library(path));
}

/* Thread function. Defines operators that only this thread defines, and operators that all threads try to define. Loads one plug-in that can be
 * loaded and one whose load fails. Looks up the newest operators of all threads. */
static void *define_and_load(void *number)
{
    const intptr_t own = (intptr_t)number;
    bool right = true;
    for (int i = 0; i < 20; i++) {
        char schema[64], path[PATH_MAX];
        snprintf(schema, sizeof schema, "concurrent::op_%d_%d(Tensor self) -> Tensor", (int)own, i);
        right &= grd_define_operator(&(grd_definition){.schema = schema, .gradients = {{"self", "grad * 2"}}}) != NULL;
        snprintf(schema, sizeof schema, "concurrent::shared_%d(Tensor self) -> Tensor", i);
        right &= (grd_define_operator(&(grd_definition){.schema = schema}) != NULL) == grd_ok();
        grd_error_clear();
        *strchr(schema, '(') = '\0';
        right &= grd_op_find(schema) != NULL; /* this thread or another one has defined it */
        snprintf(path, sizeof path, PLUGINS "/%s.so", (own + i) % 2 ? "plugin_inner" : "plugin_silent");
        right &= grd_load_library(path) == ((own + i) % 2 != 0);
        grd_error_clear();
        for (int64_t n = grd_op_count(), at = n - 1; at >= n - 4; at--)
            right &= grd_op_at(at) != NULL;
    }
    return (void *)(uintptr_t)right;
}

static void test_threads_define_operators_and_load_plugins(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    const int64_t before = grd_op_count();
    for (intptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, define_and_load, (void *)i), 0);
    for (int i = 0; i < THREADS; i++) {
        void *right;
        pthread_join(threads[i], &right);
        assert_non_null(right);
    }
    assert_int_equal(grd_op_count(), before + 20 * (THREADS + 1));
}

/* ---- Forks in the middle of a load ------------------------------------------------------------------------------------------------------ */

static void *load_waiting(void *ret_loaded)
{
    *(bool *)ret_loaded = grd_load_library(PLUGINS "/plugin_waits.so");
    return NULL;
}

/* Runs in a child process that was forked while another thread was loading a plug-in. In the child, that plug-in's registrations must be undone,
 * and it can be loaded again. Returns the exit status, 0 on success. */
static int child_of_a_load(void)
{
    alarm(60);
    unsetenv("PLUGIN_WAITS");
    grd_register_kernel("cos", GRD_KEY_WRAPPER, grd_cpu_fallback, NULL);
    grd_register_fallback(GRD_KEY_WRAPPER, grd_cpu_fallback, NULL);
    if (!grd_ok() || grd_op_find("waits::same") != NULL)
        return 1;
    grd_unregister_kernel("cos", GRD_KEY_WRAPPER);
    grd_unregister_fallback(GRD_KEY_WRAPPER);
    if (!grd_load_library(plugin("plugin_waits")) || grd_op_find("waits::same") == NULL)
        return 2;
    return grd_load_library(plugin("plugin_inner")) && grd_load_library(plugin("plugin_waits")) ? 0 : 3;
}

static void test_a_child_forked_during_a_load_can_load_again(void **state)
{
    (void)state;
    int told[2], heard[2], status;
    assert_true(pipe(told) == 0 && pipe(heard) == 0);
    char ends[32], word;
    snprintf(ends, sizeof ends, "%d %d", told[1], heard[0]);
    setenv("PLUGIN_WAITS", ends, 1);
    pthread_t thread;
    bool loaded = false;
    assert_int_equal(pthread_create(&thread, NULL, load_waiting, &loaded), 0);
    assert_int_equal(read(told[0], &word, 1), 1);
    const pid_t child = fork();
    if (child == 0)
        _exit(child_of_a_load());
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_null(grd_op_find("waits::same"));
    assert_int_equal(write(heard[1], &word, 1), 1);
    pthread_join(thread, NULL);
    assert_true(loaded && grd_op_find("waits::same") != NULL);
    grd_unregister_fallback(GRD_KEY_WRAPPER);
    for (int i = 0; i < 2; i++)
        close(told[i]), close(heard[i]);
}

/* ---- A load that succeeds (last, because plug-ins stay loaded) ------------------------------------------------------------------------- */

/* Loads a plug-in twice for each n = 1, 2, ... In the first load all allocations from the n-th on fail, in the second load only the n-th fails. The
 * plug-in's load function loads plugin_inner, which is loaded already. */
static void test_a_load_survives_failed_allocations(void **state)
{
    (void)state;
    char inner[PATH_MAX];
    strcpy(inner, plugin("plugin_inner"));
    setenv("PLUGIN_KERNELS", inner, 1);
    const grd_memory_stats before = grd_memory_get_stats();
    int n = 1;
    for (bool forever = true;;
         n += !forever, forever = !forever) { /* two loads for each n: all allocations from the n-th on fail, or only the n-th */
        grd_memory_fail_at(n, forever);
        if (grd_load_library(plugin("plugin_kernels")))
            break;
        grd_memory_fail_at(0, false);
        assert_int_equal(grd_error_get(), GRD_ERROR_MEMORY);
        grd_error_clear();
        assert_int_equal(grd_memory_get_stats().blocks, before.blocks);
        nothing_was_registered();
    }
    grd_memory_fail_at(0, false);
    assert_true(n >= 15); /* the plug-in, its operators and formulas, five registrations and the inner load allocate at least 14 times */
    const int64_t blocks = grd_memory_get_stats().blocks;
    assert_true(blocks > before.blocks);
    assert_true(exp_of_wrapper());
    assert_true(grd_load_library(plugin("plugin_kernels")));
    assert_int_equal(grd_memory_get_stats().blocks, blocks);
}

static void test_operators_of_a_plugin_can_be_called_and_differentiated(void **state)
{
    (void)state;
    const grd_scope scope = grd_scope_open();
    grd_tensor *x = grd_set_requires_grad(grd_ones(grd_dims(2)), true);
    const grd_value arg = {.kind = GRD_KIND_TENSOR, .v.tensor = x};
    grd_value result;
    assert_true(grd_call(grd_op_find("kernels::negate"), GRD_FUNCTIONAL, &arg, 1, NULL, &result));
    assert_true(grd_item_double(grd_sum(result.v.tensor)) == -2);
    grd_backward(grd_sum(result.v.tensor));
    assert_true(grd_item_double(grd_sum(grd_grad_of(x))) == -2); /* the gradient formula calls kernels::twice, whose kernel is `negate` */
    grd_scope_close(scope);
    assert_true(grd_ok());
}

static void test_a_second_plugin_with_one_name_is_refused(void **state)
{
    (void)state;
    refused("plugin_second", "a plug-in named 'kernels' is already loaded from a file other than '%s'");
}

static void test_a_forked_child_can_use_loaded_plugins(void **state)
{
    (void)state;
    const pid_t child = fork();
    if (child == 0)
        _exit(grd_load_library(plugin("plugin_kernels")) && exp_of_wrapper() ? 0 : 1);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files_that_are_no_shared_objects_are_refused),
        cmocka_unit_test(test_shared_objects_without_a_valid_descriptor_are_refused),
        cmocka_unit_test(test_plugins_of_another_interface_version_are_refused),
        cmocka_unit_test(test_nothing_is_loaded_while_an_error_is_pending),
        cmocka_unit_test(test_a_failed_load_leaks_nothing),
        cmocka_unit_test(test_threads_load_the_same_file),
        cmocka_unit_test(test_threads_define_operators_and_load_plugins),
        cmocka_unit_test(test_a_child_forked_during_a_load_can_load_again),
        cmocka_unit_test(test_a_load_survives_failed_allocations),
        cmocka_unit_test(test_operators_of_a_plugin_can_be_called_and_differentiated),
        cmocka_unit_test(test_a_second_plugin_with_one_name_is_refused),
        cmocka_unit_test(test_a_forked_child_can_use_loaded_plugins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
