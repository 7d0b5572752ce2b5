/* The engine: runs a graph backwards.
 *
 * First every node below the outputs is found and the edges that lead to it are counted; then nodes run, latest first, as soon as all gradients they
 * wait for are there. A node's gradients are added up in slots; who is the last to hold a gradient may write into it.
 *
 * Threads: with cpu nodes only, the calling thread does all, without a lock. Each further device type in the graph gets a worker for the
 * duration of the pass; then the lock guards slots, counts and heaps, and is free while a node runs.
 * Invariants
 * - Nodes are borrowed: the outputs, which the pass keeps, own all of them.
 * - A slot owns its gradient. What a node returns is kept before the node's scope closes.
 * - After an error nothing new starts; slots are dropped at the end. */
#include "autograd/node.h"
#include "base/text.h"
#include "gradus/ops.h"

#include <pthread.h>
#include <string.h>

enum { NO_ENTRY = -1, INLINE_ENTRIES = 32, INLINE_TABLE = 64, INLINE_GRADS = 8 };

/* ---- Gradients ---------------------------------------------------------------------------------------------------------------- */
bool grd_is_exclusive(const grd_tensor *t)
{
    if (!grd_object_unique(t) || t->autograd != NULL || !grd_shape_is_dense(grd_dims_from(t->sizes, t->ndim), t->strides))
        return false;
    if (t->storage->release != NULL)
        return false;
    if (t->base == NULL)
        return grd_object_unique(t->storage);
    return grd_object_unique(t->base) && t->base->autograd == NULL &&
           atomic_load_explicit(&t->storage->object.refs, memory_order_acquire) == 2;
}

static bool fits(const struct grd_output *output, const grd_tensor *grad)
{
    return grad->dtype == output->dtype && grad->ndim == output->ndim && grad->device == output->device &&
           grad->device_index == output->device_index && memcmp(grad->sizes, output->sizes, output->ndim * sizeof(int64_t)) == 0;
}

static bool is_broadcast_of(const struct grd_output *output, const grd_tensor *grad)
{
    int extra = grad->ndim - output->ndim;
    for (int i = 0; extra >= 0 && i < output->ndim; i++)
        if (output->sizes[i] != grad->sizes[extra + i] && output->sizes[i] != 1)
            return false;
    return extra >= 0;
}

/* Sums over the dimensions that broadcasting added or stretched. */
static grd_tensor *unbroadcast(const struct grd_output *output, grd_tensor *grad)
{
    int64_t dims[GRD_MAX_DIMS];
    int n = 0, extra = grad->ndim - output->ndim;
    for (int i = 0; i < grad->ndim; i++)
        if (i < extra || output->sizes[i - extra] != grad->sizes[i])
            dims[n++] = i;
    if (n > 0)
        grad = grd_sum(grad, .dim = grd_dims_from(dims, n), .keepdim = true);
    return extra > 0 && !grd_pending() ? grd_reshape(grad, grd_dims_from(output->sizes, output->ndim)) : grad;
}

static bool wrong_shape(const struct grd_output *output, const grd_tensor *grad, const char *node_name, int64_t index)
{
    char got[256], expected[256];
    return grd_raise(GRD_ERROR_RUNTIME, "Function %s returned an invalid gradient at index %lld - got %s but expected shape compatible with %s",
                     node_name, (long long)index, grd_format_int64s(got, sizeof got, grad->sizes, grad->ndim),
                     grd_format_int64s(expected, sizeof expected, output->sizes, output->ndim));
}

grd_tensor *grd_fit_gradient(const struct grd_output *output, grd_tensor *grad, const char *node_name, int64_t index)
{
    if (GRD_LIKELY(fits(output, grad)))
        return grad;
    bool same_shape = grad->ndim == output->ndim && memcmp(grad->sizes, output->sizes, output->ndim * sizeof(int64_t)) == 0;
    if (!same_shape && !is_broadcast_of(output, grad)) {
        wrong_shape(output, grad, node_name, index);
        return NULL;
    }
    if (!grd_dtype_carries(grad->dtype)) {
        grd_raise(GRD_ERROR_RUNTIME, "Function %s returned an invalid gradient at index %lld - expected a floating point or complex dtype but got %s",
                  node_name, (long long)index, grd_dtype_name(grad->dtype));
        return NULL;
    }
    if (grad->device != output->device || grad->device_index != output->device_index) {
        grd_raise(GRD_ERROR_RUNTIME, "Function %s returned an invalid gradient at index %lld - expected device %s but got %s", node_name,
                  (long long)index, grd_device_name((grd_device){output->device, output->device_index}),
                  grd_device_name(grd_device_of(grad)));
        return NULL;
    }
    if (!same_shape)
        grad = unbroadcast(output, grad);
    if (!grd_pending() && grad->dtype != output->dtype)
        grad = grd_to(grad, .dtype = (grd_dtype)output->dtype);
    return grd_pending() ? NULL : grad;
}

/* ---- A pass --------------------------------------------------------------------------------------------------------------------- */
struct entry {
    struct grd_node *node;
    union {
        grd_tensor *one; /* the only slot of a node with one output */
        grd_tensor **many;
    } grads;
    int32_t dependencies; /* edges whose gradient has not come yet */
    int32_t capture;      /* first capture here, or NO_ENTRY */
    bool needed;          /* the node must run, not only hand its gradients out */
    bool visited;         /* by the search */
};

struct ready {
    uint64_t sequence;
    int32_t entry;
};

struct heap {
    struct ready *items;
    int64_t n, capacity;
};

/* An input of grd_grad whose gradient is taken where it flows past. */
struct capture {
    uint32_t output;
    int32_t next;
    int64_t input;
};

struct worker {
    struct pass *pass;
    pthread_t thread;
    bool running;
    struct heap heap;
    uint8_t device;
};

struct pass {
    struct entry *entries;
    int64_t n, capacity;
    int32_t *table; /* entry by node, open addressing; NO_ENTRY where free */
    uint64_t mask;
    struct heap heap; /* for the calling thread */
    struct capture *captures;
    grd_tensor **captured; /* one per input, owned */
    bool retain, create, stop;
    /* With workers. */
    struct worker *workers;
    int nworkers;
    int64_t outstanding; /* entries ready or running */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct grd_error_state error;
    struct grd_thread_state *caller;
    struct entry inline_entries[INLINE_ENTRIES];
    int32_t inline_table[INLINE_TABLE];
};

/* Multiplies by 2^64 / golden ratio: nodes lie at multiples of 16. */
static uint64_t hash(const struct grd_node *node)
{
    return (uint64_t)(uintptr_t)node * 0x9e3779b97f4a7c15u >> 20;
}

static int32_t find(const struct pass *pass, const struct grd_node *node, uint64_t *ret_place)
{
    uint64_t place = hash(node) & pass->mask;
    while (pass->table[place] != NO_ENTRY && pass->entries[pass->table[place]].node != node)
        place = (place + 1) & pass->mask;
    *ret_place = place;
    return pass->table[place];
}

static bool grow_entries(struct pass *pass)
{
    int64_t capacity = 2 * pass->capacity;
    if (capacity > INT32_MAX / 2)
        return grd_raise(GRD_ERROR_MEMORY, "the graph has too many nodes");
    struct entry *entries = grd_alloc((size_t)capacity * sizeof *entries);
    int32_t *table = grd_alloc(2 * (size_t)capacity * sizeof *table);
    if (entries == NULL || table == NULL) {
        grd_free(entries, (size_t)capacity * sizeof *entries);
        grd_free(table, 2 * (size_t)capacity * sizeof *table);
        return false;
    }
    memcpy(entries, pass->entries, (size_t)pass->n * sizeof *entries);
    if (pass->entries != pass->inline_entries) {
        grd_free(pass->entries, (size_t)pass->capacity * sizeof *entries);
        grd_free(pass->table, 2 * (size_t)pass->capacity * sizeof *table);
    }
    pass->entries = entries;
    pass->table = table;
    pass->capacity = capacity;
    pass->mask = 2 * (uint64_t)capacity - 1;
    memset(table, 0xff, 2 * (size_t)capacity * sizeof *table);
    for (int64_t i = 0; i < pass->n; i++) {
        uint64_t place;
        find(pass, entries[i].node, &place);
        table[place] = (int32_t)i;
    }
    return true;
}

/* The entry of a node, made when it is new. NO_ENTRY, with MemoryError, on failure. */
static int32_t enter(struct pass *pass, struct grd_node *node)
{
    uint64_t place;
    int32_t found = find(pass, node, &place);
    if (found != NO_ENTRY)
        return found;
    if (pass->n == pass->capacity) {
        if (!grow_entries(pass))
            return NO_ENTRY;
        find(pass, node, &place);
    }
    pass->entries[pass->n] = (struct entry){.node = node, .capture = NO_ENTRY, .needed = pass->captures == NULL};
    pass->table[place] = (int32_t)pass->n;
    return (int32_t)pass->n++;
}

static bool heap_push(struct heap *heap, struct ready item)
{
    if (heap->n == heap->capacity) {
        int64_t capacity = heap->capacity ? 2 * heap->capacity : 32;
        struct ready *items = grd_realloc(heap->items, (size_t)heap->capacity * sizeof *items, (size_t)capacity * sizeof *items);
        if (items == NULL)
            return false;
        heap->items = items;
        heap->capacity = capacity;
    }
    int64_t i = heap->n++;
    while (i > 0 && heap->items[(i - 1) / 2].sequence < item.sequence) {
        heap->items[i] = heap->items[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    heap->items[i] = item;
    return true;
}

static int32_t heap_pop(struct heap *heap)
{
    int32_t top = heap->items[0].entry;
    struct ready last = heap->items[--heap->n];
    int64_t i = 0, child;
    while ((child = 2 * i + 1) < heap->n) {
        if (child + 1 < heap->n && heap->items[child + 1].sequence > heap->items[child].sequence)
            child++;
        if (heap->items[child].sequence <= last.sequence)
            break;
        heap->items[i] = heap->items[child];
        i = child;
    }
    heap->items[i] = last;
    return top;
}

static void heap_done(struct heap *heap)
{
    grd_free(heap->items, (size_t)heap->capacity * sizeof *heap->items);
}

/* ---- Finding the graph ------------------------------------------------------------------------------------------------------------ */
struct frame {
    int32_t entry;
    uint32_t edge;
};

struct stack {
    struct frame *frames;
    int64_t n, capacity;
};

static bool visit(struct pass *pass, struct stack *stack, int32_t entry)
{
    if (stack->n == stack->capacity) {
        int64_t capacity = stack->capacity ? 2 * stack->capacity : 32;
        struct frame *frames = grd_realloc(stack->frames, (size_t)stack->capacity * sizeof *frames, (size_t)capacity * sizeof *frames);
        if (frames == NULL)
            return false;
        stack->frames = frames;
        stack->capacity = capacity;
    }
    stack->frames[stack->n++] = (struct frame){entry, 0};
    pass->entries[entry].visited = true;
    return true;
}

/* Depth first from one entry: counts dependencies, and on the way back tells each node whether a captured one lies below. */
static bool discover(struct pass *pass, struct stack *stack, int32_t root)
{
    if (!visit(pass, stack, root))
        return false;
    while (stack->n > 0) {
        struct frame *frame = &stack->frames[stack->n - 1];
        struct entry *entry = &pass->entries[frame->entry];
        if (frame->edge == entry->node->nedges) {
            bool wanted = entry->needed || entry->capture != NO_ENTRY;
            if (--stack->n > 0 && wanted)
                pass->entries[stack->frames[stack->n - 1].entry].needed = true;
            continue;
        }
        struct grd_node *child = entry->node->edges[frame->edge++].node;
        if (child == NULL)
            continue;
        int32_t current = frame->entry, below = enter(pass, child);
        if (below == NO_ENTRY)
            return false;
        pass->entries[below].dependencies++;
        if (!pass->entries[below].visited) {
            if (!visit(pass, stack, below))
                return false;
        } else if (pass->entries[below].needed || pass->entries[below].capture != NO_ENTRY) {
            pass->entries[current].needed = true;
        }
    }
    return true;
}

/* ---- Slots --------------------------------------------------------------------------------------------------------------------------- */
static grd_tensor **slots_of(struct entry *entry)
{
    return entry->node->noutputs == 1 ? &entry->grads.one : entry->grads.many;
}

/* Adds a pooled or borrowed gradient to a slot. */
static bool add_gradient(struct pass *pass, struct entry *entry, uint32_t output, grd_tensor *grad)
{
    uint32_t noutputs = entry->node->noutputs;
    if (noutputs != 1 && entry->grads.many == NULL) {
        entry->grads.many = grd_alloc_zeroed(noutputs * sizeof(grd_tensor *));
        if (entry->grads.many == NULL)
            return false;
    }
    grd_tensor **slot = &slots_of(entry)[output];
    if (*slot == NULL) {
        *slot = grd_object_keep(grad);
        return true;
    }
    if (!pass->create && grd_is_exclusive(*slot)) {
        grd_add_(*slot, grad);
        return !grd_pending();
    }
    grd_tensor *sum = grd_add(*slot, grad);
    if (grd_pending())
        return false;
    grd_object_drop(*slot);
    *slot = grd_object_keep(sum);
    return true;
}

static void drop_all(grd_tensor **tensors, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        grd_tensor *t = tensors[i];
        tensors[i] = NULL;
        grd_object_drop(t);
    }
}

static void drop_slots(struct entry *entry)
{
    uint32_t n = entry->node->noutputs;
    if (n == 1) {
        drop_all(&entry->grads.one, 1);
    } else if (entry->grads.many != NULL) {
        drop_all(entry->grads.many, n);
        grd_free(entry->grads.many, n * sizeof(grd_tensor *));
        entry->grads.many = NULL;
    }
}

/* ---- Scheduling ----------------------------------------------------------------------------------------------------------------------- */
static struct heap *heap_for(struct pass *pass, uint8_t device)
{
    for (int i = 0; i < pass->nworkers; i++)
        if (pass->workers[i].device == device && pass->workers[i].running)
            return &pass->workers[i].heap;
    return &pass->heap;
}

static bool make_ready(struct pass *pass, int32_t index)
{
    const struct grd_node *node = pass->entries[index].node;
    if (!heap_push(heap_for(pass, node->device), (struct ready){node->sequence, index}))
        return false;
    pass->outstanding++;
    return true;
}

static void lock(struct pass *pass)
{
    if (pass->nworkers > 0)
        pthread_mutex_lock(&pass->lock);
}

static void unlock(struct pass *pass)
{
    if (pass->nworkers > 0) {
        pthread_cond_broadcast(&pass->changed);
        pthread_mutex_unlock(&pass->lock);
    }
}

/* ---- Running one node --------------------------------------------------------------------------------------------------------------------- */
struct step {
    struct grd_node *node;
    grd_tensor **grads; /* of the outputs, owned */
    grd_tensor **results; /* of the edges; owned once kept */
    uint32_t kept;
};

static uint64_t needed_edges(const struct pass *pass, const struct grd_node *node)
{
    uint64_t needs = 0, place;
    for (uint32_t i = 0; i < node->nedges; i++) {
        if (node->edges[i].node == NULL)
            continue;
        bool wanted = true;
        if (pass->captures != NULL) {
            const struct entry *below = &pass->entries[find(pass, node->edges[i].node, &place)];
            wanted = below->needed || below->capture != NO_ENTRY;
        }
        needs |= (uint64_t)wanted << (i < 63 ? i : 63);
    }
    return needs;
}

static void capture_gradients(struct pass *pass, const struct entry *entry, grd_tensor *const *grads)
{
    for (int32_t i = entry->capture; i != NO_ENTRY; i = pass->captures[i].next) {
        grd_tensor *grad = grads[pass->captures[i].output];
        if (grad != NULL)
            pass->captured[pass->captures[i].input] = grd_object_keep(grad);
    }
}

/* Calls the node; its results are then kept and as the edges want them. */
static bool run_node(struct pass *pass, struct step *step)
{
    struct grd_node *node = step->node;
    if (GRD_UNLIKELY(node->hooks.first != NULL))
        grd_hooks_run_node(node, true, step->grads, node->noutputs);
    if (!grd_pending())
        node->class->run(node, &(struct grd_run){step->grads, step->results, needed_edges(pass, node), pass->retain});
    bool ok = !grd_pending();
    for (uint32_t i = 0; ok && i < node->nedges; i++) {
        if (step->results[i] == NULL)
            continue;
        const struct grd_edge *edge = &node->edges[i];
        step->results[i] = edge->node != NULL ? grd_fit_gradient(&edge->node->outputs[edge->output], step->results[i], node->name, i) : NULL;
        ok = step->results[i] != NULL || edge->node == NULL;
    }
    if (!ok) {
        grd_error_add_context(node->name);
        return false;
    }
    for (uint32_t i = 0; i < node->nedges; i++)
        if (step->results[i] != NULL)
            grd_object_keep(step->results[i]);
    step->kept = node->nedges;
    if (!pass->retain && node->class->release != NULL)
        node->class->release(node);
    if (GRD_UNLIKELY(node->hooks.first != NULL)) {
        grd_hooks_run_node(node, false, step->results, node->nedges);
        if (grd_pending()) {
            grd_error_add_context(node->name);
            return false;
        }
    }
    return true;
}

/* Hands the results to the nodes below; under the lock. */
static bool deliver(struct pass *pass, const struct step *step)
{
    const struct grd_node *node = step->node;
    for (uint32_t i = 0; i < node->nedges; i++) {
        const struct grd_edge *edge = &node->edges[i];
        if (edge->node == NULL)
            continue;
        uint64_t place;
        int32_t index = find(pass, edge->node, &place);
        struct entry *below = &pass->entries[index];
        if (!below->needed && below->capture == NO_ENTRY)
            continue;
        grd_tensor *grad = step->results[i];
        if (grad != NULL && !add_gradient(pass, below, edge->output, grad))
            return false;
        if (--below->dependencies == 0 && !make_ready(pass, index))
            return false;
    }
    return true;
}

static bool any_defined(grd_tensor *const *tensors, uint32_t n)
{
    for (uint32_t i = 0; tensors != NULL && i < n; i++)
        if (tensors[i] != NULL)
            return true;
    return false;
}

/* Everything from the slots of an entry to the slots below. Called without the lock. */
static bool run_entry(struct pass *pass, int32_t index)
{
    struct entry *entry = &pass->entries[index];
    struct grd_node *node = entry->node;
    grd_tensor *inline_results[INLINE_GRADS];
    struct step step = {.node = node, .grads = slots_of(entry), .results = inline_results};
    bool ok = true, defined = any_defined(step.grads, node->noutputs);
    int64_t mark = grd_pool_mark();
    if (node->nedges > INLINE_GRADS) {
        step.results = grd_alloc(node->nedges * sizeof *step.results);
        ok = step.results != NULL;
    }
    if (ok)
        memset(step.results, 0, node->nedges * sizeof *step.results);
    if (ok && defined) {
        struct grd_hooks *hooks = grd_node_tensor_hooks(node);
        if (GRD_UNLIKELY(hooks->first != NULL)) {
            grd_hooks_run_tensor(hooks, step.grads, node->noutputs);
            ok = !grd_pending();
        }
        if (ok && entry->capture != NO_ENTRY)
            capture_gradients(pass, entry, step.grads);
        if (ok && entry->needed)
            ok = run_node(pass, &step);
    }
    /* Released before delivery: what came out of the node is then held by nobody who does not need it. */
    drop_slots(entry);
    grd_pool_release(mark);
    lock(pass);
    if (ok)
        ok = deliver(pass, &step);
    if (step.results != NULL)
        drop_all(step.results, step.kept);
    unlock(pass);
    grd_pool_release(mark);
    if (step.results != inline_results)
        grd_free(step.results, node->nedges * sizeof *step.results);
    return ok;
}

/* ---- The loops ------------------------------------------------------------------------------------------------------------------------------ */
static bool run_alone(struct pass *pass)
{
    while (pass->heap.n > 0)
        if (!run_entry(pass, heap_pop(&pass->heap)))
            return false;
    return true;
}

/* A thread's share: until nothing is ready or running anywhere. */
static void run_share(struct pass *pass, struct heap *heap)
{
    pthread_mutex_lock(&pass->lock);
    while (!pass->stop && pass->outstanding > 0) {
        if (heap->n == 0) {
            pthread_cond_wait(&pass->changed, &pass->lock);
            continue;
        }
        int32_t index = heap_pop(heap);
        pthread_mutex_unlock(&pass->lock);
        bool ok = run_entry(pass, index);
        struct grd_error_state error = {0};
        if (!ok)
            error = grd_error_take();
        pthread_mutex_lock(&pass->lock);
        pass->outstanding--;
        if (!ok && !pass->stop) {
            pass->stop = true;
            pass->error = error;
        } else if (!ok) {
            grd_error_restore(error);
            grd_error_clear();
        }
        pthread_cond_broadcast(&pass->changed);
    }
    pthread_mutex_unlock(&pass->lock);
}

static void *worker_main(void *context)
{
    struct worker *worker = context;
    const struct grd_thread_state *caller = worker->pass->caller;
    grd_thread.include = caller->include;
    grd_thread.exclude = caller->exclude;
    grd_thread.grad_off = caller->grad_off;
    run_share(worker->pass, &worker->heap);
    return NULL;
}

/* One worker for each device type in the graph that is not the calling thread's. Where a thread cannot be had, the caller does its work. */
static bool start_workers(struct pass *pass, struct worker *workers)
{
    bool present[GRD_DEVICE_COUNT] = {false};
    for (int64_t i = 0; i < pass->n; i++)
        present[pass->entries[i].node->device % GRD_DEVICE_COUNT] = true;
    pass->workers = workers;
    pthread_mutex_lock(&pass->lock);
    for (uint8_t device = GRD_DEVICE_FIRST_EXTRA; device < GRD_DEVICE_COUNT; device++) {
        if (!present[device])
            continue;
        struct worker *worker = &workers[pass->nworkers];
        *worker = (struct worker){.pass = pass, .device = device};
        worker->running = pthread_create(&worker->thread, NULL, worker_main, worker) == 0;
        pass->nworkers += worker->running;
    }
    pthread_mutex_unlock(&pass->lock);
    return pass->nworkers > 0;
}

static bool has_other_devices(const struct pass *pass)
{
    for (int64_t i = 0; i < pass->n; i++)
        if (pass->entries[i].node->device >= GRD_DEVICE_FIRST_EXTRA)
            return true;
    return false;
}

/* Entries that wait for nothing. */
static bool make_first_ready(struct pass *pass, const int32_t *roots, int64_t nroots)
{
    for (int64_t i = 0; i < nroots; i++) {
        struct entry *entry = &pass->entries[roots[i]];
        if (entry->dependencies == 0 && (entry->needed || entry->capture != NO_ENTRY)) {
            entry->dependencies = -1; /* an output given twice is ready once */
            if (!make_ready(pass, roots[i]))
                return false;
        }
    }
    return true;
}

static bool run_threaded(struct pass *pass, const int32_t *roots, int64_t nroots)
{
    struct worker workers[GRD_DEVICE_COUNT];
    pass->caller = &grd_thread;
    pthread_mutex_init(&pass->lock, NULL);
    pthread_cond_init(&pass->changed, NULL);
    pass->outstanding = 1; /* keeps the workers until everything is set up */
    bool threaded = start_workers(pass, workers);
    pthread_mutex_lock(&pass->lock);
    bool ok = make_first_ready(pass, roots, nroots);
    pass->outstanding--;
    pass->stop = !ok;
    pthread_cond_broadcast(&pass->changed);
    pthread_mutex_unlock(&pass->lock);
    if (ok && threaded)
        run_share(pass, &pass->heap);
    else if (ok)
        ok = run_alone(pass);
    for (int i = 0; i < pass->nworkers; i++) {
        pthread_join(workers[i].thread, NULL);
        heap_done(&workers[i].heap);
    }
    pass->nworkers = 0;
    pthread_cond_destroy(&pass->changed);
    pthread_mutex_destroy(&pass->lock);
    if (pass->error.code != GRD_ERROR_NONE)
        grd_error_restore(pass->error);
    return ok && !grd_pending();
}

static bool run_pass(struct pass *pass, const int32_t *roots, int64_t nroots)
{
    uint32_t grad_off = grd_thread.grad_off;
    grd_thread.grad_off = pass->create ? 0 : GRD_AUTOGRAD_BIT;
    bool ok;
    if (GRD_UNLIKELY(has_other_devices(pass)))
        ok = run_threaded(pass, roots, nroots);
    else
        ok = make_first_ready(pass, roots, nroots) && run_alone(pass);
    grd_thread.grad_off = grad_off;
    return ok;
}

/* ---- From outputs to a pass --------------------------------------------------------------------------------------------------------------------- */
/* What starts a pass: edges of the outputs, owned, and their gradients, pooled. */
struct request {
    struct grd_edge *roots;
    grd_tensor **grads;
    int32_t *entries;
    int64_t nroots;
    struct grd_edge *inputs; /* of grd_grad, owned */
    int64_t ninputs;
    bool retain, create;
};

static void init_pass(struct pass *pass, const struct request *request)
{
    pass->entries = pass->inline_entries;
    pass->table = pass->inline_table;
    pass->n = 0;
    pass->capacity = INLINE_ENTRIES;
    pass->mask = INLINE_TABLE - 1;
    memset(pass->inline_table, 0xff, sizeof pass->inline_table);
    pass->heap = (struct heap){0};
    pass->captures = NULL;
    pass->captured = NULL;
    pass->retain = request->retain || request->create;
    pass->create = request->create;
    pass->stop = false;
    pass->workers = NULL;
    pass->nworkers = 0;
    pass->outstanding = 0;
    pass->error = (struct grd_error_state){0};
    pass->caller = NULL;
}

static bool enter_captures(struct pass *pass, const struct request *request, struct capture *captures, grd_tensor **captured)
{
    pass->captures = captures;
    pass->captured = captured;
    for (int64_t i = 0; i < request->ninputs; i++) {
        int32_t index = enter(pass, request->inputs[i].node);
        if (index == NO_ENTRY)
            return false;
        captures[i] = (struct capture){request->inputs[i].output, pass->entries[index].capture, i};
        pass->entries[index].capture = (int32_t)i;
    }
    return true;
}

static bool discover_all(struct pass *pass, const struct request *request)
{
    struct stack stack = {0};
    bool ok = true;
    for (int64_t i = 0; ok && i < request->nroots; i++) {
        int32_t index = enter(pass, request->roots[i].node);
        request->entries[i] = index;
        ok = index != NO_ENTRY && (pass->entries[index].visited || discover(pass, &stack, index));
    }
    grd_free(stack.frames, (size_t)stack.capacity * sizeof *stack.frames);
    return ok;
}

static bool seed(struct pass *pass, const struct request *request)
{
    for (int64_t i = 0; i < request->nroots; i++)
        if (!add_gradient(pass, &pass->entries[request->entries[i]], request->roots[i].output, request->grads[i]))
            return false;
    return true;
}

/* Runs what was asked for. `captured`, of ninputs, starts empty; owned gradients come back in it, on failure too. Drops what is pooled
 * above `mark`, so that the engine is the only owner of the gradients it starts from. */
static bool execute(const struct request *request, struct capture *captures, grd_tensor **captured, int64_t mark)
{
    struct pass pass;
    init_pass(&pass, request);
    bool ok = (captures == NULL || enter_captures(&pass, request, captures, captured)) && discover_all(&pass, request) &&
              seed(&pass, request);
    grd_pool_release(mark);
    ok = ok && run_pass(&pass, request->entries, request->nroots);
    for (int64_t i = 0; i < pass.n; i++)
        drop_slots(&pass.entries[i]);
    heap_done(&pass.heap);
    if (pass.entries != pass.inline_entries) {
        grd_free(pass.entries, (size_t)pass.capacity * sizeof *pass.entries);
        grd_free(pass.table, 2 * (size_t)pass.capacity * sizeof *pass.table);
    }
    return ok;
}

/* ---- Outputs and their gradients --------------------------------------------------------------------------------------------------------- */
static grd_tensor *implicit_gradient(grd_tensor *output)
{
    if (output->numel != 1) {
        grd_raise(GRD_ERROR_RUNTIME, "grad can be implicitly created only for scalar outputs");
        return NULL;
    }
    if (grd_dtype_is_complex(output->dtype)) {
        grd_raise(GRD_ERROR_RUNTIME, "grad can be implicitly created only for real scalar outputs but got %s", grd_dtype_name(output->dtype));
        return NULL;
    }
    return grd_ones_like(output);
}

static bool check_output_gradient(const grd_tensor *output, const grd_tensor *grad, int64_t i)
{
    char ours[256], theirs[256];
    if (grad->ndim != output->ndim || memcmp(grad->sizes, output->sizes, output->ndim * sizeof(int64_t)) != 0)
        return grd_raise(GRD_ERROR_RUNTIME, "Mismatch in shape: grad_output[%lld] has a shape of %s and output[%lld] has a shape of %s.",
                         (long long)i, grd_format_int64s(theirs, sizeof theirs, grad->sizes, grad->ndim), (long long)i,
                         grd_format_int64s(ours, sizeof ours, output->sizes, output->ndim));
    if (grd_dtype_is_complex(grad->dtype) != grd_dtype_is_complex(output->dtype))
        return grd_raise(GRD_ERROR_RUNTIME,
                         "For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in dtype: "
                         "grad_output[%lld] has a dtype of %s and output[%lld] has a dtype of %s.",
                         (long long)i, grd_dtype_name(grad->dtype), (long long)i, grd_dtype_name(output->dtype));
    return true;
}

/* Gradient and edge of one output. */
static bool set_root(const struct request *request, int64_t i, grd_tensor *output, grd_tensor *grad)
{
    if (!grd_needs_grad(output))
        return grd_raise(GRD_ERROR_RUNTIME, "element %lld of tensors does not require grad and does not have a grad_fn", (long long)i);
    if (grad == NULL)
        grad = implicit_gradient(output);
    else if (!check_output_gradient(output, grad, i))
        return false;
    struct grd_edge *edge = &request->roots[i];
    if (grd_pending() || !grd_edge_of(output, edge))
        return false;
    request->grads[i] = grd_fit_gradient(&edge->node->outputs[edge->output], grad, "of an output", i);
    return request->grads[i] != NULL;
}

static bool set_roots(const struct request *request, grd_tensors outputs, const grd_backward_options *options)
{
    const grd_tensors given = options != NULL ? options->grad_outputs : (grd_tensors){0};
    if (given.data != NULL && given.n != outputs.n)
        return grd_raise(GRD_ERROR_RUNTIME, "got %lld tensors and %lld gradients", (long long)outputs.n, (long long)given.n);
    for (int64_t i = 0; i < outputs.n; i++) {
        if (outputs.data[i] == NULL)
            return grd_raise(GRD_ERROR_TYPE, "output %lld must be a tensor, not NULL", (long long)i);
        if (!set_root(request, i, outputs.data[i], given.data != NULL ? given.data[i] : NULL))
            return false;
    }
    return true;
}

static bool set_inputs(const struct request *request, grd_tensors inputs)
{
    for (int64_t i = 0; i < inputs.n; i++) {
        if (inputs.data[i] == NULL)
            return grd_raise(GRD_ERROR_TYPE, "input %lld must be a tensor, not NULL", (long long)i);
        if (!grd_needs_grad(inputs.data[i]))
            return grd_raise(GRD_ERROR_RUNTIME, "One of the differentiated Tensors does not require grad");
        if (!grd_edge_of(inputs.data[i], &request->inputs[i]))
            return false;
    }
    return true;
}

/* The arrays of a request, in one block. */
struct arrays {
    void *block;
    size_t size;
    struct capture *captures;
};

static bool allocate(struct request *request, struct arrays *arrays)
{
    size_t roots = (size_t)request->nroots, inputs = (size_t)request->ninputs;
    arrays->size = roots * (sizeof(struct grd_edge) + sizeof(grd_tensor *)) + inputs * (sizeof(struct grd_edge) + sizeof(struct capture)) +
                   roots * sizeof(int32_t);
    char *block = arrays->block = grd_alloc_zeroed(arrays->size);
    if (block == NULL)
        return false;
    request->roots = (struct grd_edge *)block;
    request->inputs = request->roots + roots;
    request->grads = (grd_tensor **)(request->inputs + inputs);
    arrays->captures = (struct capture *)(request->grads + roots);
    request->entries = (int32_t *)(arrays->captures + inputs);
    return true;
}

/* `captured` NULL: into the leaves. */
static bool differentiate(grd_tensors outputs, grd_tensors inputs, const grd_backward_options *options, grd_tensor **captured)
{
    struct request request = {.nroots = outputs.n, .ninputs = inputs.n};
    struct arrays arrays;
    if (options != NULL) {
        request.retain = options->retain_graph;
        request.create = options->create_graph;
    }
    int64_t mark = grd_pool_mark();
    bool ok = allocate(&request, &arrays);
    if (!ok)
        return false;
    ok = set_roots(&request, outputs, options) && set_inputs(&request, inputs) &&
         execute(&request, captured != NULL ? arrays.captures : NULL, captured, mark);
    grd_pool_release(mark);
    for (int64_t i = 0; i < outputs.n; i++)
        grd_object_drop(request.roots[i].node);
    for (int64_t i = 0; i < inputs.n; i++)
        grd_object_drop(request.inputs[i].node);
    grd_free(arrays.block, arrays.size);
    return ok;
}

void grd_backward_all(grd_tensors outputs, const grd_backward_options *options)
{
    if (!grd_pending())
        differentiate(outputs, (grd_tensors){0}, options, NULL);
}

void grd_backward(grd_tensor *tensor)
{
    grd_backward_all((grd_tensors){&tensor, 1}, NULL);
}

static bool check_used(grd_tensor *const *grads, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (grads[i] == NULL)
            return grd_raise(GRD_ERROR_RUNTIME,
                             "The differentiated Tensor at index %lld appears to not have been used in the graph. Set allow_unused=True if this "
                             "is the desired behavior.",
                             (long long)i);
    return true;
}

bool grd_grad(grd_tensors outputs, grd_tensors inputs, const grd_backward_options *options, grd_tensor **ret_grads)
{
    bool ok = !grd_pending();
    for (int64_t i = 0; i < inputs.n; i++)
        ret_grads[i] = NULL;
    ok = ok && differentiate(outputs, inputs, options, ret_grads);
    ok = ok && ((options != NULL && options->allow_unused) || check_used(ret_grads, inputs.n));
    for (int64_t i = 0; i < inputs.n; i++) {
        if (ret_grads[i] != NULL)
            ok &= grd_pool_push(ret_grads[i]);
    }
    for (int64_t i = 0; !ok && i < inputs.n; i++)
        ret_grads[i] = grd_failed;
    return ok;
}
