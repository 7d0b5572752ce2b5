/* A descriptor without a name. */
#include "gradus/gradus.h"

static bool load(void)
{
    return true;
}

GRD_PLUGIN("", load)
