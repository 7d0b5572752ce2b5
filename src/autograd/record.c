/* Recording: the one boxed kernel of the AUTOGRAD key.
 *
 * It runs the operator below, and when an input requires a gradient leaves a node on the results: edges to where the inputs came from, and the
 * values the operator's formulas name (struct grd_derivative). Nothing here knows an operator.
 * Invariant: whatever can fail is done before an operator writes in place; afterwards only pointers are set. */
#include "autograd/node.h"
#include "gradus/ops.h"

#include <string.h>

/* ---- Nodes of operators --------------------------------------------------------------------------------------------------- */
struct op_node {
    struct grd_node node;
    const struct grd_derivative *derivative;
    struct grd_saved *saved;
    const int *first_edge;
    bool returns_list;
};

enum { INLINE_SAVES = 16 };

/* The first edges of arguments that are no lists. */
static const int plain_edges[GRD_MAX_ARGS + 1] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};

static bool carries_gradient(const struct op_node *self, uint32_t output)
{
    return (self->derivative->results >> (self->returns_list ? 0 : output) & 1) && grd_dtype_carries(self->node.outputs[output].dtype);
}

/* Undefined gradients as zeros. NULL on failure. */
static grd_tensor *const *materialized(const struct op_node *self, grd_tensor *const *grads)
{
    const struct grd_node *node = &self->node;
    bool whole = true;
    for (uint32_t i = 0; i < node->noutputs; i++)
        whole = whole && (grads[i] != NULL || !carries_gradient(self, i));
    if (whole)
        return grads;
    grd_tensor **all = grd_pool_alloc(node->noutputs * sizeof(grd_tensor *));
    for (uint32_t i = 0; all != NULL && i < node->noutputs; i++) {
        const struct grd_output *output = &node->outputs[i];
        all[i] = grads[i];
        if (grads[i] == NULL && carries_gradient(self, i))
            all[i] = grd_zero_(grd_new(grd_dims_from(output->sizes, output->ndim), (grd_dtype)output->dtype,
                                       (grd_device){output->device, output->device_index}));
    }
    return grd_pending() ? NULL : all;
}

/* From a bit per edge to a bit per differentiable argument. */
static uint64_t argument_needs(const struct op_node *self, const struct grd_run *run)
{
    if (self->first_edge == plain_edges)
        return run->needs;
    uint64_t needs = 0;
    for (int arg = 0; arg < self->derivative->nargs; arg++)
        for (int edge = self->first_edge[arg]; edge < self->first_edge[arg + 1]; edge++)
            needs |= (uint64_t)grd_run_needs(run, (uint32_t)edge) << arg;
    return needs;
}

static void op_node_run(struct grd_node *node, const struct grd_run *run)
{
    struct op_node *self = (struct op_node *)node;
    const struct grd_derivative *d = self->derivative;
    if (!grd_saved_begin(node, self->saved, d->nsaves, run->retain))
        return;
    grd_value inline_values[INLINE_SAVES], *values = inline_values;
    if (d->nsaves > INLINE_SAVES && (values = grd_pool_alloc(d->nsaves * sizeof *values)) == NULL)
        return;
    for (int i = 0; i < d->nsaves; i++)
        if (!grd_saved_unpack(&self->saved[i], node, &values[i]))
            return;
    grd_tensor *const *grads = d->materialize ? materialized(self, run->grads) : run->grads;
    if (grads == NULL)
        return;
    d->backward(&(struct grd_backward){.grads = grads,
                                       .ngrads = (int)node->noutputs,
                                       .saved = values,
                                       .needs = argument_needs(self, run),
                                       .ret_grads = run->ret_grads,
                                       .first_edge = self->first_edge});
}

static void op_node_release(struct grd_node *node)
{
    struct op_node *self = (struct op_node *)node;
    for (int i = 0; i < self->derivative->nsaves; i++)
        grd_saved_drop(&self->saved[i]);
}

static const struct grd_node_class op_class = {.run = op_node_run, .release = op_node_release};

/* ---- Saving ------------------------------------------------------------------------------------------------------------------- */
struct call {
    const struct grd_derivative *derivative;
    const grd_value *args;
    grd_tensor *const *results; /* all, of a list too */
    int64_t nresults;
    uint64_t needs;
    bool returns_list;
};

static bool is_needed(const struct call *call, const struct grd_save *save)
{
    return save->used_by == 0 || (save->used_by & call->needs) != 0;
}

static const grd_tensor *subject(const struct call *call, const struct grd_save *save)
{
    return save->result ? call->results[save->index] : call->args[save->index].v.tensor;
}

static size_t round_up(size_t size)
{
    return (size + 7) & ~(size_t)7;
}

/* Bytes that a saved value takes in the node's block. */
static size_t save_room(const struct call *call, const struct grd_save *save)
{
    const grd_value *value = &call->args[save->index];
    if (save->how == GRD_SAVE_SHAPE || save->how == GRD_SAVE_STRIDES)
        return (size_t)subject(call, save)->ndim * sizeof(int64_t);
    if (save->how == GRD_SAVE_SIZES_ALONG)
        return (size_t)value->v.tensors.n * sizeof(int64_t);
    if (save->how != GRD_SAVE_WHOLE)
        return 0;
    if (save->result)
        return call->returns_list ? (size_t)call->nresults * (sizeof(grd_tensor *) + sizeof(uint64_t)) : 0;
    if (value->kind == GRD_KIND_DIMS)
        return value->v.dims.data != NULL ? (size_t)value->v.dims.n * sizeof(int64_t) : 0;
    if (value->kind == GRD_KIND_TENSORS)
        return (size_t)value->v.tensors.n * (sizeof(grd_tensor *) + sizeof(uint64_t));
    if (value->kind == GRD_KIND_STRING && value->v.string != NULL)
        return round_up(strlen(value->v.string) + 1);
    return 0;
}

static void *take_room(char **room, size_t size)
{
    void *taken = *room;
    *room += size;
    return taken;
}

static grd_dims copy_dims(char **room, const int64_t *data, int64_t n)
{
    int64_t *copy = take_room(room, (size_t)n * sizeof *copy);
    for (int64_t i = 0; i < n; i++)
        copy[i] = data[i];
    return grd_dims_from(copy, n);
}

/* The results of a list save aliases, since they know this node; arguments are kept themselves. */
static bool save_list(struct grd_saved *saved, grd_tensor *const *tensors, int64_t n, bool results, char **room)
{
    grd_tensor **list = take_room(room, (size_t)n * sizeof *list);
    saved->versions = take_room(room, (size_t)n * sizeof(uint64_t));
    saved->output = -1;
    saved->value = (grd_value){.kind = GRD_KIND_TENSORS, .v.tensors = {list, 0}};
    for (int64_t i = 0; i < n; i++) {
        struct grd_saved one;
        if (!grd_saved_set_tensor(&one, tensors[i], results ? (int32_t)i : -1))
            return false;
        list[i] = one.value.v.tensor;
        saved->versions[i] = one.version;
        saved->value.v.tensors.n = i + 1;
    }
    return true;
}

static bool save_whole(struct grd_saved *saved, const struct call *call, const struct grd_save *save, grd_tensor *self_copy, char **room)
{
    if (save->result && call->returns_list)
        return save_list(saved, call->results, call->nresults, true, room);
    if (save->result) /* one that carries no gradient knows no node, so it may be kept itself */
        return grd_saved_set_tensor(saved, call->results[save->index], call->derivative->results >> save->index & 1 ? save->index : -1);
    const grd_value *value = &call->args[save->index];
    saved->value = *value;
    saved->output = -1;
    switch (value->kind) {
    case GRD_KIND_TENSOR:
        if (value->v.tensor == NULL)
            return true;
        return grd_saved_set_tensor(saved, self_copy != NULL && value->v.tensor == call->results[0] ? self_copy : value->v.tensor, -1);
    case GRD_KIND_TENSORS:
        return save_list(saved, value->v.tensors.data, value->v.tensors.n, false, room);
    case GRD_KIND_DIMS:
        if (value->v.dims.data != NULL)
            saved->value.v.dims = copy_dims(room, value->v.dims.data, value->v.dims.n);
        return true;
    case GRD_KIND_STRING:
        if (value->v.string != NULL) {
            size_t size = strlen(value->v.string) + 1;
            saved->value.v.string = memcpy(take_room(room, round_up(size)), value->v.string, size);
        }
        return true;
    case GRD_KIND_GENERATOR:
        if (value->v.generator != NULL)
            grd_object_keep(value->v.generator);
        return true;
    default:
        return true;
    }
}

/* Python's rule for a negative dim; the operator has refused those out of range. */
static int64_t size_along(const grd_tensor *t, int64_t dim)
{
    dim = dim < 0 ? dim + t->ndim : dim;
    return dim >= 0 && dim < t->ndim ? t->sizes[dim] : 0;
}

static bool save_value(struct grd_saved *saved, const struct call *call, const struct grd_save *save, grd_tensor *self_copy, char **room)
{
    saved->output = -1;
    switch (save->how) {
    case GRD_SAVE_SHAPE:
    case GRD_SAVE_STRIDES: {
        const grd_tensor *t = subject(call, save);
        saved->value.kind = GRD_KIND_DIMS;
        saved->value.v.dims = copy_dims(room, save->how == GRD_SAVE_SHAPE ? t->sizes : t->strides, t->ndim);
        return true;
    }
    case GRD_SAVE_OFFSET:
        saved->value = (grd_value){.kind = GRD_KIND_INT, .v.integer = subject(call, save)->offset};
        return true;
    case GRD_SAVE_DTYPE:
        saved->value = (grd_value){.kind = GRD_KIND_DTYPE, .v.dtype = (grd_dtype)subject(call, save)->dtype};
        return true;
    case GRD_SAVE_SIZES_ALONG: {
        grd_tensors list = call->args[save->index].v.tensors;
        int64_t *sizes = take_room(room, (size_t)list.n * sizeof *sizes);
        for (int64_t i = 0; i < list.n; i++)
            sizes[i] = size_along(list.data[i], call->args[save->extra].v.integer);
        saved->value = (grd_value){.kind = GRD_KIND_DIMS, .v.dims = {sizes, list.n}};
        return true;
    }
    default:
        return save_whole(saved, call, save, self_copy, room);
    }
}

/* ---- Making a node ---------------------------------------------------------------------------------------------------------------- */
static uint32_t count_edges(const struct grd_derivative *d, const grd_value *args, bool *ret_lists)
{
    uint32_t n = 0;
    for (int i = 0; i < d->nargs; i++) {
        const grd_value *value = &args[d->args[i]];
        *ret_lists |= value->kind == GRD_KIND_TENSORS;
        n += value->kind == GRD_KIND_TENSORS ? (uint32_t)value->v.tensors.n : 1;
    }
    return n;
}

static bool set_edges(struct grd_node *node, const struct grd_derivative *d, const grd_value *args, int *first_edge)
{
    uint32_t edge = 0;
    bool ok = true;
    for (int i = 0; ok && i < d->nargs; i++) {
        const grd_value *value = &args[d->args[i]];
        if (first_edge != NULL)
            first_edge[i] = (int)edge;
        if (value->kind == GRD_KIND_TENSORS) {
            for (int64_t k = 0; ok && k < value->v.tensors.n; k++)
                ok = grd_edge_of(value->v.tensors.data[k], &node->edges[edge++]);
        } else {
            if (value->kind == GRD_KIND_TENSOR && value->v.tensor != NULL)
                ok = grd_edge_of(value->v.tensor, &node->edges[edge]);
            edge++;
        }
    }
    if (first_edge != NULL)
        first_edge[d->nargs] = (int)edge;
    return ok;
}

/* Everything that is known of the call goes into one block. */
static struct grd_node *new_node(const struct call *call, grd_tensor *self_copy)
{
    const struct grd_derivative *d = call->derivative;
    bool lists = false;
    uint32_t nedges = count_edges(d, call->args, &lists);
    size_t extra = d->nsaves * sizeof(struct grd_saved) + (lists ? round_up((d->nargs + 1u) * sizeof(int)) : 0);
    for (int64_t i = 0; i < call->nresults; i++)
        extra += call->results[i]->ndim * sizeof(int64_t);
    for (int i = 0; i < d->nsaves; i++)
        if (is_needed(call, &d->saves[i]))
            extra += save_room(call, &d->saves[i]);
    char *room = NULL;
    struct op_node *self =
        (struct op_node *)grd_node_new(&op_class, d->node_name, sizeof *self, nedges, (uint32_t)call->nresults, extra, &room);
    if (self == NULL)
        return NULL;
    self->derivative = d;
    self->returns_list = call->returns_list;
    self->saved = take_room(&room, d->nsaves * sizeof(struct grd_saved));
    for (int i = 0; i < d->nsaves; i++)
        self->saved[i].value.kind = GRD_KIND_NONE;
    int *first_edge = lists ? take_room(&room, round_up((d->nargs + 1u) * sizeof(int))) : NULL;
    self->first_edge = lists ? first_edge : plain_edges;
    bool ok = set_edges(&self->node, d, call->args, first_edge);
    for (int64_t i = 0; i < call->nresults; i++) {
        const grd_tensor *t = call->results[i];
        grd_node_describe_output(&self->node, (uint32_t)i, t, copy_dims(&room, t->sizes, t->ndim).data);
    }
    for (int i = 0; ok && i < d->nsaves; i++)
        if (is_needed(call, &d->saves[i]))
            ok = save_value(&self->saved[i], call, &d->saves[i], self_copy, &room);
    if (ok)
        return &self->node;
    grd_object_drop(&self->node);
    return NULL;
}

struct grd_node *grd_op_node_new(const struct grd_op *op, const grd_value *args, grd_tensor *const *results, int64_t nresults,
                                 uint64_t needs, grd_tensor *self_copy)
{
    return new_node(&(struct call){op->derivative, args, results, nresults, needs, op->returns_list}, self_copy);
}

/* ---- The kernel ---------------------------------------------------------------------------------------------------------------------- */
static bool any_needs_grad(const grd_value *value)
{
    if (value->kind == GRD_KIND_TENSOR)
        return value->v.tensor != NULL && grd_needs_grad(value->v.tensor);
    if (value->kind == GRD_KIND_TENSORS)
        for (int64_t i = 0; i < value->v.tensors.n; i++)
            if (grd_needs_grad(value->v.tensors.data[i]))
                return true;
    return false;
}

static bool raise_no_formula(const grd_op *op, uint64_t args)
{
    return grd_raise(GRD_ERROR_NOT_IMPLEMENTED, "the derivative for '%s' is not implemented", op->args[__builtin_ctzll(args)].name);
}

/* Which differentiable arguments require gradients, a bit each. False, with the error raised, when an argument without a formula does;
 * what is about to be overwritten needs none. */
static bool find_needs(const grd_op *op, const grd_tensor *out, const grd_value *args, uint64_t *ret_needs)
{
    const struct grd_derivative *d = op->derivative;
    uint64_t requiring = 0, needs = 0;
    *ret_needs = 0;
    if (d == NULL)
        return true;
    for (int i = 0; i < op->nargs; i++)
        requiring |= (uint64_t)any_needs_grad(&args[i]) << i;
    if (requiring == 0)
        return true;
    for (int i = 0; i < d->nargs; i++) {
        needs |= (requiring >> d->args[i] & 1) << i;
        requiring &= ~((uint64_t)1 << d->args[i]);
    }
    if (requiring & 1 && args[0].kind == GRD_KIND_TENSOR && args[0].v.tensor == out)
        requiring &= ~(uint64_t)1;
    *ret_needs = needs;
    return GRD_LIKELY(requiring == 0) || raise_no_formula(op, requiring);
}

/* The operator itself, with recording off for whatever it calls. */
static void run_below(const grd_op *op, grd_keyset keys, grd_tensor *out, const grd_value *args, grd_value *ret_results)
{
    uint32_t exclude = grd_thread.exclude;
    grd_thread.exclude = exclude | GRD_AUTOGRAD_BIT;
    grd_redispatch(op, keys & ~(grd_keyset)GRD_AUTOGRAD_BIT, out, args, ret_results);
    grd_thread.exclude = exclude;
}

/* An operator may hand an argument back as its result: that keeps its own history. */
static bool is_argument(const grd_op *op, const grd_value *args, const grd_tensor *t)
{
    for (int i = 0; i < op->nargs; i++)
        if (args[i].kind == GRD_KIND_TENSOR && args[i].v.tensor == t)
            return true;
    return false;
}

/* How a view was made matters when it is written, and to views of it. */
static uint16_t view_flags(const grd_op *op, const grd_tensor *self)
{
    return (uint16_t)((self->flags & (GRD_FLAG_NO_GRAD_VIEW | GRD_FLAG_MULTI_VIEW)) | (op->returns_list ? GRD_FLAG_MULTI_VIEW : 0));
}

static void record_results(const grd_op *op, const grd_value *args, uint64_t needs, grd_tensor *const *results, int64_t n)
{
    struct grd_node *node = NULL;
    for (int64_t i = 0; i < n; i++) {
        bool carries = op->returns_list ? (op->derivative->results & 1) != 0 : (op->derivative->results >> i & 1) != 0;
        if (!carries || !grd_dtype_carries(results[i]->dtype) || is_argument(op, args, results[i]))
            continue;
        if (node == NULL && (node = grd_op_node_new(op, args, results, n, needs, NULL)) == NULL)
            return;
        if (op->is_view)
            results[i]->flags |= view_flags(op, args[0].v.tensor);
        if (!grd_set_history(results[i], node, (uint32_t)i))
            break;
    }
    grd_object_drop(node);
}

static void record_functional(const grd_op *op, grd_keyset keys, const grd_value *args, uint64_t needs, grd_value *ret_results)
{
    run_below(op, keys, NULL, args, ret_results);
    if (needs == 0 || grd_pending())
        return;
    if (op->returns_list) {
        record_results(op, args, needs, ret_results[0].v.tensors.data, ret_results[0].v.tensors.n);
        return;
    }
    grd_tensor *results[GRD_MAX_RESULTS];
    for (int i = 0; i < op->nresults; i++)
        results[i] = ret_results[i].v.tensor;
    record_results(op, args, needs, results, op->nresults);
}

/* Whether a formula that will be asked for reads an argument that is about to be overwritten: `self`, under whatever name. */
static bool reads_self(const struct call *call)
{
    for (int i = 0; i < call->derivative->nsaves; i++) {
        const struct grd_save *save = &call->derivative->saves[i];
        const grd_value *value = &call->args[save->index];
        if (save->how == GRD_SAVE_WHOLE && !save->result && value->kind == GRD_KIND_TENSOR && value->v.tensor == call->results[0] &&
            is_needed(call, save))
            return true;
    }
    return false;
}

/* What an operator without a derivative leaves behind when it overwrites a tensor: the value depends on nothing. */
static void no_gradient(const struct grd_backward *b)
{
    (void)b;
}

static const struct grd_derivative constant = {.node_name = "NotDifferentiableBackward0", .backward = no_gradient};

/* The own output was saved before the operator ran. */
static void update_versions(struct op_node *self, const grd_tensor *t)
{
    for (int i = 0; i < self->derivative->nsaves; i++)
        if (self->saved[i].value.kind == GRD_KIND_TENSOR && self->saved[i].output >= 0)
            self->saved[i].version = grd_version_of(t);
}

static void record_inplace(const grd_op *op, grd_keyset keys, grd_tensor *self, const grd_value *args, uint64_t needs,
                           grd_value *ret_results)
{
    if ((needs != 0 || grd_needs_grad(self)) && !grd_check_inplace(self))
        return;
    if ((needs == 0 && !grd_needs_grad(self)) || !grd_dtype_carries(self->dtype)) {
        run_below(op, keys, self, args, ret_results);
        return;
    }
    const struct grd_derivative *d = op->derivative != NULL ? op->derivative : &constant;
    const struct call call = {d, args, &self, 1, needs, false};
    grd_tensor *copy = reads_self(&call) ? grd_clone(self) : NULL;
    if (grd_pending())
        return;
    struct grd_node *node = new_node(&call, copy);
    if (node == NULL)
        return;
    bool self_edge = d->nargs > 0 && d->args[0] == 0;
    struct grd_node *prepared = grd_rebase_prepare(self, grd_object_keep(node), self_edge);
    if (prepared != NULL) {
        run_below(op, keys, self, args, ret_results);
        if (!grd_pending()) {
            update_versions((struct op_node *)node, self);
            grd_rebase_commit(self, prepared);
        }
        grd_object_drop(prepared);
    }
    grd_object_drop(node);
}

static bool check_out(const grd_tensor *out, uint64_t needs)
{
    if (needs == 0 && !grd_needs_grad(out))
        return true;
    return grd_raise(GRD_ERROR_RUNTIME,
                     "functions with out=... arguments don't support automatic differentiation, but one of the arguments "
                     "requires grad.");
}

void grd_autograd_record(const grd_op *op, grd_keyset keys, grd_tensor *out, const grd_value *args, grd_value *ret_results)
{
    uint64_t needs;
    if (!find_needs(op, out, args, &needs))
        return;
    if (GRD_LIKELY(out == NULL))
        record_functional(op, keys, args, needs, ret_results);
    else if (op->nargs > 0 && args[0].kind == GRD_KIND_TENSOR && args[0].v.tensor == out)
        record_inplace(op, keys, out, args, needs, ret_results);
    else if (check_out(out, needs))
        run_below(op, keys, out, args, ret_results);
}
