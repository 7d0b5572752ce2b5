/* Implements the boxed kernel of the BATCH key, which runs all operators on batch tensors. A batch tensor looks like one element of a batch. Its
 * physical tensor has the batch as dimension 0.
 *
 * The kernel replaces batch tensors by their physical tensors, changes the other arguments as the operator's rule says (enum grd_batch_rule, enum
 * grd_batch_role), calls the operator, and makes batch tensors of the results. No operator is named here; formulas for single operators are in
 * the schema.
 * Invariants
 * - While the kernel runs, the BATCH key is excluded, so that the operators it calls are not batched again.
 * - If the called operator fails, explain() chooses the error to report. It prefers the error that a call for one element of the batch raises. */
#include "transform/transform.h"

#include <stdio.h>
#include <string.h>

#include "gen/uses/transform/batch.h"
#include "core/data.h"
#include "core/new.h"
#include "core/shape.h"
#include "core/tensor.h"
#include "transform/formula.h"

/* ---- Arguments and results ---------------------------------------------------------------------------------------------------- */

/* Takes a tensor `t` of argument `i` into account: call->rank becomes at least its number of dimensions, and bit i of call->batched is set if `t`
 * is a batch tensor. False, with the error raised, if `t` is a batch tensor of another call of vmap. */
static bool see(struct grd_batch_call *call, int i, const grd_tensor *t)
{
    call->rank = t->ndim > call->rank ? t->ndim : call->rank;
    if (!grd_is_batch(t))
        return true;
    call->batched |= 1u << i;
    return grd_batch_usable(t);
}

/* Finds the batch tensors among the arguments, and copies the arguments to call->values. False, with the error raised, if a batch tensor belongs
 * to another call of vmap. */
static bool look(struct grd_batch_call *call)
{
    for (int i = 0; i < call->op->nargs; i++) {
        const grd_value *value = &call->args[i];
        call->values[i] = *value;
        if (value->kind == GRD_KIND_TENSOR && value->v.tensor != NULL && !see(call, i, value->v.tensor))
            return false;
        for (int64_t k = 0; value->kind == GRD_KIND_TENSORS && k < value->v.tensors.n; k++)
            if (!see(call, i, value->v.tensors.data[k]))
                return false;
    }
    return true;
}

static grd_tensor *unwrap(grd_tensor *t, bool all)
{
    return all ? grd_batch_front(t) : grd_physical(t);
}

bool grd_batch_unwrap(struct grd_batch_call *call, bool all)
{
    for (int i = 0; i < call->op->nargs; i++) {
        grd_value *value = &call->values[i];
        if (value->kind == GRD_KIND_TENSOR && value->v.tensor != NULL)
            value->v.tensor = unwrap(value->v.tensor, all);
        if (value->kind != GRD_KIND_TENSORS)
            continue;
        grd_tensor **list = grd_pool_array(value->v.tensors.n, sizeof *list);
        for (int64_t k = 0; list != NULL && k < value->v.tensors.n; k++)
            list[k] = unwrap(value->v.tensors.data[k], all);
        value->v.tensors.data = list;
    }
    return !grd_pending();
}

bool grd_batch_below(const struct grd_op *op, grd_tensor *out, const grd_value *args, grd_value *ret_results)
{
    grd_dispatch_boxed(op, grd_active_keys(grd_keys_of_values(op, out, args)), out, args, ret_results);
    return !grd_pending();
}

bool grd_batch_wrap_results(const struct grd_op *op, grd_value *results)
{
    const uint64_t level = grd_thread.level.id;
    if (op->returns_list) {
        const grd_tensors list = results[0].v.tensors;
        grd_tensor **wrapped = grd_pool_array(list.n, sizeof *wrapped);
        for (int64_t i = 0; wrapped != NULL && i < list.n; i++)
            wrapped[i] = grd_new_batch(list.data[i], level);
        results[0].v.tensors = grd_tensors_from(wrapped, list.n);
    } else {
        for (int i = 0; i < op->nresults; i++)
            results[i].v.tensor = grd_new_batch(results[i].v.tensor, level);
    }
    return !grd_pending();
}

bool grd_batch_raise_inplace(const char *name, const char *suffix)
{
    return grd_raise(GRD_ERROR_RUNTIME,
                     "vmap: %s%s(self, *extra_args) is not possible because there exists a Tensor `other` in extra_args that has more "
                     "elements than `self`. This "
                     "happened due to `other` being vmapped over but `self` not being vmapped over in a vmap. Please try to use "
                     "out-of-place operators instead of "
                     "%s%s. If said operator is being called inside the PyTorch framework, please file a bug report instead.",
                     name, suffix, name, suffix);
}

/* ---- The call for one element ---------------------------------------------------------------------------------------------------- */

/* Returns a tensor on the meta device with the sizes, strides and dtype of `t`. For a batch tensor these are the sizes, strides and dtype of one
 * element of the batch. */
static grd_tensor *element_of(grd_tensor *t)
{
    grd_tensor *element = grd_new_strided(grd_sizes(t), grd_strides(t), (grd_dtype)t->dtype, GRD_META);
    element->flags |= grd_is_failed(element) ? 0 : t->flags & GRD_FLAG_NUMBER;
    return element;
}

/* True if the operator accepts the call for one element of the batch. To find this out, the operator is run on the meta device, without data. If
 * it has no kernel for the meta device, the call is not checked and the result is true. */
static bool check_element(const struct grd_batch_call *call)
{
    grd_value elements[GRD_MAX_ARGS], results[GRD_MAX_RESULTS];
    for (int i = 0; i < call->op->nargs; i++) {
        elements[i] = call->args[i];
        if (elements[i].kind == GRD_KIND_TENSOR && elements[i].v.tensor != NULL)
            elements[i].v.tensor = element_of(elements[i].v.tensor);
        if (elements[i].kind == GRD_KIND_DEVICE)
            elements[i].v.device = GRD_META;
        if (elements[i].kind != GRD_KIND_TENSORS)
            continue;
        grd_tensor **list = grd_pool_array(elements[i].v.tensors.n, sizeof *list);
        for (int64_t k = 0; list != NULL && k < elements[i].v.tensors.n; k++)
            list[k] = element_of(elements[i].v.tensors.data[k]);
        elements[i].v.tensors.data = list;
    }
    if (grd_pending() || grd_batch_below(call->op, call->out != NULL ? elements[0].v.tensor : NULL, elements, results))
        return !grd_pending();
    if (grd_error_get() == GRD_ERROR_NOT_IMPLEMENTED)
        grd_error_clear();
    return !grd_pending();
}

/* Chooses the error to report after a failure. If the call for one element of the batch fails too, its error is kept, because it names the sizes
 * and dims that the caller knows. Otherwise the first error is kept. Always returns false. */
static bool explain(const struct grd_batch_call *call)
{
    if (grd_error_get() == GRD_ERROR_MEMORY)
        return false;
    struct grd_error_state error = grd_error_take();
    if (!check_element(call))
        error.code = GRD_ERROR_NONE;
    grd_error_restore(error);
    return false;
}

/* ---- Elementwise operators: the dimensions of all tensors are aligned --------------------------------------------------------------- */

/* Note [Dtypes of elements]
 * In type promotion, a tensor with dimensions takes precedence over a zero-dimensional tensor. A batch of zero-dimensional tensors is stored as a
 * physical tensor with one dimension, which would take precedence wrongly. So the dtype of the result is determined for one element of the batch. If
 * the physical tensors would give another dtype, those that stand for zero-dimensional tensors are first converted to the right dtype. */
static bool keep_dtypes(struct grd_batch_call *call)
{
    grd_tensor *elements[GRD_MAX_ARGS], *below[GRD_MAX_ARGS];
    bool weak = false;
    int n = 0;
    for (int i = 0; i < call->op->nargs; i++) {
        if (call->args[i].kind != GRD_KIND_TENSOR || call->args[i].v.tensor == NULL)
            continue;
        elements[n] = call->args[i].v.tensor;
        below[n++] = call->values[i].v.tensor;
        weak |= elements[n - 1]->ndim == 0 && (call->batched >> i & 1) != 0;
    }
    if (!weak || n < 2)
        return true;
    const grd_dtype dtype = grd_result_type(elements, n);
    if (grd_pending() || dtype == grd_result_type(below, n))
        return !grd_pending();
    for (int i = 0; i < call->op->nargs; i++) {
        const grd_tensor *element = call->args[i].kind == GRD_KIND_TENSOR ? call->args[i].v.tensor : NULL;
        if (element != NULL && element != call->out && element->ndim == 0 && element->dtype != GRD_BOOL &&
            !grd_has(element, GRD_FLAG_NUMBER))
            call->values[i].v.tensor = grd_to(call->values[i].v.tensor, .dtype = dtype);
    }
    return !grd_pending();
}

/* Replaces each batch tensor by its physical tensor, in which dimension 0 is the batch. Where an element of the batch has fewer than
 * call->rank dimensions, inserts dimensions of size 1 after dimension 0, so that the physical tensors broadcast correctly. False, with the error
 * raised, on failure. */
static bool align(struct grd_batch_call *call)
{
    if (call->out != NULL && (call->batched & 1) == 0)
        return grd_batch_raise_inplace("inplace arithmetic", "");
    for (int i = 0; i < call->op->nargs; i++)
        if (call->batched >> i & 1) {
            grd_tensor *physical = grd_physical(call->values[i].v.tensor);
            call->values[i].v.tensor = call->args[i].v.tensor == call->out ? physical : grd_batch_aligned(physical, call->rank);
        }
    return !grd_pending() && keep_dtypes(call);
}

/* ---- Dims among the arguments -------------------------------------------------------------------------------------------------------- */

/* The state of shift(). The arguments of a call are meant for one element of the batch, and shift() adapts them to the physical tensors. For example,
 * it adds 1 to a dim. The role of an argument (enum grd_batch_role) says how it is changed. */
struct shift {
    struct grd_batch_call *call;
    int first;                         /* index of the first tensor argument, to which dims refer; -1 if there is none */
    int64_t ndim;                      /* number of dimensions of one element of the batch, which is added to negative dims */
    bool lifted;                       /* true if zero-dimensional elements of the batch were given a dimension */
    int lists;                         /* number of rows of `room` that hold a changed list */
    int64_t room[4][GRD_MAX_DIMS + 1]; /* memory for changed copies of the call's list arguments */
};

/* Returns the index of the first argument with the given role, or -1 if there is none. */
static int find_role(const struct grd_op *op, enum grd_batch_role role)
{
    for (int i = 0; i < op->nargs; i++)
        if (op->args[i].role == role)
            return i;
    return -1;
}

/* True if some argument of the operator is a dim or a list of dims. */
static bool has_dims(const struct grd_op *op)
{
    for (int i = 0; i < op->nargs; i++)
        if (op->args[i].role >= GRD_ROLE_DIM && op->args[i].role <= GRD_ROLE_REDUCE)
            return true;
    return false;
}

static int first_tensor(const struct grd_op *op)
{
    for (int i = 0; i < op->nargs; i++)
        if (op->args[i].kind == GRD_KIND_TENSOR || op->args[i].kind == GRD_KIND_TENSORS)
            return i;
    return -1;
}

static grd_tensor *tensor_at(const grd_value *value)
{
    return value->kind == GRD_KIND_TENSORS ? value->v.tensors.data[0] : value->v.tensor;
}

/* Returns the value of the call's argument `keepdim`, or false if the operator has no such argument. */
static bool keeps_dims(const struct grd_batch_call *call)
{
    for (int i = 0; i < call->op->nargs; i++)
        if (strcmp(call->op->args[i].name, "keepdim") == 0)
            return call->args[i].v.boolean;
    return false;
}

/* Handles an absent dim, which means all dimensions. Reshapes each element of the batch to one dimension and sets *dim to that dimension. With
 * keepdim, appends dimensions of size 1, so that the result has as many dimensions as the element had. False, with the error raised, on failure. */
static bool flatten(struct shift *s, grd_value *dim)
{
    grd_value *value = &s->call->values[s->first];
    int64_t sizes[GRD_MAX_DIMS + 1] = {value->v.tensor->sizes[0], s->call->args[s->first].v.tensor->numel};
    const int64_t n = keeps_dims(s->call) && s->ndim > 0 ? s->ndim : 1;
    for (int64_t i = 2; i <= n; i++)
        sizes[i] = 1;
    value->v.tensor = grd_reshape(value->v.tensor, grd_dims_from(sizes, n + 1));
    dim->v.scalar = grd_int(1);
    return !grd_pending();
}

/* Changes the dim *value of one element of the batch to the dim of the physical tensor, which is larger by 1 because dimension 0 is the batch. If
 * *value is None, calls flatten(). False, with IndexError, if the dim is out of range. */
static bool shift_dim(struct shift *s, grd_value *value)
{
    int64_t dim;
    if (value->kind == GRD_KIND_SCALAR && value->v.scalar.kind == GRD_SCALAR_NONE)
        return flatten(s, value);
    if (!grd_shape_wrap_dim(value->kind == GRD_KIND_SCALAR ? value->v.scalar.v.i : value->v.integer, s->ndim, &dim))
        return false;
    if (value->kind == GRD_KIND_SCALAR)
        value->v.scalar = grd_int(dim + 1);
    else
        value->v.integer = dim + 1;
    return true;
}

static bool is_channels_last(const grd_value *format)
{
    return format->v.string != NULL && strncmp(format->v.string, "channels_last", strlen("channels_last")) == 0;
}

/* If the memory format *value is channels_last, checks that the call is valid for one element of the batch, and removes the format, because the
 * physical tensor has one dimension more. False, with the error raised, if the call is invalid. */
static bool shift_format(const struct shift *s, grd_value *value)
{
    if (!is_channels_last(value))
        return true;
    value->v.string = NULL;
    return check_element(s->call);
}

/* Changes a list argument to one for the physical tensors, as its role says (enum grd_batch_role). E.g. dims are increased by 1, and sizes get the
 * size of the batch in front. False, with the error raised, if the list is too long or a dim is out of range. */
static bool shift_list(struct shift *s, grd_value *value, enum grd_batch_role role)
{
    int64_t *list = s->room[s->lists++];
    const grd_dims given = value->v.dims;
    int64_t n = 0;
    if (given.n > GRD_MAX_DIMS)
        return grd_raise(GRD_ERROR_RUNTIME, "too many dimensions: %lld, the limit is %d", (long long)given.n, GRD_MAX_DIMS - 1);
    const grd_tensor *first = tensor_at(&s->call->values[s->first >= 0 ? s->first : 0]);
    if (role == GRD_ROLE_ORDER)
        list[n++] = 0;
    if (role == GRD_ROLE_SIZES)
        list[n++] = grd_thread.level.size;
    if (role == GRD_ROLE_STRIDES)
        list[n++] = first->strides[0];
    if (role <= GRD_ROLE_REDUCE && (given.data == NULL || (role == GRD_ROLE_REDUCE && given.n == 0)))
        while (n < (s->ndim > 0 ? s->ndim : 1)) {
            list[n] = n + 1;
            n++;
        }
    for (int64_t i = 0; i < given.n; i++, n++) {
        list[n] = given.data[i];
        if (role <= GRD_ROLE_ORDER && !grd_shape_wrap_dim(given.data[i], s->ndim, &list[n]))
            return false;
        list[n] += role <= GRD_ROLE_ORDER;
    }
    value->v.dims = grd_dims_from(list, n);
    return true;
}

/* Gives zero-dimensional elements of the batch a dimension of size 1, which is dimension 1 of the physical tensors. False, with the error raised,
 * on failure. */
static bool lift(struct shift *s)
{
    for (int i = 0; i < s->call->op->nargs; i++) {
        grd_value *value = &s->call->values[i];
        if (value->kind == GRD_KIND_TENSOR && value->v.tensor != NULL && value->v.tensor->ndim == 1)
            value->v.tensor = grd_unsqueeze(value->v.tensor, 1);
    }
    return !grd_pending();
}

/* Removes dimension 1, which lift() has added, from the result `t`, if the result still has it. */
static grd_tensor *lowered(grd_tensor *t)
{
    return !grd_pending() && t->ndim > 1 && t->sizes[1] == 1 ? grd_squeeze(t, .dim = 1) : t;
}

/* Replaces each batch tensor by its physical tensor, in which dimension 0 is the batch. Changes the other arguments to fit, e.g. adds 1 to a dim. The
 * role of an argument (enum grd_batch_role) says how it is changed. False, with the error raised, if the call for one element of the batch is
 * invalid. */
static bool shift(struct shift *s)
{
    struct grd_batch_call *call = s->call;
    const struct grd_op *op = call->op;
    s->first = first_tensor(op);
    const grd_tensor *first = s->first >= 0 ? tensor_at(&call->args[s->first]) : NULL;
    const int sizes = find_role(op, GRD_ROLE_SIZES);
    s->ndim = first == NULL ? 0 : first->ndim;
    const bool dims = has_dims(op);
    /* An operator with sizes and dims is the gradient of a view operator, e.g. _select_backward. It returns a tensor with these sizes, and the dims
     * are dimensions of that tensor. */
    if (sizes >= 0 && dims)
        s->ndim = call->args[sizes].v.dims.n;
    if (((dims && s->ndim == 0) || op->batch == GRD_BATCH_TRAILING) && !check_element(call))
        return false;
    if (!grd_batch_unwrap(call, true))
        return false;
    s->lifted = dims && s->ndim == 0;
    if (s->lifted && !lift(s))
        return false;
    for (int i = 0; i < op->nargs; i++) {
        const enum grd_batch_role role = op->args[i].role;
        grd_value *value = &call->values[i];
        if (role == GRD_ROLE_DIM      ? !shift_dim(s, value)
            : role == GRD_ROLE_FORMAT ? !shift_format(s, value)
                                      : role != GRD_ROLE_NONE && !shift_list(s, value, role))
            return false;
    }
    return true;
}

/* ---- The rules ----------------------------------------------------------------------------------------------------------------------------- */

/* Stores the results of the call as batch tensors in `ret_results`. If the call writes to `out`, the result is `out`. The dispatch keys of
 * `out` are then set again, because the call may have made `out` require a gradient. False, with the error raised, on failure. */
static bool finish(struct grd_batch_call *call, grd_value *ret_results)
{
    if (call->out == NULL)
        return grd_batch_wrap_results(call->op, ret_results);
    grd_mark_batch(call->out);
    grd_set_tensor(&ret_results[0], call->out);
    return true;
}

/* Returns the tensor that holds the whole batch of `out`, the tensor that the call writes. Returns NULL if there is no `out`. */
static grd_tensor *physical_out(const struct grd_batch_call *call)
{
    return call->out != NULL ? call->values[0].v.tensor : NULL;
}

static bool run_aligned(struct grd_batch_call *call, grd_value *ret_results)
{
    return align(call) && grd_batch_below(call->op, physical_out(call), call->values, ret_results) && finish(call, ret_results);
}

static __attribute__((noinline)) bool run_shifted(struct grd_batch_call *call, grd_value *ret_results)
{
    struct shift s;
    s.call = call;
    s.lists = 0;
    if (!shift(&s) || !grd_batch_below(call->op, physical_out(call), call->values, ret_results))
        return false;
    for (int i = 0; i < call->op->nresults && s.lifted && !call->op->returns_list; i++)
        ret_results[i].v.tensor = lowered(ret_results[i].v.tensor);
    return !grd_pending() && finish(call, ret_results);
}

static __attribute__((noinline)) bool run_formula(struct grd_batch_call *call, grd_value *ret_results)
{
    grd_tensor *results[GRD_MAX_RESULTS];
    if (!check_element(call) || !grd_batch_unwrap(call, true))
        return false;
    results[0] = call->op->batched.formula(call->values, results);
    if (grd_pending())
        return false;
    if (call->out != NULL)
        grd_copy_(call->values[0].v.tensor, results[0]);
    for (int i = 0; i < call->op->nresults; i++)
        grd_set_tensor(&ret_results[i], results[i]);
    return !grd_pending() && finish(call, ret_results);
}

/* ---- Element by element ------------------------------------------------------------------------------------------------------------------------ */

static bool warn_of_loop(const struct grd_op *op)
{
    char text[256];
    if (atomic_exchange(&((struct grd_op *)(uintptr_t)op)->looped, true))
        return true;
    snprintf(text, sizeof text,
             "There is a performance drop because we have not yet implemented the batching rule for aten::%s. Please file us an issue on "
             "GitHub so that we could "
             "prioritize its implementation.",
             op->name);
    return grd_warn(text);
}

/* Writes the arguments for element number `index` of the batch to `ret_args`. False, with the error raised, on failure. */
static bool take_element(const struct grd_batch_call *call, int64_t index, grd_value *ret_args)
{
    for (int i = 0; i < call->op->nargs; i++) {
        ret_args[i] = call->values[i];
        if (call->op->args[i].role == GRD_ROLE_OFFSET && ret_args[i].v.scalar.kind != GRD_SCALAR_NONE)
            ret_args[i].v.scalar.v.i += index * call->values[0].v.tensor->strides[0];
        if (ret_args[i].kind == GRD_KIND_TENSOR && ret_args[i].v.tensor != NULL)
            ret_args[i].v.tensor = grd_select(ret_args[i].v.tensor, 0, index);
        if (ret_args[i].kind != GRD_KIND_TENSORS)
            continue;
        grd_tensor **list = grd_pool_array(ret_args[i].v.tensors.n, sizeof *list);
        for (int64_t k = 0; list != NULL && k < ret_args[i].v.tensors.n; k++)
            list[k] = grd_select(ret_args[i].v.tensors.data[k], 0, index);
        ret_args[i].v.tensors.data = list;
    }
    return !grd_pending();
}

/* Runs the operator once for each element of the batch and stacks the results. False, with the error raised, on failure. */
static __attribute__((noinline)) bool run_loop(struct grd_batch_call *call, grd_value *ret_results)
{
    const struct grd_op *op = call->op;
    const int64_t n = grd_thread.level.size;
    grd_value args[GRD_MAX_ARGS], results[GRD_MAX_RESULTS];
    if (op->returns_list || n == 0)
        return grd_raise(GRD_ERROR_RUNTIME, "Batching rule not implemented for aten::%s; the fallback path doesn't work on %s.", op->name,
                         n == 0 ? "a batch without elements" : "lists of tensors");
    grd_tensor **made = grd_pool_array(n * op->nresults, sizeof *made);
    if (!warn_of_loop(op) || !grd_batch_unwrap(call, true) || made == NULL)
        return false;
    for (int64_t i = 0; i < n; i++) {
        if (!take_element(call, i, args) || !grd_batch_below(op, call->out != NULL ? args[0].v.tensor : NULL, args, results))
            return false;
        for (int k = 0; k < op->nresults; k++)
            made[k * n + i] = results[k].v.tensor;
    }
    for (int k = 0; k < op->nresults && call->out == NULL; k++)
        grd_set_tensor(&ret_results[k], grd_stack(grd_tensors_from(made + k * n, n)));
    return !grd_pending() && finish(call, ret_results);
}

/* ---- The kernel ------------------------------------------------------------------------------------------------------------------------------- */

static bool run(struct grd_batch_call *call, grd_value *ret_results);

/* Runs an in-place view operator such as transpose_ on a batch tensor: runs the functional form (transpose), and then exchanges the contents of
 * `out` and of the resulting view. False, with the error raised, on failure. */
static bool run_view_in_place(struct grd_batch_call *call, grd_value *ret_results)
{
    grd_tensor *const out = call->out;
    call->out = NULL;
    if (!run(call, ret_results))
        return false;
    grd_batch_swap(out, ret_results[0].v.tensor);
    grd_set_tensor(&ret_results[0], out);
    return true;
}

static bool run(struct grd_batch_call *call, grd_value *ret_results)
{
    const struct grd_op *op = call->op;
    if (call->out != NULL && op->is_view)
        return run_view_in_place(call, ret_results);
    if (op->batch == GRD_BATCH_RANDOM)
        return grd_batch_random(call, ret_results);
    if (call->out != NULL && (op->nargs == 0 || call->args[0].kind != GRD_KIND_TENSOR || call->args[0].v.tensor != call->out))
        return grd_raise(GRD_ERROR_RUNTIME,
                         "Batching rule not implemented for aten::%s.out; the fallback path doesn't work on out= or view ops.", op->name);
    if (GRD_LIKELY(op->batch <= GRD_BATCH_ALIGN))
        return run_aligned(call, ret_results);
    if (op->batch == GRD_BATCH_REFUSE)
        return grd_raise(GRD_ERROR_RUNTIME, "%s", op->batched.refusal);
    if (call->out != NULL && (call->batched & 1) == 0)
        return grd_batch_raise_inplace(op->name, "_");
    switch (op->batch) {
    case GRD_BATCH_FORMULA:
        return run_formula(call, ret_results);
    case GRD_BATCH_LOOP:
        return run_loop(call, ret_results);
    default:
        return run_shifted(call, ret_results);
    }
}

/* The fallback kernel of the BATCH key, which runs all operators under vmap. If no tensor of the call is a batch tensor, the operator runs
 * directly, except that operators that draw random numbers follow the `randomness` of vmap. */
static void call_batched(const grd_op *op, grd_keyset keys, grd_tensor *out, const grd_value *args, grd_value *ret_results, void *context)
{
    const uint32_t exclude = grd_thread.exclude;
    struct grd_batch_call call;
    call.op = op;
    call.out = out;
    call.args = args;
    call.batched = 0;
    call.rank = 0;
    (void)keys;
    (void)context;
    if (!look(&call))
        return;
    grd_thread.exclude |= GRD_BATCH_BIT;
    if (call.batched == 0 && op->batch != GRD_BATCH_RANDOM && (out == NULL || !grd_is_batch(out)))
        grd_batch_below(op, out, args, ret_results);
    else if (!run(&call, ret_results) && op->batch < GRD_BATCH_RANDOM)
        explain(&call);
    grd_thread.exclude = exclude;
}

void grd_transform_init(void)
{
    grd_register_fallback(GRD_KEY_BATCH, call_batched, NULL);
}
