/* A plug-in whose descriptor has no name. */
#include "gradus/gradus.h"

static bool load(void)
{
    return true;
}

GRD_PLUGIN("", load)
