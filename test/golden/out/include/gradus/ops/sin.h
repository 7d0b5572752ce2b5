#pragma once /* Generated from schema/tiny.toml by codegen. */
#include "gradus/types.h"
GRD_API grd_tensor *grd_sin(grd_tensor *self);
GRD_API grd_tensor *grd_sin_(grd_tensor *self);
GRD_API grd_tensor *grd_sin_out(grd_tensor *out, grd_tensor *self);
