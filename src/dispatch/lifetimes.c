/* Makes the checks that belong to each operator call in the debug modes. With GRADUS_DEBUG=lifetimes a destroyed argument is an error, and the
 * name of the operator is recorded for each result. With GRADUS_DEBUG=races it is an error if a thread uses a tensor while a call on another
 * thread, such as resize_, needs exclusive use of it. */
#include "core/lifetimes.h"

#include <stdio.h>
#include <string.h>

#include "base/cold.h"
#include "core/races.h"
#include "core/tensor.h"
#include "dispatch/define.h"

static bool refuse(const struct grd_op *op, int i, const grd_tensor *dead)
{
    char text[GRD_LIFE_CHARS];
    return grd_raise(GRD_ERROR_RUNTIME, "argument '%s' (position %d) is %s", op->args[i].name, i + 1, grd_lifetimes_describe(dead, text));
}

static bool check_value(const struct grd_op *op, int i, const grd_value *value)
{
    if (value->kind == GRD_KIND_TENSOR && value->v.tensor != NULL && grd_is_dead(value->v.tensor))
        return refuse(op, i, value->v.tensor);
    for (int64_t k = 0; value->kind == GRD_KIND_TENSORS && k < value->v.tensors.n; k++)
        if (grd_is_dead(value->v.tensors.data[k]))
            return refuse(op, i, value->v.tensors.data[k]);
    return true;
}

static bool check_call(const struct grd_op *op, const grd_tensor *out, const grd_value *args)
{
    char text[GRD_LIFE_CHARS];
    for (int i = 0; i < op->nargs; i++)
        if (!check_value(op, i, &args[i]))
            return false;
    return out == NULL || !grd_is_dead(out) || grd_raise(GRD_ERROR_RUNTIME, "argument 'out' is %s", grd_lifetimes_describe(out, text));
}

/* True if `t` is `out` or an argument of the call. The result of an in-place operator, or of an operator that has nothing to do, is such a tensor. */
static bool is_argument(const struct grd_op *op, const grd_tensor *out, const grd_value *args, const grd_tensor *t)
{
    for (int i = 0; i < op->nargs; i++) {
        if (args[i].kind == GRD_KIND_TENSOR && args[i].v.tensor == t)
            return true;
        for (int64_t k = 0; args[i].kind == GRD_KIND_TENSORS && k < args[i].v.tensors.n; k++)
            if (args[i].v.tensors.data[k] == t)
                return true;
    }
    return t == out;
}

/* Records the name of the operator for each result that is a new tensor, i.e. neither `out` nor an argument. */
static void name_results(const struct grd_op *op, const grd_tensor *out, const grd_value *args, const grd_value *results)
{
    if (op->returns_list) {
        for (int64_t k = 0; k < results[0].v.tensors.n; k++)
            if (!is_argument(op, out, args, results[0].v.tensors.data[k]))
                grd_lifetimes_made_by(results[0].v.tensors.data[k], op->name);
        return;
    }
    for (int i = 0; i < op->nresults; i++)
        if (!is_argument(op, out, args, results[i].v.tensor))
            grd_lifetimes_made_by(results[i].v.tensor, op->name);
}

/* Calls the operator's kernel for the next key after LIFETIMES. Meanwhile the call is in the list of running calls (core/races.h), so that a call
 * on another thread raises an error if the two must not run at the same time. */
static void watch(const grd_op *op, grd_keyset keys, grd_tensor *out, const grd_value *args, grd_value *ret_results)
{
    grd_value all[GRD_MAX_ARGS + 1];
    char name[64];
    const bool alone = out != NULL && op->alone;
    memcpy(all, args, (size_t)op->nargs * sizeof *all);
    all[op->nargs] = (grd_value){.kind = GRD_KIND_TENSOR, .v.tensor = out};
    snprintf(name, sizeof name, "%s%s", op->name, alone ? "_" : "");
    struct grd_race race = {.name = name, .args = all, .nargs = op->nargs + 1, .alone = alone};
    if (!grd_race_begin(&race))
        return;
    grd_redispatch(op, keys, out, args, ret_results);
    grd_race_end(&race);
}

/* Calls the operator's kernel for the next key after LIFETIMES. In the debug mode `races`, also checks the call for races. */
static void call_below(const grd_op *op, grd_keyset keys, grd_tensor *out, const grd_value *args, grd_value *ret_results)
{
    if (grd_debugging(GRD_DEBUG_RACES))
        watch(op, keys, out, args, ret_results);
    else
        grd_redispatch(op, keys, out, args, ret_results);
}

/* Checks the arguments, calls the operator, and records the operator's name for each result. During the call the thread's trace says that this
 * operator is running. */
static void call_tracked(const grd_op *op, grd_keyset keys, grd_tensor *out, const grd_value *args, grd_value *ret_results)
{
    struct grd_trace *trace = grd_trace_get();
    const char *before = trace->running;
    const bool has_name = op->name[0] != '_';
    if (!check_call(op, out, args))
        return;
    if (has_name)
        trace->running = op->name;
    call_below(op, keys, out, args, ret_results);
    trace->running = before;
    if (has_name && !grd_pending())
        name_results(op, out, args, ret_results);
}

/* The fallback kernel of the key LIFETIMES, which checks a call and passes it on to the next key. A call has this key while the debug mode
 * `lifetimes` or `races` is on, or if one of its tensors is destroyed. */
static void call(const grd_op *op, grd_keyset keys, grd_tensor *out, const grd_value *args, grd_value *ret_results, void *context)
{
    const grd_keyset below = keys & ~(grd_keyset)(1u << GRD_KEY_LIFETIMES);
    (void)context;
    if (grd_debugging(GRD_DEBUG_LIFETIMES))
        call_tracked(op, below, out, args, ret_results);
    else
        call_below(op, below, out, args, ret_results);
}

void grd_lifetimes_dispatch_init(void)
{
    if (!grd_debugging(GRD_DEBUG_LIFETIMES) && !grd_debugging(GRD_DEBUG_RACES))
        return;
    grd_races_init();
    grd_register_fallback(GRD_KEY_LIFETIMES, call, NULL);
    grd_thread_first_keys = 1u << GRD_KEY_LIFETIMES;
    grd_thread.include |= grd_thread_first_keys;
}
