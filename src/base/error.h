/* Declares functions that raise errors, and that add context to the pending error. The public functions about errors are in gradus/error.h. */
#ifndef GRD_BASE_ERROR_H
#define GRD_BASE_ERROR_H

#include <stdarg.h>
#include <stddef.h>

#include "base/cold.h"
#include "base/thread.h"
#include "gradus/error.h"

/* Makes an error pending unless one is pending already. Always returns false, so that a check can end with `return grd_raise(...)`. */
bool grd_raise(grd_error_code code, const char *format, ...) GRD_PRINTF(2, 3);
/* Does what grd_raise does, with the arguments in a va_list. */
void grd_raise_list(grd_error_code code, const char *format, va_list arguments) GRD_PRINTF(2, 0);

/* Makes an OSError pending unless an error is pending already. Its text is the formatted message, then ": ", then the system's description of
 * `number`, a value of errno. Always returns false. */
bool grd_raise_system(int number, const char *format, ...) GRD_PRINTF(2, 3);

/* Raises a TypeError such as "grd_hook_node: argument 'node' must not be NULL". Always returns false. */
bool grd_raise_null_pointer(const char *function, const char *argument);

/* True if `pointer`, the argument called `argument` of the public function `function`, is not NULL. Otherwise raises TypeError and returns false. */
static inline bool grd_given_pointer(const void *pointer, const char *function, const char *argument)
{
    return GRD_LIKELY(pointer != NULL) || grd_raise_null_pointer(function, argument);
}

/* Passes `text` to the warning handler, if one is set. Returns false if an error is pending afterwards. */
bool grd_warn(const char *text);

/* Puts `name` and ": " before the pending error's message, unless the message begins with `name` already. Called when the operator `name`
 * fails. */
void grd_error_add_context(const char *name);

/* True while this thread has a pending error. */
static inline bool grd_pending(void)
{
    return GRD_UNLIKELY(grd_thread.error != 0);
}

/* A pending error that was taken off a thread. Worker threads and destructors keep an error in this struct, and can make it pending on another
 * thread. */
struct grd_error_state {
    grd_error_code code;
    struct grd_error_detail detail;
};
/* Clears this thread's pending error and returns it. The returned code is GRD_ERROR_NONE if no error was pending. */
struct grd_error_state grd_error_take(void);
/* Makes the error in `state` pending again. The restored error replaces an error that was raised in the meantime, because the restored one came
 * first. If `state` has no error, a pending error stays. */
void grd_error_restore(struct grd_error_state state);

#endif
