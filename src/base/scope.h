/* Checks of scopes that callers pass. */
#ifndef GRD_BASE_SCOPE_H
#define GRD_BASE_SCOPE_H

#include <stdbool.h>

#include "gradus/runtime.h"

/* True if the scope can be open on this thread: its mark is one of the pool. Otherwise RuntimeError. */
bool grd_scope_check(grd_scope scope, const char *function);

#endif
