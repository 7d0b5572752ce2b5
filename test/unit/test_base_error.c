/* Tests errors and text buffers. The first error raised stays, context is added to it, and it can be moved to another thread. */
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

static void the_first_error_stays(void **state)
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

static void context_is_added_before_the_message(void **state)
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

static void a_taken_error_keeps_its_context(void **state)
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

static void long_messages_are_not_cut(void **state)
{
    (void)state;
    char text[5000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    grd_raise(GRD_ERROR_TYPE, "%s", text);
    assert_string_equal(grd_error_message(), text);
}

static void error_codes_have_python_class_names(void **state)
{
    (void)state;
    assert_string_equal(grd_error_class(GRD_ERROR_NONE), "");
    assert_string_equal(grd_error_class(GRD_ERROR_IO), "OSError");
    assert_string_equal(grd_error_class(GRD_ERROR_MEMORY), "MemoryError");
    assert_string_equal(grd_error_class((grd_error_code)99), "");
}

static void unknown_error_codes_become_runtime_errors(void **state)
{
    (void)state;
    grd_error_set((grd_error_code)99, "odd");
    assert_int_equal(grd_error_get(), GRD_ERROR_RUNTIME);
    grd_error_clear();
    grd_error_set(GRD_ERROR_NONE, "odd");
    assert_int_equal(grd_error_get(), GRD_ERROR_RUNTIME);
}

static void a_taken_error_can_be_restored(void **state)
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

static void an_error_without_text_has_a_default_message(void **state)
{
    (void)state;
    grd_error_restore((struct grd_error_state){.code = GRD_ERROR_MEMORY});
    assert_string_equal(grd_error_message(), "an allocation failed or exceeds the limit");
    grd_error_clear();
    grd_raise(GRD_ERROR_VALUE, "%lc", (wint_t)0x20ac); /* formatting fails, because the C locale lacks this character */
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

static void errors_are_thread_local(void **state)
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

static void a_text_buffer_grows(void **state)
{
    (void)state;
    struct grd_text text = {0};
    for (int i = 0; i < 100; i++)
        grd_text_add(&text, "%d,", i);
    assert_int_equal(text.size, 290);
    assert_int_equal(strlen(text.data), 290);
    assert_memory_equal(text.data, "0,1,2,", 6);
    assert_string_equal(text.data + 287, "99,");
    grd_text_add(&text, "%1000d", 7); /* the text grows to more than twice the current size of the buffer */
    assert_int_equal(strlen(text.data), 1290);
    grd_text_add(&text, "%lc", (wint_t)0x20ac); /* formatting fails, because the C locale lacks this character */
    assert_int_equal(text.size, 1290);
    grd_text_done(&text);
    assert_null(text.data);
}

static void a_text_buffer_survives_failed_allocations(void **state)
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

static void integer_lists_are_formatted(void **state)
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
    /* The text must never exceed the buffer. In a buffer of at least 6 bytes, a truncated list still ends with the closing bracket. */
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
        cmocka_unit_test_setup_teardown(the_first_error_stays, no_error, clear),
        cmocka_unit_test_setup_teardown(context_is_added_before_the_message, no_error, clear),
        cmocka_unit_test_setup_teardown(a_taken_error_keeps_its_context, no_error, clear),
        cmocka_unit_test_setup_teardown(long_messages_are_not_cut, no_error, clear),
        cmocka_unit_test_setup_teardown(error_codes_have_python_class_names, no_error, clear),
        cmocka_unit_test_setup_teardown(unknown_error_codes_become_runtime_errors, no_error, clear),
        cmocka_unit_test_setup_teardown(a_taken_error_can_be_restored, no_error, clear),
        cmocka_unit_test_setup_teardown(an_error_without_text_has_a_default_message, no_error, clear),
        cmocka_unit_test_setup_teardown(errors_are_thread_local, no_error, clear),
        cmocka_unit_test_setup_teardown(a_text_buffer_grows, no_error, clear),
        cmocka_unit_test_setup_teardown(a_text_buffer_survives_failed_allocations, no_error, clear),
        cmocka_unit_test_setup_teardown(integer_lists_are_formatted, no_error, clear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
