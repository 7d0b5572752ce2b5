/* Declares the handling of errors. The first error of a thread stays pending until grd_error_clear; later errors are ignored until then.
 *
 * While an error is pending, every operator returns grd_failed at once, so it is enough that a caller checks for errors once, at the end:
 *
 *     grd_tensor *loss = grd_mse_loss(grd_mm(x, w), y);
 *     if (!grd_ok()) { fprintf(stderr, "%s\n", grd_error_message()); grd_error_clear(); }
 *
 * Nothing in the library calls abort or exit. */
#ifndef GRADUS_ERROR_H
#define GRADUS_ERROR_H

#include <stdbool.h>

#include "gradus/export.h"

GRD_BEGIN_DECLS

/* The error table. Its columns are the code, the exception class that a language binding raises, and the meaning. */
#define GRD_ERRORS(X)                                                                                                                      \
    X(NONE, "", "no error is pending")                                                                                                     \
    X(RUNTIME, "RuntimeError", "shapes, dtypes, devices or state do not fit")                                                              \
    X(VALUE, "ValueError", "a value is outside its domain")                                                                                \
    X(TYPE, "TypeError", "an argument is of the wrong kind")                                                                               \
    X(INDEX, "IndexError", "a dimension or an index is out of range")                                                                      \
    X(NOT_IMPLEMENTED, "NotImplementedError", "no kernel for this combination")                                                            \
    X(MEMORY, "MemoryError", "an allocation failed or exceeds the limit")                                                                  \
    X(IO, "OSError", "a file could not be read or written")                                                                                \
    X(LINALG, "LinAlgError", "a matrix is not of the kind that a decomposition needs: a RuntimeError")

typedef enum grd_error_code {
#define GRD_ERROR_ENUM(code, class_name, meaning) GRD_ERROR_##code,
    GRD_ERRORS(GRD_ERROR_ENUM)
#undef GRD_ERROR_ENUM
} grd_error_code;

/* True if no error is pending on this thread. */
GRD_API bool grd_ok(void);

/* Returns the code of the pending error; GRD_ERROR_NONE if there is none. */
GRD_API grd_error_code grd_error_get(void);

/* Returns the text of the pending error, e.g. "layer_norm: mul: shapes [3, 5] and [4] do not broadcast", or "" if no error is pending. The text
 * stays valid until the next error or grd_error_clear on this thread. */
GRD_API const char *grd_error_message(void);

/* Returns grd_error_message() without the names of operators at its beginning, e.g. "shapes [3, 5] and [4] do not broadcast". */
GRD_API const char *grd_error_text(void);

/* Returns the value of errno that caused a pending OSError, e.g. ENOENT; 0 if no error is pending or no system call caused it. */
GRD_API int grd_error_system(void);

/* Returns the class that a language binding raises for the code: "ValueError", "RuntimeError", … */
GRD_API const char *grd_error_class(grd_error_code code);

/* Clears the pending error of this thread. */
GRD_API void grd_error_clear(void);

/* Makes an error with this code and text pending on this thread, unless an error is already pending. Custom functions, hooks and plug-ins report
 * failure with this function. */
GRD_API void grd_error_set(grd_error_code code, const char *format, ...) GRD_PRINTF(2, 3);

/* Sets the function that is called with the text of each warning, on the thread of the operator that warns. The handler may set an error, which
 * makes the operator fail. NULL, the initial value, ignores warnings. */
GRD_API void grd_set_warning_handler(void (*handler)(const char *text));

GRD_END_DECLS
#endif
