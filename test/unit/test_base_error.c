/* Errors: the first one raised stays, context is added to it, it can be carried to another thread; and text buffers. */
#include <pthread.h>
#include <string.h>
#include <wchar.h>

#include "base/error.h"
#include "base/text.h"
#include "support.h"

static int no_error(void **state)
{
    (void)state;
    assert_true(grd_ok());
    return 0;
}

static int clear(void **state)
{
    (void)state;
    grd_error_clear();
    return 0;
}

static void first_error_wins(void **state)
{
    (void)state;
    assert_string_equal(grd_error_message(), "");
    assert_int_equal(grd_error_get(), GRD_ERROR_NONE);
    assert_false(grd_raise(GRD_ERROR_VALUE, "p must be in [0, 1], got %g", 1.5));
    assert_false(grd_raise(GRD_ERROR_INDEX, "second"));
    grd_error_set(GRD_ERROR_INDEX, "third");
    assert_false(grd_ok());
    assert_true(grd_pending());
    assert_int_equal(grd_error_get(), GRD_ERROR_VALUE);
    assert_string_equal(grd_error_message(), "p must be in [0, 1], got 1.5");
    grd_error_clear();
    assert_true(grd_ok());
    assert_string_equal(grd_error_message(), "");
}

static void context_is_added_in_front(void **state)
{
    (void)state;
    grd_error_add_context("nothing");
    assert_true(grd_ok());
    grd_raise(GRD_ERROR_RUNTIME, "shapes do not broadcast");
    grd_error_add_context("mul");
    grd_error_add_context("layer_norm");
    assert_string_equal(grd_error_message(), "layer_norm: mul: shapes do not broadcast");
    assert_string_equal(grd_error_text(), "shapes do not broadcast");
    grd_error_clear();
    assert_string_equal(grd_error_text(), "");
    grd_raise(GRD_ERROR_RUNTIME, "mul: no context");
    assert_string_equal(grd_error_text(), "mul: no context");
}

static void the_length_of_the_context_travels_with_the_message(void **state)
{
    (void)state;
    grd_raise(GRD_ERROR_RUNTIME, "first");
    grd_error_add_context("mul");
    struct grd_error_state taken = grd_error_take();
    assert_string_equal(grd_error_text(), "");
    grd_raise(GRD_ERROR_RUNTIME, "second");
    grd_error_restore(taken);
    grd_error_add_context("layer_norm");
    assert_string_equal(grd_error_message(), "layer_norm: mul: first");
    assert_string_equal(grd_error_text(), "first");
}

static void long_messages_are_whole(void **state)
{
    (void)state;
    char text[5000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    grd_raise(GRD_ERROR_TYPE, "%s", text);
    assert_string_equal(grd_error_message(), text);
}

static void classes(void **state)
{
    (void)state;
    assert_string_equal(grd_error_class(GRD_ERROR_NONE), "");
    assert_string_equal(grd_error_class(GRD_ERROR_IO), "OSError");
    assert_string_equal(grd_error_class(GRD_ERROR_MEMORY), "MemoryError");
    assert_string_equal(grd_error_class((grd_error_code)99), "");
}

static void unknown_codes_are_runtime_errors(void **state)
{
    (void)state;
    grd_error_set((grd_error_code)99, "odd");
    assert_int_equal(grd_error_get(), GRD_ERROR_RUNTIME);
    grd_error_clear();
    grd_error_set(GRD_ERROR_NONE, "odd");
    assert_int_equal(grd_error_get(), GRD_ERROR_RUNTIME);
}

static void take_and_restore(void **state)
{
    (void)state;
    grd_raise(GRD_ERROR_INDEX, "first");
    struct grd_error_state taken = grd_error_take();
    assert_true(grd_ok());
    grd_raise(GRD_ERROR_VALUE, "second");
    grd_error_restore(taken);
    assert_int_equal(grd_error_get(), GRD_ERROR_INDEX);
    assert_string_equal(grd_error_message(), "first");
    grd_error_clear();

    taken = grd_error_take();
    grd_raise(GRD_ERROR_VALUE, "later");
    grd_error_restore(taken);
    assert_string_equal(grd_error_message(), "later");
}

static void an_error_without_text_has_a_meaning(void **state)
{
    (void)state;
    grd_error_restore((struct grd_error_state){.code = GRD_ERROR_MEMORY});
    assert_string_equal(grd_error_message(), "an allocation failed or exceeds the limit");
    grd_error_clear();
    grd_raise(GRD_ERROR_VALUE, "%lc", (wint_t)0x20ac); /* no such character in the C locale */
    expect_error(GRD_ERROR_VALUE, "a value is outside its domain");
}

static void *raise_and_take(void *ret_state)
{
    struct grd_error_state none = grd_error_take(); /* taken before this thread has a buffer for an error text */
    if (none.code != GRD_ERROR_NONE || none.detail.message != NULL)
        return NULL;
    grd_raise(GRD_ERROR_IO, "on a thread");
    *(struct grd_error_state *)ret_state = grd_error_take();
    grd_raise(GRD_ERROR_IO, "left behind");
    return NULL;
}

static void errors_belong_to_threads(void **state)
{
    (void)state;
    pthread_t thread;
    struct grd_error_state taken = {0};
    assert_int_equal(pthread_create(&thread, NULL, raise_and_take, &taken), 0);
    pthread_join(thread, NULL);
    assert_true(grd_ok());
    grd_error_restore(taken);
    assert_string_equal(grd_error_message(), "on a thread");
}

static void text_grows(void **state)
{
    (void)state;
    struct grd_text text = {0};
    for (int i = 0; i < 100; i++)
        grd_text_add(&text, "%d,", i);
    assert_int_equal(text.size, 290);
    assert_int_equal(strlen(text.data), 290);
    assert_memory_equal(text.data, "0,1,2,", 6);
    assert_string_equal(text.data + 287, "99,");
    grd_text_add(&text, "%1000d", 7); /* more than twice the present size */
    assert_int_equal(strlen(text.data), 1290);
    grd_text_add(&text, "%lc", (wint_t)0x20ac); /* no such character in the C locale */
    assert_int_equal(text.size, 1290);
    grd_text_done(&text);
    assert_null(text.data);
}

static void text_survives_failed_allocations(void **state)
{
    (void)state;
    struct grd_text text = {0};
    grd_text_add(&text, "kept");
    grd_memory_fail_at(1, true);
    for (int i = 0; i < 100; i++)
        grd_text_add(&text, "%d,", i);
    grd_memory_fail_at(0, false);
    assert_true(text.failed);
    assert_int_equal(grd_error_get(), GRD_ERROR_MEMORY);
    assert_memory_equal(text.data, "kept", 4);
    size_t size = text.size;
    grd_text_add(&text, "no more");
    assert_int_equal(text.size, size);
    grd_text_done(&text);
}

static void int64_lists(void **state)
{
    (void)state;
    char buffer[32];
    const int64_t values[] = {2, -3, 40, INT64_MIN};
    assert_string_equal(grd_format_int64s(buffer, sizeof buffer, values, 0), "[]");
    assert_string_equal(grd_format_int64s(buffer, sizeof buffer, values, 1), "[2]");
    assert_string_equal(grd_format_int64s(buffer, sizeof buffer, values, 3), "[2, -3, 40]");
    assert_string_equal(grd_format_int64s(buffer, sizeof buffer, values, 4), "[2, -3, 40, ...]");
    assert_string_equal(grd_format_int64s(buffer, 12, values, 3), "[2, -3, 40]");
    assert_string_equal(grd_format_int64s(buffer, 11, values, 3), "[2, ...]");
    assert_string_equal(grd_format_int64s(buffer, 1, values, 0), "");
    assert_ptr_equal(grd_format_int64s(buffer, 0, values, 4), buffer);
    /* No size may overflow the buffer, and from size 6 on a text that is cut still ends with the closing bracket. */
    for (size_t size = 1; size <= sizeof buffer; size++) {
        memset(buffer, 'x', sizeof buffer);
        grd_format_int64s(buffer, size, values, 4);
        assert_true(strlen(buffer) < size);
        if (size >= 6)
            assert_int_equal(buffer[strlen(buffer) - 1], ']');
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(first_error_wins, no_error, clear),
        cmocka_unit_test_setup_teardown(context_is_added_in_front, no_error, clear),
        cmocka_unit_test_setup_teardown(the_length_of_the_context_travels_with_the_message, no_error, clear),
        cmocka_unit_test_setup_teardown(long_messages_are_whole, no_error, clear),
        cmocka_unit_test_setup_teardown(classes, no_error, clear),
        cmocka_unit_test_setup_teardown(unknown_codes_are_runtime_errors, no_error, clear),
        cmocka_unit_test_setup_teardown(take_and_restore, no_error, clear),
        cmocka_unit_test_setup_teardown(an_error_without_text_has_a_meaning, no_error, clear),
        cmocka_unit_test_setup_teardown(errors_belong_to_threads, no_error, clear),
        cmocka_unit_test_setup_teardown(text_grows, no_error, clear),
        cmocka_unit_test_setup_teardown(text_survives_failed_allocations, no_error, clear),
        cmocka_unit_test_setup_teardown(int64_lists, no_error, clear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
