/* Reads and replaces the gradients in slots, which hold the .grad of tensors. */
#include "autograd/slot.h"

#include "base/memory.h"

grd_tensor *grd_slot_get(struct grd_grad_slot *slot)
{
    grd_spin_lock(&slot->lock);
    grd_tensor *grad = slot->grad;
    if (grad != NULL)
        grd_object_keep(grad);
    grd_spin_unlock(&slot->lock);
    return grad;
}

void grd_slot_set(struct grd_grad_slot *slot, grd_tensor *grad)
{
    grd_spin_lock(&slot->lock);
    grd_tensor *old = slot->grad;
    slot->grad = grad;
    grd_spin_unlock(&slot->lock);
    grd_object_drop(old);
}

bool grd_slot_exchange(struct grd_grad_slot *slot, const grd_tensor *expected, grd_tensor *grad)
{
    grd_spin_lock(&slot->lock);
    grd_tensor *old = slot->grad;
    const bool same = old == expected;
    if (same)
        slot->grad = grad;
    grd_spin_unlock(&slot->lock);
    if (same)
        grd_object_drop(old);
    return same;
}

static void retained_destroy(struct grd_object *object)
{
    struct grd_retained *retained = (struct grd_retained *)object;
    grd_object_drop(retained->slot.grad);
    grd_free(retained, sizeof *retained);
}

static const struct grd_object_type retained_type = {.name = "retained", .destroy = retained_destroy};

struct grd_retained *grd_retained_new(void)
{
    struct grd_retained *retained = grd_alloc_zeroed(sizeof *retained);
    if (retained == NULL)
        return NULL;
    retained->object.type = &retained_type;
    atomic_init(&retained->object.refs, 1);
    grd_spin_init(&retained->slot.lock);
    return retained;
}
