/* Hooks of tensors and of nodes. */
#ifndef GRD_AUTOGRAD_HOOKS_H
#define GRD_AUTOGRAD_HOOKS_H

#include "autograd/node.h"
#include "base/error.h"

struct grd_retained;

/* Releases the context of a user's hook. The release function runs without our pending error, which is restored afterwards. */
static inline void grd_release_context(void (*release)(void *context), void *context)
{
    if (release == NULL)
        return;
    struct grd_error_state error = grd_error_take();
    release(context);
    grd_error_restore(error);
}

/* Runs the tensor hooks and stops at the first error. The caller owns the gradients; a hook's replacement is owned by the caller too. */
void grd_hooks_run_tensor(struct grd_hooks *hooks, grd_tensor **grads, uint32_t n);
/* Runs the node's prehooks if grad_outputs.data is NULL. Otherwise runs its posthooks with the grad_outputs that grd_hooks_note returned before the
 * node ran. */
void grd_hooks_run_node(struct grd_node *node, grd_tensors grad_outputs, grd_tensor **grads, uint32_t n);
/* Returns the gradients of the outputs for the posthooks, as a pooled list; an empty list if the node has no posthooks. */
grd_tensors grd_hooks_note(struct grd_node *node, grd_tensor *const *grads);
int grd_hooks_visit(struct grd_hooks *hooks, grd_context_visitor *visit, void *arg);
/* Stores an anomaly trace that `release` frees together with the node. False, with the error raised, on failure. grd_hooks_trace returns the trace,
 * or NULL. */
bool grd_hooks_add_trace(struct grd_hooks *hooks, void *trace, void (*release)(void *trace));
void *grd_hooks_trace(struct grd_hooks *hooks);
void grd_hooks_run_accumulated(struct grd_hooks *hooks, grd_tensor *leaf);
/* Drops all hooks when their owner is freed. */
void grd_hooks_clear(struct grd_hooks *hooks);
void grd_hooks_init(void);
bool grd_hooks_retain(struct grd_node *node, uint32_t output, struct grd_retained *retained);
/* Removes the hook that fills `retained`. */
void grd_hooks_unretain(struct grd_node *node, struct grd_retained *retained);

#endif
