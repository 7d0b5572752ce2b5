/* Fails and does not say why. */
#include "gradus/gradus.h"

static bool load(void)
{
    return false;
}

GRD_PLUGIN("silent", load)
