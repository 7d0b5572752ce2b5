/* Gives a view a new grad_fn after its base was written in place. Note [Views and in-place] in inplace.c says when this is necessary. */
#include "autograd/view_refresh.h"

#include "autograd/node.h"
#include "autograd/variable.h"
#include "autograd/view_place.h"
#include "base/fork.h"
#include "core/dtype.h"
#include "core/new.h"
#include "core/tensor.h"

#include <pthread.h>
#include <string.h>

/* ---- Views that may not be written --------------------------------------------------------------------------------------------------- */
/* Returns the length of `node_name` without the suffix "Backward" and the digits that follow it, e.g. 3 for "MulBackward0". */
static int length_of_function(const char *node_name)
{
    static const char suffix[] = "Backward";
    size_t n = strlen(node_name);
    while (n > 0 && node_name[n - 1] >= '0' && node_name[n - 1] <= '9')
        n--;
    const size_t length = sizeof suffix - 1;
    return n >= length && memcmp(node_name + n - length, suffix, length) == 0 ? (int)(n - length) : (int)strlen(node_name);
}

/* Raises RuntimeError for a view that may not be written, and returns false. The view is output number `output` of `node`; `node` is NULL if the view
 * was made in no_grad mode. `indirect`: the write goes to the base or to another view of the base. `how` (may be empty) follows "... is a view" in
 * the error text, and `then` is the last sentence of the error text. */
static bool raise_special_view(const struct grd_node *node, uint32_t output, const char *how, bool indirect, const char *then)
{
    const char *what = indirect ? "its base or another view of its base has been" : "is being";
    if (node == NULL)
        return grd_raise(GRD_ERROR_RUNTIME, "A view was created in no_grad mode and %s modified inplace with grad mode enabled. %s", what,
                         then);
    return grd_raise(GRD_ERROR_RUNTIME, "Output %u of %.*s is a view%s and %s modified inplace%s. %s", output,
                     length_of_function(node->name), node->name, how, what, how[0] == '\0' ? "" : " with grad mode enabled", then);
}

bool grd_refuse_special_view(const grd_tensor *view, bool indirect)
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
    else if (node != NULL && node->class->is_custom)
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

bool grd_refuse_other_dtype(const grd_tensor *view)
{
    const grd_dtype own = (grd_dtype)view->dtype, base = (grd_dtype)view->base->dtype;
    const bool parts = own == grd_dtype_to_real(base) || base == grd_dtype_to_real(own);
    return own == base || (parts && !grd_is_conjugated(view->base)) ||
           grd_raise(GRD_ERROR_RUNTIME, "a %s view of a %s%s tensor that requires grad is being used in an in-place operation.",
                     grd_dtype_name(own), grd_is_conjugated(view->base) ? "conjugated " : "", grd_dtype_name(base));
}

/* ---- Refreshing ------------------------------------------------------------------------------------------------------------------------ */
/* True if the storage of the view has not been written since the view got its grad_fn. */
static bool is_current(const grd_tensor *view)
{
    const struct grd_object *object = grd_autograd_of(view);
    if (!grd_has_history(view)) {
        /* The view was made without recording, or before its base required a gradient. An unchanged version does not prove that the view needs no
         * grad_fn, because an in-place operator increments the version before it gives the base a grad_fn. A view that another thread makes between
         * these two steps has the new version, but needs a grad_fn. */
        const bool may_have_none = grd_has(view, GRD_FLAG_NO_GRAD_VIEW) || !grd_has_history(view->base);
        return !grd_needs_grad(view->base) || (may_have_none && view->view_version == grd_version_of(view));
    }
    if (grd_node_is(object))
        return ((const struct grd_node *)object)->view_version == grd_version_of(view);
    struct grd_autograd_meta *meta = (struct grd_autograd_meta *)(uintptr_t)object;
    grd_spin_lock(&meta->lock);
    const uint32_t version = meta->view_version;
    grd_spin_unlock(&meta->lock);
    return version == grd_version_of(view);
}

/* Makes a second view of view->base with the same elements as `view`, by operators that are recorded even in no_grad mode. Returns the grad_fn of
 * the second view, owned by the caller, and writes the index of this view among the outputs of the grad_fn to ret_output. NULL, with the error
 * raised, on failure. */
static struct grd_node *replay_on_base(const grd_tensor *view, uint32_t *ret_output)
{
    const struct grd_view_place place = grd_view_place_of(view, view->base);
    const uint32_t exclude = grd_thread.exclude, grad_off = grd_thread.grad_off;
    const int64_t mark = grd_pool_mark();
    grd_thread.exclude &= ~(uint32_t)GRD_AUTOGRAD_BIT;
    grd_thread.grad_off = 0;
    const grd_tensor *replayed = grd_view_at(view->base, &place);
    grd_thread.exclude = exclude;
    grd_thread.grad_off = grad_off;
    struct grd_node *node = grd_pending() ? NULL : grd_history_of(replayed, ret_output);
    grd_pool_release(mark);
    return node;
}

static pthread_mutex_t refreshing = PTHREAD_MUTEX_INITIALIZER;

void grd_view_refresh_init(void)
{
    static struct grd_held_lock held = {.lock = &refreshing};
    grd_hold_around_fork(&held);
}

bool grd_view_refresh(grd_tensor *view)
{
    if (GRD_LIKELY(is_current(view)))
        return true;
    if (!grd_refuse_other_dtype(view) || !grd_refuse_special_view(view, true))
        return false;
    uint32_t output;
    struct grd_node *node = replay_on_base(view, &output);
    if (node == NULL)
        return false;
    pthread_mutex_lock(&refreshing);
    const bool refreshed = is_current(view); /* true if another thread has refreshed the view meanwhile */
    const bool ok = refreshed || grd_replace_history(view, node, output);
    pthread_mutex_unlock(&refreshing);
    if (refreshed)
        grd_node_drop(node);
    return ok;
}
