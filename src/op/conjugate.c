/* Runs operators on tensors that are conjugated, or negated, when they are read. See Note [Conjugated when read] in complex.c.
 *
 * This file holds the fallback of the dispatch key CONJUGATE. View operators run on the tensor itself, and their results inherit the key. Every other
 * operator gets a copy with the conjugated elements. If an operator writes to a tensor with the key, it is given a copy to write to; after it has
 * succeeded, the conjugates of that copy are written to the tensor's memory.
 * Invariant: no argument has the key when the fallback calls the operator again. */
#include "op/conjugate.h"

#include "core/new.h"
#include "core/resize.h"
#include "core/shape.h"
#include "core/tensor.h"
#include "dispatch/device.h"
#include "gen/uses/op/conjugate.h"

enum { CONJUGATE_BIT = 1 << GRD_KEY_CONJUGATE };

/* The tensor that an operator writes, and the tensor that the fallback passes to the operator instead. */
struct call {
    /* `out` is the tensor that the operator writes, or NULL. `written` is passed in its place: a copy if `out` has the key CONJUGATE, otherwise
     * `out` itself. */
    grd_tensor *out, *written;
};

/* Returns a tensor that shares t's memory but has no key CONJUGATE, so that its elements are read as stored, and no autograd history. */
static grd_tensor *memory_of(grd_tensor *t)
{
    grd_tensor *memory = grd_new_detached(t);
    if (!grd_is_failed(memory))
        memory->keys &= ~(grd_keyset)CONJUGATE_BIT;
    return memory;
}

/* Returns the conjugate of a complex tensor, or the negative of a real one, in new memory. */
static grd_tensor *conjugates_of(grd_tensor *t)
{
    return grd_dtype_is_complex((grd_dtype)t->dtype) ? grd_conj_physical(t) : grd_neg(t);
}

/* Returns the tensor to pass to the operator in place of argument `t`. If `t` does not have the key CONJUGATE, this is `t` itself; otherwise it is
 * a tensor with the conjugated elements in memory. */
static grd_tensor *resolved(const void *context, grd_tensor *t)
{
    const struct call *call = context;
    if (grd_is_failed(t) || !grd_is_conjugated(t))
        return t;
    return t == call->out ? call->written : conjugates_of(memory_of(t));
}

/* Writes the operator's result, which is in `written`, to `out`. As `out` has the key CONJUGATE, its memory gets the conjugates. */
static void bring_back(grd_tensor *out, grd_tensor *written)
{
    if (grd_dims_equal(grd_sizes(out), grd_sizes(written)) || grd_resize(out, grd_sizes(written)))
        grd_copy_(memory_of(out), conjugates_of(written));
}

static void call_conjugated(const grd_op *op, grd_keyset keys, grd_tensor *out, const grd_value *args, grd_value *ret_results,
                            void *context)
{
    const grd_keyset below = keys & ~(grd_keyset)CONJUGATE_BIT;
    struct call call = {.out = out, .written = out};
    grd_value values[GRD_MAX_ARGS];
    (void)context;
    if (op->is_view) {
        grd_dispatch_boxed(op, below, out, args, ret_results);
        return;
    }
    if (out != NULL && grd_is_conjugated(out))
        call.written = conjugates_of(memory_of(out));
    for (int i = 0; i < op->nargs && !grd_pending(); i++)
        values[i] = grd_replace_tensors(&args[i], resolved, &call);
    if (grd_pending())
        return;
    grd_dispatch_boxed(op, below, call.written, values, ret_results);
    if (call.written == out || grd_pending())
        return;
    bring_back(out, call.written);
    for (int i = 0; i < op->nresults; i++)
        if (!op->returns_list && ret_results[i].v.tensor == call.written)
            ret_results[i].v.tensor = out;
}

void grd_conjugate_init(void)
{
    grd_register_fallback(GRD_KEY_CONJUGATE, call_conjugated, NULL);
}
