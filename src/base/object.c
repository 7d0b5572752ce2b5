/* The scope pool of a thread: a stack of references to objects. A scope is a mark, the height of the stack when the scope was opened. Invariant: each
 * entry of the stack below pool_top holds one reference. Dropping the reference of an entry may push and pop entries above that entry, but does not
 * change entries below it. */
#include "base/object.h"

#include "base/cold.h"
#include "base/error.h"
#include "base/memory.h"

void grd_object_stay(struct grd_object *object)
{
    atomic_store_explicit(&object->refs, GRD_IMMORTAL, memory_order_relaxed);
}

void grd_object_end_waiting(void)
{
    while (grd_thread.waiting != NULL) {
        struct grd_object *object = grd_thread.waiting;
        grd_thread.waiting = (struct grd_object *)(intptr_t)atomic_load_explicit(&object->refs, memory_order_relaxed);
        object->type->finish(object);
    }
}

bool grd_pool_grow(void)
{
    enum { FIRST = 256 };
    /* Allocate the rarely used part of the thread's state first. When a thread ends, it frees its pool only if it has this part. */
    if (grd_thread_get_cold() == NULL)
        return grd_raise(GRD_ERROR_MEMORY, "cannot allocate the state of a thread");
    const int64_t wanted = grd_thread.pool_capacity == 0 ? FIRST : 2 * grd_thread.pool_capacity;
    return grd_reserve(&grd_thread.pool, wanted, &grd_thread.pool_capacity, sizeof *grd_thread.pool);
}

static __attribute__((noinline)) void drop_shared(void *object)
{
    grd_object_drop_as(object, 1);
}

void grd_pool_release(int64_t mark)
{
    while (grd_thread.pool_top > mark) {
        struct grd_object *object = grd_thread.pool[--grd_thread.pool_top];
        if (GRD_LIKELY(grd_object_unique(object)))
            object->type->destroy(object);
        else
            drop_shared(object);
    }
}

bool grd_pool_return_slow(int64_t mark, void *object)
{
    void **pool = grd_thread.pool;
    /* The enclosing scope gets no reference if the object is immortal, or if pool[mark - 1], the last reference of the enclosing scope, already is a
     * reference to the object. Otherwise a loop that returns the same object in each pass would fill the pool. */
    if (grd_object_immortal(object) || (mark > 0 && pool[mark - 1] == object)) {
        grd_pool_release(mark);
        return true;
    }
    for (int64_t i = grd_thread.pool_top - 1; i >= mark && i >= 0; i--) {
        if (pool[i] == object) {
            pool[i] = pool[mark];
            pool[mark] = object;
            grd_pool_release(mark + 1);
            return true;
        }
    }
    grd_object_keep(object);
    grd_pool_release(mark);
    return grd_pool_push(object);
}

bool grd_pool_return_many(int64_t mark, void *const *objects, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        grd_object_keep(objects[i]);
    /* `objects` may be in memory that is freed when the references from `mark` on are dropped. So this function first pushes the references to the
     * objects on top of the pool, then swaps them down to index `mark`, and then drops the rest. */
    int64_t first = grd_thread.pool_top;
    bool ok = true;
    for (int64_t i = 0; i < n; i++)
        ok = grd_pool_push(objects[i]) && ok;
    int64_t moved = grd_thread.pool_top - first;
    for (int64_t lower = mark, i = 0; lower < first && i < moved; lower++, i++) {
        void *object = grd_thread.pool[lower];
        grd_thread.pool[lower] = grd_thread.pool[first + i];
        grd_thread.pool[first + i] = object;
    }
    grd_pool_release(mark + moved);
    return ok;
}

struct pool_block {
    struct grd_object object;
    size_t size;
    _Alignas(16) char data[];
};

static void destroy_pool_block(struct grd_object *object)
{
    struct pool_block *block = (struct pool_block *)object;
    grd_free(block, block->size);
}

static const struct grd_object_type pool_block_type = {.name = "pool block", .destroy = destroy_pool_block};

void *grd_pool_alloc(size_t size)
{
    size_t total = size > SIZE_MAX - sizeof(struct pool_block) ? SIZE_MAX : sizeof(struct pool_block) + size;
    struct pool_block *block = grd_alloc(total);
    if (block == NULL)
        return NULL;
    block->object.type = &pool_block_type;
    atomic_init(&block->object.refs, 1);
    block->size = total;
    return grd_pool_push(block) ? block->data : NULL;
}

void *grd_pool_array(int64_t n, size_t size)
{
    size_t bytes;
    return grd_pool_alloc(n < 1 ? size : __builtin_mul_overflow((size_t)n, size, &bytes) ? SIZE_MAX : bytes);
}
