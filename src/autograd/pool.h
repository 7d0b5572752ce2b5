/* Takes references to tensors out of the pool of this thread. The pool is the stack of the references that open scopes (grd_scope) own. */
#ifndef GRD_AUTOGRAD_POOL_H
#define GRD_AUTOGRAD_POOL_H

#include "base/object.h"
#include "core/tensor.h"

/* Returns `t` with a reference that the caller owns. Looks for a reference to `t` among the last few references in this thread's pool, but only at
 * index `mark` and above. If there is one, takes it out of the pool. Otherwise adds a reference. */
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

/* Drops the references at index `mark` and above in this thread's pool, i.e. frees the temporary tensors that were made since `mark` was read.
 * Inlined, because usually there are no such references and only the comparison runs. */
static inline void grd_pool_release_above(int64_t mark)
{
    if (grd_thread.pool_top > mark)
        grd_pool_release(mark);
}

#endif
