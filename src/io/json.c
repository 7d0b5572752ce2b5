/* Reads the tokens of a JSON text, and checks UTF-8; see json.h. */
#include "io/json.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"

bool grd_json_fail(const struct grd_json *json, const char *format, ...)
{
    char message[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    return grd_raise(GRD_ERROR_RUNTIME, "cannot load %s: %s at byte %lld of the header", json->what, message,
                     (long long)(json->at - json->begin));
}

bool grd_json_at_end(struct grd_json *json)
{
    while (json->at < json->end && (*json->at == ' ' || *json->at == '\t' || *json->at == '\n' || *json->at == '\r'))
        json->at++;
    return json->at == json->end;
}

bool grd_json_take(struct grd_json *json, char c)
{
    if (grd_json_at_end(json) || *json->at != c)
        return false;
    json->at++;
    return true;
}

bool grd_json_expect(struct grd_json *json, char c)
{
    return grd_json_take(json, c) || grd_json_fail(json, "expected '%c'", c);
}

bool grd_json_integer(struct grd_json *json, uint64_t *ret_value)
{
    grd_json_at_end(json);
    const char *start = json->at;
    uint64_t value = 0;
    for (; json->at < json->end && *json->at >= '0' && *json->at <= '9'; json->at++)
        if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, (uint64_t)(*json->at - '0'), &value))
            return grd_json_fail(json, "the integer does not fit into 64 bits");
    const int64_t digits = json->at - start;
    if (digits == 0 || (digits > 1 && *start == '0'))
        return grd_json_fail(json, "expected an unsigned integer");
    *ret_value = value;
    return true;
}

/* ---- Strings ----------------------------------------------------------------------------------------------------------------------------- */

/* Returns the number of bytes of the UTF-8 character at `text`, or 0 if the character is not valid. `size`, at least 1, is the number of bytes
 * that are left in the text. */
static size_t character_size(const unsigned char *text, size_t size)
{
    /* The first byte gives the number of bytes. It also gives the valid range of the second byte, which excludes overlong forms, surrogates and
     * code points above U+10FFFF. */
    const unsigned char first = text[0];
    if (first < 0x80)
        return 1;
    const size_t n = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    if (first < 0xc2 || first > 0xf4 || size < n)
        return 0;
    const unsigned char lowest = first == 0xe0   ? 0xa0
                                 : first == 0xf0 ? 0x90
                                                 : 0x80,
                        highest = first == 0xed   ? 0x9f
                                  : first == 0xf4 ? 0x8f
                                                  : 0xbf;
    if (text[1] < lowest || text[1] > highest)
        return 0;
    for (size_t i = 2; i < n; i++)
        if ((text[i] & 0xc0) != 0x80)
            return 0;
    return n;
}

bool grd_is_utf8(const char *text, size_t size)
{
    for (size_t at = 0, n; at < size; at += n)
        if ((n = character_size((const unsigned char *)text + at, size - at)) == 0)
            return false;
    return true;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Reads the four hexadecimal digits of an escape such as "\u00e9". False, with RuntimeError, if there are fewer. */
static bool read_hex(struct grd_json *json, uint32_t *ret_value)
{
    uint32_t value = 0;
    for (int i = 0; i < 4; i++, json->at++) {
        const int digit = json->at < json->end ? hex_digit(*json->at) : -1;
        if (digit < 0)
            return grd_json_fail(json, "expected four hexadecimal digits");
        value = value << 4 | (uint32_t)digit;
    }
    *ret_value = value;
    return true;
}

/* Reads the code point of a \u escape, starting after the "\u". A code point above U+FFFF is written as two escapes, a surrogate pair. False, with
 * the error raised, if the escape is malformed or the code point is 0. */
static bool read_code(struct grd_json *json, uint32_t *ret_code)
{
    uint32_t low;
    if (!read_hex(json, ret_code))
        return false;
    if (*ret_code == 0)
        return grd_json_fail(json, "a string holds the character NUL");
    if (*ret_code < 0xd800 || *ret_code > 0xdfff)
        return true;
    if (*ret_code > 0xdbff || json->end - json->at < 2 || json->at[0] != '\\' || json->at[1] != 'u')
        return grd_json_fail(json, "a surrogate without its other half");
    json->at += 2;
    if (!read_hex(json, &low))
        return false;
    if (low < 0xdc00 || low > 0xdfff)
        return grd_json_fail(json, "a surrogate without its other half");
    *ret_code = 0x10000 + ((*ret_code - 0xd800) << 10) + (low - 0xdc00);
    return true;
}

/* Writes a code point as UTF-8 to `to` and returns the end of the written bytes. The UTF-8 form is never longer than the escape, so the text can
 * be decoded in place. */
static char *write_code(char *to, uint32_t code)
{
    const int n = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const unsigned char first[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (int i = n - 1; i > 0; i--, code >>= 6)
        to[i] = (char)(0x80 | (code & 0x3f));
    to[0] = (char)(first[n] | code);
    return to + n;
}

/* Reads the part of an escape after the backslash. Writes the character as UTF-8 to *to, and moves *to behind the written bytes. False, with
 * RuntimeError, if the escape is invalid. */
static bool read_escape(struct grd_json *json, char **to)
{
    static const char letters[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    const char letter = json->at < json->end ? *json->at++ : '\0';
    const char *found = letter != '\0' ? strchr(letters, letter) : NULL;
    uint32_t code;
    if (found != NULL) {
        *(*to)++ = meanings[found - letters];
        return true;
    }
    if (letter != 'u')
        return grd_json_fail(json, "an escape that JSON does not have");
    if (!read_code(json, &code))
        return false;
    *to = write_code(*to, code);
    return true;
}

bool grd_json_string(struct grd_json *json, const char **ret_string)
{
    if (!grd_json_expect(json, '"'))
        return false;
    char *start = json->at, *to = start;
    while (json->at < json->end && *json->at != '"') {
        const size_t n = character_size((const unsigned char *)json->at, (size_t)(json->end - json->at));
        if (n == 0)
            return grd_json_fail(json, "bytes that are not UTF-8");
        if ((unsigned char)*json->at < 0x20)
            return grd_json_fail(json, "a string with the control character 0x%02x", (unsigned char)*json->at);
        if (*json->at == '\\') {
            json->at++;
            if (!read_escape(json, &to))
                return false;
            continue;
        }
        memmove(to, json->at, n);
        to += n;
        json->at += n;
    }
    if (json->at == json->end)
        return grd_json_fail(json, "the string does not end");
    json->at++;
    *to = '\0'; /* overwrites the closing quote or a byte before it, because decoding never makes a string longer */
    *ret_string = start;
    return true;
}
