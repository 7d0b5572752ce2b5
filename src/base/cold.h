/* The state of a thread that is used rarely: made on first use, freed when the thread ends (thread_start.c). */
#ifndef GRD_BASE_COLD_H
#define GRD_BASE_COLD_H

#include <stddef.h>
#include <stdint.h>

#include "base/thread.h"

/* Blocks of 1 KiB to 64 KiB, four sizes for each power of two. */
enum { GRD_MEDIUM_CLASSES = 24 };

/* What is known about an error besides its code. */
struct grd_error_detail {
    char *message;         /* malloc'ed; NULL when memory was out */
    size_t context_length; /* of the names that contexts have put before the error's own text in `message` */
    int system;            /* errno behind the error, or 0 */
};

struct grd_scope_trace {
    int64_t number;     /* of all scopes of the process, counted from 1; 0: no scope */
    int32_t depth;      /* 1 for one that lies in no other */
    const void *opener; /* where in the program it was opened */
};

/* What a thread is doing, for reports of GRADUS_DEBUG=lifetimes (trace.h). */
struct grd_trace {
    const char *running;            /* the innermost operator that has a name for its user; NULL: none */
    struct grd_scope_trace closing; /* the scope that is being closed */
};

struct grd_thread_cold {
    struct grd_error_detail error; /* of the pending error */
    struct grd_trace trace;
    struct grd_block_list medium[GRD_MEDIUM_CLASSES];
    /* The allocator's list of threads. */
    struct grd_thread_state *owner;
    struct grd_thread_cold *next, *previous;
};

/* Returns this thread's cold state, or NULL, with no error raised, if memory is out. */
struct grd_thread_cold *grd_thread_get_cold(void);

/* Adds a thread to the allocator: opens its free lists and includes its counters in the sums (memory.c). */
void grd_memory_thread_start(struct grd_thread_cold *cold);

#endif
