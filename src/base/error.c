/* The pending error of a thread. The flag is hot (grd_thread.error), the text is cold.
 * Invariant: raising never fails. With no memory for the text, the error has the fixed text of its code. */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cold.h"

static const char *const class_names[] = {
#define ERROR_CLASS(code, class_name, meaning) class_name,
    GRD_ERRORS(ERROR_CLASS)
#undef ERROR_CLASS
};

static const char *const meanings[] = {
#define ERROR_MEANING(code, class_name, meaning) meaning,
    GRD_ERRORS(ERROR_MEANING)
#undef ERROR_MEANING
};

/* NULL when memory is out. */
static GRD_PRINTF(1, 0) char *format_text(const char *format, va_list arguments)
{
    va_list again;
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    if (length < 0)
        return NULL;
    char *text = malloc((size_t)length + 1);
    if (text != NULL)
        vsnprintf(text, (size_t)length + 1, format, arguments);
    return text;
}

static void set_message(char *message)
{
    struct grd_thread_cold *cold = grd_thread_get_cold();
    if (cold == NULL) {
        free(message);
        return;
    }
    free(cold->message);
    cold->message = message;
}

static GRD_PRINTF(2, 0) void raise_error(grd_error_code code, const char *format, va_list arguments)
{
    if (grd_pending())
        return;
    bool known = code > GRD_ERROR_NONE && (int)code < GRD_LENGTH(class_names);
    grd_thread.error = known ? code : GRD_ERROR_RUNTIME;
    set_message(format_text(format, arguments));
}

bool grd_raise(grd_error_code code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    raise_error(code, format, arguments);
    va_end(arguments);
    return false;
}

void grd_error_set(grd_error_code code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    raise_error(code, format, arguments);
    va_end(arguments);
}

void grd_error_add_context(const char *name)
{
    if (!grd_pending())
        return;
    const char *old = grd_error_message();
    size_t name_length = strlen(name), old_length = strlen(old);
    char *text = malloc(name_length + 2 + old_length + 1);
    if (text == NULL)
        return;
    memcpy(text, name, name_length);
    memcpy(text + name_length, ": ", 2);
    memcpy(text + name_length + 2, old, old_length + 1);
    set_message(text);
}

struct grd_error_state grd_error_take(void)
{
    struct grd_error_state state = {.code = grd_error_get()};
    if (grd_thread.cold != NULL) {
        state.message = grd_thread.cold->message;
        grd_thread.cold->message = NULL;
    }
    grd_thread.error = 0;
    return state;
}

void grd_error_restore(struct grd_error_state state)
{
    if (state.code == GRD_ERROR_NONE) {
        free(state.message);
        return;
    }
    grd_thread.error = state.code;
    set_message(state.message);
}

bool grd_ok(void)
{
    return !grd_pending();
}

grd_error_code grd_error_get(void)
{
    return (grd_error_code)grd_thread.error;
}

const char *grd_error_message(void)
{
    if (!grd_pending())
        return "";
    if (grd_thread.cold != NULL && grd_thread.cold->message != NULL)
        return grd_thread.cold->message;
    return meanings[grd_thread.error];
}

const char *grd_error_class(grd_error_code code)
{
    return (int)code >= 0 && (int)code < GRD_LENGTH(class_names) ? class_names[code] : "";
}

void grd_error_clear(void)
{
    grd_thread.error = 0;
    if (grd_thread.cold != NULL) {
        free(grd_thread.cold->message);
        grd_thread.cold->message = NULL;
    }
}
