/* Loading plug-ins: opening the file, checking the descriptor, and one transaction around everything the plug-in registers.
 *
 * Lives here: the list of plug-ins. Not here: what is registered (dispatch.c, core/device.c), nor how it is taken back (base/transaction.h).
 * Invariant: a plug-in in the list is loaded, or is being loaded by the thread that holds the lock
 * (in a child process, by a thread of its parent). */
#include "gradus/plugin.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/transaction.h"
#include "dispatch/op.h"
#include "gradus/runtime.h"

struct plugin {
    struct plugin *next;
    void *handle;
    const grd_plugin *descriptor;
    bool loading;
};

static struct plugin *plugins;
/* Held while a plug-in loads, so that no two do. Recursive: a plug-in may load another. */
static pthread_mutex_t lock;

static void init_lock(void)
{
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&lock, &attributes);
    pthread_mutexattr_destroy(&attributes);
}

/* A fork does not wait for a load, which runs foreign code. In the child the lock is free, and a plug-in that another thread was loading stays
 * half loaded. */
void grd_plugin_init(void)
{
    init_lock();
    pthread_atfork(NULL, NULL, init_lock);
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
            return grd_raise(GRD_ERROR_RUNTIME, "a plug-in named '%s' is loaded already, from another file than '%s'", descriptor->name,
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

/* Runs the load function; its error gets the name of the plug-in. */
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

/* In the list while it loads, so that a plug-in that loads itself is found. */
static bool load_new(struct plugin *plugin, const char *path)
{
    plugin->descriptor = dlsym(plugin->handle, "grd_plugin_descriptor");
    if (!check_descriptor(plugin->descriptor, path))
        return false;
    plugin->loading = true;
    plugin->next = plugins;
    plugins = plugin;
    const bool loaded = run_load(plugin->descriptor);
    plugin->loading = false;
    if (!loaded) {
        struct plugin **place = &plugins; /* plug-ins that it has loaded itself stand before it */
        while (*place != plugin)
            place = &(*place)->next;
        *place = plugin->next;
    }
    return loaded;
}

static bool load_locked(const char *path)
{
    struct plugin *plugin = grd_alloc_zeroed(sizeof *plugin);
    if (plugin == NULL)
        return false;
    struct grd_transaction transaction;
    grd_transaction_begin(&transaction); /* what constructors register counts too */
    bool loaded = false, kept = false;
    plugin->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const struct plugin *known = plugin->handle != NULL ? find_plugin(plugin->handle) : NULL;
    if (plugin->handle == NULL)
        grd_raise(GRD_ERROR_IO, "cannot load plug-in '%s': %s", path, dlerror());
    else if (known != NULL)
        loaded = !known->loading || grd_raise(GRD_ERROR_RUNTIME, "plug-in '%s' is being loaded", known->descriptor->name);
    else
        loaded = kept = load_new(plugin, path);
    grd_transaction_end(&transaction, loaded);
    if (!kept) {
        if (plugin->handle != NULL)
            dlclose(plugin->handle);
        grd_free(plugin, sizeof *plugin);
    }
    return loaded;
}

bool grd_load_library(const char *path)
{
    if (grd_pending())
        return false;
    if (path == NULL)
        return grd_raise(GRD_ERROR_TYPE, "grd_load_library: argument 'path' must not be NULL");
    /* dlopen looks for a name without a slash elsewhere; here a path is a path. */
    char resolved[PATH_MAX];
    if (realpath(path, resolved) == NULL)
        return grd_raise(GRD_ERROR_IO, "cannot load plug-in '%s': %s", path, strerror(errno));
    pthread_mutex_lock(&lock);
    const bool loaded = load_locked(resolved);
    pthread_mutex_unlock(&lock);
    return loaded;
}
