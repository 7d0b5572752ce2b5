/* A descriptor without a load function. */
#include "gradus/gradus.h"

GRD_PLUGIN("loadless", NULL)
