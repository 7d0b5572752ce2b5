#pragma once /* Generated from schema/tiny.toml by codegen. */
#include "gradus/options.h"
typedef struct grd_scaled_tanh_options { const char *mode GRD_DEFAULT("tanh"); } grd_scaled_tanh_options;
GRD_API grd_tensor *grd_with_scaled_tanh(grd_tensor *self, double limit, const grd_scaled_tanh_options *options);
GRD_API grd_tensor *grd_with_scaled_tanh_(grd_tensor *self, double limit, const grd_scaled_tanh_options *options);
#ifdef __cplusplus
extern "C++" inline grd_tensor *grd_scaled_tanh(grd_tensor *self, double limit, const grd_scaled_tanh_options &options = {}) { return grd_with_scaled_tanh(self, limit, &options); }
extern "C++" inline grd_tensor *grd_scaled_tanh_(grd_tensor *self, double limit, const grd_scaled_tanh_options &options = {})
{
    return grd_with_scaled_tanh_(self, limit, &options);
}
#else
#define GRD_SCALED_TANH_DEFAULTS .mode = "tanh"
#define grd_scaled_tanh(...) grd_named_scaled_tanh(__VA_ARGS__, )
#define grd_named_scaled_tanh(self, limit, ...) GRD_NAMED(grd_with_scaled_tanh((self), (limit), GRD_GIVEN(#__VA_ARGS__, &(grd_scaled_tanh_options){GRD_SCALED_TANH_DEFAULTS, __VA_ARGS__})))
#define grd_scaled_tanh_(...) grd_named_scaled_tanh_(__VA_ARGS__, )
#define grd_named_scaled_tanh_(self, limit, ...) GRD_NAMED(grd_with_scaled_tanh_((self), (limit), GRD_GIVEN(#__VA_ARGS__, &(grd_scaled_tanh_options){GRD_SCALED_TANH_DEFAULTS, __VA_ARGS__})))
#endif
