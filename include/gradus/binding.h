/* Supports bindings of garbage-collected languages, where each tensor can point to the one object that represents it in the language.
 *
 * While the language refers to the object, the object owns a reference to the tensor, and the tensor points to the object without owning it. An
 * object that has state of its own, e.g. attributes, can be needed again after the language has dropped its last reference to the object. If the
 * library still uses the tensor when that reference is dropped, ownership is reversed: the tensor owns the object. Two threads must not call these
 * functions for one tensor at the same time. In a language with a global interpreter lock, the lock ensures this. */
#ifndef GRADUS_BINDING_H
#define GRADUS_BINDING_H

#include "gradus/runtime.h"
#include "gradus/types.h"

GRD_BEGIN_DECLS

/* A struct that the binding embeds in its object. `release` is called, on any thread, when a tensor that owns the object is freed. A binding
 * recognizes its own objects by comparing `release` with its own function. */
typedef struct grd_binding grd_binding;
struct grd_binding {
    void (*release)(grd_binding *binding);
};

/* Returns the object that represents the tensor, or NULL. */
GRD_API grd_binding *grd_binding_of(const grd_tensor *t);
/* Sets the object that represents the tensor; NULL removes it. If `owned`, the tensor owns the object from now on. The previous object is not
 * released. */
GRD_API void grd_binding_set(grd_tensor *t, grd_binding *binding, bool owned);
/* True if the tensor owns the object that represents it. */
GRD_API bool grd_binding_is_owned(const grd_tensor *t);
/* True if the only reference to `t` is one that the caller took with grd_keep, so no graph, view, scope or other owner refers to `t`. */
GRD_API bool grd_is_sole_owner(const grd_tensor *t);
/* Takes a reference to `t` for the caller and then closes the scope: grd_keep and grd_scope_close in one call. Returns `t`. */
GRD_API grd_tensor *grd_scope_take(grd_scope scope, grd_tensor *t);
/* Hands the caller's reference to `t` over to the innermost open scope, which drops the reference when it closes. Returns `t`. */
GRD_API grd_tensor *grd_scope_give(grd_tensor *t);

GRD_END_DECLS
#endif
