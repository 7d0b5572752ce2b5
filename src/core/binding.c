/* Links a tensor with the object that represents it in a language binding (gradus/binding.h). A tensor that owns its binding object has its own
 * object type, `bound_type`, so that freeing any other tensor need not test for a binding object. */
#include "base/scope.h"
#include "core/tensor.h"
#include "gradus/binding.h"
#include "core/lifetimes.h"
#include "core/small_tensor.h"

/* Destroys a tensor that owns its binding, i.e. the object that represents it in another language: releases the binding, then frees the tensor. */
static void bound_destroy(struct grd_object *object)
{
    grd_tensor *t = (grd_tensor *)object;
    grd_binding *binding = t->binding;
    t->binding = NULL;
    object->type = &grd_tensor_type;
    binding->release(binding);
    grd_tensor_type.destroy(object);
}

static const struct grd_object_type bound_type = {.name = "tensor", .destroy = bound_destroy};

grd_binding *grd_binding_of(const grd_tensor *t)
{
    return GRD_LIKELY(t != NULL) ? t->binding : NULL;
}

void grd_binding_set(grd_tensor *t, grd_binding *binding, bool owned)
{
    if (t == NULL) {
        grd_raise(GRD_ERROR_TYPE, "grd_binding_set: argument 't' must be a tensor, not NULL");
        return;
    }
    /* An immortal tensor cannot own a binding. grd_failed, which a failed call returns, is immortal. In debug mode a freed tensor is immortal too
     * (lifetimes.h). */
    if (grd_object_immortal(t))
        return;
    t->binding = binding;
    t->object.type = binding != NULL && owned ? &bound_type : &grd_tensor_type;
}

bool grd_binding_is_owned(const grd_tensor *t)
{
    return t != NULL && t->object.type == &bound_type;
}

bool grd_is_sole_owner(const grd_tensor *t)
{
    return t != NULL && grd_object_unique(t);
}

/* The slow path of grd_scope_take, for debug mode and for a scope that owns more references than the one to `t`. Closes the scope, i.e. drops all
 * references that it owns, and returns `t` with one reference for the caller. */
static __attribute__((noinline)) grd_tensor *take_slow(grd_scope scope, grd_tensor *t)
{
    const bool debugging = grd_debugging(GRD_DEBUG_LIFETIMES);
    if (t != NULL && (!debugging || grd_lifetimes_kept(t, "grd_scope_take")))
        grd_object_keep(t);
    if (debugging)
        grd_trace_close(scope.mark, "grd_scope_take");
    else if (grd_scope_check(scope, "grd_scope_take"))
        grd_pool_release(scope.mark);
    return t;
}

grd_tensor *grd_scope_take(grd_scope scope, grd_tensor *t)
{
    int64_t *top = &grd_thread.pool_top;
    if (GRD_LIKELY(*top == scope.mark + 1 && *top > 0 && grd_thread.pool[scope.mark] == t)) {
        *top = scope.mark;
        return t;
    }
    return take_slow(scope, t);
}

grd_tensor *grd_scope_give(grd_tensor *t)
{
    if (grd_debugging(GRD_DEBUG_LIFETIMES) && t != NULL && !grd_lifetimes_dropped(t, "grd_scope_give"))
        return grd_failed;
    return t == NULL || grd_pool_push(t) ? t : grd_failed;
}
