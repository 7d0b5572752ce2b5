/* What a thread needs rarely: made on first use, freed when the thread ends. */
#ifndef GRD_BASE_COLD_H
#define GRD_BASE_COLD_H

#include "base/thread.h"

/* Blocks of 1 KiB to 64 KiB, four sizes for each power of two. */
enum { GRD_MEDIUM_CLASSES = 24 };

struct grd_thread_cold {
    char *message; /* of the pending error, malloc'ed; NULL when memory was out */
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
