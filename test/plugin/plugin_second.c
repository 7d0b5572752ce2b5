/* Another plug-in that has the name "kernels". */
#include "gradus/gradus.h"

static bool load(void)
{
    return true;
}

GRD_PLUGIN("kernels", load)
