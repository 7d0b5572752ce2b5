/* Includes all public headers except gradus/ops.h, which declares the operators. */
#ifndef GRADUS_LIBRARY_H
#define GRADUS_LIBRARY_H

#include "gradus/error.h"
#include "gradus/types.h"
#include "gradus/runtime.h"
#include "gradus/tensor.h"
#include "gradus/transform.h"
#include "gradus/dispatch.h"
#include "gradus/device.h"
#include "gradus/wrapper.h"
#include "gradus/autograd.h"
#include "gradus/optim.h"
#include "gradus/plugin.h"
#include "gradus/io.h"
#include "gradus/share.h"
#include "gradus/binding.h"

#endif
