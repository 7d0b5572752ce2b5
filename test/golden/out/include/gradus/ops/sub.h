#pragma once /* Generated from schema/tiny.toml by codegen. */
#include "gradus/types.h"
GRD_API grd_tensor *grd_sub(grd_tensor *self, grd_tensor *other);
GRD_API grd_tensor *grd_sub_(grd_tensor *self, grd_tensor *other);
GRD_API grd_tensor *grd_sub_out(grd_tensor *out, grd_tensor *self, grd_tensor *other);
