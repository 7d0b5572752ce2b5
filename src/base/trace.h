/* While GRADUS_DEBUG=lifetimes: which scopes are open, and what a thread is doing when something dies. In other modes nothing here is called.
 * An open scope is an object of its own in the pool, at the scope's mark: so it goes whichever way the scope does. */
#ifndef GRD_BASE_TRACE_H
#define GRD_BASE_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct grd_scope_trace {
    int64_t number;     /* of all scopes of the process, counted from 1; 0: no scope */
    int32_t depth;      /* 1 for one that lies in no other */
    const void *opener; /* where in the program it was opened */
};

/* What a thread does, in its cold state. */
struct grd_trace {
    const char *running;            /* the innermost operator that has a name for its user; NULL: none */
    struct grd_scope_trace closing; /* the scope that is being closed */
};

/* That of this thread; a constant one, with nothing in it, when memory is out. */
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
