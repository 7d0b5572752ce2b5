/* Declares a growing text buffer. If an allocation fails, the text stays unchanged, `failed` becomes true and MemoryError is pending. */
#ifndef GRD_BASE_TEXT_H
#define GRD_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gradus/export.h"

struct grd_text {
    char *data; /* NULL until something is added, then NUL-terminated */
    size_t size;
    int64_t capacity;
    bool failed;
};

/* Appends a text, formatted as by printf. */
void grd_text_add(struct grd_text *text, const char *format, ...) GRD_PRINTF(2, 3);
void grd_text_done(struct grd_text *text); /* frees the text and makes the buffer empty */

/* Writes `n` integers as a list such as "[2, 3]" to `buffer`, which has `size` bytes, and returns `buffer`. A list that does not fit ends with
 * "...]". */
const char *grd_format_int64s(char *buffer, size_t size, const int64_t *values, int64_t n);

#endif
