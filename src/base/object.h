/* Reference-counted objects, and the scope pool of each thread: the stack of references to temporaries that the thread's open scopes own.
 * Invariants
 * - The first member of an object is struct grd_object. Its reference count is the number of owners, where each entry of the pool is an owner.
 * - Owners of a special kind, such as views, add a larger number to the count, their weight, so that the count tells how many owners are of this
 *   kind.
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
    /* frees an object whose end grd_object_end has deferred; NULL for types that do not use grd_object_end */
    void (*finish)(struct grd_object *object);
    /* for an object that holds metadata: called when the sizes or dtype of the data that it describes change in place; may be NULL */
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

/* Adds an owner to an object by increasing its reference count by `weight`: 1, or the weight of a special kind of owner. Returns the object. */
static inline void *grd_object_keep_as(void *object, int64_t weight)
{
    if (GRD_LIKELY(!grd_object_immortal(object)))
        atomic_fetch_add_explicit(&((struct grd_object *)object)->refs, weight, memory_order_relaxed);
    return object;
}

/* Removes an owner that counts `weight` in the reference count, and destroys the object if it has no other owner. If the object has only this owner,
 * the atomic decrement is skipped, because no other thread can reach the object. */
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

/* True if the object has exactly one owner, and that owner counts `weight` in the reference count (1, or the weight of a special kind of owner). */
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
 * Therefore the `destroy` functions of nodes of the graph, autograd metadata, and storages with lent memory call grd_object_end. While a thread
 * frees one of these objects, others that lose their last owner wait in a list of the thread. Between two of these objects a chain has only a
 * bounded number of other objects. */

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

/* Drops all references in this thread's stack of temporaries (the pool) at index `mark` and above, but leaves one reference to `object` at `mark`, so
 * that the enclosing scope owns it. If the stack has no reference to `object` at index mark - 1 or above, a new one is taken. Returns false, with
 * MemoryError, if the stack could not grow. */
bool grd_pool_return_slow(int64_t mark, void *object);

/* Does what grd_pool_return_slow does. The fast path is for the case that the scope owns only one reference, and this is one to `object`. */
static inline bool grd_pool_return(int64_t mark, void *object)
{
    if (GRD_LIKELY(grd_thread.pool_top == mark + 1 && grd_thread.pool[mark] == object))
        return true;
    return grd_pool_return_slow(mark, object);
}

/* Drops all references in this thread's stack of temporaries (the pool) from index `mark` on, but leaves one reference to each of the `n` objects
 * there, so that the enclosing scope owns them. If the stack cannot grow, drops the objects that do not fit and returns false with MemoryError. */
bool grd_pool_return_many(int64_t mark, void *const *objects, int64_t n);

/* Returns `size` bytes, aligned to 16, that live until the innermost scope closes. Used for lists of results, for example. Returns NULL, with
 * MemoryError, on failure. */
void *grd_pool_alloc(size_t size);
/* Returns memory for `n` elements of `size` bytes each (and for at least one element) that lives until the innermost scope closes. Returns NULL,
 * with MemoryError, on failure, also if the number of bytes does not fit in size_t. */
void *grd_pool_array(int64_t n, size_t size);

#endif
