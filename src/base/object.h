/* Reference-counted objects and the scope pool that owns temporaries.
 * Invariant: an object's first member is struct grd_object; its count is the number of owners, pool slots included. Owners of a kind that
 * must be told apart count for more than 1, with a number of their own above bit 32.
 * An immortal object is made with the count GRD_IMMORTAL, which then never changes. */
#ifndef GRD_BASE_OBJECT_H
#define GRD_BASE_OBJECT_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/thread.h"
#include "gradus/runtime.h"

/* An object whose count is negative is never destroyed. */
#define GRD_IMMORTAL INT64_MIN

struct grd_object;

struct grd_object_type {
    const char *name;
    void (*destroy)(struct grd_object *object);  /* called when the last owner is gone */
    void (*finish)(struct grd_object *object);   /* frees an object that grd_object_end has put off; NULL for types that never are */
    void (*reshaped)(struct grd_object *object); /* its owner has other sizes or another dtype now; NULL for types that do not care */
};

struct grd_object {
    const struct grd_object_type *type;
    _Atomic int64_t refs;
};

static inline bool grd_object_immortal(const void *object)
{
    return atomic_load_explicit(&((const struct grd_object *)object)->refs, memory_order_relaxed) < 0;
}

/* An owner that counts for `weight`: 1, or that of its kind. */
static inline void *grd_object_keep_as(void *object, int64_t weight)
{
    if (GRD_LIKELY(!grd_object_immortal(object)))
        atomic_fetch_add_explicit(&((struct grd_object *)object)->refs, weight, memory_order_relaxed);
    return object;
}

/* A sole owner skips the locked decrement: nobody else can reach the object. */
static inline void grd_object_drop_as(void *object, int64_t weight)
{
    struct grd_object *o = object;
    int64_t refs = atomic_load_explicit(&o->refs, memory_order_acquire);
    if (refs == weight || (refs >= 0 && atomic_fetch_sub_explicit(&o->refs, weight, memory_order_acq_rel) == weight))
        o->type->destroy(o);
}

static inline void *grd_object_keep(void *object)
{
    return grd_object_keep_as(object, 1);
}

static inline void grd_object_drop(void *object)
{
    if (object != NULL)
        grd_object_drop_as(object, 1);
}

static inline bool grd_object_owned_as(const void *object, int64_t weight)
{
    return atomic_load_explicit(&((const struct grd_object *)object)->refs, memory_order_acquire) == weight;
}

static inline bool grd_object_unique(const void *object)
{
    return grd_object_owned_as(object, 1);
}

/* The destroy of an object that is immortal, should its count ever come to 0. */
void grd_object_stay(struct grd_object *object);

/* Note [Chains of owners]
 * Objects own objects that own objects, through gradients, graphs and hooks, as long as memory lasts. If each object freed what it owns by a
 * nested call, a long chain would overflow the stack. So every chain contains objects (nodes, metas, storages that are lent) whose destroy is
 * grd_object_end: while one of them is being freed by a thread, others wait in a list of that thread. Everything between two of them has a
 * bounded depth. */

/* Frees what waits in the thread's list, until it is empty. */
void grd_object_end_waiting(void);

/* Frees an object by `finish`, the one of its type, or puts that off while this thread is freeing another: Note [Chains of owners]. */
GRD_INLINE void grd_object_end(struct grd_object *object, void (*finish)(struct grd_object *object))
{
    if (grd_thread.is_ending) {
        /* Nobody counts a dead object's owners, so its count has room for the link. */
        atomic_store_explicit(&object->refs, (int64_t)(intptr_t)grd_thread.waiting, memory_order_relaxed);
        grd_thread.waiting = object;
        return;
    }
    grd_thread.is_ending = true;
    finish(object);
    if (GRD_UNLIKELY(grd_thread.waiting != NULL))
        grd_object_end_waiting();
    grd_thread.is_ending = false;
}

/* Grows the pool; on failure raises MemoryError and returns false. Cold. */
bool grd_pool_grow(void);

/* Gives one reference of `object` to the innermost scope. On failure drops it and returns false. */
static inline bool grd_pool_push(void *object)
{
    if (GRD_UNLIKELY(grd_thread.pool_top == grd_thread.pool_capacity) && !grd_pool_grow()) {
        grd_object_drop(object);
        return false;
    }
    grd_thread.pool[grd_thread.pool_top++] = object;
    return true;
}

static inline int64_t grd_pool_mark(void)
{
    return grd_thread.pool_top;
}

/* Drops everything above the mark. */
void grd_pool_release(int64_t mark);

/* Drops everything above the mark but moves one reference of `object` out of it; takes a new one when it is not there, nor right below.
 * False, with the error raised, when the pool could not grow. */
bool grd_pool_return_slow(int64_t mark, void *object);

static inline bool grd_pool_return(int64_t mark, void *object)
{
    if (GRD_LIKELY(grd_thread.pool_top == mark + 1 && grd_thread.pool[mark] == object))
        return true;
    return grd_pool_return_slow(mark, object);
}

/* The same for several objects. On failure those that found no room in the pool are dropped. */
bool grd_pool_return_many(int64_t mark, void *const *objects, int64_t n);

/* `size` bytes that live until the innermost scope closes: for result lists. Aligned to 16. NULL, with MemoryError, on failure. */
void *grd_pool_alloc(size_t size);
/* The same for n elements of `size` bytes, at least one: an n whose bytes do not fit in size_t is a MemoryError too. */
void *grd_pool_array(int64_t n, size_t size);

#endif
