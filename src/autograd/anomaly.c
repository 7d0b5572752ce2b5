/* Anomaly mode, a debugging aid. While it is on, each new autograd node stores the traceback of the operator call that created it, and a backward
 * pass stops at the first gradient that contains a NaN.
 *
 * The mode costs nothing while it is off. While it is on, the AUTOGRAD dispatch key has another fallback kernel, which stores the tracebacks as
 * hooks of the new nodes, and backward passes use a slower loop of the engine. */
#include "autograd/anomaly.h"
#include "autograd/derivative.h"
#include "autograd/hook_list.h"
#include "autograd/hooks.h"
#include "autograd/variable.h"
#include "base/text.h"
#include "core/dtype.h"
#include "core/tensor.h"
#include "dispatch/op.h"
#include "gen/uses/autograd/anomaly.h"

#include <string.h>

static struct {
    _Atomic bool enabled, check_nan;
    grd_tracer *_Atomic tracer;
} anomaly = {.check_nan = true};

_Atomic bool grd_anomaly_checks_nan;

/* ---- Tracebacks of nodes ------------------------------------------------------------------------------------------------------------------ */
/* The traceback that an autograd node stores. It is the context of a hook that is never called, so it is freed together with the node's hooks. */
struct trace {
    size_t size;
    char text[];
};

static void free_trace(void *context)
{
    struct trace *trace = context;
    grd_free(trace, trace->size);
}

/* Stores the current traceback of the user's program in the node, unless there is no tracer (e.g. in a C program) or the tracer returns NULL. */
static void trace_node(struct grd_node *node)
{
    grd_tracer *tracer = anomaly.tracer;
    const char *text = tracer != NULL ? tracer() : NULL;
    if (text == NULL || grd_pending())
        return;
    const size_t length = strlen(text) + 1, size = sizeof(struct trace) + length;
    struct trace *trace = grd_alloc(size);
    if (trace == NULL)
        return;
    trace->size = size;
    memcpy(trace->text, text, length);
    if (!grd_hooks_add_trace(&node->hooks, trace, free_trace))
        free_trace(trace);
}

/* Stores the current traceback in the grad_fn of `t`. Does nothing if the grad_fn's sequence number is below `first` or the grad_fn has
 * a traceback already. */
static void trace_history(const grd_tensor *t, uint64_t first)
{
    uint32_t output;
    struct grd_node *node = grd_history_of(t, &output);
    if (node != NULL && node->sequence >= first && grd_hooks_context(&node->hooks, GRD_HOOK_TRACE) == NULL)
        trace_node(node);
    grd_node_drop(node);
}

void grd_anomaly_trace(const grd_tensor *t, uint64_t first)
{
    if (!anomaly.enabled || t == NULL)
        return;
    trace_history(t, first);
    if (t->base != NULL)
        trace_history(t->base, first);
}

/* The kernel of the AUTOGRAD key while anomaly mode is on: records the call, and stores the traceback in the nodes that the call created. */
static void record_traced(const grd_op *op, grd_keyset keys, grd_tensor *out, const grd_value *args, grd_value *ret_results, void *context)
{
    const uint64_t first = grd_node_sequence;
    grd_autograd_record(op, keys, out, args, ret_results, context);
    if (grd_pending() || grd_node_sequence == first)
        return;
    if (op->returns_list)
        for (int64_t i = 0; i < ret_results[0].v.tensors.n; i++)
            grd_anomaly_trace(ret_results[0].v.tensors.data[i], first);
    for (int i = 0; !op->returns_list && i < op->nresults; i++)
        grd_anomaly_trace(out != NULL ? out : ret_results[i].v.tensor, first);
}

/* ---- Checks during a pass ---------------------------------------------------------------------------------------------------------------------- */
/* True if `t` contains a NaN. False if `t` is NULL, is on the meta device, or has a dtype without gradients. May leave an error pending. */
static bool has_nan(grd_tensor *t)
{
    if (t == NULL || t->device == GRD_DEVICE_META || !grd_dtype_is_inexact(t->dtype))
        return false;
    const bool enabled = grd_set_grad_enabled(false);
    const bool found = grd_item_int64(grd_any(grd_isnan(t))) != 0;
    grd_set_grad_enabled(enabled);
    return found && !grd_pending();
}

void grd_anomaly_check(const struct grd_node *node, grd_tensor *const *results)
{
    if (!grd_anomaly_checks_nan)
        return;
    for (uint32_t i = 0; i < node->nedges && !grd_pending(); i++)
        if (has_nan(results[i]))
            grd_raise(GRD_ERROR_RUNTIME, "Function '%s' returned nan values in its %uth output.", node->name, i);
}

/* Warns that an error occurred in the node. The warning contains the traceback that the node stored, if there is one. */
static void warn_of(struct grd_node *node)
{
    const struct trace *trace = grd_hooks_context(&node->hooks, GRD_HOOK_TRACE);
    struct grd_text text = {0};
    grd_text_add(&text, "Error detected in %s. ", node->name);
    if (trace != NULL)
        grd_text_add(&text, "Traceback of forward call that caused the error:\n%s", trace->text);
    else
        grd_text_add(&text, "No forward pass information available. Enable detect anomaly during forward pass for more information.");
    if (text.data != NULL)
        grd_warn(text.data);
    grd_text_done(&text);
}

void grd_anomaly_report(struct grd_node *node)
{
    if (!anomaly.enabled)
        return;
    struct grd_error_state error = grd_error_take();
    warn_of(node);
    if (grd_pending()) { /* the warning handler turned the warning into an error, which replaces the error of the node */
        const struct grd_error_state made = grd_error_take();
        grd_error_restore(error);
        grd_error_clear();
        error = made;
    }
    grd_error_restore(error);
}

/* ---- The mode ------------------------------------------------------------------------------------------------------------------------------- */
void grd_set_anomaly_mode(bool enabled, bool check_nan)
{
    anomaly.enabled = enabled;
    anomaly.check_nan = check_nan;
    grd_anomaly_checks_nan = enabled && check_nan;
    grd_replace_fallback(GRD_KEY_AUTOGRAD, enabled ? record_traced : grd_autograd_record);
}

bool grd_anomaly_mode(bool *ret_check_nan)
{
    if (ret_check_nan != NULL)
        *ret_check_nan = anomaly.check_nan;
    return anomaly.enabled;
}

void grd_set_anomaly_tracer(grd_tracer *tracer)
{
    anomaly.tracer = tracer;
}
