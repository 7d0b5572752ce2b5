/* Records which scopes are open, and what a thread is doing when an object is destroyed. Used only in the debug mode "lifetimes". In this mode an
 * open scope is an object in the thread's stack of references (the pool), below the references that the scope owns. This object is dropped together
 * with these references, in whichever way the scope ends. */
#ifndef GRD_BASE_TRACE_H
#define GRD_BASE_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cold.h"

/* Returns this thread's trace, a record of the operator that the thread is running and of the scope that it is closing. If memory for it cannot be
 * allocated, returns an empty trace that all threads share. */
struct grd_trace *grd_trace_get(void);

/* Opens a scope and returns its mark, i.e. the number of references in this thread's pool at this moment. `opener` is the return address of the
 * call that opens the scope. */
int64_t grd_trace_open(const void *opener);
/* Drops all references in this thread's pool from index `mark` on, i.e. those that the scope with this mark owns. While it drops them, the member
 * `closing` of the thread's trace says that this scope is being closed. If no open scope has this mark, drops nothing and returns false, with a
 * RuntimeError that names `function`. */
bool grd_trace_close(int64_t mark, const char *function);

enum { GRD_SCOPE_CHARS = 256 };
/* Writes a description of a scope to `ret_text`, which has GRD_SCOPE_CHARS bytes, and returns `ret_text`: for example "scope 3, at depth 1, opened
 * in main (./train+0x1205)". */
const char *grd_trace_describe(const struct grd_scope_trace *scope, char *ret_text);

#endif
