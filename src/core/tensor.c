/* Defines the failed tensor, which a function returns if it fails (Note [Failed tensor]), and functions that raise errors and set the keys of a
 * tensor. */
#include "core/tensor.h"

#include <math.h>

static const struct grd_object_type failed_type = {.name = "failed tensor", .destroy = grd_object_stay};

/* Note [Failed tensor]
 * A failed operator returns the failed tensor. It has a storage and one element, NaN, so that code which uses the tensor before it tests for the
 * error reads valid memory. Its reference counts are immortal, so that it is never freed. */
static float failed_element = NAN;
struct grd_block grd_failed_block = {
    .tensor = {.object = {&failed_type, GRD_IMMORTAL},
               .keys = 1u << GRD_KEY_CPU,
               .dtype = GRD_FLOAT32,
               .layout = GRD_STRIDED,
               .device = GRD_DEVICE_CPU,
               .device_index = -1,
               .flags = GRD_FLAG_CONTIGUOUS | GRD_FLAG_CANONICAL,
               .itemsize = sizeof failed_element,
               .storage = &grd_failed_block.storage,
               .data = (char *)&failed_element,
               .numel = 1,
               .sizes = grd_failed_block.tensor.inline_dims,
               .strides = grd_failed_block.tensor.inline_dims},
    .storage = {.object = {&failed_type, GRD_IMMORTAL}, .data = &failed_element, .bytes = sizeof failed_element, .device = GRD_DEVICE_CPU},
};

grd_tensor *grd_failed_tensor(void)
{
    return &grd_failed_block.tensor;
}

grd_tensor *grd_fail(grd_error_code code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    grd_raise_list(code, format, arguments);
    va_end(arguments);
    return grd_failed;
}

bool grd_raise_batch_data(void)
{
    return grd_raise(GRD_ERROR_RUNTIME, "Cannot access data pointer of Tensor that doesn't have storage");
}

void grd_mark_batch(grd_tensor *t)
{
    const grd_tensor *physical = grd_physical(t);
    const bool marked = grd_marked_requires_grad(physical) || (physical->base != NULL && grd_marked_requires_grad(physical->base));
    t->keys = 1u << GRD_KEY_BATCH | (marked ? 1u << GRD_KEY_AUTOGRAD : 0);
}

void grd_mark_requires_grad(grd_tensor *t, bool requires_grad)
{
    const grd_keyset bit = 1u << GRD_KEY_AUTOGRAD;
    /* A view counts as requiring a gradient if its base requires one. In this case the key of the view is not set, because setting it would write to
     * memory that other threads read. */
    if (requires_grad && !grd_marked_requires_grad(t) && (t->base == NULL || !grd_marked_requires_grad(t->base)))
        __atomic_fetch_or(&t->keys, bit, __ATOMIC_RELAXED);
    else if (!requires_grad)
        __atomic_fetch_and(&t->keys, ~bit, __ATOMIC_RELAXED);
}
