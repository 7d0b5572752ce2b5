/* Keeps the pending error of each thread. Its code is in grd_thread.error, its text in the rarely used state of the thread (struct
 * grd_thread_cold in base/cold.h). Invariant: raising an error never fails. If there is no memory for the text, the error has the fixed text of
 * its code. */
#include "base/error.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cold.h"

static const struct {
    const char *name, *meaning;
} classes[] = {
#define ERROR_CLASS(code, class_name, meaning) {class_name, meaning},
    GRD_ERRORS(ERROR_CLASS)
#undef ERROR_CLASS
};

/* Returns the formatted text, allocated with malloc, or NULL if there is no memory. */
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

/* Sets the text and the cause of this thread's pending error. Takes ownership of detail.message. If there is no memory to store them, the error
 * keeps only its code. */
static void set_detail(struct grd_error_detail detail)
{
    struct grd_thread_cold *cold = grd_thread_get_cold();
    if (cold == NULL) {
        free(detail.message);
        return;
    }
    free(cold->error.message);
    cold->error = detail;
}

void grd_raise_list(grd_error_code code, const char *format, va_list arguments)
{
    if (grd_pending())
        return;
    bool known = code > GRD_ERROR_NONE && (int)code < GRD_LENGTH(classes);
    grd_thread.error = known ? code : GRD_ERROR_RUNTIME;
    set_detail((struct grd_error_detail){.message = format_text(format, arguments)});
}

bool grd_raise(grd_error_code code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    grd_raise_list(code, format, arguments);
    va_end(arguments);
    return false;
}

bool grd_raise_null_pointer(const char *function, const char *argument)
{
    return grd_raise(GRD_ERROR_TYPE, "%s: argument '%s' must not be NULL", function, argument);
}

bool grd_raise_system(int number, const char *format, ...)
{
    if (grd_pending())
        return false;
    va_list arguments;
    va_start(arguments, format);
    char *message = format_text(format, arguments);
    va_end(arguments);
    grd_raise(GRD_ERROR_IO, "%s: %s", message != NULL ? message : "", strerror(number));
    free(message);
    if (grd_thread.cold != NULL)
        grd_thread.cold->error.system = number;
    return false;
}

void grd_error_set(grd_error_code code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    grd_raise_list(code, format, arguments);
    va_end(arguments);
}

/* True if `text` begins with `name` followed by "(" or ":", as in "name(): ..." and "name: ...". */
static bool begins_with_name(const char *text, const char *name)
{
    const size_t length = strlen(name);
    return strncmp(text, name, length) == 0 && (text[length] == '(' || text[length] == ':');
}

void grd_error_add_context(const char *name)
{
    if (!grd_pending())
        return;
    const char *old = grd_error_message();
    if (begins_with_name(old, name))
        return;
    const size_t before = strlen(name) + 2, size = before + strlen(old) + 1;
    char *text = malloc(size);
    if (text == NULL)
        return;
    snprintf(text, size, "%s: %s", name, old);
    set_detail((struct grd_error_detail){text, before + (size_t)(grd_error_text() - old), grd_error_system()});
}

struct grd_error_state grd_error_take(void)
{
    struct grd_error_state state = {.code = grd_error_get()};
    if (grd_thread.cold != NULL) {
        state.detail = grd_thread.cold->error;
        grd_thread.cold->error = (struct grd_error_detail){0};
    }
    grd_thread.error = 0;
    return state;
}

void grd_error_restore(struct grd_error_state state)
{
    if (state.code == GRD_ERROR_NONE) {
        free(state.detail.message);
        return;
    }
    grd_thread.error = state.code;
    set_detail(state.detail);
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
    if (grd_thread.cold != NULL && grd_thread.cold->error.message != NULL)
        return grd_thread.cold->error.message;
    return classes[grd_thread.error].meaning;
}

const char *grd_error_text(void)
{
    const char *message = grd_error_message();
    const bool own = grd_pending() && grd_thread.cold != NULL && grd_thread.cold->error.message == message;
    return own ? message + grd_thread.cold->error.context_length : message;
}

int grd_error_system(void)
{
    return grd_pending() && grd_thread.cold != NULL ? grd_thread.cold->error.system : 0;
}

const char *grd_error_class(grd_error_code code)
{
    return (int)code >= 0 && (int)code < GRD_LENGTH(classes) ? classes[code].name : "";
}

void grd_error_clear(void)
{
    grd_thread.error = 0;
    if (grd_thread.cold != NULL) {
        free(grd_thread.cold->error.message);
        grd_thread.cold->error = (struct grd_error_detail){0};
    }
}

static void (*_Atomic warning_handler)(const char *text);

void grd_set_warning_handler(void (*handler)(const char *text))
{
    atomic_store_explicit(&warning_handler, handler, memory_order_release);
}

bool grd_warn(const char *text)
{
    void (*handler)(const char *) = atomic_load_explicit(&warning_handler, memory_order_acquire);
    if (handler != NULL)
        handler(text);
    return !grd_pending();
}
