/* Runs operators on tensors that are conjugated, or negated, when they are read. See Note [Conjugated when read] in complex.c.
 *
 * This file holds the fallback of the dispatch key CONJUGATE. View operators run on the tensor itself, and their results inherit the key. Every other
 * operator gets a copy with the conjugated elements. If an operator writes to a tensor with the key, the operator gets a copy to write to. After a
 * successful call, the conjugates of this copy are written to the tensor's memory.
 * Invariant: no argument has the key when the fallback calls the operator again. */
#include "op/conjugate.h"

#include "core/new.h"
#include "core/resize.h"
#include "core/shape.h"
#include "core/tensor.h"
#include "dispatch/device.h"
#include "gen/uses/op/conjugate.h"

enum { CONJUGATE_BIT = 1 << GRD_KEY_CONJUGATE };

/* The output argument of one call of an operator, and its replacement. */
struct call {
    /* out: the caller's output argument, or NULL. written: the tensor that the operator gets instead. It is a conjugated copy of `out` if `out` has
     * the key CONJUGATE, otherwise `out` itself. */
    grd_tensor *out, *written;
};

/* Returns a tensor that shares t's memory but has neither autograd history nor the key CONJUGATE, so its elements are read as stored. */
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

/* Returns the tensor that the operator gets in place of argument `t`. If `t` does not have the key CONJUGATE, this is `t` itself. If `t` is the
 * output argument, it is call->written. Otherwise it is a new tensor, with the conjugated elements in memory. */
static grd_tensor *resolved(const void *context, grd_tensor *t)
{
    const struct call *call = context;
    if (grd_is_failed(t) || !grd_is_conjugated(t))
        return t;
    return t == call->out ? call->written : conjugates_of(memory_of(t));
}

/* Writes the result of the operator, `written`, to `out`, which is resized if needed. Because `out` has the key CONJUGATE, its memory gets the
 * conjugates of the elements. */
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
