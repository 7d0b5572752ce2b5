/* Reads the tokens of operator schemas and gradient formulas; see reader.h. */
#include "base/reader.h"

#include <errno.h>
#include <limits.h>
#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

enum { SHOWN = 300 }; /* largest number of characters of the text that an error message shows */

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static const char *skip_spaces(const char *at)
{
    while (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r')
        at++;
    return at;
}

bool grd_span_is(struct grd_span span, const char *word)
{
    return strlen(word) == (size_t)span.length && memcmp(span.at, word, (size_t)span.length) == 0;
}

static GRD_PRINTF(3, 0) bool fail(const struct grd_reader *reader, const char *at, const char *format, va_list arguments)
{
    char message[256];
    vsnprintf(message, sizeof message, format, arguments);
    return grd_raise(GRD_ERROR_VALUE, "%s: %s at character %lld of \"%.*s%s\"", reader->what, message, (long long)(at - reader->text) + 1,
                     SHOWN, reader->text, strlen(reader->text) > SHOWN ? "..." : "");
}

bool grd_read_fail(const struct grd_reader *reader, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fail(reader, skip_spaces(reader->at), format, arguments);
    va_end(arguments);
    return false;
}

bool grd_read_fail_at(const struct grd_reader *reader, const char *at, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fail(reader, at, format, arguments);
    va_end(arguments);
    return false;
}

char grd_read_peek(struct grd_reader *reader)
{
    reader->at = skip_spaces(reader->at);
    return *reader->at;
}

bool grd_read_token(struct grd_reader *reader, const char *token)
{
    grd_read_peek(reader);
    const size_t length = strlen(token);
    if (strncmp(reader->at, token, length) != 0)
        return false;
    reader->at += length;
    return true;
}

bool grd_read_keyword(struct grd_reader *reader, const char *keyword)
{
    const struct grd_reader before = *reader;
    struct grd_span word;
    if (grd_read_word(reader, &word) && grd_span_is(word, keyword))
        return true;
    *reader = before;
    return false;
}

bool grd_read_expect(struct grd_reader *reader, const char *token)
{
    return grd_read_token(reader, token) || grd_read_fail(reader, "expected '%s'", token);
}

bool grd_read_word(struct grd_reader *reader, struct grd_span *ret_word)
{
    if (!is_letter(grd_read_peek(reader)))
        return false;
    const char *start = reader->at;
    while (is_letter(*reader->at) || is_digit(*reader->at))
        reader->at++;
    if (reader->at - start > INT_MAX)
        return grd_read_fail_at(reader, start, "the word is too long");
    *ret_word = (struct grd_span){start, (int)(reader->at - start)};
    return true;
}

static const char *digits(const char *at)
{
    while (is_digit(*at))
        at++;
    return at;
}

/* Returns the end of the number that starts at `at`. Sets *ret_point to true if the number has a decimal point or an exponent, otherwise to
 * false. */
static const char *number_end(const char *at, bool *ret_point)
{
    const char *end = digits(at);
    *ret_point = *end == '.';
    if (*end == '.')
        end = digits(end + 1);
    if (*end == 'e' || *end == 'E') {
        const char *exponent = end + 1 + (end[1] == '+' || end[1] == '-');
        if (is_digit(*exponent)) {
            *ret_point = true;
            end = digits(exponent);
        }
    }
    return end;
}

/* Returns the number at `at` as strtod does in the C locale. The program's own locale may have a decimal comma. */
static double read_double(const char *at)
{
    const locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    const locale_t previous = c != (locale_t)0 ? uselocale(c) : (locale_t)0;
    const double x = strtod(at, NULL);
    if (c != (locale_t)0) {
        uselocale(previous);
        freelocale(c);
    }
    return x;
}

bool grd_read_number(struct grd_reader *reader, grd_scalar *ret_number)
{
    const char first = grd_read_peek(reader);
    if (!is_digit(first) && !(first == '.' && is_digit(reader->at[1])))
        return grd_read_fail(reader, "expected a number");
    bool point;
    const char *end = number_end(reader->at, &point);
    if (is_letter(*end))
        return grd_read_fail(reader, "expected a number");
    errno = 0;
    *ret_number = point ? grd_float(read_double(reader->at)) : grd_int(strtoll(reader->at, NULL, 10));
    if (!point && errno == ERANGE)
        return grd_read_fail(reader, "the integer does not fit into 64 bits");
    reader->at = end;
    return true;
}

bool grd_read_string(struct grd_reader *reader, struct grd_span *ret_string)
{
    const char quote = grd_read_peek(reader), *start = reader->at + 1, *end = strchr(start, quote);
    if (end == NULL || end - start > INT_MAX)
        return grd_read_fail(reader, "the string does not end");
    *ret_string = (struct grd_span){start, (int)(end - start)};
    reader->at = end + 1;
    return true;
}
