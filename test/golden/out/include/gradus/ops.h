/* Generated from schema by codegen. Do not edit. */
#ifndef GRADUS_OPS_H
#define GRADUS_OPS_H

#include "gradus/options.h"
#include "gradus/tensor.h"
#include "gradus/types.h"

GRD_BEGIN_DECLS

#include "gradus/ops/tanh.h"
#include "gradus/ops/add.h"
#include "gradus/ops/sub.h"
#include "gradus/ops/mul.h"
#include "gradus/ops/neg.h"
#include "gradus/ops/sin.h"
#include "gradus/ops/lt.h"
#include "gradus/ops/twice.h"
#include "gradus/ops/unbind.h"
#include "gradus/ops/stack.h"
#include "gradus/ops/max_dim.h"
#include "gradus/ops/zeros.h"
#include "gradus/ops/scaled_tanh.h"

GRD_END_DECLS
#endif
