/* Declares functions that copy elements between devices. */
#ifndef GRD_CORE_TRANSFER_H
#define GRD_CORE_TRANSFER_H

#include "core/tensor.h"

/* Returns a tensor with the elements of `t` in CPU memory: `t` itself, borrowed, if it is on the CPU, otherwise a copy with the same strides,
 * which is freed when the innermost grd_scope closes. Returns grd_failed, with an error, for tensors without data (NotImplementedError on the
 * meta device). */
grd_tensor *grd_on_cpu(const grd_tensor *t);
/* Copies all elements from one tensor to another one with the same sizes and dtype, on any device. The tensors must not overlap. Calls the device's
 * copy function as few times as the strides allow. Bytes between the elements of `to` are not written. Returns false, with the error raised, if a
 * copy failed. */
bool grd_transfer(grd_tensor *to, const grd_tensor *from);

#endif
