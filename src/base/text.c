/* The text buffer and the formatting of index lists. */
#include "base/text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"

static bool reserve(struct grd_text *text, size_t size)
{
    if (size <= text->capacity)
        return true;
    size_t wanted = text->capacity == 0 ? 64 : 2 * text->capacity;
    if (wanted < size)
        wanted = size;
    char *data = grd_realloc(text->data, text->capacity, wanted);
    if (data == NULL) {
        text->failed = true;
        return false;
    }
    text->data = data;
    text->capacity = wanted;
    return true;
}

void grd_text_add(struct grd_text *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (length < 0 || text->failed || !reserve(text, text->size + (size_t)length + 1))
        return;
    va_start(arguments, format);
    vsnprintf(text->data + text->size, (size_t)length + 1, format, arguments);
    va_end(arguments);
    text->size += (size_t)length;
}

void grd_text_done(struct grd_text *text)
{
    grd_free(text->data, text->capacity);
    *text = (struct grd_text){0};
}

const char *grd_format_int64s(char *buffer, size_t size, const int64_t *values, int64_t n)
{
    static const char cut[] = ", ...]";
    if (size == 0)
        return buffer;
    size_t used = (size_t)snprintf(buffer, size, "[");
    size_t safe = used; /* the last end of a number that a cut can follow */
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
