/* Reads the few kinds of JSON tokens that the header of a safetensors file has: punctuation, strings and unsigned integers. Everything that RFC
 * 8259 forbids is an error, and so is everything that a header does not need.
 *
 * Invariant: nothing outside the bytes from `begin` to `end` is read or written, whatever the bytes are. */
#ifndef GRD_IO_JSON_H
#define GRD_IO_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gradus/export.h"

struct grd_json {
    /* The JSON text from `begin` to `end`. `at` is the next byte to be read. Strings are decoded in place, which changes the text. */
    char *begin, *at, *end;
    const char *what; /* names the file in error texts */
};

/* Raises RuntimeError with a text such as "cannot load WHAT: MESSAGE at byte 17 of the header". WHAT is json->what, MESSAGE is made from `format`,
 * and the number is the offset of json->at in the text. Always returns false. */
bool grd_json_fail(const struct grd_json *json, const char *format, ...) GRD_PRINTF(2, 3);
/* Skips white space. If the next character is `c`, reads it and returns true; otherwise returns false. */
bool grd_json_take(struct grd_json *json, char c);
/* Skips white space and reads `c`. If something else comes next, raises an error such as "expected ':'" and returns false. */
bool grd_json_expect(struct grd_json *json, char c);
/* Reads a string and sets *ret_string to it. The string is decoded and NUL-terminated in place and lives as long as the text. False, with
 * RuntimeError, if it is invalid or contains a NUL character. */
bool grd_json_string(struct grd_json *json, const char **ret_string);
/* Reads an integer, which consists of digits only, without sign, point or exponent. False, with RuntimeError, if no integer comes next or the integer
 * does not fit into 64 bits. */
bool grd_json_integer(struct grd_json *json, uint64_t *ret_value);
/* Skips white space. True if this reaches the end of the text. */
bool grd_json_at_end(struct grd_json *json);

/* True if the `size` bytes at `text` are valid UTF-8, i.e. without surrogates, overlong forms and code points above U+10FFFF. */
bool grd_is_utf8(const char *text, size_t size);

#endif
