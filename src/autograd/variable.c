/* The autograd data of tensors: leaves, their gradients, the grad_fn of other tensors, and grad modes.
 * Most tensors know nothing (autograd is NULL); a plain result knows its node; only leaves, second outputs and tensors with hooks or a
 * kept gradient have a grd_meta.
 * Invariant: a leaf that requires a gradient and was made so by grd_set_requires_grad has a grd_meta, so that threads that share it
 * only read t->autograd. */
#include "autograd/autocast.h"
#include "autograd/autograd.h"
#include "autograd/derivative.h"
#include "autograd/forward.h"
#include "autograd/gradient.h"
#include "autograd/hooks.h"
#include "autograd/inplace.h"
#include "autograd/spin.h"
#include "autograd/tangent.h"
#include "autograd/variable.h"
#include "base/text.h"
#include "core/device.h"
#include "core/given.h"
#include "core/new.h"
#include "core/print.h"
#include "core/races.h"
#include "core/shape.h"
#include "core/tensor.h"
#include "gen/uses/autograd/variable.h"

#include <string.h>

/* ---- Gradients ---------------------------------------------------------------------------------------------------------------- */
grd_tensor *grd_slot_get(struct grd_grad_slot *slot)
{
    grd_spin_lock(&slot->lock);
    grd_tensor *grad = slot->grad;
    if (grad != NULL)
        grd_object_keep(grad);
    grd_spin_unlock(&slot->lock);
    return grad;
}

static void set_slot(struct grd_grad_slot *slot, grd_tensor *grad)
{
    grd_spin_lock(&slot->lock);
    grd_tensor *old = slot->grad;
    slot->grad = grad;
    grd_spin_unlock(&slot->lock);
    grd_object_drop(old);
}

bool grd_slot_exchange(struct grd_grad_slot *slot, const grd_tensor *expected, grd_tensor *grad)
{
    grd_spin_lock(&slot->lock);
    grd_tensor *old = slot->grad;
    const bool same = old == expected;
    if (same)
        slot->grad = grad;
    grd_spin_unlock(&slot->lock);
    if (same)
        grd_object_drop(old);
    return same;
}

/* Of a tensor that keeps its gradient although it is no leaf, or NULL. */
static struct grd_retained *retained_of(const struct grd_meta *meta)
{
    return __atomic_load_n(&meta->retained, __ATOMIC_ACQUIRE);
}

static struct grd_grad_slot *slot_of(struct grd_meta *meta)
{
    struct grd_retained *retained = retained_of(meta);
    return retained != NULL ? &retained->slot : &meta->slot;
}

/* ---- Histories ---------------------------------------------------------------------------------------------------------------- */
/* Note [Replaced histories]
 * Recording reads t->autograd without a lock, and then takes a reference of the node it found. A node that another thread may be about to
 * look at in that way must not go. So while there are several threads, a tensor that gets another history gets a meta, where a lock guards the
 * grad_fn, and the meta keeps the node that t->autograd led to before. There is at most one such node for a tensor. */

/* Puts a node in the place of what t->autograd leads to, where nobody else can be looking at that. */
static bool replace_directly(grd_tensor *t, struct grd_node *node)
{
    struct grd_object *old = grd_autograd_of(t);
    if (old != NULL && (!grd_node_is(old) || !grd_thread_is_alone()))
        return false;
    node->view_version = grd_version_of(t);
    if (!__atomic_compare_exchange_n(&t->autograd, &old, &node->object, false, __ATOMIC_SEQ_CST, __ATOMIC_ACQUIRE))
        return false;
    if (old != NULL && !grd_thread_is_alone())
        grd_pool_push(old); /* a second thread began meanwhile */
    else
        grd_object_drop(old);
    return true;
}

/* Under the lock. Returns the old grad_fn, which goes if *ret_drops. */
static struct grd_node *exchange_grad_fn(struct grd_meta *meta, struct grd_node *node, uint32_t output, uint32_t version, bool *ret_drops)
{
    struct grd_node *old = meta->grad_fn;
    __atomic_store_n(&meta->grad_fn, node, __ATOMIC_RELAXED);
    meta->output = output;
    meta->view_version = version;
    *ret_drops = old != NULL;
    if (old != NULL && old == meta->direct) {
        meta->direct = NULL;
        *ret_drops = grd_thread_is_alone();
        meta->retired = *ret_drops ? NULL : old;
    }
    return old;
}

bool grd_replace_history(grd_tensor *t, struct grd_node *node, uint32_t output)
{
    if (output == 0 && replace_directly(t, node)) {
        grd_mark_requires_grad(t, true);
        return !grd_pending();
    }
    struct grd_meta *meta = grd_meta_ensure(t);
    struct grd_retained *retained = meta != NULL ? retained_of(meta) : NULL;
    if (meta == NULL || (retained != NULL && !grd_hooks_retain(node, output, retained))) {
        grd_node_drop(node);
        return false;
    }
    bool drops;
    grd_spin_lock(&meta->lock);
    struct grd_node *old = exchange_grad_fn(meta, node, output, grd_version_of(t), &drops);
    grd_spin_unlock(&meta->lock);
    grd_mark_requires_grad(t, true);
    if (old != NULL && retained != NULL)
        grd_hooks_unretain(old, retained);
    if (drops)
        grd_node_drop(old);
    return true;
}

/* ---- AccumulateGrad ----------------------------------------------------------------------------------------------------------- */
enum { USUAL_ROOM = 8 }; /* dimensions that a leaf may come to have without new memory for its sizes */

struct accumulator {
    struct grd_node node;
    grd_tensor *variable; /* owns this node */
    int64_t *sizes;       /* of the leaf */
    int64_t room;
};

/* True if the very memory may become the leaf's first gradient: nobody else holds it, and it has the strides of a new gradient of the leaf. */
static bool can_be_taken(const grd_tensor *grad, const grd_tensor *leaf)
{
    if (grd_is_recording() || !grd_is_exclusive(grad))
        return false;
    if (grd_has(leaf, GRD_FLAG_CONTIGUOUS) || !grd_shape_is_dense(grd_sizes(leaf), leaf->strides))
        return grd_has(grad, GRD_FLAG_CONTIGUOUS);
    return memcmp(grad->strides, leaf->strides, leaf->ndim * sizeof(int64_t)) == 0;
}

/* The gradient becomes the leaf's, by a copy laid out like the leaf, or without the base it is a view of when nobody else holds that. Owned. */
static grd_tensor *first_gradient(grd_tensor *leaf, grd_tensor *given)
{
    if (can_be_taken(given, leaf))
        return grd_object_keep(grd_new_detached(given));
    grd_tensor *copy = grd_new_like(leaf, GRD_DTYPE_NONE);
    return grd_object_keep(grd_pending() ? copy : grd_copy_(copy, given));
}

/* One attempt. False where another thread has replaced the gradient meanwhile. */
static bool try_to_accumulate(struct grd_grad_slot *slot, grd_tensor *old, grd_tensor *leaf, grd_tensor *grad)
{
    if (old != NULL && !grd_is_recording()) {
        grd_add_(old, grad);
        return true;
    }
    grd_tensor *sum = old == NULL ? first_gradient(leaf, grad) : grd_object_keep(grd_add(old, grad));
    if (!grd_pending() && grd_slot_exchange(slot, old, sum))
        return true;
    grd_object_drop(sum);
    return grd_pending();
}

static void accumulate(struct grd_meta *meta, grd_tensor *leaf, grd_tensor *grad)
{
    bool done = false;
    grd_spin_lock(&meta->accumulating);
    while (!done) {
        grd_tensor *old = grd_slot_get(&meta->slot);
        done = try_to_accumulate(&meta->slot, old, leaf, grad);
        grd_object_drop(old);
    }
    grd_spin_unlock(&meta->accumulating);
}

/* A leaf that has been frozen since takes no gradient. */
static __attribute__((noinline)) void accumulator_run_any(struct grd_node *node, const struct grd_run *run)
{
    grd_tensor *leaf = ((struct accumulator *)node)->variable, *grad = grd_needs_grad(leaf) ? *run->grads : NULL;
    struct grd_meta *meta = (struct grd_meta *)grd_autograd_of(leaf);
    if (grad != NULL && grad->base == NULL && can_be_taken(grad, leaf) && grd_slot_exchange(&meta->slot, NULL, grad))
        *run->grads = NULL;
    else if (grad != NULL)
        accumulate(meta, leaf, grad);
    if (node->hooks.first != NULL && !grd_pending())
        grd_hooks_run_accumulated(&node->hooks, leaf);
}

/* Does the usual, which is to take a contiguous gradient as the first, and leaves the rest. */
static void accumulator_run(struct grd_node *node, const struct grd_run *run)
{
    grd_tensor *leaf = ((struct accumulator *)node)->variable, *grad = *run->grads;
    struct grd_grad_slot *slot = &((struct grd_meta *)grd_autograd_of(leaf))->slot;
    const bool is_usual = grd_has(leaf, GRD_FLAG_CONTIGUOUS) && grd_needs_grad(leaf) && !grd_is_recording() && grd_is_exclusive_whole(grad);
    if (GRD_LIKELY(is_usual && grd_spin_try(&slot->lock))) {
        if (GRD_LIKELY(slot->grad == NULL)) {
            slot->grad = grad;
            *run->grads = NULL;
        }
        grd_spin_unlock(&slot->lock);
    }
    if (GRD_UNLIKELY(*run->grads != NULL || node->hooks.first != NULL))
        accumulator_run_any(node, run);
}

static const struct grd_node_class accumulator_class = {.run = accumulator_run};

static void free_accumulator(struct grd_node *node)
{
    struct accumulator *self = (struct accumulator *)node;
    if (node == NULL)
        return;
    grd_hooks_clear(&node->hooks);
    grd_free(self->sizes, (size_t)self->room * sizeof *self->sizes);
    grd_free(node, node->size);
}

/* Brings what the node says about its leaf up to date. */
static bool describe_leaf(struct accumulator *self)
{
    const grd_tensor *leaf = self->variable;
    if (leaf->ndim > self->room || self->sizes == NULL) {
        const int64_t room = leaf->ndim > USUAL_ROOM ? leaf->ndim : USUAL_ROOM;
        int64_t *sizes = grd_alloc((size_t)room * sizeof *sizes);
        if (sizes == NULL)
            return false;
        grd_free(self->sizes, (size_t)self->room * sizeof *sizes);
        self->sizes = sizes;
        self->room = room;
    }
    for (int i = 0; i < leaf->ndim; i++)
        self->sizes[i] = leaf->sizes[i];
    grd_node_describe_output(&self->node, 0, leaf, self->sizes);
    return true;
}

/* False after the leaf has outgrown the room: meta_reshaped sees to other changes. */
static inline bool is_described(const struct accumulator *self)
{
    return self->variable->ndim <= self->room;
}

/* While the leaf is changed nobody else uses it, and no pass reads the description: later a pass may. A leaf that outgrows the room is
 * described when it is recorded next. */
static void meta_reshaped(struct grd_object *object)
{
    struct accumulator *self = (struct accumulator *)__atomic_load_n(&((struct grd_meta *)object)->accumulator, __ATOMIC_ACQUIRE);
    if (self != NULL && is_described(self))
        describe_leaf(self);
}

static struct grd_node *new_accumulator(grd_tensor *leaf)
{
    struct grd_node *node = grd_node_new(&accumulator_class, "AccumulateGrad", sizeof(struct accumulator), 0, 1, 0);
    if (node == NULL)
        return NULL;
    struct accumulator *self = (struct accumulator *)node;
    node->sequence = UINT64_MAX;
    node->owner = &leaf->object;
    self->variable = leaf;
    self->sizes = NULL;
    self->room = 0;
    if (describe_leaf(self))
        return node;
    free_accumulator(node);
    return NULL;
}

/* The leaf's AccumulateGrad, made or brought up to date. NULL on failure. */
static __attribute__((noinline)) struct grd_node *renew_accumulator(grd_tensor *leaf)
{
    struct grd_meta *meta = grd_meta_ensure(leaf);
    if (meta == NULL)
        return NULL;
    grd_spin_lock(&meta->lock);
    struct grd_node *node = meta->accumulator;
    if (node == NULL)
        __atomic_store_n(&meta->accumulator, node = new_accumulator(leaf), __ATOMIC_RELEASE);
    else if (!is_described((struct accumulator *)node) && !describe_leaf((struct accumulator *)node))
        node = NULL;
    grd_spin_unlock(&meta->lock);
    return node;
}

grd_tensor *grd_node_variable(const grd_node *node)
{
    const bool has_one = grd_given_pointer(node, "grd_node_variable", "node") && node->class == &accumulator_class;
    return has_one ? ((const struct accumulator *)node)->variable : NULL;
}

/* ---- The meta object ------------------------------------------------------------------------------------------------------ */
static void meta_finish(struct grd_object *object)
{
    struct grd_meta *meta = (struct grd_meta *)object;
    free_accumulator(meta->accumulator);
    grd_object_drop(meta->grad_fn);
    grd_object_drop(meta->retired);
    grd_object_drop(meta->slot.grad);
    grd_object_drop(meta->retained);
    grd_tangent_clear(&meta->tangent);
    grd_free(meta, sizeof *meta);
}

static void meta_destroy(struct grd_object *object)
{
    grd_object_end(object, meta_finish);
}

static const struct grd_object_type meta_type = {.name = "meta", .destroy = meta_destroy, .finish = meta_finish, .reshaped = meta_reshaped};

static void retained_destroy(struct grd_object *object)
{
    struct grd_retained *retained = (struct grd_retained *)object;
    grd_object_drop(retained->slot.grad);
    grd_free(retained, sizeof *retained);
}

static const struct grd_object_type retained_type = {.name = "retained", .destroy = retained_destroy};

struct grd_meta *grd_meta_ensure(grd_tensor *t)
{
    struct grd_object *object = grd_autograd_of(t);
    if (object != NULL && !grd_node_is(object))
        return (struct grd_meta *)object;
    if (grd_is_batch(t) &&
        !grd_raise(GRD_ERROR_RUNTIME, "vmap: a batch tensor has no history of its own: that of its physical tensor counts"))
        return NULL;
    struct grd_meta *meta = grd_alloc_zeroed(sizeof *meta);
    if (meta == NULL)
        return NULL;
    meta->object.type = &meta_type;
    atomic_init(&meta->object.refs, 1);
    grd_spin_init(&meta->slot.lock);
    grd_spin_init(&meta->lock);
    grd_spin_init(&meta->accumulating);
    if (object != NULL) { /* the tensor's reference of the node moves to the meta */
        meta->grad_fn = meta->direct = (struct grd_node *)object;
        meta->view_version = meta->grad_fn->view_version;
    }
    if (!__atomic_compare_exchange_n(&t->autograd, &object, &meta->object, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        meta->grad_fn = NULL;
        grd_object_drop(meta);
        return grd_meta_ensure(t); /* another thread's meta, or around its node */
    }
    return meta;
}

/* ---- Edges -------------------------------------------------------------------------------------------------------------------------- */
struct grd_node *grd_history_of(const grd_tensor *t, uint32_t *ret_output)
{
    struct grd_object *object = grd_autograd_of(t);
    *ret_output = 0;
    if (object == NULL)
        return NULL;
    if (grd_node_is(object))
        return grd_object_keep(object);
    struct grd_meta *meta = (struct grd_meta *)object;
    if (__atomic_load_n(&meta->grad_fn, __ATOMIC_RELAXED) == NULL)
        return NULL;
    grd_spin_lock(&meta->lock);
    struct grd_node *node = meta->grad_fn;
    *ret_output = meta->output;
    if (node != NULL)
        grd_object_keep(node);
    grd_spin_unlock(&meta->lock);
    return node;
}

struct grd_node *grd_retired_history_of(const grd_tensor *t)
{
    struct grd_meta *meta = grd_meta_get(t);
    if (meta == NULL)
        return NULL;
    grd_spin_lock(&meta->lock);
    struct grd_node *node = meta->retired != NULL ? grd_node_keep(meta->retired) : NULL;
    grd_spin_unlock(&meta->lock);
    return node;
}

/* The history, brought up to date with what was written through the base or other views of it. False, with the error raised, on failure. */
static bool current_grad_fn(grd_tensor *t, struct grd_node **ret_node, uint32_t *ret_output)
{
    *ret_node = NULL;
    if (GRD_UNLIKELY(t->base != NULL) && !grd_view_refresh(t))
        return false;
    *ret_node = grd_history_of(t, ret_output);
    return true;
}

bool grd_edge_search(grd_tensor *t, struct grd_edge *ret_edge)
{
    struct grd_node *node;
    *ret_edge = (struct grd_edge){NULL, 0};
    if (GRD_UNLIKELY(t->base != NULL || grd_has_history(t))) {
        if (!current_grad_fn(t, &ret_edge->node, &ret_edge->output))
            return false;
        if (ret_edge->node != NULL)
            return true;
    }
    const struct grd_meta *meta = grd_meta_get(t);
    node = meta != NULL ? __atomic_load_n(&meta->accumulator, __ATOMIC_ACQUIRE) : NULL;
    if ((node == NULL || !is_described((struct accumulator *)node)) && (node = renew_accumulator(t)) == NULL)
        return false;
    ret_edge->node = grd_node_keep(node);
    return true;
}

grd_node *grd_grad_fn(grd_tensor *t)
{
    struct grd_node *node = NULL;
    uint32_t output;
    if (grd_pending() || !grd_given(t, "grd_grad_fn", "t") || !current_grad_fn(grd_physical(t), &node, &output) || node == NULL)
        return NULL;
    return grd_pool_push(node) ? node : NULL;
}

grd_node *grd_gradient_edge(grd_tensor *t, int *ret_output)
{
    struct grd_edge edge;
    if (grd_pending() || !grd_given(t, "grd_gradient_edge", "t") || !grd_edge_of(t, &edge) || edge.node == NULL)
        return NULL;
    if (ret_output != NULL)
        *ret_output = (int)edge.output;
    return grd_pool_push(edge.node->owner) ? edge.node : NULL;
}

/* ---- Leaves ---------------------------------------------------------------------------------------------------------------------------- */
bool grd_requires_grad(const grd_tensor *t)
{
    return grd_given(t, "grd_requires_grad", "t") && grd_needs_grad(grd_physical(t));
}

bool grd_is_leaf(const grd_tensor *t)
{
    if (!grd_given(t, "grd_is_leaf", "t"))
        return false;
    t = grd_physical(t);
    if (t->base != NULL && grd_needs_grad(t) && !grd_view_refresh((grd_tensor *)(uintptr_t)t))
        return false;
    return !grd_has_history(t);
}

grd_tensor *grd_set_requires_grad(grd_tensor *t, bool requires_grad)
{
    if (!grd_given(t, "grd_set_requires_grad", "t"))
        return grd_failed;
    if (grd_pending() || grd_is_failed(t))
        return t;
    if (grd_is_batch(t)) {
        grd_set_requires_grad(grd_physical(t), requires_grad);
        grd_mark_batch(t);
        return t;
    }
    const bool is_leaf = grd_is_leaf(t);
    if (!is_leaf && !requires_grad)
        grd_raise(GRD_ERROR_RUNTIME,
                  "you can only change requires_grad flags of leaf variables. If you want to use a computed variable in a "
                  "subgraph that doesn't require differentiation use var_no_grad = var.detach().");
    else if (is_leaf && requires_grad && !grd_dtype_carries(t->dtype))
        grd_raise(GRD_ERROR_RUNTIME, "only Tensors of floating point and complex dtype can require gradients");
    else if (is_leaf && (!requires_grad || grd_meta_ensure(t) != NULL))
        grd_mark_requires_grad(t, requires_grad);
    return t;
}

grd_tensor *grd_grad_of(const grd_tensor *t)
{
    struct grd_meta *meta = grd_given(t, "grd_grad_of", "t") ? grd_meta_get(t) : NULL;
    grd_tensor *grad = meta != NULL ? grd_slot_get(slot_of(meta)) : NULL;
    return grad == NULL || grd_pool_push(grad) ? grad : grd_failed;
}

static bool check_gradient(const grd_tensor *t, const grd_tensor *grad)
{
    char ours[256], theirs[256];
    if (grad == t)
        return grd_raise(GRD_ERROR_RUNTIME, "can't assign Variable as its own grad");
    if (!grd_dims_equal(grd_sizes(grad), grd_sizes(t)))
        return grd_raise(GRD_ERROR_RUNTIME,
                         "attempting to assign a gradient of size '%s' to a tensor of size '%s'. Please ensure that the gradient and the "
                         "tensor are the same size",
                         grd_format_int64s(theirs, sizeof theirs, grad->sizes, grad->ndim),
                         grd_format_int64s(ours, sizeof ours, t->sizes, t->ndim));
    if (grad->dtype != t->dtype)
        return grd_raise(GRD_ERROR_RUNTIME,
                         "attempting to assign a gradient with dtype '%s' to a tensor with dtype '%s'. Please ensure that the gradient and "
                         "the tensor are of the same dtype",
                         grd_dtype_name(grad->dtype), grd_dtype_name(t->dtype));
    if (grad->device != t->device || grad->device_index != t->device_index)
        return grd_raise(
            GRD_ERROR_RUNTIME,
            "attempting to assign a gradient located on device '%s' to a tensor located on device '%s'. Please ensure that the "
            "gradient and the tensor are on the same device",
            grd_device_text(grd_device_of(grad)).chars, grd_device_text(grd_device_of(t)).chars);
    return true;
}

void grd_set_grad(grd_tensor *t, grd_tensor *grad)
{
    if (grd_pending() || !grd_given(t, "grd_set_grad", "t") || !grd_given_or_null(grad, "grd_set_grad", "grad") ||
        (grad != NULL && !check_gradient(t, grad)))
        return;
    struct grd_meta *meta = grad == NULL ? grd_meta_get(t) : grd_meta_ensure(t);
    if (meta == NULL)
        return;
    set_slot(slot_of(meta), grad != NULL ? grd_object_keep(grad) : NULL);
}

/* Keeps what comes to output `output` of the node for the tensor. */
static void retain(grd_tensor *t, struct grd_node *node, uint32_t output)
{
    struct grd_meta *meta = grd_meta_ensure(t);
    if (meta == NULL || retained_of(meta) != NULL)
        return;
    struct grd_retained *retained = grd_alloc_zeroed(sizeof *retained), *none = NULL;
    if (retained == NULL)
        return;
    retained->object.type = &retained_type;
    atomic_init(&retained->object.refs, 1);
    grd_spin_init(&retained->slot.lock);
    if (grd_hooks_retain(node, output, retained)) {
        if (__atomic_compare_exchange_n(&meta->retained, &none, retained, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            return;
        grd_hooks_unretain(node, retained); /* another thread was first */
    }
    grd_object_drop(retained);
}

void grd_retain_grad(grd_tensor *t)
{
    if (grd_pending() || !grd_given(t, "grd_retain_grad", "t"))
        return;
    if (!grd_needs_grad(t)) {
        grd_raise(GRD_ERROR_RUNTIME, "can't retain_grad on Tensor that has requires_grad=False");
        return;
    }
    uint32_t output;
    struct grd_node *node;
    if (current_grad_fn(t, &node, &output) && node != NULL)
        retain(t, node, output);
    grd_node_drop(node);
}

bool grd_retains_grad(const grd_tensor *t)
{
    const struct grd_meta *meta = grd_given(t, "grd_retains_grad", "t") ? grd_meta_get(t) : NULL;
    return meta != NULL && retained_of(meta) != NULL;
}

static void detach(grd_tensor *t)
{
    if (t->base != NULL) {
        grd_raise(GRD_ERROR_RUNTIME, "Can't detach views in-place. Use detach() instead.");
        return;
    }
    struct grd_meta *meta = grd_meta_get(t);
    struct grd_node *node = meta != NULL ? meta->grad_fn : (struct grd_node *)t->autograd;
    if (meta == NULL) {
        t->autograd = NULL;
    } else {
        if (meta->retained != NULL) {
            grd_hooks_unretain(node, meta->retained);
            set_slot(&meta->slot, grd_slot_get(&meta->retained->slot));
            grd_object_drop(meta->retained);
            meta->retained = NULL;
        }
        meta->grad_fn = meta->direct = NULL;
        meta->output = 0;
    }
    grd_mark_requires_grad(t, false);
    grd_node_drop(node);
}

void grd_detach_(grd_tensor *t)
{
    if (grd_pending() || !grd_given(t, "grd_detach_", "t") || grd_is_failed(t))
        return;
    struct grd_race race = {.name = "grd_detach_", .args = &(grd_value){.kind = GRD_KIND_TENSOR, .v.tensor = t}, .nargs = 1, .alone = true};
    const bool watched = grd_debugging(GRD_DEBUG_RACES);
    if (watched && !grd_race_begin(&race))
        return;
    detach(t);
    if (watched)
        grd_race_end(&race);
}

/* ---- Modes -------------------------------------------------------------------------------------------------------------------------------- */
bool grd_grad_enabled(void)
{
    return grd_thread.grad_off == 0;
}

bool grd_set_grad_enabled(bool enabled)
{
    bool previous = grd_thread.grad_off == 0;
    grd_thread.grad_off = enabled ? 0 : GRD_AUTOGRAD_BIT;
    return previous;
}

/* ---- At load --------------------------------------------------------------------------------------------------------------------------------- */
static const char *print_grad_fn(const grd_tensor *t)
{
    const bool asks = !grd_pending();
    const struct grd_node *node = grd_grad_fn((grd_tensor *)(uintptr_t)t);
    if (asks && grd_pending()) { /* of a view whose base was overwritten; whoever prints did not ask for it */
        grd_error_clear();
        return "Invalid";
    }
    return node != NULL ? node->name : NULL;
}

void grd_autograd_init(void)
{
    grd_register_fallback(GRD_KEY_AUTOGRAD, grd_autograd_record, NULL);
    grd_register_fallback(GRD_KEY_FORWARD, grd_forward_record, NULL);
    grd_autocast_init();
    grd_tangent_init();
    grd_print_grad_fn = print_grad_fn;
    grd_print_tangent = grd_tangent_find;
    grd_hooks_init();
    grd_views_init(); /* its lock is held while hooks go */
}
