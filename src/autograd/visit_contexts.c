/* Finds the contexts that only a given tensor or node keeps alive, for the garbage collector of a language binding. A context is an object of the
 * user that belongs to a hook or a custom function.
 *
 * Only nodes with a single reference are visited. The node or tensor from which such a node was reached is its only owner, so the visited nodes
 * form a tree. The nodes that are still to be visited are linked in a list by grd_node.next, so a long chain of nodes needs no stack. */
#include "autograd/hook_list.h"
#include "autograd/hooks.h"
#include "autograd/node.h"
#include "autograd/variable.h"
#include "core/given.h"
#include "core/tensor.h"

/* Adds `node` to the list of nodes to visit if it has only one owner. A node with several owners is skipped, because another owner keeps it and its
 * contexts (the user's objects in hooks) alive. */
static void wait(struct grd_node *node, struct grd_node **waiting)
{
    if (node == NULL || !grd_object_unique(node->owner))
        return;
    node->next = *waiting;
    *waiting = node;
}

/* Calls `visit` for each context (object of the user in a hook or custom function) of the nodes in the list `waiting`, and of all nodes with a
 * single owner that can be reached from them. Returns the first value other than 0 that `visit` returns, or 0. */
static int visit_below(struct grd_node *waiting, grd_context_visitor *visit, void *arg)
{
    while (waiting != NULL) {
        struct grd_node *node = waiting;
        waiting = node->next;
        int result = node->class->visit != NULL ? node->class->visit(node, visit, arg) : 0;
        if (result != 0 || (result = grd_hooks_visit(&node->hooks, visit, arg)) != 0)
            return result;
        for (uint32_t i = 0; i < node->nedges; i++)
            wait(node->edges[i].node, &waiting);
    }
    return 0;
}

int grd_visit_contexts(grd_tensor *t, grd_context_visitor *visit, void *arg)
{
    static const char name[] = "grd_visit_contexts";
    if (!grd_given(t, name, "t") || !grd_given_pointer((void *)(uintptr_t)visit, name, "visit") || t->autograd == NULL ||
        !grd_object_unique(t))
        return 0;
    struct grd_autograd_meta *meta = grd_autograd_meta_get(t);
    struct grd_node *waiting = NULL;
    wait(meta != NULL ? meta->grad_fn : (struct grd_node *)t->autograd, &waiting);
    const int result = meta != NULL && meta->accumulator != NULL ? grd_hooks_visit(&meta->accumulator->hooks, visit, arg) : 0;
    return result == 0 ? visit_below(waiting, visit, arg) : result;
}

int grd_node_visit_contexts(grd_node *node, grd_context_visitor *visit, void *arg)
{
    static const char name[] = "grd_node_visit_contexts";
    struct grd_node *waiting = NULL;
    if (!grd_given_pointer(node, name, "node") || !grd_given_pointer((void *)(uintptr_t)visit, name, "visit"))
        return 0;
    wait(node, &waiting);
    return visit_below(waiting, visit, arg);
}
