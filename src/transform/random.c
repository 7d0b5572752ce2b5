/* Runs operators that draw random numbers inside vmap, as vmap's argument `randomness` says.
 *
 * Invariant: if all elements of a batch get the same numbers, the numbers are drawn once, as they would be without vmap. */
#include "core/tensor.h"
#include "transform/transform.h"

#include "gen/uses/transform/random.h"

static bool raise_same(void)
{
    return grd_raise(GRD_ERROR_RUNTIME,
                     "Vmap does not currently support same randomness with a batched tensor input. Please file an issue with functorch");
}

static bool has_tensors(const struct grd_op *op)
{
    for (int i = 0; i < op->nargs; i++)
        if (op->args[i].kind == GRD_KIND_TENSOR)
            return true;
    return false;
}

/* Runs a composite operator. The operators that it calls draw the random numbers. If each element of the batch is to get different numbers, all
 * tensor arguments are first expanded to batch tensors. False, with the error raised, on failure. */
static bool run_parts(struct grd_batch_call *call, grd_value *ret_results)
{
    const struct grd_op *op = call->op;
    for (int i = 0; i < op->nargs && grd_thread.level.randomness == GRD_RANDOMNESS_DIFFERENT; i++)
        if (call->values[i].kind == GRD_KIND_TENSOR && call->values[i].v.tensor != NULL)
            call->values[i].v.tensor = grd_batch_expand(call->values[i].v.tensor);
    if (grd_pending())
        return false;
    grd_thread.exclude &= ~GRD_BATCH_BIT;
    op->unbox(op->kernel, call->out, call->values, ret_results);
    grd_thread.exclude |= GRD_BATCH_BIT;
    return !grd_pending();
}

/* Makes a new tensor with different random numbers for each element of the batch. If the operator has an argument for the sizes, one call draws the
 * numbers of the whole batch. Otherwise the operator is called once for each element, and the results are stacked. False, with the error raised, on
 * failure. */
static bool make_different(struct grd_batch_call *call, grd_value *ret_results)
{
    const struct grd_op *op = call->op;
    const int64_t n = grd_thread.level.size;
    int64_t sizes[GRD_MAX_DIMS + 1] = {n};
    for (int i = 0; i < op->nargs; i++) {
        const grd_dims given = call->values[i].v.dims;
        if (op->args[i].role != GRD_ROLE_SIZES || given.n > GRD_MAX_DIMS)
            continue;
        for (int64_t k = 0; k < given.n; k++)
            sizes[k + 1] = given.data[k];
        call->values[i].v.dims = grd_dims_from(sizes, given.n + 1);
        return grd_batch_below(op, NULL, call->values, ret_results) && grd_batch_wrap_results(op, ret_results);
    }
    grd_tensor **made = grd_pool_array(n, sizeof *made);
    if (made == NULL)
        return false;
    for (int64_t i = 0; i < n; i++) {
        if (!grd_batch_below(op, NULL, call->values, ret_results))
            return false;
        made[i] = ret_results[0].v.tensor;
    }
    ret_results[0].v.tensor = grd_stack(grd_tensors_from(made, n));
    return !grd_pending() && grd_batch_wrap_results(op, ret_results);
}

/* Fills a tensor in place with the same random numbers for all elements of the batch: draws the numbers for one element and copies them to all
 * elements. False, with the error raised, on failure. */
static bool fill_same(struct grd_batch_call *call, grd_value *ret_results)
{
    const grd_tensor *self = call->out;
    if ((call->batched & ~1u) != 0)
        return raise_same();
    if (call->batched == 0)
        return grd_batch_below(call->op, call->out, call->values, ret_results);
    grd_tensor *drawn = grd_empty(grd_sizes(self), .dtype = (grd_dtype)self->dtype, .device = grd_device_of(self));
    call->values[0].v.tensor = drawn;
    if (grd_pending() || !grd_batch_below(call->op, drawn, call->values, ret_results))
        return false;
    grd_copy_(grd_physical(self), drawn);
    grd_set_tensor(&ret_results[0], call->out);
    return !grd_pending();
}

/* Fills a tensor in place with different random numbers for each element of the batch. False, with the error raised, on failure. */
static bool fill_different(struct grd_batch_call *call, grd_value *ret_results)
{
    if ((call->batched & 1) == 0)
        return grd_raise(GRD_ERROR_RUNTIME,
                         "vmap: Cannot ask for different inplace randomness on an unbatched tensor. This will appear like same randomness. "
                         "If this is necessary for your usage, please file an issue with functorch.");
    if (!grd_batch_unwrap(call, true) || !grd_batch_below(call->op, call->values[0].v.tensor, call->values, ret_results))
        return false;
    grd_set_tensor(&ret_results[0], call->out);
    return true;
}

bool grd_batch_random(struct grd_batch_call *call, grd_value *ret_results)
{
    const struct grd_op *op = call->op;
    const bool same = grd_thread.level.randomness == GRD_RANDOMNESS_SAME, tensors = has_tensors(op);
    if (op->composite && tensors)
        return run_parts(call, ret_results);
    if (grd_thread.level.randomness == GRD_RANDOMNESS_ERROR)
        return grd_raise(
            GRD_ERROR_RUNTIME,
            "vmap: called random operation while in randomness error mode. Please either use the 'same' or 'different' randomness "
            "flags on vmap or perform the randomness operation out of vmap");
    if (call->out != NULL)
        return same ? fill_same(call, ret_results) : fill_different(call, ret_results);
    if (same)
        return call->batched != 0 ? raise_same() : grd_batch_below(op, NULL, call->values, ret_results);
    if (!tensors)
        return make_different(call, ret_results);
    return grd_batch_unwrap(call, true) && grd_batch_below(op, NULL, call->values, ret_results) && grd_batch_wrap_results(op, ret_results);
}
