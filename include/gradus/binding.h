/* Support for bindings of garbage-collected languages: each tensor can point to the one object that represents it in the language.
 *
 * While the language refers to the object, the object owns a reference to the tensor, and the tensor points to the object without owning it. When
 * the language drops its last reference to an object that has state of its own, e.g. attributes, and the library still uses the tensor, ownership is
 * reversed: the tensor owns the object. The binding must not call these functions for one tensor on two threads at once; a global interpreter lock
 * is enough. */
#ifndef GRADUS_BINDING_H
#define GRADUS_BINDING_H

#include "gradus/runtime.h"
#include "gradus/types.h"

GRD_BEGIN_DECLS

/* Embedded in the language's object. `release` is called, on any thread, when a tensor that owns the object is freed. Bindings compare `release` to
 * recognize their own objects. */
typedef struct grd_binding grd_binding;
struct grd_binding {
    void (*release)(grd_binding *binding);
};

/* Returns the object that represents the tensor, or NULL. */
GRD_API grd_binding *grd_binding_of(const grd_tensor *t);
/* Sets the object that represents the tensor; NULL removes it. If `owned`, the tensor owns the object from now on. The previous object is not
 * released. */
GRD_API void grd_binding_set(grd_tensor *t, grd_binding *binding, bool owned);
/* True if the tensor owns its object. */
GRD_API bool grd_binding_is_owned(const grd_tensor *t);
/* True if the caller's kept reference is the only one: no graph, no view, no scope and no other holder has the tensor. */
GRD_API bool grd_is_sole_owner(const grd_tensor *t);
/* Closes the scope, as grd_scope_close, but the reference that it held of `t` becomes the caller's: grd_keep and grd_scope_close in one. Returns
 * `t`. */
GRD_API grd_tensor *grd_scope_take(grd_scope scope, grd_tensor *t);
/* Gives a reference that the caller owns to the innermost scope, which drops it when it closes. Returns `t`. */
GRD_API grd_tensor *grd_scope_give(grd_tensor *t);

GRD_END_DECLS
#endif
