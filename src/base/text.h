/* A growing text buffer. After a failed allocation it stays what it was and `failed` is set; MemoryError is pending. */
#ifndef GRD_BASE_TEXT_H
#define GRD_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gradus/export.h"

struct grd_text {
    char *data; /* NUL-terminated once something was added */
    size_t size;
    int64_t capacity;
    bool failed;
};

void grd_text_add(struct grd_text *text, const char *format, ...) GRD_PRINTF(2, 3);
void grd_text_done(struct grd_text *text); /* frees */

/* "[2, 3]" into a caller's buffer, cut with "..." when it does not fit; returns the buffer. */
const char *grd_format_int64s(char *buffer, size_t size, const int64_t *values, int64_t n);

#endif
