/* What a thread needs rarely: made on first use, freed when the thread ends. */
#ifndef GRD_BASE_COLD_H
#define GRD_BASE_COLD_H

#include <stddef.h>

#include "base/thread.h"
#include "base/trace.h"

/* Blocks of 1 KiB to 64 KiB, four sizes for each power of two. */
enum { GRD_MEDIUM_CLASSES = 24 };

/* What is known of an error beside its code. */
struct grd_error_detail {
    char *message;         /* malloc'ed; NULL when memory was out */
    size_t context_length; /* of the names that contexts have put before the error's own text in `message` */
    int system;            /* errno behind the error, or 0 */
};

struct grd_thread_cold {
    struct grd_error_detail error; /* the pending one's */
    struct grd_trace trace;
    struct grd_block_list medium[GRD_MEDIUM_CLASSES];
    /* The allocator's list of threads. */
    struct grd_thread_state *owner;
    struct grd_thread_cold *next, *previous;
};

/* This thread's cold state; NULL (no error raised) when it cannot be made. */
struct grd_thread_cold *grd_thread_get_cold(void);

/* A thread joins the allocator: its free lists open and its counters are summed from now on. */
void grd_memory_thread_start(struct grd_thread_cold *cold);

#endif
