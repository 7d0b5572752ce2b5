/* The engine: runs the nodes of a pass, latest first, each as soon as all gradients it waits for are there.
 *
 * Threads: with cpu nodes only, the calling thread does all, without a lock. Each further device type in the graph gets a worker for the
 * duration of the pass; then the lock guards slots, counts and heaps, and is free while a node runs.
 * Not here: how the nodes are found and where gradients add up (pass.c), and what the user calls (backward.c).
 * Invariants
 * - What a node returns is kept before the node's scope closes.
 * - After an error nothing new starts; slots are dropped at the end. */
#include "autograd/pass.h"

#include <string.h>

enum { INLINE_GRADS = 8 };

/* ---- Scheduling ----------------------------------------------------------------------------------------------------------------------- */
static struct grd_heap *heap_for(struct grd_pass *pass, uint8_t device)
{
    for (int i = 0; i < pass->nworkers; i++)
        if (pass->workers[i].device == device)
            return &pass->workers[i].heap;
    return &pass->heap;
}

static bool make_ready(struct grd_pass *pass, int32_t index)
{
    const struct grd_node *node = pass->entries[index].node;
    if (!grd_heap_push(heap_for(pass, node->device), (struct grd_ready){node->sequence, index}))
        return false;
    pass->outstanding++;
    return true;
}

static void lock(struct grd_pass *pass)
{
    if (pass->nworkers > 0)
        pthread_mutex_lock(&pass->lock);
}

static void unlock(struct grd_pass *pass)
{
    if (pass->nworkers > 0) {
        pthread_cond_broadcast(&pass->changed);
        pthread_mutex_unlock(&pass->lock);
    }
}

/* ---- Running one node --------------------------------------------------------------------------------------------------------------------- */
struct step {
    struct grd_node *node;
    grd_tensor **grads;   /* of the outputs, owned */
    grd_tensor **results; /* of the edges; owned once kept */
    uint32_t kept;
};

static uint64_t needed_edges(const struct grd_pass *pass, const struct grd_node *node)
{
    uint64_t needs = 0;
    for (uint32_t i = 0; i < node->nedges; i++) {
        if (node->edges[i].node == NULL)
            continue;
        bool wanted = pass->captures == NULL || grd_entry_wanted(&pass->entries[grd_pass_find(pass, node->edges[i].node)]);
        needs |= (uint64_t)wanted << (i < 63 ? i : 63);
    }
    return needs;
}

static void capture_gradients(struct grd_pass *pass, const struct grd_entry *entry, grd_tensor *const *grads)
{
    for (int32_t i = entry->capture; i != GRD_NO_ENTRY; i = pass->captures[i].next) {
        grd_tensor *grad = grads[pass->captures[i].output];
        if (grad != NULL)
            pass->captured[pass->captures[i].input] = grd_object_keep(grad);
    }
}

/* Calls the node; its results are then kept and as the edges want them. */
static bool run_node(struct grd_pass *pass, struct step *step)
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
        step->results[i] =
            edge->node != NULL ? grd_fit_gradient(&edge->node->outputs[edge->output], step->results[i], node->name, i) : NULL;
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
static bool deliver(struct grd_pass *pass, const struct step *step)
{
    const struct grd_node *node = step->node;
    for (uint32_t i = 0; i < node->nedges; i++) {
        const struct grd_edge *edge = &node->edges[i];
        if (edge->node == NULL)
            continue;
        int32_t index = grd_pass_find(pass, edge->node);
        struct grd_entry *below = &pass->entries[index];
        if (!grd_entry_wanted(below))
            continue;
        grd_tensor *grad = step->results[i];
        if (grad != NULL && !grd_pass_add(pass, below, edge->output, grad))
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
static bool run_entry(struct grd_pass *pass, int32_t index)
{
    struct grd_entry *entry = &pass->entries[index];
    struct grd_node *node = entry->node;
    grd_tensor *inline_results[INLINE_GRADS];
    struct step step = {.node = node, .grads = grd_entry_slots(entry), .results = inline_results};
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
        if (ok && entry->capture != GRD_NO_ENTRY)
            capture_gradients(pass, entry, step.grads);
        if (ok && entry->needed)
            ok = run_node(pass, &step);
    }
    /* Released before delivery: what came out of the node is then held by nobody who does not need it. */
    grd_entry_drop_slots(entry);
    grd_pool_release(mark);
    lock(pass);
    if (ok)
        ok = deliver(pass, &step);
    for (uint32_t i = 0; i < step.kept; i++)
        grd_object_drop(step.results[i]);
    unlock(pass);
    grd_pool_release(mark);
    if (step.results != inline_results)
        grd_free(step.results, node->nedges * sizeof *step.results);
    return ok;
}

/* ---- The loops ------------------------------------------------------------------------------------------------------------------------------ */
static bool run_alone(struct grd_pass *pass)
{
    while (pass->heap.n > 0)
        if (!run_entry(pass, grd_heap_pop(&pass->heap)))
            return false;
    return true;
}

/* A thread's share: until nothing is ready or running anywhere. */
static void run_share(struct grd_pass *pass, struct grd_heap *heap)
{
    pthread_mutex_lock(&pass->lock);
    while (!pass->stop && pass->outstanding > 0) {
        if (heap->n == 0) {
            pthread_cond_wait(&pass->changed, &pass->lock);
            continue;
        }
        int32_t index = grd_heap_pop(heap);
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
    struct grd_worker *worker = context;
    struct grd_pass *pass = worker->pass;
    grd_thread.include = pass->include;
    grd_thread.exclude = pass->exclude;
    grd_thread.grad_off = pass->grad_off;
    run_share(pass, &worker->heap);
    return NULL;
}

/* One worker for each device type in the graph that is not the calling thread's. Where a thread cannot be had, the caller does its work. */
static bool start_workers(struct grd_pass *pass, const bool *present)
{
    pthread_mutex_lock(&pass->lock);
    for (int device = GRD_DEVICE_FIRST_EXTRA; device < GRD_DEVICE_COUNT; device++) {
        if (!present[device])
            continue;
        struct grd_worker *worker = &pass->workers[pass->nworkers];
        worker->pass = pass;
        worker->device = (uint8_t)device;
        grd_heap_init(&worker->heap);
        pass->nworkers += pthread_create(&worker->thread, NULL, worker_main, worker) == 0;
    }
    pthread_mutex_unlock(&pass->lock);
    return pass->nworkers > 0;
}

/* How many device types other than the cpu's are in the graph, and which. */
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

static bool has_other_devices(const struct grd_pass *pass)
{
    for (int64_t i = 0; i < pass->n; i++)
        if (pass->entries[i].node->device >= GRD_DEVICE_FIRST_EXTRA)
            return true;
    return false;
}

/* Entries that wait for nothing. */
static bool make_first_ready(struct grd_pass *pass, const int32_t *roots, int64_t nroots)
{
    for (int64_t i = 0; i < nroots; i++) {
        struct grd_entry *entry = &pass->entries[roots[i]];
        if (entry->dependencies == 0 && grd_entry_wanted(entry)) {
            entry->dependencies = -1; /* an output given twice is ready once */
            if (!make_ready(pass, roots[i]))
                return false;
        }
    }
    return true;
}

static bool run_threaded(struct grd_pass *pass, const int32_t *roots, int64_t nroots)
{
    bool present[GRD_DEVICE_COUNT];
    const size_t size = (size_t)find_devices(pass, present) * sizeof *pass->workers;
    pass->workers = grd_alloc(size);
    if (pass->workers == NULL)
        return false;
    pass->include = grd_thread.include;
    pass->exclude = grd_thread.exclude;
    pass->grad_off = grd_thread.grad_off;
    pthread_mutex_init(&pass->lock, NULL);
    pthread_cond_init(&pass->changed, NULL);
    pass->outstanding = 1; /* keeps the workers until everything is set up */
    bool threaded = start_workers(pass, present);
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
        pthread_join(pass->workers[i].thread, NULL);
        grd_heap_done(&pass->workers[i].heap);
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
    bool ok;
    if (GRD_UNLIKELY(has_other_devices(pass)))
        ok = run_threaded(pass, roots, nroots);
    else
        ok = make_first_ready(pass, roots, nroots) && run_alone(pass);
    grd_thread.grad_off = grad_off;
    return ok;
}
