#pragma once /* Generated from schema/tiny.toml by codegen. */
#include "gradus/options.h"
typedef struct grd_unbind_options { int64_t dim GRD_DEFAULT(0); } grd_unbind_options;
GRD_API grd_tensors_view grd_with_unbind(grd_tensor *self, const grd_unbind_options *options);
#ifdef __cplusplus
extern "C++" inline grd_tensors_view grd_unbind(grd_tensor *self, const grd_unbind_options &options = {}) { return grd_with_unbind(self, &options); }
#else
#define GRD_UNBIND_DEFAULTS .dim = 0
#define grd_unbind(...) grd_named_unbind(__VA_ARGS__, )
#define grd_named_unbind(self, ...) GRD_NAMED(grd_with_unbind((self), GRD_GIVEN(#__VA_ARGS__, &(grd_unbind_options){GRD_UNBIND_DEFAULTS, __VA_ARGS__})))
#endif
