/* Nodes of custom functions. */
#ifndef GRD_AUTOGRAD_CUSTOM_H
#define GRD_AUTOGRAD_CUSTOM_H

#include "autograd/node.h"

bool grd_is_custom_node(const struct grd_node *node);

#endif
