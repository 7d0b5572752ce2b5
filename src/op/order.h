/* Checks that a dtype can be ordered, for operators like sort() and max() that compare elements. */
#ifndef GRD_OP_ORDER_H
#define GRD_OP_ORDER_H

#include "kernel/order.h"
#include "kernel/table.h"
#include "op/checks.h"

/* Raises NotImplementedError if the dtype has no order, like the complex dtypes. The text is e.g. "\"sort_cpu\" not implemented for 'ComplexFloat'",
 * where `name` is "sort_cpu". */
static inline bool grd_check_ordered(const char *name, grd_dtype dtype)
{
    return grd_kernels->order[dtype] != NULL || grd_raise_no_kernel(name, dtype);
}

#endif
