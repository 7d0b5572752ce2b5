/* Wrappers: tensors from outside the library that hold something else than elements.
 *
 * A wrapper has sizes and a dtype, and a content that only its maker knows. It has no memory: it lies on the meta device, nothing can read it, and
 * it prints as its name. Every operator that gets one calls the kernel of its type, above all devices and above autograd. */
#ifndef GRADUS_WRAPPER_H
#define GRADUS_WRAPPER_H

#include "gradus/dispatch.h"
#include "gradus/types.h"

GRD_BEGIN_DECLS

typedef struct grd_wrapper_type {
    const char *name; /* "encrypted", as it is printed */
    /* Serves every operator, or refuses it by grd_wrapper_refuse; its context is NULL. Other arguments may be anything: plain tensors, wrappers of other types. Where
     * types are mixed, the first argument that is a wrapper decides. */
    grd_boxed_kernel *kernel;
    void (*release)(void *content); /* once, when the last reference goes; may be NULL */
} grd_wrapper_type;

/* A tensor around `content`, which it owns from then on; on failure (grd_failed) the caller still does. `type` must outlive it. */
GRD_API grd_tensor *grd_wrap(const grd_wrapper_type *type, grd_dims_view sizes, grd_dtype dtype, void *content);
/* The content of a wrapper of that type; NULL, with no error, for all other tensors. Valid while the tensor lives. */
GRD_API void *grd_wrapper_content(const grd_tensor *t, const grd_wrapper_type *type);
/* NotImplementedError "Could not run 'mm' with arguments from the 'encrypted' wrapper." */
GRD_API void grd_wrapper_refuse(const grd_wrapper_type *type, const grd_op *op);

GRD_END_DECLS
#endif
