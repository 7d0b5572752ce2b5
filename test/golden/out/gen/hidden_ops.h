/* Generated from schema by codegen. Do not edit. */
#ifndef GRD_GEN_HIDDEN_OPS_H
#define GRD_GEN_HIDDEN_OPS_H

#include "gradus/ops.h"

/* _place(Tensor grad, Tensor indices, int dim, bool keepdim, int[] sizes) -> Tensor
 * The inverse of max_dim. */
grd_tensor *grd_hidden_place(grd_tensor *grad, grd_tensor *indices, int64_t dim, bool keepdim, grd_dims_view sizes);

#endif
