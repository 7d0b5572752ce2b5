/* Gradus: strided tensors with automatic differentiation. One include for everything. */
#ifndef GRADUS_GRADUS_H
#define GRADUS_GRADUS_H

#include "gradus/error.h"
#include "gradus/types.h"
#include "gradus/runtime.h"
#include "gradus/tensor.h"
#include "gradus/dispatch.h"
#include "gradus/device.h"
#include "gradus/wrapper.h"
#include "gradus/autograd.h"
#include "gradus/optim.h"
#include "gradus/plugin.h"
#include "gradus/io.h"
#include "gradus/binding.h"
#include "gradus/ops.h" /* generated from schema */

#endif
