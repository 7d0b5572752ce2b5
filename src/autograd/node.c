/* Nodes: one block each, freed without recursion; the public questions about the graph.
 * Invariant: the dead list of a thread is empty whenever no destructor runs on it. */
#include "autograd/node.h"

static _Thread_local struct {
    uint64_t sequence;
    struct grd_node *dead; /* waiting to be freed */
    bool freeing;
} thread_graph __attribute__((tls_model("initial-exec")));

static void free_node(struct grd_node *node)
{
    if (node->class->finish != NULL && !node->class->finish(node))
        return;
    if (node->class->release != NULL)
        node->class->release(node);
    if (GRD_UNLIKELY(node->hooks.first != NULL))
        grd_hooks_clear(&node->hooks);
    for (uint32_t i = 0; i < node->nedges; i++)
        grd_object_drop(node->edges[i].node);
    grd_free(node, node->size);
}

/* Dropping edges and saved tensors may end other nodes: those wait in a list, so a chain of any length takes constant stack. */
static void grd_node_destroy(struct grd_object *object)
{
    struct grd_node *node = (struct grd_node *)object;
    if (thread_graph.freeing) {
        node->next = thread_graph.dead;
        thread_graph.dead = node;
        return;
    }
    thread_graph.freeing = true;
    free_node(node);
    while (thread_graph.dead != NULL) {
        node = thread_graph.dead;
        thread_graph.dead = node->next;
        free_node(node);
    }
    thread_graph.freeing = false;
}

static const struct grd_object_type node_type = {"node", grd_node_destroy};

bool grd_node_is(const struct grd_object *object)
{
    return object->type == &node_type;
}

struct grd_node *grd_node_new(const struct grd_node_class *class, const char *name, size_t struct_size, uint32_t nedges, uint32_t noutputs,
                              size_t extra, void *ret_extra)
{
    size_t edges = (struct_size + 7) & ~(size_t)7;
    size_t outputs = edges + nedges * sizeof(struct grd_edge);
    size_t rest = outputs + noutputs * sizeof(struct grd_output);
    size_t size = rest + extra;
    if (size > UINT32_MAX) {
        grd_raise(GRD_ERROR_MEMORY, "a graph node with %u inputs and %u outputs is too large", nedges, noutputs);
        return NULL;
    }
    struct grd_node *node = grd_alloc(size);
    if (node == NULL)
        return NULL;
    node->object.type = &node_type;
    atomic_init(&node->object.refs, 1);
    node->class = class;
    node->name = name;
    node->sequence = thread_graph.sequence++;
    node->next = NULL;
    node->wrapper = NULL;
    node->edges = (struct grd_edge *)((char *)node + edges);
    node->outputs = (struct grd_output *)((char *)node + outputs);
    atomic_init(&node->hooks.first, NULL);
    node->size = (uint32_t)size;
    node->nedges = nedges;
    node->noutputs = noutputs;
    node->view_version = 0;
    atomic_flag_clear(&node->lock.flag);
    node->freed = false;
    node->device = GRD_DEVICE_CPU;
    for (uint32_t i = 0; i < nedges; i++)
        node->edges[i] = (struct grd_edge){NULL, 0};
    *(void **)ret_extra = (char *)node + rest;
    return node;
}

void grd_node_describe_output(struct grd_node *node, uint32_t output, const grd_tensor *t, const int64_t *sizes)
{
    node->outputs[output] = (struct grd_output){
        .sizes = sizes, .ndim = (uint8_t)t->ndim, .dtype = t->dtype, .device = t->device, .device_index = t->device_index};
    if (output == 0)
        node->device = t->device;
}

/* ---- Public questions -------------------------------------------------------------------------------------------------------------- */
bool grd_raise_null_tensor(const char *function, const char *argument)
{
    return grd_raise(GRD_ERROR_TYPE, "%s: argument '%s' must be a tensor, not NULL", function, argument);
}

bool grd_raise_null_pointer(const char *function, const char *argument)
{
    return grd_raise(GRD_ERROR_TYPE, "%s: argument '%s' must not be NULL", function, argument);
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
