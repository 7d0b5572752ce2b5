#pragma once /* Generated from schema/tiny.toml by codegen. */
#include "gradus/types.h"
GRD_API grd_tensor *grd_mul(grd_tensor *self, grd_tensor *other);
GRD_API grd_tensor *grd_mul_(grd_tensor *self, grd_tensor *other);
GRD_API grd_tensor *grd_mul_out(grd_tensor *out, grd_tensor *self, grd_tensor *other);
