/* Declares the interface of plug-ins, which are shared libraries that register operators, kernels or a device.
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

/* The version number of the interface between the library and plug-ins, i.e. of functions, struct layouts and enumerations. Every change that
 * requires plug-ins to be recompiled increases the number. */
#define GRD_PLUGIN_INTERFACE 4

/* The descriptor that a plug-in exports. The first two members are the same in every version of the interface, so that the library can name the
 * version of a plug-in that it refuses. */
typedef struct grd_plugin {
    uint32_t interface;        /* value of GRD_PLUGIN_INTERFACE when the plug-in was compiled */
    const char *built_against; /* value of GRD_VERSION when the plug-in was compiled */
    const char *name;          /* name of the plug-in, which precedes the text of its errors */
    bool (*load)(void);        /* registers what the plug-in provides; returns false, with an error, on failure */
} grd_plugin;

/* The descriptor of a plug-in, defined in the plug-in by GRD_PLUGIN. */
extern GRD_API const grd_plugin grd_plugin_descriptor;

/* Defines the plug-in's descriptor. A plug-in uses this macro once, outside all functions. */
#define GRD_PLUGIN(plugin_name, load_function)                                                                                             \
    const grd_plugin grd_plugin_descriptor = {GRD_PLUGIN_INTERFACE, GRD_VERSION, (plugin_name), (load_function)};

/* Loads the plug-in at `path`: checks its interface version and calls its load function. Other threads see what the load function registers only
 * after it has succeeded. If the load function fails, everything that it has registered is undone and the file is closed. Other plug-ins that the
 * load function has loaded stay loaded. Loading a file again does nothing. Several threads may load plug-ins at the same time, and other threads may
 * compute meanwhile. A plug-in stays loaded until the process ends, because kernels, graphs and tensors point into its code. If the process forks
 * while another thread loads a plug-in, the plug-in is not loaded in the child process, which may load it again. Returns false on failure. The error
 * is OSError if the file cannot be read or is no shared library. It is RuntimeError if the file is no plug-in, has another interface version or has
 * the name of a loaded plug-in. If the load function fails, the error is the one that it has set, with the plug-in's name before the text. */
GRD_API bool grd_load_library(const char *path);

GRD_END_DECLS
#endif
