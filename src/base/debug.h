/* The debug modes of the environment variable GRADUS_DEBUG, which is a list of words separated by commas. Each mode turns on a check that is too
 * slow to be always on. */
#ifndef GRD_BASE_DEBUG_H
#define GRD_BASE_DEBUG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/thread.h"

enum grd_debug {
    GRD_DEBUG_LIFETIMES = 1, /* "lifetimes": the use of a destroyed object is an error */
    GRD_DEBUG_RACES = 2      /* "races": a call that changes an object while another thread uses it is an error */
};

/* The bit set of the debug modes that are on, as values of enum grd_debug. It does not change after the library is loaded. */
extern GRD_HIDDEN uint32_t grd_debug_modes;

/* grd_scope_close checks a scope whose mark is below this number. (The mark is the height of the thread's stack of temporaries when the scope was
 * opened.) In the mode LIFETIMES the number is INT64_MAX, so that every scope is checked. Otherwise it is 0, so that a negative mark, which is always
 * invalid, is checked. */
extern GRD_HIDDEN int64_t grd_debug_least_mark;

/* True if `mode` is on. The test costs two instructions when the mode is off. */
static inline bool grd_debugging(enum grd_debug mode)
{
    return GRD_UNLIKELY((grd_debug_modes & mode) != 0);
}

/* Reads GRADUS_DEBUG. The library's constructor calls this function once, before the other initializing functions. An unknown word is reported on
 * standard error. */
void grd_debug_init(void);

#endif
