/* What the environment variable GRADUS_DEBUG asks for: words separated by commas, each a check that is too dear to be made always. */
#ifndef GRD_BASE_DEBUG_H
#define GRD_BASE_DEBUG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/thread.h"

enum grd_debug {
    GRD_DEBUG_LIFETIMES = 1, /* "lifetimes": use of what its scope or last owner has destroyed is an error */
    GRD_DEBUG_RACES = 2      /* "races": a call that needs what it changes for itself is an error while another thread uses it */
};

/* The modes that are on, as a bit set. Constant once the library is loaded. */
extern GRD_HIDDEN uint32_t grd_debug_modes;

/* Marks of scopes that are below it are closed on the slow way: those that cannot be, and all of them in the mode LIFETIMES. So a scope is closed as fast as ever. */
extern GRD_HIDDEN int64_t grd_debug_least_mark;

/* True while the mode is on: a test that costs two instructions when it is not. */
static inline bool grd_debugging(enum grd_debug mode)
{
    return GRD_UNLIKELY((grd_debug_modes & mode) != 0);
}

/* Reads GRADUS_DEBUG; run once, first of all, by the library's constructor. A word that is no mode is reported on standard error. */
void grd_debug_init(void);

#endif
