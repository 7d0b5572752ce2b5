/* Writing in place: what is refused, how the history of a written tensor is rebased, and how views learn that their base was written.
 *
 * Note [Views and in-place]
 * A view and its base share data but have a grad_fn each. When an operator writes through a view, the new value
 * of the base is the old one with a part replaced: that is a CopySlices node, which wraps the operator's own node and becomes the base's grad_fn.
 * Every view of the base, the written one included, is then out of date, which it notices by the version of the storage the next time it
 * is asked for its grad_fn: it becomes an as_strided of the base.
 *
 * Note [Saved and overwritten]
 * After x.add_(f(x)) the history of x holds the node of f, which may have saved x, or a view of it: they would own each other. What is overwritten is
 * of no more use to the formula that saved it. So before a tensor gets a new history, that is searched: tensors saved by its nodes that lie in
 * the same memory, or have been written since, are replaced by aliases without history, which are enough to say what was overwritten. The aliases are
 * made before the operator writes and put in place after.
 * Searched, too, are the histories that saved tensors own now: another thread may have replaced them since they were saved. One that replaces a
 * history in between makes the search be done again: of two threads that write into what the other saved, the later finds what the earlier left. Not
 * searched is the history of a tensor that nobody owns but the caller, or whose storage was never saved. */
#include "autograd/custom.h"
#include "autograd/gradient.h"
#include "autograd/inplace.h"
#include "autograd/op_node.h"
#include "autograd/pass.h"
#include "autograd/saved.h"
#include "autograd/spin.h"
#include "autograd/variable.h"
#include "base/fork.h"
#include "core/new.h"
#include "core/shape.h"
#include "core/tensor.h"
#include "gen/uses/autograd/inplace.h"

#include <pthread.h>
#include <string.h>

/* ---- What is refused ------------------------------------------------------------------------------------------------------ */
/* Returns the length of a node's name without "Backward0", i.e. of the name of the function. */
static int length_of_function(const char *node_name)
{
    static const char suffix[] = "Backward";
    size_t n = strlen(node_name);
    while (n > 0 && node_name[n - 1] >= '0' && node_name[n - 1] <= '9')
        n--;
    const size_t length = sizeof suffix - 1;
    return n >= length && memcmp(node_name + n - length, suffix, length) == 0 ? (int)(n - length) : (int)strlen(node_name);
}

/* Raises the error for a view that was made with grad mode off, by a custom function, or as one of several: `how` it is a view, and what follows. */
static bool raise_special_view(const struct grd_node *node, uint32_t output, const char *how, bool indirect, const char *then)
{
    const char *what = indirect ? "its base or another view of its base has been" : "is being";
    if (node == NULL)
        return grd_raise(GRD_ERROR_RUNTIME, "A view was created in no_grad mode and %s modified inplace with grad mode enabled. %s", what,
                         then);
    return grd_raise(GRD_ERROR_RUNTIME, "Output %u of %.*s is a view%s and %s modified inplace%s. %s", output,
                     length_of_function(node->name), node->name, how, what, how[0] == '\0' ? "" : " with grad mode enabled", then);
}

/* Refuses a view whose history may not be rewritten. `indirect`: the write went through the base or another view. */
static bool refuse_special_view(const grd_tensor *view, bool indirect)
{
    const bool multi = grd_has(view, GRD_FLAG_MULTI_VIEW), no_grad = grd_has(view, GRD_FLAG_NO_GRAD_VIEW);
    if (!multi && !no_grad)
        return true;
    uint32_t output;
    struct grd_node *node = grd_history_of(view, &output);
    if (multi)
        raise_special_view(
            node, output, "", indirect,
            "This view is the output of a function that returns multiple views. Such functions do not allow the output views to be "
            "modified inplace. You should replace the inplace operation by an out-of-place one.");
    else if (node != NULL && grd_is_custom_node(node))
        raise_special_view(
            node, output, "", indirect,
            "This view was created inside a custom Function (or because an input was returned as-is) and the autograd logic to handle "
            "view+inplace would override the custom backward associated with the custom Function, leading to incorrect gradients. This "
            "behavior is forbidden. You can fix this by cloning the output of the custom Function.");
    else
        raise_special_view(
            node, output, " of a view which was created in no_grad mode", indirect,
            "Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your code by moving both the view and "
            "the inplace either both inside the no_grad block (if you don't want the inplace to be tracked) or both outside (if you want "
            "the inplace to be tracked).");
    grd_node_drop(node);
    return false;
}

/* Elements of one dtype may be pairs of elements of the other: real() and its like are such views. Those of a base that is conjugated when it is read
 * are refused: its real parts are those of the memory, its imaginary parts are not. */
static bool refuse_other_dtype(const grd_tensor *view)
{
    const grd_dtype own = (grd_dtype)view->dtype, base = (grd_dtype)view->base->dtype;
    const bool parts = own == grd_dtype_to_real(base) || base == grd_dtype_to_real(own);
    return own == base || (parts && !grd_is_conjugated(view->base)) ||
           grd_raise(GRD_ERROR_RUNTIME, "a %s view of a %s%s tensor that requires grad is being used in an in-place operation.",
                     grd_dtype_name(own), grd_is_conjugated(view->base) ? "conjugated " : "", grd_dtype_name(base));
}

bool grd_check_inplace(grd_tensor *t)
{
    if (t->base != NULL) {
        if (!refuse_other_dtype(t) || !refuse_special_view(t, false))
            return false;
        if ((grd_needs_grad(t) || grd_needs_grad(t->base)) && !grd_has_history(t->base))
            return grd_raise(GRD_ERROR_RUNTIME, "a view of a leaf Variable that requires grad is being used in an in-place operation.");
    }
    if (!grd_needs_grad(t))
        return true;
    if (t->base != NULL && !grd_view_refresh(t))
        return false;
    if (!grd_has_history(t))
        return grd_raise(GRD_ERROR_RUNTIME, "a leaf Variable that requires grad is being used in an in-place operation.");
    return true;
}

/* ---- The way from a base to a view ------------------------------------------------------------------------------------------------ */
/* Geometry of a view beside its base's. Where one of them is complex and the other real, `shift` counts real elements. */
struct view_place {
    grd_dtype dtype;
    grd_dims sizes, strides;
    int64_t shift; /* from the first element of the base */
    bool turned;   /* one of the two is conjugated, or negated, when it is read */
};

static struct view_place place_of(const grd_tensor *view, const grd_tensor *base)
{
    const bool mixed = view->dtype != base->dtype;
    const int64_t of_view = mixed && grd_dtype_is_complex((grd_dtype)view->dtype) ? 2 * view->offset : view->offset;
    const int64_t of_base = mixed && grd_dtype_is_complex((grd_dtype)base->dtype) ? 2 * base->offset : base->offset;
    const bool turned = grd_is_conjugated(view) != grd_is_conjugated(base);
    return (struct view_place){(grd_dtype)view->dtype, grd_sizes(view), grd_strides(view), of_view - of_base, turned};
}

/* The view at that place of a tensor with the base's geometry, read as that is. */
static grd_tensor *unturned_at(grd_tensor *whole, const struct view_place *place)
{
    if (grd_pending() || place->dtype == (grd_dtype)whole->dtype)
        return grd_as_strided(whole, place->sizes, place->strides, .storage_offset = grd_int(whole->offset + place->shift));
    if (!grd_dtype_is_complex(place->dtype)) {
        grd_tensor *parts = grd_view_as_real(whole);
        return grd_as_strided(parts, place->sizes, place->strides, .storage_offset = grd_int(parts->offset + place->shift));
    }
    int64_t sizes[GRD_MAX_DIMS + 1], strides[GRD_MAX_DIMS + 1];
    const int64_t n = place->sizes.n;
    for (int64_t i = 0; i < n; i++) {
        sizes[i] = place->sizes.data[i];
        strides[i] = grd_wrapping_product(place->strides.data[i], 2);
    }
    sizes[n] = 2;
    strides[n] = 1;
    return grd_view_as_complex(grd_as_strided(whole, grd_dims_from(sizes, n + 1), grd_dims_from(strides, n + 1),
                                              .storage_offset = grd_int(whole->offset + place->shift)));
}

/* The view at that place of a tensor with the base's geometry, made by operators: its gradient is the place's part of the whole's. */
static grd_tensor *view_at(grd_tensor *whole, const struct view_place *place)
{
    grd_tensor *view = unturned_at(whole, place);
    if (!place->turned)
        return view;
    return grd_dtype_is_complex(place->dtype) ? grd_hidden_conj(view) : grd_hidden_neg_view(view);
}

grd_tensor *grd_view_of_whole(grd_tensor *whole, const grd_tensor *view)
{
    const struct view_place place = place_of(view, view->base);
    return view_at(whole, &place);
}

/* ---- CopySlices --------------------------------------------------------------------------------------------------------------- */
struct copy_slices {
    struct grd_node node;
    struct grd_node *inner; /* the node of the operator that wrote the view; owned */
    bool self_edge;         /* edge 0 of `inner` was the edge of the view */
    grd_dims base_strides;
    int64_t base_offset;
    struct view_place place; /* of the view */
};

/* Runs the operator's node on the part of the gradient that belongs to the view. */
static bool run_inner(struct copy_slices *self, const struct grd_run *run, grd_tensor *part, grd_tensor **ret_grads)
{
    grd_tensor *part_grad = grd_clone(part);
    uint64_t shared = run->needs & (uint64_t)1 << 63;
    struct grd_run inner = {&part_grad, ret_grads, self->self_edge ? run->needs : run->needs >> 1 | shared, run->retain};
    if (!grd_pending())
        self->inner->class->run(self->inner, &inner);
    return !grd_pending();
}

static void copy_slices_run(struct grd_node *node, const struct grd_run *run)
{
    struct copy_slices *self = (struct copy_slices *)node;
    const struct grd_output *base = &node->outputs[0];
    grd_tensor *whole = grd_new_strided(grd_dims_from(base->sizes, base->ndim), self->base_strides, (grd_dtype)base->dtype,
                                        (grd_device){base->device, base->device_index});
    grd_tensor **grads = grd_pool_alloc((self->inner->nedges + 1) * sizeof *grads);
    if (grd_pending())
        return;
    memset(grads, 0, (self->inner->nedges + 1) * sizeof *grads);
    grd_copy_(whole, run->grads[0]);
    grd_tensor *part = view_at(whole, &self->place);
    if (!run_inner(self, run, part, grads))
        return;
    uint32_t first = self->self_edge ? 1 : 0;
    for (uint32_t i = first; i < self->inner->nedges; i++)
        run->ret_grads[i - first + 1] = grads[i];
    if (!grd_run_needs(run, 0))
        return;
    if (self->self_edge && grads[0] != NULL)
        grd_copy_(part, grd_fit_gradient(&self->inner->outputs[0], grads[0], node->name, 0));
    else
        grd_zero_(part);
    run->ret_grads[0] = whole;
}

static void copy_slices_release(struct grd_node *node)
{
    struct grd_node *inner = ((struct copy_slices *)node)->inner;
    if (inner->class->release != NULL)
        inner->class->release(inner);
}

static void copy_slices_finish(struct grd_node *node)
{
    struct grd_node *inner = ((struct copy_slices *)node)->inner;
    inner->wrapper = NULL;
    grd_object_drop(inner);
}

static bool copy_slices_find_outdated(struct grd_node *node, const struct grd_storage *written, struct grd_rebase *rebase)
{
    struct grd_node *inner = ((struct copy_slices *)node)->inner;
    return inner->class->find_outdated == NULL || inner->class->find_outdated(inner, written, rebase);
}

static const struct grd_node_class copy_slices_class = {
    .run = copy_slices_run, .release = copy_slices_release, .finish = copy_slices_finish, .find_outdated = copy_slices_find_outdated};

struct grd_node *grd_node_inside(struct grd_node *node)
{
    return node->class == &copy_slices_class ? ((struct copy_slices *)node)->inner : node;
}

grd_tensor *grd_slices_output(struct grd_node *wrapper, grd_tensor *saved)
{
    const struct copy_slices *self = (const struct copy_slices *)wrapper;
    const struct grd_output *output = &wrapper->outputs[0];
    grd_tensor *base =
        grd_new_view_as(saved, (grd_dtype)output->dtype, grd_dims_from(output->sizes, output->ndim), self->base_strides, self->base_offset);
    if (grd_pending() || !grd_give_history(base, grd_node_keep(wrapper), 0))
        return grd_failed;
    return view_at(base, &self->place);
}

/* True if a node may have the tensor, or its base but by this view. */
static bool may_be_saved(const grd_tensor *t)
{
    if (!grd_was_saved(t))
        return false;
    return !grd_object_unique(t) || (t->base != NULL && !grd_object_owned_as(t->base, GRD_VIEW_WEIGHT));
}

static bool search_histories(struct grd_rebase *rebase, const grd_tensor *t)
{
    uint32_t output;
    for (int retired = 0; retired < 2 && grd_has_history(t); retired++) {
        if (!grd_reserve(&rebase->held, rebase->nheld + 1, &rebase->held_capacity, sizeof *rebase->held))
            return false;
        struct grd_node *node = retired ? grd_retired_history_of(t) : grd_history_of(t, &output);
        if (node == NULL)
            continue;
        rebase->held[rebase->nheld++] = node;
        if (grd_pass_enter(rebase->pass, node) == GRD_NO_ENTRY)
            return false;
    }
    return true;
}

bool grd_rebase_search(struct grd_rebase *rebase, const grd_tensor *saved)
{
    return search_histories(rebase, saved) && (saved->base == NULL || search_histories(rebase, saved->base));
}

/* Of the nodes, and of those that are entered meanwhile. */
static bool search_nodes(struct grd_rebase *rebase, const struct grd_storage *written)
{
    struct grd_pass *pass = rebase->pass;
    for (int64_t i = 0; i < pass->n; i++) {
        struct grd_node *node = pass->entries[i].node;
        if (node->nedges > 0 && pass->entries[i].from == i && !grd_pass_discover(pass, (int32_t)i))
            return false;
        if (node->class->find_outdated != NULL && !node->class->find_outdated(node, written, rebase))
            return false;
    }
    return true;
}

static bool find_outdated(struct grd_rebase *rebase, const grd_tensor *t)
{
    if (!may_be_saved(t))
        return true;
    struct grd_pass pass;
    grd_pass_init(&pass, false, false);
    rebase->pass = &pass;
    const bool ok = grd_pass_enter(&pass, rebase->history) != GRD_NO_ENTRY && search_nodes(rebase, t->storage);
    grd_pass_done(&pass, true);
    return ok;
}

/* Returns a CopySlices that wraps the node of an operator that wrote a view. Takes the reference to `node`. */
static struct grd_node *new_copy_slices(grd_tensor *t, struct grd_node *node, bool self_edge)
{
    grd_tensor *base = t->base;
    struct grd_edge base_edge;
    if (!grd_edge_of(base, &base_edge)) {
        grd_object_drop(node);
        return NULL;
    }
    uint32_t first = self_edge ? 1 : 0, nedges = 1 + node->nedges - first;
    struct copy_slices *self = (struct copy_slices *)grd_node_new(&copy_slices_class, "CopySlices", sizeof *self, nedges, 1,
                                                                  2u * (base->ndim + t->ndim) * sizeof(int64_t));
    if (self == NULL) {
        grd_node_drop(base_edge.node);
        grd_object_drop(node);
        return NULL;
    }
    char *room = grd_node_room(&self->node);
    grd_node_describe_output(&self->node, 0, base, grd_copy_dims(&room, base->sizes, base->ndim).data);
    self->base_strides = grd_copy_dims(&room, base->strides, base->ndim);
    self->base_offset = base->offset;
    self->inner = node;
    node->wrapper = &self->node;
    self->self_edge = self_edge;
    self->place = place_of(t, base);
    self->place.sizes = grd_copy_dims(&room, t->sizes, t->ndim);
    self->place.strides = grd_copy_dims(&room, t->strides, t->ndim);
    self->node.edges[0] = base_edge;
    /* Drop the view's own edge, since its gradient flows to the base. */
    if (self_edge) {
        grd_node_drop(node->edges[0].node);
        node->edges[0].node = NULL;
    }
    for (uint32_t i = first; i < node->nedges; i++) {
        self->node.edges[i - first + 1] = node->edges[i];
        node->edges[i].node = NULL;
    }
    return &self->node;
}

static pthread_mutex_t replacing = PTHREAD_MUTEX_INITIALIZER;
static _Atomic uint64_t replaced; /* histories so far; changes under the lock */

bool grd_rebase_prepare(struct grd_rebase *rebase, grd_tensor *t, struct grd_node *node, uint32_t output, bool self_edge)
{
    const bool wraps = t->base != NULL;
    *rebase = (struct grd_rebase){.history = wraps ? new_copy_slices(t, node, self_edge) : node,
                                  .output = wraps ? 0 : output,
                                  .number = atomic_load_explicit(&replaced, memory_order_acquire)};
    if (rebase->history == NULL)
        return false;
    if (find_outdated(rebase, t))
        return true;
    grd_rebase_abandon(rebase);
    return false;
}

/* Nothing is freed under a lock: what is freed may call a user. */
static void end_search(const struct grd_rebase *rebase)
{
    for (int64_t i = 0; i < rebase->noutdated; i++)
        grd_object_drop(rebase->outdated[i].replaced);
    for (int64_t i = 0; i < rebase->nheld; i++)
        grd_node_drop(rebase->held[i]);
    grd_free(rebase->outdated, (size_t)rebase->outdated_capacity * sizeof *rebase->outdated);
    grd_free(rebase->held, (size_t)rebase->held_capacity * sizeof *rebase->held);
}

bool grd_rebase_commit(struct grd_rebase *rebase, grd_tensor *t)
{
    grd_tensor *owner = t->base != NULL ? t->base : t;
    uint32_t output;
    pthread_mutex_lock(&replacing);
    const uint64_t number = atomic_load_explicit(&replaced, memory_order_relaxed);
    const bool searched = number == rebase->number || find_outdated(rebase, t);
    struct grd_node *old = grd_history_of(owner, &output);
    grd_saved_replace_outdated(rebase);
    const bool ok = grd_replace_history(owner, rebase->history, rebase->output);
    atomic_store_explicit(&replaced, number + 1, memory_order_release);
    pthread_mutex_unlock(&replacing);
    grd_node_drop(old);
    end_search(rebase);
    if (ok && t->base != NULL)
        grd_mark_requires_grad(t, true);
    return ok && searched;
}

void grd_rebase_abandon(const struct grd_rebase *rebase)
{
    grd_object_drop(rebase->history);
    end_search(rebase);
}

/* ---- Views whose base was written ----------------------------------------------------------------------------------------------- */
static bool is_current(const grd_tensor *view)
{
    const struct grd_object *object = grd_autograd_of(view);
    if (!grd_has_history(view)) {
        /* Made without recording, or before the base required a gradient. Another thread that writes the base for the first time gives it
         * a history after the version: a view that was made in between has the new version and is out of date nevertheless. */
        const bool may_have_none = grd_has(view, GRD_FLAG_NO_GRAD_VIEW) || !grd_has_history(view->base);
        return !grd_needs_grad(view->base) || (may_have_none && view->view_version == grd_version_of(view));
    }
    if (grd_node_is(object))
        return ((const struct grd_node *)object)->view_version == grd_version_of(view);
    struct grd_meta *meta = (struct grd_meta *)(uintptr_t)object;
    grd_spin_lock(&meta->lock);
    const uint32_t version = meta->view_version;
    grd_spin_unlock(&meta->lock);
    return version == grd_version_of(view);
}

static bool restride_base(grd_tensor *view)
{
    static const grd_op *_Atomic as_strided;
    if (as_strided == NULL)
        as_strided = grd_op_find("as_strided");
    const grd_value args[] = {{.kind = GRD_KIND_TENSOR, .v.tensor = view->base},
                              {.kind = GRD_KIND_DIMS, .v.dims = grd_sizes(view)},
                              {.kind = GRD_KIND_DIMS, .v.dims = grd_strides(view)},
                              {.kind = GRD_KIND_SCALAR, .v.scalar = grd_int(view->offset)}};
    const struct grd_op_call call = {
        .op = as_strided, .derivative = as_strided->derivative, .args = args, .results = &view, .nresults = 1, .needs = 1};
    struct grd_node *node = grd_op_node_new(&call);
    return node != NULL && grd_replace_history(view, node, 0);
}

/* The history that a view of complex parts, of pairs, or of conjugates has by its base's: made by operators, which are recorded whatever the mode of
 * the thread. NULL, with the error raised, on failure. */
static struct grd_node *replay_on_base(const grd_tensor *view, uint32_t *ret_output)
{
    const struct view_place place = place_of(view, view->base);
    const uint32_t exclude = grd_thread.exclude, grad_off = grd_thread.grad_off;
    const int64_t mark = grd_pool_mark();
    grd_thread.exclude &= ~(uint32_t)GRD_AUTOGRAD_BIT;
    grd_thread.grad_off = 0;
    const grd_tensor *replayed = view_at(view->base, &place);
    grd_thread.exclude = exclude;
    grd_thread.grad_off = grad_off;
    struct grd_node *node = grd_pending() ? NULL : grd_history_of(replayed, ret_output);
    grd_pool_release(mark);
    return node;
}

static pthread_mutex_t refreshing = PTHREAD_MUTEX_INITIALIZER;

void grd_views_init(void)
{
    static struct grd_held_lock held[] = {{.lock = &replacing}, {.lock = &refreshing}};
    for (int i = 0; i < GRD_LENGTH(held); i++)
        grd_hold_around_fork(&held[i]);
}

bool grd_view_refresh(grd_tensor *view)
{
    if (GRD_LIKELY(is_current(view)))
        return true;
    if (!refuse_other_dtype(view) || !refuse_special_view(view, true))
        return false;
    uint32_t output = 0;
    const bool replays = view->dtype != view->base->dtype || grd_is_conjugated(view) != grd_is_conjugated(view->base);
    struct grd_node *replayed = replays ? replay_on_base(view, &output) : NULL; /* before the lock, which it may take itself */
    if (replays && replayed == NULL)
        return false;
    pthread_mutex_lock(&refreshing);
    const bool still = is_current(view);
    bool ok = still || (replays ? grd_replace_history(view, replayed, output) : restride_base(view));
    pthread_mutex_unlock(&refreshing);
    if (still && replays)
        grd_node_drop(replayed);
    return ok;
}
