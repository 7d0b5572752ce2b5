/* Keeps the list of running calls of operators and of functions such as grd_resize_, and tests whether two calls may run at the same time (debug
 * mode GRADUS_DEBUG=races). */
#include "core/races.h"

#include <pthread.h>

#include "base/error.h"
#include "base/fork.h"
#include "core/tensor.h"

static struct {
    pthread_mutex_t lock;
    struct grd_race *first;
} running = {.lock = PTHREAD_MUTEX_INITIALIZER};

void grd_races_init(void)
{
    static struct grd_held_lock held = {.lock = &running.lock};
    grd_hold_around_fork(&held);
}

/* Returns the tensors in `value`, or an empty list if the value is of another kind. */
static grd_tensors tensors_of(const grd_value *value)
{
    if (value->kind == GRD_KIND_TENSORS)
        return value->v.tensors;
    const bool is_tensor = value->kind == GRD_KIND_TENSOR && value->v.tensor != NULL;
    return (grd_tensors){is_tensor, (grd_tensor **)(uintptr_t)&value->v.tensor};
}

/* True if some tensor of `value` and some tensor of `other` have the same storage. */
static bool share_memory(const grd_value *value, const grd_value *other)
{
    const grd_tensors ours = tensors_of(value), theirs = tensors_of(other);
    for (int64_t i = 0; i < ours.n; i++)
        for (int64_t k = 0; k < theirs.n; k++)
            if (ours.data[i] == theirs.data[k] || (ours.data[i]->storage != NULL && ours.data[i]->storage == theirs.data[k]->storage))
                return true;
    return false;
}

/* True if the two calls must not run at the same time. Calls on one thread never conflict. Calls on different threads conflict if one of them needs
 * its first argument for itself (`alone`) and the other one uses the same memory. */
static bool meet(const struct grd_race *race, const struct grd_race *other)
{
    const int n = race->alone ? 1 : race->nargs, m = other->alone ? 1 : other->nargs;
    if ((!race->alone && !other->alone) || race->thread == other->thread)
        return false;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < m; k++)
            if (share_memory(&race->args[i], &other->args[k]))
                return true;
    return false;
}

bool grd_race_begin(struct grd_race *race)
{
    const char *met = NULL;
    bool is_alone = false;
    race->thread = &grd_thread;
    pthread_mutex_lock(&running.lock);
    for (const struct grd_race *other = running.first; other != NULL && met == NULL; other = other->next)
        if (meet(race, other)) {
            met = other->name;
            is_alone = other->alone;
        }
    race->next = running.first;
    if (met == NULL)
        running.first = race;
    pthread_mutex_unlock(&running.lock);
    return met == NULL ||
           grd_raise(
               GRD_ERROR_RUNTIME,
               "%s was called while another thread runs %s on the same tensor, or one that shares its memory; %s needs exclusive use of it",
               race->name, met, is_alone ? met : race->name);
}

void grd_race_end(const struct grd_race *race)
{
    pthread_mutex_lock(&running.lock);
    struct grd_race **link = &running.first;
    while (*link != race)
        link = &(*link)->next;
    *link = race->next;
    pthread_mutex_unlock(&running.lock);
}
