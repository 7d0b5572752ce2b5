/* The stack of a thread, which code that calls itself through the user's (a hook that runs backward, for example) must not use up. */
#ifndef GRD_BASE_STACK_H
#define GRD_BASE_STACK_H

#include <stdint.h>

#include "base/thread.h"

/* The lowest address that a nested call may begin at; 0 until it is known, and where it cannot be. */
extern _Thread_local uintptr_t grd_stack_limit __attribute__((tls_model("initial-exec")));

/* grd_stack_has_room when the limit is not known, or nearly reached. */
bool grd_stack_look(const char *what);

/* True if a call may be nested deeper. Otherwise RuntimeError, which says that `what` is nested too deeply. */
static inline bool grd_stack_has_room(const char *what)
{
    return GRD_LIKELY(grd_stack_limit != 0 && (uintptr_t)__builtin_frame_address(0) > grd_stack_limit) || grd_stack_look(what);
}

#endif
