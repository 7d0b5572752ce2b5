/* Calls that need a tensor to themselves and do not have it, while GRADUS_DEBUG=races: every call of an operator, and of the functions of that kind, is in a list while
 * it runs. In other modes nothing here is called. */
#ifndef GRD_CORE_RACES_H
#define GRD_CORE_RACES_H

#include "base/debug.h"
#include "core/tensor.h"

/* A call that runs, in its own frame. */
struct grd_race {
    const char *name;
    const grd_value *args;
    int nargs;
    bool alone; /* what it works on must not be used by another thread meanwhile */
    /* Set by grd_race_begin. */
    const void *thread;
    struct grd_race *next;
};

/* Enters the call into the list. False, with RuntimeError that names both calls, where another thread runs one that must not meet it: then it is not entered. */
bool grd_race_begin(struct grd_race *race);
void grd_race_end(const struct grd_race *race);

/* The list's lock is held around a fork; run once. */
void grd_races_init(void);

#endif
