/* Reads the tokens of a short text: words, numbers, quoted strings and punctuation. White space between tokens is skipped. Errors name the
 * position in the text. Invariant: nothing behind the terminating NUL is read, whatever the text is. */
#ifndef GRD_BASE_READER_H
#define GRD_BASE_READER_H

#include <stdbool.h>

#include "gradus/types.h"

struct grd_reader {
    /* `text` is the complete text. `at` points to its first character that is not read yet. */
    const char *text, *at;
    const char *what; /* the kind of text, e.g. "schema"; error messages begin with it */
};

/* A substring of the text being read, not NUL-terminated. */
struct grd_span {
    const char *at;
    int length;
};

/* True if the substring equals `word`. */
bool grd_span_is(struct grd_span span, const char *word);

/* Raises a ValueError such as "schema: expected ')' at character 17 of "..."". The position is the start of the next token, counted from 1.
 * Always returns false. */
bool grd_read_fail(const struct grd_reader *reader, const char *format, ...) GRD_PRINTF(2, 3);
/* Raises a ValueError as grd_read_fail does, but with the position of `at`, a pointer into the text. Always returns false. */
bool grd_read_fail_at(const struct grd_reader *reader, const char *at, const char *format, ...) GRD_PRINTF(3, 4);

/* Skips white space and returns the next character without consuming it. Returns NUL at the end of the text. */
char grd_read_peek(struct grd_reader *reader);
/* If the punctuation `token` comes next, reads it and returns true; otherwise returns false. */
bool grd_read_token(struct grd_reader *reader, const char *token);
/* If the next word is `keyword`, reads it and returns true; otherwise returns false and reads nothing. */
bool grd_read_keyword(struct grd_reader *reader, const char *keyword);
/* Reads the punctuation `token` and returns true. If something else comes next, raises an error such as "expected ')'" and returns false. */
bool grd_read_expect(struct grd_reader *reader, const char *token);
/* Reads a word, which is a letter or '_' followed by letters, digits and '_'. Returns false, with no error, if something else comes next. */
bool grd_read_word(struct grd_reader *reader, struct grd_span *ret_word);
/* Reads a number without sign. Its kind is FLOAT if it has a decimal point or an exponent, otherwise INT. Returns false, with the error raised, if no
 * number comes next or an integer does not fit into 64 bits. */
bool grd_read_number(struct grd_reader *reader, grd_scalar *ret_number);
/* Reads a quoted string, whose first quote is the next character, and writes the text between the quotes. There are no escapes. Returns false, with
 * the error raised, if the second quote is missing. */
bool grd_read_string(struct grd_reader *reader, struct grd_span *ret_string);

#endif
