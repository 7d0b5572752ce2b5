#pragma once /* Generated from schema/tiny.toml by codegen. */
#include "gradus/options.h"
typedef struct grd_zeros_options { grd_dtype dtype GRD_DEFAULT(GRD_DTYPE_NONE); grd_device device GRD_DEFAULT({}); bool requires_grad GRD_DEFAULT(false); } grd_zeros_options;
GRD_API grd_tensor *grd_with_zeros(grd_dims_view size, const grd_zeros_options *options);
#ifdef __cplusplus
extern "C++" inline grd_tensor *grd_zeros(grd_dims_view size, const grd_zeros_options &options = {}) { return grd_with_zeros(size, &options); }
#else
#define GRD_ZEROS_DEFAULTS .device = GRD_NO_DEVICE, .requires_grad = false
#define grd_zeros(...) grd_named_zeros(__VA_ARGS__, )
#define grd_named_zeros(size, ...) GRD_NAMED(grd_with_zeros((size), GRD_GIVEN(#__VA_ARGS__, &(grd_zeros_options){GRD_ZEROS_DEFAULTS, __VA_ARGS__})))
#endif
