/* Nodes of custom functions. */
#ifndef GRD_AUTOGRAD_CUSTOM_H
#define GRD_AUTOGRAD_CUSTOM_H

#include "autograd/node.h"

/* True if the node belongs to a custom autograd function. */
bool grd_is_custom_node(const struct grd_node *node);

#endif
