/* For GRADUS_DEBUG=lifetimes: which scopes are open, and what a thread is doing when an object dies. In other modes nothing here is called.
 * An open scope is an object in the pool, at the scope's mark, so it is dropped however the scope ends. */
#ifndef GRD_BASE_TRACE_H
#define GRD_BASE_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cold.h"

/* Returns the trace of this thread; if memory is out, a constant empty one. */
struct grd_trace *grd_trace_get(void);

/* Opens a scope; returns its mark. */
int64_t grd_trace_open(const void *opener);
/* Drops everything above the mark while trace->closing says that this scope is being closed. False, with RuntimeError and nothing done, when no scope that is open
 * has this mark. */
bool grd_trace_close(int64_t mark, const char *function);

enum { GRD_SCOPE_CHARS = 256 };
/* "scope 3, at depth 1, opened at main+0x25 (./train+0x1205)"; returns ret_text. */
const char *grd_trace_describe(const struct grd_scope_trace *scope, char *ret_text);

#endif
