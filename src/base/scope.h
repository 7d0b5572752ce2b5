/* Declares grd_scope_check, which refuses a grd_scope that has been closed already. */
#ifndef GRD_BASE_SCOPE_H
#define GRD_BASE_SCOPE_H

#include <stdbool.h>

#include "gradus/runtime.h"

/* Returns false, with a RuntimeError that names `function`, if this thread's stack of temporaries is lower now than when `scope` was opened. In this
 * case the scope has certainly been closed. Otherwise returns true. */
bool grd_scope_check(grd_scope scope, const char *function);

#endif
