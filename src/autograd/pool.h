/* Moves references out of the pool of the current scope. */
#ifndef GRD_AUTOGRAD_POOL_H
#define GRD_AUTOGRAD_POOL_H

#include "base/object.h"
#include "core/tensor.h"

/* Returns an owned reference to the tensor. Takes the pool's own reference if that is among the last entries above the mark, else adds one. */
static inline grd_tensor *grd_pool_take(grd_tensor *t, int64_t mark)
{
    enum { SEARCHED = 8 };
    void **pool = grd_thread.pool;
    const int64_t top = grd_thread.pool_top - 1, last = mark > top - SEARCHED ? mark : top - SEARCHED;
    for (int64_t i = top; i >= last; i--)
        if (pool[i] == t) {
            pool[i] = pool[top];
            grd_thread.pool_top = top;
            return t;
        }
    return grd_object_keep(t);
}

/* Releases the pool entries above the mark. Inline, since there are often none. */
static inline void grd_pool_release_above(int64_t mark)
{
    if (grd_thread.pool_top > mark)
        grd_pool_release(mark);
}

#endif
