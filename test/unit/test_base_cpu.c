/* The instruction-set level and what this process may use. The level is chosen once, so each setting is a new process. */
#define _GNU_SOURCE /* setenv */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka needs the four above */
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cpu.h"
#include "gradus/runtime.h"

static int level_with(const char *setting)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (setting != NULL)
            setenv("GRADUS_ISA", setting, 1);
        else
            unsetenv("GRADUS_ISA");
        _exit((int)grd_cpu_level());
    }
    int status;
    waitpid(child, &status, 0);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void the_setting_only_lowers(void **state)
{
    (void)state;
    const char *const words[] = {"portable", "v2", "v3", "v4"};
    int best = level_with(NULL);
    for (int i = 0; i < GRD_ISA_COUNT; i++)
        assert_int_equal(level_with(words[i]), i < best ? i : best);
    assert_int_equal(level_with(""), best);
    assert_int_equal(level_with("v9"), best);
}

static void the_level_is_what_the_compiler_finds(void **state)
{
    (void)state;
    int expected = GRD_ISA_PORTABLE;
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("ssse3") && __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt"))
        expected = GRD_ISA_V2;
    if (expected == GRD_ISA_V2 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
        __builtin_cpu_supports("bmi2"))
        expected = GRD_ISA_V3;
    if (expected == GRD_ISA_V3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        expected = GRD_ISA_V4;
#endif
    assert_int_equal(level_with(NULL), expected);
}

static void the_level_has_a_name(void **state)
{
    (void)state;
    const char *const names[] = {"portable", "x86-64-v2", "x86-64-v3", "x86-64-v4"};
    assert_string_equal(grd_isa(), names[grd_cpu_level()]);
}

static void counts_make_sense(void **state)
{
    (void)state;
    assert_true(grd_cpu_count() >= 1);
    assert_true(grd_cpu_count() <= sysconf(_SC_NPROCESSORS_ONLN));
    assert_true(grd_system_memory() > 1 << 20);
}

static int threads_with(const char *setting)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        setenv("GRADUS_NUM_THREADS", setting, 1);
        _exit(grd_num_threads());
    }
    int status;
    waitpid(child, &status, 0);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void the_environment_sets_threads(void **state)
{
    (void)state;
    assert_int_equal(threads_with("7"), 7);
    const char *const bad[] = {"", "0", "-3", "x", "3x", "99999"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(threads_with(bad[i]), grd_cpu_count() & 0xff);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_setting_only_lowers),
        cmocka_unit_test(the_level_is_what_the_compiler_finds),
        cmocka_unit_test(the_environment_sets_threads),
        cmocka_unit_test(the_level_has_a_name),
        cmocka_unit_test(counts_make_sense),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
