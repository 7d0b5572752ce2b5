#pragma once /* Generated from schema/tiny.toml by codegen. */
#include "gradus/options.h"
typedef struct grd_max_dim_result { grd_tensor *values; grd_tensor *indices; } grd_max_dim_result;
typedef struct grd_max_dim_options { bool keepdim GRD_DEFAULT(false); } grd_max_dim_options;
GRD_API grd_max_dim_result grd_with_max_dim(grd_tensor *self, int64_t dim, const grd_max_dim_options *options);
#ifdef __cplusplus
extern "C++" inline grd_max_dim_result grd_max_dim(grd_tensor *self, int64_t dim, const grd_max_dim_options &options = {}) { return grd_with_max_dim(self, dim, &options); }
#else
#define GRD_MAX_DIM_DEFAULTS .keepdim = false
#define grd_max_dim(...) grd_named_max_dim(__VA_ARGS__, )
#define grd_named_max_dim(self, dim, ...) GRD_NAMED(grd_with_max_dim((self), (dim), GRD_GIVEN(#__VA_ARGS__, &(grd_max_dim_options){GRD_MAX_DIM_DEFAULTS, __VA_ARGS__})))
#endif
