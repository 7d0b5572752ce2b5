#pragma once /* Generated from schema/tiny.toml by codegen. */
#include "gradus/types.h"
grd_tensor *grd_hidden_place(grd_tensor *grad, grd_tensor *indices, int64_t dim, bool keepdim, grd_dims_view sizes);
