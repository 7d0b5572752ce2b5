/* Runs the nodes of a backward pass. A node is ready when all gradients that it waits for have arrived. Of the ready nodes, the one that was
 * created last runs first. pass.c finds the nodes and adds gradients; backward.c has the public functions.
 *
 * If all nodes are on the CPU, the calling thread runs them without a lock. Otherwise each other device type in the graph gets a worker thread
 * for the duration of the pass. A lock then protects the gradients that have arrived at nodes, the counts of missing gradients, and the heaps; no
 * thread holds it while a node runs.
 * Invariants
 * - After a node has run, the engine takes a reference to each of its results before it frees the temporaries of the run.
 * - After an error no further node starts. Gradients that have arrived at nodes that did not run are dropped at the end of the pass. */
#include "autograd/anomaly.h"
#include "autograd/gradient.h"
#include "autograd/hooks.h"
#include "autograd/pass.h"
#include "autograd/pool.h"
#include "core/tensor.h"

#include <string.h>

enum { INLINE_GRADS = 8 };

/* ---- The queue ---------------------------------------------------------------------------------------------------------------------- */
static void heap_init(struct grd_heap *heap)
{
    heap->items = heap->inline_items;
    heap->n = 0;
    heap->capacity = GRD_INLINE_READY;
}

static void heap_done(struct grd_heap *heap)
{
    if (heap->items != heap->inline_items)
        grd_free(heap->items, (size_t)heap->capacity * sizeof *heap->items);
}

static __attribute__((noinline)) bool heap_grow(struct grd_heap *heap)
{
    int64_t capacity = 2 * heap->capacity;
    struct grd_ready *items = grd_alloc((size_t)capacity * sizeof *items);
    if (items == NULL)
        return false;
    memcpy(items, heap->items, (size_t)heap->n * sizeof *items);
    heap_done(heap);
    heap->items = items;
    heap->capacity = capacity;
    return true;
}

static inline bool heap_push(struct grd_heap *heap, struct grd_ready item)
{
    if (GRD_UNLIKELY(heap->n == heap->capacity) && !heap_grow(heap))
        return false;
    int64_t i = heap->n++;
    while (i > 0 && heap->items[(i - 1) / 2].sequence < item.sequence) {
        heap->items[i] = heap->items[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    heap->items[i] = item;
    return true;
}

/* Removes the node with the highest sequence number from the heap and returns its index in pass->entries. Only AccumulateGrad nodes have equal
 * sequence numbers. To take these in the same order as PyTorch, the function does what pop_heap of libstdc++ does. The gap at the top moves down
 * to the bottom, each time to the greater child, or to the right child if both are equal. Then the last item fills the gap and moves up. */
static inline int32_t heap_pop(struct grd_heap *heap)
{
    struct grd_ready *const items = heap->items;
    const int32_t top = items[0].entry;
    const struct grd_ready last = items[--heap->n];
    int64_t i = 0, child;
    while ((child = 2 * i + 2) <= heap->n) {
        child -= child == heap->n || items[child].sequence < items[child - 1].sequence;
        items[i] = items[child];
        i = child;
    }
    while (i > 0 && items[(i - 1) / 2].sequence < last.sequence) {
        items[i] = items[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    items[i] = last;
    return top;
}

/* ---- Scheduling ----------------------------------------------------------------------------------------------------------------------- */
/* Returns the heap of ready nodes of the thread that runs the nodes on `device`: the worker thread of this device type, or the calling thread if
 * there is none. */
static inline struct grd_heap *heap_for(struct grd_pass *pass, uint8_t device)
{
    for (int i = 0; i < pass->nworkers; i++)
        if (pass->workers[i].device == device)
            return &pass->workers[i].heap;
    return &pass->heap;
}

/* Adds the node of pass->entries[index] to the heap of ready nodes of the thread that has to run it. `threaded`: the pass has worker threads.
 * False, with MemoryError, on failure. */
GRD_INLINE bool make_ready(struct grd_pass *pass, int32_t index, bool threaded)
{
    const struct grd_node *node = pass->entries[index].node;
    pass->outstanding += threaded;
    return heap_push(threaded ? heap_for(pass, node->device) : &pass->heap, (struct grd_ready){node->sequence, index});
}

/* ---- Failures ------------------------------------------------------------------------------------------------------------------------------- */
/* Adds the name of the node that failed to the pending error. In anomaly mode also shows the traceback of the call that created the node. */
static __attribute__((noinline)) void name_failure(struct grd_node *node)
{
    grd_error_add_context(node->name);
    grd_anomaly_report(node);
}

/* ---- Running one node --------------------------------------------------------------------------------------------------------------------- */
/* Copies the gradients that grd_grad has to return from `grads` to pass->captured. `grads` has one gradient per output of the node. */
static void capture_gradients(struct grd_pass *pass, const struct grd_entry *entry, grd_tensor *const *grads)
{
    for (int32_t i = entry->capture; i != GRD_NO_ENTRY; i = pass->captures[i].next) {
        grd_tensor *grad = grads[pass->captures[i].output];
        if (grad != NULL)
            pass->captured[pass->captures[i].input] = grd_object_keep(grad);
    }
}

/* Stores the gradients that grd_grad has to return, and calls the hooks that run before the node. `grads` are the gradients of the node's outputs.
 * False, with the error raised, on failure. As in PyTorch, the gradients of a node that will run (entry->needed) are stored before its hooks can
 * replace them. The gradients of a node that will not run are stored after its tensor hooks. */
static __attribute__((noinline)) bool show_gradients(struct grd_pass *pass, const struct grd_entry *entry, grd_tensor **grads)
{
    struct grd_node *node = entry->node;
    if (entry->needed)
        capture_gradients(pass, entry, grads);
    if (entry->capture == GRD_NO_ENTRY || !pass->unhooked_inputs)
        grd_hooks_run_tensor(&node->hooks, grads, node->noutputs);
    if (grd_pending())
        return false;
    if (entry->needed)
        grd_hooks_run_node(node, (grd_tensors){0}, grads, node->noutputs);
    else
        capture_gradients(pass, entry, grads);
    if (grd_pending())
        name_failure(node);
    return !grd_pending();
}

/* Replaces *result, the gradient that the node computed for an edge, by a gradient with the shape, dtype and device that the edge needs. The caller
 * then owns *result. False, with the error raised, on failure. */
GRD_INLINE bool take_result(const struct grd_node *node, uint32_t edge, grd_tensor **grads, grd_tensor **result, int64_t mark)
{
    const struct grd_edge *to = &node->edges[edge];
    grd_tensor *given = *result;
    *result = NULL;
    if (given == NULL || to->node == NULL)
        return true;
    given = grd_fit_gradient(&to->node->outputs[to->output], given, node->name, edge);
    if (GRD_UNLIKELY(given == NULL))
        return false;
    if (given == grads[0]) { /* the node returned its incoming gradient unchanged, so the reference moves from `grads` to *result */
        grads[0] = NULL;
        *result = given;
    } else {
        *result = grd_pool_take(given, mark);
    }
    return true;
}

/* Runs the node and its posthooks. Writes one gradient per edge to `results`, converted to the shape, dtype and device that the edge needs. The
 * caller owns the gradients that are not NULL, also after a failure. False, with the error raised, on failure. */
GRD_INLINE bool run_node(struct grd_pass *pass, const struct grd_entry *entry, grd_tensor **grads, grd_tensor **results, int64_t mark,
                         bool careful)
{
    struct grd_node *node = entry->node;
    const uint32_t nedges = node->nedges;
    const grd_tensors noted = GRD_UNLIKELY(node->hooks.first != NULL) ? grd_hooks_note(node, grads) : (grd_tensors){0};
    uint32_t taken = 0;
    node->class->run(node, &(struct grd_run){grads, results, entry->needs, pass->retain});
    while (taken < nedges && !grd_pending() && take_result(node, taken, grads, &results[taken], mark))
        taken++;
    if (GRD_UNLIKELY(grd_pending())) {
        for (uint32_t i = taken; i < nedges; i++)
            results[i] = NULL;
    } else if (!pass->retain && node->class->release != NULL) {
        node->class->release(node);
    }
    if (GRD_UNLIKELY(noted.data != NULL))
        grd_hooks_run_node(node, noted, results, nedges);
    if (careful && !grd_pending())
        grd_anomaly_check(node, results);
    if (GRD_UNLIKELY(grd_pending()))
        name_failure(node);
    return !grd_pending();
}

/* Runs a node that has no edges and no hooks, such as the AccumulateGrad of most leaves. The gradients of its outputs must not be among those that
 * grd_grad returns. False, with the error raised, on failure. */
static inline bool run_last(struct grd_pass *pass, struct grd_entry *entry)
{
    struct grd_node *node = entry->node;
    node->class->run(node, &(struct grd_run){grd_entry_slots(entry), NULL, 0, pass->retain});
    grd_entry_drop_slots(entry);
    if (GRD_UNLIKELY(grd_pending()))
        name_failure(node);
    return !grd_pending();
}

/* Called when all gradients of a node have arrived. Puts the node into the heap of ready nodes. Without worker threads, a node
 * that has no edges runs at once instead, unless it has hooks or grd_grad returns its gradients. False, with the error raised, on failure. */
GRD_INLINE bool complete(struct grd_pass *pass, struct grd_entry *entry, int32_t index, bool threaded)
{
    const struct grd_node *node = entry->node;
    if (!threaded && node->nedges == 0 && GRD_LIKELY(node->hooks.first == NULL && entry->capture == GRD_NO_ENTRY))
        return entry->grads.one == NULL || run_last(pass, entry);
    return make_ready(pass, index, threaded);
}

/* Moves each gradient in `results` (one per edge of the node) to the node at the end of its edge, and adds it to the sum of the gradients received
 * so far. A node that needs no further gradient becomes ready. With worker threads (`threaded`) the caller holds the lock. False, with the error
 * raised, on failure. */
GRD_INLINE bool deliver(struct grd_pass *pass, const struct grd_node *node, grd_tensor **results, bool threaded)
{
    const struct grd_edge *edge = node->edges, *end = edge + node->nedges;
    bool ok = true;
    for (; edge < end; edge++, results++) {
        if (edge->node == NULL)
            continue;
        int32_t index = grd_pass_find(pass, edge->node);
        struct grd_entry *below = &pass->entries[index];
        if (GRD_UNLIKELY(!ok || !grd_entry_wanted(below))) {
            grd_object_drop(*results);
            continue;
        }
        if (GRD_LIKELY(*results != NULL))
            ok = grd_pass_give(pass, below, edge->output, *results);
        if (--below->dependencies == 0)
            ok = ok && complete(pass, below, index, threaded);
    }
    return ok;
}

static bool deliver_locked(struct grd_pass *pass, const struct grd_node *node, grd_tensor **results)
{
    pthread_mutex_lock(&pass->lock);
    bool ok = deliver(pass, node, results, true);
    pthread_cond_broadcast(&pass->changed);
    pthread_mutex_unlock(&pass->lock);
    return ok;
}

/* True if any of the n tensors is not NULL. */
static inline bool any_defined(grd_tensor *const *tensors, uint32_t n)
{
    if (GRD_LIKELY(n == 1))
        return tensors[0] != NULL;
    for (uint32_t i = 0; tensors != NULL && i < n; i++)
        if (tensors[i] != NULL)
            return true;
    return false;
}

/* Calls the hooks of the node of pass->entries[index], runs the node, and delivers the results to the nodes that its edges lead to. All gradients of
 * the node must have arrived. The caller must not hold the lock. False, with the error raised, on failure. */
GRD_INLINE bool run_entry(struct grd_pass *pass, int32_t index, bool threaded)
{
    struct grd_entry *entry = &pass->entries[index];
    struct grd_node *node = entry->node;
    grd_tensor *inline_results[INLINE_GRADS] = {NULL}, **results = inline_results, **grads = grd_entry_slots(entry);
    const uint32_t nedges = node->nedges;
    const int64_t mark = grd_pool_mark();
    bool ok = true;
    if (GRD_UNLIKELY(nedges > INLINE_GRADS) && (results = grd_alloc_zeroed(nedges * sizeof *results)) == NULL)
        return false;
    bool defined = any_defined(grads, node->noutputs);
    if (GRD_UNLIKELY(defined && (node->hooks.first != NULL || entry->capture != GRD_NO_ENTRY))) {
        ok = show_gradients(pass, entry, grads);
        defined = any_defined(grads, node->noutputs);
    }
    if (ok && defined && entry->needed)
        ok = run_node(pass, entry, grads, results, mark, threaded);
    /* Drop temporaries before delivering, so that a gradient with one owner left can be stolen or added to in place. */
    grd_entry_drop_slots(entry);
    grd_pool_release_above(mark);
    if (GRD_UNLIKELY(!ok))
        for (uint32_t i = 0; i < nedges; i++)
            grd_object_drop(results[i]);
    else
        ok = threaded ? deliver_locked(pass, node, results) : deliver(pass, node, results, false);
    grd_pool_release_above(mark);
    if (GRD_UNLIKELY(nedges > INLINE_GRADS))
        grd_free(results, nedges * sizeof *results);
    return ok;
}

/* ---- The loops ------------------------------------------------------------------------------------------------------------------------------ */
/* Runs in the calling thread all nodes that are ready or become ready meanwhile. False, with the error raised, on failure. */
static bool run_alone(struct grd_pass *pass)
{
    while (pass->heap.n > 0)
        if (!run_entry(pass, heap_pop(&pass->heap), false))
            return false;
    return true;
}

/* Runs the ready nodes in `heap`, the heap of this thread, to which other threads add nodes. Returns when no thread has a ready or running node
 * left, or after an error in any thread. */
static void run_share(struct grd_pass *pass, struct grd_heap *heap)
{
    pthread_mutex_lock(&pass->lock);
    while (!pass->stop && pass->outstanding > 0) {
        if (heap->n == 0) {
            pthread_cond_wait(&pass->changed, &pass->lock);
            continue;
        }
        int32_t index = heap_pop(heap);
        pthread_mutex_unlock(&pass->lock);
        bool ok = run_entry(pass, index, true);
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
    struct grd_worker *worker = context;
    struct grd_pass *pass = worker->pass;
    grd_thread.include = pass->include;
    grd_thread.exclude = pass->exclude;
    grd_thread.grad_off = pass->grad_off;
    grd_thread.level = pass->level;
    run_share(pass, &worker->heap);
    return NULL;
}

/* Starts a worker thread for each device type in the graph except the CPU. If the thread of a device type cannot be created, the calling
 * thread runs the nodes of this type. */
static void start_workers(struct grd_pass *pass, const bool *present)
{
    pthread_mutex_lock(&pass->lock);
    for (int device = GRD_DEVICE_FIRST_EXTRA; device < GRD_DEVICE_COUNT; device++) {
        if (!present[device])
            continue;
        struct grd_worker *worker = &pass->workers[pass->nworkers];
        worker->pass = pass;
        worker->device = (uint8_t)device;
        heap_init(&worker->heap);
        pass->nworkers += pthread_create(&worker->thread, NULL, worker_main, worker) == 0;
    }
    pthread_mutex_unlock(&pass->lock);
}

/* Sets ret_present[d] for each device type d on which the pass has nodes. Returns the number of these types, not counting cpu and meta. */
static int find_devices(const struct grd_pass *pass, bool *ret_present)
{
    int n = 0;
    memset(ret_present, 0, GRD_DEVICE_COUNT * sizeof *ret_present);
    for (int64_t i = 0; i < pass->n; i++) {
        const uint8_t device = pass->entries[i].node->device;
        n += device >= GRD_DEVICE_FIRST_EXTRA && !ret_present[device];
        ret_present[device] = true;
    }
    return n;
}

/* Makes the nodes of the outputs ready to run, except nodes that wait for gradients from other nodes and nodes whose gradients the pass does not
 * use. A node of several outputs becomes ready only once. If there is only one output, its node always becomes ready, so that its hooks are called.
 * False, with MemoryError, on failure. */
GRD_INLINE bool make_first_ready(struct grd_pass *pass, const int32_t *roots, int64_t nroots, bool threaded)
{
    if (GRD_LIKELY(nroots == 1))
        return make_ready(pass, roots[0], threaded);
    for (int64_t i = 0; i < nroots; i++)
        pass->entries[roots[i]].dependencies++;
    for (int64_t i = 0; i < nroots; i++) {
        struct grd_entry *entry = &pass->entries[roots[i]];
        if (--entry->dependencies == 0 && grd_entry_wanted(entry) && !make_ready(pass, roots[i], threaded))
            return false;
    }
    return true;
}

/* Runs all needed nodes of the pass, with a worker thread for each device type other than the CPU. In anomaly mode also checks the gradients for
 * NaN. False, with the error raised, on failure. */
static __attribute__((noinline)) bool run_threaded(struct grd_pass *pass, const int32_t *roots, int64_t nroots)
{
    bool present[GRD_DEVICE_COUNT];
    const size_t size = (size_t)(find_devices(pass, present) + 1) * sizeof *pass->workers; /* + 1 because the size must not be 0 */
    pass->workers = grd_alloc(size);
    if (pass->workers == NULL)
        return false;
    pass->include = grd_thread.include;
    pass->exclude = grd_thread.exclude;
    pass->grad_off = grd_thread.grad_off;
    pass->level = grd_thread.level;
    pthread_mutex_init(&pass->lock, NULL);
    pthread_cond_init(&pass->changed, NULL);
    pass->outstanding = 1; /* keeps the workers alive until the first nodes are ready; they end when it is 0 */
    start_workers(pass, present);
    pthread_mutex_lock(&pass->lock);
    bool ok = make_first_ready(pass, roots, nroots, true);
    pass->outstanding--;
    pass->stop = !ok;
    pthread_cond_broadcast(&pass->changed);
    pthread_mutex_unlock(&pass->lock);
    if (ok)
        run_share(pass, &pass->heap);
    for (int i = 0; i < pass->nworkers; i++) {
        pthread_join(pass->workers[i].thread, NULL);
        heap_done(&pass->workers[i].heap);
    }
    grd_free(pass->workers, size);
    pass->workers = NULL;
    pass->nworkers = 0;
    pthread_cond_destroy(&pass->changed);
    pthread_mutex_destroy(&pass->lock);
    if (pass->error.code != GRD_ERROR_NONE)
        grd_error_restore(pass->error);
    return ok && !grd_pending();
}

bool grd_pass_run(struct grd_pass *pass, const int32_t *roots, int64_t nroots)
{
    uint32_t grad_off = grd_thread.grad_off;
    grd_thread.grad_off = pass->create ? 0 : GRD_AUTOGRAD_BIT;
    heap_init(&pass->heap);
    bool ok;
    if (GRD_UNLIKELY(pass->careful))
        ok = run_threaded(pass, roots, nroots);
    else
        ok = make_first_ready(pass, roots, nroots, false) && run_alone(pass);
    heap_done(&pass->heap);
    grd_thread.grad_off = grad_off;
    return ok;
}
