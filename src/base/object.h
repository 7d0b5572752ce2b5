/* Reference-counted objects, and the pool of each thread: a stack of references to temporaries. A scope owns the references that were pushed after
 * it was opened.
 * Invariants
 * - The first member of an object is struct grd_object. Its reference count is the sum of the weights of its owners. Each reference in a pool is
 *   an owner.
 * - Most owners have weight 1. A special kind of owner, such as a view, has a larger weight, so that the count shows how many owners of this kind
 *   there are.
 * - An immortal object has the reference count GRD_IMMORTAL, which never changes. */
#ifndef GRD_BASE_OBJECT_H
#define GRD_BASE_OBJECT_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/thread.h"
#include "gradus/runtime.h"

/* The reference count of an immortal object. An object with a negative count is never destroyed. */
#define GRD_IMMORTAL INT64_MIN

struct grd_object;

struct grd_object_type {
    const char *name;
    void (*destroy)(struct grd_object *object); /* called when the last owner has dropped the object */
    /* frees the object; `destroy` passes this function to grd_object_end, which may delay the call; NULL if the type does not use grd_object_end */
    void (*finish)(struct grd_object *object);
    /* called after the sizes or dtype of the data that this object describes have changed in place; may be NULL */
    void (*reshaped)(struct grd_object *object);
};

struct grd_object {
    const struct grd_object_type *type;
    _Atomic int64_t refs;
};

static inline bool grd_object_immortal(const void *object)
{
    return atomic_load_explicit(&((const struct grd_object *)object)->refs, memory_order_relaxed) < 0;
}

/* Adds an owner to an object by increasing its reference count by `weight`, which is 1 for most owners and larger for special ones such as views.
 * Returns the object. */
static inline void *grd_object_keep_as(void *object, int64_t weight)
{
    if (GRD_LIKELY(!grd_object_immortal(object)))
        atomic_fetch_add_explicit(&((struct grd_object *)object)->refs, weight, memory_order_relaxed);
    return object;
}

/* Removes an owner whose weight in the reference count is `weight`, and destroys the object if it has no other owner. If the object has only this
 * owner, the atomic decrement is skipped, because no other thread can reach the object. */
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

/* True if the object has exactly one owner and this owner has added `weight` to the reference count. */
static inline bool grd_object_owned_as(const void *object, int64_t weight)
{
    return atomic_load_explicit(&((const struct grd_object *)object)->refs, memory_order_acquire) == weight;
}

static inline bool grd_object_unique(const void *object)
{
    return grd_object_owned_as(object, 1);
}

/* The `destroy` function of immortal objects. Should the reference count of such an object ever become 0, this function sets it to GRD_IMMORTAL
 * again. */
void grd_object_stay(struct grd_object *object);

/* Note [Chains of owners]
 * Gradients, graphs and hooks form chains of objects in which each owns the next one. A chain can be as long as memory allows. If each object
 * freed the next by a nested call, a long chain would overflow the stack.
 * Therefore the `destroy` functions of three types call grd_object_end: nodes of the graph, autograd metadata, and storages whose memory belongs
 * to the user. While a thread frees such an object, further objects of these types that lose their last owner wait in a list of the thread. A
 * chain has only a bounded number of other objects between two objects of these types. */

/* Frees the objects in this thread's list of waiting objects (Note [Chains of owners]) until the list is empty. */
void grd_object_end_waiting(void);

/* Frees `object` by calling `finish`, a function of its type. If this thread is already freeing an object in this way, adds `object` to the
 * thread's list of waiting objects instead; see Note [Chains of owners]. */
GRD_INLINE void grd_object_end(struct grd_object *object, void (*finish)(struct grd_object *object))
{
    if (grd_thread.is_ending) {
        /* The reference count of an object without owners is not used any more, so it holds the link to the next waiting object. */
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

/* Enlarges the array of this thread's scope pool, the stack of references that open scopes own. On failure raises MemoryError and returns false. */
bool grd_pool_grow(void);

/* Moves one reference to `object` from the caller to this thread's innermost scope. On failure drops the reference and returns false, with
 * MemoryError. */
static inline bool grd_pool_push(void *object)
{
    if (GRD_UNLIKELY(grd_thread.pool_top == grd_thread.pool_capacity) && !grd_pool_grow()) {
        grd_object_drop(object);
        return false;
    }
    grd_thread.pool[grd_thread.pool_top++] = object;
    return true;
}

/* Returns the height of this thread's pool (the stack of references that open scopes own). This number is the mark of a scope that begins now. */
static inline int64_t grd_pool_mark(void)
{
    return grd_thread.pool_top;
}

/* Drops all references in this thread's stack of temporaries (the pool) at index `mark` and above. */
void grd_pool_release(int64_t mark);

/* Ends a scope that began at index `mark` of this thread's pool: drops its references, except one to `object`, which the enclosing scope then owns.
 * If the scope has no reference to `object`, the enclosing scope gets a new one. But if `object` is immortal, or if the last reference of the
 * enclosing scope is already to `object`, the enclosing scope gets no reference. Returns false, with MemoryError, if the pool cannot grow. */
bool grd_pool_return_slow(int64_t mark, void *object);

/* Ends a scope that began at index `mark` of this thread's pool: drops its references except one to `object`, which the enclosing scope then owns.
 * Returns false, with MemoryError, on failure. Fast if this is the scope's only reference. */
static inline bool grd_pool_return(int64_t mark, void *object)
{
    if (GRD_LIKELY(grd_thread.pool_top == mark + 1 && grd_thread.pool[mark] == object))
        return true;
    return grd_pool_return_slow(mark, object);
}

/* Ends a scope that began at index `mark` of this thread's pool: drops its references, except one to each of the `n` objects, which the enclosing
 * scope then owns. If the pool cannot grow, drops the objects that do not fit and returns false, with MemoryError. */
bool grd_pool_return_many(int64_t mark, void *const *objects, int64_t n);

/* Returns `size` bytes, aligned to 16, that live until the innermost scope closes. Used for lists of results, for example. Returns NULL, with
 * MemoryError, on failure. */
void *grd_pool_alloc(size_t size);
/* Returns memory for `n` elements of `size` bytes each (and for at least one element) that lives until the innermost scope closes. Returns NULL,
 * with MemoryError, on failure, also if the number of bytes does not fit in size_t. */
void *grd_pool_array(int64_t n, size_t size);

#endif
