/* Frees nodes, without recursion, and has the public functions that inspect the graph. */
#include "autograd/hook_list.h"
#include "autograd/node.h"
#include "core/given.h"

_Thread_local uint64_t grd_node_sequence __attribute__((tls_model("initial-exec")));

/* Frees a node and drops all that it owns. */
static void node_finish(struct grd_object *object)
{
    struct grd_node *node = (struct grd_node *)object;
    if (node->keeps && node->class->release != NULL)
        node->class->release(node);
    if (node->class->finish != NULL)
        node->class->finish(node);
    if (GRD_UNLIKELY(node->hooks.first != NULL))
        grd_hooks_clear(&node->hooks);
    for (uint32_t i = 0; i < node->nedges; i++)
        grd_node_drop(node->edges[i].node);
    if (GRD_LIKELY(node->size <= GRD_SMALL_MAX))
        grd_small_free(node, node->size);
    else
        grd_free(node, node->size);
}

/* Called when the last reference to a node is dropped. Frees the node, unless take_over() of its class has made
 * another object the owner of the node. */
static void node_destroy(struct grd_object *object)
{
    struct grd_node *node = (struct grd_node *)object;
    if (GRD_UNLIKELY(node->class->take_over != NULL) && node->class->take_over(node))
        return;
    grd_object_end(object, node_finish);
}

const struct grd_object_type grd_node_type = {.name = "node", .destroy = node_destroy, .finish = node_finish};

struct grd_node *grd_node_too_large(uint32_t nedges, uint32_t noutputs)
{
    grd_raise(GRD_ERROR_MEMORY, "a graph node with %u inputs and %u outputs is too large", nedges, noutputs);
    return NULL;
}

/* ---- Public functions -------------------------------------------------------------------------------------------------------------- */
grd_node *grd_keep_node(grd_node *node)
{
    return grd_given_pointer(node, "grd_keep_node", "node") ? grd_node_keep(node) : NULL;
}

void grd_drop_node(grd_node *node)
{
    grd_node_drop(node);
}

const char *grd_node_name(const grd_node *node)
{
    return grd_given_pointer(node, "grd_node_name", "node") ? node->name : "";
}

int grd_node_edge_count(const grd_node *node)
{
    return grd_given_pointer(node, "grd_node_edge_count", "node") ? (int)node->nedges : 0;
}

grd_node *grd_node_edge(const grd_node *node, int edge, int *ret_output)
{
    if (!grd_given_pointer(node, "grd_node_edge", "node"))
        return NULL;
    if (edge < 0 || (uint32_t)edge >= node->nedges) {
        grd_raise(GRD_ERROR_INDEX, "edge %d is out of range for %s with %u edges", edge, node->name, node->nedges);
        return NULL;
    }
    if (ret_output != NULL)
        *ret_output = (int)node->edges[edge].output;
    return node->edges[edge].node;
}
