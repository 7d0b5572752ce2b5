/* Begins and ends the vmap of a thread, and converts between tensors and batch tensors for the public API. A call of vmap is called a level.
 *
 * Invariant: a batch tensor can only be used in the level that made it; any other use raises an error. */
#include "core/given.h"
#include "core/new.h"
#include "core/shape.h"
#include "core/tensor.h"
#include "transform/transform.h"

#include <stdatomic.h>

#include "gen/uses/transform/level.h"

bool grd_batch_begin(int64_t size, grd_randomness randomness)
{
    static _Atomic uint64_t levels;
    if (grd_pending())
        return false;
    if (grd_thread.level.id != 0)
        return grd_raise(GRD_ERROR_RUNTIME, "vmap: nested vmap is not supported");
    if (size < 0)
        return grd_raise(GRD_ERROR_VALUE, "grd_batch_begin: argument 'size' must not be negative, not %lld", (long long)size);
    if ((unsigned)randomness > GRD_RANDOMNESS_SAME)
        return grd_raise(GRD_ERROR_VALUE, "grd_batch_begin: argument 'randomness' is no grd_randomness: %d", (int)randomness);
    grd_thread.level = (struct grd_level){atomic_fetch_add(&levels, 1) + 1, size, randomness};
    grd_thread.include |= GRD_BATCH_BIT;
    return true;
}

void grd_batch_end(void)
{
    if (grd_thread.level.id == 0)
        return;
    grd_thread.level = (struct grd_level){0};
    grd_thread.include &= ~GRD_BATCH_BIT;
}

int64_t grd_batch_size(void)
{
    return grd_thread.level.id != 0 ? grd_thread.level.size : -1;
}

grd_randomness grd_batch_randomness(void)
{
    return (grd_randomness)grd_thread.level.randomness;
}

bool grd_is_batched(const grd_tensor *t)
{
    return t != NULL && grd_given(t, "grd_is_batched", "t") && grd_is_batch(t);
}

bool grd_batch_usable(const grd_tensor *t)
{
    return ((const struct grd_batch *)t)->level == grd_thread.level.id ||
           grd_raise(GRD_ERROR_RUNTIME, "vmap: a batch tensor is used outside of the vmap that made it");
}

/* True if the public function `function` can use `t` in this thread's current call of vmap. Otherwise raises an error. */
static bool check(const grd_tensor *t, const char *function)
{
    if (grd_pending() || !grd_given(t, function, "t"))
        return false;
    if (grd_thread.level.id == 0)
        return grd_raise(GRD_ERROR_RUNTIME, "%s: no vmap is active on this thread", function);
    return !grd_is_batch(t) || grd_batch_usable(t);
}

/* Moves dimension `from` of a physical tensor, i.e. of the tensor that holds a whole batch, to position `to`. The BATCH key is excluded during
 * the call, so that vmap's rules do not change the dimension numbers. */
static grd_tensor *move(grd_tensor *t, int64_t from, int64_t to)
{
    const uint32_t exclude = grd_thread.exclude;
    grd_thread.exclude |= GRD_BATCH_BIT;
    grd_tensor *result = grd_movedim(t, grd_dims(from), grd_dims(to));
    grd_thread.exclude = exclude;
    return result;
}

grd_tensor *grd_batch_front(grd_tensor *t)
{
    int64_t sizes[GRD_MAX_DIMS + 1];
    if (grd_is_batch(t))
        return grd_physical(t);
    sizes[0] = grd_thread.level.size;
    for (int i = 0; i < t->ndim; i++)
        sizes[i + 1] = t->sizes[i];
    const uint32_t exclude = grd_thread.exclude;
    grd_thread.exclude |= GRD_BATCH_BIT;
    grd_tensor *result = grd_expand(t, grd_dims_from(sizes, t->ndim + 1));
    grd_thread.exclude = exclude;
    return result;
}

grd_tensor *grd_batch(grd_tensor *t, int64_t dim)
{
    if (!check(t, "grd_batch"))
        return grd_failed;
    if (grd_is_batch(t))
        return grd_fail(GRD_ERROR_RUNTIME, "grd_batch: argument 't' is a batch tensor already: nested vmap is not supported");
    if (t->ndim == 0)
        return grd_fail(GRD_ERROR_RUNTIME, "grd_batch: a zero-dimensional tensor has no batch dimension");
    if (!grd_shape_wrap_dim(dim, t->ndim, &dim))
        return grd_failed;
    if (t->sizes[dim] != grd_thread.level.size)
        return grd_fail(GRD_ERROR_RUNTIME, "grd_batch: dimension %lld has size %lld, the batch has %lld", (long long)dim,
                        (long long)t->sizes[dim], (long long)grd_thread.level.size);
    const int64_t mark = grd_pool_mark();
    return grd_leave_number(mark, grd_new_batch(move(t, dim, 0), grd_thread.level.id));
}

grd_tensor *grd_batch_expand(grd_tensor *t)
{
    if (!check(t, "grd_batch_expand"))
        return grd_failed;
    if (grd_is_batch(t))
        return t;
    const int64_t mark = grd_pool_mark();
    return grd_leave_number(mark, grd_new_batch(grd_batch_front(t), grd_thread.level.id));
}

grd_tensor *grd_unbatch(grd_tensor *t, int64_t dim)
{
    if (!check(t, "grd_unbatch") || !grd_shape_wrap_dim(dim, t->ndim + 1, &dim))
        return grd_failed;
    const int64_t mark = grd_pool_mark();
    return grd_leave_number(mark, move(grd_batch_front(t), 0, dim));
}

grd_tensor *grd_batch_physical(grd_tensor *t)
{
    return grd_given(t, "grd_batch_physical", "t") ? grd_physical(t) : grd_failed;
}
