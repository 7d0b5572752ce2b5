/* Declares wrappers, which are tensors that hold an object of another library instead of elements.
 *
 * A wrapper has sizes, a dtype, and content that only the code that made the wrapper can interpret. It has no elements in memory: it is on the
 * meta device and prints as the name of its type. An operator that gets a wrapper calls the kernel of the wrapper's type, instead of recording a
 * node for autograd or calling a kernel of the device. */
#ifndef GRADUS_WRAPPER_H
#define GRADUS_WRAPPER_H

#include "gradus/dispatch.h"
#include "gradus/types.h"

GRD_BEGIN_DECLS

typedef struct grd_wrapper_type {
    const char *name; /* e.g. "encrypted"; shown when a wrapper is printed */
    /* The kernel that is called for every operator with a wrapper of this type among its arguments. It computes the results or calls
     * grd_wrapper_refuse. Its `context` argument is NULL. Other arguments may be ordinary tensors or wrappers of other types; the first wrapper
     * among the arguments decides which kernel is called. */
    grd_boxed_kernel *kernel;
    void (*release)(void *content); /* called once, with the content, when the wrapper is freed; may be NULL */
} grd_wrapper_type;

/* Returns a wrapper that owns `content`. On failure it returns grd_failed, and the caller still owns `content`. `type` must outlive the wrapper. */
GRD_API grd_tensor *grd_wrap(const grd_wrapper_type *type, grd_dims_view sizes, grd_dtype dtype, void *content);
/* Returns the content of `t`, which is valid while `t` lives, if `t` is a wrapper of type `type`. Returns NULL, without an error, for any other
 * tensor. */
GRD_API void *grd_wrapper_content(const grd_tensor *t, const grd_wrapper_type *type);
/* Raises NotImplementedError "Could not run 'mm' with arguments from the 'encrypted' wrapper." */
GRD_API void grd_wrapper_refuse(const grd_wrapper_type *type, const grd_op *op);

GRD_END_DECLS
#endif
