/* Loads plug-ins: opens the file, checks the descriptor, and puts all registrations of the plug-in into one transaction.
 *
 * Kernels and devices are registered in dispatch.c and core/device.c; base/transaction.h undoes registrations. Invariant: a plug-in in the list
 * is loaded, or is being loaded by the thread that holds the lock `loading`. */
#include "gradus/plugin.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/fork.h"
#include "base/memory.h"
#include "base/transaction.h"
#include "dispatch/op.h"
#include "gradus/runtime.h"

struct plugin {
    struct plugin *next;
    void *handle;
    const grd_plugin *descriptor;
    bool loading; /* true until the load function has returned */
};

static struct plugin *plugins;
/* The lock that a thread holds while it loads a plug-in, so that only one thread at a time loads plug-ins. */
static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;
/* The number of plug-ins that this thread is loading. It is more than 1 while a plug-in loads another one. */
static _Thread_local int depth;
/* The lock that a thread holds while it changes the list `plugins`. A fork waits for this lock. It does not wait for `loading`, because that lock
 * is held while code of a plug-in runs, which may take any time. */
static pthread_mutex_t list = PTHREAD_MUTEX_INITIALIZER;

/* Takes the lock `loading`, unless this thread already holds it. */
static void take_loading(void)
{
    if (depth++ == 0)
        pthread_mutex_lock(&loading);
}

static void give_loading(void)
{
    if (--depth == 0)
        pthread_mutex_unlock(&loading);
}

/* Runs in the child of a fork. Initializes the lock `loading` again, because a thread that held it does not exist in the child. If the forking
 * thread itself is loading (depth > 0), it holds the lock in the child too. The unfinished registrations of other threads are undone by
 * transaction.c. */
static void after_fork(void)
{
    pthread_mutex_init(&loading, NULL);
    if (depth > 0)
        pthread_mutex_lock(&loading);
}

void grd_plugin_init(void)
{
    static struct grd_held_lock held = {.lock = &list};
    grd_hold_around_fork(&held);
    pthread_atfork(NULL, NULL, after_fork);
}

/* ---- What is refused ------------------------------------------------------------------------------------------------------------- */

static bool check_descriptor(const grd_plugin *descriptor, const char *path)
{
    if (descriptor == NULL)
        return grd_raise(GRD_ERROR_RUNTIME, "'%s' is not a Gradus plug-in: it does not export grd_plugin_descriptor", path);
    if (descriptor->interface != GRD_PLUGIN_INTERFACE)
        return grd_raise(GRD_ERROR_RUNTIME,
                         "'%s' was built against Gradus %s for plug-in interface %u, but this is Gradus %s with plug-in interface %u", path,
                         descriptor->built_against ? descriptor->built_against : "(unknown)", (unsigned)descriptor->interface,
                         grd_version(), (unsigned)GRD_PLUGIN_INTERFACE);
    if (descriptor->name == NULL || descriptor->name[0] == '\0')
        return grd_raise(GRD_ERROR_RUNTIME, "'%s' is a plug-in without a name", path);
    if (descriptor->load == NULL)
        return grd_raise(GRD_ERROR_RUNTIME, "plug-in '%s' has no load function", descriptor->name);
    for (const struct plugin *p = plugins; p != NULL; p = p->next)
        if (strcmp(p->descriptor->name, descriptor->name) == 0)
            return grd_raise(GRD_ERROR_RUNTIME, "a plug-in named '%s' is already loaded from a file other than '%s'", descriptor->name,
                             path);
    return true;
}

/* ---- Loading -------------------------------------------------------------------------------------------------------------------- */

static struct plugin *find_plugin(const void *handle)
{
    struct plugin *p = plugins;
    while (p != NULL && p->handle != handle)
        p = p->next;
    return p;
}

/* Runs the load function of a plug-in. If it fails, puts the name of the plug-in before the error's text and returns false. */
static bool run_load(const grd_plugin *descriptor)
{
    const int64_t mark = grd_pool_mark();
    const bool loaded = descriptor->load();
    grd_pool_release(mark);
    if (loaded && !grd_pending())
        return true;
    grd_raise(GRD_ERROR_RUNTIME, "the load function failed and set no error");
    grd_error_add_context(descriptor->name);
    return false;
}

static void keep_plugin(void *plugin, int which)
{
    (void)which;
    pthread_mutex_lock(&list);
    ((struct plugin *)plugin)->loading = false;
    pthread_mutex_unlock(&list);
}

static void take_plugin(void *plugin, int which)
{
    (void)which;
    pthread_mutex_lock(&list);
    /* searched from the start, because the load function of `plugin` may have put more plug-ins in front of it */
    struct plugin **place = &plugins;
    while (*place != plugin)
        place = &(*place)->next;
    *place = (*place)->next;
    pthread_mutex_unlock(&list);
    grd_free(plugin, sizeof(struct plugin));
}

static const struct grd_step_type plugin_step = {.commit = keep_plugin, .roll_back = take_plugin};

/* Adds a plug-in to the list before its load function runs, so that a plug-in that loads itself is detected. False, with MemoryError, on failure. */
static bool list_plugin(void *handle, const grd_plugin *descriptor)
{
    struct plugin *plugin = grd_alloc(sizeof *plugin);
    if (plugin == NULL)
        return false;
    pthread_mutex_lock(&list);
    const bool listed = grd_transaction_add(&plugin_step, plugin, 0);
    if (listed) {
        *plugin = (struct plugin){.next = plugins, .handle = handle, .descriptor = descriptor, .loading = true};
        plugins = plugin;
    }
    pthread_mutex_unlock(&list);
    if (!listed)
        grd_free(plugin, sizeof *plugin);
    return listed;
}

static bool load_new(void *handle, const char *path)
{
    const grd_plugin *descriptor = dlsym(handle, "grd_plugin_descriptor");
    return check_descriptor(descriptor, path) && list_plugin(handle, descriptor) && run_load(descriptor);
}

static bool load_locked(const char *path)
{
    struct grd_transaction transaction;
    /* The transaction begins before dlopen, so that it includes registrations by constructors of the plug-in. */
    grd_transaction_begin(&transaction);
    bool loaded = false;
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const struct plugin *known = handle != NULL ? find_plugin(handle) : NULL;
    if (handle == NULL)
        grd_raise(GRD_ERROR_IO, "cannot load plug-in '%s': %s", path, dlerror());
    else if (known != NULL)
        loaded = !known->loading || grd_raise(GRD_ERROR_RUNTIME, "plug-in '%s' is being loaded", known->descriptor->name);
    else
        loaded = load_new(handle, path);
    grd_transaction_end(&transaction, loaded);
    if (handle != NULL && (known != NULL || !loaded))
        dlclose(handle);
    return loaded;
}

bool grd_load_library(const char *path)
{
    if (grd_pending())
        return false;
    if (path == NULL)
        return grd_raise(GRD_ERROR_TYPE, "grd_load_library: argument 'path' must not be NULL");
    /* For a name without a slash, dlopen would search the system's folders. The absolute path makes dlopen take exactly the given file. */
    char resolved[PATH_MAX];
    if (realpath(path, resolved) == NULL)
        return grd_raise_system(errno, "cannot load plug-in '%s'", path);
    take_loading();
    const bool loaded = load_locked(resolved);
    give_loading();
    return loaded;
}
