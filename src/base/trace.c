/* Records the open scopes of each thread, so that a report can name the scope that destroyed an object. */
#define _GNU_SOURCE /* for dladdr */
#include "base/trace.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "base/cold.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/object.h"

/* An open scope. It is an object in the thread's stack of references (the pool), below the references that the scope owns. */
struct open_scope {
    struct grd_object object;
    struct grd_scope_trace trace;
};

static void destroy_scope(struct grd_object *object)
{
    grd_free(object, sizeof(struct open_scope));
}

static const struct grd_object_type scope_type = {.name = "scope", .destroy = destroy_scope};

struct grd_trace *grd_trace_get(void)
{
    static struct grd_trace nothing;
    struct grd_thread_cold *cold = grd_thread_get_cold();
    return cold != NULL ? &cold->trace : &nothing;
}

/* Returns the open scope whose mark is `mark`, i.e. that was opened when this thread's pool had `mark` entries. Returns NULL if there is none. */
static const struct open_scope *scope_at(int64_t mark)
{
    const struct grd_object *object = mark >= 0 && mark < grd_thread.pool_top ? grd_thread.pool[mark] : NULL;
    return object != NULL && object->type == &scope_type ? (const struct open_scope *)object : NULL;
}

static int32_t current_depth(void)
{
    int32_t depth = 0;
    for (int64_t i = 0; i < grd_thread.pool_top; i++)
        depth += scope_at(i) != NULL;
    return depth;
}

int64_t grd_trace_open(const void *opener)
{
    static _Atomic int64_t scopes;
    const int64_t mark = grd_pool_mark();
    struct open_scope *scope = grd_thread_get_cold() != NULL ? grd_alloc(sizeof *scope) : NULL;
    if (scope != NULL) {
        scope->object.type = &scope_type;
        atomic_init(&scope->object.refs, 1);
        scope->trace = (struct grd_scope_trace){atomic_fetch_add(&scopes, 1) + 1, current_depth() + 1, opener};
        grd_pool_push(scope);
    }
    return mark;
}

bool grd_trace_close(int64_t mark, const char *function)
{
    const struct open_scope *scope = scope_at(mark);
    if (scope == NULL)
        return grd_raise(GRD_ERROR_RUNTIME, "%s: the scope is not open: it, or one around it, was closed before", function);
    struct grd_trace *trace = grd_trace_get();
    const struct grd_scope_trace before = trace->closing;
    trace->closing = scope->trace;
    grd_pool_release(mark);
    trace->closing = before;
    return true;
}

const char *grd_trace_describe(const struct grd_scope_trace *scope, char *ret_text)
{
    Dl_info info;
    const int n = snprintf(ret_text, GRD_SCOPE_CHARS, "scope %lld, at depth %d", (long long)scope->number, (int)scope->depth);
    if (scope->opener == NULL || dladdr(scope->opener, &info) == 0 || info.dli_fname == NULL)
        return ret_text;
    /* `opener` is a return address. The byte before it belongs to the call instruction, and addr2line accepts the address of any byte of an
     * instruction. */
    const uintptr_t address = (uintptr_t)scope->opener - 1;
    const bool named = info.dli_sname != NULL;
    snprintf(ret_text + n, GRD_SCOPE_CHARS - (size_t)n, ", opened %s%s%s%s+%#llx%s", named ? "in " : "at ", named ? info.dli_sname : "",
             named ? " (" : "", info.dli_fname, (unsigned long long)(address - (uintptr_t)info.dli_fbase), named ? ")" : "");
    return ret_text;
}
