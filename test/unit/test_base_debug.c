/* Tests the environment variable GRADUS_DEBUG: known words turn debug modes on, unknown words are reported on standard error. */
#define _GNU_SOURCE /* for setenv and dup */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/debug.h"
#include "support.h"

/* Sets GRADUS_DEBUG to `text` and returns the debug modes that it turns on. Stores what is printed on standard error in ret_report, which holds
 * `size` bytes. */
static uint32_t read_modes(const char *text, char *ret_report, size_t size)
{
    const uint32_t before = grd_debug_modes;
    FILE *file = tmpfile();
    const int standard = dup(STDERR_FILENO);
    assert_non_null(file);
    dup2(fileno(file), STDERR_FILENO);
    setenv("GRADUS_DEBUG", text, 1);
    grd_debug_modes = 0;
    grd_debug_init();
    unsetenv("GRADUS_DEBUG");
    dup2(standard, STDERR_FILENO);
    close(standard);
    rewind(file);
    ret_report[fread(ret_report, 1, size - 1, file)] = '\0';
    fclose(file);
    const uint32_t modes = grd_debug_modes;
    grd_debug_modes = before;
    return modes;
}

static void test_known_words_enable_debug_modes(void **state)
{
    (void)state;
    char report[512];
    assert_int_equal(read_modes("", report, sizeof report), 0);
    assert_string_equal(report, "");
    assert_int_equal(read_modes("lifetimes", report, sizeof report), GRD_DEBUG_LIFETIMES);
    assert_int_equal(read_modes(",lifetimes,,", report, sizeof report), GRD_DEBUG_LIFETIMES);
    assert_int_equal(read_modes("races", report, sizeof report), GRD_DEBUG_RACES);
    assert_int_equal(read_modes("races,lifetimes", report, sizeof report), GRD_DEBUG_RACES | GRD_DEBUG_LIFETIMES);
    assert_string_equal(report, "");
}

static void test_unknown_words_are_reported(void **state)
{
    (void)state;
    char report[512];
    assert_int_equal(read_modes("lifetime,lifetimes,x", report, sizeof report), GRD_DEBUG_LIFETIMES);
    assert_non_null(strstr(report, "gradus: GRADUS_DEBUG: 'lifetime' is not a mode; modes are: lifetimes races"));
    assert_non_null(strstr(report, "GRADUS_DEBUG: 'x' is not a mode"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_words_enable_debug_modes),
        cmocka_unit_test(test_unknown_words_are_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
