/* Declares the lists of hooks of nodes, and the table of handles by which a user removes a hook. A hook is a function of the user together with its
 * context, which is a pointer that is passed to the function.
 *
 * The lists and the table change under one lock. Hooks are called without the lock, from a copy of the list that is made before the first call.
 * So a hook may remove any hook, including itself, and may register new hooks, which run from the next time on. */
#ifndef GRD_AUTOGRAD_HOOK_LIST_H
#define GRD_AUTOGRAD_HOOK_LIST_H

#include "base/error.h"
#include "base/object.h"
#include "gradus/autograd.h"

enum grd_hook_kind {
    GRD_HOOK_TENSOR,      /* gets the gradient of one output before the node runs, and may replace it */
    GRD_HOOK_RETAIN,      /* stores the gradient of one output, for retain_grad() */
    GRD_HOOK_PRE,         /* gets the gradients of all outputs before the node runs */
    GRD_HOOK_POST,        /* gets the gradients of all inputs of the node after the node has run */
    GRD_HOOK_ACCUMULATED, /* is called after a gradient has been added to the .grad of a leaf */
    GRD_HOOK_TRACE        /* is never called; its context is the traceback that anomaly mode has stored */
};

/* One hook of a node: a function of the user, and the context that is passed to it. */
struct grd_hook {
    struct grd_object object;
    struct grd_hook *_Atomic next;
    struct grd_hooks *list; /* the list that holds the hook; NULL after removal */
    uint64_t order;         /* number of the registration, so hooks that were registered later have higher numbers */
    uint64_t handle;        /* the number by which a user can remove the hook; 0 if the hook is not in the table of handles */
    enum grd_hook_kind kind;
    uint32_t output; /* index of the node's output whose gradient a TENSOR or RETAIN hook gets */
    union {
        grd_tensor_hook *tensor;
        grd_node_hook *node;
        void (*accumulated)(grd_tensor *leaf, void *context);
    } call;
    void *context;
    void (*release)(void *context); /* called when the hook is freed, to free the context; may be NULL */
};

/* The list of the hooks of one node. */
struct grd_hooks {
    struct grd_hook *_Atomic first; /* atomic, so that a test for NULL needs no lock */
};

/* The hooks of one kind that grd_hooks_find found in the list of a node. */
struct grd_hooks_found {
    struct grd_hook **hooks; /* the innermost grd_scope owns this array and a reference to each hook */
    int64_t n;
};

/* Calls `release`, unless it is NULL, to free the context of a user's hook or function. A pending error is hidden during the call and restored
 * afterwards. */
static inline void grd_release_context(void (*release)(void *context), void *context)
{
    if (release == NULL)
        return;
    struct grd_error_state error = grd_error_take();
    release(context);
    grd_error_restore(error);
}

/* Appends a copy of `description` to the list, and returns the handle of the new hook. Returns 1 for a RETAIN or TRACE hook, which has no handle. 0,
 * with the error raised, on failure; description.context is then not released. */
uint64_t grd_hooks_add(struct grd_hooks *list, struct grd_hook description);
/* Returns the hooks of one kind in the order of their registration. Returns no hooks, with the error raised, on failure. */
struct grd_hooks_found grd_hooks_find(struct grd_hooks *hooks, enum grd_hook_kind kind);
/* Returns the context of the first hook of kind `kind`, or NULL if there is no such hook. The list keeps the context alive. */
void *grd_hooks_context(struct grd_hooks *hooks, enum grd_hook_kind kind);
/* Removes the first hook of kind `kind` whose context is `context`, if there is one. */
void grd_hooks_remove(struct grd_hooks *hooks, enum grd_hook_kind kind, const void *context);
/* Drops all hooks of the list. Called when the node is freed. */
void grd_hooks_clear(struct grd_hooks *hooks);
/* Calls visit(context, release, arg) for each hook that a user registered, until a call returns a value other than 0. Returns this value, or 0. */
int grd_hooks_visit(struct grd_hooks *hooks, grd_context_visitor *visit, void *arg);
/* Makes fork wait until no thread holds the lock of the hook lists. Called once, when the library is loaded. */
void grd_hooks_init(void);

#endif
