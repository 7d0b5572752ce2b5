#pragma once /* Generated from schema/tiny.toml by codegen. */
#include "gradus/types.h"
GRD_API grd_tensor *grd_neg(grd_tensor *self);
GRD_API grd_tensor *grd_neg_(grd_tensor *self);
GRD_API grd_tensor *grd_neg_out(grd_tensor *out, grd_tensor *self);
