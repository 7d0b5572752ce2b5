/* Checks that nested calls do not overflow the stack of a thread. Calls can nest without a fixed limit where user code calls the library again,
 * e.g. if a hook runs backward. */
#ifndef GRD_BASE_STACK_H
#define GRD_BASE_STACK_H

#include <stdint.h>

#include "base/thread.h"

/* The lowest stack address at which a nested call may begin. It is 0 until the address has been found, and stays 0 if it cannot be found. */
extern _Thread_local uintptr_t grd_stack_limit __attribute__((tls_model("initial-exec")));

/* The slow path of grd_stack_has_room, used if grd_stack_limit is not known yet or is reached. Returns what grd_stack_has_room returns. */
bool grd_stack_look(const char *what);

/* True if the stack has room for a nested call. Otherwise raises a RuntimeError which says that `what` is nested too deeply. */
static inline bool grd_stack_has_room(const char *what)
{
    return GRD_LIKELY(grd_stack_limit != 0 && (uintptr_t)__builtin_frame_address(0) > grd_stack_limit) || grd_stack_look(what);
}

#endif
