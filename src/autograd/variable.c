/* Manages the autograd data of tensors: the grad_fn, the struct grd_autograd_meta, and the AccumulateGrad of leaves.
 * Most tensors have no such data (t->autograd is NULL). The t->autograd of most recorded results is the grad_fn. Only leaves that require a gradient,
 * results that are not output 0, and tensors with a retained gradient or a tangent have a grd_autograd_meta.
 * Invariant: a leaf that grd_set_requires_grad marked has a grd_autograd_meta, so that threads that share the leaf only read t->autograd. */
#include "autograd/gradient.h"
#include "autograd/hook_list.h"
#include "autograd/hooks.h"
#include "autograd/slot.h"
#include "autograd/spin.h"
#include "autograd/tangent.h"
#include "autograd/variable.h"
#include "base/memory.h"
#include "core/new.h"
#include "core/shape.h"
#include "core/tensor.h"
#include "gen/uses/autograd/variable.h"

#include <string.h>

/* ---- Histories ---------------------------------------------------------------------------------------------------------------- */
/* Note [Replaced histories]
 * Recording reads t->autograd without a lock and then takes a reference to the node it found. If another thread replaced the grad_fn and freed
 * this node in between, the reference would be to freed memory. Therefore, while there are several threads, a tensor whose grad_fn is replaced
 * gets a grd_autograd_meta. Its lock protects the new grad_fn, and its member `retired` owns the node to which t->autograd pointed before.
 * A tensor retires at most one node, because t->autograd points to the grd_autograd_meta from then on. */

/* Sets t->autograd to `node`, of which `t` becomes output 0, and returns true. Returns false and changes nothing if t->autograd is a
 * grd_autograd_meta, or a node that another thread may be reading. */
static bool replace_directly(grd_tensor *t, struct grd_node *node)
{
    struct grd_object *old = grd_autograd_of(t);
    if (old != NULL && (!grd_node_is(old) || !grd_thread_is_alone()))
        return false;
    node->view_version = grd_version_of(t);
    if (!__atomic_compare_exchange_n(&t->autograd, &old, &node->object, false, __ATOMIC_SEQ_CST, __ATOMIC_ACQUIRE))
        return false;
    if (old != NULL && !grd_thread_is_alone())
        /* Another thread has started meanwhile and may be reading `old`, so it is freed later, when the innermost grd_scope closes. */
        grd_pool_push(old);
    else
        grd_object_drop(old);
    return true;
}

/* Stores a new grad_fn and returns the old one. The caller holds meta->lock. Sets *ret_drops to true if the caller has to drop the old grad_fn. If
 * another thread may be reading the old grad_fn, moves the reference to meta->retired and sets *ret_drops to false. */
static struct grd_node *exchange_grad_fn(struct grd_autograd_meta *meta, struct grd_node *node, uint32_t output, uint32_t version,
                                         bool *ret_drops)
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
    struct grd_autograd_meta *meta = grd_autograd_meta_ensure(t);
    struct grd_retained *retained = meta != NULL ? grd_retained_of(meta) : NULL;
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

struct grd_node *grd_history_of(const grd_tensor *t, uint32_t *ret_output)
{
    struct grd_object *object = grd_autograd_of(t);
    *ret_output = 0;
    if (object == NULL)
        return NULL;
    if (grd_node_is(object))
        return grd_object_keep(object);
    struct grd_autograd_meta *meta = (struct grd_autograd_meta *)object;
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
    struct grd_autograd_meta *meta = grd_autograd_meta_get(t);
    if (meta == NULL)
        return NULL;
    grd_spin_lock(&meta->lock);
    struct grd_node *node = meta->retired != NULL ? grd_node_keep(meta->retired) : NULL;
    grd_spin_unlock(&meta->lock);
    return node;
}

/* ---- AccumulateGrad ----------------------------------------------------------------------------------------------------------- */
/* Least number of dimensions for which accumulator.sizes gets memory, so that a leaf may change its shape without an allocation. */
enum { USUAL_ROOM = 8 };

/* The AccumulateGrad of a leaf: the node that adds gradients to the leaf's .grad. */
struct accumulator {
    struct grd_node node;
    grd_tensor *variable; /* the leaf, which owns this AccumulateGrad */
    int64_t *sizes;       /* a copy of the leaf's sizes; owned */
    int64_t room;         /* number of elements for which `sizes` has memory */
};

/* True if `grad` can become the leaf's .grad without a copy. Nobody else may see the memory of `grad`, and `grad` must have the strides that a
 * new .grad of the leaf would have. */
static bool can_be_taken(const grd_tensor *grad, const grd_tensor *leaf)
{
    if (grd_is_recording() || !grd_is_exclusive(grad))
        return false;
    if (grd_has(leaf, GRD_FLAG_CONTIGUOUS) || !grd_shape_is_dense(grd_sizes(leaf), leaf->strides))
        return grd_has(grad, GRD_FLAG_CONTIGUOUS);
    return memcmp(grad->strides, leaf->strides, leaf->ndim * sizeof(int64_t)) == 0;
}

/* Returns a new tensor with the elements of `given`, to become the leaf's .grad. The new tensor shares the memory of `given` if can_be_taken is true.
 * Otherwise the new tensor is a copy with the strides of the leaf. The caller owns the new tensor. May leave an error pending. */
static grd_tensor *first_gradient(grd_tensor *leaf, grd_tensor *given)
{
    if (can_be_taken(given, leaf))
        return grd_object_keep(grd_new_detached(given));
    grd_tensor *copy = grd_new_like(leaf, GRD_DTYPE_NONE);
    return grd_object_keep(grd_pending() ? copy : grd_copy_(copy, given));
}

/* Adds `grad` to the leaf's .grad. `old` is the .grad that the caller has read from the slot. If `old` is NULL, stores `grad` as the .grad. False,
 * with the slot unchanged, if another thread has replaced the .grad meanwhile; the caller must try again. True also if an error was raised. */
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

/* Adds `grad` to the .grad of the leaf. Tries again whenever another thread has replaced .grad. */
static void accumulate(struct grd_autograd_meta *meta, grd_tensor *leaf, grd_tensor *grad)
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

/* The general case of accumulator_run: adds any gradient to the .grad of the leaf, unless the leaf no longer requires one. Then runs the hooks
 * that are called after accumulation. */
static __attribute__((noinline)) void accumulator_run_any(struct grd_node *node, const struct grd_run *run)
{
    grd_tensor *leaf = ((struct accumulator *)node)->variable, *grad = grd_needs_grad(leaf) ? *run->grads : NULL;
    struct grd_autograd_meta *meta = (struct grd_autograd_meta *)grd_autograd_of(leaf);
    if (grad != NULL && grad->base == NULL && can_be_taken(grad, leaf) && grd_slot_exchange(&meta->slot, NULL, grad))
        *run->grads = NULL;
    else if (grad != NULL)
        accumulate(meta, leaf, grad);
    if (node->hooks.first != NULL && !grd_pending())
        grd_hooks_run_accumulated(&node->hooks, leaf);
}

/* The run function of AccumulateGrad. Handles only the most frequent case: the leaf has no .grad, and the gradient is contiguous and has no other
 * owner. Leaves all other cases to accumulator_run_any. */
static void accumulator_run(struct grd_node *node, const struct grd_run *run)
{
    grd_tensor *leaf = ((struct accumulator *)node)->variable, *grad = *run->grads;
    struct grd_grad_slot *slot = &((struct grd_autograd_meta *)grd_autograd_of(leaf))->slot;
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

/* Sets the description of the node's output to the shape, dtype and device of the leaf. False, with MemoryError, on failure. */
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

/* Called after the leaf's shape has changed in place. No other thread and no backward pass uses the leaf during the call. Updates the sizes that
 * the leaf's AccumulateGrad stores. If the array `sizes` is too small, does nothing; grd_accumulator_of updates the sizes at the next use. */
static void meta_reshaped(struct grd_object *object)
{
    struct accumulator *self = (struct accumulator *)__atomic_load_n(&((struct grd_autograd_meta *)object)->accumulator, __ATOMIC_ACQUIRE);
    if (self != NULL && self->variable->ndim <= self->room)
        describe_leaf(self);
}

/* Returns a new AccumulateGrad for the leaf. NULL, with MemoryError, on failure. */
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

struct grd_node *grd_accumulator_renew(grd_tensor *leaf)
{
    struct grd_autograd_meta *meta = grd_autograd_meta_ensure(leaf);
    if (meta == NULL)
        return NULL;
    grd_spin_lock(&meta->lock);
    struct grd_node *node = meta->accumulator;
    if (node == NULL)
        __atomic_store_n(&meta->accumulator, node = new_accumulator(leaf), __ATOMIC_RELEASE);
    else if (node->outputs[0].ndim != leaf->ndim && !describe_leaf((struct accumulator *)node))
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
    struct grd_autograd_meta *meta = (struct grd_autograd_meta *)object;
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

struct grd_autograd_meta *grd_autograd_meta_ensure(grd_tensor *t)
{
    struct grd_object *object = grd_autograd_of(t);
    if (object != NULL && !grd_node_is(object))
        return (struct grd_autograd_meta *)object;
    if (grd_is_batch(t) && !grd_raise(GRD_ERROR_RUNTIME, "vmap: a batch tensor has no autograd history; its physical tensor has it"))
        return NULL;
    struct grd_autograd_meta *meta = grd_alloc_zeroed(sizeof *meta);
    if (meta == NULL)
        return NULL;
    meta->object.type = &meta_type;
    atomic_init(&meta->object.refs, 1);
    grd_spin_init(&meta->slot.lock);
    grd_spin_init(&meta->lock);
    grd_spin_init(&meta->accumulating);
    if (object != NULL) { /* t->autograd is the grad_fn; the reference to it moves from the tensor to the meta */
        meta->grad_fn = meta->direct = (struct grd_node *)object;
        meta->view_version = meta->grad_fn->view_version;
    }
    if (!__atomic_compare_exchange_n(&t->autograd, &object, &meta->object, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        meta->grad_fn = NULL;
        grd_object_drop(meta);
        return grd_autograd_meta_ensure(t); /* another thread has stored a grd_autograd_meta or a node meanwhile */
    }
    return meta;
}
