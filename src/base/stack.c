/* Finds where a thread's stack ends. A thread may also run on a stack that the program has allocated itself (a coroutine). The end of such a
 * stack is unknown, so there the nesting of calls is not limited. */
#define _GNU_SOURCE /* for pthread_getattr_np */
#include "base/stack.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/error.h"
#include "gradus/runtime.h"

/* Bytes at the end of the stack that are reserved for code that does not check the stack: kernels, functions of the user, and error handling. If
 * the stack is smaller than 4 * RESERVE bytes, a quarter of it is reserved. */
enum { RESERVE = 256 << 10 };

_Thread_local uintptr_t grd_stack_limit __attribute__((tls_model("initial-exec")));
static _Thread_local struct {
    uintptr_t lowest, highest;
    bool known;
} stack;

static void find_stack(void)
{
    pthread_attr_t attributes;
    void *lowest;
    size_t size;
    stack.known = true;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0)
        return;
    if (pthread_attr_getstack(&attributes, &lowest, &size) == 0) {
        stack.lowest = (uintptr_t)lowest;
        stack.highest = stack.lowest + size;
        grd_stack_limit = stack.lowest + (size / 4 < RESERVE ? size / 4 : RESERVE);
    }
    pthread_attr_destroy(&attributes);
}

size_t grd_stack_left(void)
{
    if (!stack.known)
        find_stack();
    const uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    if (here < stack.lowest || here >= stack.highest)
        return SIZE_MAX;
    return here > grd_stack_limit ? here - grd_stack_limit : 0;
}

bool grd_stack_look(const char *what)
{
    if (grd_stack_left() > 0)
        return true;
    return grd_raise(GRD_ERROR_RUNTIME, "%s is nested too deeply: the stack of this thread is used up", what);
}
