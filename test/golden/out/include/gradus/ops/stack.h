#pragma once /* Generated from schema/tiny.toml by codegen. */
#include "gradus/options.h"
typedef struct grd_stack_options { int64_t dim GRD_DEFAULT(0); } grd_stack_options;
GRD_API grd_tensor *grd_with_stack(grd_tensors_view tensors, const grd_stack_options *options);
#ifdef __cplusplus
extern "C++" inline grd_tensor *grd_stack(grd_tensors_view tensors, const grd_stack_options &options = {}) { return grd_with_stack(tensors, &options); }
#else
#define GRD_STACK_DEFAULTS .dim = 0
#define grd_stack(...) grd_named_stack(__VA_ARGS__, )
#define grd_named_stack(tensors, ...) GRD_NAMED(grd_with_stack((tensors), GRD_GIVEN(#__VA_ARGS__, &(grd_stack_options){GRD_STACK_DEFAULTS, __VA_ARGS__})))
#endif
