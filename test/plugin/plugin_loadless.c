/* A plug-in whose descriptor has no load function. */
#include "gradus/gradus.h"

GRD_PLUGIN("loadless", NULL)
