/* Tests the choice of the instruction-set level and the number of processors this process may use. The level is chosen when the library is
 * loaded, so each value of GRADUS_ISA is tested in a new process, which runs this program and returns the level as its exit status. */
#define _GNU_SOURCE /* for setenv */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cpu.h"
#include "support.h"

static const char *program; /* path of this program */

/* Runs this program again with `what` as its argument and an environment variable set (or unset if `setting` is NULL). Returns its exit status. */
static int answer_with(const char *what, const char *variable, const char *setting)
{
    pid_t child = fork();
    if (child == 0) {
        if (setting != NULL)
            setenv(variable, setting, 1);
        else
            unsetenv(variable);
        execl(program, program, what, (char *)NULL);
        _exit(255);
    }
    return status_of(child);
}

static int level_with(const char *setting)
{
    return answer_with("level", "GRADUS_ISA", setting);
}

static void gradus_isa_only_lowers_the_level(void **state)
{
    (void)state;
    const char *const words[] = {"portable", "v2", "v3", "v4"};
    int best = level_with(NULL);
    for (int i = 0; i < GRD_ISA_COUNT; i++)
        assert_int_equal(level_with(words[i]), i < best ? i : best);
    assert_int_equal(level_with(""), best);
    assert_int_equal(level_with("v9"), best);
    assert_true(grd_cpu_level() <= (enum grd_isa_level)best);
}

static void the_level_agrees_with_compiler_builtins(void **state)
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

static void grd_isa_names_the_level(void **state)
{
    (void)state;
    const char *const names[] = {"portable", "x86-64-v2", "x86-64-v3", "x86-64-v4"};
    assert_string_equal(grd_isa(), names[grd_cpu_level()]);
}

static void processor_count_and_memory_size_are_plausible(void **state)
{
    (void)state;
    assert_true(grd_cpu_count() >= 1);
    assert_true(grd_cpu_count() <= sysconf(_SC_NPROCESSORS_ONLN));
    assert_true(grd_system_memory() > 1 << 20);
}

static int threads_with(const char *setting)
{
    return answer_with("threads", "GRADUS_NUM_THREADS", setting);
}

static void gradus_num_threads_sets_the_thread_count(void **state)
{
    (void)state;
    assert_int_equal(threads_with("7"), 7);
    const char *const bad[] = {"", "0", "-3", "x", "3x", "99999"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(threads_with(bad[i]), grd_cpu_count() & 0xff);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        return strcmp(argv[1], "level") == 0 ? (int)grd_cpu_level() : grd_num_threads();
    program = argv[0];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradus_isa_only_lowers_the_level),
        cmocka_unit_test(the_level_agrees_with_compiler_builtins),
        cmocka_unit_test(gradus_num_threads_sets_the_thread_count),
        cmocka_unit_test(grd_isa_names_the_level),
        cmocka_unit_test(processor_count_and_memory_size_are_plausible),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
