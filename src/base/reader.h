/* Reading a short text of a language: words, numbers, quoted strings, punctuation, and errors that say where.
 *
 * Not here: what the words mean. Spaces and line ends between tokens are skipped.
 * Invariant: nothing behind the terminating NUL is looked at, whatever the text is. */
#ifndef GRD_BASE_READER_H
#define GRD_BASE_READER_H

#include <stdbool.h>

#include "gradus/types.h"

struct grd_reader {
    const char *text, *at;
    const char *what; /* what is being read; begins the errors */
};

/* A part of a text, not terminated. */
struct grd_span {
    const char *at;
    int length;
};

bool grd_span_is(struct grd_span span, const char *word);

/* Raises ValueError "<what>: <the message> at character 17 of "…"": where the next token begins; the first character is 1. Returns false. */
bool grd_read_fail(const struct grd_reader *reader, const char *format, ...) GRD_PRINTF(2, 3);
/* The same for a place that was passed already. */
bool grd_read_fail_at(const struct grd_reader *reader, const char *at, const char *format, ...) GRD_PRINTF(3, 4);

/* The next character that is not a space; NUL at the end. */
char grd_read_peek(struct grd_reader *reader);
/* Takes the punctuation if it comes next. */
bool grd_read_token(struct grd_reader *reader, const char *token);
/* Takes the word if it comes next, whole. */
bool grd_read_keyword(struct grd_reader *reader, const char *keyword);
/* Takes the punctuation, or fails: "expected ')'". */
bool grd_read_expect(struct grd_reader *reader, const char *token);
/* A letter or '_', then letters, digits and '_'. False, with no error, when something else comes next. */
bool grd_read_word(struct grd_reader *reader, struct grd_span *ret_word);
/* A number without sign: INT, or FLOAT when it has a point or an exponent. False, with the error raised, when none comes or it does not fit. */
bool grd_read_number(struct grd_reader *reader, grd_scalar *ret_number);
/* Reads the text between two equal quotes, the first of which comes next. No escapes. False, with the error raised, when the second is missing. */
bool grd_read_string(struct grd_reader *reader, struct grd_span *ret_string);

#endif
