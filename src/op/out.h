/* out=: the tensor that an operator is given for its result. */
#ifndef GRD_OP_OUT_H
#define GRD_OP_OUT_H

#include "core/tensor.h"

/* Returns what an operator returns: `result`, or `out` resized to its shape and filled from it, after the checks of grd_out_check. */
grd_tensor *grd_out_finish(grd_tensor *out, grd_tensor *result);
/* RuntimeError when `out` is given and could not take the result: dtype not castable, another device, elements that share memory. `out` NULL: true. */
bool grd_out_check(const grd_tensor *out, grd_dtype dtype, grd_device device);
/* Checks `out`, and gives it the sizes and strides of the result where the sizes differ. */
bool grd_out_resize(grd_tensor *out, const grd_tensor *result);
/* RuntimeError when one of the inputs of an elementwise operator, broadcast, overlaps `out` otherwise than element by element. `out` NULL: true. */
bool grd_out_check_inputs(const grd_tensor *out, grd_tensors inputs);

#endif
