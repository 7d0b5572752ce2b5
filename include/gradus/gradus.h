/* Gradus: strided tensors with automatic differentiation. This header includes all other public headers. */
#ifndef GRADUS_GRADUS_H
#define GRADUS_GRADUS_H

#include "gradus/library.h"
#include "gradus/ops.h" /* generated from schema */

#endif
