/* Errors. The first error of a thread stays pending until grd_error_clear; later ones are ignored.
 *
 * While an error is pending, every operator returns grd_failed at once, so a caller checks once, at the end:
 *
 *     grd_tensor *loss = grd_mse_loss(grd_mm(x, w), y);
 *     if (!grd_ok()) { fprintf(stderr, "%s\n", grd_error_message()); grd_error_clear(); }
 *
 * Nothing in the library calls abort or exit.
 */
#ifndef GRADUS_ERROR_H
#define GRADUS_ERROR_H

#include <stdbool.h>

#include "gradus/export.h"

GRD_BEGIN_DECLS

/* The error table: code, the class a language binding raises, what it means. */
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

/* True while no error is pending on this thread. */
GRD_API bool grd_ok(void);

/* Returns the code of the pending error; GRD_ERROR_NONE if there is none. */
GRD_API grd_error_code grd_error_get(void);

/* Returns the text of the pending error, e.g. "layer_norm: mul: shapes [3, 5] and [4] do not broadcast"; "" if there is none.
 * The text stays valid until the next error or grd_error_clear on this thread. */
GRD_API const char *grd_error_message(void);

/* Returns grd_error_message without the names of operators at its beginning: "shapes [3, 5] and [4] do not broadcast". */
GRD_API const char *grd_error_text(void);

/* Returns the value of errno that caused a pending OSError, e.g. ENOENT; 0 if no error is pending or no system call caused it. */
GRD_API int grd_error_system(void);

/* Returns the class that a language binding raises for the code: "ValueError", "RuntimeError", … */
GRD_API const char *grd_error_class(grd_error_code code);

GRD_API void grd_error_clear(void);

/* Makes an error pending unless one already is: for custom functions, hooks and plug-ins. */
GRD_API void grd_error_set(grd_error_code code, const char *format, ...) GRD_PRINTF(2, 3);

/* Sets the function that gets the text of each warning, on the thread of the operator that warns. The handler may set an error, which makes the
 * operator fail. NULL, the initial value, ignores warnings. */
GRD_API void grd_set_warning_handler(void (*handler)(const char *text));

GRD_END_DECLS
#endif
