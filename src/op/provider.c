/* Chooses among the providers of an operator, i.e. its named implementations, and registers the providers of plug-ins. See provider.h.
 *
 * Invariant: a plug-in's provider writes only to newly allocated memory, so a failed call has changed nothing. */
#include "op/provider.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fork.h"
#include "base/memory.h"
#include "base/transaction.h"
#include "core/device.h"
#include "core/new.h"
#include "core/tensor.h"
#include "core/transfer.h"
#include "dispatch/device.h"
#include "op/out.h"
#include "core/iter.h"

static pthread_mutex_t registration = PTHREAD_MUTEX_INITIALIZER;

/* ---- GRADUS_PROVIDER -------------------------------------------------------------------------------------------------------------- */

enum { MOST_WISHES = 32, WORD = 64 };

/* One entry of the environment variable GRADUS_PROVIDER, e.g. "mm:-blas". `op` is "" if the entry is for all operators. */
struct wish {
    char op[WORD], provider[WORD];
    /* True for "-name": the provider must not be used. */
    bool forbids;
};

static struct wish wishes[MOST_WISHES];
static int nwishes;
bool grd_provider_wishes;

/* Parses one entry of GRADUS_PROVIDER, e.g. "mm:-blas", into `ret`. Returns false if the entry is malformed. */
static bool read_wish(const char *text, size_t length, struct wish *ret)
{
    const char *colon = memchr(text, ':', length);
    const size_t op = colon != NULL ? (size_t)(colon - text) : 0, skipped = colon != NULL ? op + 1 : 0;
    const char *name = text + skipped;
    size_t rest = length - skipped;
    ret->forbids = rest > 0 && *name == '-';
    name += ret->forbids;
    rest -= ret->forbids;
    if (op >= WORD || rest == 0 || rest >= WORD || (colon != NULL && op == 0))
        return false;
    snprintf(ret->op, WORD, "%.*s", (int)op, text);
    snprintf(ret->provider, WORD, "%.*s", (int)rest, name);
    return true;
}

void grd_provider_init(void)
{
    static struct grd_held_lock held = {.lock = &registration};
    grd_hold_around_fork(&held);
    const char *text = getenv("GRADUS_PROVIDER");
    while (text != NULL && *text != '\0') {
        const size_t length = strcspn(text, ",");
        if (nwishes == MOST_WISHES || !read_wish(text, length, &wishes[nwishes]))
            fprintf(stderr, "gradus: GRADUS_PROVIDER: '%.*s' is not understood: say operator:provider or -provider\n", (int)length, text);
        else
            nwishes++;
        text += length + (text[length] == ',');
    }
    grd_provider_wishes = nwishes > 0;
}

enum standing { FORBIDDEN, FREE, WANTED };

/* Returns whether GRADUS_PROVIDER wants the provider, forbids it or does not mention it. An entry for this operator overrides an entry for all
 * operators. */
static enum standing standing_of(const struct grd_op *op, const char *provider)
{
    enum standing standing = FREE;
    bool named = false;
    for (int i = 0; i < nwishes; i++) {
        const bool own = strcmp(wishes[i].op, op->name) == 0;
        if ((!own && (named || *wishes[i].op != '\0')) || strcmp(wishes[i].provider, provider) != 0)
            continue;
        standing = wishes[i].forbids ? FORBIDDEN : WANTED;
        named |= own;
    }
    return standing;
}

/* ---- Built-in providers -------------------------------------------------------------------------------------------------------------- */

static bool serves(const struct grd_provider *provider, const struct grd_plan *p)
{
    return provider->serves == NULL || provider->serves(p);
}

/* Returns the provider (implementation) for a call when GRADUS_PROVIDER is set: the first provider that the variable wants, otherwise the default
 * among the providers that it does not mention. Returns NULL, with RuntimeError, if none of these providers can compute the call. */
static const struct grd_provider *choose_among(const struct grd_plan *p, const struct grd_provider *providers, int n)
{
    for (int i = 0; i < n; i++)
        if (standing_of(p->op, providers[i].name) == WANTED && serves(&providers[i], p))
            return &providers[i];
    for (int i = 0; i < n; i++)
        if (standing_of(p->op, providers[i].name) == FREE && (providers[i].wins == NULL || providers[i].wins(p)) &&
            serves(&providers[i], p))
            return &providers[i];
    grd_raise(GRD_ERROR_RUNTIME, "GRADUS_PROVIDER excludes every provider of this call; available are: %s", grd_providers(p->op->name));
    return NULL;
}

const struct grd_provider *grd_choose_provider(const struct grd_plan *p, const struct grd_provider *providers, int n)
{
    if (GRD_UNLIKELY(grd_provider_wishes))
        return choose_among(p, providers, n);
    for (int i = 0; i + 1 < n; i++)
        if ((providers[i].wins == NULL || providers[i].wins(p)) && serves(&providers[i], p))
            return &providers[i];
    return &providers[n - 1];
}

/* ---- Providers of plug-ins ----------------------------------------------------------------------------------------------------------- */

/* A provider that a plug-in has registered. */
struct plugged {
    char name[WORD];
    grd_provider_condition *takes;
    grd_provider_run *run;
    void *context;
    struct plugged *_Atomic next;
};

/* The providers that plug-ins have registered for one operator on the CPU, in the order of registration. Readers take no lock, so a node must be
 * complete before it is linked into the list. */
struct providers {
    const struct grd_op *op;
    struct plugged *_Atomic first;
    struct providers *_Atomic next;
};

/* List of all operators that have plug-in providers. */
static struct providers *_Atomic registry;
static struct providers *find_providers(const struct grd_op *op)
{
    struct providers *found = atomic_load_explicit(&registry, memory_order_acquire);
    while (found != NULL && found->op != op)
        found = atomic_load_explicit(&found->next, memory_order_acquire);
    return found;
}

/* Raises RuntimeError if the operator has no plan, e.g. because it is made of other operators. A provider needs the plan, because it replaces only
 * the run of the operator. */
static bool check_can_be_planned(const struct grd_op *op)
{
    const char *kind = op->defined        ? "defined by a plug-in"
                       : op->composite    ? "made of other operators"
                       : op->is_view      ? "a view"
                       : op->returns_list ? "one that returns a list"
                                          : NULL;
    return kind == NULL || grd_raise(GRD_ERROR_RUNTIME, "operator '%s' cannot have a provider: it is %s", op->name, kind);
}

/* Returns a tensor on the meta device with the sizes, strides and dtype of t, or NULL if t is NULL. If t was made from a Python number
 * (GRD_FLAG_NUMBER), the returned tensor counts as such a number, too. */
static grd_tensor *meta_twin(const grd_tensor *t)
{
    const grd_device meta = {GRD_DEVICE_META, 0};
    grd_tensor *twin = t == NULL ? NULL : grd_new_strided(grd_sizes(t), grd_strides(t), (grd_dtype)t->dtype, meta);
    if (twin != NULL && !grd_is_failed(twin))
        twin->flags |= t->flags & GRD_FLAG_NUMBER;
    return twin;
}

/* Returns a copy of an argument in which meta tensors replace the tensors (see meta_twin()). If the argument is a device, returns the meta device. */
static grd_value meta_value(const grd_value *value)
{
    grd_value twin = *value;
    if (value->kind == GRD_KIND_TENSOR)
        twin.v.tensor = meta_twin(value->v.tensor);
    if (value->kind == GRD_KIND_DEVICE)
        twin.v.device = (grd_device){GRD_DEVICE_META, 0};
    if (value->kind == GRD_KIND_TENSORS && value->v.tensors.n > 0) {
        grd_tensor **list = grd_pool_array(value->v.tensors.n, sizeof *list);
        for (int64_t i = 0; list != NULL && i < value->v.tensors.n; i++)
            list[i] = meta_twin(value->v.tensors.data[i]);
        twin.v.tensors.data = list;
    }
    return twin;
}

/* Allocates the results of a call and stores them in ret_results. Finds their sizes, strides and dtypes by calling the operator on the meta device.
 * Returns false on an error. */
static bool make_results(const struct grd_op *op, const grd_value *args, grd_device device, grd_tensor **ret_results)
{
    grd_value twins[GRD_MAX_ARGS], planned[GRD_MAX_RESULTS];
    for (int i = 0; i < op->nargs; i++)
        twins[i] = meta_value(&args[i]);
    grd_fail_results(op, planned);
    if (!grd_pending())
        op->unbox(op->kernel, NULL, twins, planned);
    for (int i = 0; i < op->nresults && !grd_pending(); i++) {
        const grd_tensor *like = planned[i].v.tensor;
        ret_results[i] = grd_new_strided(grd_sizes(like), grd_strides(like), (grd_dtype)like->dtype, device);
    }
    return !grd_pending();
}

/* Copies `result` to `out`, the tensor of an out= or in-place call. */
static bool move_to(grd_tensor *out, grd_tensor *result)
{
    if (!grd_is_extra(grd_device_of(result)))
        return !grd_is_failed(grd_out_finish(out, result));
    if (out->dtype != result->dtype)
        return grd_raise(GRD_ERROR_NOT_IMPLEMENTED, "out= on this device must have dtype %s, not %s", grd_dtype_name(result->dtype),
                         grd_dtype_name(out->dtype));
    return grd_out_resize(out, result) && grd_transfer(out, result);
}

/* Writes the results of a run to ret_results. If `out` is not NULL, copies the first result to `out`, and writes `out` to ret_results instead of the
 * first result. On failure ret_results stays unchanged. */
static void deliver(const struct grd_op *op, grd_tensor *out, const grd_value *args, grd_tensor **results, grd_value *ret_results)
{
    const bool in_place = out != NULL && op->nargs > 0 && args[0].kind == GRD_KIND_TENSOR && args[0].v.tensor == out;
    if ((in_place && !grd_check_inplace_shape(out, grd_sizes(results[0]))) || (out != NULL && !move_to(out, results[0])))
        return;
    results[0] = out != NULL ? out : results[0];
    for (int i = 0; i < op->nresults; i++)
        grd_set_tensor(&ret_results[i], results[i]);
}

void grd_run_planned(const grd_op *op, grd_tensor *out, const grd_value *args, grd_value *ret_results, grd_provider_run *run, void *context)
{
    grd_tensor *results[GRD_MAX_RESULTS];
    grd_device from, to;
    if (run == NULL) {
        grd_raise(GRD_ERROR_TYPE, "grd_run_planned: argument 'run' must not be NULL");
        return;
    }
    if (!grd_check_boxed(op, args, ret_results, "grd_run_planned") || !check_can_be_planned(op) ||
        !grd_devices_of_call(op, out, args, &from, &to) || !make_results(op, args, to, results))
        return;
    if (run(op, args, results, context) && !grd_pending())
        deliver(op, out, args, results, ret_results);
    else
        grd_raise(GRD_ERROR_RUNTIME, "the provider failed without raising an error");
}

/* True if GRADUS_PROVIDER wants the built-in provider "native" and does not want `provider`. */
static bool wants_other(const struct grd_op *op, const char *provider)
{
    return standing_of(op, provider) != WANTED && standing_of(op, "native") == WANTED;
}

/* Runs a CPU call of an operator that has plug-in providers. Candidates are the providers that take the arguments and that GRADUS_PROVIDER does not
 * forbid. The first candidate that GRADUS_PROVIDER wants runs the call, otherwise the first candidate. The built-in implementation runs the call if
 * there is no candidate, or if GRADUS_PROVIDER wants "native" but no candidate. */
static void run_providers(const grd_op *op, grd_keyset keys, grd_tensor *out, const grd_value *args, grd_value *ret_results, void *context)
{
    const struct providers *providers = context;
    const struct plugged *chosen = NULL;
    (void)keys;
    for (const struct plugged *plugged = providers->first; plugged != NULL; plugged = plugged->next) {
        const enum standing standing = standing_of(op, plugged->name);
        if ((chosen == NULL || standing == WANTED) && standing != FORBIDDEN &&
            (plugged->takes == NULL || plugged->takes(op, args, plugged->context)))
            chosen = plugged;
        if (standing == WANTED && chosen == plugged)
            break;
    }
    if (chosen != NULL && !wants_other(op, chosen->name)) {
        grd_run_planned(op, out, args, ret_results, chosen->run, chosen->context);
    } else {
        op->unbox(op->kernel, out, args, ret_results);
    }
    if (op->counts_writes)
        grd_written(out);
}

/* Appends a provider to the list of an operator. The caller holds the lock. */
static void add_last(struct providers *providers, struct plugged *plugged)
{
    struct plugged *_Atomic *place = &providers->first;
    while (*place != NULL)
        place = &(*place)->next;
    atomic_store_explicit(place, plugged, memory_order_release);
}

/* Undoes a registration by removing the last provider of an operator. `subject` is the operator's struct providers, and `which` is not used. If no
 * provider is left, the operator gets its built-in kernel back. The caller must not hold the lock. */
static void take_last(void *subject, int which)
{
    struct providers *providers = subject;
    (void)which;
    pthread_mutex_lock(&registration);
    struct plugged *_Atomic *place = &providers->first;
    while (*place != NULL && (*place)->next != NULL)
        place = &(*place)->next;
    free(*place);
    atomic_store_explicit(place, NULL, memory_order_release);
    if (providers->first == NULL)
        grd_reset_slot((struct grd_op *)providers->op, GRD_KEY_CPU);
    pthread_mutex_unlock(&registration);
}

static const struct grd_step_type step = {.roll_back = take_last};

/* True if the text is a valid name of a provider: letters, digits and '_'. */
static bool is_name(const char *name)
{
    const size_t length = name != NULL ? strlen(name) : 0;
    return length > 0 && length < WORD && strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == length;
}

static bool check_registration(const struct grd_op *op, const char *op_name, const char *name, grd_provider_run *run)
{
    if (op == NULL)
        return grd_raise(GRD_ERROR_RUNTIME, "there is no operator '%s' to register a provider for", op_name ? op_name : "(NULL)");
    if (run == NULL)
        return grd_raise(GRD_ERROR_TYPE, "a provider is a function, not NULL");
    if (!is_name(name))
        return grd_raise(GRD_ERROR_VALUE, "'%s' cannot be a provider's name: letters, digits and '_', at most %d", name ? name : "(NULL)",
                         WORD - 1);
    if (!check_can_be_planned(op))
        return false;
    if (op->boxed[GRD_KEY_CPU].kernel != NULL && find_providers(op) == NULL)
        return grd_raise(GRD_ERROR_RUNTIME, "operator '%s' has a kernel for dispatch key CPU already", op->name);
    for (const char *names = grd_providers(op->name); *names != '\0'; names += strspn(names, " ")) {
        const size_t length = strcspn(names, " ");
        if (length == strlen(name) && memcmp(names, name, length) == 0)
            return grd_raise(GRD_ERROR_RUNTIME, "operator '%s' has a provider '%s' already", op->name, name);
        names += length;
    }
    return true;
}

/* Returns the list of providers of an operator, and creates it if there is none. Returns NULL and raises MemoryError if memory runs out. The caller
 * holds the lock. */
static struct providers *providers_of(const struct grd_op *op)
{
    struct providers *providers = find_providers(op);
    if (providers != NULL)
        return providers;
    if ((providers = calloc(1, sizeof *providers)) == NULL) {
        grd_raise(GRD_ERROR_MEMORY, "no memory for a provider of '%s'", op->name);
        return NULL;
    }
    providers->op = op;
    atomic_store_explicit(&providers->next, registry, memory_order_relaxed);
    atomic_store_explicit(&registry, providers, memory_order_release);
    return providers;
}

void grd_register_provider(const char *op_name, const char *name, grd_provider_condition *takes, grd_provider_run *run, void *context)
{
    struct grd_op *op = (struct grd_op *)grd_op_find(op_name);
    if (grd_pending())
        return;
    pthread_mutex_lock(&registration);
    struct plugged *plugged = check_registration(op, op_name, name, run) ? calloc(1, sizeof *plugged) : NULL;
    struct providers *providers = plugged != NULL ? providers_of(op) : NULL;
    if (providers != NULL && grd_transaction_add(&step, providers, 0)) {
        memcpy(plugged->name, name, strlen(name));
        plugged->takes = takes;
        plugged->run = run;
        plugged->context = context;
        add_last(providers, plugged);
        grd_fill_slot(op, GRD_KEY_CPU, run_providers, providers);
    } else {
        free(plugged);
        grd_raise(GRD_ERROR_MEMORY, "no memory for provider '%s'", name);
    }
    pthread_mutex_unlock(&registration);
}

const char *grd_providers(const char *op_name)
{
    static _Thread_local char text[256];
    const struct grd_op *op = grd_op_find(op_name);
    const struct providers *providers = op != NULL ? find_providers(op) : NULL;
    size_t length = 0;
    text[0] = '\0';
    if (op == NULL) {
        grd_raise(GRD_ERROR_RUNTIME, "there is no operator '%s'", op_name ? op_name : "(NULL)");
        return text;
    }
    for (const struct plugged *p = providers != NULL ? providers->first : NULL; p != NULL && length < sizeof text; p = p->next)
        length += (size_t)snprintf(text + length, sizeof text - length, "%s ", p->name);
    if (length < sizeof text && !op->composite && !op->is_view && !op->defined)
        snprintf(text + length, sizeof text - length, "%s", op->providers != NULL ? op->providers : "native");
    return text;
}
