/* Hooks of tensors and of nodes. */
#ifndef GRD_AUTOGRAD_HOOKS_H
#define GRD_AUTOGRAD_HOOKS_H

#include "autograd/node.h"
#include "base/error.h"

struct grd_retained;

/* Lets go of what a user's function works with. What that runs sees no pending error of ours, and leaves ours pending. */
static inline void grd_release_context(void (*release)(void *context), void *context)
{
    if (release == NULL)
        return;
    struct grd_error_state error = grd_error_take();
    release(context);
    grd_error_restore(error);
}

/* Each leaves at the first error. The gradients are owned by the caller and replaced by owned ones. */
void grd_hooks_run_tensor(struct grd_hooks *hooks, grd_tensor **grads, uint32_t n);
/* Before the node runs, with absent grad_outputs; after it, with those noted before. */
void grd_hooks_run_node(struct grd_node *node, grd_tensors grad_outputs, grd_tensor **grads, uint32_t n);
/* The gradients of the outputs, for the hooks after the node; absent when it has none. Pooled. */
grd_tensors grd_hooks_note(struct grd_node *node, grd_tensor *const *grads);
int grd_hooks_visit(struct grd_hooks *hooks, grd_context_visitor *visit, void *arg);
/* Keeps what release frees, until the node goes. False, with the error raised, on failure. grd_hooks_trace returns it, or NULL. */
bool grd_hooks_add_trace(struct grd_hooks *hooks, void *trace, void (*release)(void *trace));
void *grd_hooks_trace(struct grd_hooks *hooks);
void grd_hooks_run_accumulated(struct grd_hooks *hooks, grd_tensor *leaf);
/* The owner goes away, and its hooks with it. */
void grd_hooks_clear(struct grd_hooks *hooks);
void grd_hooks_init(void);
bool grd_hooks_retain(struct grd_node *node, uint32_t output, struct grd_retained *retained);
/* Takes the filler of `retained` away again. */
void grd_hooks_unretain(struct grd_node *node, struct grd_retained *retained);

#endif
