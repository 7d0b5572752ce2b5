/* Raising and decorating the pending error. The public part is gradus/error.h. */
#ifndef GRD_BASE_ERROR_H
#define GRD_BASE_ERROR_H

#include <stdarg.h>
#include <stddef.h>

#include "base/cold.h"
#include "base/thread.h"
#include "gradus/error.h"

/* Makes an error pending unless one is. Always returns false, so that a check reads `return grd_raise(…)`. */
bool grd_raise(grd_error_code code, const char *format, ...) GRD_PRINTF(2, 3);
void grd_raise_list(grd_error_code code, const char *format, va_list arguments) GRD_PRINTF(2, 0);

/* Makes OSError pending unless an error is: the message, ": " and what `number`, a value of errno, means. Always returns false. */
bool grd_raise_system(int number, const char *format, ...) GRD_PRINTF(2, 3);

/* TypeError "grd_hook_node: argument 'node' must not be NULL". Always false. */
bool grd_raise_null_pointer(const char *function, const char *argument);

/* For the arguments of public functions: false, with that error, for NULL. */
static inline bool grd_given_pointer(const void *pointer, const char *function, const char *argument)
{
    return GRD_LIKELY(pointer != NULL) || grd_raise_null_pointer(function, argument);
}

/* Tells the warning handler, if there is one. False when that made an error pending. */
bool grd_warn(const char *text);

/* "mul: " before the pending message: the way out of operator `name`. */
void grd_error_add_context(const char *name);

static inline bool grd_pending(void)
{
    return GRD_UNLIKELY(grd_thread.error != 0);
}

/* Takes the pending error off this thread and puts it back, possibly on another: for worker threads and destructors.
 * What was taken came first: it replaces an error raised since. Taking none and restoring it leaves a later error pending. */
struct grd_error_state {
    grd_error_code code;
    struct grd_error_detail detail;
};
struct grd_error_state grd_error_take(void);
void grd_error_restore(struct grd_error_state state);

#endif
