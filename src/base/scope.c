/* Opens and closes scopes. A scope is stored as a mark: the number of references in the thread's pool (its stack of references, object.h) when the
 * scope was opened. */
#include "base/scope.h"

#include "base/debug.h"
#include "base/error.h"
#include "base/object.h"
#include "base/trace.h"

/* Opens and returns a scope while a debug mode is on. `opener` is the return address of the call that opens the scope. */
static __attribute__((noinline, cold)) grd_scope open_slow(const void *opener)
{
    grd_thread_get_cold(); /* the first call on a thread adds the dispatch key of the debug modes to all operator calls of the thread */
    return (grd_scope){grd_debugging(GRD_DEBUG_LIFETIMES) ? grd_trace_open(opener) : grd_pool_mark()};
}

grd_scope grd_scope_open(void)
{
    if (GRD_UNLIKELY(grd_debug_modes != 0))
        return open_slow(__builtin_return_address(0));
    return (grd_scope){grd_pool_mark()};
}

bool grd_scope_check(grd_scope scope, const char *function)
{
    return GRD_LIKELY((uint64_t)scope.mark <= (uint64_t)grd_thread.pool_top) ||
           grd_raise(GRD_ERROR_RUNTIME, "%s: the scope is not open: it, or one around it, was closed before", function);
}

/* The slow path of grd_scope_close. Closes `scope` in the debug mode "lifetimes". Outside this mode it is called only for an invalid `scope`, for
 * which grd_scope_check raises an error. */
static __attribute__((noinline, cold)) void close_slow(grd_scope scope)
{
    if (grd_debugging(GRD_DEBUG_LIFETIMES))
        grd_trace_close(scope.mark, "grd_scope_close");
    else
        grd_scope_check(scope, "grd_scope_close");
}

void grd_scope_close(grd_scope scope)
{
    if (GRD_UNLIKELY(scope.mark < grd_debug_least_mark || scope.mark > grd_thread.pool_top))
        close_slow(scope);
    else
        grd_pool_release(scope.mark);
}
