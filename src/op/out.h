/* Declares functions for the argument out=, a tensor that the caller passes to an operator for its result. The functions check this tensor, resize it
 * and write the result to it. */
#ifndef GRD_OP_OUT_H
#define GRD_OP_OUT_H

#include "core/tensor.h"

/* Returns the result of an operator. If `out` is NULL, this is `result`. Otherwise `out` is checked, resized to the sizes of `result`, filled with
 * the elements of `result` and returned. */
grd_tensor *grd_out_finish(grd_tensor *out, grd_tensor *result);
/* Raises RuntimeError if `out` cannot take the result because the dtype cannot be cast, the device differs, or elements of `out` share memory with
 * each other. `out` may be NULL. */
bool grd_out_check(const grd_tensor *out, grd_dtype dtype, grd_device device);
/* Raises RuntimeError if grd_out_check() refuses `out`. If the sizes of `out` differ from those of `result`, resizes `out` to the sizes and strides
 * of `result`. */
bool grd_out_resize(grd_tensor *out, const grd_tensor *result);
/* Raises RuntimeError if an input of an elementwise operator overlaps `out` partially, so that an element would be overwritten before it is read.
 * `out` may be NULL. */
bool grd_out_check_inputs(const grd_tensor *out, grd_tensors inputs);

#endif
