/* Records which scopes are open, and what a thread is doing when an object is destroyed. Only the debug mode "lifetimes" uses this file. In this mode
 * an open scope is an object in the thread's stack of references (the pool), below the references that the scope owns. So it is dropped however the
 * scope ends. */
#ifndef GRD_BASE_TRACE_H
#define GRD_BASE_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cold.h"

/* Returns the trace of this thread, or an empty trace that all threads share if there is no memory. */
struct grd_trace *grd_trace_get(void);

/* Opens a scope and returns its mark, which is the height of the thread's pool before. `opener` is the return address of the call that opens the
 * scope. */
int64_t grd_trace_open(const void *opener);
/* Drops all references in this thread's pool from index `mark` on, i.e. those that the scope with this mark owns. Meanwhile the member `closing` of
 * the thread's trace says that this scope is being closed. Returns false, with a RuntimeError that names `function` and nothing dropped, if no open
 * scope has this mark. */
bool grd_trace_close(int64_t mark, const char *function);

enum { GRD_SCOPE_CHARS = 256 };
/* Writes a description of a scope to `ret_text`, which has GRD_SCOPE_CHARS bytes, and returns `ret_text`: for example "scope 3, at depth 1, opened
 * in main (./train+0x1205)". */
const char *grd_trace_describe(const struct grd_scope_trace *scope, char *ret_text);

#endif
