/* Makes wrappers: tensors on the meta device whose storage owns an object of another library. The type of this object decides how operators run
 * on the wrapper; see dispatch/device.c.
 *
 * Invariant: the storage of a wrapper, and no other storage, has release_content as its release function. */
#include "core/wrapper.h"

#include "base/memory.h"
#include "core/given.h"
#include "core/new.h"
#include "core/tensor.h"

struct content {
    const grd_wrapper_type *type;
    void *own;
};

static void release_content(void *context)
{
    struct content *content = context;
    if (content->type->release != NULL)
        content->type->release(content->own);
    grd_free(content, sizeof *content);
}

grd_tensor *grd_wrap(const grd_wrapper_type *type, grd_dims sizes, grd_dtype dtype, void *content)
{
    if (grd_pending())
        return grd_failed;
    if (type == NULL || type->name == NULL || type->kernel == NULL)
        return grd_fail(GRD_ERROR_TYPE, "grd_wrap: argument 'type' must have a name and a kernel");
    struct content *held = grd_alloc(sizeof *held);
    if (held == NULL)
        return grd_failed;
    grd_tensor *t = grd_new(sizes, dtype, GRD_META);
    if (grd_is_failed(t)) {
        grd_free(held, sizeof *held);
        return grd_failed;
    }
    *held = (struct content){type, content};
    t->storage->release = release_content;
    t->storage->context = held;
    t->keys |= 1u << GRD_KEY_WRAPPER;
    return t;
}

const grd_wrapper_type *grd_wrapper_type_of(const grd_tensor *t)
{
    return t->storage->release == release_content ? ((const struct content *)t->storage->context)->type : NULL;
}

void *grd_wrapper_content(const grd_tensor *t, const grd_wrapper_type *type)
{
    const bool given = t != NULL && type != NULL && grd_given(t, "grd_wrapper_content", "t");
    return given && grd_wrapper_type_of(t) == type ? ((const struct content *)t->storage->context)->own : NULL;
}
