/* Runs the hooks of nodes. hook_list.h holds the lists, register_hook.c the public functions that register hooks. */
#ifndef GRD_AUTOGRAD_HOOKS_H
#define GRD_AUTOGRAD_HOOKS_H

#include "autograd/node.h"
#include "autograd/slot.h"

/* Runs the tensor hooks of a node on the gradients of its `n` outputs, then stores retained gradients. Stops at the first error. The caller owns the
 * gradients, and a hook's replacement too. */
void grd_hooks_run_tensor(struct grd_hooks *hooks, grd_tensor **grads, uint32_t n);
/* Runs the node's prehooks if grad_outputs.data is NULL. Otherwise runs its posthooks with the grad_outputs that grd_hooks_note returned before the
 * node ran. */
void grd_hooks_run_node(struct grd_node *node, grd_tensors grad_outputs, grd_tensor **grads, uint32_t n);
/* Returns the gradients of the outputs for the posthooks, as a pooled list; an empty list if the node has no posthooks. */
grd_tensors grd_hooks_note(struct grd_node *node, grd_tensor *const *grads);
/* Runs the hooks that were registered for the moment after a gradient has been added to the .grad of `leaf`. */
void grd_hooks_run_accumulated(struct grd_hooks *hooks, grd_tensor *leaf);
/* Stores an anomaly trace, which `release` frees together with the node. False, with the error raised, on failure. */
bool grd_hooks_add_trace(struct grd_hooks *hooks, void *trace, void (*release)(void *trace));
/* From now on stores the gradient of output `output` of the node in `retained`. False, with MemoryError, on failure. */
bool grd_hooks_retain(struct grd_node *node, uint32_t output, struct grd_retained *retained);
/* Removes the hook that fills `retained`. */
void grd_hooks_unretain(struct grd_node *node, const struct grd_retained *retained);

#endif
