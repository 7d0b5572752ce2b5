/* A plug-in built for another version of the library's interface. The loader must not call any of its functions. */
#include "gradus/gradus.h"

static bool load(void)
{
    grd_error_set(GRD_ERROR_RUNTIME, "it was called");
    return false;
}

const grd_plugin grd_plugin_descriptor = {GRD_PLUGIN_INTERFACE + 1, "9.8.7", "other_interface", load};
