/* out=: the tensor that an operator is given for its result. */
#ifndef GRD_OP_OUT_H
#define GRD_OP_OUT_H

#include "core/tensor.h"

/* Returns the result of an operator: `result`, or `out`, resized and filled from it, after the checks of grd_out_check. */
grd_tensor *grd_out_finish(grd_tensor *out, grd_tensor *result);
/* RuntimeError: `out` cannot take the result, since the dtype cannot be cast, the device is another one, or its elements share memory. `out` NULL:
 * true. */
bool grd_out_check(const grd_tensor *out, grd_dtype dtype, grd_device device);
/* Checks `out`, and resizes it to the sizes and strides of the result if the sizes differ. */
bool grd_out_resize(grd_tensor *out, const grd_tensor *result);
/* RuntimeError: an input of an elementwise operator, broadcast, overlaps `out` other than element by element. `out` NULL: true. */
bool grd_out_check_inputs(const grd_tensor *out, grd_tensors inputs);

#endif
