/* Runs the hooks of nodes. hook_list.h declares the lists, and register_hook.c has the public functions that register hooks. */
#ifndef GRD_AUTOGRAD_HOOKS_H
#define GRD_AUTOGRAD_HOOKS_H

#include "autograd/node.h"
#include "autograd/slot.h"

/* Runs the tensor hooks of a node on `grads`, the gradients of its `n` outputs. A hook may replace a gradient. Then stores the gradients for
 * retain_grad(). Stops at the first error. The caller owns the gradients in `grads`, before and after the call. */
void grd_hooks_run_tensor(struct grd_hooks *hooks, grd_tensor **grads, uint32_t n);
/* If grad_outputs.data is NULL, runs the hooks that are called before the node; `grads` are the gradients of the node's `n` outputs. Otherwise runs
 * the hooks that are called after the node; `grads` are the gradients of the node's `n` inputs, and grad_outputs is the list that grd_hooks_note
 * returned. A hook may replace elements of `grads`. Stops at the first error. */
void grd_hooks_run_node(struct grd_node *node, grd_tensors grad_outputs, grd_tensor **grads, uint32_t n);
/* Called before a node runs. Returns a copy of `grads`, the gradients of the node's outputs, for the hooks that are called after the node. Returns an
 * empty list if there are no such hooks. The copy lives until the innermost grd_scope closes. */
grd_tensors grd_hooks_note(struct grd_node *node, grd_tensor *const *grads);
/* Runs the hooks that are called after a gradient has been added to the .grad of `leaf`. */
void grd_hooks_run_accumulated(struct grd_hooks *hooks, grd_tensor *leaf);
/* Stores `trace`, a traceback that anomaly mode has recorded, in the node. `release` frees it when the node is freed. False, with the error
 * raised, on failure. */
bool grd_hooks_add_trace(struct grd_hooks *hooks, void *trace, void (*release)(void *trace));
/* Adds to the node a hook that stores the gradient of output number `output` in `retained`. False, with MemoryError, on failure. */
bool grd_hooks_retain(struct grd_node *node, uint32_t output, struct grd_retained *retained);
/* Removes the hook that stores a gradient in `retained`. */
void grd_hooks_unretain(struct grd_node *node, const struct grd_retained *retained);

#endif
