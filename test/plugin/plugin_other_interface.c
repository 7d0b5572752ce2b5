/* Built for an interface that is not this library's. Loading it must not call anything. */
#include "gradus/gradus.h"

static bool load(void)
{
    grd_error_set(GRD_ERROR_RUNTIME, "it was called");
    return false;
}

const grd_plugin grd_plugin_descriptor = {GRD_PLUGIN_INTERFACE + 1, "9.8.7", "other_interface", load};
