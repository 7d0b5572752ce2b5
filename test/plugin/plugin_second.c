/* A plug-in with the same name, "kernels", as plugin_kernels.c. The loader must refuse to load both. */
#include "gradus/gradus.h"

static bool load(void)
{
    return true;
}

GRD_PLUGIN("kernels", load)
