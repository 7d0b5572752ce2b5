/* Runs an operator on the CPU for tensors on the device of a plug-in: copies the arguments to the CPU, and the results and the written tensor
 * back to the device.
 *
 * Invariants
 * - Arguments that share memory on the device also share memory on the CPU, at the same distances and with the same strides. So the operator
 *   detects overlaps, and chooses the strides of its result, as for CPU tensors.
 * - Nothing is written on the device before the operator has succeeded. */
#include "dispatch/device.h"

#include "base/memory.h"
#include "core/device.h"
#include "core/new.h"
#include "core/resize.h"
#include "core/shape.h"
#include "core/tensor.h"
#include "core/transfer.h"

/* A range of elements of one storage, which is copied to the CPU. It contains the elements of all tensors of the call that use this storage with
 * this dtype. */
struct span {
    const struct grd_storage *storage;
    grd_dtype dtype;
    int64_t low, high; /* low: offset of the first element; high: offset of the end of the range; low > high if the range is empty */
    grd_tensor *copy;  /* CPU copy of the range; NULL until it is made */
};

/* A tensor of the call that is on the device of a plug-in (`original`), and the CPU tensor that replaces it (`twin`). */
struct pair {
    grd_tensor *original, *twin;
    int span; /* index in call->spans of the range that contains `original` */
};

struct call {
    const struct grd_op *op;
    grd_tensor *out;
    const grd_value *args;
    grd_device to; /* device where the results of the call belong */
    struct pair *pairs;
    struct span *spans;
    int npairs, nspans;
};

/* ---- Arguments, to the CPU ------------------------------------------------------------------------------------------- */

/* Returns the index in call->spans of the range for the storage and dtype of `t`. Adds an empty range if there is none yet. */
static int find_span(struct call *call, const grd_tensor *t)
{
    for (int i = 0; i < call->nspans; i++)
        if (call->spans[i].storage == t->storage && call->spans[i].dtype == t->dtype)
            return i;
    call->spans[call->nspans] = (struct span){.storage = t->storage, .dtype = (grd_dtype)t->dtype, .low = INT64_MAX, .high = INT64_MIN};
    return call->nspans++;
}

static bool is_known(const struct call *call, const grd_tensor *t)
{
    for (int i = 0; i < call->npairs; i++)
        if (call->pairs[i].original == t)
            return true;
    return false;
}

/* Adds the argument `t` to call->pairs; the CPU tensor that replaces it (its twin) is made later. Extends the range of the storage that is copied
 * to the CPU, so that it includes all elements of `t`. */
static void add_pair(struct call *call, grd_tensor *t)
{
    int64_t lowest, highest;
    const int at = find_span(call, t);
    struct span *span = &call->spans[at];
    call->pairs[call->npairs++] = (struct pair){.original = t, .span = at};
    grd_shape_extent(grd_sizes(t), t->strides, &lowest, &highest);
    if (t->numel == 0)
        return;
    span->low = t->offset + lowest < span->low ? t->offset + lowest : span->low;
    span->high = t->offset + highest + 1 > span->high ? t->offset + highest + 1 : span->high;
}

/* Adds every tensor of the call that is on a device of a plug-in to call->pairs, each tensor once. Returns false, with the error raised, if there
 * is no memory. */
static bool collect(struct call *call)
{
    int64_t n = 0;
    struct grd_tensor_walk count = grd_walk_tensors(call->op, call->out, call->args), walk = count;
    while (grd_next_tensor(&count) != NULL)
        n++;
    call->pairs = grd_pool_alloc((size_t)(n + 1) * sizeof *call->pairs);
    call->spans = grd_pool_alloc((size_t)(n + 1) * sizeof *call->spans);
    if (grd_pending())
        return false;
    for (grd_tensor *t; (t = grd_next_tensor(&walk)) != NULL;)
        if (grd_is_extra(grd_device_of(t)) && !is_known(call, t))
            add_pair(call, t);
    return true;
}

/* Copies the elements of the range `span` from the device to a new CPU tensor, span->copy. Returns false, with the error raised, on failure. */
static bool copy_span(struct span *span)
{
    const int64_t n = span->high > span->low ? span->high - span->low : 0, size = grd_dtype_size(span->dtype);
    const grd_device device = {span->storage->device, span->storage->device_index};
    span->copy = grd_new(grd_dims(n), span->dtype, GRD_CPU);
    return !grd_pending() &&
           (n == 0 || grd_device_copy(span->copy->data, GRD_CPU, (char *)span->storage->data + span->low * size, device, n * size));
}

/* True if pair->original is the `out` tensor of the call and shares memory with no argument. In this case the CPU tensor that replaces `out` gets
 * memory of its own, so that the operator may resize it. */
static bool is_apart(const struct call *call, const struct pair *pair)
{
    if (pair->original != call->out ||
        (call->op->nargs > 0 && call->args[0].kind == GRD_KIND_TENSOR && call->args[0].v.tensor == call->out))
        return false;
    for (int i = 0; i < call->npairs; i++)
        if (&call->pairs[i] != pair && call->pairs[i].original->storage == pair->original->storage)
            return false;
    return true;
}

/* Returns a new CPU tensor that replaces pair->original in the call. Returns grd_failed, with the error raised, on failure. */
static grd_tensor *make_twin(struct call *call, const struct pair *pair)
{
    const grd_tensor *t = pair->original;
    if (is_apart(call, pair))
        return grd_new_strided(grd_sizes(t), grd_strides(t), (grd_dtype)t->dtype, GRD_CPU);
    struct span *span = &call->spans[pair->span];
    if (span->copy == NULL && !copy_span(span))
        return grd_failed;
    grd_tensor *twin = grd_new_view(span->copy, grd_sizes(t), grd_strides(t), t->numel > 0 ? t->offset - span->low : 0);
    if (!grd_is_failed(twin))
        twin->flags |= t->flags & GRD_FLAG_NUMBER;
    return twin;
}

/* Returns the CPU tensor that replaces `t` in the call, or `t` itself if it is not replaced. */
static grd_tensor *twin_of(const void *context, grd_tensor *t)
{
    const struct call *call = context;
    for (int i = 0; i < call->npairs; i++)
        if (call->pairs[i].original == t)
            return call->pairs[i].twin;
    return t;
}

/* Returns a copy of the argument `value` for the call on the CPU: each tensor is replaced by its CPU copy, and a device by the CPU. */
static grd_value near_value(const struct call *call, const grd_value *value)
{
    grd_value near = grd_replace_tensors(value, twin_of, call);
    if (value->kind == GRD_KIND_DEVICE)
        near.v.device = GRD_CPU;
    return near;
}

/* ---- Results, to the device -------------------------------------------------------------------------------------------- */

/* Returns the device tensor for `result`, a CPU tensor that the operator returned. If `result` is the CPU tensor that replaces an argument of the
 * call, returns this argument. Otherwise returns a new copy of `result` on the device. */
static grd_tensor *bring_back(const struct call *call, grd_tensor *result)
{
    for (int i = 0; i < call->npairs; i++)
        if (call->pairs[i].twin == result)
            return call->pairs[i].original;
    int64_t strides[GRD_MAX_DIMS];
    grd_shape_dense_strides(grd_sizes(result), result->strides, strides);
    grd_tensor *t = grd_new_strided(grd_sizes(result), grd_dims_from(strides, result->ndim), (grd_dtype)result->dtype, call->to);
    if (grd_pending() || grd_is_meta(t) || !grd_transfer(t, result))
        return t;
    if (grd_marked_requires_grad(result))
        grd_mark_requires_grad(t, true);
    return t;
}

static grd_tensors bring_back_list(const struct call *call, grd_tensors results)
{
    grd_tensor **list = grd_pool_alloc((size_t)(results.n + 1) * sizeof *list);
    for (int64_t i = 0; list != NULL && i < results.n && !grd_pending(); i++)
        list[i] = bring_back(call, results.data[i]);
    return grd_pending() ? (grd_tensors){0} : (grd_tensors){results.n, list};
}

/* Copies the elements of `twin` to `out`. The operator wrote into the CPU tensor `twin` instead of into `out`. If it has resized `twin`, resizes
 * `out` first. */
static void write_back(grd_tensor *out, grd_tensor *twin)
{
    if (grd_dims_equal(grd_sizes(out), grd_sizes(twin)) || grd_resize(out, grd_sizes(twin)))
        grd_transfer(out, twin);
}

void grd_cpu_fallback(const grd_op *op, grd_keyset keys, grd_tensor *out, const grd_value *args, grd_value *ret_results, void *context)
{
    (void)context;
    if (!grd_check_boxed(op, args, ret_results, "grd_cpu_fallback"))
        return;
    struct call call = {.op = op, .out = out, .args = args};
    grd_value near[GRD_MAX_ARGS];
    grd_device from;
    if (!grd_devices_of_call(op, out, args, &from, &call.to) || !collect(&call))
        return;
    for (int i = 0; i < call.npairs; i++)
        call.pairs[i].twin = make_twin(&call, &call.pairs[i]);
    for (int i = 0; i < op->nargs; i++)
        near[i] = near_value(&call, &args[i]);
    if (grd_pending())
        return;
    grd_tensor *near_out = out != NULL ? twin_of(&call, out) : NULL;
    grd_redispatch(op, (keys & ~(grd_keyset)(1u << GRD_KEY_DEVICE)) | 1u << GRD_KEY_CPU, near_out, near, ret_results);
    if (!grd_pending() && out != NULL)
        write_back(out, near_out);
    for (int i = 0; i < op->nresults && !grd_pending(); i++) {
        if (op->returns_list)
            ret_results[i].v.tensors = bring_back_list(&call, ret_results[i].v.tensors);
        else
            ret_results[i].v.tensor = bring_back(&call, ret_results[i].v.tensor);
    }
}
