/* Creates the autograd nodes of recorded operator calls, and runs their gradient formulas in a backward pass.
 *
 * The node, its edges, the sizes of its outputs and the saved values are one block of memory. The operator's struct grd_derivative says which
 * values are saved. record.c decides for which calls a node is created.
 * Invariant: the tensor of a grd_saved is NULL if the value was not saved or has been dropped. */
#include "autograd/copy_slices.h"
#include "autograd/derivative.h"
#include "autograd/dual.h"
#include "autograd/edge.h"
#include "autograd/op_node.h"
#include "autograd/saved.h"
#include "autograd/variable.h"
#include "core/device.h"
#include "core/dtype.h"
#include "core/new.h"
#include "core/shortcuts.h"
#include "core/tensor.h"
#include "gen/uses/autograd/op_node.h"

#include <string.h>

struct op_node {
    struct grd_node node;
    const struct grd_derivative *derivative;
    const grd_op *op;
    const int *first_edge;
    bool released; /* the node owns none of its saved values: they were dropped, or it never owned any */
    struct grd_saved saved[];
};

const int grd_identity_edges[GRD_MAX_ARGS + 1] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};

/* ---- Running ------------------------------------------------------------------------------------------------------------------ */
/* True if output number `output` of the operator can have a gradient. */
static bool carries_gradient(const struct op_node *self, uint32_t output)
{
    return (self->derivative->results >> (self->op->returns_list ? 0 : output) & 1) &&
           grd_dtype_is_inexact(self->node.outputs[output].dtype);
}

/* Returns the gradients of the node's outputs: `grads`, with zeros in place of undefined gradients. NULL, with the error raised, on failure. */
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

/* Returns a bit set. Bit i is set if, according to run->needs, an edge of differentiable argument number i needs a gradient. */
static uint64_t argument_needs(const struct op_node *self, const struct grd_run *run)
{
    if (self->first_edge == grd_identity_edges)
        return run->needs;
    uint64_t needs = 0;
    for (int arg = 0; arg < self->derivative->nargs; arg++)
        for (int edge = self->first_edge[arg]; edge < self->first_edge[arg + 1]; edge++)
            needs |= (uint64_t)grd_run_needs(run, (uint32_t)edge) << arg;
    return needs;
}

/* True if the device has a fallback kernel, or a kernel for each operator of the list `accelerations`, which ends with NULL. */
static bool accelerates(const struct grd_device_entry *device, const grd_op *const *accelerations)
{
    bool served = true;
    for (; device->type.fallback == NULL && *accelerations != NULL && served; accelerations++)
        served = grd_device_kernel_of(device, *accelerations) != NULL;
    return served;
}

/* True if the fast backward function, which calls fused kernels, can be used for `t`: no dispatch key of `t` is above AUTOGRAD (except LIFETIMES),
 * and the device of `t` has these kernels. Also true if `t` is NULL. */
static bool allows_fast(const struct grd_derivative *d, const grd_tensor *t)
{
    return t == NULL || ((grd_keys_of(t) & ~(1u << GRD_KEY_LIFETIMES)) >> (GRD_KEY_AUTOGRAD + 1) == 0 &&
                         (!grd_is_extra(grd_device_of(t)) || accelerates(grd_device_at(t->device), d->accelerations)));
}

/* True if the derivative's fast backward function may run instead of its formulas: no graph of the backward pass is recorded, and allows_fast is
 * true for all gradients and for the tensors among the n saved values. */
static bool may_be_fast(const struct grd_run *run, const struct op_node *self, const grd_value *values, int n)
{
    const struct grd_derivative *d = self->derivative;
    bool fast = grd_accelerations && !grd_grad_enabled();
    for (uint32_t i = 0; i < self->node.noutputs && fast; i++)
        fast = allows_fast(d, run->grads[i]);
    for (int i = 0; i < n && fast; i++) {
        fast = values[i].kind != GRD_KIND_TENSOR || allows_fast(d, values[i].v.tensor);
        for (int64_t k = 0; values[i].kind == GRD_KIND_TENSORS && k < values[i].v.tensors.n && fast; k++)
            fast = allows_fast(d, values[i].v.tensors.data[k]);
    }
    return fast;
}

static void op_node_run(struct grd_node *node, const struct grd_run *run)
{
    struct op_node *self = (struct op_node *)node;
    const struct grd_derivative *d = self->derivative;
    grd_value values[GRD_MAX_SAVES];
    if (!grd_saved_begin(node, self->saved, d->nsaves, run->retain, values))
        return;
    const int kept = node->keeps ? d->nsaves : 0;
    for (int i = 0; i < kept; i++)
        if (!grd_saved_unpack(&self->saved[i], node, &values[i]))
            return;
    grd_tensor *const *grads = d->materialize ? materialized(self, run->grads) : run->grads;
    if (grads == NULL)
        return;
    grd_backward_function *const function = d->fast != NULL && may_be_fast(run, self, values, kept) ? d->fast : d->backward;
    function(&(struct grd_backward){.derivative = d,
                                    .grads = grads,
                                    .ngrads = (int)node->noutputs,
                                    .saved = values,
                                    .needs = argument_needs(self, run),
                                    .ret_grads = run->ret_grads,
                                    .first_edge = self->first_edge});
}

void grd_derivative_missing(const struct grd_backward *b)
{
    grd_raise(GRD_ERROR_RUNTIME, "derivative for aten::%s is not implemented", (const char *)b->derivative->context);
}

void grd_derivative_not_implemented(const struct grd_backward *b)
{
    grd_raise(GRD_ERROR_NOT_IMPLEMENTED, "the derivative for '%s' is not implemented.", (const char *)b->derivative->context);
}

static void op_node_release(struct grd_node *node)
{
    struct op_node *self = (struct op_node *)node;
    if (self->released)
        return;
    self->released = true;
    for (int i = 0; i < self->derivative->nsaves; i++)
        grd_saved_drop(&self->saved[i]);
}

static bool op_node_find_outdated(struct grd_node *node, const struct grd_storage *written, struct grd_outdated *outdated)
{
    struct op_node *self = (struct op_node *)node;
    return grd_saved_find_outdated(node, self->saved, self->derivative->nsaves, written, outdated);
}

static const struct grd_node_class op_class = {.run = op_node_run, .release = op_node_release, .find_outdated = op_node_find_outdated};

/* ---- Saving ------------------------------------------------------------------------------------------------------------------- */
/* Returns the argument or result to which `save` refers; NULL for an optional argument that is absent. */
static const grd_tensor *subject(const struct grd_op_call *call, const struct grd_save *save)
{
    return save->result ? call->results[save->index] : call->args[save->index].v.tensor;
}

/* Returns the list of tensors to which `save` refers: an argument, or the results of an operator that returns a list. */
static grd_tensors list_of(const struct grd_op_call *call, const struct grd_save *save)
{
    return save->result ? (grd_tensors){call->nresults, (grd_tensor **)(uintptr_t)call->results} : call->args[save->index].v.tensors;
}

static size_t round_up(size_t size)
{
    return (size + 7) & ~(size_t)7;
}

/* Returns how many bytes the versions of a saved list of n tensors take in the node's memory block. */
static size_t versions_size(int64_t n)
{
    return round_up((size_t)n * sizeof(uint32_t));
}

/* Returns how many bytes a saved string, a saved list of tensors or a saved list of sizes takes behind the outputs in the node's memory block.
 * save_room, which is inlined, calls this function for these rare cases. */
static __attribute__((noinline)) size_t other_room(const struct grd_op_call *call, const struct grd_save *save)
{
    switch (save->how) {
    case GRD_SAVE_TENSORS:
        return (size_t)list_of(call, save).n * sizeof(grd_tensor *) + versions_size(list_of(call, save).n);
    case GRD_SAVE_STRING: {
        const char *string = call->args[save->index].v.string;
        return string != NULL ? round_up(strlen(string) + 1) : 0;
    }
    default: /* the case GRD_SAVE_SIZES_ALONG */
        return (size_t)list_of(call, save).n * sizeof(int64_t);
    }
}

/* Returns how many bytes a saved value takes behind the outputs in the node's memory block, in addition to its struct grd_saved. */
static inline size_t save_room(const struct grd_op_call *call, const struct grd_save *save)
{
    if (!grd_save_takes_room(save->how))
        return 0;
    if (save->how <= GRD_SAVE_STRIDES)
        return subject(call, save) != NULL ? subject(call, save)->ndim * sizeof(int64_t) : 0;
    return save->how == GRD_SAVE_DIMS ? (size_t)call->args[save->index].v.dims.n * sizeof(int64_t) : other_room(call, save);
}

/* Reserves `size` bytes of the memory behind the outputs in a node's block: returns the address *room, and advances *room by `size`. */
static void *take_room(char **room, size_t size)
{
    void *taken = *room;
    *room += size;
    return taken;
}

/* Returns the size of `t` along `dim`, which may be negative; 0 if `t` has no such dimension. Returns -1 for a vector of size 0, which can be
 * concatenated with tensors of any shape. */
static int64_t size_along(const grd_tensor *t, int64_t dim)
{
    if (t->ndim == 1 && t->sizes[0] == 0)
        return -1;
    dim = dim < 0 ? dim + t->ndim : dim;
    return dim >= 0 && dim < t->ndim ? t->sizes[dim] : 0;
}

/* True if `t` is a leaf and an edge of the node leads to the AccumulateGrad of `t`. Such an edge keeps the leaf alive while the node lives. */
static inline bool is_owned_by_edge(const struct grd_node *node, const grd_tensor *t)
{
    for (uint32_t i = 0; i < node->nedges; i++)
        if (node->edges[i].node != NULL && node->edges[i].node->owner == &t->object)
            return true;
    return false;
}

static inline void set_unsaved(struct grd_saved *saved)
{
    saved->value.kind = GRD_KIND_NONE;
    saved->value.v.tensor = NULL;
}

/* Saves the argument `t` in `saved`. If the operator is about to overwrite `t`, saves call->self_copy, a copy with the old elements, instead. */
static inline void save_argument(struct op_node *self, struct grd_saved *saved, grd_tensor *t, const struct grd_op_call *call)
{
    if (GRD_UNLIKELY(call->self_copy != NULL) && t == call->results[0])
        t = call->self_copy;
    saved->value.kind = GRD_KIND_TENSOR;
    saved->value.v.tensor = t;
    saved->output = -1;
    saved->borrowed = false;
    if (GRD_UNLIKELY(t == NULL))
        return;
    saved->version = grd_version_of(t);
    saved->borrowed = is_owned_by_edge(&self->node, t);
    self->node.keeps = true;
    if (!saved->borrowed) {
        self->released = false;
        grd_mark_saved(t);
        grd_object_keep(t);
    }
}

/* Saves the list of integers that `save` describes: an argument, or the sizes or strides of a tensor. The copy of the list is stored at *room, in
 * the node's memory block, and *room is advanced to the end of the copy. */
static inline void save_dims(struct grd_saved *saved, const struct grd_op_call *call, const struct grd_save *save, char **room)
{
    grd_dims dims = call->args[save->index].v.dims;
    if (save->how != GRD_SAVE_DIMS) {
        const grd_tensor *t = subject(call, save);
        dims = t == NULL ? (grd_dims){0} : grd_dims_from(save->how == GRD_SAVE_SHAPE ? t->sizes : t->strides, t->ndim);
    }
    saved->value.kind = GRD_KIND_DIMS;
    saved->value.v.dims = dims.data != NULL ? grd_copy_dims(room, dims.data, dims.n) : dims;
}

/* Notes that the node owns a saved value, which must be dropped later. */
static void note_owned(struct op_node *self)
{
    self->node.keeps = true;
    self->released = false;
}

/* Saves a list of tensors, whose array is stored at *room. `results`: the tensors are results of the call. Results own the node, and the node
 * must not own its owners, so it saves aliases of the results without grad_fn. False, with the error raised, on failure. */
static bool save_list(struct op_node *self, struct grd_saved *saved, grd_tensors tensors, bool results, char **room)
{
    grd_tensor **list = take_room(room, (size_t)tensors.n * sizeof *list);
    note_owned(self);
    saved->versions = take_room(room, versions_size(tensors.n));
    saved->output = results ? 0 : -1;
    saved->value = (grd_value){.kind = GRD_KIND_TENSORS, .v.tensors = {0, list}};
    for (int64_t i = 0; i < tensors.n; i++) {
        struct grd_saved one;
        if (!grd_saved_set_tensor(&one, tensors.data[i], results ? (int32_t)i : -1))
            return false;
        list[i] = one.value.v.tensor;
        saved->versions[i] = one.version;
        saved->value.v.tensors.n = i + 1;
    }
    return true;
}

/* Saves one of the values that save_all does not handle itself: a result, a list, a string, a random number generator, or a property of a tensor
 * such as its dtype. Lists and strings are stored at *room, which is advanced. False, with the error raised, on failure. */
static __attribute__((noinline)) bool save_other(struct op_node *self, struct grd_saved *saved, const struct grd_op_call *call,
                                                 const struct grd_save *save, char **room)
{
    const grd_value *value = &call->args[save->index];
    switch (save->how) {
    /* `save` refers to a result here, because save_argument saves arguments. If the result can have a gradient, it owns the node, so an alias is
     * saved. Otherwise the node saves the result itself. */
    case GRD_SAVE_TENSOR:
        note_owned(self);
        return grd_saved_set_tensor(saved, call->results[save->index], call->derivative->results >> save->index & 1 ? save->index : -1);
    case GRD_SAVE_TENSORS:
        return save_list(self, saved, list_of(call, save), save->result, room);
    case GRD_SAVE_STRING:
        saved->value = *value;
        if (value->v.string != NULL) {
            size_t size = strlen(value->v.string) + 1;
            saved->value.v.string = memcpy(take_room(room, round_up(size)), value->v.string, size);
        }
        return true;
    case GRD_SAVE_GENERATOR:
        note_owned(self);
        saved->value = *value;
        if (value->v.generator != NULL)
            grd_object_keep(value->v.generator);
        return true;
    case GRD_SAVE_SIZES_ALONG: {
        int64_t *sizes = take_room(room, (size_t)value->v.tensors.n * sizeof *sizes);
        for (int64_t i = 0; i < value->v.tensors.n; i++)
            sizes[i] = size_along(value->v.tensors.data[i], call->args[save->extra].v.integer);
        saved->value = (grd_value){.kind = GRD_KIND_DIMS, .v.dims = {value->v.tensors.n, sizes}};
        return true;
    }
    default:
        saved->value = grd_fact_of((enum grd_save_how)save->how, subject(call, save));
        return true;
    }
}

/* ---- Making ------------------------------------------------------------------------------------------------------------------- */
/* Returns the size in bytes of the array op_node.first_edge. A node with list arguments stores this array in its own memory block, behind its
 * outputs. */
static size_t list_room(const struct grd_derivative *d)
{
    return round_up((d->nargs + 1u) * sizeof(int));
}

/* Returns the number of edges of a node: one for each differentiable tensor argument, and one for each tensor of a differentiable list argument. */
static uint32_t count_edges(const struct grd_derivative *d, const grd_value *args)
{
    uint32_t edges = d->nargs;
    for (int i = 0; i < d->nargs; i++)
        if (args[d->args[i]].kind == GRD_KIND_TENSORS)
            edges += (uint32_t)args[d->args[i]].v.tensors.n - 1;
    return edges;
}

/* Sets the edges of the node of a call with list arguments. Sets first_edge[i] to the index of the first edge that belongs to differentiable
 * argument i. False, with the error raised, on failure. Each edge that was not found then has the node NULL. */
static bool set_list_edges(struct op_node *self, const struct grd_op_call *call, int *first_edge)
{
    struct grd_edge *edges = self->node.edges;
    int edge = 0;
    bool ok = true;
    for (int i = 0; i < call->derivative->nargs; i++) {
        const grd_value *value = &call->args[call->derivative->args[i]];
        bool is_list = value->kind == GRD_KIND_TENSORS;
        grd_tensor *const *tensors = is_list ? value->v.tensors.data : &value->v.tensor;
        int64_t n = is_list ? value->v.tensors.n : 1;
        first_edge[i] = edge;
        for (int64_t k = 0; k < n; k++, edge++) {
            edges[edge] = (struct grd_edge){NULL, 0};
            ok = ok && (tensors[k] == NULL || grd_edge_of(tensors[k], &edges[edge]));
        }
    }
    first_edge[call->derivative->nargs] = edge;
    self->first_edge = first_edge;
    return ok;
}

/* Sets the edges of the node of a call whose differentiable arguments are single tensors. Bit i of `needs`: differentiable argument i needs a
 * gradient. False, with the error raised, on failure. Each edge that was not found then has the node NULL. */
GRD_INLINE bool set_edges(struct grd_edge *edges, const struct grd_derivative *d, const grd_value *args, uint64_t needs)
{
    bool ok = true;
    for (int i = 0; i < d->nargs; needs >>= 1, i++) {
        if (needs & 1 && ok)
            ok = grd_edge_find(args[d->args[i]].v.tensor, &edges[i]);
        else
            edges[i] = (struct grd_edge){NULL, 0};
    }
    return ok;
}

/* Saves the values that the formulas of the needed gradients read. Lists and strings are copied to `room`. `ok`: the edges of the node were set.
 * False if `ok` is false or on failure. Even then each value is either saved or marked as not saved, so that the caller can drop the node. */
GRD_INLINE bool save_all(struct op_node *self, const struct grd_op_call *call, const struct grd_derivative *d, const grd_value *args,
                         uint64_t needs, char *room, bool ok)
{
    for (int i = 0; i < d->nsaves; i++) {
        const struct grd_save *save = &d->saves[i];
        struct grd_saved *saved = &self->saved[i];
        if ((save->used_by & needs) == 0) {
            set_unsaved(saved);
        } else if (save->how == GRD_SAVE_TENSOR && !save->result) {
            save_argument(self, saved, args[save->index].v.tensor, call);
        } else if (save->how == GRD_SAVE_VALUE) {
            saved->value = args[save->index];
        } else if (save->how >= GRD_SAVE_SHAPE && save->how <= GRD_SAVE_DIMS) {
            save_dims(saved, call, save, &room);
        } else {
            set_unsaved(saved);
            ok = ok && save_other(self, saved, call, save, &room);
        }
    }
    return ok;
}

/* True if the optional argument is given. A number wrapped as a tensor counts as not given. */
static bool is_given(const grd_value *value)
{
    switch (value->kind) {
    case GRD_KIND_TENSOR:
        return value->v.tensor != NULL && !grd_has(value->v.tensor, GRD_FLAG_NUMBER);
    case GRD_KIND_DIMS:
        return value->v.dims.data != NULL;
    case GRD_KIND_SCALAR:
        return value->v.scalar.kind != GRD_SCALAR_NONE;
    case GRD_KIND_STRING:
        return value->v.string != NULL;
    default:
        return value->kind != GRD_KIND_NONE;
    }
}

/* Returns the name of the node for a call. This is d->node_name, except if d->given_name is set and the optional argument number d->given is
 * given. In this case the name is d->given_name. */
static inline const char *name_of(const struct grd_derivative *d, const grd_value *args)
{
    return GRD_UNLIKELY(d->given_name != NULL) && is_given(&args[d->given]) ? d->given_name : d->node_name;
}

/* Returns the node of the call, owned by the caller. NULL, with the error raised, on failure. `lists`: a differentiable argument is a list.
 * `sized`: a saved value needs memory of its own in the node's block, behind the outputs. Inlined, so that the compiler removes the cases that
 * cannot occur for constant `lists` and `sized`. */
GRD_INLINE struct grd_node *make(const struct grd_op_call *call, int64_t nresults, bool lists, bool sized)
{
    const struct grd_derivative *const d = call->derivative;
    const grd_value *const args = call->args;
    const uint64_t needs = call->needs;
    size_t extra = lists ? list_room(d) : 0;
    for (int64_t i = 0; i < nresults; i++)
        extra += call->results[i]->ndim * sizeof(int64_t);
    for (int i = 0; sized && i < d->nsaves; i++)
        if ((d->saves[i].used_by & needs) != 0)
            extra += save_room(call, &d->saves[i]);
    struct op_node *self = (struct op_node *)grd_node_new(&op_class, name_of(d, args), sizeof *self + d->nsaves * sizeof *self->saved,
                                                          lists ? count_edges(d, args) : d->nargs, (uint32_t)nresults, extra);
    if (GRD_UNLIKELY(self == NULL))
        return NULL;
    char *room = grd_node_room(&self->node);
    self->derivative = d;
    self->op = call->op;
    self->first_edge = grd_identity_edges;
    self->released = true;
    bool ok = lists ? set_list_edges(self, call, take_room(&room, list_room(d))) : set_edges(self->node.edges, d, args, needs);
    for (int64_t i = 0; i < nresults; i++) {
        const grd_tensor *t = call->results[i];
        grd_node_describe_output(&self->node, (uint32_t)i, t, grd_copy_dims(&room, t->sizes, t->ndim).data);
    }
    if (GRD_LIKELY(save_all(self, call, d, args, needs, room, ok)))
        return &self->node;
    grd_node_drop(&self->node);
    return NULL;
}

static __attribute__((noinline)) struct grd_node *make_sized(const struct grd_op_call *call)
{
    return make(call, 1, false, true);
}

static __attribute__((noinline)) struct grd_node *make_any(const struct grd_op_call *call)
{
    return make(call, call->nresults, call->derivative->lists, call->derivative->sized);
}

struct grd_node *grd_op_node_new(const struct grd_op_call *call)
{
    if (GRD_UNLIKELY(call->nresults != 1 || call->derivative->lists))
        return make_any(call);
    return call->derivative->sized ? make_sized(call) : make(call, 1, false, false);
}

void grd_op_node_written(struct grd_node *node, const grd_tensor *t)
{
    struct op_node *self = (struct op_node *)node;
    for (int i = 0; i < self->derivative->nsaves; i++)
        if (self->saved[i].value.kind == GRD_KIND_TENSOR && self->saved[i].output >= 0)
            self->saved[i].version = grd_version_of(t);
}

/* `t` is output number `output` of the node. If `saved` holds the alias of `t` (same memory, no grad_fn), gives this alias the tangent of `t`.
 * False, with the error raised, on failure. */
static bool share_with(const struct grd_saved *saved, const grd_tensor *t, uint32_t output)
{
    if (saved->value.kind == GRD_KIND_TENSORS && saved->output >= 0)
        return grd_tangent_share(saved->value.v.tensors.data[output], t);
    return saved->value.kind != GRD_KIND_TENSOR || saved->output != (int)output || grd_tangent_share(saved->value.v.tensor, t);
}

bool grd_tangent_share_saved(const grd_tensor *t, bool written)
{
    uint32_t output;
    struct grd_node *history = grd_history_of(written && t->base != NULL ? t->base : t, &output);
    if (history == NULL)
        return true;
    struct op_node *self = (struct op_node *)grd_node_inside(history);
    bool ok = true;
    for (int i = 0; self->node.class == &op_class && i < self->derivative->nsaves && ok; i++)
        ok = share_with(&self->saved[i], t, output);
    grd_node_drop(history);
    return ok;
}
