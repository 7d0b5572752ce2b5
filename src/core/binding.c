/* The object of a language binding that stands for a tensor. A tensor that owns its object has a type of its own, so that the others pay nothing
 * when they go. */
#include "gradus/binding.h"
#include "core/small.h"

static void bound_destroy(struct grd_object *object)
{
    grd_tensor *t = (grd_tensor *)object;
    grd_binding *binding = t->binding;
    t->binding = NULL;
    object->type = &grd_tensor_type;
    binding->release(binding);
    grd_tensor_type.destroy(object);
}

static const struct grd_object_type bound_type = {"tensor", bound_destroy};

grd_binding *grd_binding_of(const grd_tensor *t)
{
    return t->binding;
}

void grd_binding_set(grd_tensor *t, grd_binding *binding, bool owned)
{
    if (grd_is_failed(t))
        return;
    t->binding = binding;
    t->object.type = binding != NULL && owned ? &bound_type : &grd_tensor_type;
}

bool grd_binding_is_owned(const grd_tensor *t)
{
    return t->object.type == &bound_type;
}

bool grd_is_sole_owner(const grd_tensor *t)
{
    return grd_object_unique(t);
}

grd_tensor *grd_scope_take(grd_scope scope, grd_tensor *t)
{
    int64_t *top = &grd_thread.pool_top;
    if (GRD_LIKELY(*top == scope.mark + 1 && grd_thread.pool[scope.mark] == t)) {
        *top = scope.mark;
        return t;
    }
    grd_object_keep(t);
    grd_pool_release(scope.mark > 0 ? scope.mark : 0);
    return t;
}

grd_tensor *grd_scope_give(grd_tensor *t)
{
    return t == NULL || grd_pool_push(t) ? t : grd_failed;
}
