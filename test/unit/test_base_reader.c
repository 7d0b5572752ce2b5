/* Tests the tokenizer of schemas and formulas: the tokens it reads, and its errors, which name the position of the mistake in the text. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/reader.h"
#include "support.h"

static struct grd_reader reader_of(const char *text)
{
    return (struct grd_reader){text, text, "test"};
}

static void words_and_punctuation_are_read(void **state)
{
    (void)state;
    struct grd_reader reader = reader_of(" _Word9\t\r\n-> other+ ");
    struct grd_span word;
    assert_false(grd_read_keyword(&reader, "_Word"));
    assert_true(grd_read_word(&reader, &word));
    assert_true(grd_span_is(word, "_Word9") && !grd_span_is(word, "_Word8") && !grd_span_is(word, "_Word"));
    assert_false(grd_read_word(&reader, &word));
    assert_true(grd_read_token(&reader, "->"));
    assert_true(grd_read_keyword(&reader, "other"));
    assert_false(grd_read_keyword(&reader, "other"));
    assert_true(grd_read_expect(&reader, "+"));
    assert_int_equal(grd_read_peek(&reader), '\0');
    assert_false(grd_read_expect(&reader, ")"));
    expect_error(GRD_ERROR_VALUE, "test: expected ')' at character 21 of \" _Word9\t\r\n-> other+ \"");
    const char others[] = "@[`{"; /* the ASCII neighbours of the ranges A-Z and a-z */
    for (int i = 0; others[i] != '\0'; i++) {
        reader = reader_of(others + i);
        assert_false(grd_read_word(&reader, &word));
    }
}

static void integers_and_floats_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double value;
        bool whole;
        size_t length;
    } cases[] = {
        {"7", 7, true, 1},
        {"9223372036854775807", 9223372036854775807.0, true, 19},
        {"1.", 1, false, 2},
        {".5", .5, false, 2},
        {"2.25)", 2.25, false, 4},
        {"1e3", 1000, false, 3},
        {"1E-2,", .01, false, 4},
        {"1.5e+1", 15, false, 6},
        {"99999999999999999999.", 1e20, false, 21},
        {"1e999", INFINITY, false, 5}, /* C and Python read it as infinity, too */
        {"1e-999", 0, false, 6},
    };
    for (int i = 0; i < GRD_LENGTH(cases); i++) {
        struct grd_reader reader = reader_of(cases[i].text);
        grd_scalar number;
        assert_true(grd_read_number(&reader, &number));
        assert_int_equal(number.kind, cases[i].whole ? GRD_SCALAR_INT : GRD_SCALAR_FLOAT);
        assert_true((cases[i].whole ? (double)number.v.i : number.v.c.re) == cases[i].value);
        assert_int_equal(reader.at - reader.text, cases[i].length);
    }
}

static void malformed_numbers_are_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {"", "x", ".", ".x", "-1", "2x", "1e", "1e+", "3.e-x"};
    for (int i = 0; i < GRD_LENGTH(texts); i++) {
        struct grd_reader reader = reader_of(texts[i]);
        grd_scalar number;
        assert_false(grd_read_number(&reader, &number));
        char text[80];
        snprintf(text, sizeof text, "test: expected a number at character 1 of \"%s\"", texts[i]);
        expect_error(GRD_ERROR_VALUE, text);
        assert_ptr_equal(reader.at, texts[i]);
    }
    struct grd_reader reader = reader_of("9223372036854775808");
    grd_scalar number;
    assert_false(grd_read_number(&reader, &number));
    expect_error(GRD_ERROR_VALUE, "test: the integer does not fit into 64 bits at character 1 of \"9223372036854775808\"");
}

static void quoted_strings_are_read(void **state)
{
    (void)state;
    struct grd_reader reader = reader_of(" 'a \"b' \"\" 'c");
    struct grd_span string;
    assert_true(grd_read_string(&reader, &string));
    assert_true(grd_span_is(string, "a \"b"));
    assert_true(grd_read_string(&reader, &string));
    assert_true(grd_span_is(string, ""));
    assert_false(grd_read_string(&reader, &string));
    expect_error(GRD_ERROR_VALUE, "test: the string does not end at character 12 of \" 'a \"b' \"\" 'c\"");
    assert_false(grd_read_fail_at(&reader, reader.text + 2, "no such %s", "word"));
    expect_error(GRD_ERROR_VALUE, "test: no such word at character 3 of \" 'a \"b' \"\" 'c\"");
}

static void error_messages_truncate_long_texts(void **state)
{
    (void)state;
    char text[400], expected[400];
    memset(text, 'a', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    struct grd_reader reader = reader_of(text);
    assert_false(grd_read_expect(&reader, "b"));
    snprintf(expected, sizeof expected, "test: expected 'b' at character 1 of \"%.300s...\"", text);
    expect_error(GRD_ERROR_VALUE, expected);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_and_punctuation_are_read),     cmocka_unit_test(integers_and_floats_are_read),
        cmocka_unit_test(malformed_numbers_are_refused),      cmocka_unit_test(quoted_strings_are_read),
        cmocka_unit_test(error_messages_truncate_long_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
