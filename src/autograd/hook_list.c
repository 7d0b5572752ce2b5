/* Manages the lists of hooks of nodes, and the table of handles by which a user removes a hook. One lock (table.lock) protects all lists and the
 * table. */
#include "autograd/hook_list.h"

#include "base/fork.h"
#include "base/memory.h"

#include <pthread.h>
#include <string.h>

/* The low SLOT_BITS bits of a handle are the index of the hook in the table. The other bits are grd_hook.order, so a new hook at an index that
 * was used before gets a new handle. */
enum { SLOT_BITS = 24 };

/* The table in which a hook is found by its handle. */
static struct {
    pthread_mutex_t lock;
    struct grd_hook **slots; /* array of `capacity` hooks; NULL at an index that is free */
    int64_t capacity, live;  /* capacity: number of slots; live: number of used slots */
    uint32_t cursor;         /* the index, modulo the capacity, at which the search for a free slot begins */
    uint64_t order;          /* number of hooks that were registered so far */
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

void grd_hooks_init(void)
{
    static struct grd_held_lock held = {.lock = &table.lock};
    grd_hold_around_fork(&held);
}

/* ---- The table. The caller holds the lock --------------------------------------------------------------------------------------------- */
static bool grow_table(void)
{
    const int64_t old = table.capacity;
    if (old >= 1 << SLOT_BITS)
        return grd_raise(GRD_ERROR_RUNTIME, "too many hooks");
    if (!grd_reserve(&table.slots, old + 1, &table.capacity, sizeof *table.slots))
        return false;
    memset(table.slots + old, 0, (size_t)(table.capacity - old) * sizeof *table.slots);
    table.cursor = (uint32_t)old;
    return true;
}

/* Puts the hook at a free index of the table and sets its handle. False, with the error raised, on failure. */
static bool enter(struct grd_hook *hook)
{
    if (table.live == table.capacity && !grow_table())
        return false;
    while (table.slots[table.cursor % table.capacity] != NULL)
        table.cursor++;
    const uint32_t slot = (uint32_t)(table.cursor++ % table.capacity);
    table.slots[slot] = hook;
    table.live++;
    hook->handle = hook->order << SLOT_BITS | slot;
    return true;
}

/* Removes the hook from the table, if it has a handle, and marks the hook as being in no list. */
static void leave(struct grd_hook *hook)
{
    hook->list = NULL;
    if (hook->handle == 0)
        return;
    table.slots[hook->handle & ((1u << SLOT_BITS) - 1)] = NULL;
    hook->handle = 0;
    if (--table.live == 0) {
        grd_free(table.slots, (size_t)table.capacity * sizeof *table.slots);
        table.slots = NULL;
        table.capacity = 0;
        table.cursor = 0;
    }
}

/* Appends the hook to the list. */
static void append(struct grd_hooks *list, struct grd_hook *hook)
{
    struct grd_hook *_Atomic *end = &list->first;
    while (*end != NULL)
        end = &(*end)->next;
    *end = hook;
    hook->list = list;
}

/* Removes the hook from its list and, if it has a handle, from the table of handles. */
static void unlink_hook(struct grd_hook *hook)
{
    struct grd_hook *_Atomic *link = &hook->list->first;
    while (*link != hook)
        link = &(*link)->next;
    *link = hook->next;
    leave(hook);
}

/* ---- Lists --------------------------------------------------------------------------------------------------------------------- */
static void hook_destroy(struct grd_object *object)
{
    struct grd_hook *hook = (struct grd_hook *)object;
    grd_release_context(hook->release, hook->context);
    grd_free(hook, sizeof *hook);
}

static const struct grd_object_type hook_type = {.name = "hook", .destroy = hook_destroy};

uint64_t grd_hooks_add(struct grd_hooks *list, struct grd_hook description)
{
    struct grd_hook *hook = grd_alloc(sizeof *hook);
    if (hook == NULL)
        return 0;
    *hook = description;
    hook->object.type = &hook_type;
    atomic_init(&hook->object.refs, 1);
    pthread_mutex_lock(&table.lock);
    hook->order = ++table.order;
    bool ok = hook->kind == GRD_HOOK_RETAIN || hook->kind == GRD_HOOK_TRACE || enter(hook);
    uint64_t handle = ok && hook->handle ? hook->handle : ok;
    if (ok)
        append(list, hook);
    pthread_mutex_unlock(&table.lock);
    if (!ok)
        grd_free(hook, sizeof *hook);
    return handle;
}

/* Returns the first hook in the list with the kind `kind` and the context `context`. If `context` is NULL, the hook may have any context. Returns
 * NULL if there is no such hook. The caller holds the lock. */
static struct grd_hook *first_hook(const struct grd_hooks *hooks, enum grd_hook_kind kind, const void *context)
{
    struct grd_hook *hook = hooks->first;
    while (hook != NULL && (hook->kind != kind || (context != NULL && hook->context != context)))
        hook = hook->next;
    return hook;
}

void *grd_hooks_context(struct grd_hooks *hooks, enum grd_hook_kind kind)
{
    pthread_mutex_lock(&table.lock);
    const struct grd_hook *hook = first_hook(hooks, kind, NULL);
    void *context = hook != NULL ? hook->context : NULL;
    pthread_mutex_unlock(&table.lock);
    return context;
}

void grd_hooks_remove(struct grd_hooks *hooks, enum grd_hook_kind kind, const void *context)
{
    pthread_mutex_lock(&table.lock);
    struct grd_hook *hook = first_hook(hooks, kind, context);
    if (hook != NULL)
        unlink_hook(hook);
    pthread_mutex_unlock(&table.lock);
    grd_object_drop(hook);
}

void grd_hook_remove(uint64_t handle)
{
    uint32_t slot = handle & ((1u << SLOT_BITS) - 1);
    struct grd_hook *hook = NULL;
    pthread_mutex_lock(&table.lock);
    if (handle != 0 && slot < table.capacity && table.slots[slot] != NULL && table.slots[slot]->handle == handle) {
        hook = table.slots[slot];
        unlink_hook(hook);
    }
    pthread_mutex_unlock(&table.lock);
    grd_object_drop(hook);
}

void grd_hooks_clear(struct grd_hooks *hooks)
{
    if (hooks->first == NULL)
        return;
    pthread_mutex_lock(&table.lock);
    struct grd_hook *hook = hooks->first;
    hooks->first = NULL;
    for (struct grd_hook *h = hook; h != NULL; h = h->next)
        leave(h);
    pthread_mutex_unlock(&table.lock);
    while (hook != NULL) {
        struct grd_hook *next = hook->next;
        grd_object_drop(hook);
        hook = next;
    }
}

struct grd_hooks_found grd_hooks_find(struct grd_hooks *hooks, enum grd_hook_kind kind)
{
    struct grd_hooks_found found = {NULL, 0};
    if (hooks->first == NULL)
        return found;
    pthread_mutex_lock(&table.lock);
    int64_t n = 0;
    for (const struct grd_hook *hook = hooks->first; hook != NULL; hook = hook->next)
        n += hook->kind == kind;
    bool ok = n > 0 && (found.hooks = grd_pool_alloc((size_t)n * sizeof(struct grd_hook *))) != NULL;
    for (struct grd_hook *hook = hooks->first; ok && hook != NULL; hook = hook->next)
        if (hook->kind == kind && (ok = grd_pool_push(grd_object_keep(hook))))
            found.hooks[found.n++] = hook;
    pthread_mutex_unlock(&table.lock);
    if (!ok)
        found.n = 0;
    return found;
}

int grd_hooks_visit(struct grd_hooks *hooks, grd_context_visitor *visit, void *arg)
{
    int result = 0;
    if (hooks->first == NULL)
        return 0;
    pthread_mutex_lock(&table.lock);
    for (struct grd_hook *hook = hooks->first; result == 0 && hook != NULL; hook = hook->next)
        if (hook->kind != GRD_HOOK_RETAIN && hook->kind != GRD_HOOK_TRACE)
            result = visit(hook->context, hook->release, arg);
    pthread_mutex_unlock(&table.lock);
    return result;
}
