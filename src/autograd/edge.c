/* Finds the node that receives the gradient of a tensor: its grad_fn or, for a leaf, its AccumulateGrad. */
#include "autograd/edge.h"

#include "autograd/view_refresh.h"
#include "core/given.h"
#include "core/tensor.h"

bool grd_current_grad_fn(grd_tensor *t, struct grd_node **ret_node, uint32_t *ret_output)
{
    *ret_node = NULL;
    if (GRD_UNLIKELY(t->base != NULL) && !grd_view_refresh(t))
        return false;
    *ret_node = grd_history_of(t, ret_output);
    return true;
}

bool grd_edge_search(grd_tensor *t, struct grd_edge *ret_edge)
{
    *ret_edge = (struct grd_edge){NULL, 0};
    if (GRD_UNLIKELY(t->base != NULL || grd_has_history(t))) {
        if (!grd_current_grad_fn(t, &ret_edge->node, &ret_edge->output))
            return false;
        if (ret_edge->node != NULL)
            return true;
    }
    struct grd_node *accumulator = grd_accumulator_of(t);
    if (accumulator == NULL)
        return false;
    ret_edge->node = grd_node_keep(accumulator);
    return true;
}

grd_node *grd_grad_fn(grd_tensor *t)
{
    struct grd_node *node = NULL;
    uint32_t output;
    if (grd_pending() || !grd_given(t, "grd_grad_fn", "t") || !grd_current_grad_fn(grd_physical(t), &node, &output) || node == NULL)
        return NULL;
    return grd_pool_push(node) ? node : NULL;
}

grd_node *grd_gradient_edge(grd_tensor *t, int *ret_output)
{
    struct grd_edge edge;
    if (grd_pending() || !grd_given(t, "grd_gradient_edge", "t") || !grd_edge_of(t, &edge) || edge.node == NULL)
        return NULL;
    if (ret_output != NULL)
        *ret_output = (int)edge.output;
    return grd_pool_push(edge.node->owner) ? edge.node : NULL;
}
