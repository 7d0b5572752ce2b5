/* A plug-in whose descriptor has no name. The loader must refuse it. */
#include "gradus/gradus.h"

static bool load(void)
{
    return true;
}

GRD_PLUGIN("", load)
