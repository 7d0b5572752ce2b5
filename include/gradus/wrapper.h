/* Wrappers: tensors that hold an object of another library instead of elements.
 *
 * A wrapper has sizes, a dtype, and content that only the code that made it can interpret. It has no elements in memory: it is on the meta device,
 * and it prints as the name of its type. An operator that gets a wrapper calls the kernel of the wrapper's type before autograd and before any
 * device. */
#ifndef GRADUS_WRAPPER_H
#define GRADUS_WRAPPER_H

#include "gradus/dispatch.h"
#include "gradus/types.h"

GRD_BEGIN_DECLS

typedef struct grd_wrapper_type {
    const char *name; /* "encrypted", as it is printed */
    /* Runs any operator, or refuses it with grd_wrapper_refuse; its context is NULL. Other arguments may be ordinary tensors or wrappers of other
     * types; the type of the first wrapper among the arguments decides which kernel is called. */
    grd_boxed_kernel *kernel;
    void (*release)(void *content); /* called once, when the wrapper is freed; may be NULL */
} grd_wrapper_type;

/* Returns a wrapper that owns `content`. On failure it returns grd_failed, and the caller still owns `content`. `type` must outlive the wrapper. */
GRD_API grd_tensor *grd_wrap(const grd_wrapper_type *type, grd_dims_view sizes, grd_dtype dtype, void *content);
/* Returns the content of a wrapper of that type, valid while the tensor lives; NULL, without an error, for all other tensors. */
GRD_API void *grd_wrapper_content(const grd_tensor *t, const grd_wrapper_type *type);
/* Sets the NotImplementedError "Could not run 'mm' with arguments from the 'encrypted' wrapper." */
GRD_API void grd_wrapper_refuse(const grd_wrapper_type *type, const grd_op *op);

GRD_END_DECLS
#endif
