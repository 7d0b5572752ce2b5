#pragma once /* Generated from schema/tiny.toml by codegen. */
#include "gradus/options.h"
typedef struct grd_add_options { grd_scalar alpha GRD_DEFAULT(1); } grd_add_options;
GRD_API grd_tensor *grd_with_add(grd_tensor *self, grd_tensor *other, const grd_add_options *options);
GRD_API grd_tensor *grd_with_add_scalar(grd_tensor *self, grd_scalar other, const grd_add_options *options);
GRD_API grd_tensor *grd_with_add_(grd_tensor *self, grd_tensor *other, const grd_add_options *options);
GRD_API grd_tensor *grd_with_add_scalar_(grd_tensor *self, grd_scalar other, const grd_add_options *options);
GRD_API grd_tensor *grd_with_add_out(grd_tensor *out, grd_tensor *self, grd_tensor *other, const grd_add_options *options);
#ifdef __cplusplus
extern "C++" inline grd_tensor *grd_add(grd_tensor *self, grd_tensor *other, const grd_add_options &options = {}) { return grd_with_add(self, other, &options); }
extern "C++" inline grd_tensor *grd_add_scalar(grd_tensor *self, grd_scalar other, const grd_add_options &options = {}) { return grd_with_add_scalar(self, other, &options); }
extern "C++" inline grd_tensor *grd_add_(grd_tensor *self, grd_tensor *other, const grd_add_options &options = {}) { return grd_with_add_(self, other, &options); }
extern "C++" inline grd_tensor *grd_add_scalar_(grd_tensor *self, grd_scalar other, const grd_add_options &options = {}) { return grd_with_add_scalar_(self, other, &options); }
extern "C++" inline grd_tensor *grd_add_out(grd_tensor *out, grd_tensor *self, grd_tensor *other, const grd_add_options &options = {})
{
    return grd_with_add_out(out, self, other, &options);
}
#else
#define GRD_ADD_DEFAULTS .alpha = GRD_NO_NUMBER
#define grd_add(...) grd_named_add(__VA_ARGS__, )
#define grd_named_add(self, other, ...) GRD_NAMED(grd_with_add((self), (other), GRD_GIVEN(#__VA_ARGS__, &(grd_add_options){GRD_ADD_DEFAULTS, __VA_ARGS__})))
#define grd_add_scalar(...) grd_named_add_scalar(__VA_ARGS__, )
#define grd_named_add_scalar(self, other, ...) GRD_NAMED(grd_with_add_scalar((self), (other), GRD_GIVEN(#__VA_ARGS__, &(grd_add_options){GRD_ADD_DEFAULTS, __VA_ARGS__})))
#define grd_add_(...) grd_named_add_(__VA_ARGS__, )
#define grd_named_add_(self, other, ...) GRD_NAMED(grd_with_add_((self), (other), GRD_GIVEN(#__VA_ARGS__, &(grd_add_options){GRD_ADD_DEFAULTS, __VA_ARGS__})))
#define grd_add_scalar_(...) grd_named_add_scalar_(__VA_ARGS__, )
#define grd_named_add_scalar_(self, other, ...) GRD_NAMED(grd_with_add_scalar_((self), (other), GRD_GIVEN(#__VA_ARGS__, &(grd_add_options){GRD_ADD_DEFAULTS, __VA_ARGS__})))
#define grd_add_out(...) grd_named_add_out(__VA_ARGS__, )
#define grd_named_add_out(out, self, other, ...) GRD_NAMED(grd_with_add_out((out), (self), (other), GRD_GIVEN(#__VA_ARGS__, &(grd_add_options){GRD_ADD_DEFAULTS, __VA_ARGS__})))
#endif
