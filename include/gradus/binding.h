/* Bindings of garbage-collected languages: a tensor has a place for the object that stands for it there, and who else owns it.
 *
 * A binding keeps one object per tensor alive in the language, found again by grd_binding_of. While the language holds the object, the object owns
 * a reference of the tensor and the tensor only points to it. When the language lets go of an object that has state worth keeping, and the
 * library still holds the tensor, the roles are swapped: the tensor owns the object.
 * Calls on one tensor are the binding's to serialise (a global lock of its interpreter does). */
#ifndef GRADUS_BINDING_H
#define GRADUS_BINDING_H

#include "gradus/runtime.h"
#include "gradus/types.h"

GRD_BEGIN_DECLS

/* Embedded in the language's object. `release` is called, on any thread, when a tensor goes that owns the object; it also tells whose object it is. */
typedef struct grd_binding grd_binding;
struct grd_binding {
    void (*release)(grd_binding *binding);
};

/* The object that stands for the tensor, or NULL. */
GRD_API grd_binding *grd_binding_of(const grd_tensor *t);
/* Replaces it; NULL takes it away. `owned`: the tensor owns it from now on. What it owned before is not released. */
GRD_API void grd_binding_set(grd_tensor *t, grd_binding *binding, bool owned);
GRD_API bool grd_binding_is_owned(const grd_tensor *t);
/* True if the caller's kept reference is the only one: no graph, no view, no scope and no other holder has the tensor. */
GRD_API bool grd_is_sole_owner(const grd_tensor *t);
/* Closes the scope, as grd_scope_close, but the reference that it held of `t` becomes the caller's: grd_keep and grd_scope_close in one. Returns `t`. */
GRD_API grd_tensor *grd_scope_take(grd_scope scope, grd_tensor *t);
/* The way back: a reference of the caller's becomes one of the innermost scope. Returns `t`. */
GRD_API grd_tensor *grd_scope_give(grd_tensor *t);

GRD_END_DECLS
#endif
