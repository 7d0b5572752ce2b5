/* Implements CopySlices, the grad_fn of a tensor after an operator has written it through a view, e.g. of x after x[0].mul_(2). Note [Views and
 * in-place] is in inplace.c. */
#include "autograd/copy_slices.h"

#include "autograd/edge.h"
#include "autograd/gradient.h"
#include "autograd/variable.h"
#include "autograd/view_place.h"
#include "core/new.h"
#include "core/shape.h"
#include "core/tensor.h"
#include "gen/uses/autograd/copy_slices.h"

#include <string.h>

struct copy_slices {
    struct grd_node node;
    struct grd_node *inner; /* the node of the operator that wrote the view; owned */
    bool self_edge; /* true: edge 0 of `inner` receives the gradient of the elements that the view had before the write; false: it is 0 */
    grd_dims base_strides;
    int64_t base_offset;
    struct grd_view_place place; /* sizes, strides and position, relative to the base, of the view that was written */
};

/* Runs self->inner, the node of the operator that wrote the view. `part` is the gradient of the operator's result: a view of the base's gradient
 * at the place of the written view. Writes the gradients of the operator's inputs to ret_grads. False, with the error raised, on failure. */
static bool run_inner(struct copy_slices *self, const struct grd_run *run, grd_tensor *part, grd_tensor **ret_grads)
{
    grd_tensor *part_grad = grd_clone(part);
    uint64_t shared = run->needs & (uint64_t)1 << 63;
    struct grd_run inner = {&part_grad, ret_grads, self->self_edge ? run->needs : run->needs >> 1 | shared, run->retain};
    if (!grd_pending())
        self->inner->class->run(self->inner, &inner);
    return !grd_pending();
}

/* Computes the gradient of the old base (its value before the write) from run->grads[0], the gradient of the new base (after the write). The result
 * is a copy of run->grads[0] in which the gradient of the old view replaces the elements of the view. This gradient is 0 if self->self_edge is
 * false. Also computes the gradients of the operator's other inputs. */
static void copy_slices_run(struct grd_node *node, const struct grd_run *run)
{
    struct copy_slices *self = (struct copy_slices *)node;
    const struct grd_output *base = &node->outputs[0];
    grd_tensor *whole = grd_new_strided(grd_dims_from(base->sizes, base->ndim), self->base_strides, (grd_dtype)base->dtype,
                                        (grd_device){base->device, base->device_index});
    grd_tensor **grads = grd_pool_alloc((self->inner->nedges + 1) * sizeof *grads);
    if (grd_pending())
        return;
    memset(grads, 0, (self->inner->nedges + 1) * sizeof *grads);
    grd_copy_(whole, run->grads[0]);
    grd_tensor *part = grd_view_at(whole, &self->place);
    if (!run_inner(self, run, part, grads))
        return;
    uint32_t first = self->self_edge ? 1 : 0;
    for (uint32_t i = first; i < self->inner->nedges; i++)
        run->ret_grads[i - first + 1] = grads[i];
    if (!grd_run_needs(run, 0))
        return;
    if (self->self_edge && grads[0] != NULL)
        grd_copy_(part, grd_fit_gradient(&self->inner->outputs[0], grads[0], node->name, 0));
    else
        grd_zero_(part);
    run->ret_grads[0] = whole;
}

static void copy_slices_release(struct grd_node *node)
{
    struct grd_node *inner = ((struct copy_slices *)node)->inner;
    if (inner->class->release != NULL)
        inner->class->release(inner);
}

static void copy_slices_finish(struct grd_node *node)
{
    struct grd_node *inner = ((struct copy_slices *)node)->inner;
    inner->wrapper = NULL;
    grd_object_drop(inner);
}

static bool copy_slices_find_outdated(struct grd_node *node, const struct grd_storage *written, struct grd_outdated *outdated)
{
    struct grd_node *inner = ((struct copy_slices *)node)->inner;
    return inner->class->find_outdated == NULL || inner->class->find_outdated(inner, written, outdated);
}

static const struct grd_node_class copy_slices_class = {
    .run = copy_slices_run, .release = copy_slices_release, .finish = copy_slices_finish, .find_outdated = copy_slices_find_outdated};

struct grd_node *grd_node_inside(struct grd_node *node)
{
    return node->class == &copy_slices_class ? ((struct copy_slices *)node)->inner : node;
}

grd_tensor *grd_copy_slices_output(struct grd_node *wrapper, grd_tensor *saved)
{
    const struct copy_slices *self = (const struct copy_slices *)wrapper;
    const struct grd_output *output = &wrapper->outputs[0];
    grd_tensor *base =
        grd_new_view_as(saved, (grd_dtype)output->dtype, grd_dims_from(output->sizes, output->ndim), self->base_strides, self->base_offset);
    if (grd_pending() || !grd_give_history(base, grd_node_keep(wrapper), 0))
        return grd_failed;
    return grd_view_at(base, &self->place);
}

struct grd_node *grd_copy_slices_new(grd_tensor *t, struct grd_node *node, bool self_edge)
{
    grd_tensor *base = t->base;
    struct grd_edge base_edge;
    if (!grd_edge_of(base, &base_edge)) {
        grd_object_drop(node);
        return NULL;
    }
    uint32_t first = self_edge ? 1 : 0, nedges = 1 + node->nedges - first;
    struct copy_slices *self = (struct copy_slices *)grd_node_new(&copy_slices_class, "CopySlices", sizeof *self, nedges, 1,
                                                                  2u * (base->ndim + t->ndim) * sizeof(int64_t));
    if (self == NULL) {
        grd_node_drop(base_edge.node);
        grd_object_drop(node);
        return NULL;
    }
    char *room = grd_node_room(&self->node);
    grd_node_describe_output(&self->node, 0, base, grd_copy_dims(&room, base->sizes, base->ndim).data);
    self->base_strides = grd_copy_dims(&room, base->strides, base->ndim);
    self->base_offset = base->offset;
    self->inner = node;
    node->wrapper = &self->node;
    self->self_edge = self_edge;
    self->place = grd_view_place_of(t, base);
    self->place.sizes = grd_copy_dims(&room, t->sizes, t->ndim);
    self->place.strides = grd_copy_dims(&room, t->strides, t->ndim);
    self->node.edges[0] = base_edge;
    /* Drop the edge from the operator's node to the previous grad_fn of the view. The gradient of the view flows to the base instead. */
    if (self_edge) {
        grd_node_drop(node->edges[0].node);
        node->edges[0].node = NULL;
    }
    for (uint32_t i = first; i < node->nedges; i++) {
        self->node.edges[i - first + 1] = node->edges[i];
        node->edges[i].node = NULL;
    }
    return &self->node;
}
