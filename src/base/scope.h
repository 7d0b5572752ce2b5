/* Declares grd_scope_check, which refuses a grd_scope that has been closed already. */
#ifndef GRD_BASE_SCOPE_H
#define GRD_BASE_SCOPE_H

#include <stdbool.h>

#include "gradus/runtime.h"

/* False, with a RuntimeError that names `function`, if `scope` has surely been closed, because this thread's stack of temporaries is lower now than
 * when the scope was opened. Otherwise returns true. */
bool grd_scope_check(grd_scope scope, const char *function);

#endif
