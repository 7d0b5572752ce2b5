/* Detects, with GRADUS_DEBUG=races, that another thread uses a tensor while a call such as grd_resize_ needs exclusive use of it. Every such call and
 * every call of an operator is in a list while it runs. Without this debug mode no function of this file is called, except grd_races_init. */
#ifndef GRD_CORE_RACES_H
#define GRD_CORE_RACES_H

#include "base/debug.h"
#include "core/tensor.h"

/* One running call, as an element of the list of running calls. It lives in the stack frame of the call. */
struct grd_race {
    const char *name;
    const grd_value *args;
    int nargs;
    bool alone; /* true if no other thread may use the memory of args[0] during the call */
    /* Set by grd_race_begin: an address that identifies the calling thread, and the next call in the list. */
    const void *thread;
    struct grd_race *next;
};

/* Adds the call `race` to the list of running calls. Returns false, without adding `race`, if a running call of another thread uses memory that
 * `race` uses, and one of the two calls needs exclusive use of this memory. The error is a RuntimeError that names both calls. */
bool grd_race_begin(struct grd_race *race);
/* Removes the call `race` from the list of running calls. */
void grd_race_end(const struct grd_race *race);

/* Lets a fork wait until no thread changes the list of running calls. Called once, by the library's constructor. */
void grd_races_init(void);

#endif
