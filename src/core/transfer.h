/* Copies elements between devices. */
#ifndef GRD_CORE_TRANSFER_H
#define GRD_CORE_TRANSFER_H

#include "core/tensor.h"

/* `t` where this process can read it: itself on the cpu, otherwise a copy with the same strides. Pooled or borrowed; grd_failed, with
 * NotImplementedError, when it has no data. */
grd_tensor *grd_on_cpu(const grd_tensor *t);
/* Copies the elements between tensors of the same sizes and dtype on any two devices, in as few pieces as the strides allow; no other byte is
 * written. The two do not overlap. */
bool grd_transfer(grd_tensor *to, const grd_tensor *from);

#endif
