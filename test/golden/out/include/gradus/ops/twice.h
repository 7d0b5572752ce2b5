#pragma once /* Generated from schema/tiny.toml by codegen. */
#include "gradus/types.h"
GRD_API grd_tensor *grd_twice(grd_tensor *self);
