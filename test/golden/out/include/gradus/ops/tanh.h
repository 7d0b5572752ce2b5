#pragma once /* Generated from schema/tiny.toml by codegen. */
#include "gradus/types.h"
GRD_API grd_tensor *grd_tanh(grd_tensor *self);
GRD_API grd_tensor *grd_tanh_(grd_tensor *self);
GRD_API grd_tensor *grd_tanh_out(grd_tensor *out, grd_tensor *self);
