/* A plug-in whose load function fails without setting an error. The loader must set an error in its place. */
#include "gradus/gradus.h"

static bool load(void)
{
    return false;
}

GRD_PLUGIN("silent", load)
