/* Keeps a record of every tensor in a hash table by address, in the debug mode GRADUS_DEBUG=lifetimes. There are records of live tensors, and of
 * freed tensors whose memory is in quarantine, i.e. not reused yet. Invariant: if the record of a tensor says that the tensor is dead, a tombstone
 * (put_tombstone) is at the address of the tensor, i.e. a header that is safe to read. */
#include "core/lifetimes.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cold.h"
#include "base/fork.h"
#include "base/quarantine.h"
#include "core/tensor.h"

enum { BUCKETS = 1 << 16, NAME_CHARS = 64 };

/* The record of one tensor: who made it and, if it is dead, who freed it. */
struct life {
    struct life *next; /* next record in the same bucket of the hash table */
    const grd_tensor *tensor;
    int64_t kept; /* number of references to the tensor that callers own (grd_keep minus grd_drop) */
    bool dead;
    struct grd_scope_trace scope; /* the grd_scope whose closing freed the tensor; its number is 0 if no scope was being closed */
    char maker[NAME_CHARS];       /* name of the operator that made the tensor; "" if no operator did */
    char killer[NAME_CHARS];      /* name of the operator that was running when the tensor was freed; "" if none was */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct life *buckets[BUCKETS];

/* Returns a pointer to the link that points to the record of the tensor at `address`, or to the NULL link where this record would be inserted.
 * The caller holds the lock. */
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
    if (life != NULL) { /* if there is no memory for a record, later uses of the freed tensor are not detected */
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

/* Turns a freed tensor into a tombstone: a header that is safe to read, with no elements and with the storage of grd_failed_tensor, which is
 * never freed. The tombstone is immortal, so that owners which drop it later change nothing. */
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

/* Marks the record of the tensor at `address` as dead. Returns false if there is no such record or the tensor was dead already. */
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

/* Called when a freed block of memory enters the quarantine, which delays its reuse. If the block begins with a tensor, turns the tensor into a
 * header that is safe to read and returns how many bytes of the block stay readable. Otherwise returns 0. */
static size_t block_dies(void *block)
{
    grd_lifetimes_died(block);
    pthread_mutex_lock(&lock);
    const bool is_known = *find(block) != NULL;
    pthread_mutex_unlock(&lock);
    return is_known ? offsetof(grd_tensor, inline_dims) : 0;
}

/* Called when a block of memory leaves the quarantine, i.e. when it can be reused. Removes the record of the tensor that was in it. */
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

/* Returns a copy of the record of `t`. If there is no record, returns one that has only the address. */
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
        snprintf(rest, room, " that has been freed: %s, was closed", grd_trace_describe(&life.scope, scope));
    else if (life.killer[0] != '\0')
        snprintf(rest, room, " that has been freed: it was a temporary of %s", life.killer);
    else
        snprintf(rest, room, " that has been freed: its last owner gave it up");
    return ret_text;
}

bool grd_lifetimes_refuse(const grd_tensor *dead, const char *function, const char *argument)
{
    char text[GRD_LIFE_CHARS];
    return grd_raise(GRD_ERROR_RUNTIME, "%s: argument '%s' is %s", function, argument, grd_lifetimes_describe(dead, text));
}

/* ---- References of callers ------------------------------------------------------------------------------------------------------- */

/* Adds `change` to the number of references to `t` that callers own. Returns the number before the change, or INT64_MAX if `t` has no record.
 * Returns -1, with RuntimeError, if `t` is dead. */
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
    return grd_raise(GRD_ERROR_RUNTIME, "%s: argument 't' is %s to which the caller has no reference; grd_keep takes one", function, text);
}
