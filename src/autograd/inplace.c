/* Checks in-place operators, and changes the history of the tensors that they overwrite. The history of a tensor is its grad_fn and all nodes
 * that can be reached from it.
 *
 * Note [Views and in-place]
 * A view and its base share memory, but each has its own grad_fn. When an operator writes through a view, the new value of the base is its old
 * value with some elements replaced. The new grad_fn of the base is a CopySlices, a node that wraps the operator's own node. From then on the
 * grad_fn of every view of the base is out of date, including the grad_fn of the written view. This is noticed when the grad_fn of a
 * view is read the next time, because the version of the storage has changed. The view is then made again from the base, and gets the grad_fn of
 * the new view (view_refresh.c).
 *
 * Note [Saved and overwritten]
 * After x.add_(f(x)) the history of x contains the node of f, and this node may have saved x or a view of x. The tensor and the node would own
 * each other and never be freed. The formula of f cannot use the overwritten value anyway. So before a tensor gets a new history, the nodes of
 * the new history are searched. Saved tensors that lie in the memory about to be written, or that were written since they were saved, are
 * replaced by aliases without history. An alias is enough for the error text that names the overwritten tensor. The aliases are made before the
 * operator writes, because making them may fail. They replace the saved tensors after the write.
 * The search also covers the present history of each saved tensor, because another thread may have replaced the history since the tensor was saved.
 * Two threads can make a cycle together: one runs x.add_(f(y)) while the other runs y.add_(f(x)). If both search before either of them has replaced
 * a history, neither finds the cycle. So if any history was replaced between a thread's search and the end of its write, the thread searches again.
 * The search is skipped for a tensor that only the caller owns, or whose storage was never saved. */
#include "autograd/inplace.h"

#include "autograd/copy_slices.h"
#include "autograd/outdated.h"
#include "autograd/variable.h"
#include "autograd/view_refresh.h"
#include "base/fork.h"
#include "core/tensor.h"

#include <pthread.h>

bool grd_check_inplace(grd_tensor *t)
{
    if (t->base != NULL) {
        if (!grd_refuse_other_dtype(t) || !grd_refuse_special_view(t, false))
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

static pthread_mutex_t replacing = PTHREAD_MUTEX_INITIALIZER; /* held while the grad_fn of a tensor is replaced after an in-place call */
static _Atomic uint64_t replaced;                             /* number of in-place calls that have replaced a grad_fn so far */

void grd_inplace_init(void)
{
    static struct grd_held_lock held = {.lock = &replacing};
    grd_hold_around_fork(&held);
}

bool grd_rebase_prepare(struct grd_rebase *rebase, grd_tensor *t, struct grd_node *node, uint32_t output, bool self_edge)
{
    const bool wraps = t->base != NULL;
    *rebase = (struct grd_rebase){.history = wraps ? grd_copy_slices_new(t, node, self_edge) : node,
                                  .output = wraps ? 0 : output,
                                  .number = atomic_load_explicit(&replaced, memory_order_acquire)};
    if (rebase->history == NULL)
        return false;
    if (grd_outdated_search(&rebase->outdated, rebase->history, t))
        return true;
    grd_rebase_abandon(rebase);
    return false;
}

bool grd_rebase_commit(struct grd_rebase *rebase, grd_tensor *t)
{
    grd_tensor *owner = t->base != NULL ? t->base : t;
    uint32_t output;
    pthread_mutex_lock(&replacing);
    const uint64_t number = atomic_load_explicit(&replaced, memory_order_relaxed);
    const bool searched = number == rebase->number || grd_outdated_search(&rebase->outdated, rebase->history, t);
    struct grd_node *old = grd_history_of(owner, &output);
    grd_outdated_replace(&rebase->outdated);
    const bool ok = grd_replace_history(owner, rebase->history, rebase->output);
    atomic_store_explicit(&replaced, number + 1, memory_order_release);
    pthread_mutex_unlock(&replacing);
    grd_node_drop(old);
    grd_outdated_end(&rebase->outdated);
    if (ok && t->base != NULL)
        grd_mark_requires_grad(t, true);
    return ok && searched;
}

void grd_rebase_abandon(const struct grd_rebase *rebase)
{
    grd_object_drop(rebase->history);
    grd_outdated_end(&rebase->outdated);
}
