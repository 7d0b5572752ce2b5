#pragma once /* Generated from schema/tiny.toml by codegen. */
#include "gradus/types.h"
GRD_API grd_tensor *grd_lt(grd_tensor *self, grd_tensor *other);
GRD_API grd_tensor *grd_lt_(grd_tensor *self, grd_tensor *other);
GRD_API grd_tensor *grd_lt_out(grd_tensor *out, grd_tensor *self, grd_tensor *other);
