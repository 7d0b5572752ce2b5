/* Gradus: strided tensors with automatic differentiation. One include for everything. */
#ifndef GRADUS_GRADUS_H
#define GRADUS_GRADUS_H

#include "gradus/library.h"
#include "gradus/ops.h" /* generated from schema */

#endif
