/* A plug-in whose descriptor has no load function. The loader must refuse it. */
#include "gradus/gradus.h"

GRD_PLUGIN("loadless", NULL)
