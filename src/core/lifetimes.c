/* What is known of every tensor, live or in quarantine: a table by address.
 * Invariant: a tensor whose entry says so is dead, and its header is a tombstone. */
#include "core/lifetimes.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cold.h"
#include "base/fork.h"
#include "base/quarantine.h"
#include "core/tensor.h"

enum { BUCKETS = 1 << 16, NAME_CHARS = 64 };

struct life {
    struct life *next; /* in its bucket */
    const grd_tensor *tensor;
    int64_t kept; /* references that callers own */
    bool dead;
    struct grd_scope_trace scope; /* that was being closed when it died; number 0: none */
    char maker[NAME_CHARS];       /* the operator that made it; "": none */
    char killer[NAME_CHARS];      /* the operator whose temporary it was; "": none */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct life *buckets[BUCKETS];

/* Under the lock: where the entry of an address hangs, or would. */
static struct life **find(const void *address)
{
    struct life **link = &buckets[((uintptr_t)address >> 4) * 0x9e3779b97f4a7c15u >> 48];
    while (*link != NULL && (*link)->tensor != address)
        link = &(*link)->next;
    return link;
}

static void set_name(char *name, const char *operator)
{
    snprintf(name, NAME_CHARS, "%s", operator != NULL ? operator : "");
}

void grd_lifetimes_born(grd_tensor *t)
{
    const struct grd_trace *trace = grd_trace_get();
    struct life *made = malloc(sizeof *made);
    pthread_mutex_lock(&lock);
    struct life **link = find(t);
    struct life *life = *link != NULL ? *link : made;
    if (life != NULL) { /* otherwise nothing will be known of this one */
        struct life *next = *link != NULL ? life->next : NULL;
        *life = (struct life){.next = next, .tensor = t};
        set_name(life->maker, trace->running);
        *link = life;
    }
    pthread_mutex_unlock(&lock);
    if (life != made)
        free(made);
}

void grd_lifetimes_made_by(const grd_tensor *t, const char *operator)
{
    pthread_mutex_lock(&lock);
    struct life *life = *find(t);
    if (life != NULL)
        set_name(life->maker, operator);
    pthread_mutex_unlock(&lock);
}

/* ---- Death ------------------------------------------------------------------------------------------------------------------ */

static const struct grd_object_type tombstone_type = {.name = "dead tensor", .destroy = grd_object_stay};

/* Makes a released tensor safe to read: no elements, and the storage of the failed tensor. It is immortal, so that owners who come too late change nothing. */
static void put_tombstone(grd_tensor *t)
{
    const grd_tensor *failed = &grd_failed_block.tensor;
    t->object.type = &tombstone_type;
    atomic_store_explicit(&t->object.refs, GRD_IMMORTAL, memory_order_relaxed);
    t->keys = 1u << GRD_KEY_LIFETIMES;
    t->itemsize = failed->itemsize;
    t->traits = failed->traits;
    t->storage = failed->storage;
    t->data = NULL;
    t->offset = t->numel = 0;
    t->sizes = failed->sizes;
    t->strides = failed->strides;
    t->base = NULL;
    t->autograd = NULL;
    t->binding = NULL;
}

/* True if a tensor that was not known to be dead was at this address. */
static bool mark_dead(const void *address)
{
    const struct grd_trace *trace = grd_trace_get();
    pthread_mutex_lock(&lock);
    struct life *life = *find(address);
    const bool dies = life != NULL && !life->dead;
    if (dies) {
        life->dead = true;
        life->scope = trace->closing;
        set_name(life->killer, trace->running);
    }
    pthread_mutex_unlock(&lock);
    return dies;
}

void grd_lifetimes_died(grd_tensor *t)
{
    if (mark_dead(t))
        put_tombstone(t);
}

/* A block that holds a tensor starts with it. */
static size_t block_dies(void *block)
{
    grd_lifetimes_died(block);
    pthread_mutex_lock(&lock);
    const bool is_known = *find(block) != NULL;
    pthread_mutex_unlock(&lock);
    return is_known ? offsetof(grd_tensor, inline_dims) : 0;
}

static void block_leaves(void *block)
{
    pthread_mutex_lock(&lock);
    struct life **link = find(block), *life = *link;
    if (life != NULL)
        *link = life->next;
    pthread_mutex_unlock(&lock);
    free(life);
}

void grd_lifetimes_init(void)
{
    static const struct grd_quarantine_watcher watcher = {block_dies, block_leaves};
    static struct grd_held_lock held = {.lock = &lock};
    if (!grd_debugging(GRD_DEBUG_LIFETIMES))
        return;
    grd_quarantine_watcher = &watcher;
    grd_hold_around_fork(&held);
}

/* ---- Reports ------------------------------------------------------------------------------------------------------------------ */

/* Returns the record of a tensor; one with nothing but its address if there is none. */
static struct life life_of(const grd_tensor *t)
{
    pthread_mutex_lock(&lock);
    const struct life *known = *find(t);
    const struct life life = known != NULL ? *known : (struct life){.tensor = t};
    pthread_mutex_unlock(&lock);
    return life;
}

static int describe_maker(const struct life *life, char *ret_text)
{
    return snprintf(ret_text, GRD_LIFE_CHARS, "a tensor%s%s", life->maker[0] != '\0' ? " made by " : "", life->maker);
}

const char *grd_lifetimes_describe(const grd_tensor *dead, char *ret_text)
{
    char scope[GRD_SCOPE_CHARS];
    const struct life life = life_of(dead);
    const int n = describe_maker(&life, ret_text);
    char *rest = ret_text + n;
    const size_t room = GRD_LIFE_CHARS - (size_t)n;
    if (life.scope.number > 0)
        snprintf(rest, room, " that is gone: %s, was closed", grd_trace_describe(&life.scope, scope));
    else if (life.killer[0] != '\0')
        snprintf(rest, room, " that is gone: it was a temporary of %s", life.killer);
    else
        snprintf(rest, room, " that is gone: its last owner gave it up");
    return ret_text;
}

bool grd_lifetimes_refuse(const grd_tensor *dead, const char *function, const char *argument)
{
    char text[GRD_LIFE_CHARS];
    return grd_raise(GRD_ERROR_RUNTIME, "%s: argument '%s' is %s", function, argument, grd_lifetimes_describe(dead, text));
}

/* ---- References of callers ------------------------------------------------------------------------------------------------------- */

/* Adds to the count of a live tensor; returns what it was, or -1, with the error raised, for a dead one. */
static int64_t count_kept(const grd_tensor *t, const char *function, int64_t change)
{
    if (grd_is_dead(t)) {
        grd_lifetimes_refuse(t, function, "t");
        return -1;
    }
    pthread_mutex_lock(&lock);
    struct life *life = *find(t);
    const int64_t before = life != NULL ? life->kept : INT64_MAX;
    if (life != NULL && before + change >= 0)
        life->kept += change;
    pthread_mutex_unlock(&lock);
    return before;
}

bool grd_lifetimes_kept(grd_tensor *t, const char *function)
{
    return count_kept(t, function, 1) >= 0;
}

bool grd_lifetimes_dropped(grd_tensor *t, const char *function)
{
    char text[GRD_LIFE_CHARS];
    const int64_t before = count_kept(t, function, -1);
    if (before != 0)
        return before > 0;
    const struct life life = life_of(t);
    describe_maker(&life, text);
    return grd_raise(GRD_ERROR_RUNTIME,
                     "%s: argument 't' is %s that the caller has no reference of: every reference is taken with grd_keep", function, text);
}
