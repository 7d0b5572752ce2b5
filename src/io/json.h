/* The few forms of JSON that the header of a safetensors file has: punctuation, strings, unsigned integers. Strict: whatever RFC 8259 forbids is an
 * error, and so is what it allows and a header does not need.
 *
 * Invariant: nothing outside [begin, end) is read or written, whatever the bytes are. */
#ifndef GRD_IO_JSON_H
#define GRD_IO_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gradus/export.h"

struct grd_json {
    char *begin, *at, *end;
    const char *what; /* the file, for errors */
};

/* RuntimeError "cannot load WHAT: MESSAGE at byte 17 of the header"; the first byte is 0. Always false. */
bool grd_json_fail(const struct grd_json *json, const char *format, ...) GRD_PRINTF(2, 3);
/* Takes the character if it comes next, after spaces. */
bool grd_json_take(struct grd_json *json, char c);
/* Takes the character, or fails: "expected ':'". */
bool grd_json_expect(struct grd_json *json, char c);
/* A string, decoded and terminated in place. It lives as long as the text. A NUL in it is an error. */
bool grd_json_string(struct grd_json *json, const char **ret_string);
/* Digits without sign, point or exponent. */
bool grd_json_integer(struct grd_json *json, uint64_t *ret_value);
/* True at the end of the text, after spaces. */
bool grd_json_at_end(struct grd_json *json);

/* True if the text is valid UTF-8: no surrogates, no longer forms than needed, nothing above U+10FFFF. */
bool grd_is_utf8(const char *text, size_t size);

#endif
