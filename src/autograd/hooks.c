/* Hooks: functions of the user that see gradients on their way.
 *
 * A hook belongs to the list of a node; that of a leaf is its AccumulateGrad. Lists and the table of handles change under one lock. Hooks are called
 * with the lock released, as a list that was made before the first of them: a hook may remove itself or any other, and register new ones, which takes
 * effect the next time.
 * Hooks run in the order of registration, tensor by tensor. Hooks that keep a gradient (grd_retain_grad) see the result of all other hooks. */
#include "autograd/hooks.h"
#include "autograd/node.h"
#include "autograd/variable.h"
#include "base/fork.h"
#include "core/device.h"
#include "core/given.h"
#include "core/shape.h"
#include "core/tensor.h"
#include "gen/uses/autograd/hooks.h"

#include <pthread.h>
#include <string.h>

enum hook_kind { HOOK_TENSOR, HOOK_RETAIN, HOOK_PRE, HOOK_POST, HOOK_ACCUMULATED, HOOK_TRACE };

struct grd_hook {
    struct grd_object object;
    struct grd_hook *_Atomic next;
    struct grd_hooks *list; /* the list that holds the hook; NULL after removal */
    uint64_t order;
    uint64_t handle; /* 0 if the hook is not in the table of handles */
    enum hook_kind kind;
    uint32_t output;
    union {
        grd_tensor_hook *tensor;
        grd_node_hook *node;
        void (*accumulated)(grd_tensor *leaf, void *context);
    } call;
    void *context;
    void (*release)(void *context);
};

/* A handle is the hook's number with its place in the table in the low bits. */
enum { SLOT_BITS = 24 };

static struct {
    pthread_mutex_t lock;
    struct grd_hook **slots;
    int64_t capacity, live;
    uint32_t cursor;
    uint64_t order;
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

void grd_hooks_init(void)
{
    static struct grd_held_lock held = {.lock = &table.lock};
    grd_hold_around_fork(&held);
}

/* ---- The table, under its lock --------------------------------------------------------------------------------------------- */
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

static void append(struct grd_hooks *list, struct grd_hook *hook)
{
    struct grd_hook *_Atomic *end = &list->first;
    while (*end != NULL)
        end = &(*end)->next;
    *end = hook;
    hook->list = list;
}

static void unlink_hook(struct grd_hook *hook)
{
    struct grd_hook *_Atomic *link = &hook->list->first;
    while (*link != hook)
        link = &(*link)->next;
    *link = hook->next;
    leave(hook);
}

/* ---- Registration ------------------------------------------------------------------------------------------------------------- */
static void hook_destroy(struct grd_object *object)
{
    struct grd_hook *hook = (struct grd_hook *)object;
    grd_release_context(hook->release, hook->context);
    grd_free(hook, sizeof *hook);
}

static const struct grd_object_type hook_type = {.name = "hook", .destroy = hook_destroy};

/* The handle of a new hook, true for one that has none. 0, with the error raised, on failure. */
static uint64_t add(struct grd_hooks *list, struct grd_hook description)
{
    struct grd_hook *hook = grd_alloc(sizeof *hook);
    if (hook == NULL)
        return 0;
    *hook = description;
    hook->object.type = &hook_type;
    atomic_init(&hook->object.refs, 1);
    pthread_mutex_lock(&table.lock);
    hook->order = ++table.order;
    bool ok = hook->kind == HOOK_RETAIN || hook->kind == HOOK_TRACE || enter(hook);
    uint64_t handle = ok && hook->handle ? hook->handle : ok;
    if (ok)
        append(list, hook);
    pthread_mutex_unlock(&table.lock);
    if (!ok)
        grd_free(hook, sizeof *hook);
    return handle;
}

/* Adds a hook to the node that receives the gradient of the tensor. */
static uint64_t add_to_tensor(grd_tensor *t, struct grd_hook description)
{
    struct grd_edge edge;
    if (!grd_needs_grad(t))
        return grd_raise(GRD_ERROR_RUNTIME, "cannot register a hook on a tensor that doesn't require gradient");
    if (description.kind == HOOK_ACCUMULATED && !grd_is_leaf(t))
        return grd_raise(GRD_ERROR_RUNTIME, "post accumulate grad hooks cannot be registered on non-leaf tensors");
    if (!grd_edge_of(t, &edge))
        return 0;
    description.output = edge.output;
    const uint64_t handle = add(&edge.node->hooks, description);
    grd_node_drop(edge.node);
    return handle;
}

uint64_t grd_hook_tensor(grd_tensor *t, grd_tensor_hook *hook, void *context, void (*release)(void *context))
{
    if (grd_pending() || !grd_given(t, "grd_hook_tensor", "t") || !grd_given_pointer((void *)(uintptr_t)hook, "grd_hook_tensor", "hook"))
        return 0;
    return add_to_tensor(t, (struct grd_hook){.kind = HOOK_TENSOR, .call.tensor = hook, .context = context, .release = release});
}

uint64_t grd_hook_node(grd_node *node, bool pre, grd_node_hook *hook, void *context, void (*release)(void *context))
{
    if (grd_pending() || !grd_given_pointer(node, "grd_hook_node", "node") ||
        !grd_given_pointer((void *)(uintptr_t)hook, "grd_hook_node", "hook"))
        return 0;
    return add(&node->hooks,
               (struct grd_hook){.kind = pre ? HOOK_PRE : HOOK_POST, .call.node = hook, .context = context, .release = release});
}

uint64_t grd_hook_accumulated(grd_tensor *leaf, void (*hook)(grd_tensor *leaf, void *context), void *context,
                              void (*release)(void *context))
{
    if (grd_pending() || !grd_given(leaf, "grd_hook_accumulated", "leaf") ||
        !grd_given_pointer((void *)(uintptr_t)hook, "grd_hook_accumulated", "hook"))
        return 0;
    return add_to_tensor(leaf,
                         (struct grd_hook){.kind = HOOK_ACCUMULATED, .call.accumulated = hook, .context = context, .release = release});
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

/* ---- Calling --------------------------------------------------------------------------------------------------------------------- */
/* A snapshot of the hooks of one kind. */
struct present {
    struct grd_hook **hooks; /* pooled, as are references of them */
    int64_t n;
};

/* Empty, with the error raised, on failure. */
static struct present find_hooks(struct grd_hooks *hooks, enum hook_kind kind)
{
    struct present present = {NULL, 0};
    if (hooks->first == NULL)
        return present;
    pthread_mutex_lock(&table.lock);
    int64_t n = 0;
    for (const struct grd_hook *hook = hooks->first; hook != NULL; hook = hook->next)
        n += hook->kind == kind;
    bool ok = n > 0 && (present.hooks = grd_pool_alloc((size_t)n * sizeof(struct grd_hook *))) != NULL;
    for (struct grd_hook *hook = hooks->first; ok && hook != NULL; hook = hook->next)
        if (hook->kind == kind && (ok = grd_pool_push(grd_object_keep(hook))))
            present.hooks[present.n++] = hook;
    pthread_mutex_unlock(&table.lock);
    if (!ok)
        present.n = 0;
    return present;
}

/* Brings the hooks of each output together, in the order in which outputs got their first. */
static void group_by_output(struct present present)
{
    for (int64_t i = 1; i < present.n; i++) {
        struct grd_hook *hook = present.hooks[i];
        int64_t to = i;
        while (to > 0 && present.hooks[to - 1]->output != hook->output)
            to--;
        for (int64_t k = i; to > 0 && k > to; k--)
            present.hooks[k] = present.hooks[k - 1];
        if (to > 0)
            present.hooks[to] = hook;
    }
}

static void replace(grd_tensor **slot, grd_tensor *by)
{
    grd_tensor *old = *slot;
    if (by == old)
        return;
    *slot = by != NULL ? grd_object_keep(by) : NULL;
    grd_object_drop(old);
}

static bool check_replacement(const grd_tensor *old, const grd_tensor *by)
{
    if (!grd_dims_equal(grd_sizes(by), grd_sizes(old)))
        return grd_raise(GRD_ERROR_RUNTIME, "hook has changed the size of value");
    if (by->dtype != old->dtype)
        return grd_raise(GRD_ERROR_RUNTIME, "hook has changed the type of value (was %s got %s)", grd_dtype_name(old->dtype),
                         grd_dtype_name(by->dtype));
    if (by->device != old->device || by->device_index != old->device_index)
        return grd_raise(GRD_ERROR_RUNTIME, "hook has changed the device of value (was %s got %s)",
                         grd_device_text(grd_device_of(old)).chars, grd_device_text(grd_device_of(by)).chars);
    return true;
}

static void call_tensor_hook(const struct grd_hook *hook, grd_tensor **grads)
{
    grd_tensor *grad = grads[hook->output], *result = hook->call.tensor(grad, hook->context);
    if (!grd_pending() && result != NULL && check_replacement(grad, result))
        replace(&grads[hook->output], result);
}

static void keep_gradient(const struct grd_hook *hook, grd_tensor **grads)
{
    struct grd_retained *retained = hook->context;
    grd_tensor *grad = grads[hook->output];
    for (bool done = false; !done;) {
        grd_tensor *old = grd_slot_get(&retained->slot);
        grd_tensor *sum = old == NULL ? grd_clone(grad, .memory_format = "contiguous") : grd_add(old, grad);
        done = grd_pending() || grd_slot_exchange(&retained->slot, old, grd_object_keep(sum));
        if (!done)
            grd_object_drop(sum); /* another thread has replaced the gradient meanwhile */
        grd_object_drop(old);
    }
}

static void call_each(struct present present, void (*call)(const struct grd_hook *hook, grd_tensor **grads), grd_tensor **grads, uint32_t n)
{
    for (int64_t i = 0; i < present.n && !grd_pending(); i++)
        if (present.hooks[i]->output < n && grads[present.hooks[i]->output] != NULL)
            call(present.hooks[i], grads);
}

void grd_hooks_run_tensor(struct grd_hooks *hooks, grd_tensor **grads, uint32_t n)
{
    const struct present present = find_hooks(hooks, HOOK_TENSOR);
    group_by_output(present);
    call_each(present, call_tensor_hook, grads, n);
    call_each(find_hooks(hooks, HOOK_RETAIN), keep_gradient, grads, n);
}

grd_tensors grd_hooks_note(struct grd_node *node, grd_tensor *const *grads)
{
    const uint32_t n = node->noutputs;
    if (find_hooks(&node->hooks, HOOK_POST).n == 0)
        return (grd_tensors){0};
    grd_tensor **noted = grd_pool_alloc(n * sizeof *noted);
    for (uint32_t i = 0; noted != NULL && i < n; i++) {
        noted[i] = grads[i];
        if (grads[i] != NULL && !grd_pool_push(grd_object_keep(grads[i])))
            noted[i] = NULL;
    }
    return (grd_tensors){n, noted};
}

void grd_hooks_run_node(struct grd_node *node, grd_tensors grad_outputs, grd_tensor **grads, uint32_t n)
{
    const struct present present = find_hooks(&node->hooks, grad_outputs.data == NULL ? HOOK_PRE : HOOK_POST);
    for (int64_t k = 0; k < present.n && !grd_pending(); k++) {
        const struct grd_hook *hook = present.hooks[k];
        grd_tensor **seen = grd_pool_alloc((n + 1) * sizeof *seen);
        if (seen != NULL) {
            memcpy(seen, grads, n * sizeof *seen);
            hook->call.node(node, grad_outputs, seen, (int)n, hook->context);
            for (uint32_t i = 0; !grd_pending() && i < n; i++)
                replace(&grads[i], seen[i]);
        }
    }
}

void grd_hooks_run_accumulated(struct grd_hooks *hooks, grd_tensor *leaf)
{
    const struct present present = find_hooks(hooks, HOOK_ACCUMULATED);
    for (int64_t i = 0; i < present.n && !grd_pending(); i++)
        present.hooks[i]->call.accumulated(leaf, present.hooks[i]->context);
}

int grd_hooks_visit(struct grd_hooks *hooks, grd_context_visitor *visit, void *arg)
{
    int result = 0;
    if (hooks->first == NULL)
        return 0;
    pthread_mutex_lock(&table.lock);
    for (struct grd_hook *hook = hooks->first; result == 0 && hook != NULL; hook = hook->next)
        if (hook->kind != HOOK_RETAIN && hook->kind != HOOK_TRACE)
            result = visit(hook->context, hook->release, arg);
    pthread_mutex_unlock(&table.lock);
    return result;
}

/* ---- Traces (anomaly.c) -------------------------------------------------------------------------------------------------------------- */
bool grd_hooks_add_trace(struct grd_hooks *hooks, void *trace, void (*release)(void *trace))
{
    return add(hooks, (struct grd_hook){.kind = HOOK_TRACE, .context = trace, .release = release}) != 0;
}

/* Under the lock: the first hook of a kind, and of a context unless that is NULL. */
static struct grd_hook *first_hook(const struct grd_hooks *hooks, enum hook_kind kind, const void *context)
{
    struct grd_hook *hook = hooks->first;
    while (hook != NULL && (hook->kind != kind || (context != NULL && hook->context != context)))
        hook = hook->next;
    return hook;
}

void *grd_hooks_trace(struct grd_hooks *hooks)
{
    pthread_mutex_lock(&table.lock);
    const struct grd_hook *hook = first_hook(hooks, HOOK_TRACE, NULL);
    void *trace = hook != NULL ? hook->context : NULL;
    pthread_mutex_unlock(&table.lock);
    return trace;
}

/* ---- Kept gradients ---------------------------------------------------------------------------------------------------------------- */
bool grd_hooks_retain(struct grd_node *node, uint32_t output, struct grd_retained *retained)
{
    if (add(&node->hooks, (struct grd_hook){.kind = HOOK_RETAIN, .output = output, .context = retained, .release = grd_object_drop}) == 0)
        return false;
    grd_object_keep(retained);
    return true;
}

void grd_hooks_unretain(struct grd_node *node, struct grd_retained *retained)
{
    pthread_mutex_lock(&table.lock);
    struct grd_hook *hook = first_hook(&node->hooks, HOOK_RETAIN, retained);
    if (hook != NULL)
        unlink_hook(hook);
    pthread_mutex_unlock(&table.lock);
    grd_object_drop(hook);
}
