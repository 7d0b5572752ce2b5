/* Declares the cold state of a thread, i.e. the state that is rarely used. It is allocated on first use and freed when the thread ends
 * (thread_start.c). */
#ifndef GRD_BASE_COLD_H
#define GRD_BASE_COLD_H

#include <stddef.h>
#include <stdint.h>

#include "base/thread.h"

/* The number of medium size classes. Medium blocks have more than 1 KiB and at most 64 KiB, in four sizes for each power of two. */
enum { GRD_MEDIUM_CLASSES = 24 };

/* The text and the cause of an error. The error's code is in grd_thread.error. */
struct grd_error_detail {
    char *message;         /* allocated with malloc; NULL if there was no memory for the text */
    size_t context_length; /* bytes at the start of `message` that are operator names and ": ", put there by grd_error_add_context */
    int system;            /* errno of the system call that failed, or 0 if there was none */
};

/* Identifies a grd_scope (which owns temporaries) in the reports of GRADUS_DEBUG=lifetimes. */
struct grd_scope_trace {
    int64_t number;     /* the scopes of the process are numbered from 1; 0 if there is no scope */
    int32_t depth;      /* 1 for an outermost scope, 2 for a scope inside it, and so on */
    const void *opener; /* return address of the call that opened the scope */
};

/* The operator that a thread runs and the scope that it closes, for reports of GRADUS_DEBUG=lifetimes (trace.h). */
struct grd_trace {
    const char *running;            /* name of the innermost running operator whose name has no leading '_'; NULL if there is none */
    struct grd_scope_trace closing; /* the scope that is being closed; its number is 0 if no scope is being closed */
};

struct grd_thread_cold {
    struct grd_error_detail error; /* text and cause of the pending error */
    struct grd_trace trace;
    struct grd_block_list medium[GRD_MEDIUM_CLASSES]; /* free lists of memory blocks in the medium size classes */
    /* `next` and `previous` link all threads that have a struct grd_thread_cold into a list (memory.c). `owner` points to the often used state of the
     * same thread. */
    struct grd_thread_state *owner;
    struct grd_thread_cold *next, *previous;
};

/* Returns this thread's cold state, allocating it if needed. Returns NULL, with no error raised, if there is no memory. */
struct grd_thread_cold *grd_thread_get_cold(void);

/* Adds this thread to the allocator: its free lists may then hold blocks, and its counters are included in the sums over all threads (memory.c). */
void grd_memory_thread_start(struct grd_thread_cold *cold);

#endif
