/* Begins and ends the dual levels of forward mode (grd_enter_dual_level), and stores the tangents that belong to them.
 * Invariant: a grd_tangent that holds a tensor is in the list of its dual level. The lists and tangents of all threads change under one lock. No
 * tensor is freed under the lock, because freeing may call functions of the user. */
#include "autograd/tangent.h"

#include "base/fork.h"
#include "base/memory.h"
#include "gradus/autograd.h"

#include <pthread.h>

struct grd_dual_level {
    struct grd_object object;
    struct grd_tangent *first; /* the list of the tangents that belong to this dual level */
    bool ended;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* The dual level that this thread has entered, owned; NULL if there is none. */
static _Thread_local struct grd_dual_level *current;

void grd_tangent_init(void)
{
    static struct grd_held_lock held = {.lock = &lock};
    grd_hold_around_fork(&held);
}

/* ---- Lists ----------------------------------------------------------------------------------------------------------------------- */
/* Removes the tangent from `self`, and `self` from the list of its dual level. Returns the tangent, owned by the caller; NULL if there is none.
 * The caller holds the lock. */
static grd_tensor *take(struct grd_tangent *self)
{
    grd_tensor *tangent = self->tensor;
    if (tangent == NULL)
        return NULL;
    self->tensor = NULL;
    *self->at = self->after;
    if (self->after != NULL)
        self->after->at = self->at;
    return tangent;
}

/* Stores a tangent in `self`, and adds `self` to the list of the dual level. False, with nothing stored, if the level has ended. Adds no
 * reference to the tangent. The caller holds the lock. */
static bool put(struct grd_tangent *self, grd_tensor *tangent, struct grd_dual_level *level)
{
    if (level->ended)
        return false;
    self->tensor = tangent;
    self->at = &level->first;
    self->after = level->first;
    if (self->after != NULL)
        self->after->at = &self->after;
    level->first = self;
    return true;
}

void grd_tangent_exchange(struct grd_tangent *self, grd_tensor *tangent, struct grd_dual_level *level)
{
    pthread_mutex_lock(&lock);
    grd_tensor *old = take(self);
    struct grd_dual_level *old_level = self->level;
    if (tangent != NULL && put(self, tangent, level))
        grd_object_keep(tangent);
    self->level = level != NULL ? grd_object_keep(level) : NULL;
    pthread_mutex_unlock(&lock);
    grd_object_drop(old);
    grd_object_drop(old_level);
}

void grd_tangent_clear(struct grd_tangent *self)
{
    if (self->level != NULL)
        grd_tangent_exchange(self, NULL, NULL);
}

grd_tensor *grd_tangent_get(const struct grd_tangent *self, struct grd_dual_level **ret_level)
{
    pthread_mutex_lock(&lock);
    grd_tensor *tangent = self->tensor;
    if (tangent != NULL) {
        grd_object_keep(tangent);
        if (ret_level != NULL)
            *ret_level = grd_object_keep(self->level);
    }
    pthread_mutex_unlock(&lock);
    return tangent;
}

/* ---- Levels ---------------------------------------------------------------------------------------------------------------------- */
static void level_destroy(struct grd_object *object)
{
    grd_free(object, sizeof(struct grd_dual_level));
}

static const struct grd_object_type level_type = {.name = "level", .destroy = level_destroy};

bool grd_enter_dual_level(void)
{
    if (grd_pending())
        return false;
    if (current != NULL)
        return grd_raise(GRD_ERROR_RUNTIME, "Nested forward mode AD is not supported at the moment");
    struct grd_dual_level *level = grd_alloc_zeroed(sizeof *level);
    if (level == NULL)
        return false;
    level->object.type = &level_type;
    atomic_init(&level->object.refs, 1);
    current = level;
    return true;
}

bool grd_exit_dual_level(void)
{
    struct grd_dual_level *level = current;
    if (level == NULL)
        return grd_raise(GRD_ERROR_RUNTIME, "Trying to exit a forward AD level but no level is currently active");
    current = NULL;
    grd_tensor *tangent;
    do {
        pthread_mutex_lock(&lock);
        level->ended = true;
        tangent = level->first != NULL ? take(level->first) : NULL;
        pthread_mutex_unlock(&lock);
        grd_object_drop(tangent);
    } while (tangent != NULL);
    grd_object_drop(level);
    return true;
}

struct grd_dual_level *grd_dual_level_current(void)
{
    return current != NULL ? grd_object_keep(current) : NULL;
}

bool grd_dual_level_is_entered(void)
{
    return current != NULL;
}
