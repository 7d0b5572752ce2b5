/* Lists of hooks, and the table of handles by which a user removes a hook. A hook is a function of the user with its context.
 *
 * Lists and table change under one lock. Hooks are called without the lock, from a list that was copied before the first call: a hook may remove any
 * hook, itself included, and may register new hooks, which run from the next time on. */
#ifndef GRD_AUTOGRAD_HOOK_LIST_H
#define GRD_AUTOGRAD_HOOK_LIST_H

#include "base/error.h"
#include "base/object.h"
#include "gradus/autograd.h"

enum grd_hook_kind {
    GRD_HOOK_TENSOR,      /* sees the gradient of one output before the node runs, and may replace it */
    GRD_HOOK_RETAIN,      /* stores the gradient of one output: retain_grad() */
    GRD_HOOK_PRE,         /* sees the gradients of all outputs before the node runs */
    GRD_HOOK_POST,        /* sees the gradients of all inputs after the node has run */
    GRD_HOOK_ACCUMULATED, /* runs after a gradient has been added to the .grad of a leaf */
    GRD_HOOK_TRACE        /* is never called: its context is the stack trace of anomaly detection */
};

struct grd_hook {
    struct grd_object object;
    struct grd_hook *_Atomic next;
    struct grd_hooks *list; /* the list that holds the hook; NULL after removal */
    uint64_t order;         /* number of the registration: later hooks have higher numbers */
    uint64_t handle;        /* 0 if the hook is not in the table of handles */
    enum grd_hook_kind kind;
    uint32_t output; /* index of the node's output whose gradient the hook sees */
    union {
        grd_tensor_hook *tensor;
        grd_node_hook *node;
        void (*accumulated)(grd_tensor *leaf, void *context);
    } call;
    void *context;
    void (*release)(void *context); /* frees the context together with the hook; may be NULL */
};

struct grd_hooks {
    struct grd_hook *_Atomic first; /* read without the lock to test whether there is a hook */
};

/* The hooks of one kind that a list held when it was read. */
struct grd_hooks_found {
    struct grd_hook **hooks; /* the array and a reference to each hook are pooled */
    int64_t n;
};

/* Releases the context of a user's hook. The release function runs without our pending error, which is restored afterwards. */
static inline void grd_release_context(void (*release)(void *context), void *context)
{
    if (release == NULL)
        return;
    struct grd_error_state error = grd_error_take();
    release(context);
    grd_error_restore(error);
}

/* Appends a copy of `description` to the list, and returns its handle. RETAIN and TRACE hooks have no handle: 1 is returned for them. 0, with the
 * error raised, on failure; `context` is then not released. */
uint64_t grd_hooks_add(struct grd_hooks *list, struct grd_hook description);
/* Returns the hooks of one kind in the order of their registration. None, with the error raised, on failure. */
struct grd_hooks_found grd_hooks_find(struct grd_hooks *hooks, enum grd_hook_kind kind);
/* Returns the context of the first hook of one kind, or NULL. The list keeps the context alive. */
void *grd_hooks_context(struct grd_hooks *hooks, enum grd_hook_kind kind);
/* Removes the first hook of one kind that has this context, if there is one. */
void grd_hooks_remove(struct grd_hooks *hooks, enum grd_hook_kind kind, const void *context);
/* Drops all hooks when their owner is freed. */
void grd_hooks_clear(struct grd_hooks *hooks);
/* Calls `visit` for the context of each hook that a user registered, until a call returns a value other than 0. Returns that value, or 0. */
int grd_hooks_visit(struct grd_hooks *hooks, grd_context_visitor *visit, void *arg);
void grd_hooks_init(void);

#endif
