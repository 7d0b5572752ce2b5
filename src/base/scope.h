/* Declares the check of a scope that a caller passes. */
#ifndef GRD_BASE_SCOPE_H
#define GRD_BASE_SCOPE_H

#include <stdbool.h>

#include "gradus/runtime.h"

/* True if `scope` can be open on this thread, i.e. if the height of the thread's stack of temporaries when the scope was opened is not above the
 * present height. Otherwise raises a RuntimeError that names `function`. */
bool grd_scope_check(grd_scope scope, const char *function);

#endif
