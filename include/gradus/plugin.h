/* Plug-ins: shared objects that bring operators, kernels or a device.
 *
 *     static bool load(void)
 *     {
 *         grd_register_kernel("mylib::cube", GRD_KEY_CPU, cube, NULL);
 *         return grd_ok();
 *     }
 *     GRD_PLUGIN("mylib", load)
 *
 * A plug-in is compiled against these headers and linked with libgradus. */
#ifndef GRADUS_PLUGIN_H
#define GRADUS_PLUGIN_H

#include <stdbool.h>
#include <stdint.h>

#include "gradus/export.h"

GRD_BEGIN_DECLS

/* The number of the interface between library and plug-in: what a plug-in is given and gives, struct layouts and enumerations included.
 * It is raised by every change that a plug-in would have to be compiled again for. */
#define GRD_PLUGIN_INTERFACE 4

/* The descriptor that a plug-in exports. The first two members are the same in every interface, so that a plug-in of another can be named. */
typedef struct grd_plugin {
    uint32_t interface;        /* GRD_PLUGIN_INTERFACE when it was compiled */
    const char *built_against; /* GRD_VERSION when it was compiled */
    const char *name;          /* of the plug-in; put before its errors */
    bool (*load)(void);        /* registers everything; false, with an error set, on failure */
} grd_plugin;

/* Defined by the plug-in, with GRD_PLUGIN. */
extern GRD_API const grd_plugin grd_plugin_descriptor;

/* Once per plug-in, outside all functions. */
#define GRD_PLUGIN(plugin_name, load_function)                                                                                             \
    const grd_plugin grd_plugin_descriptor = {GRD_PLUGIN_INTERFACE, GRD_VERSION, (plugin_name), (load_function)};

/* Loads the plug-in at `path`: checks its interface, then calls its load function. What that registers, on the calling thread, holds together:
 * new operators are seen by other threads once it has succeeded, and when it fails everything is taken back and the file is closed.
 * A plug-in that it loads in turn stands on its own. Loading a file again does nothing. Threads may load at the same time, and while others compute.
 * A loaded plug-in stays for the life of the process: kernels, graphs and tensors of its devices lead into its code, uncounted.
 * A fork does not wait for a load: in the child, one that another thread was in has failed, and the file may be loaded there.
 * False, with the error set: OSError when the file cannot be read or is no shared object; RuntimeError when it is no plug-in, has another
 * interface, or has the name of a loaded one; the plug-in's own error, after its name, when load fails. */
GRD_API bool grd_load_library(const char *path);

GRD_END_DECLS
#endif
