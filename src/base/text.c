/* Implements a growing text buffer, and formats lists of integers. */
#include "base/text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"

void grd_text_add(struct grd_text *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (length < 0 || text->failed)
        return;
    text->failed = !grd_reserve(&text->data, (int64_t)text->size + length + 1, &text->capacity, 1);
    if (text->failed)
        return;
    va_start(arguments, format);
    vsnprintf(text->data + text->size, (size_t)length + 1, format, arguments);
    va_end(arguments);
    text->size += (size_t)length;
}

void grd_text_done(struct grd_text *text)
{
    grd_free(text->data, (size_t)text->capacity);
    *text = (struct grd_text){0};
}

const char *grd_format_int64s(char *buffer, size_t size, const int64_t *values, int64_t n)
{
    static const char cut[] = ", ...]";
    if (size == 0)
        return buffer;
    size_t used = (size_t)snprintf(buffer, size, "[");
    size_t safe = used; /* length of the longest prefix of the list after which ", ...]" still fits */
    for (int64_t i = 0; i < n; i++) {
        char number[32];
        size_t length = (size_t)snprintf(number, sizeof number, i == 0 ? "%" PRId64 : ", %" PRId64, values[i]);
        if (used + length + sizeof "]" > size) {
            snprintf(buffer + safe, safe < size ? size - safe : 0, "%s", safe == 1 ? cut + 2 : cut);
            return buffer;
        }
        memcpy(buffer + used, number, length + 1);
        used += length;
        if (used + sizeof cut <= size)
            safe = used;
    }
    if (used < size)
        snprintf(buffer + used, size - used, "]");
    return buffer;
}
